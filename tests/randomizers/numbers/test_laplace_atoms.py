"""The blanket of the discrete Laplace law against all reports of all pairs, in many digits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from oracles.convex_order import as_tuples, largest_excess
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers.numbers import DiscreteLaplace
from shuffledp.randomizers.numbers.laplace_atoms import (
    MOST_ATOMS,
    laplace_attack,
    laplace_blanket,
)

RATIOS = (Fraction(1, 3), Fraction(1), Fraction(8, 7), Fraction(2), Fraction(9))


def exact_law(num_steps, q):
    """Rows of all grid points for a rational q, the reports beyond either end as one each."""
    return [
        [
            q**i / (1 + q),
            *((1 - q) / (1 + q) * q ** abs(y - i) for y in range(1, num_steps)),
            q ** (num_steps - i) / (1 + q),
        ]
        for i in range(num_steps + 1)
    ]


def atoms_of(rows, first, second, base=None):
    """Atoms of the infimum of all rows, or of the row ``base``, report by report."""
    law = [min(column) for column in zip(*rows, strict=True)] if base is None else rows[base]
    return [
        (mass, r0 / mass, r1 / mass)
        for mass, r0, r1 in zip(law, rows[first], rows[second], strict=True)
    ]


def float_law(num_steps, step):
    """Masses of all reports of the lower end, and of the other end, in floats."""
    places = np.arange(num_steps + 1)
    masses = math.tanh(step / 2) * np.exp(-step * places)
    masses[0] = 1.0 / (1.0 + math.exp(-step))
    masses[-1] = math.exp(-step * num_steps) * masses[0]
    return masses, masses[::-1].copy()


def collected(atoms):
    """Masses by ratios, to 10 digits."""
    masses = {}
    for mass, *ratios in atoms:
        key = tuple(float(f"{float(ratio):.10g}") for ratio in ratios)
        masses[key] = masses.get(key, 0.0) + float(mass)
    return masses


@pytest.mark.parametrize("num_steps", [1, 2, 4, 8])
@pytest.mark.parametrize("q", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 50)])
def test_small_grids_are_exact(num_steps, q):
    rows = exact_law(num_steps, q)
    assert all(sum(row) == 1 for row in rows)
    step = -math.log(q)
    found = collected(as_tuples(laplace_blanket(num_steps, step)))
    expected = collected(atoms_of(rows, 0, num_steps))
    assert found == pytest.approx(expected, rel=1e-12)
    found = collected(as_tuples(laplace_attack(num_steps, step)))
    expected = collected(atoms_of(rows, 0, num_steps, base=0))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("num_steps", [1, 2, 4, 6, 7])  # also such as no randomizer has
@pytest.mark.parametrize("q", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 50)])
def test_the_ends_are_the_worst_pair(num_steps, q):
    rows = exact_law(num_steps, q)
    worst = atoms_of(rows, 0, num_steps)
    for pair in itertools.permutations(range(num_steps + 1), 2):
        for e in RATIOS:
            assert largest_excess(atoms_of(rows, *pair), worst, e) == 0  # 0 is that of the means


def test_a_pair_that_is_not_worst_is_told_apart():
    rows = exact_law(4, Fraction(1, 2))
    inner, ends = atoms_of(rows, 1, 3), atoms_of(rows, 0, 4)
    assert largest_excess(ends, inner, Fraction(1)) > 0


@pytest.mark.parametrize("num_steps", [32, 64, 256])
@pytest.mark.parametrize("loss", [1e-4, 0.5, 2.0, 6.0, 20.0])
def test_few_atoms_dominate_all(num_steps, loss):
    step = loss / num_steps
    low, high = float_law(num_steps, step)
    omega = np.minimum(low, high)
    exact = list(zip(omega.tolist(), (low / omega).tolist(), (high / omega).tolist(), strict=True))
    stated = as_tuples(laplace_blanket(num_steps, step))
    assert len(stated) <= max(MOST_ATOMS, 33)
    if num_steps == 32:
        assert collected(stated) == pytest.approx(collected(exact), rel=1e-9)
    assert math.fsum(mass for mass, _, _ in stated) == pytest.approx(omega.sum(), rel=1e-12)
    assert max(r0 for _, r0, _ in stated) == pytest.approx(math.exp(loss), rel=1e-12)
    assert min(min(r0, r1) for _, r0, r1 in stated) == 1.0
    for e in (1.0, 1.0 + loss / 50, math.exp(loss / 2)):
        assert largest_excess(exact, stated, e) <= 1e-14 * (1.0 + e)

    def variance(atoms):
        return math.fsum(mass * (r0 - r1) ** 2 for mass, r0, r1 in atoms)

    most = 1.012 if loss > 6.0 else 1.0015
    assert 1.0 - 1e-9 <= variance(stated) / variance(exact) <= most


@pytest.mark.parametrize("num_steps", [64, 256])
@pytest.mark.parametrize("loss", [1e-4, 0.5, 2.0, 6.0, 20.0])
def test_merged_data_are_dominated_and_lose_little(num_steps, loss):
    step = loss / num_steps
    low, high = float_law(num_steps, step)
    exact = [
        (mass, 1.0, ratio) for mass, ratio in zip(low.tolist(), (high / low).tolist(), strict=True)
    ]
    stated = as_tuples(laplace_attack(num_steps, step))
    assert len(stated) <= MOST_ATOMS
    assert math.fsum(mass for mass, _, _ in stated) == pytest.approx(1.0, rel=1e-14)
    for e in (1.0, 1.0 + loss / 50, math.exp(loss / 2)):
        assert largest_excess(stated, exact, e) <= 1e-14 * (1.0 + e)

    def variance(atoms):
        return math.fsum(mass * (r0 - r1) ** 2 for mass, r0, r1 in atoms)

    assert 0.99 <= variance(stated) / variance(exact) <= 1.0 + 1e-9


@pytest.mark.parametrize("q", [Fraction(19, 20), Fraction(1, 2), Fraction(1, 50)])
def test_the_others_separate_the_ends_most_at_an_end(q):
    rows = exact_law(8, q)

    def separation(base):
        return sum(mass * (r0 - r1) ** 2 for mass, r0, r1 in atoms_of(rows, 0, 8, base=base))

    assert max(range(9), key=separation) in (0, 8)


@pytest.mark.parametrize("epsilon0", [0.0, 1e-9, 1e-7, 1e-3, 1.0, 10.0, 64.0, 1e300])
@pytest.mark.parametrize("resolution", [None, 4])
def test_profile(epsilon0, resolution):
    randomizer = DiscreteLaplace(low=0, high=1, epsilon0=epsilon0, resolution=resolution)
    profile = randomizer.profile
    assert profile.family is RandomizerFamily.OTHER
    assert profile.epsilon0 == randomizer.epsilon0
    for atoms in (profile.blanket, profile.attack):
        assert 1 <= len(atoms) <= MOST_ATOMS
        for ratio in ("ratio0", "ratio1"):
            mean = math.fsum(atom.mass * getattr(atom, ratio) for atom in atoms)
            assert mean == pytest.approx(1.0, rel=1e-13)
    largest = max(atom.ratio0 for atom in profile.blanket)
    assert math.log(largest) == pytest.approx(randomizer.epsilon0, rel=1e-14, abs=1e-15)
    if randomizer.epsilon0 == 0.0:
        assert largest == 1.0
