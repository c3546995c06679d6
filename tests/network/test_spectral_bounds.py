"""Bounds from the spectrum: never violated by powers of the walk matrix, and sharp where exact."""

import math

import numpy as np
import pytest

from graph_families import (
    adjacency,
    complete_graph,
    complete_with_pendant,
    cycle_graph,
    random_regular_graph,
    star_graph,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network.graph import Graph
from shuffledp.network.positions.spectrum import (
    Deflation,
    Spectrum,
    certified_norm,
    deflate,
    spectral_position_bounds,
    walk_spectrum,
)

# Some thirty certificates.
FALSE_POSITIVE_RATE = 1e-10  # 100 certificates

# What the dense powers themselves may be off by.
SLACK = 1e-11


def barbell():
    """Return two complete graphs of 5 users, joined by a path: slow, and irregular."""
    first = [(i, j) for i in range(5) for j in range(i)]
    second = [(i + 7, j + 7) for i, j in first]
    return Graph.from_edges([*first, *second, (4, 5), (5, 6), (6, 7)])


GRAPHS = {
    "barbell": barbell(),
    "cycle": cycle_graph(11),
    "path": Graph.from_edges([(i, i + 1) for i in range(8)]),
    "pair": Graph.from_edges([(0, 1)]),
    "pendant": complete_with_pendant(12),
    "star": star_graph(9),
    "triangle": complete_graph(3),
}


def walk_matrix(graph, laziness):
    """Return the dense transition matrix."""
    matrix = adjacency(graph).toarray() / graph.degrees[:, None]
    return laziness * np.eye(graph.num_users) + (1.0 - laziness) * matrix


def require_true(bounds, laws, pi):
    """Check all bounds against the laws, one a row."""
    ratios = laws / pi
    assert (bounds.low <= ratios.min(axis=1) + SLACK).all()
    assert (bounds.high >= ratios.max(axis=1) - SLACK).all()
    assert (bounds.low >= 0.0).all()
    assert (bounds.low < 1.0).all()
    assert (bounds.high > 1.0).all()
    assert np.isfinite(bounds.high).all()


@pytest.mark.parametrize("num_pairs", [0, 1, 3, None])
@pytest.mark.parametrize("laziness", [0.0, 0.3])
@pytest.mark.parametrize("name", GRAPHS)
def test_powers_of_the_walk_never_violate_the_bounds(name, laziness, num_pairs):
    graph = GRAPHS[name]
    matrix = walk_matrix(graph, laziness)
    pi = graph.stationary_law()
    spectrum = walk_spectrum(graph, laziness=laziness, num_pairs=num_pairs)
    laws = np.eye(graph.num_users)
    for rounds in range(61):
        bounds = spectral_position_bounds(spectrum, rounds)
        assert (bounds.rounds, bounds.method) == (rounds, "spectral")
        require_true(bounds, laws, pi)
        laws = laws @ matrix


@pytest.mark.parametrize("noise", [1e-8, 1e-4, 1e-2])
@pytest.mark.parametrize("name", ["barbell", "cycle", "pendant"])
def test_rough_eigenpairs_make_wider_bounds_not_wrong_ones(name, noise):
    graph = GRAPHS[name]
    generator = Entropy.from_seed(66).generator()
    exact = walk_spectrum(graph, num_pairs=3)
    functions = np.array(exact.deflation.eigenfunctions)
    functions += noise * generator.standard_normal(functions.shape)
    deflation = deflate(graph, functions, laziness=0.0)
    assert deflation.deviation > 0.1 * noise
    certificate = certified_norm(
        graph,
        deflation,
        laziness=0.0,
        guess=exact.remainder,
        tolerance=0.01,
        most_steps=3_000,
        entropy=Entropy.from_seed(67),
    )
    spectrum = Spectrum(
        stationary_law=graph.stationary_law(),
        deflation=deflation,
        remainder=certificate,
    )
    laws = np.eye(graph.num_users)
    for rounds in range(61):
        bounds = spectral_position_bounds(spectrum, rounds)
        require_true(bounds, laws, graph.stationary_law())
        laws = laws @ walk_matrix(graph, 0.0)


@pytest.mark.parametrize("num_pairs", [0, 5])
def test_certified_remainders_keep_the_bounds_true(num_pairs):
    graph = random_regular_graph(450, 6, Entropy.from_seed(8))
    spectrum = walk_spectrum(graph, num_pairs=num_pairs)
    matrix = walk_matrix(graph, 0.0)
    laws = np.eye(450)
    for rounds in range(25):
        require_true(spectral_position_bounds(spectrum, rounds), laws, graph.stationary_law())
        laws = laws @ matrix


def test_all_pairs_of_a_transitive_graph_give_the_exact_variances():
    graph = cycle_graph(11)
    spectrum = walk_spectrum(graph)
    laws = np.eye(11)
    for rounds in range(30):
        bounds = spectral_position_bounds(spectrum, rounds)
        squares = 11.0 * np.square(laws).sum(axis=1)
        assert 1.0 + bounds.chi_square == pytest.approx(squares, rel=1e-6)
        laws = laws @ walk_matrix(graph, 0.0)


def test_pairs_sharpen_the_bounds():
    graph = barbell()
    pairs = walk_spectrum(graph)
    alone = Spectrum(
        stationary_law=pairs.stationary_law,
        deflation=deflate(graph, np.empty((graph.num_users, 0)), laziness=0.0),
        remainder=pairs.second_eigenvalue,
    )
    low, told = [], []
    for spectrum in (alone, walk_spectrum(graph)):
        bounds = spectral_position_bounds(spectrum, 150)
        low.append(bounds.low.min())
        told.append(bounds.chi_square.max())
    assert low[0] < low[1]
    assert told[0] > told[1]


def test_before_the_first_round_every_report_is_at_home():
    graph = barbell()
    bounds = spectral_position_bounds(walk_spectrum(graph), 0)
    assert bounds.low.tolist() == [0.0] * 12
    assert bounds.high == pytest.approx(1.0 / graph.stationary_law(), rel=1e-9)


def test_a_walk_that_does_not_mix_shows_nothing_but_stays_finite():
    spectrum = walk_spectrum(star_graph(9))
    for rounds in (1, 10**6, 2**53):
        bounds = spectral_position_bounds(spectrum, rounds)
        assert (bounds.low == 0.0).all()
        assert (bounds.high >= 2.0 - SLACK).all()


def test_after_very_many_rounds_laws_are_stationary():
    bounds = spectral_position_bounds(walk_spectrum(barbell()), 2**53)
    assert bounds.low == pytest.approx(np.ones(12), abs=1e-12)
    assert bounds.high == pytest.approx(np.ones(12), abs=1e-12)


def test_rounds_are_checked():
    spectrum = walk_spectrum(complete_graph(3))
    with pytest.raises(ParameterError, match="rounds = -1"):
        spectral_position_bounds(spectrum, -1)
    with pytest.raises(ParameterError, match=r"not in \[0, 2\^53\]"):
        spectral_position_bounds(spectrum, 2**53 + 1)


def test_errors_of_the_eigenpairs_are_added_as_in_the_theorem():
    pi, theta, mu, eta, epsilon = np.array([0.2, 0.8]), 0.5, 0.1, 0.05, 0.1 * math.sqrt(2.0)
    phi = np.array([2.0, -0.5])  # of norm 1 and mean 0 in l2(pi)
    pair = {"eigenvalues": np.array([theta]), "eigenfunctions": phi[:, None]}
    deflation = Deflation(**pair, defect=eta, residual=0.1)
    found = Spectrum(stationary_law=pi, deflation=deflation, remainder=mu)
    assert found.second_eigenvalue == pytest.approx(theta + epsilon, rel=1e-9)
    one, two = (
        mu**t * (1 / pi - 1)
        + (theta**t - mu**t) * (np.abs(phi) + eta / np.sqrt(pi)) ** 2  # D_i after t rounds
        for t in (1, 2)
    )
    away = np.sqrt(one * one.max()) + epsilon / np.sqrt(pi * pi.min())
    assert found.largest_deviations(1) == pytest.approx(away, rel=1e-8)
    variances = two + 2 * epsilon * (theta + epsilon) / pi
    assert found.chi_squares(1) == pytest.approx(variances, rel=1e-8)
