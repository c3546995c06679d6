"""The order that is chosen: exact, never worse than any that was tried, the same every time."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.groups import Groups
from shuffledp.groups.permutations import inverse
from shuffledp.groups.reference_orders import (
    DISTANCES,
    ReferenceOrder,
    breadth_first_order,
    choose_reference_order,
    paper_sensitivity,
    sensitivity,
)


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
    assert found.sensitivity == min(value for _, value in found.tried)
    assert (found.name, found.sensitivity) in found.tried
    assert found.smallest_possible <= found.sensitivity
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
        assert found.smallest_possible <= best <= found.sensitivity
        assert not found.is_best or found.sensitivity == best
        ratios.append(found.sensitivity / best if best else 1.0)
    assert np.mean(ratios) < 1.35


def test_a_line_is_proved_best_with_and_without_coordinates():
    numbers = Entropy.from_seed(32).generator().permutation(300) / 7.0
    groups = Groups.from_distance(numbers, 0.3, metric="absolute")
    for coordinates in (None, numbers):
        found = choose_reference_order(groups, coordinates=coordinates, metric="absolute")
        assert found.is_best
        assert found.sensitivity == 10
        places = found.places[np.argsort(numbers)]
        assert places.tolist() in (list(range(300)), list(range(299, -1, -1)))


def test_points_on_a_plane_try_everything():
    points = Entropy.from_seed(33).generator().random((400, 2))
    groups = Groups.from_distance(points, 0.1)
    found = choose_reference_order(groups, coordinates=points)
    again = choose_reference_order(groups, coordinates=points)
    assert (found.order == again.order).all()
    assert found.tried == again.tried
    names = [name for name, _ in found.tried]
    for name in ("breadth first", "longest axis", "Cuthill-McKee"):
        assert name in names
    assert any(name.endswith(", swept") for name in names)
    assert not found.is_best
    published = paper_sensitivity(groups, inverse(breadth_first_order(groups)))
    assert published > 3 * found.sensitivity


def test_no_sweeps():
    points = Entropy.from_seed(33).generator().random((200, 2))
    groups = Groups.from_distance(points, 0.1)
    found = choose_reference_order(groups, sweeps=0)
    assert [name for name, _ in found.tried] == ["breadth first", "Cuthill-McKee"]


def test_latitudes_and_longitudes():
    # A meridian across the pole: longitudes jump there by 180 degrees.
    degrees = np.arange(60.0, 120.0)
    there = np.where(degrees <= 90.0, degrees, 180.0 - degrees)
    points = np.stack([there, np.where(degrees <= 90.0, 10.0, -170.0)], axis=1)
    mixed = Entropy.from_seed(34).generator().permutation(60)
    groups = Groups.from_distance(points[mixed], 350_000, metric="haversine")
    found = choose_reference_order(groups, coordinates=points[mixed], metric="haversine", sweeps=0)
    axis = dict(found.tried)["longest axis"]
    assert axis == found.smallest_possible == found.sensitivity


@pytest.mark.parametrize("distance", ["hamming", "cayley"])
def test_where_the_order_does_not_matter_it_is_kept(distance):
    groups = Groups.from_sets([[0, 3, 1], [2, 4]], num_users=5)
    found = choose_reference_order(groups, distance=distance)
    assert found.order.tolist() == [0, 1, 2, 3, 4]
    assert found.name == "as given"
    assert found.is_best


def test_limits():
    alone = choose_reference_order(Groups.from_sets([[0]], num_users=1))
    assert (alone.order.tolist(), alone.sensitivity, alone.num_users) == ([0], 0, 1)
    nobody = choose_reference_order(Groups(num_users=3, starts=[0], members=[]))
    assert (nobody.order.tolist(), nobody.sensitivity) == ([0, 1, 2], 0)
    everybody = choose_reference_order(Groups.from_sets([range(9)], num_users=9))
    assert everybody.sensitivity == 36
    assert everybody.is_best
    # Who is in no group still has a place.
    groups = Groups(num_users=5, starts=[0, 2], members=[0, 4])
    assert sorted(choose_reference_order(groups).order.tolist()) == [0, 1, 2, 3, 4]


def test_wrong_arguments_are_refused():
    groups = Groups.from_sets([[0, 1, 2]], num_users=3)
    for match, options in {
        "'ulam' is not one of": {"distance": "ulam"},
        "sweeps = -1": {"sweeps": -1},
        "2 rows for 3 people": {"coordinates": [[0.0], [1.0]]},
        "metric = 'miles'": {"coordinates": [0.0, 1.0, 2.0], "metric": "miles"},
        "nan is not finite": {"coordinates": [0.0, np.nan, 2.0]},
    }.items():
        with pytest.raises(ParameterError, match=match):
            choose_reference_order(groups, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": [0, 0]}, "order misses 1"),
        ({"distance": "ulam"}, "'ulam'"),
        ({"sensitivity": -1}, "sensitivity = -1"),
        ({"sensitivity": 1, "smallest_possible": 2}, "sensitivity = 1 is below 2"),
        ({"smallest_possible": -1}, "smallest_possible = -1"),
        ({"sensitivity": 1.5}, "whole number"),
    ],
)
def test_a_wrong_reference_order_is_refused(changes, message):
    sound = {"order": [1, 0], "name": "mine", "distance": "kendall", "sensitivity": 3}
    ReferenceOrder(**{**sound, "order": np.array(sound["order"])})
    wrong = {**sound, **changes}
    with pytest.raises(ParameterError, match=message):
        ReferenceOrder(**{**wrong, "order": np.array(wrong["order"])})
