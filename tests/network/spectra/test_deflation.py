"""Deflated walks: the matrix that the theorem speaks of is as near as it says, and nearly so."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import PrecisionError
from shuffledp.network.graphs.graph import Graph
from shuffledp.network.spectra.deflation import deflate, no_deflation


def random_graph(generator, num_users):
    """Return a random tree with some more edges."""
    tree = [(int(generator.integers(i)), i) for i in range(1, num_users)]
    more = generator.integers(num_users, size=(int(generator.integers(2 * num_users)), 2))
    return Graph.from_edges(np.concatenate([np.array(tree), more]))


def symmetric(graph, laziness):
    """Return the symmetric matrix similar to the walk, dense."""
    degrees = graph.degrees
    matrix = graph.to_scipy().toarray() / np.sqrt(np.outer(degrees, degrees))
    return laziness * np.eye(graph.num_users) + (1.0 - laziness) * matrix


def polar_factor(graph, functions):
    """Return the orthonormal functions of the theorem, in the symmetric picture."""
    root = np.sqrt(graph.stationary_law())
    columns = root[:, None] * functions
    columns = columns - np.outer(root, root @ columns)
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    return columns, left @ right


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("laziness", [0.0, 0.3])
def test_the_deflated_matrix_is_within_the_deviation(noise, laziness):
    generator = Entropy.from_seed(61).generator()
    for _ in range(40):
        graph = random_graph(generator, int(generator.integers(3, 12)))
        matrix = symmetric(graph, laziness)
        root = np.sqrt(graph.stationary_law())
        _, vectors = np.linalg.eigh(matrix - 3.0 * np.outer(root, root))
        count = int(generator.integers(1, graph.num_users))
        chosen = vectors[:, 1:][:, generator.permutation(graph.num_users - 1)[:count]]
        noisy = chosen + noise * generator.standard_normal(chosen.shape)
        deflation = deflate(graph, noisy / root[:, None], laziness=laziness)
        _, psi = polar_factor(graph, deflation.eigenfunctions)
        known = np.outer(root, root) + psi @ psi.T
        rest = (np.eye(graph.num_users) - known) @ matrix @ (np.eye(graph.num_users) - known)
        primed = np.outer(root, root) + (psi * deflation.eigenvalues) @ psi.T + rest
        away = np.linalg.norm(matrix - primed, 2)
        assert away <= deflation.deviation + 1e-14
        assert deflation.deviation <= 2.0 * np.sqrt(count) * away + 1e-12
        moved = np.linalg.norm(root[:, None] * deflation.eigenfunctions - psi, 2)
        assert moved <= deflation.defect < 1e-12
        assert (np.diff(np.abs(deflation.eigenvalues)) <= 0.0).all()


def test_repeated_functions_are_replaced_and_nan_is_refused():
    # The triangle has a double eigenvalue: whatever basis comes back is one of its eigenspace.
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    function = np.array([[1.0], [-1.0], [0.0]])
    deflation = deflate(graph, np.hstack([function, function]), laziness=0.0)
    assert deflation.eigenvalues == pytest.approx([-0.5, -0.5])
    assert deflation.deviation < 1e-13
    with pytest.raises(PrecisionError, match="num_pairs = 0"):
        deflate(graph, np.full((3, 1), np.nan), laziness=0.0)


def test_leading_pairs_keep_their_bounds():
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    functions = Entropy.from_seed(5).generator().standard_normal((4, 3))
    deflation = deflate(graph, functions, laziness=0.2)
    first = deflation.leading(1)
    assert first.num_pairs == 1
    assert first.eigenvalues[0] == deflation.eigenvalues[0]
    assert (first.defect, first.residual) == (deflation.defect, deflation.residual)
    assert not first.eigenfunctions.flags.writeable


def test_without_functions_nothing_deviates():
    graph = Graph.from_edges([(0, 1), (1, 2)])
    deflation = deflate(graph, np.empty((3, 0)), laziness=0.0)
    assert deflation.deviation == deflation.defect == deflation.largest_modulus == 0.0
    assert no_deflation(3).num_pairs == 0
