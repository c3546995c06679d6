"""Cayley's Mallows model: swaps decided fast and slowly alike."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.groups import shuffler_kernels as kernels
from shuffledp.groups.exact_draws import LazyUniform, draw_against_odds
from shuffledp.groups.mallows import draw_by_swaps
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
