"""Second eigenvalues: closed forms, dense solvers, failing eigensolvers, and real graphs."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import linalg

from graph_families import adjacency, complete_graph, cycle_graph, random_regular_graph, star_graph
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.network.positions.spectrum import walk_spectrum

DATA = Path(__file__).parents[4] / "shared" / "data"

# Some thirty certificates.
FALSE_POSITIVE_RATE = 1e-10  # 100 certificates


def second_eigenvalue(graph, laziness=0.0):
    """Return the second-largest modulus, by a dense solver."""
    degrees = graph.degrees
    matrix = adjacency(graph).toarray() / np.sqrt(np.outer(degrees, degrees))
    values = np.linalg.eigvalsh(laziness * np.eye(graph.num_users) + (1.0 - laziness) * matrix)
    return max(abs(float(values[0])), abs(float(values[-2])))


def communities(num_users, seed):
    """Return two random regular graphs of degree 6, joined by a few edges: a small gap."""
    half = num_users // 2
    parts = [random_regular_graph(half, 6, Entropy.from_seed(seed + part)) for part in range(2)]
    edges = [np.argwhere(adjacency(part).toarray()) for part in parts]
    bridges = np.stack([np.arange(20), half + np.arange(20)], axis=1)
    return Graph.from_edges(np.concatenate([edges[0], half + edges[1], bridges]))


@pytest.mark.parametrize(
    ("graph", "laziness", "expected"),
    [
        (complete_graph(10), 0.0, 1 / 9),
        (complete_graph(10), 0.5, 4 / 9),
        (cycle_graph(9), 0.0, math.cos(math.pi / 9)),
        (cycle_graph(8), 0.5, 0.5 + 0.5 * math.cos(math.pi / 4)),
        (star_graph(7), 0.0, 1.0),
        (star_graph(7), 0.25, 0.5),
        (Graph.from_edges([(0, 1)]), 0.5, 0.0),
    ],
)
def test_closed_forms_of_small_graphs(graph, laziness, expected):
    spectrum = walk_spectrum(graph, laziness=laziness)
    assert expected <= spectrum.second_eigenvalue + 1e-16
    assert spectrum.second_eigenvalue == pytest.approx(expected, abs=1e-11)
    assert spectrum.spectral_gap <= 1.0 - expected
    assert spectrum.spectral_gap == pytest.approx(1.0 - expected, abs=1e-11)


def test_small_random_graphs_against_a_dense_solver():
    generator = Entropy.from_seed(65).generator()
    for _ in range(200):
        num_users = int(generator.integers(2, 11))
        tree = np.array([(int(generator.integers(i)), i) for i in range(1, num_users)])
        more = generator.integers(num_users, size=(int(generator.integers(num_users + 1)), 2))
        graph = Graph.from_edges(np.concatenate([tree, more]))
        laziness = float(generator.choice([0.0, 0.2, 0.9]))
        found = walk_spectrum(graph, laziness=laziness)
        truth = min(1.0, second_eigenvalue(graph, laziness))
        assert truth - 1e-14 <= found.second_eigenvalue <= truth + 1e-10
        assert found.deflation.num_pairs == num_users - 1
        if graph.is_bipartite() and laziness == 0.0:
            assert found.spectral_gap == 0.0


@pytest.mark.parametrize("num_pairs", [0, 1, 8, None])
@pytest.mark.parametrize("laziness", [0.0, 0.2])
def test_larger_graphs_against_a_dense_solver(num_pairs, laziness):
    for graph in (random_regular_graph(500, 4, Entropy.from_seed(3)), communities(500, 7)):
        found = walk_spectrum(graph, laziness=laziness, num_pairs=num_pairs)
        truth = second_eigenvalue(graph, laziness)
        assert truth - 1e-13 <= found.second_eigenvalue <= truth + 0.0101 * (1.0 - truth)
        assert found.spectral_gap == pytest.approx(1.0 - found.second_eigenvalue, abs=1e-15)
        assert found.deflation.num_pairs == (8 if num_pairs is None else num_pairs)


def test_a_large_bipartite_graph_does_not_mix():
    # All but two of the eigenvalues of a complete bipartite graph are zero.
    graph = star_graph(600)
    assert walk_spectrum(graph).spectral_gap == 0.0
    assert walk_spectrum(graph, num_pairs=0).spectral_gap == 0.0
    assert walk_spectrum(graph, laziness=0.25, num_pairs=1).spectral_gap == pytest.approx(0.5)


def test_same_graph_same_numbers():
    graph = communities(500, 7)
    first, second = (walk_spectrum(graph, num_pairs=0) for _ in range(2))
    assert first.remainder == second.remainder


def test_an_eigensolver_that_misses_the_second_eigenvalue_does_not_matter(monkeypatch):
    graph = communities(500, 7)
    truth = second_eigenvalue(graph)
    plain = linalg.eigsh

    def careless(*args, k, **options):
        values, vectors = plain(*args, k=k + 1, **options)
        order = np.argsort(-abs(values))[1:]
        return values[order], vectors[:, order]

    monkeypatch.setattr(linalg, "eigsh", careless)
    for num_pairs in (1, 3):
        found = walk_spectrum(graph, num_pairs=num_pairs)
        assert found.second_eigenvalue >= truth


@pytest.mark.parametrize("num_found", [0, 1, 2])
def test_an_eigensolver_that_does_not_converge_does_not_matter(monkeypatch, num_found):
    graph = communities(500, 7)
    truth = second_eigenvalue(graph)
    plain = linalg.eigsh

    def slow(*args, **options):
        values, vectors = plain(*args, **options)
        kept = np.argsort(-abs(values))[:num_found]
        raise linalg.ArpackNoConvergence("no convergence", values[kept], vectors[:, kept])

    monkeypatch.setattr(linalg, "eigsh", slow)
    found = walk_spectrum(graph, num_pairs=4)
    assert truth <= found.second_eigenvalue <= 1.0
    assert found.deflation.num_pairs == max(0, num_found - 1)


@pytest.mark.parametrize(
    ("name", "num_pairs", "gap"),
    [
        ("twitch_de", 0, 0.181088),
        ("twitch_de", None, 0.181088),
        pytest.param("facebook", None, 0.004440, marks=pytest.mark.slow),
        pytest.param("deezer_europe", 0, 0.002993, marks=pytest.mark.slow),
        pytest.param("enron", 0, 0.003527, marks=pytest.mark.slow),
    ],
)
def test_real_graphs(name, num_pairs, gap):
    path = DATA / f"{name}_lcc_edges.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here; see the README of the shared data")
    graph = Graph.from_edges(np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64))
    spectrum = walk_spectrum(graph, num_pairs=num_pairs)
    assert 0.99 * (gap - 6e-7) <= spectrum.spectral_gap <= gap + 6e-7
