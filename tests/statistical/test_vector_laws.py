"""Vector reports follow the stated laws: chi-square over exact cells, means and mean squares.

Planted errors, one on either side of each parameter, must be rejected.
"""

import copy
import math

import numpy as np
import pytest
from scipy import special
from scipy.stats import chi2, norm

from laws_of_numbers import report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import PrivUnit
from shuffledp.randomizers import privunit as normals_module
from shuffledp.randomizers.privunit import standard_normals, to_sphere, uniforms

# Probability that correct code fails this module: Bonferroni over fewer than NUM_CHECKS checks.
# Every cell expects at least LEAST_EXPECTED, so that the chi-square tail is close to the exact
# one. Means of 10^5 terms and more are held to LARGEST_Z deviations: twice the tail of a normal law
# there is below 3e-15 each, which leaves their distance from the normal law a factor of 1000.
FALSE_POSITIVE_RATE = 1e-9
LEAST_EXPECTED = 1_000
NUM_CHECKS = 200
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_CHECKS
LARGEST_Z = 8.0

NUM_REPORTS = 500_000
BLOCK = 100_000


def p_value(counts, probabilities):
    """Return the chi-square tail probability of the counts in cells."""
    observed = np.asarray(counts, dtype=float)
    expected = observed.sum() * np.asarray(probabilities, dtype=float)
    assert abs(sum(probabilities) - 1.0) < 1e-9
    assert expected.min() >= LEAST_EXPECTED
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1))


def counts_in(values, edges):
    """Return how many values lie in each cell between the edges; the end cells are open."""
    return np.bincount(np.searchsorted(edges[1:-1], values, side="right"), minlength=len(edges) - 1)


def planted(randomizer, **changes):
    """Return a randomizer that draws with other parameters than it should."""
    wrong = copy.copy(randomizer)
    for attribute, value in changes.items():
        object.__setattr__(wrong, attribute, value)
    return wrong


def plants(randomizer):
    """Return planted errors on both sides: of P, and of where the part begins."""
    for factor in (0.94, 1.06):
        yield planted(randomizer, threshold=int(randomizer.threshold * factor))
        yield planted(randomizer, gamma=randomizer.gamma * factor)


