"""Speed of position laws and of simulated walks, beside scipy, NumPy and networkx.

Three tasks:

- one law for 100 rounds on 10^6 users and about 10^7 edges (scipy: the same by sparse products;
  networkx: ten rounds over its dicts, on 10^4 users and 10^5 edges);
- 10^6 reports for 100 rounds on the same graph (NumPy: the same in whole arrays, by a product of
  floats, so that neighbours are not exactly equally likely);
- bounds on the laws of all users of the Twitch graph after 60 rounds (scipy: 20 of its 9,498
  starts at a time).

``extra_info`` has additions or moves a second. Twitch needs the shared data folder.
"""

from pathlib import Path

import numpy as np
import pytest

from graph_families import adjacency
from network.walks import position_distribution
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.walk import (
    RandomWalk,
    simulate_positions,
)

NUM_USERS = 1_000_000
NUM_EDGES = 10_000_000
ROUNDS = 100
TWITCH = Path(__file__).parents[2] / "shared" / "data" / "twitch_de_lcc_edges.csv"


def random_graph(num_users, num_edges):
    """Return a graph with about so many edges."""
    edges = Entropy.from_seed(1).generator().integers(0, num_users, size=(num_edges, 2))
    return Graph.from_edges(edges, num_users=num_users)


@pytest.fixture(scope="module")
def large_graph():
    return random_graph(NUM_USERS, NUM_EDGES)


def scipy_walk(graph):
    """Return the transposed matrix of a round, in scipy's compressed rows."""
    from scipy.sparse import diags_array

    matrix = adjacency(graph)
    return (matrix @ diags_array(1.0 / np.maximum(graph.degrees, 1))).tocsr()


def laws_of_ours(graph):
    return position_distribution(RandomWalk(graph), 0, ROUNDS)


def laws_of_scipy(graph):
    matrix = scipy_walk(graph)
    law = np.zeros(graph.num_users)
    law[0] = 1.0
    for _ in range(ROUNDS):
        law = matrix @ law
    return law


@pytest.mark.benchmark(group="one law, 100 rounds, 10^6 users, 10^7 edges")
@pytest.mark.parametrize("law_of", [laws_of_ours, laws_of_scipy])
def test_one_law(benchmark, large_graph, law_of):
    laws_of_ours(random_graph(100, 400))  # compiles
    law = benchmark.pedantic(law_of, args=(large_graph,), rounds=1)
    assert law.sum() == pytest.approx(1.0)
    note(benchmark, "million_additions_a_second", ROUNDS * 2 * large_graph.num_edges)


@pytest.mark.benchmark(group="one law, 10 rounds, 10^4 users, 10^5 edges, in networkx")
def test_one_law_in_networkx(benchmark):
    networkx = pytest.importorskip("networkx")
    graph = random_graph(10_000, 100_000)
    other = networkx.from_scipy_sparse_array(adjacency(graph))

    def law_of():
        law = dict.fromkeys(other, 0.0)
        law[0] = 1.0
        for _ in range(10):
            moved = dict.fromkeys(other, 0.0)
            for user, mass in law.items():
                for neighbour in other[user]:
                    moved[neighbour] += mass / other.degree[user]
            law = moved
        return law

    law = benchmark.pedantic(law_of, rounds=1)
    ours = position_distribution(RandomWalk(graph), 0, 10)
    assert list(law.values()) == pytest.approx(ours.tolist())
    note(benchmark, "million_additions_a_second", 10 * 2 * graph.num_edges)


def walkers_of_ours(graph):
    return simulate_positions(RandomWalk(graph), ROUNDS, Entropy.from_seed(2))


def lazy_walkers_of_ours(graph):
    walk = RandomWalk(graph, laziness=0.2)
    return simulate_positions(walk, ROUNDS, Entropy.from_seed(2))


def walkers_of_numpy(graph):
    generator = Entropy.from_seed(2).generator()
    degrees = graph.degrees
    holders = np.arange(graph.num_users, dtype=np.int32)
    for _ in range(ROUNDS):
        chosen = (generator.random(holders.size) * degrees[holders]).astype(np.int64)
        holders = graph.neighbours[graph.starts[holders] + chosen]
    return holders


@pytest.mark.benchmark(group="10^6 reports, 100 rounds, 10^6 users, 10^7 edges")
@pytest.mark.parametrize("walkers", [walkers_of_ours, lazy_walkers_of_ours, walkers_of_numpy])
def test_walkers(benchmark, large_graph, walkers):
    lazy_walkers_of_ours(random_graph(100, 2000))  # compiles
    holders = benchmark.pedantic(walkers, args=(large_graph,), rounds=1)
    assert holders.size == NUM_USERS
    note(benchmark, "million_moves_a_second", ROUNDS * NUM_USERS)


def bounds_of_ours(graph):
    (bounds,) = exact_position_bounds(RandomWalk(graph), [60])
    return bounds.collision.size


def twenty_laws_of_scipy(graph):
    matrix = scipy_walk(graph)
    laws = np.eye(graph.num_users, 20)
    for _ in range(60):
        laws = matrix @ laws
    return laws.shape[1]


@pytest.mark.benchmark(group="laws of all users after 60 rounds, Twitch")
@pytest.mark.parametrize("laws_of", [bounds_of_ours, twenty_laws_of_scipy])
def test_all_laws(benchmark, laws_of):
    if not TWITCH.exists():
        pytest.skip("no Twitch graph in the shared data folder")
    bounds_of_ours(random_graph(100, 400))  # compiles
    graph = Graph.from_edges(np.loadtxt(TWITCH, delimiter=",", skiprows=1, dtype=np.int64))
    count = benchmark.pedantic(laws_of, args=(graph,), rounds=1)
    note(benchmark, "million_additions_a_second", count * 60 * 2 * graph.num_edges)


def note(benchmark, name, operations):
    """Note how many millions of operations a second there were."""
    if benchmark.enabled:
        benchmark.extra_info[name] = operations / 1e6 / benchmark.stats.stats.min
