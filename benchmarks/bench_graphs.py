"""Speed and peak memory of making graphs, beside networkx and scipy.

10^6 users and 10^7 edges, in random order: from an array, and from files of numbers in CSV and
Parquet; the components. scipy makes a matrix of the same
edges, in which it adds up repeats, and finds its components. networkx takes a tenth of the users
and edges, for it needs some 10 GB for all of them. ``extra_info`` has edges a second, and the
peak memory of a process of its own that does the same work once, input, interpreter and compiled
code included (Linux only). The array of edges takes 160 MB, the graph 88 MB.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from graph_families import adjacency
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.network.run import read_graph

NUM_USERS = 1_000_000
EDGES_A_USER = 10
FEWER_USERS = 100_000  # for networkx


def edges_among(num_users):
    """Return edges in random order, some of them self-loops or repeated."""
    generator = Entropy.from_seed(1).generator()
    return generator.integers(0, num_users, size=(EDGES_A_USER * num_users, 2))


def from_edges(num_users):
    """Make the graph of an array."""
    edges = edges_among(num_users)
    return lambda: Graph.from_edges(edges, num_users=num_users).num_edges


def scipy_matrix(num_users):
    """Make a symmetric sparse matrix with scipy."""
    from scipy.sparse import csr_array

    edges = edges_among(num_users)

    def make():
        ends = np.concatenate([edges, edges[:, ::-1]])
        ones = np.ones(len(ends), dtype=np.int8)
        matrix = csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(num_users, num_users))
        return matrix.nnz // 2

    return make


def networkx_graph(num_users):
    """Make the graph with networkx."""
    networkx = pytest.importorskip("networkx")
    edges = edges_among(num_users)
    return lambda: networkx.Graph(edges.tolist()).number_of_edges()


def read_csv(num_users):
    """Read the graph from text."""
    return reading_once(num_users, "edges.csv")


def read_parquet(num_users):
    """Read the graph from Parquet."""
    return reading_once(num_users, "edges.parquet")


def reading_once(num_users, name):
    """Write edges to a file; return what reads it and throws it away."""
    import polars as pl

    path = Path(tempfile.mkdtemp()) / name
    table = pl.DataFrame(edges_among(num_users), schema=["u", "v"])
    (table.write_csv if path.suffix == ".csv" else table.write_parquet)(path)

    def read():
        graph = read_graph(path)
        shutil.rmtree(path.parent)
        return graph.num_edges

    return read


def components(num_users):
    """Find the components and whether one has two sides."""
    graph = Graph.from_edges(edges_among(num_users), num_users=num_users)

    def find():
        graph.components()
        graph.is_bipartite()
        return graph.num_edges

    return find


def scipy_components(num_users):
    """Find the components with scipy."""
    from scipy.sparse.csgraph import connected_components

    graph = Graph.from_edges(edges_among(num_users), num_users=num_users)
    matrix = adjacency(graph)

    def find():
        connected_components(matrix, directed=False)
        return graph.num_edges

    return find


KINDS = {
    function.__name__: (function, num_users)
    for function, num_users in (
        (from_edges, NUM_USERS),
        (scipy_matrix, NUM_USERS),
        (networkx_graph, FEWER_USERS),
        (read_csv, NUM_USERS),
        (read_parquet, NUM_USERS),
        (components, NUM_USERS),
        (scipy_components, NUM_USERS),
    )
}


@pytest.mark.benchmark(group="graphs of 10 edges a user")
@pytest.mark.parametrize("name", KINDS)
def test_graphs(benchmark, name):
    prepare, num_users = KINDS[name]
    if not benchmark.enabled:
        num_users = 1_000
    prepare(100)()  # compiles
    count = benchmark.pedantic(prepare(num_users), rounds=1)
    assert count > 9 * num_users
    if benchmark.enabled:
        seconds = benchmark.stats.stats.min
        benchmark.extra_info["million_edges_a_second"] = count / 1e6 / seconds
        benchmark.extra_info["peak_megabytes"] = peak_megabytes(name)


def peak_megabytes(name):
    """Return the peak memory of a fresh process that does it once."""
    outcome = subprocess.run(
        [sys.executable, Path(__file__), name],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # with tests/
    )
    return float(outcome.stdout)


if __name__ == "__main__":
    prepare_named, size = KINDS[sys.argv[1]]
    prepare_named(size)()
    # Not ru_maxrss, which a child inherits from its parent. Linux only; in kB of 1024 bytes.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6)
