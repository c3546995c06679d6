"""The largest local loss for a central target."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest

from oracles import monitored_release as oracle
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.monitoring.design import sign_law
from shuffledp.monitoring.privacy import central
from shuffledp.monitoring.privacy.central import (
    LARGEST_MONITORED,
    calibrate_monitoring,
    central_guarantee,
)


def sampled(epsilon0):
    ratio = Fraction(math.exp(epsilon0)).limit_denominator(10**12)
    return oracle.sampled_profile(2, ratio, num_levels=6)


def predrawn(epsilon0):
    ratio = Fraction(math.exp(epsilon0)).limit_denominator(10**6)
    return oracle.predrawn_profile(oracle.threshold_density(3, 1, ratio), num_levels=6)


@pytest.mark.parametrize("profile_for", [sampled, predrawn])
@pytest.mark.parametrize(("num_users", "epsilon"), [(10**5, 0.02), (500, 0.5), (10**7, 0.01)])
def test_the_target_is_met_and_nearly_reached(profile_for, num_users, epsilon):
    arguments = {"num_users": num_users, "delta": 1e-7}
    found = calibrate_monitoring(profile_for, epsilon=epsilon, **arguments)
    assert central_guarantee(profile_for(found), **arguments).upper <= epsilon
    assert central_guarantee(profile_for(1.001 * found), **arguments).upper > 0.9999 * epsilon


def test_without_delta_or_crowd_the_target_itself():
    for arguments in ({"num_users": 10**6, "delta": 0.0}, {"num_users": 1, "delta": 1e-9}):
        found = calibrate_monitoring(sampled, epsilon=0.75, **arguments)
        assert found == pytest.approx(0.75, rel=1e-4)


def test_a_target_that_everything_meets():
    found = calibrate_monitoring(sampled, num_users=10**9, epsilon=20.0, delta=1e-9)
    assert found == LARGEST_MONITORED


@pytest.mark.slow
def test_a_target_beyond_which_the_guarantee_stops_being_worth_anything():
    """At epsilon0 = 12 delta(3.4) is small enough, but only the local guarantee is claimed."""

    def drawn(epsilon0):
        law = sign_law("predrawn-signs", max_changes=11, epsilon0=epsilon0)
        return law.profile(num_levels=6, alternating=True)

    asked = {"num_users": 18_538, "delta": 5e-6}
    found = calibrate_monitoring(drawn, epsilon=3.4, **asked)
    assert central_guarantee(drawn(found), **asked).upper <= 3.4 < found


@pytest.mark.slow
def test_ends_that_lie_apart_cost_few_guarantees(monkeypatch):
    """Here the ends of two near losses are 5 % apart, and the guarantee was sought 17 times."""

    def drawn(epsilon0):
        law = sign_law("predrawn-signs", max_changes=4, epsilon0=epsilon0)
        return law.profile(num_levels=10, alternating=True)

    calls = []
    monkeypatch.setattr(
        central,
        "central_guarantee",
        lambda *each, **asked: calls.append(1) or central_guarantee(*each, **asked),
    )
    asked = {"num_users": 10**6, "delta": 1e-8}
    found = calibrate_monitoring(drawn, epsilon=1.0, **asked)
    assert central_guarantee(drawn(found), **asked).upper <= 1.0
    assert found > 9.4
    assert len(calls) <= 10


def test_a_profile_that_never_meets_it():
    with pytest.raises(InfeasibleTargetError, match="larger epsilon"):
        calibrate_monitoring(lambda _epsilon0: sampled(5.0), num_users=10, epsilon=0.01, delta=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        calibrate_monitoring(sampled, num_users=10, epsilon=epsilon, delta=1e-9)


@pytest.mark.parametrize("wrong", [{"num_users": 0}, {"delta": math.nan}])
def test_users_and_delta_out_of_range(wrong):
    # also where the local guarantee alone meets the target
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        calibrate_monitoring(sampled, **({"num_users": 10, "epsilon": 20.0, "delta": 1e-9} | wrong))


def test_fewer_columns_that_show_a_change_allow_more():
    def any_value(share, epsilon0):
        ratio = Fraction(math.exp(epsilon0)).limit_denominator(10**12)
        profile = oracle.sampled_profile(2, ratio, num_levels=6, alternating=False)
        return replace(profile, changing_share=share)

    found = [
        calibrate_monitoring(partial(any_value, share), num_users=10**5, epsilon=0.02, delta=1e-7)
        for share in (1.0, 0.5)
    ]
    assert found[1] > 1.1 * found[0]
