"""Errors of running counts grow with n, d, k and epsilon0 as Theorem 6 says, on log-log axes.

Slopes of exact standard deviations, and of seeded runs. Theorem 6 of Erlingsson, Feldman, Mironov,
Raghunathan, Talwar, Thakurta, arXiv:1811.12469v2: O(k (log d)^2 sqrt(n) / epsilon); sharper here by
sqrt(log d), and with pre-drawn signs sqrt(k) in place of k.

Every test has a fixed seed. The declared rate is the probability that correct code would fail for a
seed chosen at random.
"""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from shuffledp.core.entropy import Entropy
from shuffledp.monitoring.client import ClientFleet
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.running_counts import expected_standard_errors
from shuffledp.monitoring.server import MonitorServer

FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 10  # two tails of each run

BASE = {"num_users": 10**6, "periods": 255, "max_changes": 4, "epsilon0": 0.5}


def largest_error(protocol="predrawn-signs", **changed):
    """Return the largest exact standard deviation of all periods (to an upper bound's slack)."""
    at = BASE | changed
    num_users = at.pop("num_users")
    design = MonitorDesign(protocol=protocol, **at)
    errors = expected_standard_errors(design, num_users=num_users, through=design.periods)
    return float(errors.max())


def slope(horizontal, errors):
    return float(np.polyfit(np.log(horizontal), np.log(errors), 1)[0])


@pytest.mark.parametrize("protocol", ["predrawn-signs", "sampled-change"])
def test_with_the_number_of_users_a_half(protocol):
    users = [10**3, 10**5, 10**7, 10**9]
    errors = [largest_error(protocol, num_users=n) for n in users]
    assert slope(users, errors) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(("protocol", "expected"), [("predrawn-signs", 0.5), ("sampled-change", 1)])
def test_with_the_number_of_changes_a_half_or_one(protocol, expected):
    changes = [2, 6, 14, 30, 62] if protocol == "predrawn-signs" else [2, 6, 14, 30, 62, 126]
    errors = [largest_error(protocol, max_changes=k) for k in changes]
    assert slope(changes, errors) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("protocol", ["predrawn-signs", "sampled-change"])
def test_with_epsilon0_minus_one(protocol):
    losses = [0.01, 0.03, 0.1, 0.3]
    errors = [largest_error(protocol, epsilon0=each) for each in losses]
    assert slope(losses, errors) == pytest.approx(-1.0, abs=0.03)


def test_with_the_logarithm_of_the_periods_one():
    # sd = (L / gap) sqrt(n V / L), V at most L: slope 1. Theorem 6 has 2, one half of it for the
    # logarithm in the deviation, which the quantile of a band has, too.
    levels = [10, 13, 16, 19]
    errors = [largest_error(periods=2**each - 1) for each in levels]
    assert slope(levels, errors) == pytest.approx(1.0, abs=0.06)


# ---------------------------------------------------------------- seeded runs
def mean_square_error(num_users, periods, max_changes, epsilon0, runs):
    """Return mean squared errors at the last period, in units of the variance stated, and that."""
    design = MonitorDesign(periods=periods, max_changes=max_changes, epsilon0=epsilon0)
    errors = []
    for each in range(runs):
        key = Entropy.from_seed(600 + each).words(4).tobytes()
        fleet = ClientFleet.drawn(design, num_users, key)
        server = MonitorServer(design)
        for t in range(1, periods + 1):
            users = np.arange(num_users // 2) if t == periods // 2 else np.arange(0)
            fleet.follow(users, np.zeros(users.size, dtype=np.int64))
            server.add_sums(t, fleet.period_sums(t), num_reports=1)
        estimate = server.estimate(periods, num_users=num_users, simultaneous=False)
        errors.append(float(estimate.counts) - num_users // 2)
    stated = float(estimate.standard_errors)
    return float(np.mean(np.square(errors))) / stated**2, stated


@pytest.mark.parametrize(
    ("num_users", "periods", "max_changes", "epsilon0"),
    [
        (1_000, 15, 2, 1.0),
        (16_000, 15, 2, 1.0),
        (1_000, 63, 2, 1.0),
        (1_000, 15, 10, 1.0),
        (1_000, 15, 2, 0.25),
    ],
)
def test_runs_have_the_errors_that_the_slopes_are_of(num_users, periods, max_changes, epsilon0):
    runs = 120
    ratio, stated = mean_square_error(num_users, periods, max_changes, epsilon0, runs)
    # Sums of hundreds of signs: normal, so that the sum of squares is a chi-square. Its true
    # variance is below what is stated by 1 / (n / 2) of the squared mean: at most 2 %.
    share = FALSE_POSITIVE_RATE / NUM_TESTS
    assert chi2.sf(runs * ratio, runs) > share
    assert chi2.cdf(runs * ratio / 0.98, runs) > share
    # Errors that were twice as large would be seen.
    assert chi2.sf(4 * runs * ratio, runs) < share
    assert math.isfinite(stated)
