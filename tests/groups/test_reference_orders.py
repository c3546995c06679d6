"""Exact sensitivities against the definition, on all subsets of up to seven places."""

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import reference_orders as centroid_sweeps
from shuffledp.groups.groups import Groups
from shuffledp.groups.reference_orders import (
    DISTANCES,
    PATIENCE,
    Memberships,
    ReferenceOrder,
    breadth_first,
    breadth_first_order,
    choose_reference_order,
    cuthill_mckee,
    group_sensitivities,
    group_widths,
    improve_by_sweeps,
    inverse,
    principal_axis_order,
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


def test_the_paper_is_exact_for_places_in_a_row():
    groups = Groups.from_sets([[1, 2, 3], [0], [4]], num_users=5)
    assert sensitivity("kendall", groups, np.arange(5)) == 2 * 3 // 2


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


def test_one_person():
    groups = Groups.from_sets([[0]], num_users=1)
    assert [sensitivity(distance, groups, np.array([0])) for distance in DISTANCES] == [0] * 4


def test_unknown_distances_are_refused():
    groups = Groups.from_sets([[0, 1]], num_users=2)
    with pytest.raises(ParameterError, match="'ulam' is not one of kendall, hamming"):
        sensitivity("ulam", groups, np.arange(2))
    with pytest.raises(ParameterError, match="'ulam'"):
        smallest_possible_sensitivity("ulam", groups)


@st.composite
def any_groups(draw):
    """Groups of up to ten people, some of whom may be in none; with or without owners."""
    num_users = draw(st.integers(1, 10))
    people = st.integers(0, num_users - 1)
    if draw(st.booleans()):
        edges = draw(st.lists(st.tuples(people, people), max_size=12))
        return Groups.from_graph(np.array(edges).reshape(-1, 2), num_users=num_users)
    sets = draw(st.lists(st.sets(people, min_size=1), max_size=6))
    members = [user for one in sets for user in sorted(one)]
    starts = np.cumsum([0, *map(len, sets)])
    return Groups(num_users=num_users, starts=starts, members=np.array(members, dtype=np.int64))


def in_plain_python(groups, roots, rank):
    """Visit breadth first with sets and lists."""
    sets = [groups.group(a).tolist() for a in range(groups.num_groups)]
    order, component, opened = [], {}, set()
    for root in roots:
        if root in component:
            continue
        number = max(component.values(), default=-1) + 1
        component[root] = number
        queue = [root]
        while queue:
            user = queue.pop(0)
            order.append(user)
            own = [] if groups.group_of is None else [groups.group_of[user]]
            for a in [*own, *(a for a, one in enumerate(sets) if user in one)]:
                if a in opened:
                    continue
                opened.add(a)
                for other in sorted(sets[a], key=rank):
                    if other not in component:
                        component[other] = number
                        queue.append(other)
    return order, [component[user] for user in range(groups.num_users)]


@given(any_groups())
def test_breadth_first(groups):
    protecting, own = groups.size_protecting(), groups.group_of
    size_of = protecting if own is None else groups.sizes[own]
    roots = sorted(range(groups.num_users), key=lambda user: (-size_of[user], user))
    order, component = in_plain_python(groups, roots, int)
    assert breadth_first(Memberships.of(groups)).tolist() == order
    assert (np.diff(np.array(component)[order]) >= 0).all()


@given(any_groups())
def test_cuthill_mckee(groups):
    memberships = Memberships.of(groups)
    degree = np.diff(memberships.of_users[0])
    first = breadth_first(memberships)
    expected = first.tolist()
    for _ in range(2):
        expected, component = in_plain_python(
            groups, expected[::-1], lambda user: (degree[user], user)
        )
    order = cuthill_mckee(memberships, first)
    assert order.tolist() == expected
    # Components still fill places in a row.
    assert np.count_nonzero(np.diff(np.array(component)[order])) == max(component)


def test_the_largest_group_comes_first_in_a_row():
    groups = Groups.from_sets([[0, 5], [1, 6], [2, 4, 6, 7], [3]], num_users=8)
    assert breadth_first(Memberships.of(groups)).tolist() == [2, 4, 6, 7, 1, 0, 5, 3]


def test_people_open_their_own_group_first():
    # The root, 5 of the paper's Appendix A.10, is in other groups with smaller numbers.
    edges = [(4, 1), (4, 2), (4, 7), (4, 3), (7, 2), (3, 6), (1, 0), (2, 5)]
    groups = Groups.from_graph(edges, num_users=8)
    order = breadth_first(Memberships.of(groups))
    assert (order + 1).tolist() == [5, 2, 3, 4, 8, 1, 6, 7]


def test_cuthill_mckee_finds_the_end_of_a_chain():
    chain = Entropy.from_seed(11).generator().permutation(200)
    sets = [np.sort(pair) for pair in pairwise(chain)]
    groups = Groups.from_sets(sets, num_users=200)
    memberships = Memberships.of(groups)
    first = breadth_first(memberships)
    order = cuthill_mckee(memberships, first)
    assert order.tolist() in (chain.tolist(), chain[::-1].tolist())
    assert sensitivity("kendall", groups, inverse(order)) == 1
    assert sensitivity("kendall", groups, inverse(first)) > 1


def test_principal_axis():
    generator = Entropy.from_seed(9).generator()
    along = generator.permutation(50).astype(float)
    across = generator.random(50)
    points = np.stack([along - across, along + across, np.zeros(50)], axis=1)
    assert (principal_axis_order(points) == np.argsort(along)).all()
    assert (principal_axis_order(points - 1e9) == np.argsort(along)).all()
    # Neither the squares of huge coordinates nor a single place are a difficulty.
    assert (principal_axis_order(points * 1e148) == np.argsort(along)).all()
    assert principal_axis_order(np.ones((4, 2))).tolist() == [0, 1, 2, 3]


def test_one_column_is_sorted_upwards():
    assert principal_axis_order(np.array([[3.0], [-7.0], [3.0], [0.5]])).tolist() == [1, 3, 0, 2]


def test_tiny_coordinates():
    points = np.array([[3.0], [-7.0], [0.5]]) * 1e-200
    assert principal_axis_order(points).tolist() == [1, 2, 0]


@given(
    st.lists(st.sets(st.integers(0, 9), min_size=1), max_size=8),
    st.permutations(range(10)),
    st.sampled_from(["kendall", "footrule"]),
)
def test_never_worse(sets, order, distance):
    members = [user for one in sets for user in sorted(one)]
    starts = np.cumsum([0, *map(len, sets)])
    groups = Groups(num_users=10, starts=starts, members=np.array(members, dtype=np.int64))
    start = np.array(order)
    found, value = improve_by_sweeps(distance, Memberships.of(groups), start, good_enough=0)
    assert np.sort(found).tolist() == list(range(10))
    assert value == sensitivity(distance, groups, inverse(found))
    assert value <= sensitivity(distance, groups, inverse(start))


def test_a_chain_is_untangled():
    generator = Entropy.from_seed(21).generator()
    points = np.sort(generator.random(400))
    groups = Groups.from_distance(points, 0.05, metric="absolute")
    start = np.arange(400)
    start[::2] = generator.permutation(start[::2])
    best, value = improve_by_sweeps("kendall", Memberships.of(groups), start, good_enough=0)
    assert value < sensitivity("kendall", groups, inverse(start)) / 5
    assert sensitivity("kendall", groups, inverse(best)) == value


def counted(monkeypatch, groups, start, **options):
    """Return the result and the number of sweeps."""
    orders = []
    sweep = centroid_sweeps._sweep

    def counting(*arguments):
        orders.append(sweep(*arguments))
        return orders[-1]

    monkeypatch.setattr(centroid_sweeps, "_sweep", counting)
    return improve_by_sweeps("kendall", Memberships.of(groups), start, **options), len(orders)


def test_it_stops_when_it_is_good_enough(monkeypatch):
    groups = Groups.from_sets(pairwise(range(5)), num_users=5)
    (order, value), sweeps = counted(monkeypatch, groups, np.arange(5), good_enough=1)
    assert (order.tolist(), value, sweeps) == ([0, 1, 2, 3, 4], 1, 0)


def test_it_stops_without_gain(monkeypatch):
    # Three pairs in a circle: one of them is apart in every order, so nothing is gained.
    groups = Groups.from_sets([[0, 1], [1, 2], [2, 0]], num_users=3)
    (order, value), sweeps = counted(monkeypatch, groups, np.arange(3), good_enough=1)
    assert (order.tolist(), value, sweeps) == ([0, 1, 2], 3, PATIENCE)


@pytest.mark.parametrize("sweeps", [0, 2])
def test_no_more_sweeps_than_allowed(monkeypatch, sweeps):
    groups = Groups.from_sets([[0, 1], [1, 2], [2, 0]], num_users=3)
    monkeypatch.setattr(centroid_sweeps, "SWEEPS", sweeps)
    _, done = counted(monkeypatch, groups, np.arange(3), good_enough=1)
    assert done == sweeps


def test_people_without_groups_stay_in_place():
    groups = Groups(num_users=5, starts=[0, 2], members=[0, 4])
    order, value = improve_by_sweeps(
        "kendall", Memberships.of(groups), np.array([1, 0, 2, 3, 4]), good_enough=1
    )
    assert value == 1
    assert order.tolist() == [1, 2, 0, 4, 3]


@st.composite
def covering_groups(draw):
    """Groups of up to seven people that cover everybody."""
    num_users = draw(st.integers(1, 7))
    people = st.integers(0, num_users - 1)
    sets = draw(st.lists(st.sets(people, min_size=1), max_size=6))
    rest = [[user] for user in range(num_users) if not any(user in one for one in sets)]
    return Groups.from_sets([*sets, *rest], num_users=num_users)


@given(covering_groups(), st.sampled_from(DISTANCES))
def test_everything_that_it_says_is_so(groups, distance):
    found = choose_reference_order(groups, distance=distance)
    assert found.distance == distance
    assert np.sort(found.order).tolist() == list(range(groups.num_users))
    assert found.sensitivity == sensitivity(distance, groups, found.places)
    assert smallest_possible_sensitivity(distance, groups) <= found.sensitivity
    paper = sensitivity(distance, groups, inverse(breadth_first_order(groups)))
    assert found.sensitivity <= paper
    assert not found.order.flags.writeable


def test_against_the_best_of_all_orders():
    ratios = []
    generator = Entropy.from_seed(31).generator()
    for _ in range(15):
        sets = [np.flatnonzero(generator.random(6) < 0.4) for _ in range(4)]
        sets = [one for one in sets if one.size] + [[user] for user in range(6)]
        groups = Groups.from_sets(sets, num_users=6)
        found = choose_reference_order(groups)
        best = min(
            sensitivity("kendall", groups, np.array(order)) for order in permutations(range(6))
        )
        assert smallest_possible_sensitivity("kendall", groups) <= best <= found.sensitivity
        ratios.append(found.sensitivity / best if best else 1.0)
    assert np.mean(ratios) < 1.35


def test_a_line_is_proved_best_with_and_without_coordinates():
    numbers = Entropy.from_seed(32).generator().permutation(300) / 7.0
    groups = Groups.from_distance(numbers, 0.3, metric="absolute")
    for coordinates in (None, numbers):
        found = choose_reference_order(groups, coordinates=coordinates, metric="absolute")
        assert found.sensitivity == smallest_possible_sensitivity("kendall", groups) == 10
        places = found.places[np.argsort(numbers)]
        assert places.tolist() in (list(range(300)), list(range(299, -1, -1)))


def test_points_on_a_plane_try_everything():
    points = Entropy.from_seed(33).generator().random((400, 2))
    groups = Groups.from_distance(points, 0.1)
    found = choose_reference_order(groups, coordinates=points)
    again = choose_reference_order(groups, coordinates=points)
    assert (found.order == again.order).all()
    assert found.name == again.name
    assert found.name.endswith(", swept")
    ideas = [*centroid_sweeps._ideas(Memberships.of(groups), points)]
    assert [name for name, _ in ideas] == ["breadth first", "longest axis", "Cuthill-McKee"]
    least = min(sensitivity("kendall", groups, inverse(order)) for _, order in ideas)
    assert found.sensitivity < least
    assert found.sensitivity > smallest_possible_sensitivity("kendall", groups)
    width = group_widths(groups, inverse(breadth_first_order(groups))).max()
    assert width * (width + 1) // 2 > 3 * found.sensitivity


def test_no_sweeps(monkeypatch):
    monkeypatch.setattr(centroid_sweeps, "SWEEPS", 0)
    points = Entropy.from_seed(33).generator().random((200, 2))
    groups = Groups.from_distance(points, 0.1)
    found = choose_reference_order(groups)
    assert found.name in ("breadth first", "Cuthill-McKee")


def test_latitudes_and_longitudes(monkeypatch):
    monkeypatch.setattr(centroid_sweeps, "SWEEPS", 0)
    # A meridian across the pole: longitudes jump there by 180 degrees.
    degrees = np.arange(60.0, 120.0)
    there = np.where(degrees <= 90.0, degrees, 180.0 - degrees)
    points = np.stack([there, np.where(degrees <= 90.0, 10.0, -170.0)], axis=1)
    mixed = Entropy.from_seed(34).generator().permutation(60)
    groups = Groups.from_distance(points[mixed], 350_000, metric="haversine")
    found = choose_reference_order(groups, coordinates=points[mixed], metric="haversine")
    assert found.name == "longest axis"
    assert found.sensitivity == smallest_possible_sensitivity("kendall", groups)


@pytest.mark.parametrize("distance", ["hamming", "cayley"])
def test_where_the_order_does_not_matter_it_is_kept(distance):
    groups = Groups.from_sets([[0, 3, 1], [2, 4]], num_users=5)
    found = choose_reference_order(groups, distance=distance)
    assert found.order.tolist() == [0, 1, 2, 3, 4]
    assert found.name == "as given"
    assert found.sensitivity == smallest_possible_sensitivity(distance, groups)


def test_limits():
    alone = choose_reference_order(Groups.from_sets([[0]], num_users=1))
    assert (alone.order.tolist(), alone.sensitivity, alone.num_users) == ([0], 0, 1)
    nobody = choose_reference_order(Groups(num_users=3, starts=[0], members=[]))
    assert (nobody.order.tolist(), nobody.sensitivity) == ([0, 1, 2], 0)
    everybody = choose_reference_order(Groups.from_sets([range(9)], num_users=9))
    assert everybody.sensitivity == 36
    # Who is in no group still has a place.
    groups = Groups(num_users=5, starts=[0, 2], members=[0, 4])
    assert sorted(choose_reference_order(groups).order.tolist()) == [0, 1, 2, 3, 4]


def test_wrong_arguments_are_refused():
    groups = Groups.from_sets([[0, 1, 2]], num_users=3)
    for match, options in {
        "'ulam' is not one of": {"distance": "ulam"},
        "2 rows for 3 people": {"coordinates": [[0.0], [1.0]]},
        "metric = 'miles'": {"coordinates": [0.0, 1.0, 2.0], "metric": "miles"},
        "nan is not finite": {"coordinates": [0.0, np.nan, 2.0]},
    }.items():
        with pytest.raises(ParameterError, match=match):
            choose_reference_order(groups, **options)


def test_an_order_that_is_no_permutation_is_refused():
    with pytest.raises(ParameterError, match="order is not a permutation"):
        ReferenceOrder(order=np.array([0, 0]), name="mine", distance="kendall", sensitivity=3)
