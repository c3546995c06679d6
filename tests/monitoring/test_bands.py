"""How far bands reach: against an independent computation, and against what must bound them.

The declared rate is the probability that correct code would fail for seeds chosen at random.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.estimation.intervals import normal_quantile
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import (
    band_quantile,
    level_weighted_sums,
    online_running_counts,
    smoothed_running_counts,
)

FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 20
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS


def reach_of(num_periods, confidence, *, domain_size=1, simultaneous=True):
    return band_quantile(
        confidence, num_periods=num_periods, domain_size=domain_size, simultaneous=simultaneous
    )


@pytest.mark.parametrize("kind", ["online", "smoothed"])
@pytest.mark.parametrize("periods", [5, 32])
def test_bands_hold_in_an_independent_simulation(periods, kind):
    tree = PeriodTree(periods=periods)
    reach = reach_of(periods, 0.9)
    runs = 40_000
    noise = Entropy.from_seed(4).generator().standard_normal((tree.num_nodes, runs))
    estimator = online_running_counts if kind == "online" else smoothed_running_counts
    weights = estimator(tree, level_weighted_sums(tree, np.eye(tree.num_nodes)), periods)
    deviations = np.linalg.norm(weights, axis=1)[:, None]
    held = int((np.abs(weights @ noise) <= reach * deviations).all(axis=0).sum())
    assert binom.cdf(held, runs, 0.9) > RATE_PER_TEST  # not too short
    assert held / runs < 0.93  # nor much too wide
    # A band that is a tenth shorter would be found out; Sidak's quantile leaves a few per cent.
    short = int((np.abs(weights @ noise) <= 0.9 * reach * deviations).all(axis=0).sum())
    assert binom.cdf(short, runs, 0.9) < RATE_PER_TEST


@pytest.mark.parametrize("periods", [1, 2, 31, 365])
def test_never_wider_than_bonferroni_nor_shorter_than_one_period(periods):
    for confidence in (0.5, 0.95, 1 - 1e-9):
        reach = reach_of(periods, confidence)
        bonferroni = -ndtri((1 - confidence) / (2 * periods))
        single = reach_of(periods, confidence, simultaneous=False)
        assert single == normal_quantile(confidence)
        assert single <= reach * (1 + 1e-12)
        assert reach <= bonferroni * (1 + 1e-12)


def test_many_values_share_the_error():
    reaches = [reach_of(16, 0.95, domain_size=values) for values in (1, 2, 1000)]
    assert reaches == sorted(reaches)
    assert reaches[2] <= -ndtri(0.025 / 16_000) * (1 + 1e-12)
    assert reaches[1] == pytest.approx(reach_of(16, 0.975), rel=1e-12)


def test_sidak_is_exact_for_independent_errors():
    reach = reach_of(50, 0.9)
    assert (2 * ndtr(reach) - 1) ** 50 == pytest.approx(0.9, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan, -1.0])
def test_confidence_out_of_range_is_refused(confidence):
    for simultaneous in (True, False):
        with pytest.raises(ParameterError, match=r"confidence = .* is not in \(0, 1\)"):
            reach_of(4, confidence, simultaneous=simultaneous)
