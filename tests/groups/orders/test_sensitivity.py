"""Exact sensitivities against the definition, on all subsets of up to seven places."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.groups import Groups
from shuffledp.groups.reference_orders import (
    DISTANCES,
    group_sensitivities,
    group_widths,
    paper_sensitivity,
    sensitivity,
    smallest_possible_sensitivity,
)


def kendall(pi):
    earlier, later = np.triu_indices(pi.shape[1], 1)
    return (pi[:, earlier] > pi[:, later]).sum(axis=1)


def hamming(pi):
    return (pi != np.arange(pi.shape[1])).sum(axis=1)


def cayley(pi):
    smallest = np.broadcast_to(np.arange(pi.shape[1]), pi.shape).copy()
    at = smallest.copy()
    for _ in range(pi.shape[1]):
        at = np.take_along_axis(pi, at, axis=1)
        np.minimum(smallest, at, out=smallest)
    # Each cycle is counted at its smallest item.
    return pi.shape[1] - (smallest == np.arange(pi.shape[1])).sum(axis=1)


def footrule(pi):
    return np.abs(pi - np.arange(pi.shape[1])).sum(axis=1)


BY_DEFINITION = {
    "kendall": kendall,
    "hamming": hamming,
    "cayley": cayley,
    "footrule": footrule,
}


def subsets(num_items):
    """All non-empty sets of items."""
    return [
        [item for item in range(num_items) if chosen >> item & 1]
        for chosen in range(1, 1 << num_items)
    ]


def largest_change(pi, distances, members):
    """max of d(kappa pi) - d(pi) over all pi, and kappa that moves only the members' values."""
    blurred = np.where(np.isin(pi, members), pi.shape[1], pi)
    codes = blurred @ (pi.shape[1] + 1) ** np.arange(pi.shape[1])
    _, coset = np.unique(codes, return_inverse=True)
    highest = np.full(coset.max() + 1, -1)
    lowest = np.full(coset.max() + 1, pi.shape[1] ** 2)
    np.maximum.at(highest, coset, distances)
    np.minimum.at(lowest, coset, distances)
    return (highest - lowest).max()


@pytest.mark.parametrize("num_items", range(1, 8))
@pytest.mark.parametrize("distance", DISTANCES)
def test_every_subset_by_the_definition(distance, num_items):
    pi = np.array(list(permutations(range(num_items))))
    distances = BY_DEFINITION[distance](pi)
    sets = subsets(num_items)
    groups = Groups.from_sets(sets, num_users=num_items)
    found = group_sensitivities(distance, groups, np.arange(num_items))
    assert found.dtype == np.int64
    assert found.tolist() == [largest_change(pi, distances, members) for members in sets]


def test_the_oracle_sees_more_than_the_distance_of_kappa():
    # Two members with one place in between: kappa is a transposition of three inversions.
    pi = np.array(list(permutations(range(3))))
    assert largest_change(pi, kendall(pi), [0, 2]) == 3
    assert largest_change(pi, cayley(pi), [0, 1, 2]) == 2
    assert largest_change(pi, hamming(pi), [1]) == 0


@st.composite
def placed_groups(draw):
    """Groups of up to twelve people, and places for them."""
    num_users = draw(st.integers(1, 12))
    people = st.integers(0, num_users - 1)
    sets = draw(st.lists(st.sets(people, min_size=1), min_size=1, max_size=6))
    everybody = [[user] for user in range(num_users)]
    places = draw(st.permutations(range(num_users)))
    return Groups.from_sets([*sets, *everybody], num_users=num_users), np.array(places)


def in_exact_numbers(distance, members, places):
    """The closed forms once more, in Python integers from sorted places."""
    w = sorted(int(places[member]) for member in members)
    g = len(w)
    if distance == "kendall":
        gaps = (
            (w[i] - w[i - 1] - 1) * min(i, g - i) for i in range(1, g)
        )  # i members up to the gap
        return g * (g - 1) // 2 + 2 * sum(gaps)
    if distance == "footrule":
        return sum(abs(low - high) for low, high in zip(w, reversed(w), strict=True))
    return {"hamming": g if g > 1 else 0, "cayley": g - 1}[distance]


@given(placed_groups())
def test_any_places(case):
    groups, places = case
    for distance in DISTANCES:
        expected = [
            in_exact_numbers(distance, groups.group(a), places) for a in range(groups.num_groups)
        ]
        assert group_sensitivities(distance, groups, places).tolist() == expected
        assert sensitivity(distance, groups, places) == max(expected)
        assert smallest_possible_sensitivity(distance, groups) <= max(expected)


@given(placed_groups())
def test_a_reversal_changes_nothing(case):
    groups, places = case
    for distance in DISTANCES:
        assert (
            group_sensitivities(distance, groups, places)
            == group_sensitivities(distance, groups, groups.num_users - 1 - places)
        ).all()


