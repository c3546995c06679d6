import math

import pytest
from mpmath import mp, mpf

from shuffledp.accounting.advanced_composition import (
    advanced_composition,
    basic_composition,
    optimal_composition,
    stated_loss,
)
from shuffledp.core.errors import OutOfRegimeError, ParameterError

mp.dps = 60


def optimal_delta(epsilon, delta, count, target):
    """Kairouz, Oh, Viswanath: the composed pair, at any target epsilon, at sixty digits."""
    p = mp.exp(mpf(epsilon))
    total = (
        sum(
            mp.binomial(count, lies)
            * max(p ** (count - lies) - mp.exp(mpf(target)) * p**lies, mpf(0))
            for lies in range(count + 1)
        )
        / (1 + p) ** count
    )
    return 1 - (1 - mpf(delta)) ** count * (1 - total)


def test_basic_composition():
    assert basic_composition([]) == (0.0, 0.0)
    epsilon, delta = basic_composition([(0.1, 1e-9, 3), (0.7, 0.0, 1), (9.0, 0.5, 0)])
    assert 1.0 <= epsilon <= 1.0 + 1e-14
    assert 3e-9 <= delta <= 3e-9 * (1.0 + 1e-14)
    assert basic_composition([(1.0, 0.9, 5)])[1] == 1.0
    for bad in ((-1.0, 0.0, 1), (1.0, 1.0, 1), (1.0, 0.0, -1), (math.nan, 0.0, 1)):
        with pytest.raises(ParameterError):
            basic_composition([bad])


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 1000), (0.5, 7), (3.0, 2)])
def test_advanced_composition_is_the_formula(epsilon, count):
    found = advanced_composition(epsilon, 1e-9, count, total_delta=1e-5)
    e, k = mpf(epsilon), mpf(count)
    rest = mpf(1e-5) - k * mpf(1e-9)
    exact = e * mp.sqrt(2 * k * -mp.log(rest)) + k * e * mp.expm1(e)
    assert exact <= found <= exact * (1 + 1e-13)


def test_advanced_composition_outside_its_regime():
    with pytest.raises(OutOfRegimeError, match="total_delta > count"):
        advanced_composition(0.1, 1e-6, 10, total_delta=1e-5)
    assert advanced_composition(800.0, 0.0, 1, total_delta=1e-5) == math.inf
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match="total_delta"):
            advanced_composition(0.1, 0.0, 1, total_delta=delta)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [(0.1, 0.0, 1), (0.1, 1e-9, 30), (1.0, 1e-9, 5), (0.01, 0.0, 400), (5.0, 1e-8, 3)],
)
@pytest.mark.parametrize("total", [1e-12, 1e-6, 1e-2])
def test_optimal_composition_is_optimal(epsilon, delta, count, total):
    found = optimal_composition(epsilon, delta, count, total_delta=total)
    assert found <= count * epsilon * (1.0 + 1e-14) or math.isinf(found)
    if math.isinf(found):
        assert 1 - (1 - mpf(delta)) ** count > total
        return
    assert optimal_delta(epsilon, delta, count, found) <= total
    slightly_less = found * (1.0 - 1e-6)
    assert found == 0.0 or optimal_delta(epsilon, delta, count, slightly_less) > total


def test_optimal_never_loses_to_the_others():
    for count in (10, 1000, 10**6):
        best = optimal_composition(0.001, 0.0, count, total_delta=1e-6)
        assert best <= advanced_composition(0.001, 0.0, count, total_delta=1e-6)
        assert best <= basic_composition([(0.001, 0.0, count)])[0]


def test_edges():
    assert optimal_composition(0.0, 0.0, 10, total_delta=1e-9) == 0.0
    assert optimal_composition(0.0, 1e-3, 10, total_delta=1e-9) == math.inf
    assert optimal_composition(0.5, 0.0, 4, total_delta=0.0) == pytest.approx(2.0)
    assert optimal_composition(0.5, 1e-9, 4, total_delta=0.0) == math.inf
    # nothing is left to be cut off beside the failures
    just_enough = 1.0 - (1.0 - 1e-3) ** 4 + 1e-15
    assert optimal_composition(0.5, 1e-3, 4, total_delta=just_enough) == pytest.approx(2.0)
    assert optimal_composition(50.0, 0.0, 2, total_delta=1e-9) == pytest.approx(100.0)
    assert optimal_composition(50.0, 0.0, 2, total_delta=1e-300) == pytest.approx(100.0)
    for bad in ((-1.0, 0.0, 1), (math.inf, 0.0, 1), (1.0, 1.0, 1), (1.0, 0.0, 0)):
        with pytest.raises(ParameterError):
            optimal_composition(*bad, total_delta=1e-6)
    with pytest.raises(ParameterError, match="total_delta"):
        optimal_composition(1.0, 0.0, 1, total_delta=1.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.0, 0.1), (1e-12, 0.0), (2.0, 0.01)])
def test_the_law_of_what_is_only_stated(epsilon, delta):
    loss = stated_loss(epsilon, delta)
    for target in (-1.0, 0.0, 0.5 * epsilon, epsilon, 2.0 * epsilon + 1.0):
        exact = optimal_delta(epsilon, delta, 1, target)
        assert exact - mpf(10) ** -50 <= loss.delta(target)
        assert loss.delta(target) <= exact * (1 + 1e-12) + 1e-13
