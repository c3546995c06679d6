"""Exact draws of the number of forced places: the cumulative law is inverted exactly."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.groups import exact_draws as truncated_poisson
from shuffledp.groups.exact_draws import LazyUniform, draw_truncated_poisson


class Script:
    """Hands out given words, and then fails."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        return np.array([self.left.pop(0) for _ in range(count)], dtype=np.uint64)


def cumulative(num_items, theta):
    """Return P(s <= x) for x = 0, ..., n."""
    rate = mpmath.expm1(mpmath.mpf(theta))
    weights = [rate**s / mpmath.factorial(s) for s in range(num_items + 1)]
    total = mpmath.fsum(weights)
    return [mpmath.fsum(weights[: s + 1]) / total for s in range(num_items + 1)]


WORDS = st.lists(
    st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), min_size=3, max_size=3
)


@given(
    words=WORDS,
    bits=st.integers(0, 64),
    num_items=st.integers(1, 30),
    theta=st.floats(0.0, 60.0) | st.sampled_from([5e-324, 1e-300, 1e-12, math.log(2)]),
)
def test_the_least_value_whose_cumulative_probability_exceeds_u(words, bits, num_items, theta):
    with mpmath.workdps(400):
        known = words[0] >> (64 - bits)
        prefix = known << 128 | words[1] << 64 | words[2]
        u = (mpmath.mpf(prefix) + 0.5) / mpmath.mpf(2) ** (bits + 128)
        law = cumulative(num_items, theta)
        assume(min(abs(u - p) for p in law[:-1]) > mpmath.mpf(2) ** (-bits - 100))
        expected = next(s for s, p in enumerate(law) if u < p)
    uniform = LazyUniform(prefix=known, num_bits=bits, entropy=Script(*words[1:]))
    assert draw_truncated_poisson(num_items, theta, uniform) == expected


def test_words_at_a_boundary_are_decided_by_further_bits():
    with mpmath.workdps(100):
        digits = int(mpmath.floor(cumulative(9, 1.5)[4] * 2**128))
    first, second = divmod(digits, 2**64)
    for change, expected in ((-1, 4), (1, 5)):
        uniform = LazyUniform(prefix=first, num_bits=64, entropy=Script(second + change))
        assert draw_truncated_poisson(9, 1.5, uniform) == expected
        assert uniform.num_bits == 128


@pytest.mark.parametrize(
    ("num_items", "theta"), [(1000, 3.0), (1000, 6.0), (1000, 9.0), (10**6, 9.0), (10**6, 13.8)]
)
def test_sums_of_many_items_lie_within_the_stated_error(num_items, theta):
    weights = truncated_poisson._weights(num_items, theta, 64)
    finer = truncated_poisson._weights(num_items, theta, 128)
    # 64 more bits show the error of the coarser sums, and those of its tails.
    shift = weights.first - finer.first
    assert shift >= 0
    for index in range(0, len(weights.sums), 97):
        exact = Fraction(finer.sums[index + shift], 2**64)
        assert abs(exact - weights.sums[index]) < truncated_poisson.ERROR_UNITS
    whole = Fraction(finer.sums[-1], 2**64)
    assert abs(whole - weights.sums[-1]) < truncated_poisson.ERROR_UNITS
    assert weights.is_complete == (weights.first + len(weights.sums) == num_items + 1)


@pytest.mark.parametrize("theta", [46.0, 60.0, 700.0, 1e308])
def test_large_theta_forces_every_place(theta):
    uniform = LazyUniform(prefix=2**62, num_bits=64, entropy=Script())
    assert draw_truncated_poisson(10**6, theta, uniform) == 10**6


def test_tails_go_far_beyond_one_word():
    # P(s < 1) = 1 / e^700 = 2^-1009.9 for one item.
    def draw(last):
        uniform = LazyUniform(prefix=0, num_bits=64, entropy=Script(*[0] * 14, last))
        return draw_truncated_poisson(1, 700.0, uniform)

    assert draw(2**14 - 1) == 0
    assert draw(2**15) == 1


def test_outside_the_weights_worked_out_more_bits_are_drawn():
    # No bits known: the first table settles nothing, whatever the law.
    entropy = Entropy.from_seed(4)
    for theta in (0.0, 1.0, 8.0):
        uniform = LazyUniform(prefix=0, num_bits=0, entropy=entropy)
        value = draw_truncated_poisson(10**5, theta, uniform)
        assert 0 <= value <= 10**5
        assert uniform.num_bits == 64
