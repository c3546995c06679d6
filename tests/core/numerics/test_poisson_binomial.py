"""Tails against exact laws in fractions, and against independent sums in double precision."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics import poisson_binomial
from shuffledp.core.numerics.poisson_binomial import (
    _coins,
    _find_tilt,
    _split,
    binomial_level,
    poisson_binomial_law,
    survival_levels,
)


def lower_tail(probabilities, count):
    """Chernoff's bound of Pr[N <= count]."""
    sure, doubtful = _split(probabilities)
    return poisson_binomial.lower_tail(_coins(doubtful), count - sure)


chances = st.lists(
    st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1.0 - 2.0**-53])),
    max_size=9,
)


def exact_law(probabilities):
    """Law of the sum, in fractions of the doubles themselves."""
    law = [Fraction(1)]
    for chance in map(Fraction, probabilities):
        law = [
            (law[k] * (1 - chance) if k < len(law) else 0) + (law[k - 1] * chance if k else 0)
            for k in range(len(law) + 1)
        ]
    return law


@given(chances, st.integers(-2, 10))
def test_lower_tail_is_above_the_truth(probabilities, count):
    truth = sum(exact_law(probabilities)[: max(count + 1, 0)])
    assert Fraction(lower_tail(probabilities, count)) >= truth


@given(chances)
def test_lower_tail_is_exact_where_nothing_shows(probabilities):
    law = exact_law(probabilities)
    first = next(k for k, mass in enumerate(law) if mass)
    if sum(float(p) > 0.0 for p in probabilities) > first:  # else it is sure: the tail is 1
        assert lower_tail(probabilities, first) >= float(law[first])
        left = [p for p in probabilities if 0.0 < p < 1.0]
        if sum(left) > 1e-12:
            expected = max(math.prod(1.0 - p for p in left), 1e-300)
            assert lower_tail(probabilities, first) == pytest.approx(expected, rel=1e-9)


def test_lower_tail_is_the_best_of_all_tilts():
    probabilities = [0.9, 0.5, 0.3, 0.8, 0.99, 0.2]
    tilts = np.geomspace(1e-3, 30.0, 20_001)
    moments = np.prod([1 - p + p * np.exp(-tilts) for p in probabilities], axis=0)
    for count in (1, 2, 3):
        best = float((np.exp(tilts * count) * moments).min())
        assert lower_tail(probabilities, count) == pytest.approx(best, rel=1e-5)


def test_lower_tail_of_a_million():
    n = 10**6
    found = lower_tail(np.full(n, 0.9), 898_000)
    truth = stats.binom.cdf(898_000, n, 0.9)
    assert truth < found < 30.0 * truth
    assert lower_tail(np.full(n, 0.9), 900_000) == 1.0
    assert 0.0 < lower_tail(np.full(n, 0.9), 10) < 1e-299  # far below all doubles


def test_lower_tail_serves_occupied_places():
    # Three balls into places of chances 1/2, 1/4, 1/4: indicators of empty places, by listing.
    law = [0.5, 0.25, 0.25]
    empty = [(1.0 - p) ** 3 for p in law]
    for count in range(3):
        truth = sum(
            math.prod(law[j] for j in balls)
            for balls in itertools.product(range(3), repeat=3)
            if 3 - len(set(balls)) <= count
        )
        assert lower_tail(empty, count) >= truth * (1.0 - 1e-12)


@given(chances)
def test_law_is_exact(probabilities):
    masses, error = poisson_binomial_law(np.array(probabilities, dtype=np.float64))
    law = exact_law(probabilities)
    assert len(masses) == len(law)
    for mass, truth in zip(masses, law, strict=True):
        assert abs(Fraction(float(mass)) - truth) <= Fraction(error) * truth + Fraction(1e-300)


@pytest.mark.parametrize("n", [2048, 2049, 5000, 20_000])
def test_law_of_many_coins(n):
    masses, error = poisson_binomial_law(np.full(n, 0.3))
    truth = stats.binom.pmf(np.arange(n + 1), n, 0.3)
    assert np.abs(masses - truth).sum() <= error + 1e-11  # scipy's are good to 1e-12 or so
    assert error < 1e-9
    assert masses.sum() == pytest.approx(1.0, abs=1e-11)


def test_law_by_blocks_is_that_coin_by_coin():
    # Of different coins, some sure: against one long sum coin by coin.
    generator = Entropy.from_seed(5).generator()
    coins = np.concatenate([generator.random(2500) ** 4, np.ones(40), np.zeros(30)])
    masses, error = poisson_binomial_law(coins)
    law = np.zeros(len(coins) + 1)
    law[0] = 1.0
    for p in coins:
        law[1:] = law[1:] * (1.0 - p) + law[:-1] * p
        law[0] *= 1.0 - p
    assert np.abs(masses - law).sum() <= error
    assert np.all(masses >= 0.0)
    assert error > 1e-15  # it is a bound, not a wish


