"""Limits tell inside from outside and move values to the nearest inside, however large or small."""

import math

import numpy as np
import pytest

from shuffledp.collection.source.numbers import Ball, Range
from shuffledp.core.errors import ParameterError

LARGEST = np.finfo(np.float64).max


def test_both_ends_belong_to_a_range():
    numbers = Range(low=-1, high=2)
    values = np.array([[-1.0], [2.0], [np.nextafter(2.0, 3.0)], [-1.5], [math.inf], [math.nan]])
    assert numbers.outside(values).tolist() == [False, False, True, True, True, True]
    assert numbers.clip(values[:5]).ravel().tolist() == [-1.0, 2.0, 2.0, -1.0, 2.0]
    assert str(numbers) == "[-1, 2]"


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1, 0, "range 1,0 is the wrong way round or empty"),
        (1, 1, "wrong way round or empty"),
        (-LARGEST, LARGEST, "too wide"),
        (math.nan, 1, "low = nan"),
        (0, math.inf, "high = inf"),
        ("0", 1, "low = '0'"),
    ],
)
def test_impossible_ranges(low, high, message):
    with pytest.raises(ParameterError, match=message):
        Range(low=low, high=high)


@pytest.mark.parametrize("norm_bound", [0, -1, math.nan, math.inf, "1"])
def test_impossible_balls(norm_bound):
    with pytest.raises(ParameterError, match="norm_bound = "):
        Ball(norm_bound=norm_bound)


def test_the_sphere_belongs_to_the_ball():
    ball = Ball(norm_bound=5.0)
    values = np.array([[3.0, 4.0], [3.0, 4.0001], [0.0, 0.0], [-5.0, 0.0], [math.nan, 0.0]])
    assert ball.outside(values).tolist() == [False, True, False, False, True]
    assert str(ball) == "the ball of norm 5"


def test_shortening_keeps_the_direction_and_leaves_what_is_inside():
    ball = Ball(norm_bound=1.0)
    values = np.array([[3.0, 4.0], [0.0, 0.0], [0.1, 0.2], [-2.0, 0.0]])
    np.testing.assert_allclose(
        ball.clip(values), [[0.6, 0.8], [0.0, 0.0], [0.1, 0.2], [-1.0, 0.0]], rtol=1e-15
    )
    assert (ball.clip(values)[1:3] == values[1:3]).all()  # to the last bit


@pytest.mark.parametrize("bound", [1e-100, 1e-3, 1.0, 7.0, 1e100, 1e300])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e155, 1e200, LARGEST / 4])
def test_no_square_overflows_or_vanishes(bound, size):
    # Warnings are errors here, so an overflow would fail the test.
    ball = Ball(norm_bound=bound)
    values = np.array([[3.0, -4.0], [4.0, 0.0], [0.0, 0.0]]) * size
    is_long = np.array([5.0, 4.0, 0.0]) * (size / 5.0) > bound / 5.0
    np.testing.assert_array_equal(ball.outside(values), is_long)
    clipped = ball.clip(values)
    assert not ball.outside(clipped).any()
    np.testing.assert_array_equal(clipped[~is_long], values[~is_long])
    if is_long[0]:
        np.testing.assert_allclose(clipped[0] / bound, [0.6, -0.8], rtol=1e-14)


def test_infinite_coordinates_lie_outside_and_count_as_the_largest_float():
    ball = Ball(norm_bound=2.0)
    values = np.array([[math.inf, 1.0], [-math.inf, math.inf], [0.0, LARGEST]])
    assert ball.outside(values).all()
    np.testing.assert_allclose(
        ball.clip(values), [[2.0, 0.0], [-math.sqrt(2), math.sqrt(2)], [0.0, 2.0]], atol=1e-15
    )


def test_no_rows():
    ball, empty = Ball(norm_bound=1.0), np.empty((0, 3))
    assert ball.outside(empty).shape == (0,)
    assert ball.clip(empty).shape == (0, 3)
