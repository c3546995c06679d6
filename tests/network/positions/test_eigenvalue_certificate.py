"""Certified norms: never below the truth, near it, and whatever the guess."""

import math

import numpy as np
import pytest

from graph_families import adjacency, complete_graph, cycle_graph, star_graph
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import PrecisionError
from shuffledp.network.graph import Graph
from shuffledp.network.positions.spectrum import Deflation, _defect, certified_norm, deflate

# Below a thousand certificates.
FALSE_POSITIVE_RATE = 1e-9  # 1,000 certificates


def random_graph(generator, num_users):
    """Return a random tree with some more edges."""
    tree = [(int(generator.integers(i)), i) for i in range(1, num_users)]
    more = generator.integers(num_users, size=(int(generator.integers(2 * num_users)), 2))
    return Graph.from_edges(np.concatenate([np.array(tree), more]))


def spectrum_of(graph, laziness=0.0):
    """Return eigenvalues, by modulus, and eigenfunctions, without the constants."""
    degrees = graph.degrees
    root = np.sqrt(graph.stationary_law())
    matrix = adjacency(graph).toarray() / np.sqrt(np.outer(degrees, degrees))
    matrix = laziness * np.eye(graph.num_users) + (1.0 - laziness) * matrix
    values, vectors = np.linalg.eigh(matrix - 3.0 * np.outer(root, root))
    order = 1 + np.argsort(-np.abs(values[1:]))
    return values[order], vectors[:, order] / root[:, None]


def certify(graph, guess, *, deflation=None, laziness=0.0, steps=3000, seed=0, tolerance=0.01):
    """Return a certificate, without deflation by default."""
    return certified_norm(
        graph,
        deflate(graph, np.empty((graph.num_users, 0)), laziness=0.0)
        if deflation is None
        else deflation,
        laziness=laziness,
        guess=guess,
        tolerance=tolerance,
        most_steps=steps,
        entropy=Entropy.from_seed(seed),
    )


@pytest.mark.parametrize("share", [1.0, 0.99, 0.5, 1e-9])
def test_never_below_the_second_eigenvalue_however_small_the_guess(share):
    generator = Entropy.from_seed(62).generator()
    for seed in range(100):
        graph = random_graph(generator, int(generator.integers(2, 13)))
        laziness = float(generator.choice([0.0, 0.1, 0.5]))
        truth = min(1.0, float(abs(spectrum_of(graph, laziness)[0][0])))
        steps = int(generator.choice([1, 7, 50, 2000]))
        found = certify(graph, share * truth, laziness=laziness, steps=steps, seed=seed)
        assert truth - 1e-13 <= found <= 1.0


@pytest.mark.parametrize(("share", "loss"), [(1.0, 0.01), (1.001, 0.02), (0.999, 0.2)])
def test_near_the_truth_if_the_guess_is(share, loss):
    generator = Entropy.from_seed(63).generator()
    for seed in range(30):
        graph = random_graph(generator, int(generator.integers(3, 13)))
        truth = float(abs(spectrum_of(graph, 0.6)[0][0]))  # of no bipartite kind, so below 1
        found = certify(graph, min(share * truth, 0.9999), laziness=0.6, seed=seed, steps=20_000)
        assert found - truth <= loss * (1.0 - truth) + max(share - 1.0, 0.0)


def test_an_eigenvalue_that_an_eigensolver_missed_is_seen():
    generator = Entropy.from_seed(64).generator()
    for seed in range(60):
        graph = random_graph(generator, int(generator.integers(4, 13)))
        values, functions = spectrum_of(graph, 0.3)
        missed = int(generator.integers(graph.num_users - 2))
        kept = np.delete(functions, missed, axis=1)[:, : missed + 1]
        deflation = deflate(graph, kept, laziness=0.3)
        guess = 0.9 * float(abs(values[-1]))
        found = certify(graph, guess, deflation=deflation, laziness=0.3, seed=seed)
        assert found >= min(1.0, abs(float(values[missed]))) - 1e-12


def test_with_all_larger_pairs_known_the_rest_is_bounded_closely():
    graph = cycle_graph(31)
    values, functions = spectrum_of(graph)
    deflation = deflate(graph, functions[:, :4], laziness=0.0)
    rest = float(abs(values[4]))
    found = certify(graph, rest, deflation=deflation)
    assert rest <= found <= rest + 0.01 * (1.0 - rest)


