"""The contour integral: masses, nodes, periods, and chances against whole numbers."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from shuffledp.leakage.fullest_bin import (
    _ways,
    characteristic_seconds,
    characteristic_tails,
    contour_period,
    largest_mass,
    log_sum_mass,
    node_set,
)
from shuffledp.leakage.load_kernels import (
    poisson_masses,
    sine_defect,
)


@pytest.mark.parametrize("bins", [2, 3, 8, 60, 10_000])
@pytest.mark.parametrize("balls", [2, 5, 33, 200])
def test_against_whole_numbers(balls, bins):
    loads = np.arange(-(-balls // bins), balls)
    tails, errors = characteristic_tails(balls, bins, loads)
    for load, tail, error in zip(loads.tolist(), tails, errors, strict=True):
        exact = 1 - Fraction(_ways(balls, bins, load), bins**balls)
        assert abs(Fraction(float(tail)) - exact) <= Fraction(float(error))
    assert errors.max() <= 1e-10


@pytest.mark.parametrize("mean", [0.01, 0.9, 17.3, 1234.5, 1e8 + 1 / 3])
def test_masses(mean):
    spread = math.sqrt(mean)
    first = max(int(mean - 8.0 * spread), 0)
    masses = poisson_masses(mean, first, 9)
    with mpmath.workdps(40):
        for at, mass in enumerate(masses, start=first):
            exact = mpmath.exp(at * mpmath.log(mean) - mean - mpmath.loggamma(at + 1))
            # Further out the exponent is large, but the mass below 1e-11.
            assert abs(float(mass) - exact) <= 1e-14 * exact + 1e-24


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.4999, 0.5001, 3.0])
def test_sine_defect(angle):
    with mpmath.workdps(40):
        exact = mpmath.sin(mpmath.mpf(angle)) - mpmath.mpf(angle)
    assert sine_defect(angle) == pytest.approx(float(exact), rel=2e-15, abs=0.0)


@pytest.mark.parametrize("balls", [1, 2, 19, 20, 21, 22, 1000, 10**6, 10**12])
def test_chance_of_the_sum(balls):
    with mpmath.workdps(50):
        exact = balls * mpmath.log(balls) - balls - mpmath.loggamma(balls + 1)
    assert abs(log_sum_mass(balls) - float(exact)) <= 2e-14 * max(1.0, abs(float(exact)))


@pytest.mark.parametrize("balls", [1, 3, 50, 10**4, 10**7])
def test_aliases_are_negligible(balls):
    period = contour_period(balls)
    assert period % 2 == 1
    aliases = stats.poisson.sf(balls + period - 1, balls) + stats.poisson.cdf(balls - period, balls)
    assert aliases <= 1e-19 * math.exp(log_sum_mass(balls)) * (1.0 + 1e-6)


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 16), (10**6, 1000), (10**4, 5)])
def test_nodes_left_out_are_negligible(balls, bins):
    nodes = node_set(balls, bins)
    mean = balls / bins
    loads = np.arange(0, int(mean + 15 * math.sqrt(mean) + 60))
    masses = stats.poisson.pmf(loads, mean)
    limit = 2e-19 * math.exp(log_sum_mass(balls))
    for node in range(nodes.num_nodes, (nodes.period + 1) // 2, 97):
        parts = np.abs(np.cumsum(masses * np.exp(1j * nodes.angle * node * loads)))
        assert parts.max() ** bins <= limit


def test_few_nodes_for_many_bins():
    assert node_set(10**9, 10**4).num_nodes < 400
    assert node_set(10**9, 16).num_nodes < 400
    some = node_set(100, 2)
    assert some.num_nodes == (some.period + 1) // 2


@pytest.mark.parametrize("mean", [0.1, 1.0, 2.5, 30.0, 1e6 + 0.5])
def test_largest_mass(mean):
    assert stats.poisson.pmf(math.floor(mean), mean) <= largest_mass(mean) <= 1.0


def test_more_loads_cost_more():
    few, many = np.arange(1000, 1010), np.arange(1000, 2000)
    assert characteristic_seconds(10**5, 100, few) < characteristic_seconds(10**5, 100, many)
