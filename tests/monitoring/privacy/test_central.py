"""The central guarantee: edges, monotonicity, and what it must agree with."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import monitored_release as oracle
from shuffledp.amplification.local import single_report_delta, single_report_epsilon
from shuffledp.amplification.registry import account_delta
from shuffledp.core.errors import LowerEndWarning, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.monitoring.privacy import likelihoods
from shuffledp.monitoring.privacy.central import (
    central_delta_upper,
    central_guarantee,
    local_guarantee,
)
from shuffledp.monitoring.privacy.likelihoods import (
    level_overlaps,
    shifted_changes,
    unavoidable_delta,
)

SAMPLED = oracle.sampled_profile(4, 3, num_levels=9)
PREDRAWN = oracle.predrawn_profile(oracle.threshold_density(4, 1, 3), num_levels=9)


def two_fold(profile, num_users, epsilon):
    """The cruder argument: level and sampled change are revealed, two reports are left to hide."""
    alone = replace(
        profile,
        max_changes=1,
        sign_correlations=(Fraction(1), profile.correlation(1) * profile.max_changes),
    )
    return central_delta_upper(alone, num_users=num_users, epsilon=epsilon, level_hidden=False)


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("num_users", [3, 1_000, 10**6])
def test_one_period_is_binary_randomized_response(epsilon0, num_users):
    """One report, two values: the blanket of one report, whose delta is the clones' bound."""
    keep = Fraction(math.exp(epsilon0) / (1 + math.exp(epsilon0)))
    profile = oracle.sampled_profile(1, keep / (1 - keep), num_levels=1, alternating=False)
    epsilon = 0.5 * epsilon0 if num_users == 3 else epsilon0 * 3.0 / math.sqrt(num_users)
    clones = account_delta(
        LocalProfile(epsilon0=epsilon0), num_users=num_users, epsilon=epsilon, method="clones"
    )
    found = central_delta_upper(profile, num_users=num_users, epsilon=epsilon)
    assert found == pytest.approx(clones.upper, rel=1e-3)
    assert found < single_report_delta(epsilon0, epsilon)


@pytest.mark.parametrize("profile", [SAMPLED, PREDRAWN])
def test_monotone(profile):
    deltas = [
        central_delta_upper(profile, num_users=10_000, epsilon=epsilon)
        for epsilon in (0.0, 0.001, 0.01, 0.02, 0.04, 0.1, 0.5, 1.0, 1.09)
    ]
    assert deltas == sorted(deltas, reverse=True)
    epsilons = [
        central_guarantee(profile, num_users=users, delta=1e-8).upper
        for users in (10, 1_000, 10**4, 10**6, 10**9)
    ]
    assert epsilons == sorted(epsilons, reverse=True)
    bounds = [
        central_guarantee(profile, num_users=10_000, delta=delta)
        for delta in (1e-15, 1e-10, 1e-6, 1e-3, 0.1)
    ]
    for ends in ([b.upper for b in bounds], [b.lower for b in bounds]):
        assert ends == sorted(ends, reverse=True)


def test_nearly_monotone_where_higher_orders_matter():
    """Each number holds; one far above those at smaller losses would be needlessly large."""
    least = 1.0
    for epsilon in np.linspace(0.2, 1.0, 21):
        found = central_delta_upper(PREDRAWN, num_users=1_000, epsilon=float(epsilon))
        assert found <= 1.5 * least
        least = min(found, least)


@pytest.mark.parametrize("make", ["sampled", "predrawn"])
def test_monotone_in_the_local_loss(make):
    found = []
    for ratio in (Fraction(11, 10), 2, 5, 30):
        if make == "sampled":
            profile = oracle.sampled_profile(3, ratio, num_levels=6)
        else:
            density = oracle.threshold_density(3, 1, ratio)
            profile = oracle.predrawn_profile(density, num_levels=6)
        found.append(central_guarantee(profile, num_users=10**5, delta=1e-8).upper)
    assert found == sorted(found)


