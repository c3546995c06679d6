"""Crescents; the nearest people of a graph, against a plain breadth-first search; coordinates."""

import numpy as np
import pytest

from people import (
    LABELS,
    coarser,
    draw_crescents,
    graph_coordinates,
    groups_of_nearest,
    nearest_in_graph,
)
from shuffledp import Entropy

# Noise beyond 8 deviations: 2e-15 a coordinate, some 8,000 of them twice; the means of 500 points
# are 0.1 away from theirs, more than 6 deviations, in one of 1e9 samples.
FALSE_POSITIVE_RATE = 1e-8


def random_graph(num_users, num_edges, seed):
    """Return a connected graph: a random tree and some more edges, each once."""
    generator = Entropy.from_seed(seed).generator()
    edges = {(int(generator.integers(user)), user) for user in range(1, num_users)}
    for first, second in generator.integers(num_users, size=(num_edges, 2)).tolist():
        if first != second:
            edges.add((min(first, second), max(first, second)))
    return np.array(sorted(edges))


def plain_keys(edges, num_users, user):
    """Return (hops, -shortest walks, number) of everybody, by a plain search."""
    friends = {each: set() for each in range(num_users)}
    for first, second in edges.tolist():
        friends[first].add(second)
        friends[second].add(first)
    keys, layer, hops = {user: (0, 0, user)}, {user: 1}, 0
    while layer:
        hops, counts = hops + 1, {}
        for person, walks in layer.items():
            for friend in friends[person]:
                if friend not in keys:
                    counts[friend] = counts.get(friend, 0) + walks
        keys |= {person: (hops, -walks, person) for person, walks in counts.items()}
        layer = counts
    return sorted(keys.values())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 7, 40])
def test_nearest_against_a_plain_search(seed, most):
    edges = random_graph(40, 30 * seed, seed)
    nearest = nearest_in_graph(edges, 40, most)
    for user in range(40):
        expected = [number for _, _, number in plain_keys(edges, 40, user)[:most]]
        assert nearest[user].tolist() == expected


def test_strangers_come_last():
    nearest = nearest_in_graph(np.array([[0, 1], [2, 3]]), 4, 4)
    assert nearest.tolist() == [[0, 1, 2, 3], [1, 0, 2, 3], [2, 3, 0, 1], [3, 2, 0, 1]]


def test_groups_are_stored_once():
    edges = random_graph(50, 60, 9)
    nearest = nearest_in_graph(edges, 50, 10)
    groups = groups_of_nearest(nearest, 5)
    assert (groups.sizes == 5).all()
    for user in range(50):
        assert sorted(nearest[user, :5].tolist()) == groups.of(user).tolist()
    assert groups_of_nearest(nearest, 1).num_groups == 50


def test_coordinates_are_eigenvectors_with_a_fixed_sign():
    edges = random_graph(60, 100, 5)
    coordinates = graph_coordinates(edges, 60, 3)
    walk = np.zeros((60, 60))
    walk[edges[:, 0], edges[:, 1]] = walk[edges[:, 1], edges[:, 0]] = 1.0
    walk /= walk.sum(axis=1, keepdims=True)
    assert coordinates[:, 0] == pytest.approx(np.ones(60))
    for column in coordinates.T:
        moved = walk @ column
        assert moved == pytest.approx((moved @ column / (column @ column)) * column, abs=1e-8)
        assert column[np.abs(column).argmax()] > 0
        assert np.mean(column**2) == pytest.approx(1.0)
    assert (graph_coordinates(edges, 60, 3) == coordinates).all()


@pytest.fixture(scope="module")
def crescents():
    return draw_crescents(4_003, Entropy.from_seed(3))


def test_labels_and_clusters(crescents):
    points, labels = crescents
    assert sorted(np.bincount(labels).tolist()) == [500] * 5 + [501] * 3
    assert len(LABELS) == 8
    warm = coarser(labels, 2) == 0
    assert points[warm, 1].min() > points[~warm, 1].max()


@pytest.mark.parametrize("label", range(8))
def test_crescents_are_half_circles_and_halves_lie_side_by_side(crescents, label):
    points = crescents[0][crescents[1] == label]
    centre = np.array([0.0, -3.2 * (label // 4)])
    upside_down = 1.0
    if label // 2 % 2:
        centre += [1.0, 0.45]
        upside_down = -1.0
    around = upside_down * (points - centre)
    assert np.abs(np.hypot(*around.T) - 1.0).max() < 8 * 0.09 * np.sqrt(2)
    assert around[:, 1].min() > -8 * 0.09
    side = -around[:, 0] if label % 2 else around[:, 0]
    assert side.min() > -8 * 0.09
    assert abs(side.mean() - 2 / np.pi) < 0.1