def test_a_start_without_the_top_function_would_be_fooled(monkeypatch):
    # Negative control: the bound rests on the start vectors, and on nothing that always holds.
    graph = cycle_graph(31)
    _, functions = spectrum_of(graph)
    start = np.sqrt(graph.stationary_law())[:, None] * functions[:, 10:14] * 5.0

    class Planted:
        def standard_normal(self, shape):
            assert shape == start.shape
            return start.copy()

    monkeypatch.setattr(Entropy, "generator", lambda self: Planted())
    truth = math.cos(math.pi / 31)
    assert certify(graph, 0.9, steps=20) < truth - 1e-3


def test_bipartite_graphs_have_norm_one():
    for graph in (star_graph(5), cycle_graph(8), Graph.from_edges([(0, 1)])):
        for guess in (0.0, 0.5, 0.999):
            assert certify(graph, guess) == 1.0


def test_complete_graphs_have_a_small_norm():
    for num_users in (3, 10, 300):
        truth = 1.0 / (num_users - 1)
        found = certify(complete_graph(num_users), truth)
        assert truth <= found <= truth + 0.01


@pytest.mark.parametrize("guess", [1.0, 2.0, math.nan, -0.1])
def test_a_guess_that_is_none_gives_one_without_any_work(guess):
    assert certify(cycle_graph(5), guess) == 1.0


def test_round_off_that_outweighs_the_start_gives_one():
    graph = cycle_graph(5)
    rough = Deflation(
        eigenvalues=np.empty(0), eigenfunctions=np.empty((5, 0)), defect=0.0, residual=0.1
    )
    assert certify(graph, 0.81, deflation=rough, steps=50) == 1.0


def test_failure_probability_is_that_of_four_small_normal_numbers():
    from shuffledp.network.positions import spectrum

    assert spectrum.FAILURE_PROBABILITY == 1e-12

    small = math.erf(spectrum._COMPONENT / math.sqrt(2.0))
    assert small**4 <= 1e-12


def symmetric(graph, laziness):
    """Return the symmetric matrix similar to the walk, dense."""
    degrees = graph.degrees
    matrix = adjacency(graph).toarray() / np.sqrt(np.outer(degrees, degrees))
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
        # P phi_k - theta_k phi_k is computed, up to 2 eta from P psi_k - theta_k psi_k.
        assert deflation.residual >= 2.0 * deflation.defect
        assert (np.diff(np.abs(deflation.eigenvalues)) <= 0.0).all()


def test_functions_with_a_mean_are_within_the_defect_too():
    generator = Entropy.from_seed(62).generator()
    for _ in range(40):
        graph = random_graph(generator, int(generator.integers(3, 12)))
        pi = graph.stationary_law()
        root, count = np.sqrt(pi)[:, None], int(generator.integers(1, 3))
        noise = generator.standard_normal((graph.num_users, count))
        columns, _ = np.linalg.qr(np.hstack([root, noise]))
        functions = columns[:, 1:] / root + 0.001 * noise + 0.03
        _, psi = polar_factor(graph, functions)
        assert np.linalg.norm(root * functions - psi, 2) <= _defect(pi, functions)[0]


def test_repeated_functions_are_replaced_and_nan_is_refused():
    # The triangle has a double eigenvalue: whatever basis comes back is one of its eigenspace.
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    function = np.array([[1.0], [-1.0], [0.0]])
    deflation = deflate(graph, np.hstack([function, function]), laziness=0.0)
    assert deflation.eigenvalues == pytest.approx([-0.5, -0.5])
    assert deflation.deviation < 1e-13
    with pytest.raises(PrecisionError, match="num_pairs = 0"):
        deflate(graph, np.full((3, 1), np.nan), laziness=0.0)


def test_without_functions_nothing_deviates():
    graph = Graph.from_edges([(0, 1), (1, 2)])
    deflation = deflate(graph, np.empty((3, 0)), laziness=0.0)
    assert deflation.deviation == deflation.defect == 0.0
    assert deflation.num_pairs == 0
