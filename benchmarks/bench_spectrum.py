"""Speed of certified spectra, beside eigensolvers that certify nothing.

The real graphs where they are at hand, and random regular graphs. ``extra_info`` has the spectral
gap found, the certified one for ours. Baselines: scipy's ``eigsh`` of the same matrix for the two
largest eigenvalues and the smallest, and a dense solver of numpy for a graph of 2,000 users.
"""

from pathlib import Path

import numpy as np
import pytest

from graph_families import adjacency
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.network.positions.spectrum import spectral_position_bounds, walk_spectrum

DATA = Path(__file__).parents[2] / "shared" / "data"
REAL = ("twitch_de", "facebook", "deezer_europe", "enron")


def graph_named(name):
    """Return a real graph, or a random nearly regular one such as ``regular_1000000_20``."""
    if name.startswith("regular"):
        _, num_users, degree = name.split("_")
        users, draw = np.arange(int(num_users)), Entropy.from_seed(1).generator()
        orders = [draw.permutation(users) for _ in range(int(degree) // 2)]
        return Graph.from_edges(np.concatenate([np.stack([users, to], axis=1) for to in orders]))
    path = DATA / f"{name}_lcc_edges.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return Graph.from_edges(np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64))


def symmetric(graph):
    """Return the symmetric matrix similar to the walk, sparse."""
    from scipy.sparse import diags_array

    scale = diags_array(1.0 / np.sqrt(graph.degrees))
    return (scale @ adjacency(graph).astype(np.float64) @ scale).tocsr()


def gap_by_eigsh(graph):
    """Return the spectral gap as eigsh estimates it."""
    from scipy.sparse.linalg import eigsh

    matrix = symmetric(graph)
    start = Entropy.from_seed(2).generator().standard_normal(graph.num_users)
    top = eigsh(matrix, k=2, which="LA", v0=start, return_eigenvectors=False)
    bottom = eigsh(matrix, k=1, which="SA", v0=start, return_eigenvectors=False)
    return 1.0 - max(float(top.min()), -float(bottom[0]))


def gap_by_dense(graph):
    """Return the spectral gap by numpy's dense solver."""
    values = np.linalg.eigvalsh(symmetric(graph).toarray())
    return 1.0 - max(float(values[-2]), -float(values[0]))


@pytest.mark.parametrize("num_pairs", [0, None])
@pytest.mark.parametrize("name", [*REAL, "regular_2000_10", "regular_100000_20"])
def test_certified(benchmark, name, num_pairs):
    """Ours: the second eigenvalue alone, or the leading pairs too."""
    graph = graph_named(name)
    walk_spectrum(graph_named("regular_500_4"), num_pairs=1)  # compiles
    spectrum = benchmark.pedantic(walk_spectrum, (graph,), {"num_pairs": num_pairs}, rounds=1)
    benchmark.extra_info["spectral_gap"] = spectrum.spectral_gap
    benchmark.extra_info["estimated_gap"] = spectrum.estimated_gap


def test_certified_large(benchmark):
    """Ours: 10^6 users and 10^7 edges."""
    graph = graph_named("regular_1000000_20")
    walk_spectrum(graph_named("regular_500_4"), num_pairs=1)
    spectrum = benchmark.pedantic(walk_spectrum, (graph,), rounds=1)
    benchmark.extra_info["spectral_gap"] = spectrum.spectral_gap
    benchmark.extra_info["estimated_gap"] = spectrum.estimated_gap


@pytest.mark.parametrize("name", [*REAL, "regular_2000_10", "regular_100000_20"])
def test_baseline_eigsh(benchmark, name):
    """Baseline: scipy, which gives lower bounds on the eigenvalue."""
    graph = graph_named(name)
    gap = benchmark.pedantic(gap_by_eigsh, (graph,), rounds=1)
    benchmark.extra_info["estimated_gap"] = gap


def test_baseline_dense(benchmark):
    """Baseline: numpy's dense solver."""
    graph = graph_named("regular_2000_10")
    gap = benchmark.pedantic(gap_by_dense, (graph,), rounds=1)
    benchmark.extra_info["estimated_gap"] = gap


def test_bounds(benchmark):
    """Ours: bounds after one number of rounds, for 100,000 users and 8 pairs."""
    spectrum = walk_spectrum(graph_named("regular_100000_20"), num_pairs=8)
    bounds = benchmark(spectral_position_bounds, spectrum, 30)
    benchmark.extra_info["low"] = float(bounds.low.min())
