"""The noise that squares of reports tell: its mean by enumeration of each law, on every grid."""

import math

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.numbers.duchi import Duchi
from shuffledp.randomizers.numbers.hybrid import Hybrid
from shuffledp.randomizers.numbers.laplace import DiscreteLaplace
from shuffledp.randomizers.numbers.piecewise import Piecewise

LOW, HIGH = 2.0, 8.0
LAWS = [
    Piecewise(low=LOW, high=HIGH, epsilon0=1.0, resolution=2),
    Piecewise(low=LOW, high=HIGH, epsilon0=4.4, resolution=4),
    Hybrid(low=LOW, high=HIGH, epsilon0=0.8, resolution=4),
    Hybrid(low=LOW, high=HIGH, epsilon0=4.4, resolution=2),
    DiscreteLaplace(low=LOW, high=HIGH, epsilon0=1.5, resolution=4),
]
UNTOLD = [
    Duchi(low=LOW, high=HIGH, epsilon0=1.0),
    Hybrid(low=LOW, high=HIGH, epsilon0=0.5, resolution=4),
]


def grid_rows(randomizer):
    """Return all reports, and their probabilities given each point of the grid."""
    if isinstance(randomizer, DiscreteLaplace):
        rate, steps = randomizer.epsilon0 / randomizer.law.num_steps, randomizer.law.num_steps
        codes = np.arange(-randomizer.law.margin, steps + randomizer.law.margin + 1)
        rows = np.array([np.exp(-rate * np.abs(codes - i)) for i in range(steps + 1)])
        return codes.astype(np.int32), rows / rows.sum(axis=1, keepdims=True)
    rows = np.array([[float(p) for p in row] for row in randomizer.channel()])
    rows = rows[:, rows.max(axis=0) > 0.0]  # the last ones, where a coin never chooses them
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
        if halfway and not isinstance(randomizer, Hybrid):
            assert told == pytest.approx(variance)


@pytest.mark.parametrize("randomizer", UNTOLD, ids=lambda law: law.name)
def test_a_bit_tells_nothing(randomizer):
    noise, (_, factor) = randomizer.noise_law(), randomizer.score_scale
    assert math.isnan(noise.share)
    squares = {round(moments(randomizer, value)[1], 9) for value in np.linspace(LOW, HIGH, 5)}
    assert len(squares) == 1
    mean, square = moments(randomizer, HIGH)
    assert noise.least * factor**2 == pytest.approx((square - mean**2) * factor**2)


@pytest.mark.parametrize("make", [Duchi, Hybrid, Piecewise, DiscreteLaplace])
def test_reports_that_say_nothing_are_refused(make):
    with pytest.raises(ParameterError, match="epsilon0"):
        make(low=LOW, high=HIGH, epsilon0=0.0).noise_law()


def test_equal_bits_leave_the_least_noise():
    # All of ten bits are ones: the spread of the reports is 0, which is no error of 0.
    randomizer = Duchi(low=0, high=1, epsilon0=2.0)
    reports = Reports(data=np.ones(10, dtype=np.uint8), fingerprint=randomizer.fingerprint)
    estimates = randomizer.estimate(reports)
    least = math.sqrt(randomizer.report_variance(1.0) / 10)
    assert estimates.standard_error[0] == pytest.approx(least)
    assert estimates.population_standard_error[0] == pytest.approx(least)
