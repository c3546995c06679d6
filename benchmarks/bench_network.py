"""Speed of accounts of an exchange on real graphs, from the edge list to the numbers.

epsilon0 = 1, delta = 1e-6, any randomizer. Spectral: with the search for the fewest rounds that
come within 1 % of a trusted shuffler. Exact: 60 rounds, and on Twitch the same search.
``extra_info`` has rounds, epsilon, and the trusted shuffler's. The
baseline is what the published theorem takes: a spectral gap by scipy's ``eigsh``, certified by
nothing.
"""

import numpy as np
import pytest
from bench_spectrum import DATA, REAL, gap_by_eigsh, graph_named

from shuffledp.core.profile import LocalProfile
from shuffledp.network.account import account_network
from shuffledp.network.run import read_graph

ANY = LocalProfile(epsilon0=1.0)
DELTA = 1e-6


def account(name, method, rounds):
    """Return the account of a real graph, file included."""
    path = DATA / f"{name}_lcc_edges.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return account_network(read_graph(path), ANY, rounds=rounds, delta=DELTA, positions=method)


def note(benchmark, found):
    """Keep what was found beside the time."""
    benchmark.extra_info.update(
        rounds=found.rounds,
        epsilon=found.epsilon.upper,
        lower=found.epsilon.lower,
        uniform=found.uniform_epsilon.upper,
        positions=found.method,
    )


@pytest.mark.parametrize("name", REAL)
def test_spectral_account(benchmark, name):
    benchmark.group = f"account on {name}"
    account(name, "spectral", 10)  # compiles
    note(benchmark, benchmark.pedantic(account, (name, "spectral", "auto"), rounds=3))


@pytest.mark.parametrize(
    ("name", "rounds"), [("twitch_de", 60), ("twitch_de", "auto"), ("facebook", 60)]
)
def test_exact_account(benchmark, name, rounds):
    benchmark.group = f"account on {name}"
    note(benchmark, benchmark.pedantic(account, (name, "exact", rounds), rounds=1))


@pytest.mark.parametrize("name", REAL)
def test_baseline_gap(benchmark, name):
    benchmark.group = f"account on {name}"
    graph = graph_named(name)
    gap = benchmark.pedantic(gap_by_eigsh, (graph,), rounds=1)
    assert np.isfinite(gap)
    benchmark.extra_info["spectral_gap"] = gap