@given(placed_groups())
def test_the_paper_is_never_below(case):
    groups, places = case
    widths = group_widths(groups, places)
    assert widths.tolist() == [np.ptp(places[groups.group(a)]) for a in range(groups.num_groups)]
    exact = group_sensitivities("kendall", groups, places)
    assert (exact <= widths * (widths + 1) // 2).all()
    assert paper_sensitivity(groups, places) == (widths * (widths + 1) // 2).max()


def test_the_paper_is_exact_for_places_in_a_row():
    groups = Groups.from_sets([[1, 2, 3], [0], [4]], num_users=5)
    assert paper_sensitivity(groups, np.arange(5)) == 3
    assert sensitivity("kendall", groups, np.arange(5)) == 3


def test_the_papers_own_example():
    # Appendix A.10: eight people, sigma0 as its released sequence shows, G4 = {4, 5, 7} at places
    # 1, 5 and 8. Printed: 28. Edges 1-2, 3-6 are ours; the figure is not in the text.
    order = np.array([5, 2, 3, 8, 4, 1, 6, 7]) - 1
    places = np.argsort(order)
    printed = {3: {4, 5, 7}, 4: {2, 3, 4, 5, 8}, 7: {3, 5, 8}}
    ours = {0: {1, 2}, 1: {1, 2, 5}, 2: {3, 5, 6, 8}, 5: {3, 6}, 6: {4, 7}}
    sets = [[user - 1 for user in (printed | ours)[i]] for i in range(8)]
    groups = Groups.from_sets(sets, num_users=8)
    assert group_widths(groups, places)[[3, 4]].tolist() == [7, 4]
    assert paper_sensitivity(groups, places) == 28
    assert group_sensitivities("kendall", groups, places)[[3, 4]].tolist() == [13, 10]
    assert sensitivity("kendall", groups, places) == 13
    # The permutation drawn there, applied among people, releases what is printed there.
    drawn = np.array([3, 2, 5, 4, 8, 1, 7, 6]) - 1
    released = np.empty(8, dtype=np.int64)
    released[order] = drawn
    assert (released + 1).tolist() == [1, 2, 5, 8, 3, 7, 6, 4]


def test_large_numbers_do_not_overflow():
    num_users = 300_000
    everybody = Groups(num_users=num_users, starts=[0, num_users], members=np.arange(num_users))
    places = Entropy.from_seed(5).generator().permutation(num_users)
    assert sensitivity("kendall", everybody, places) == num_users * (num_users - 1) // 2
    assert sensitivity("footrule", everybody, places) == num_users**2 // 2
    expected = Fraction(num_users // 3 * (num_users // 3 - 1), 2)
    expected += 2 * 2 * sum(min(i, num_users // 3 - i) for i in range(1, num_users // 3))
    sorted_members = np.sort(places[::3])
    spread = Groups(num_users=num_users, starts=[0, sorted_members.size], members=sorted_members)
    in_thirds = np.empty(num_users, dtype=np.int64)
    in_thirds[places] = np.arange(num_users)
    assert sensitivity("kendall", spread, in_thirds) == expected


def test_no_groups():
    groups = Groups(num_users=2, starts=[0], members=[])
    for distance in DISTANCES:
        assert sensitivity(distance, groups, np.arange(2)) == 0
        assert smallest_possible_sensitivity(distance, groups) == 0
    assert paper_sensitivity(groups, np.arange(2)) == 0


def test_one_person():
    groups = Groups.from_sets([[0]], num_users=1)
    assert [sensitivity(distance, groups, np.array([0])) for distance in DISTANCES] == [0] * 4


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([0, 1], "2 entries for 3 people"),
        ([0, 1, 1], "misses 2"),
        ([0, 1, 3], "entry 3"),
        ([-1, 1, 2], "entry -1"),
        ([0.0, 1.0, 2.0], "float64"),
        ([[0, 1, 2]], "shape"),
        ([], "non-empty"),
    ],
)
def test_wrong_places_are_refused(places, message):
    groups = Groups.from_sets([[0, 1, 2]], num_users=3)
    for function in (
        lambda: group_sensitivities("kendall", groups, np.array(places)),
        lambda: group_sensitivities("cayley", groups, np.array(places)),
        lambda: paper_sensitivity(groups, np.array(places)),
    ):
        with pytest.raises(ParameterError, match=message):
            function()


def test_unknown_distances_are_refused():
    groups = Groups.from_sets([[0, 1]], num_users=2)
    with pytest.raises(ParameterError, match="'ulam' is not one of kendall, hamming"):
        sensitivity("ulam", groups, np.arange(2))
    with pytest.raises(ParameterError, match="'ulam'"):
        smallest_possible_sensitivity("ulam", groups)
