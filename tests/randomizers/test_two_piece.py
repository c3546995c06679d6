"""Blanket and attack of PrivUnit, against measures of 30 digits."""

import math
from collections import defaultdict

import mpmath
import pytest

from oracles.convex_order import as_tuples, largest_excess
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import PrivUnit
from shuffledp.randomizers.privunit import cap_measure, caps_at_right_angle

LAWS = [
    (dimension, epsilon0)
    for dimension in (2, 3, 4, 5, 16, 200)
    for epsilon0 in (0.0, 1e-6, 0.1, 1.0, 3.0, 8.0, 60.0)
]


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(30):
        yield


def cap(gamma, dimension):
    """Measure of a cap."""
    a = mpmath.mpf(dimension - 1) / 2
    return mpmath.betainc(a, a, 0, (1 - mpmath.mpf(gamma)) / 2, regularized=True)


def two_caps(gamma, dimension):
    """Measure of two caps at a right angle: the second coordinate's tail over the first one."""
    if dimension == 2:
        return max(mpmath.acos(gamma) / mpmath.pi - mpmath.mpf(1) / 4, mpmath.mpf(0))
    gamma, d = mpmath.mpf(gamma), mpmath.mpf(dimension)
    end = mpmath.sqrt(1 - gamma**2)
    if end <= gamma or gamma == 0:
        return mpmath.mpf(1 if gamma == 0 else 0) / 4
    a = d / 2 - 1
    log_constant = mpmath.loggamma(d / 2) - mpmath.loggamma(d / 2 - mpmath.mpf(1) / 2)
    constant = mpmath.exp(log_constant) / mpmath.sqrt(mpmath.pi)

    def integrand(x):
        t = end - (end - gamma) * x**2
        y = (1 - gamma / mpmath.sqrt(1 - t**2)) / 2
        tail = mpmath.betainc(a, a, 0, max(y, mpmath.mpf(0)), regularized=True)
        return 2 * (end - gamma) * x * constant * (1 - t**2) ** ((d - 3) / 2) * tail

    # Nearly all of it is where t1 is at most some deviations above gamma.
    width = min(mpmath.mpf(1), 12 / mpmath.sqrt(d) / (end - gamma))
    places = [0, *(mpmath.sqrt(1 - width * k / 8) for k in range(8, -1, -1))]
    return mpmath.quad(integrand, places)


def exact_law(randomizer):
    """Return q, P and p."""
    q = cap(randomizer.gamma, randomizer.dimension)
    hit = 1 - mpmath.mpf(randomizer.threshold) / 2**64
    return q, hit, hit * (1 - q) / ((1 - hit) * q)


def collected(atoms):
    """Masses by ratios, to eight digits."""
    masses = defaultdict(float)
    for mass, *ratios in atoms:
        masses[tuple(float(f"{float(ratio):.8g}") for ratio in ratios)] += float(mass)
    return masses


@pytest.mark.parametrize(("dimension", "epsilon0"), LAWS)
def test_the_stated_blanket_dominates_that_of_opposite_points(dimension, epsilon0):
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    profile = randomizer.profile
    q, hit, p = exact_law(randomizer)
    low = (1 - hit) / (1 - q)
    exact = [(q * low, p, 1), (q * low, 1, p), ((1 - 2 * q) * low, 1, 1)]
    stated = [tuple(mpmath.mpf(number) for number in atom) for atom in as_tuples(profile.blanket)]
    assert sum(mass for mass, _, _ in stated) <= 1 + 1e-15
    for e in (1, mpmath.exp(randomizer.epsilon0 / 3), mpmath.exp(randomizer.epsilon0 * 0.9)):
        # The means differ by round-off.
        assert largest_excess(exact, stated, e) <= 1e-14 * (1 + e)
    # And by no more than is said: the pair is as heavy to 1e-9, its ratio larger by a margin.
    one, ratio, _ = stated[0]
    assert one * (ratio + 1) == pytest.approx(float(q * low * (p + 1)), rel=2e-9)
    neither = stated[2][0] if len(stated) > 2 else 0
    assert float(neither) == pytest.approx(float(exact[2][0]), rel=2e-9, abs=1e-15)
    assert p * (1 - mpmath.mpf(10) ** -15) <= ratio <= p ** mpmath.mpf("1.0000000011") * (1 + 1e-14)


