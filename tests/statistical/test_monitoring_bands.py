"""Bands of running counts hold at their level over the whole pipeline: clients, reports, server.

Every test has a fixed seed, so it gives the same answer on every run. The declared rate is the
probability that correct code would fail for a seed chosen at random.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.estimation.intervals import normal_quantile
from shuffledp.monitoring.client import ClientFleet
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.server import MonitorServer

# For the whole module; each of the tests takes an equal share, on either side.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 24
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS

CONFIDENCE = 0.9
NUM_USERS = 2_000
PERIODS = 32
RUNS = 2_000
FEWER_RUNS = 200

WAYS = {"online": {}, "smoothed": {"smoothed": True}}


def histories(domain_size):
    """Return users and new codes by period, and the true counts: slow adoption, and an event."""
    generator = Entropy.from_seed(500).generator()
    starts = generator.integers(1, 3 * PERIODS, NUM_USERS)
    leavers = np.flatnonzero((starts < 20) & (generator.random(NUM_USERS) < 0.4))
    state = np.full(NUM_USERS, -1)
    events, truth = [], []
    for t in range(1, PERIODS + 1):
        users = leavers if t == 20 else np.flatnonzero(starts == t)
        codes = np.full(users.size, -1) if t == 20 else users % max(domain_size, 2)
        if domain_size == 1:
            codes = np.full(users.size, -int(t == 20))
        state[users] = codes
        events.append((users, codes))
        values = range(domain_size)
        truth.append([int((state == value).sum()) for value in values])
    return events, np.array(truth)


def run(design, events, seed):
    """Return the server after all reports of a fleet."""
    key = Entropy.from_seed(seed).words(4).tobytes()
    fleet = ClientFleet.drawn(design, NUM_USERS, key)
    server = MonitorServer(design)
    for t, (users, codes) in enumerate(events, 1):
        fleet.follow(users, codes)
        server.add_sums(t, fleet.period_sums(t), num_reports=1)
    return server


@cache
def coverage(protocol, domain_size, runs):
    """Return how often the bands, and halves of them, held at all periods at once, for each way."""
    domain = None if domain_size == 1 else tuple("abcdefgh")[:domain_size]
    design = MonitorDesign(
        periods=PERIODS, max_changes=2, epsilon0=1.5, protocol=protocol, domain=domain
    )
    events, truth = histories(domain_size)
    if domain_size == 1:
        truth = truth[:, 0]
    held = dict.fromkeys(WAYS, 0)
    half_held = dict.fromkeys(WAYS, 0)
    one_held = dict.fromkeys(WAYS, 0)
    for seed in range(runs):
        server = run(design, events, 10_000 + seed)
        for name, way in WAYS.items():
            counts = server.running_counts(num_users=NUM_USERS, confidence=CONFIDENCE, **way)
            off = np.abs(counts.counts - truth)
            reach = counts.upper - counts.counts
            held[name] += bool((off <= reach).all())
            half_held[name] += bool((off <= 0.5 * reach).all())
            # Period 23 alone, with what simultaneous=False multiplies standard errors by.
            alone = normal_quantile(CONFIDENCE) * counts.standard_errors[22]
            one_held[name] += bool((off[22] <= alone).all())
    return held, half_held, one_held


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["predrawn-signs", "sampled-change"])
@pytest.mark.parametrize("way", WAYS)
def test_bands_of_all_periods_hold_at_once(way, protocol):
    runs = RUNS if protocol == "predrawn-signs" else FEWER_RUNS
    held, half_held, one_held = coverage(protocol, 1, runs)
    assert binom.cdf(held[way], runs, CONFIDENCE) > RATE_PER_TEST
    # A band of half the width would be found out.
    assert binom.cdf(half_held[way], runs, CONFIDENCE) < RATE_PER_TEST
    # For one period the level is met from both sides: the variance is hardly overstated.
    assert binom.cdf(one_held[way], runs, CONFIDENCE) > RATE_PER_TEST
    assert binom.sf(one_held[way] - 1, runs, CONFIDENCE + 0.02) > RATE_PER_TEST


@pytest.mark.slow
@pytest.mark.parametrize("domain_size", [3, 6])
@pytest.mark.parametrize("way", WAYS)
def test_bands_of_all_values_hold_at_once(way, domain_size):
    held, half_held, _ = coverage("predrawn-signs", domain_size, FEWER_RUNS)
    assert binom.cdf(held[way], FEWER_RUNS, CONFIDENCE) > RATE_PER_TEST
    assert binom.cdf(half_held[way], FEWER_RUNS, CONFIDENCE) < RATE_PER_TEST
