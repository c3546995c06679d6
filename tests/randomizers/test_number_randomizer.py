"""Rounding to a grid; and the noise that squares of reports tell, by enumeration of each law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws_of_numbers import channel_of, coarse, report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.number_randomizer import (
    BLOCK,
    Duchi,
    Piecewise,
    Span,
    blocks_of,
    round_to_grid,
)


class Scripted:
    """Hands out the words that it was given."""

    def __init__(self, words):
        self.remaining = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        found, self.remaining = self.remaining[:count].copy(), self.remaining[count:]
        return found


def chance_of_up(value, span, num_steps):
    """Return the point below, and the exact chance of the one above, from the threshold found."""

    def is_up(word):
        block = np.array([value])
        return int(round_to_grid(block, span, num_steps=num_steps, entropy=Scripted([word]))[0])

    below = is_up(2**64 - 1)
    low, high = 0, 2**64  # words below the threshold go up: bisect for it
    while low < high:
        middle = (low + high) // 2
        if middle < 2**64 and is_up(middle) > below:
            low = middle + 1
        else:
            high = middle
    return below, Fraction(low, 2**64)


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-6, 1e6),
    share=st.floats(0.0, 1.0),
    num_steps=st.sampled_from([1, 2, 695, 1024, 2**15, 2**20]),
)
def test_rounding_is_unbiased_to_the_stated_error(low, width, share, num_steps):
    span = Span(low, low + width)
    value = min(max(low + share * width, span.low), span.high)
    below, chance = chance_of_up(value, span, num_steps)
    assert 0 <= below <= below + (chance > 0) <= num_steps
    ends = Fraction(span.low), Fraction(span.high)
    exact = (Fraction(value) - ends[0]) / (ends[1] - ends[0])
    assert abs((below + chance) / num_steps - exact) <= Fraction(1, 2**51)


def test_exact_chances():
    span = Span(0.0, 4.0)
    assert chance_of_up(1.0, span, 4) == (1, 0)
    assert chance_of_up(1.25, span, 4) == (1, Fraction(1, 4))
    assert chance_of_up(3.0, span, 1) == (0, Fraction(3, 4))
    assert chance_of_up(4.0, span, 1) == (1, 0)
    assert chance_of_up(math.nextafter(4.0, 0.0), span, 1) == (0, 1 - Fraction(1, 2**53))


def test_ends_are_grid_points_whatever_the_words():
    span = Span(-0.1, 0.7)
    for num_steps in (1, 3, 777, 2**20):
        for word in (0, 2**64 - 1):
            found = round_to_grid(
                np.array([span.low, span.high]),
                span,
                num_steps=num_steps,
                entropy=Scripted([word, word]),
            )
            assert found.tolist() == [0, num_steps]


def test_one_word_a_value():
    entropy = Scripted(range(10))
    round_to_grid(np.zeros(7), Span(0, 1), num_steps=3, entropy=entropy)
    assert entropy.remaining.tolist() == [7, 8, 9]


def test_blocks_cover_the_values_once():
    values = Entropy.from_seed(1).generator().random(2 * BLOCK + 3)
    parts = list(blocks_of(values, Span(0, 1)))
    assert [where.start for where, _ in parts] == [0, BLOCK, 2 * BLOCK]
    assert np.array_equal(np.concatenate([block for _, block in parts]), values)
    for where, block in parts:
        assert np.array_equal(values[where], block)
        assert block.flags.writeable
        assert not np.shares_memory(block, values)


class TestSpan:
    def test_properties(self):
        span = Span(-1, 5)
        assert (span.width, span.middle, span.half_width) == (6.0, 2.0, 3.0)

    def test_minus_zero_is_zero(self):
        assert Span(-0.0, 1.0).stated == Span(0.0, 1.0).stated
        assert math.copysign(1.0, Span(-1.0, -0.0).high) == 1.0

    def test_the_wrong_way_round(self):
        with pytest.raises(ParameterError, match=r"low = 5 is not below high = 1.*wrong way"):
            Span(5, 1)

    def test_no_width(self):
        with pytest.raises(ParameterError, match="low = 3 is not below high = 3"):
            Span(3, 3)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "0", b"0", None, 10**400, 1j])
    def test_ends_that_are_no_finite_numbers(self, bad):
        with pytest.raises(ParameterError, match="low = "):
            Span(bad, 1.0)
        with pytest.raises(ParameterError, match="high = "):
            Span(0.0, bad)

    @pytest.mark.parametrize("ends", [(0.0, 1e-101), (-1e100, 1e100), (-1.7e308, 1.7e308)])
    def test_widths_that_floats_have_no_room_for(self, ends):
        with pytest.raises(ParameterError, match="another unit"):
            Span(*ends)


@pytest.mark.parametrize("num_steps", [1, 1024, 2**15])
def test_tiny_distances_count_as_none(num_steps):
    # They would lead to subnormal numbers, which some processors take longer for. No word tells.
    span = Span(0.0, 1.0)
    for value in (0.0, -0.0, 5e-324, 1e-310, 1e-300, 2.0**-90):
        assert chance_of_up(value, span, num_steps) == (0, 0)
    assert chance_of_up(2.0**-60, span, num_steps) == (0, Fraction(num_steps, 2**60))


LOW, HIGH = 2.0, 8.0
LAWS = [
    coarse(2)(low=LOW, high=HIGH, epsilon0=1.0),
    coarse(4)(low=LOW, high=HIGH, epsilon0=4.4),
]
UNTOLD = [Duchi(low=LOW, high=HIGH, epsilon0=1.0)]


def grid_rows(randomizer):
    """Return all reports, and their probabilities given each point of the grid."""
    rows = np.array([[float(p) for p in row] for row in channel_of(randomizer)])
    dtype = np.uint8 if isinstance(randomizer, Duchi) else np.uint16
    return np.arange(rows.shape[1]).astype(dtype), rows


def moments(randomizer, value):
    """Return mean and mean square of the score of a value, by the rows that it is rounded to."""
    codes, rows = grid_rows(randomizer)
    scores = randomizer.scores(Reports(data=codes, fingerprint=randomizer.fingerprint))[:, 0]
    position = (value - LOW) / (HIGH - LOW) * (len(rows) - 1)
    below = min(math.floor(position), len(rows) - 2)
    law = (1.0 - position + below) * rows[below] + (position - below) * rows[below + 1]
    return float(law @ scores), float(law @ scores**2)


@pytest.mark.parametrize("randomizer", LAWS, ids=lambda law: f"{law.name}-{law.epsilon0:.2g}")
def test_the_noise_is_unbiased_at_the_worst_rounding_and_never_below(randomizer):
    noise, (_, factor) = randomizer.noise_law(), randomizer.score_scale
    steps = len(grid_rows(randomizer)[1]) - 1
    # On the grid, where rounding adds nothing; halfway between two points; and elsewhere.
    for value in np.linspace(LOW, HIGH, 8 * steps + 1):
        mean, square = moments(randomizer, value)
        variance = (square - mean**2) * factor**2
        told = (noise.share * square + noise.constant) * factor**2
        excess = ((HIGH - LOW) / 2 / steps) ** 2
        assert variance - 1e-9 <= told <= variance + excess + 1e-9
        assert noise.least * factor**2 <= variance + 1e-9
        halfway = (value - LOW) / (HIGH - LOW) * steps % 1.0 == 0.5
        if halfway:
            assert told == pytest.approx(variance)


@pytest.mark.parametrize("randomizer", UNTOLD, ids=lambda law: law.name)
def test_a_bit_tells_nothing(randomizer):
    noise, (_, factor) = randomizer.noise_law(), randomizer.score_scale
    assert math.isnan(noise.share)
    squares = {round(moments(randomizer, value)[1], 9) for value in np.linspace(LOW, HIGH, 5)}
    assert len(squares) == 1
    mean, square = moments(randomizer, HIGH)
    assert noise.least * factor**2 == pytest.approx((square - mean**2) * factor**2)


@pytest.mark.parametrize("make", [Duchi, Piecewise])
def test_reports_that_say_nothing_are_refused(make):
    with pytest.raises(ParameterError, match="epsilon0"):
        make(low=LOW, high=HIGH, epsilon0=0.0).noise_law()


def test_equal_bits_leave_the_least_noise():
    # All of ten bits are ones: the spread of the reports is 0, which is no error of 0.
    randomizer = Duchi(low=0, high=1, epsilon0=2.0)
    reports = Reports(data=np.ones(10, dtype=np.uint8), fingerprint=randomizer.fingerprint)
    estimates = randomizer.estimate(reports)
    least = math.sqrt(report_variance(randomizer, 1.0) / 10)
    assert estimates.standard_error[0] == pytest.approx(least)
    assert estimates.population_standard_error[0] == pytest.approx(least)
