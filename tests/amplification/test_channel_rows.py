"""Channel matrices: what is refused, and the losses that a profile states."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import enumeration
from oracles.given_channels import random_channel, randomized_response
from shuffledp.amplification.channel_rows import channel_profile, channel_rows, rows_of, worst_ratio
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

HALF = [0.5, 0.5]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([0.5, 0.5], "shape"),
        ([HALF], "two or more inputs"),
        ([[], []], "shape"),
        ([HALF, [1.0]], "rows of one length"),
        ([HALF, ["a", "b"]], "rows of one length, of numbers"),
        ([HALF, [-0.1, 1.1]], "entry -0.1 in row 2, column 1"),
        ([HALF, [math.nan, 1.0]], "entry nan in row 2, column 1"),
        ([HALF, [math.inf, 0.0]], "entry inf"),
        ([HALF, [1e-300, 1.0]], "neither 0 nor in"),
        # As doubles these are 0, and two rows would be equal.
        ([HALF, [Fraction(1, 10**400), 1 - Fraction(1, 10**400)]], "entry next to 0 in row 2"),
        ([HALF, [0.5, 0.4]], "row 2 of the channel matrix sums to 0.9"),
        (np.full((201, 2), 0.5), "too large"),
        (np.zeros((3, 7_000_000), dtype=np.int8), "too large"),
    ],
)
def test_what_is_no_channel_is_refused(matrix, message):
    with pytest.raises(ParameterError, match=message) as error:
        channel_rows(matrix)
    assert "\n" not in str(error.value)


def test_rows_are_normalised_and_read_only():
    channel = channel_rows([[0.5 + 4e-10, 0.5], [0.25, 0.75]])
    assert channel.rows.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-15)
    assert not channel.rows.flags.writeable
    assert not channel.hidden.flags.writeable


def test_repeated_inputs_and_outputs_that_never_occur_are_left_out():
    channel = channel_rows([[0.5, 0.0, 0.5], [0.25, 0.0, 0.75], [0.5, 0.0, 0.5]])
    assert channel.rows.tolist() == [[0.5, 0.5], [0.25, 0.75]]
    assert channel.num_inputs == 2


@pytest.mark.parametrize("k", [2, 5, 200])
@pytest.mark.parametrize("epsilon0", [1e-6, 0.3, 1.0, 9.0, 25.0])
def test_loss_of_randomized_response(k, epsilon0):
    profile = channel_profile(randomized_response(k, epsilon0))
    assert epsilon0 - 1e-15 <= profile.epsilon0 <= epsilon0 * (1.0 + 1e-13) + 1e-13
    assert (profile.delta0, profile.domain_size) == (0.0, k)


def test_loss_of_fractions_is_rounded_up():
    for ratio in (Fraction(3), Fraction(10**17 + 1, 10**17), Fraction(7, 5)):
        rows = enumeration.randomized_response(3, ratio)
        loss = channel_profile(rows).epsilon0
        assert loss >= math.log1p(float(ratio - 1))
        assert loss <= math.log1p(float(ratio - 1)) + 1e-13


def test_equal_rows_lose_nothing():
    profile = channel_profile([[0.1, 0.9]] * 3)
    assert (profile.epsilon0, profile.delta0, profile.domain_size) == (0.0, 0.0, None)


def test_rows_that_round_to_the_same_are_not_called_equal():
    third = Fraction(1, 3)
    nearly = third + Fraction(1, 10**20)
    assert float(nearly) == float(third)
    profile = channel_profile([[third, 1 - third], [nearly, 1 - nearly]])
    assert 0.0 < profile.epsilon0 < 1e-13
    assert channel_rows(np.array([[1 / 3, 2 / 3]] * 2)).unresolved == 0.0


@given(st.integers(0, 10**6))
def test_the_stated_losses_hold_and_no_smaller_delta0_does(seed):
    rows = random_channel(seed, zeros=True)
    channel = channel_rows(rows)
    e = math.exp(channel.epsilon0)
    worst = max(np.maximum(p - e * q, 0.0).sum() for p in rows for q in rows)
    assert worst <= channel.delta0 + 1e-15
    certain = max(p[q == 0.0].sum() for p in rows for q in rows)
    assert certain <= channel.delta0 <= certain * (1.0 + 1e-13)


def test_inputs_with_no_output_in_common_are_refused():
    with pytest.raises(OutOfRegimeError, match="no output in common"):
        channel_profile([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


def test_what_a_crowd_cannot_hide_is_left_out_of_the_blanket():
    channel = channel_rows([[0.5, 0.5 - 1e-3, 1e-3], [0.5, 0.5 - 1e-20, 1e-20]])
    assert channel.hidden.tolist() == [0.5, 0.499, 0.0]
    assert channel.delta0 == 0.0


def test_a_profile_remembers_its_channel():
    profile = channel_profile([[0.75, 0.25], [0.25, 0.75]])
    assert profile.family is RandomizerFamily.OTHER
    assert rows_of(profile) is rows_of(profile)
    with pytest.raises(ParameterError, match="no channel"):
        rows_of(LocalProfile(epsilon0=1.0))


def test_a_channel_that_cannot_be_hashed_is_prepared_each_time():
    class Unhashable:
        __hash__ = None

        def __call__(self):
            return [[0.75, 0.25], [0.25, 0.75]]

    profile = LocalProfile(epsilon0=1.2, family=RandomizerFamily.OTHER, channel=Unhashable())
    assert rows_of(profile).rows.tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_worst_ratio_names_inputs_and_output():
    worst = worst_ratio(np.array([[0.5, 0.4, 0.1], [0.2, 0.4, 0.4], [0.3, 0.5, 0.2]]))
    assert (worst.likely, worst.unlikely, worst.output) == (1, 0, 2)
    assert worst.ratio == pytest.approx(4.0)
    assert worst.finite_log_ratio >= math.log(4.0)


def test_the_worst_of_infinite_ratios_is_the_likeliest():
    worst = worst_ratio(np.array([[0.5, 0.0, 0.5], [0.2, 0.8, 0.0]]))
    assert (worst.likely, worst.unlikely, worst.output) == (1, 0, 1)
    assert worst.ratio == math.inf
    assert worst.finite_log_ratio == pytest.approx(math.log(2.5))


def test_rows_without_a_difference_have_no_worst_ratio():
    worst = worst_ratio(np.array([[0.5, 0.5], [0.5, 0.5]]))
    assert (worst.ratio, worst.finite_log_ratio) == (1.0, 0.0)
