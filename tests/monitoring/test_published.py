"""The printed algorithms: biased by log2(d) / (log2(d) + 1) exactly; the corrected one is not."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from oracles.period_trees import index
from oracles.published_monitoring import (
    PublishedClient,
    published_running_counts,
    published_scale,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.client import MonitorReport
from shuffledp.monitoring.design import MonitorDesign, PeriodTree
from shuffledp.monitoring.running_counts import running_sums

EPSILON = 2 * math.log(3)  # a sign is kept with probability 3/4


def expected_node_sums(changes, max_changes, kept):
    """Return the mean of each node's report of Algorithm 1, over h*, kappa* and b, exactly."""
    tree = PeriodTree(periods=len(changes))
    sums = [Fraction(0)] * tree.num_nodes
    places = [t for t, change in enumerate(changes) if change]
    for level, kappa in itertools.product(range(1, tree.num_levels + 1), range(max_changes)):
        if kappa < len(places):
            node = index(tree, level, places[kappa] // 2 ** (level - 1) + 1)
            chance = Fraction(1, tree.num_levels * max_changes)
            sums[node] += chance * (2 * kept - 1) * changes[places[kappa]]
    return tree, np.array(sums)


@pytest.mark.parametrize("periods", [1, 2, 4, 8])
@pytest.mark.parametrize("max_changes", [1, 2, 3])
def test_printed_counts_are_too_small_by_one_level_in_all(periods, max_changes):
    levels = periods.bit_length()
    printed = Fraction(round(published_scale(periods, max_changes, EPSILON)))
    assert float(printed) == pytest.approx(published_scale(periods, max_changes, EPSILON))
    assert printed == 2 * max_changes * (levels - 1)
    for states in itertools.product([0, 1], repeat=periods):
        changes = [int(change) for change in np.diff(states, prepend=0)]
        if sum(map(abs, changes)) > max_changes:
            continue
        tree, sums = expected_node_sums(changes, max_changes, Fraction(3, 4))
        estimates = [printed * each for each in running_sums(tree, sums, periods)]
        assert estimates == [Fraction(levels - 1, levels) * state for state in states]
        corrected = [2 * max_changes * levels * each for each in running_sums(tree, sums, periods)]
        assert corrected == list(states)


def test_the_corrected_design_has_the_scale_of_all_levels():
    design = MonitorDesign(
        periods=8, max_changes=2, epsilon0=EPSILON / 2, protocol="sampled-change"
    )
    ratio = published_scale(8, 2, EPSILON) / design.scale
    assert ratio == pytest.approx(3 / 4, rel=1e-12)


def test_counts_from_reports():
    reports = [MonitorReport(1, 1, 1), MonitorReport(1, 1, 1), MonitorReport(2, 2, -1)]
    counts = published_running_counts(4, 1, EPSILON, reports)
    assert counts.tolist() == pytest.approx([8.0, -4.0, -4.0, 0.0])


def run_client(seed, changes, max_changes):
    client = PublishedClient(len(changes), max_changes, EPSILON, Entropy.from_seed(seed))
    reports = [client.update(t, change) for t, change in enumerate(changes, 1)]
    return [report for report in reports if report is not None]


def test_clients_report_at_every_node_of_one_level():
    seen = set()
    for seed in range(40):
        reports = run_client(seed, [0, 1, 0, -1, 0, 0, 1, 0], 3)
        (level,) = {report.level for report in reports}
        length = 1 << (level - 1)
        assert [report.period for report in reports] == list(range(length, 9, length))
        assert {report.sign for report in reports} <= {-1, 1}
        seen.add(level)
    assert seen == {1, 2, 3, 4}


def test_means_of_many_clients():
    """False-positive rate 1e-9: 7 standard deviations, twice, of a sum of 1,500 signs."""
    changes = [1, 0, 0, 0]
    runs = 1_500
    sums = np.zeros((4, 5))
    for seed in range(runs):
        for report in run_client(seed, changes, 1):
            sums[report.level, report.period] += report.sign
    # Level 1, period 1: chance 1/3 of the level, 1/2 of the mean sign.
    allowed = 7 * math.sqrt(runs / 3)
    assert abs(sums[1, 1] - runs / 6) < allowed
    assert abs(sums[1, 2]) < allowed
    assert abs(sums[1, 1] - runs / 3) > allowed  # as if no sign were ever turned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((6, 1, 1.0), "periods = 6 is not a power of two.*take 8"),
        ((0, 1, 1.0), "periods = 0 is below 1"),
        ((4, 0, 1.0), "max_changes = 0 is below 1"),
        ((4, 1, 0.0), "epsilon = 0.0 is not in"),
        ((4, 1, math.nan), "epsilon = nan is not in"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        PublishedClient(*arguments, Entropy.from_seed(1))
    with pytest.raises(ParameterError, match=message):
        published_running_counts(*arguments, [])


def test_a_change_by_two_is_refused():
    client = PublishedClient(4, 1, 1.0, Entropy.from_seed(1))
    with pytest.raises(ParameterError, match="change = 2 is not -1, 0 or 1"):
        client.update(1, 2)