def reports_of(randomizer, x, seed):
    """Yield blocks of reports for the unit vector x."""
    entropy = Entropy.from_seed(seed)
    values = np.broadcast_to(x, (BLOCK, len(x)))
    for _ in range(NUM_REPORTS // BLOCK):
        yield randomizer.randomize(values, entropy).data.astype(np.float64)


def frame(x):
    """Return x and two unit vectors orthogonal to it and to each other (one for d = 2)."""
    columns = np.eye(len(x))[:, np.argsort(np.abs(x))[: min(2, len(x) - 1)]]
    basis = np.linalg.qr(np.column_stack([x, columns]))[0].T
    basis[0] *= np.sign(basis[0] @ x)
    return basis


# ---------------------------------------------------------------- cells along the input
def sphere_cdf(t, dimension):
    """Return the measure of <V, x> <= t on the unit sphere."""
    a = (dimension - 1) / 2
    return special.betainc(a, a, np.clip((1 + np.asarray(t)) / 2, 0.0, 1.0))


def cells_along(randomizer, num_inside, num_outside):
    """Return edges of <V, x> and the probabilities of the cells, of equal probability a side."""
    share_outside = randomizer.threshold / 2**64
    a = (randomizer.dimension - 1) / 2
    cut = randomizer.gamma
    outside = sphere_cdf(cut, randomizer.dimension)
    inside = special.betainc(a, a, (1 - cut) / 2)
    low = 2 * special.betaincinv(a, a, np.linspace(0, 1, num_outside + 1)[1:-1] * outside) - 1
    high = 1 - 2 * special.betaincinv(a, a, np.linspace(1, 0, num_inside + 1)[1:-1] * inside)
    edges = np.array([-np.inf, *low, cut, *high, np.inf])
    probabilities = [share_outside / num_outside] * num_outside
    probabilities += [(1 - share_outside) / num_inside] * num_inside
    return edges, np.array(probabilities)


def p_value_of_reports(sampler, law, x, seed):
    """Test <V, x> jointly with a component across, against the law that is stated."""
    dimension = law.dimension
    edges, probabilities = cells_along(law, 4, 4)
    if dimension == 2:
        across_edges = np.array([-1.0, 0.0, 1.0])
    else:
        b = (dimension - 2) / 2
        across_edges = 2 * special.betaincinv(b, b, np.linspace(0, 1, 5)) - 1
    num_across = len(across_edges) - 1
    joint = np.zeros((len(probabilities), num_across), dtype=np.int64)
    basis = frame(x)
    for data in reports_of(sampler, x, seed):
        along, across = data @ basis[0], data @ basis[1]
        across = across / np.sqrt(np.maximum(1 - along**2, 1e-30))
        cell = np.searchsorted(edges[1:-1], along, side="right")
        cell = cell * num_across + np.searchsorted(across_edges[1:-1], across, side="right")
        joint += np.bincount(cell, minlength=joint.size).reshape(joint.shape)
    expected = np.outer(probabilities, np.full(num_across, 1 / num_across))
    return p_value(joint.reshape(-1), expected.reshape(-1))


def unit_vector(dimension, kind):
    if kind == "axis":
        return np.eye(dimension)[0]
    if kind == "against":
        return -np.eye(dimension)[0]
    if kind == "last":
        return np.eye(dimension)[-1]
    x = Entropy.from_seed(dimension).generator().standard_normal(dimension)
    return x / np.linalg.norm(x)


CASES = [
    (2, 0.0, "any"),
    (2, 0.7, "any"),
    (2, 3.0, "axis"),
    (3, 1.0, "any"),
    (3, 4.0, "against"),
    (4, 2.0, "last"),
    (16, 0.3, "against"),
    (16, 4.0, "any"),
    (16, 4.0, "last"),
]


@pytest.mark.parametrize(("dimension", "epsilon0", "kind"), CASES)
def test_reports_follow_the_law_whatever_the_direction(dimension, epsilon0, kind):
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    x = unit_vector(dimension, kind)
    assert p_value_of_reports(randomizer, randomizer, x, seed=dimension) > REJECTION_LEVEL


@pytest.mark.parametrize(("dimension", "epsilon0"), [(2, 1.0), (3, 2.0), (16, 4.0)])
def test_a_share_or_a_cut_that_is_off_is_rejected(dimension, epsilon0):
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    x = unit_vector(dimension, "any")
    for wrong in plants(randomizer):
        assert p_value_of_reports(wrong, randomizer, x, seed=1) < REJECTION_LEVEL


def test_a_wrong_input_is_rejected():
    randomizer = PrivUnit(dimension=3, epsilon0=1.0)
    x = unit_vector(3, "any")
    turned = x + 0.03 * frame(x)[1]
    turned /= np.linalg.norm(turned)

    class Turned:
        def randomize(self, values, entropy):
            return randomizer.randomize(np.broadcast_to(turned, values.shape), entropy)

    assert p_value_of_reports(Turned(), randomizer, x, seed=2) < REJECTION_LEVEL


@pytest.mark.parametrize(("epsilon0", "seed"), [(1.0, 1), (4.0, 2)])
def test_angles_in_the_plane(epsilon0, seed):
    # In closed form: the density of the angle is constant inside the arc, and constant outside.
    randomizer = PrivUnit(dimension=2, epsilon0=epsilon0)
    x = unit_vector(2, "any")
    half_arc = math.acos(randomizer.gamma)
    inside = np.linspace(-half_arc, half_arc, 13)
    outside = np.linspace(half_arc, 2 * math.pi - half_arc, 25)
    edges = np.concatenate([inside, outside[1:]])
    share_outside = randomizer.threshold / 2**64
    probabilities = [(1 - share_outside) / 12] * 12 + [share_outside / 24] * 24

    def p_value_of(sampler):
        counts = np.zeros(36, dtype=np.int64)
        for data in reports_of(sampler, x, seed):
            angles = np.arctan2(data @ [-x[1], x[0]], data @ x)
            counts += counts_in((angles + half_arc) % (2 * math.pi) - half_arc, edges)
        return p_value(counts, probabilities)

    assert p_value_of(randomizer) > REJECTION_LEVEL
    for wrong in plants(randomizer):
        assert p_value_of(wrong) < REJECTION_LEVEL


def test_reports_in_space():
    # Archimedes: the height is uniform inside and outside, and the azimuth is uniform.
    randomizer = PrivUnit(dimension=3, epsilon0=2.0)
    x = unit_vector(3, "any")
    basis = frame(x)
    edges = np.concatenate(
        [np.linspace(-1, randomizer.gamma, 9), np.linspace(randomizer.gamma, 1, 5)[1:]]
    )
    share_outside = randomizer.threshold / 2**64
    heights = np.array([share_outside / 8] * 8 + [(1 - share_outside) / 4] * 4)

    def p_value_of(sampler):
        counts = np.zeros((12, 10), dtype=np.int64)
        for data in reports_of(sampler, x, seed=5):
            height, first, second = (data @ axis for axis in basis)
            azimuth = np.arctan2(second, first)
            cell = np.searchsorted(edges[1:-1], height, side="right") * 10
            cell += np.clip(((azimuth / math.pi + 1) * 5).astype(int), 0, 9)
            counts += np.bincount(cell, minlength=120).reshape(12, 10)
        return p_value(counts.reshape(-1), np.outer(heights, np.full(10, 0.1)).reshape(-1))

    assert p_value_of(randomizer) > REJECTION_LEVEL
    for wrong in plants(randomizer):
        assert p_value_of(wrong) < REJECTION_LEVEL


@pytest.mark.parametrize("dimension", [1024, 100_000])
def test_components_along_the_input_in_many_dimensions(dimension):
    # The lengths alone, as the whole reports would take long.
    randomizer = PrivUnit(dimension=dimension, epsilon0=6.0)
    edges, probabilities = cells_along(randomizer, 10, 10)

    def p_value_of(sampler):
        along, across = sampler._draw_lengths(NUM_REPORTS, Entropy.from_seed(6))
        assert np.allclose(along**2 + across**2, 1.0, rtol=1e-12)
        return p_value(counts_in(along, edges), probabilities)

    assert p_value_of(randomizer) > REJECTION_LEVEL
    for wrong in plants(randomizer):
        assert p_value_of(wrong) < REJECTION_LEVEL


# ---------------------------------------------------------------- normals
def p_value_of_normals(values):
    edges = norm.ppf(np.linspace(0, 1, 101))
    # The tails, whose cells would be too small on that grid.
    edges = np.concatenate([[-np.inf, -3.65, -3.3], edges[1:-1], [3.3, 3.65, np.inf]])
    return p_value(counts_in(values, edges), np.diff(norm.cdf(edges)))


NUM_NORMALS = 8_000_000


def test_normals():
    values = standard_normals(NUM_NORMALS, Entropy.from_seed(11))
    assert p_value_of_normals(values) > REJECTION_LEVEL
    for factor in (0.99, 1.01):
        assert p_value_of_normals(values * factor) < REJECTION_LEVEL
    for shift in (-0.02, 0.02):
        assert p_value_of_normals(values + shift) < REJECTION_LEVEL


def test_neighbouring_normals_are_independent():
    values = standard_normals(NUM_NORMALS, Entropy.from_seed(12))
    edges = norm.ppf(np.linspace(0, 1, 11))[1:-1]
    cells = np.searchsorted(edges, values)

    def p_value_of_pairs(first, second):
        return p_value(np.bincount(first * 10 + second, minlength=100), [0.01] * 100)

    half = NUM_NORMALS // 2  # the two of a pair are so far apart
    assert p_value_of_pairs(cells[:half], cells[half:]) > REJECTION_LEVEL
    assert p_value_of_pairs(cells[:-1:2], cells[1::2]) > REJECTION_LEVEL
    again = cells.copy()
    again[1::100] = again[:-1:100]
    assert p_value_of_pairs(again[:-1:2], again[1::2]) < REJECTION_LEVEL


@pytest.mark.parametrize("least", [1e-3, 1e-2])
def test_a_wrong_tail_is_rejected(monkeypatch, least):
    # Lengths end where uniform numbers are not small enough.
    monkeypatch.setattr(normals_module, "uniforms", lambda w: np.maximum(uniforms(w), least))
    values = standard_normals(NUM_NORMALS, Entropy.from_seed(13))
    assert p_value_of_normals(values) < REJECTION_LEVEL


# ---------------------------------------------------------------- the ball
def test_the_point_on_the_sphere_stands_for_the_value():
    values = np.tile([[0.3, 0.0, 0.4]], (NUM_REPORTS, 1))
    points = to_sphere(values, norm_bound=1.0, entropy=Entropy.from_seed(21))
    turned = int((points[:, 0] < 0).sum())
    assert p_value([turned, NUM_REPORTS - turned], [0.25, 0.75]) > REJECTION_LEVEL
    for wrong in (0.245, 0.255):
        assert p_value([turned, NUM_REPORTS - turned], [wrong, 1 - wrong]) < REJECTION_LEVEL


# ---------------------------------------------------------------- means and mean squares
NUM_USERS = 100_000
DIMENSION = 16


def decoded(randomizer, values, seed):
    """Return what the reports stand for, and the estimates made of them."""
    reports = randomizer.randomize(values, Entropy.from_seed(seed))
    decoded_reports = reports.data.astype(np.float64) * randomizer.score_scale[1]
    return decoded_reports, randomizer.estimate(reports)


def z_scores(sample, expected):
    """Return by how many standard errors the mean of a sample is off, for each column."""
    return (sample.mean(axis=0) - expected) / (sample.std(axis=0) / math.sqrt(len(sample)))


@pytest.mark.parametrize("norm_of_values", [0.0, 0.5, 1.0])
def test_estimates_are_unbiased_and_as_good_as_stated(norm_of_values):
    randomizer = PrivUnit(dimension=DIMENSION, epsilon0=4.0, norm_bound=2.0)
    direction = unit_vector(DIMENSION, "any")
    value = 2.0 * norm_of_values * direction
    vectors, estimates = decoded(randomizer, np.tile(value, (NUM_USERS, 1)), seed=31)
    assert estimates.mean == pytest.approx(vectors.mean(axis=0), rel=1e-6, abs=1e-9)
    assert np.abs(z_scores(vectors, value)).max() < LARGEST_Z
    along = vectors @ direction
    assert abs(z_scores(along, 2.0 * norm_of_values)) < LARGEST_Z

    squares = ((vectors - value) ** 2).sum(axis=1)
    stated = report_variance(randomizer, 2.0 * norm_of_values) * DIMENSION
    # Nothing is random about the squared length of a point of the sphere decoded at 0.
    spread = max(squares.std() / math.sqrt(NUM_USERS), 1e-6 * stated)
    assert abs(squares.mean() - stated) < LARGEST_Z * spread
    for factor in (0.96, 1.04):
        assert abs(squares.mean() - factor * stated) > LARGEST_Z * spread
    if norm_of_values > 0.0:
        for factor in (0.92, 1.08):
            assert abs(z_scores(factor * along, 2.0 * norm_of_values)) > LARGEST_Z


def test_means_of_different_values():
    generator = Entropy.from_seed(41).generator()
    values = generator.standard_normal((NUM_USERS, DIMENSION)) + 0.5
    values *= generator.random((NUM_USERS, 1)) / np.linalg.norm(values, axis=1, keepdims=True)
    randomizer = PrivUnit(dimension=DIMENSION, epsilon0=4.0)
    vectors, estimates = decoded(randomizer, values, seed=42)
    assert np.abs(z_scores(vectors - values, 0.0)).max() < LARGEST_Z
    error = estimates.mean - values.mean(axis=0)
    assert np.abs(error).max() < LARGEST_Z * estimates.standard_error.max()
    # A mean off by its own size would have been seen.
    assert np.abs(z_scores(vectors - values, values.mean(axis=0))).max() > LARGEST_Z