@pytest.mark.parametrize("profile", [SAMPLED, PREDRAWN])
def test_a_million_users(profile):
    bound = central_guarantee(profile, num_users=10**6, delta=1e-8)
    assert bound.method == "monitoring-crowd"
    assert bound.upper < profile.epsilon0 / 200
    assert 0.55 * bound.upper < bound.lower < bound.upper
    assert central_delta_upper(profile, num_users=10**6, epsilon=bound.upper) <= 1e-8
    assert unavoidable_delta(
        profile, num_users=10**6, epsilon=bound.lower, level_hidden=True
    ) == pytest.approx(1e-8, rel=1e-3)
    seen = central_guarantee(profile, num_users=10**6, delta=1e-8, level_hidden=False)
    assert 2.5 * bound.upper < seen.upper < 3.5 * bound.upper
    assert 0.55 * seen.upper < seen.lower < seen.upper
    assert "1,000,000 users" in bound.assumptions[0]
    assert bound.assumptions[2] != seen.assumptions[2]


def test_products_of_signs_cost_little_among_many(monkeypatch):
    whole = central_guarantee(PREDRAWN, num_users=10**6, delta=1e-8).upper
    among_few = central_delta_upper(PREDRAWN, num_users=10**4, epsilon=0.05)
    monkeypatch.setattr(likelihoods, "has_higher_orders", lambda _profile: False)
    linear = central_guarantee(PREDRAWN, num_users=10**6, delta=1e-8).upper
    assert linear < whole < 1.01 * linear
    linear = central_delta_upper(PREDRAWN, num_users=10**4, epsilon=0.05)
    assert 2.0 * linear < among_few < 4.0 * linear
    # Far out the linear part is nothing: what is left is half a percent of 1e-30 for order two, for
    # later orders, and for too small a crowd.
    monkeypatch.undo()
    far = central_delta_upper(PREDRAWN, num_users=10**8, epsilon=0.01)
    assert far / 1e-30 == pytest.approx(3 * 0.005, rel=1e-6)


def test_two_fold_composition_is_far_weaker():
    """It loses the levels, a factor 3 of epsilon here, and the hidden change, another 2."""
    epsilon = central_guarantee(SAMPLED, num_users=10**6, delta=1e-8).upper
    assert two_fold(SAMPLED, 10**6, 4.0 * epsilon) > 1e-8
    assert two_fold(SAMPLED, 10**6, 8.0 * epsilon) < 1e-8


def test_fewer_columns_that_show_a_change_hide_better():
    profile = oracle.sampled_profile(4, 3, num_levels=9, alternating=False)
    found = [
        central_guarantee(replace(profile, changing_share=share), num_users=10**6, delta=1e-8)
        for share in (1.0, 0.5, 0.1)
    ]
    assert found[1].upper == pytest.approx(found[0].upper * math.sqrt(0.5), rel=0.05)
    assert found[2].upper == pytest.approx(found[0].upper * math.sqrt(0.1), rel=0.12)
    assert found[0].lower is None


def test_many_changes():
    """Up to 32 the two changes that do not overlap are kept apart; grids are coarse beyond 128."""
    found = []
    for changes in (32, 33, 128, 129, 2_000, 10_000):
        profile = oracle.sampled_profile(changes, 3, num_levels=15)
        bound = central_guarantee(profile, num_users=10**6, delta=1e-8)
        found.append(bound.upper * math.sqrt(changes))
    assert found[1] == pytest.approx(found[0], rel=0.01)
    assert found[3] == pytest.approx(found[2], rel=0.01)
    assert max(found) < 1.3 * min(found)
    beyond = oracle.sampled_profile(10_001, 3, num_levels=15)
    assert central_delta_upper(beyond, num_users=10**6, epsilon=0.1) == single_report_delta(
        beyond.epsilon0, 0.1
    )


@pytest.mark.parametrize("profile", [SAMPLED, PREDRAWN])
def test_one_user_has_the_local_guarantee(profile):
    bound = central_guarantee(profile, num_users=1, delta=1e-9)
    assert bound.method == "local"
    assert bound.upper == single_report_epsilon(profile.epsilon0, 1e-9)


@pytest.mark.parametrize("num_users", [1, 10, 10**6])
def test_edges(num_users):
    bound = central_guarantee(PREDRAWN, num_users=num_users, delta=0.0)
    assert (bound.upper, bound.method) == (PREDRAWN.epsilon0, "local")
    assert bound.lower == local_guarantee(PREDRAWN).lower
    nothing = MonitoringNothing
    bound = central_guarantee(nothing, num_users=num_users, delta=1e-9)
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert central_delta_upper(nothing, num_users=num_users, epsilon=0.0) == 0.0
    bound = central_guarantee(SAMPLED, num_users=num_users, delta=0.999)
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert central_delta_upper(SAMPLED, num_users=num_users, epsilon=SAMPLED.epsilon0) == 0.0


