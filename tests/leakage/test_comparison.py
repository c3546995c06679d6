"""Two views of one collection, and the two mechanisms that only one of them tells apart."""

import math

import numpy as np
import pytest

from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channels.builders import randomizer_channel, shuffle_channel
from shuffledp.leakage.comparison import compare_views


def test_the_two_views_rank_differently():
    """The lesson: a shuffler alone against a randomizer alone."""
    alone, noise, both = compare_views(200, 2, [0.9], delta=1e-6)
    assert alone.epsilon.upper == math.inf > noise.epsilon.upper
    assert alone.uninformed.upper < 0.53
    assert noise.uninformed.upper == 0.9
    assert alone.strong.lower == 1.0 > noise.strong.upper
    for view in (alone, noise):
        assert both.epsilon.upper < view.epsilon.upper
        assert both.uninformed.upper < view.uninformed.upper
        assert both.strong.upper < view.strong.upper
    assert both.uninformed.lower <= both.strong.upper


def of_the_first_person(channel, n):
    """Return the largest odds, and the uninformed and the strong adversary's success, of bits."""
    zero, one = channel.to_dense().reshape(2, 2 ** (n - 1), -1)
    high, low = np.maximum(zero, one), np.minimum(zero, one)
    with np.errstate(divide="ignore"):
        odds = (high[high > 0.0] / low[high > 0.0]).max()
    uninformed = np.maximum(zero.mean(axis=0), one.mean(axis=0)).sum() / 2.0
    return odds, uninformed, high.sum(axis=1).max() / 2.0


def test_against_whole_channels():
    n, truth = 4, 0.8
    alone, noise, both = compare_views(n, 2, [truth], delta=0.0)
    shuffle = shuffle_channel(n, 2)
    randomizer = randomizer_channel(n, 2, truth)
    for view, channel in ((alone, shuffle), (noise, randomizer), (both, randomizer @ shuffle)):
        odds, uninformed, strong = of_the_first_person(channel, n)
        assert view.uninformed.lower - 1e-12 <= uninformed <= view.uninformed.upper + 1e-12
        assert view.strong.lower - 1e-12 <= strong <= view.strong.upper + 1e-12
        assert math.log(odds) <= view.epsilon.upper * (1.0 + 1e-12)


def test_views_as_plain_values():
    alone, noise, _ = compare_views(10, 3, [0.5], delta=1e-6)
    assert alone.to_json_dict()["epsilon"] is None
    found = noise.to_json_dict()
    assert found["name"] == "randomizer alone, p = 0.5"
    assert found["uninformed"] == found["strong"] == [0.5, 0.5]


def test_useless_reports():
    _, noise, both = compare_views(10, 4, [0.25], delta=1e-6)
    assert both.uninformed.upper == pytest.approx(0.25)
    assert both.strong.upper == pytest.approx(0.25)
    assert noise.epsilon.upper < 1e-9


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"num_users": 0}, "num_users"),
        ({"num_values": 1}, "num_values"),
        ({"truths": [1.0]}, "truths"),
        ({"truths": [math.nan]}, "truth"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_bad_input(change, name):
    arguments = {"num_users": 10, "num_values": 2, "truths": [0.8], "delta": 1e-6, **change}
    with pytest.raises(ParameterError, match=name):
        compare_views(**arguments)


def test_below_the_hypothesis():
    with pytest.raises(OutOfRegimeError, match="truth"):
        compare_views(10, 4, [0.2], delta=1e-6)
