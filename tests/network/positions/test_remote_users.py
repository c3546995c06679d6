"""Rows of remote users beside eigenvalues, and laws of weights, against dense powers of walks."""

import numpy as np
import pytest

from graph_families import adjacency, random_regular_graph
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.network.positions import remote_users as remote_bounds
from shuffledp.network.positions.bounds import (
    chi_square_law,
    exact_position_bounds,
    second_moments,
    tails_of,
    weight_grid,
)
from shuffledp.network.positions.remote_users import FollowedLaws, remote_position_bounds
from shuffledp.network.positions.spectrum import spectral_position_bounds, walk_spectrum
from shuffledp.network.walk import RandomWalk


def lollipop(clique, tail):
    """A clique with a path that hangs on it: its last user is remote."""
    edges = [(i, j) for i in range(clique) for j in range(i)]
    return Graph.from_edges(edges + [(clique - 1 + i, clique + i) for i in range(tail)])


GRAPHS = {
    "lollipop": (lollipop(20, 6), None),
    "lollipop, five pairs": (lollipop(20, 6), 5),
    "lollipop, no pairs": (lollipop(12, 3), 0),
    "regular": (random_regular_graph(420, 6, Entropy.from_seed(1)), 8),
}


def ratios_of(graph, rounds, laziness=0.0):
    """P^t(i, j) / pi_j from dense powers."""
    step = adjacency(graph).toarray().astype(float)
    step /= step.sum(axis=1, keepdims=True)
    step = laziness * np.eye(len(step)) + (1.0 - laziness) * step
    return np.linalg.matrix_power(step, rounds) / graph.stationary_law()


def assert_dominates(values, masses, ratios, pi):
    """The mean excess over every threshold is at least that of the true law."""
    assert values @ masses == pytest.approx(1.0, abs=1e-6)
    assert masses.sum() <= 1.0 + 1e-12
    for threshold in np.concatenate([values, [0.5, 0.95, 1.01, 1.3, 3.0]]):
        truth = np.maximum(ratios - threshold, 0.0) @ pi
        assert truth <= np.maximum(values - threshold, 0.0) @ masses + 1e-9


def check(bounds, ratios, pi, groups):
    assert (bounds.low <= ratios.min(axis=1) * (1.0 + 1e-9) + 1e-12).all()
    assert (bounds.high >= ratios.max(axis=1) * (1.0 - 1e-9)).all()
    assert (bounds.chi_square * (1.0 + 1e-9) + 1e-12 >= (ratios**2) @ pi - 1.0).all()
    for users in groups:
        values, masses, _, missed = bounds.weights(np.array(users))
        assert missed <= 1e-200
        for user in users:
            assert_dominates(values, masses, ratios[user], pi)