MonitoringNothing = replace(
    SAMPLED,
    epsilon0=0.0,
    sign_correlations=(Fraction(1), Fraction(0)),
    uniform_share=Fraction(1),
)


def test_no_share_no_crowd_and_huge_losses():
    hopeless = replace(SAMPLED, uniform_share=Fraction(0))
    assert central_delta_upper(hopeless, num_users=10**6, epsilon=0.1) == single_report_delta(
        hopeless.epsilon0, 0.1
    )
    certain = MonitoringCertain
    bound = central_guarantee(certain, num_users=10**6, delta=1e-9)
    assert 200.0 < bound.upper <= 700.0
    assert 0.0 <= bound.lower < 1.0
    assert unavoidable_delta(certain, num_users=10, epsilon=300.0, level_hidden=True) == 0.0
    assert unavoidable_delta(SAMPLED, num_users=10**11, epsilon=0.0, level_hidden=True) == 0.0


MonitoringCertain = replace(
    SAMPLED,
    epsilon0=700.0,
    max_changes=1,
    sign_correlations=(Fraction(1), 1 - Fraction(1, 10**300)),
    uniform_share=Fraction(1, 10**300),
)


def test_tiny_delta_and_huge_crowds():
    for delta in (1e-15, 1e-100):
        bound = central_guarantee(SAMPLED, num_users=10**6, delta=delta)
        assert 0.0 < bound.lower < bound.upper < SAMPLED.epsilon0
    huge = central_guarantee(SAMPLED, num_users=10**15, delta=1e-8)
    most = central_guarantee(SAMPLED, num_users=10**10, delta=1e-8)
    assert huge.upper == pytest.approx(most.upper, rel=1e-6)
    assert huge.lower == 0.0


@pytest.mark.parametrize("delta", [math.nan, -1e-9, 1.0, math.inf])
def test_delta_out_of_range(delta):
    with pytest.raises(ParameterError, match="delta"):
        central_guarantee(SAMPLED, num_users=10, delta=delta)


@pytest.mark.parametrize("epsilon", [math.nan, -1.0, math.inf])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        central_delta_upper(SAMPLED, num_users=10, epsilon=epsilon)


@pytest.mark.parametrize("share", [math.nan, 0.0, 1.5, -0.5])
def test_share_of_columns_out_of_range(share):
    with pytest.raises(ParameterError, match="changing_share"):
        replace(SAMPLED, changing_share=share)


@pytest.mark.parametrize("num_users", [0, -3, 1.5])
def test_users_out_of_range(num_users):
    with pytest.raises(ParameterError, match="num_users"):
        central_guarantee(SAMPLED, num_users=num_users, delta=1e-6)


def test_ends_that_cross_are_noticed(monkeypatch):
    monkeypatch.setattr(likelihoods, "unavoidable_delta", lambda *_args, **_kwargs: 1.0)
    with pytest.warns(LowerEndWarning, match="please report"):
        bound = central_guarantee(SAMPLED, num_users=1_000, delta=1e-6)
    assert bound.lower is None


@settings(max_examples=30)
@given(
    changes=st.integers(1, 6),
    ratio=st.fractions(Fraction(11, 10), 40, max_denominator=20),
    num_users=st.integers(1, 10**7),
    log_delta=st.floats(-30.0, -0.1),
    levels=st.integers(1, 12),
    hidden=st.booleans(),
)
def test_ends_never_cross(*, changes, ratio, num_users, log_delta, levels, hidden):
    profile = oracle.sampled_profile(changes, ratio, num_levels=levels)
    bound = central_guarantee(
        profile, num_users=num_users, delta=math.exp(log_delta), level_hidden=hidden
    )
    assert 0.0 <= bound.lower <= bound.upper <= profile.epsilon0


def test_shifted_changes_and_their_levels():
    assert shifted_changes(1, 1) == ((1,), ())
    assert shifted_changes(7, 2) == ((1,), (2,))
    first, second = shifted_changes(1_000, 12)
    assert len(first) == len(second) == 128
    # Level by level: all apart; two joined in a node; one node.
    overlaps = level_overlaps((1, 3), (3, 4), 3)
    assert overlaps[0] == (1, 1, 1, 0)
    assert overlaps[1] == (0, 2, 0, 0)
    assert overlaps[2] == (0, 0, 0, 0)
