"""Spectral orders against dense eigenvectors, and where they must give way."""

from itertools import pairwise

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.formation.memberships import Memberships
from shuffledp.groups.orders import spectral_order
from shuffledp.groups.orders.spectral_order import fiedler_order, principal_axis_order
from shuffledp.groups.orders.traversals import breadth_first


def order_of(groups):
    memberships = Memberships.of(groups)
    return fiedler_order(memberships, *breadth_first(memberships))


def strip(seed, num_users=60):
    """Points on a strip, so that the second singular value stands alone."""
    points = Entropy.from_seed(seed).generator().random((num_users, 2)) * (10.0, 1.0)
    return points, Groups.from_distance(points, 2.0)


def test_against_dense_singular_vectors(monkeypatch):
    monkeypatch.setattr(spectral_order, "_TOLERANCE", 1e-12)
    monkeypatch.setattr(spectral_order, "_RESTARTS", 100)
    _, groups = strip(3)
    incidence = groups.incidence().toarray().astype(float)
    by_group = incidence / np.sqrt(incidence.sum(axis=1, keepdims=True))
    degrees = incidence.sum(axis=0)
    _, values, rights = np.linalg.svd(by_group / np.sqrt(degrees))
    assert values[0] == pytest.approx(1.0)
    assert values[1] < 0.99
    vector = rights[1] / np.sqrt(degrees)
    # Sorted by the one, the other ascends or descends, but for ties.
    steps = np.diff(vector[order_of(groups)])
    assert (steps > -1e-9).all() or (steps < 1e-9).all()
    assert np.ptp(vector) > 0.01


def test_a_loose_tolerance_is_near_the_order_along_the_strip():
    points, groups = strip(4, num_users=500)
    places = np.empty(500)
    places[order_of(groups)] = np.arange(500.0)
    assert abs(np.corrcoef(places, points[:, 0])[0, 1]) > 0.98


def test_each_component_has_its_own_vector():
    left, right = strip(5)[0], strip(6)[0] + 100.0
    small = np.array([[500.0, 0.0], [501.0, 0.0], [502.0, 0.0]])
    points = np.concatenate([left, small, right])
    groups = Groups.from_distance(points, 2.0)
    order = order_of(groups)
    pieces = [range(60), range(60, 63), range(63, 123)]
    for piece in pieces:
        at = np.flatnonzero(np.isin(order, list(piece)))
        assert np.ptp(at) == len(piece) - 1
        if len(piece) > 3:
            alone = Groups.from_distance(points[list(piece)], 2.0)
            found = (order_of(alone) + piece[0]).tolist()
            assert order[at].tolist() in (found, found[::-1])


def test_small_components_keep_their_order():
    groups = Groups.from_sets([[0, 3], [3, 1], [2]], num_users=4)
    memberships = Memberships.of(groups)
    first, component = breadth_first(memberships)
    assert fiedler_order(memberships, first, component).tolist() == first.tolist()


def test_only_the_largest_components_are_solved_for(monkeypatch):
    monkeypatch.setattr(spectral_order, "MOST_COMPONENTS", 1)
    points = np.concatenate([strip(5)[0], strip(6, num_users=70)[0] + 100.0])
    groups = Groups.from_distance(points, 2.0)
    memberships = Memberships.of(groups)
    first, component = breadth_first(memberships)
    order = fiedler_order(memberships, first, component)
    changed = order != first
    assert changed[first >= 60].any()
    assert not changed[first < 60].any()


def test_one_group_of_everybody_is_any_order():
    groups = Groups.from_sets([range(40)], num_users=40)
    assert np.sort(order_of(groups)).tolist() == list(range(40))


def test_where_it_does_not_converge_the_order_stays(monkeypatch):
    groups = Groups.from_sets(pairwise(range(400)), num_users=400)
    memberships = Memberships.of(groups)
    first, component = breadth_first(memberships)
    assert fiedler_order(memberships, first, component).tolist() != first.tolist()
    monkeypatch.setattr(spectral_order, "_TOLERANCE", 1e-15)
    monkeypatch.setattr(spectral_order, "_RESTARTS", 1)
    assert fiedler_order(memberships, first, component).tolist() == first.tolist()


def test_it_is_the_same_every_time():
    _, groups = strip(8, num_users=300)
    assert (order_of(groups) == order_of(groups)).all()


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
