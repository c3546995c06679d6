"""What the profiles lead to is never below the exact divergence of the shuffled law."""

import itertools
from fractions import Fraction

import pytest

from laws_of_numbers import channel_of, coarse
from oracles.enumeration import ShuffledDivergence
from shuffledp.amplification.registry import account_delta
from shuffledp.randomizers import Duchi

EPSILON0 = (0.3, 0.7, 1.5)
SHARES = (0.1, 0.4, 0.7, 0.95)  # central epsilon, as a share of epsilon0


def mixture(channel, place):
    """Return the law of a report of a value at a place between grid points."""
    below = min(int(place), len(channel) - 2)
    part = Fraction(place) - below
    pairs = zip(channel[below], channel[below + 1], strict=True)
    return [float((1 - part) * a + part * b) for a, b in pairs]


def laws_of(randomizer):
    """Return the rows of the channel, and of values between its grid points."""
    channel = channel_of(randomizer)
    steps = len(channel) - 1
    places = sorted(
        {Fraction(i) for i in range(steps + 1)} | {Fraction(1, 3), steps - Fraction(1, 2)}
    )
    return [mixture(channel, place) for place in places]


def randomizers(epsilon0):
    yield Duchi(low=0, high=1, epsilon0=epsilon0)
    yield coarse(1)(low=0, high=1, epsilon0=epsilon0)
    yield coarse(2)(low=0, high=1, epsilon0=epsilon0)


@pytest.mark.parametrize("epsilon0", EPSILON0)
@pytest.mark.parametrize("num_users", [2, 3])
def test_bounds_are_above_the_exact_divergence(epsilon0, num_users):
    for randomizer in randomizers(epsilon0):
        exact = ShuffledDivergence(laws_of(randomizer), num_users)
        for share in SHARES:
            epsilon = share * randomizer.epsilon0
            bound = account_delta(randomizer.profile, num_users=num_users, epsilon=epsilon)
            assert exact.delta(epsilon) <= bound.upper + 1e-14


@pytest.mark.parametrize("epsilon0", EPSILON0)
def test_values_between_grid_points_add_nothing(epsilon0):
    # Joint convexity: the largest divergence is that of data on grid points.
    for randomizer, num_users in itertools.product(randomizers(epsilon0), (2, 3)):
        on_grid = [[float(p) for p in row] for row in channel_of(randomizer)]
        everywhere = ShuffledDivergence(laws_of(randomizer), num_users)
        of_grid = ShuffledDivergence(on_grid, num_users)
        for share in SHARES:
            epsilon = share * randomizer.epsilon0
            assert everywhere.delta(epsilon) == pytest.approx(of_grid.delta(epsilon), abs=1e-14)


def test_a_profile_that_claims_too_little_is_found():
    # The law of epsilon0 = 1.5 does not keep what that of epsilon0 = 1.2 promises.
    exact = ShuffledDivergence(laws_of(coarse(1)(low=0, high=1, epsilon0=1.5)), num_users=2)
    claimed = coarse(1)(low=0, high=1, epsilon0=1.2).profile
    assert exact.delta(0.6) > account_delta(claimed, num_users=2, epsilon=0.6).upper
