"""Cayley's Mallows model: swaps decided fast and slowly alike, and the law of its cycles."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.groups import shuffler_kernels as kernels
from shuffledp.groups.cayley import CayleyMallows, draw_by_swaps
from shuffledp.groups.exact_draws import LazyUniform, draw_against_odds
from shuffledp.groups.permutations import LIBRARY_MARGIN


@pytest.mark.parametrize("theta", [0.0, 5e-324, 1e-12, 0.3, 1.0, 5.0, 8.0, 50.0, 700.0, 1e308])
def test_fast_and_slow_decisions_agree_on_the_same_words(theta):
    fast = draw_by_swaps(1500, theta, Entropy.from_seed(1))
    slow = draw_by_swaps(1500, theta, Entropy.from_seed(1), margin=math.inf)
    some = draw_by_swaps(1500, theta, Entropy.from_seed(1), margin=0.05)
    assert (fast == slow).all()
    assert (fast == some).all()


HALVES = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**32 - 2, 2**32 - 1])


@given(
    high=HALVES,
    low=HALVES,
    place=st.integers(1, 50),
    theta=st.floats(0.0, 30.0) | st.floats(0.0, 1.7e308),
)
def test_every_decision_of_the_kernel_is_that_of_exact_arithmetic(high, low, place, theta):
    pi = np.arange(place + 1)
    words = np.array([high << 32 | low], dtype=np.uint64)
    next_place, used, is_undecided = kernels.draw_swaps(pi, place, theta, LIBRARY_MARGIN, words)
    assert used == 1
    if low * place % 2**32 < 2**32 % place:
        assert (next_place, is_undecided) == (place, False)  # refused
    elif is_undecided:
        assert next_place == place
    else:
        uniform = LazyUniform(prefix=high, num_bits=32, entropy=Entropy.from_seed(2))
        other = low * place >> 32
        moved = place if draw_against_odds(uniform, place, theta) else None
        assert next_place == place + 1
        assert np.flatnonzero(pi != np.arange(place + 1)).tolist() == (
            [] if moved is None else [other, place]
        )


@pytest.mark.parametrize("theta", [0.1, 1.0, 3.0])
def test_words_next_to_a_boundary_are_left_undecided(theta):
    with mpmath.workdps(60):
        high = int(mpmath.floor(5 / (5 + mpmath.exp(theta)) * 2**32))
    for change, outcome in ((-1, (6, 1, False)), (0, (5, 1, True)), (1, (6, 1, False))):
        words = np.array([(high + change << 32) + 2**31], dtype=np.uint64)
        pi = np.arange(6)
        assert kernels.draw_swaps(pi, 5, theta, LIBRARY_MARGIN, words) == outcome
        assert (pi[5] == 5) == (change >= 0)


def test_cycles_follow_stirling_numbers():
    # P(d) = c(n, n - d) e^(-theta d) / psi, c being Stirling numbers of the first kind.
    num_items, theta = 12, 0.8
    counts = [1]
    for j in range(1, num_items):
        grown = [0] * (len(counts) + 1)
        for swaps, number in enumerate(counts):
            grown[swaps] += number
            grown[swaps + 1] += number * j
        counts = grown
    weights = [c * math.exp(-theta * d) for d, c in enumerate(counts)]
    psi = math.fsum(weights)
    mean = math.fsum(d * w for d, w in enumerate(weights)) / psi
    square = math.fsum(d * d * w for d, w in enumerate(weights)) / psi
    model = CayleyMallows(num_items=num_items, theta=theta)
    assert model.log_partition() == pytest.approx(math.log(psi), rel=1e-13)
    assert model.mean_distance() == pytest.approx(mean, rel=1e-13)
    assert model.variance_of_distance() == pytest.approx(square - mean**2, rel=1e-12)


def test_partition_function_of_many_items():
    # It is a rising factorial: e^(-theta (n - 1)) Gamma(e^theta + n) / Gamma(e^theta + 1).
    for theta in (0.5, 6.0):
        with mpmath.workdps(50):
            e = mpmath.exp(mpmath.mpf(theta))
            exact = mpmath.loggamma(e + 200_000) - mpmath.loggamma(e + 1) - theta * 199_999
        model = CayleyMallows(num_items=200_000, theta=theta)
        assert model.log_partition() == pytest.approx(float(exact), rel=1e-13)
