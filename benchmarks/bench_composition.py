"""Seconds and bracket widths of composition, beside dp-accounting on the same losses.

The baseline is what a user of dp-accounting does: its own self-composition of one round's privacy
loss, exported from here, at its default resolution. ``extra_info`` has

- ``bracket``: relative distance of upper and lower end for the *same* pair of laws;
- ``peak_megabytes``: of the process while composing;
- ``times_baseline``: how much faster than the baseline, measured just before in the same run.
"""

import functools
import gc
import itertools
import time
import tracemalloc

import pytest

from shuffledp import accounting
from shuffledp.amplification.atom_law import atom_delta
from shuffledp.amplification.clones_and_families import clone_law
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition.compose_losses import compose_curves
from shuffledp.composition.privacy_loss import to_dp_accounting

DELTA = 1e-6
LARGEST_FOR_BASELINE = 1000  # beyond it the baseline takes minutes


NUM_USERS = 100_000

_ever_new = itertools.count()


def daily():
    """One round; a slightly different one each time, so that nothing is remembered from before."""
    epsilon0 = 1.0 + 1e-9 * next(_ever_new)
    return accounting.ShuffledRelease(epsilon0=epsilon0, num_users=NUM_USERS)


def bracket(rounds):
    """Return the relative width of upper and lower end for the same pair of laws."""
    enclose = functools.partial(atom_delta, clone_law(1.0), NUM_USERS)
    curve = HockeyStickCurve(forward=enclose, backward=enclose, highest=1.0)
    ends = [
        compose_curves([(curve, rounds)], smallest_delta=DELTA * 1e-3, upper=upper).epsilon(DELTA)
        for upper in (True, False)
    ]
    return (ends[0] - ends[1]) / ends[0]


@pytest.mark.parametrize("rounds", [10, 365, 1000, 10**6])
def test_homogeneous_rounds(benchmark, rounds):
    """Compose equal rounds of any randomizer, upper end."""
    if rounds <= LARGEST_FOR_BASELINE:
        loss = to_dp_accounting(daily().privacy_loss(smallest_delta=1e-12))
        start = time.perf_counter()
        baseline = loss.self_compose(rounds).get_epsilon_for_delta(DELTA)
        baseline_seconds = time.perf_counter() - start

    def compose():
        return (daily() * rounds).epsilon(DELTA, with_lower=False)

    compose()  # compile
    bound = benchmark.pedantic(compose, rounds=3)
    benchmark.extra_info["upper"] = bound.upper
    benchmark.extra_info["bracket"] = bracket(rounds)
    gc.collect()
    tracemalloc.start()
    compose()
    benchmark.extra_info["peak_megabytes"] = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    if rounds <= LARGEST_FOR_BASELINE:
        assert bound.upper == pytest.approx(baseline, rel=0.02)
        if benchmark.enabled:
            median = benchmark.stats.stats.median
            benchmark.extra_info["times_baseline"] = baseline_seconds / median


def test_a_year_of_different_rounds(benchmark):
    """Compose daily, weekly and monthly collections of different sizes."""

    def compose():
        weekly = accounting.ShuffledRelease(epsilon0=2.0, num_users=20_000)
        monthly = accounting.ShuffledRelease(epsilon0=0.5, num_users=5_000)
        return (daily() * 365 + weekly * 52 + monthly * 12).epsilon(DELTA)

    bound = benchmark.pedantic(compose, rounds=3, warmup_rounds=1)
    benchmark.extra_info["upper"] = bound.upper
    benchmark.extra_info["gap"] = bound.gap
