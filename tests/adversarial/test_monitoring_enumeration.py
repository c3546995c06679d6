"""Longitudinal monitoring against everything that can happen in tiny collections, in fractions.

Every history of the target and of everybody else, every draw of every client and every view of the
analyst is gone through (see `monitored`). Judged are the losses and gaps that laws state, that
estimates are unbiased, and the central guarantee.
"""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from adversarial import monitored
from oracles.exchangeable_signs import signs_of
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.privacy.central import central_guarantee
from shuffledp.monitoring.server import MonitorServer

WORDS = 2**64
ROUND_OFF = 1e-9
LAWS = ["sampled-change", "predrawn-signs"]


def design_of(law, num_periods, max_changes, epsilon0):
    """The package's design; the code under test."""
    return MonitorDesign(
        periods=num_periods, max_changes=max_changes, epsilon0=epsilon0, protocol=law
    )


def pattern_law(law):
    """Chances of the patterns of signs, by their weights."""
    weights = signs_of(law).weights
    patterns = {
        signs: Fraction(weights[signs.count(-1)])
        for signs in itertools.product((1, -1), repeat=len(weights) - 1)
    }
    total = sum(patterns.values())
    return {signs: weight / total for signs, weight in patterns.items()}


def reports_by_history(design):
    """The exact law of one client's reports, for each of its histories."""
    law = design.law
    if law.name == "sampled-change":
        keep = 1 - Fraction(law.flip_threshold, WORDS)
        return {
            states: monitored.sampled_change_reports(states, law.max_changes, keep)
            for states in monitored.histories(design.periods, law.max_changes)
        }
    patterns = pattern_law(law)
    return {
        states: monitored.predrawn_reports(states, patterns)
        for states in monitored.histories(design.periods, law.max_changes)
    }


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    ("num_periods", "max_changes"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 3)]
)
def test_everything_a_client_reports_costs_what_is_stated(name, num_periods, max_changes):
    """No two histories are further apart than epsilon0; with room for both they are that far."""
    design = design_of(name, num_periods, max_changes, 1.25)
    laws = list(reports_by_history(design).values())
    worst = max(
        one[reports] / other[reports]
        for one, other in itertools.permutations(laws, 2)
        for reports in one
    )
    assert worst <= Fraction(math.exp(design.law.epsilon0)) * (1 + Fraction(1, 10**14))
    assert design.law.epsilon0 <= 1.25
    if num_periods >= 2 * max_changes:
        assert math.log(worst) == pytest.approx(1.25, rel=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_no_reports_are_rarer_than_their_uniform_share(name):
    """What hides the others: every list of reports keeps this share of its uniform chance."""
    design = design_of(name, 6, 3, 1.25)
    share = design.profile.uniform_share
    levels = monitored.levels(6)
    least = min(
        chance * len(levels) * 2 ** len(reports)
        for law in reports_by_history(design).values()
        for (_, reports), chance in law.items()
    )
    assert least == share


@pytest.mark.parametrize("name", ["sampled-change", "predrawn-signs"])
@pytest.mark.parametrize(
    ("num_periods", "max_changes"), [(1, 1), (3, 2), (4, 3), (6, 3), (7, 2), (8, 3)]
)
def test_estimates_are_unbiased_for_every_history(name, num_periods, max_changes):
    """Fed with what a client reports on average, in whole numbers, the server finds the states."""
    design = design_of(name, num_periods, max_changes, 1.25)
    lengths = monitored.levels(num_periods)
    scale = 2**50
    for states, law in reports_by_history(design).items():
        means = defaultdict(Fraction)
        for (length, reports), chance in law.items():
            for node, report in enumerate(reports):
                means[length, node] += chance * report
        server = MonitorServer(design)
        for period in range(1, num_periods + 1):
            ending = [length for length in lengths if period % length == 0]
            nodes = [(length, period // length - 1) for length in ending]
            sums = [[2 * round(scale * means[node] / 2)] for node in nodes]
            server.add_sums(period, np.array(sums), num_reports=scale)
        found = [
            float(server.estimate(period, num_users=scale).counts) / scale
            for period in range(1, num_periods + 1)
        ]
        assert found == pytest.approx(list(states), abs=1e-12)


CASES = [
    ("sampled-change", 2, 1, 2, 1.0),
    ("sampled-change", 2, 1, 3, 3.0),
    ("sampled-change", 2, 2, 2, 1.0),
    ("sampled-change", 2, 2, 3, 2.0),
    ("sampled-change", 3, 1, 2, 2.0),
    ("sampled-change", 4, 1, 2, 1.0),
    ("sampled-change", 4, 2, 2, 2.0),
    ("predrawn-signs", 2, 2, 2, 1.0),
    ("predrawn-signs", 2, 2, 3, 2.0),
    ("predrawn-signs", 4, 2, 2, 1.0),
    ("predrawn-signs", 4, 3, 2, 2.0),
]


@pytest.mark.parametrize(("name", "num_periods", "max_changes", "num_users", "epsilon0"), CASES)
def test_central_guarantee_holds_for_all_neighbouring_histories(
    name, num_periods, max_changes, num_users, epsilon0
):
    """The upper end is enough for the worst data; below the lower end some data need more."""
    design = design_of(name, num_periods, max_changes, epsilon0)
    laws = list(reports_by_history(design).values())
    matrices = list(monitored.neighbouring_views(laws, num_users))
    for delta in (0.3, 0.1, 0.03, 0.01, 0.001, 1e-6):
        bound = central_guarantee(design.profile, num_users=num_users, delta=delta)
        assert bound.upper <= design.law.epsilon0
        assert monitored.worst_divergence(matrices, math.exp(bound.upper)) <= delta * (
            1 + ROUND_OFF
        )
        if bound.lower:
            below = math.exp(bound.lower * (1 - 1e-9))
            assert monitored.worst_divergence(matrices, below) >= delta * (1 - ROUND_OFF)


def test_a_guarantee_that_is_too_small_is_noticed():
    """The test above can fail: half of the loss is not enough."""
    design = design_of("sampled-change", 2, 2, 2.0)
    laws = list(reports_by_history(design).values())
    matrices = list(monitored.neighbouring_views(laws, 2))
    bound = central_guarantee(design.profile, num_users=2, delta=0.001)
    assert monitored.worst_divergence(matrices, math.exp(bound.upper / 4)) > 0.001


def test_all_histories_are_gone_through():
    """The enumeration itself: numbers of histories, and laws that sum to 1."""
    counts = Counter(
        sum(now != before for before, now in itertools.pairwise((0, *states)))
        for states in monitored.histories(6, 6)
    )
    assert counts == {changes: math.comb(6, changes) for changes in range(7)}
    design = design_of("predrawn-signs", 5, 3, 1.25)
    assert all(sum(law.values()) == 1 for law in reports_by_history(design).values())