@pytest.mark.parametrize("most", [1024, pytest.param(3, marks=pytest.mark.slow), 0])
@pytest.mark.parametrize("additions", [1e10, 0.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_bounds_hold_for_every_user(name, most, additions, monkeypatch):
    monkeypatch.setattr(remote_bounds, "_MOST_ROWS", most)
    monkeypatch.setattr(remote_bounds, "_MOST_ADDITIONS", additions)
    graph, pairs = GRAPHS[name]
    laziness = 0.3 if most == 3 else 0.0
    spectrum = walk_spectrum(graph, laziness=laziness, num_pairs=pairs)
    last = graph.num_users - 1
    for rounds in (1, 2, 8, 25, 200):
        bounds = remote_position_bounds(
            RandomWalk(graph, laziness=laziness), spectrum, rounds, FollowedLaws()
        )
        ratios = ratios_of(graph, rounds, laziness)
        groups = [[last], [0], [last, last - 1, 0], [*range(0, last, 40), last]]
        check(bounds, ratios, graph.stationary_law(), groups)
        base = spectral_position_bounds(spectrum, rounds)
        assert (bounds.low >= base.low - 1e-9).all()
        assert bounds.chi_square.sum() <= base.chi_square.sum() * (1.0 + 1e-6) + 1e-6


@pytest.mark.parametrize("most", [4, 256])
def test_groups_hold_each_other_place_once(most, monkeypatch):
    monkeypatch.setattr(remote_bounds, "_MOST_GROUPS", most)
    spectrum = walk_spectrum(GRAPHS["lollipop"][0], num_pairs=5)
    rows, norms = np.array([3, 25]), np.linspace(0.0, 1.0, 26)
    for by_functions in (False, True):
        groups = remote_bounds._groups(spectrum, 4, rows, norms, by_functions=by_functions)
        assert sorted(np.concatenate(groups).tolist()) == [i for i in range(26) if i not in rows]
        assert len(groups) <= most


def test_all_sums_are_sharper_than_boxes_and_hold(monkeypatch):
    parts = [random_regular_graph(70, 6, Entropy.from_seed(seed)) for seed in range(6)]
    edges = [adjacency(each).nonzero() for each in parts]
    joined = [np.column_stack(pair) + 70 * part for part, pair in enumerate(edges)]
    between = [(70 * part + k, (70 * part + 70 + k) % 420) for part in range(6) for k in range(3)]
    graph = Graph.from_edges(np.unique(np.sort(np.vstack([*joined, between]), axis=1), axis=0))
    spectrum = walk_spectrum(graph, num_pairs=8)
    monkeypatch.setattr(remote_bounds, "_MOST_GROUPS", 5)
    monkeypatch.setattr(remote_bounds, "_MOST_ROWS", 16)
    monkeypatch.setattr(remote_bounds, "_MANY", 0.1)
    exact = ratios_of(graph, 60)
    bounds = remote_position_bounds(RandomWalk(graph), spectrum, 60, FollowedLaws())
    check(bounds, exact, graph.stationary_law(), [[0], [5, 100]])
    monkeypatch.setattr(remote_bounds, "_MOST_SUMS", 0.0)
    by_boxes = remote_position_bounds(RandomWalk(graph), spectrum, 60, FollowedLaws())
    assert bounds.low.sum() > 1.1 * by_boxes.low.sum()
    assert bounds.low.sum() >= 0.99 * exact.min(axis=1).sum()


def test_exact_laws_of_weights_hold_for_every_user():
    graph = GRAPHS["lollipop"][0]
    walk = RandomWalk(graph)
    last = graph.num_users - 1
    for bounds in exact_position_bounds(walk, (0, 1, 3, 30)):
        ratios = ratios_of(graph, bounds.rounds)
        groups, pi = [[last], [0], [last, last - 1, 0]], graph.stationary_law()
        check(bounds, ratios, pi, groups)
        # On the grid little is added to the second moment.
        moments = (ratios**2) @ graph.stationary_law()
        assert (bounds.chi_square + 1.0 <= 1.02 * moments).all()
    assert np.argmax(bounds.chi_square) == last


@pytest.mark.parametrize(
    ("chi_square", "largest"), [(1e-3, 1.2), (1e-3, 1e5), (0.5, 3.0), (1.0, 2.0), (5.0, 1e4)]
)
def test_laws_of_given_variance_dominate(chi_square, largest):
    values, masses = chi_square_law(chi_square, largest)
    random = Entropy.from_seed(5).generator()
    for _ in range(200):
        points = np.clip(1.0 + np.sqrt(chi_square) * random.standard_cauchy(3), 0.0, largest)
        chances = random.dirichlet(np.ones(3))
        if points @ chances > 0.0:
            points = points / (points @ chances)
            if points.max() <= largest and (points**2) @ chances <= 1.0 + chi_square:
                assert_dominates(values, masses, points, chances)


def test_the_grid_covers_what_it_is_asked_to():
    for largest in (0.5, 2.0, 2.31, 1e6):
        assert weight_grid(largest)[-1] >= 1.1 * max(largest, 2.0)


def test_sharing_ratios_between_points_adds_little_near_one():
    # The more so where more is told: a per cent of the variance, or 1e-4.
    grid = weight_grid(50.0)
    for away in (0.01, 0.05, 0.11, 0.29):
        tails = tails_of(np.array([1.0 - away, 1.0 + away]), np.array([0.5, 0.5]), grid)
        (moment,) = second_moments(grid, tails[None, :])
        assert away**2 <= moment - 1.0 <= 1.01 * away**2 + 1.1e-4


def test_alike_users_are_not_followed_one_by_one(monkeypatch):
    graph = random_regular_graph(420, 6, Entropy.from_seed(1))
    spectrum, walk = walk_spectrum(graph, num_pairs=0), RandomWalk(graph)
    monkeypatch.setattr(remote_bounds, "_MOST_ROWS", 32)
    assert remote_position_bounds(walk, spectrum, 40, FollowedLaws()).followed.size == 0


@pytest.mark.parametrize("few", [1e-3, 1.0])
def test_followed_laws_are_moved_on(few, monkeypatch):
    """Whatever was asked before, the laws are the same; after 5,000 rounds they are not needed."""
    graph, last = GRAPHS["lollipop"][0], GRAPHS["lollipop"][0].num_users - 1
    monkeypatch.setattr(remote_bounds, "_MOST_ROWS", 3)
    monkeypatch.setattr(remote_bounds, "_LARGEST_ERROR", -1.0)  # nothing is summed
    monkeypatch.setattr(remote_bounds, "_LARGEST_MIDDLE_ERROR", -1.0)
    monkeypatch.setattr(remote_bounds, "_FEW", few)
    walk, spectrum = RandomWalk(graph), walk_spectrum(graph, num_pairs=5)
    followed, moved, move = FollowedLaws(), [], remote_bounds.move_laws
    for rounds in (17, 24, 25):
        monkeypatch.setattr(
            remote_bounds, "move_laws", lambda *each: moved.append(each[2:]) or move(*each)
        )
        remote_position_bounds(walk, spectrum, rounds, followed)
    assert moved == [(0, 16), (16, 17), (17, 24), (24, 25)]
    monkeypatch.setattr(remote_bounds, "move_laws", move)
    for rounds in (1, 30, 24, 25, 25, 20, 31, 3, 5000):
        kept = remote_position_bounds(walk, spectrum, rounds, followed)
        fresh = remote_position_bounds(walk, spectrum, rounds, FollowedLaws())
        assert (kept.low == fresh.low).all()
        assert (kept.chi_square == fresh.chi_square).all()
        if rounds < 100:
            check(kept, ratios_of(graph, rounds), graph.stationary_law(), [[last], [0]])
    assert kept.followed.size == (3 if few < 1.0 else 0)