@pytest.mark.parametrize(("dimension", "epsilon0"), LAWS)
def test_the_attack_is_right_to_ten_digits(dimension, epsilon0):
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    q, hit, p = exact_law(randomizer)
    v = two_caps(randomizer.gamma, dimension)
    inside, outside = hit / q, (1 - hit) / (1 - q)
    exact = [
        (outside * (q - v), p, 1),
        (outside * (q - v), 1, p),
        (outside * (1 - 3 * q + 2 * v), 1, 1),
        (inside * (q - 2 * v), 1 / p, 1 / p),
        (inside * v, 1, 1 / p),
        (inside * v, 1 / p, 1),
    ]
    stated = as_tuples(randomizer.profile.attack)
    found, expected = collected(stated), collected(exact)
    for ratios in found.keys() | expected.keys():
        assert found[ratios] == pytest.approx(expected[ratios], rel=1e-10, abs=1e-28)
    assert max(r0 for _, r0, _ in stated) == pytest.approx(float(p), rel=1e-10)
    assert min(r0 for _, r0, _ in stated) == pytest.approx(float(1 / p), rel=1e-10)
    for k in range(3):
        means = math.fsum(atom[0] * (1.0, *atom[1:])[k] for atom in stated)
        assert means == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("dimension", [2, 3, 4, 100])
def test_caps_where_the_reach_ends(dimension):
    # At 45 degrees two caps at a right angle begin to share something.
    corner = math.sqrt(0.5)
    for gamma in (corner - 1e-9, math.nextafter(corner, 0.0), corner, math.nextafter(corner, 1.0)):
        cells = caps_at_right_angle(gamma, dimension, cap_measure(gamma, dimension))
        assert 0.0 <= cells.shared < 1e-9
        assert cells.own + cells.shared == pytest.approx(cap_measure(gamma, dimension).inside)
        total = 2.0 * cells.shared + 2.0 * cells.own + cells.third + cells.none
        assert total == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("z", [0.01, 0.6, 0.7, 3.0, 12.0])
@pytest.mark.parametrize("dimension", [10_000, 10**6])
def test_caps_in_many_dimensions(z, dimension):
    gamma = z / math.sqrt(dimension)
    cells = caps_at_right_angle(gamma, dimension, cap_measure(gamma, dimension))
    # The proof's integral; the tests above compare it with another one.
    corner, reach = mpmath.pi / 4, mpmath.acos(gamma)
    places = [corner + (reach - corner) * k / 4 for k in range(5)]

    def integrand(phi):
        return (1 - (mpmath.mpf(gamma) / mpmath.cos(phi)) ** 2) ** (dimension // 2 - 1)

    assert cells.shared == pytest.approx(float(mpmath.quad(integrand, places) / mpmath.pi), 1e-10)
    # Components of points of such a sphere are nearly independent normals.
    independent = (math.erfc(z / math.sqrt(2.0)) / 2.0) ** 2
    assert cells.shared == pytest.approx(independent, rel=(1.0 + z) ** 4 / dimension)


def test_other_pairs_are_dominated():
    # Overlap v of the two parts, as much as there is.
    q, hit = mpmath.mpf(1) / 5, mpmath.mpf(3) / 4
    low = (1 - hit) / (1 - q)
    p = hit / q / low

    def atoms(v):
        pair = [((q - v) * low, p, 1), ((q - v) * low, 1, p)]
        return [*pair, (v * low, p, p), ((1 - 2 * q + v) * low, 1, 1)]

    for v in (q / 7, q / 2, q):
        for e in (mpmath.mpf(1) / 2, 1, 2, 5):
            assert largest_excess(atoms(v), atoms(0), e) <= 1e-28
            assert largest_excess(atoms(0), atoms(v), e) > 1e-3


def test_nothing_is_said_without_a_loss():
    profile = PrivUnit(dimension=7, epsilon0=0.0).profile
    assert profile.family is RandomizerFamily.OTHER
    for atom in (*profile.blanket, *profile.attack):
        assert (atom.ratio0, atom.ratio1) == (1.0, 1.0)
