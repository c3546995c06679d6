"""The recurrence: against whole numbers, sums of binomial laws, and strides against steps."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shuffledp.leakage.fullest_bin import (
    _ways,
    recurrence_seconds,
    recurrence_tails,
    stride_rule,
)
from shuffledp.leakage.load_kernels import (
    confined,
    overflow_weight,
)


def by_steps(load, bins, deficit):
    """Sum equation (1) of the module term by term."""
    level = np.ones(deficit + 1)
    for j in range(2, bins + 1):
        weights = [overflow_weight(float(load), float(j), float(t)) for t in range(deficit + 1)]
        level = np.cumsum(level * weights)
    return level[-1]


@pytest.mark.parametrize("bins", [2, 3, 6, 20])
@pytest.mark.parametrize("balls", [1, 4, 37, 200])
def test_relative_accuracy_against_whole_numbers(balls, bins):
    """The identity, and the weights: the sum by strides stands on them."""
    for load in range(-(-balls // bins), balls, max(balls // 4, 1)):
        exact = Fraction(_ways(balls, bins, load), bins**balls)
        found = by_steps(load, bins, bins * load - balls)
        assert abs(Fraction(found) - exact) <= Fraction(4e-15 * bins) * exact


@pytest.mark.parametrize("deficit", [0, 1, 5, 900, 4000])
def test_weights_are_binomial(deficit):
    load, bins = 5000, 4
    balls = bins * load - deficit
    with mpmath.workdps(40):
        exact = (
            mpmath.binomial(balls, load)
            * mpmath.mpf(1)
            / bins**load
            * (1 - mpmath.mpf(1) / bins) ** (balls - load)
        )
        found = overflow_weight(load, bins, deficit)
        assert abs(found / exact - 1) <= 1e-14 * max(1.0, -math.log(found) / 40.0)


def test_weights_at_the_edges():
    assert overflow_weight(3.0, 2.0, 3.0) == pytest.approx(1 / 8, rel=1e-15)
    assert overflow_weight(3.0, 2.0, 4.0) == 0.0


@pytest.mark.parametrize("stride", [1.0, 2.0, 7.0, 40.0])
def test_rule_is_exact_for_polynomials(stride):
    rule = stride_rule(stride)
    for degree in range(13):
        grid = (np.arange(-6, 8) / 7.0) ** degree
        exact = sum((r / stride / 7.0) ** degree for r in range(1, int(stride) + 1))
        assert rule @ grid == pytest.approx(exact, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("load", "bins"), [(5200, 3), (5300, 5), (10_300, 2), (5500, 9)])
def test_strides_agree_with_steps(load, bins):
    mean = 5000 if load < 10_000 else 10_000
    for deficit in (bins * (load - mean) - 1, bins * (load - mean) // 3):
        strides = int(deficit // 4) + 1
        by_strides = confined(load, bins, deficit, strides, stride_rule(deficit / strides))
        exact = by_steps(load, bins, deficit)
        assert by_strides == pytest.approx(exact, rel=1e-13 * bins, abs=0.0)


def test_coarse_strides_are_seen():
    # A negative control: strides of a whole standard deviation are not enough.
    by_strides = confined(5300, 5, 1500, 15, stride_rule(100.0))
    assert by_strides != pytest.approx(by_steps(5300, 5, 1500), rel=1e-12)


def test_large_numbers_against_multiprecision():
    balls, load = 10**5, 50_250  # sigma is 223
    with mpmath.workdps(40):
        mass = mpmath.binomial(balls, load) / mpmath.mpf(2) ** balls
        inside = mpmath.mpf(0)
        for at in range(load, balls - load - 1, -1):
            inside += mass
            mass *= mpmath.mpf(at) / (balls - at + 1)
        tails, errors = recurrence_tails(balls, 2, np.array([load]))
        assert abs(float(tails[0]) - (1 - inside)) <= errors[0]
    assert errors[0] <= 1e-13


def test_a_full_house():
    # n = k m: the multinomial probability that all loads are equal.
    tails, errors = recurrence_tails(20_000, 2, np.array([10_000]))
    with mpmath.workdps(30):
        exact = mpmath.binomial(20_000, 10_000) / mpmath.mpf(2) ** 20_000
    assert abs(1.0 - float(tails[0]) - exact) <= errors[0] + 1e-16


def test_cost_hardly_grows_with_balls():
    small = recurrence_seconds(10**6, 5, np.array([10**6 // 5 + 2 * 447]))
    large = recurrence_seconds(10**12, 5, np.array([10**12 // 5 + 2 * 447_214]))
    assert small == pytest.approx(large, rel=1e-2)


def test_where_it_does_not_apply():
    assert recurrence_seconds(10**9, 1001, np.array([10**6])) == math.inf
    assert recurrence_seconds(4095 * 5, 5, np.array([4100])) == math.inf
    assert recurrence_seconds(4096 * 5, 5, np.array([4100])) < 1.0
