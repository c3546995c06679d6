"""Exchangeable laws against sums over all patterns of signs."""

from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.signs import ExchangeableSigns

WEIGHTS = st.lists(st.integers(1, 50), min_size=2, max_size=8).map(tuple)


@given(weights=WEIGHTS)
def test_everything_is_a_sum_over_patterns(weights):
    law, k = ExchangeableSigns(weights=weights), len(weights) - 1
    patterns = list(product([1, -1], repeat=k))
    masses = [Fraction(weights[signs.count(-1)], law.total) for signs in patterns]
    assert sum(masses) == 1
    assert law.num_signs == k
    assert law.loss_ratio == max(masses) / min(masses)
    assert law.least_density == min(masses) * 2**k
    for order, correlation in enumerate(law.correlations):
        means = zip(patterns, masses, strict=True)
        assert correlation == sum(prod(signs[:order]) * mass for signs, mass in means)


def test_uniform_signs_say_nothing():
    law = ExchangeableSigns(weights=(7,) * 63)
    assert (law.loss_ratio, law.least_density) == (1, 1)
    assert law.correlations == (1,) + (0,) * 62


@pytest.mark.parametrize("weights", [(), (1,), (1, 0), (1, -1, 1)])
def test_every_pattern_must_be_possible(weights):
    with pytest.raises(ParameterError, match="weights"):
        ExchangeableSigns(weights=weights)
