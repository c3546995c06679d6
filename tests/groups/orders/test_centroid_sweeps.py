"""Sweeps never make an order worse, and stop where they should."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.groups import reference_orders as centroid_sweeps
from shuffledp.groups.groups import Groups, Memberships
from shuffledp.groups.permutations import inverse
from shuffledp.groups.reference_orders import PATIENCE, improve_by_sweeps, sensitivity


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
    found, value = improve_by_sweeps(
        distance, Memberships.of(groups), start, sweeps=6, good_enough=0
    )
    assert np.sort(found).tolist() == list(range(10))
    assert value == sensitivity(distance, groups, inverse(found))
    assert value <= sensitivity(distance, groups, inverse(start))


def test_a_chain_is_untangled():
    generator = Entropy.from_seed(21).generator()
    points = np.sort(generator.random(400))
    groups = Groups.from_distance(points, 0.05, metric="absolute")
    start = np.arange(400)
    start[::2] = generator.permutation(start[::2])
    best, value = improve_by_sweeps(
        "kendall", Memberships.of(groups), start, sweeps=40, good_enough=0
    )
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
    (order, value), sweeps = counted(monkeypatch, groups, np.arange(5), sweeps=10, good_enough=1)
    assert (order.tolist(), value, sweeps) == ([0, 1, 2, 3, 4], 1, 0)


def test_it_stops_without_gain(monkeypatch):
    # Three pairs in a circle: one of them is apart in every order, so nothing is gained.
    groups = Groups.from_sets([[0, 1], [1, 2], [2, 0]], num_users=3)
    (order, value), sweeps = counted(monkeypatch, groups, np.arange(3), sweeps=10, good_enough=1)
    assert (order.tolist(), value, sweeps) == ([0, 1, 2], 3, PATIENCE)


@pytest.mark.parametrize("sweeps", [0, 2])
def test_no_more_sweeps_than_allowed(monkeypatch, sweeps):
    groups = Groups.from_sets([[0, 1], [1, 2], [2, 0]], num_users=3)
    _, done = counted(monkeypatch, groups, np.arange(3), sweeps=sweeps, good_enough=1)
    assert done == sweeps


def test_people_without_groups_stay_in_place():
    groups = Groups(num_users=5, starts=[0, 2], members=[0, 4])
    order, value = improve_by_sweeps(
        "kendall", Memberships.of(groups), np.array([1, 0, 2, 3, 4]), sweeps=5, good_enough=1
    )
    assert value == 1
    assert order.tolist() == [1, 2, 0, 4, 3]
