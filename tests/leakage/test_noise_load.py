"""The fullest bin beside a rest: against fractions, plain sums, and other ways of computing it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, poisson

from shuffledp.leakage import blanket as noise_load
from shuffledp.leakage.blanket import heavy_load_excess, noise_load_excess
from shuffledp.leakage.fullest_bin import maximum_load_excess
from shuffledp.leakage.informed_kernels import group_waves
from shuffledp.leakage.weighted_loads import weighted_maximum


def parts(total, size):
    """Yield all tuples of ``size`` numbers with this sum."""
    if size == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in parts(total - first, size - 1):
            yield (first, *rest)


def listed(balls, bins, chance, is_heavy):
    rest = 1 - bins * chance
    total = Fraction(0)
    for loads in parts(balls, bins + 1):
        number = math.factorial(balls) // math.prod(map(math.factorial, loads))
        fullest = Fraction(max(loads[:-1]))
        if is_heavy:
            fullest = max(fullest, loads[-1] * chance / rest)
        total += number * chance ** (balls - loads[-1]) * rest ** loads[-1] * fullest
    return total - balls * chance


@pytest.mark.parametrize("is_heavy", [False, True])
def test_against_fractions(is_heavy):
    find = heavy_load_excess if is_heavy else noise_load_excess
    for balls, (bins, chance) in itertools.product(
        (1, 2, 3, 7, 15),
        [(1, "1/5"), (2, "1/4"), (2, "1/3"), (3, "1/10"), (4, "1/5"), (3, "1/1000")],
    ):
        exact = listed(balls, bins, Fraction(chance), is_heavy)
        found = find(balls, bins, Fraction(chance))
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)
        assert found.upper - found.lower < 1e-11


@pytest.mark.parametrize(
    ("balls", "bins", "chance"), [(1000, 4, "1/10"), (1000, 2, "1/5"), (4000, 30, "1/60")]
)
def test_against_all_loads(balls, bins, chance):
    share = float(Fraction(chance))
    law = [share] * bins + [1.0 - bins * share]
    for find, weight in ((noise_load_excess, 0.0), (heavy_load_excess, share / law[-1])):
        found = find(balls, bins, Fraction(chance))
        other = weighted_maximum(balls, law, [1.0] * bins + [weight])
        assert found.lower + balls * share <= other.upper + 1e-9
        assert other.lower <= found.upper + balls * share + 1e-9
        assert found.upper - found.lower < 1e-8


def test_heavy_bin_at_a_lattice_of_loads():
    """One bin and the rest: the mean of a positive part, summed over all numbers."""
    balls, chance = 10**6, Fraction(1, 5)
    numbers = np.arange(balls + 1)
    masses = binom.pmf(numbers, balls, 0.2)
    fullest = np.maximum(numbers, (balls - numbers) * 0.25)
    found = heavy_load_excess(balls, 1, chance)
    assert found.lower <= masses @ fullest - balls * 0.2 + 1e-6
    assert masses @ fullest - balls * 0.2 - 1e-6 <= found.upper
    assert found.upper - found.lower < 1e-5


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 5), (10**9, 10**4)])
def test_against_the_mean_over_how_many_are_in_bins(balls, bins):
    """Means of the excess at two ends of a narrow range of numbers of balls."""
    chance = Fraction(1, 2 * bins)
    found = noise_load_excess(balls, bins, chance)
    spread = 9 * math.isqrt(balls // 4)
    low = maximum_load_excess(balls // 2 - spread, bins).lower
    high = maximum_load_excess(balls // 2 + spread, bins).upper
    assert low * (1.0 - 1e-12) <= found.lower <= found.upper <= high * (1.0 + 1e-12)
    assert found.upper - found.lower < 1e-6 * found.upper


def test_everything_in_bins():
    for balls, bins in ((50, 4), (3000, 3)):
        found = noise_load_excess(balls, bins, Fraction(1, bins))
        other = maximum_load_excess(balls, bins)
        assert found.lower <= other.upper
        assert other.lower <= found.upper
        assert found.upper - found.lower < 1e-7


def test_too_long():
    assert heavy_load_excess(10**9, 4, Fraction(1, 10)) is None
    assert noise_load_excess(10**9, 4, Fraction(1, 4)) is None


def test_a_wrong_weight_is_seen(monkeypatch):
    """Without the ramp of the heavier bin's weights the answer is another one."""
    exact = listed(7, 2, Fraction(1, 4), is_heavy=True)
    whole = noise_load._heavy_tail

    def planted(masses, first, setting, angles, loads):
        found = whole(masses, first, setting, angles, loads)
        return found._replace(waves=0.5 * found.waves)

    monkeypatch.setattr(noise_load, "_heavy_tail", planted)
    found = heavy_load_excess(7, 2, Fraction(1, 4))
    assert not Fraction(found.lower) <= exact <= Fraction(found.upper)


def test_waves():
    masses = poisson.pmf(np.arange(300), 120.0)
    angles = np.array([0.0, 0.01, 0.5, 3.0])
    starts, stops = np.array([0, 100, 250]), np.array([100, 250, 250])
    found = group_waves(masses, -120.0, angles, starts, stops)
    numbers = np.arange(300) - 120.0
    for group, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        waves = np.exp(1j * np.outer(angles, numbers[start:stop])) @ masses[start:stop]
        assert np.abs(found[group] - waves).max() < 1e-14