def test_the_law_of_nearly_sure_coins():
    # Masses near 1, where transforms are least accurate.
    n = 4000
    masses, error = poisson_binomial_law(np.full(n, 1.0 - 1e-9))
    truth = stats.binom.pmf(np.arange(n + 1), n, 1.0 - 1e-9)
    assert np.abs(masses - truth).sum() <= error + 1e-12


@settings(max_examples=60)
@given(chances, st.sampled_from([0.5, 0.1, 1e-3, 1e-9, 1e-200]), st.booleans())
def test_levels_keep_their_promise(probabilities, target, independent):
    count, miss = survival_levels(probabilities, [target], independent=independent)[0]
    law = exact_law(probabilities)
    below = sum(law[:count])
    assert below <= Fraction(miss) <= Fraction(target)
    if independent and count < len(probabilities):  # and nothing larger would
        assert sum(law[: count + 1]) > Fraction(target) * (1 - Fraction(1, 10**9))


@pytest.mark.parametrize("n", [3000, 200_000])
def test_levels_of_many(n):
    targets = [0.3, 1e-3, 1e-8, 1e-25]
    levels = survival_levels(np.full(n, 0.7), targets)
    assert [count for count, _ in levels] == sorted((c for c, _ in levels), reverse=True)
    for (count, miss), target in zip(levels, targets, strict=True):
        assert stats.binom.cdf(count - 1, n, 0.7) <= miss * (1.0 + 1e-9)
        assert miss <= target
        # At most about one deviation is given away.
        assert stats.binom.ppf(target, n, 0.7) - count <= 1.5 * math.sqrt(n * 0.21) + 1.0


def test_levels_of_coins_that_hardly_ever_fail():
    n = 10**6
    (first, miss), (second, rarer) = survival_levels(np.full(n, 1.0 - 1e-12), [0.01, 1e-9])
    assert first == n
    assert miss == pytest.approx(1e-6, rel=1e-3)
    assert second == n - 1
    assert rarer <= 1e-9


def test_levels_of_coins_that_hardly_ever_show():
    assert survival_levels(np.full(10**6, 1e-7), [0.5, 1e-9]) == [(0, 0.0), (0, 0.0)]
    assert survival_levels([], [0.1]) == [(0, 0.0)]
    assert survival_levels([1.0, 0.0, 1.0], [0.1]) == [(2, 0.0)]


def test_a_law_that_is_too_small_is_told():
    # A negative control: with coins of 0.69 for those of 0.7 the promise is broken.
    n = 200_000
    count, miss = survival_levels(np.full(n, 0.7), [1e-3])[0]
    assert stats.binom.cdf(count - 1, n, 0.69) > miss


@pytest.mark.parametrize("bad", [[-0.1], [1.1], [math.nan], [[0.5]], 0.5])
def test_refused(bad):
    with pytest.raises(ParameterError, match="probabilities"):
        survival_levels(bad, [0.1])


@pytest.mark.parametrize("target", [0.0, 1.0, math.nan, -1.0])
def test_targets_refused(target):
    with pytest.raises(ParameterError, match="targets"):
        survival_levels([0.5], [target])


def test_the_search_ends_where_there_is_no_zero():
    # Any tilt is safe, so it is enough that it is a positive number.
    assert 0.0 < _find_tilt(_coins(np.array([0.5])), 1.0, lambda *_: (1.0, 0.0)) < 1.0


@given(
    st.integers(0, 5000),
    st.one_of(st.floats(1e-12, 1.0), st.sampled_from([1e-12, 1.0 - 1e-12, 1.0])),
    st.floats(0.5, 700.0),
)
def test_equal_coins_fall_short_of_their_level_as_rarely_as_promised(number, chance, exponent):
    level = binomial_level(number, chance, math.exp(-exponent))
    assert 0 <= level <= number
    # scipy's tails are good to about 1e-11
    assert stats.binom.cdf(level - 1, number, chance) <= math.exp(-exponent) * (1.0 + 1e-9)


@pytest.mark.parametrize("number", [10**9, 10**12, 10**15])
@pytest.mark.parametrize("chance", [1e-13, 1e-6, 0.3, 0.5, 1.0 - 1e-9, 1.0])
def test_levels_of_many_equal_coins_are_within_a_few_deviations(number, chance):
    level = binomial_level(number, chance, math.exp(-32.0))
    reach = 10.0 * math.sqrt(number * chance * (1.0 - chance)) + 60.0
    assert number * chance - reach <= level <= number * chance + 1.0
