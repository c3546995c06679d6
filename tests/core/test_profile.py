"""The window between longitudinal protocols and the accountant."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, MonitoringProfile, RandomizerFamily


@pytest.mark.parametrize("epsilon0", [math.nan, -math.inf, -1e-300, "1", None])
def test_epsilon0_must_be_a_finite_number(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        LocalProfile(epsilon0=epsilon0)


@pytest.mark.parametrize("delta0", [math.nan, 1.0, -1e-300, "0", None])
def test_delta0_must_be_a_probability_below_one(delta0):
    with pytest.raises(ParameterError, match="delta0"):
        LocalProfile(epsilon0=1.0, delta0=delta0)


@pytest.mark.parametrize("domain_size", [1, 0, -1, 2.0, "2", 10**15 + 1])
def test_the_domain_has_two_values_at_least(domain_size):
    with pytest.raises(ParameterError, match="domain_size"):
        LocalProfile(epsilon0=1.0, domain_size=domain_size)


def test_k_rr_needs_its_k():
    with pytest.raises(ParameterError, match="number of answers k"):
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE)


def test_numbers_are_stored_as_plain_floats():
    # float32 arithmetic further down would round upper bounds to 24 bits, in either direction.
    profile = LocalProfile(epsilon0=np.float32(0.1))
    assert type(profile.epsilon0) is float
    assert profile.epsilon0 == float(np.float32(0.1))


@pytest.mark.parametrize("name", ["k-rr", "symmetric-unary", "optimized-unary"])
def test_a_family_given_by_its_name_is_that_family(name):
    profile = LocalProfile(epsilon0=1.0, family=name, domain_size=3)
    assert profile.family is RandomizerFamily(name)


@pytest.mark.parametrize("family", ["krr", "", None, 3])
def test_an_unknown_family_is_refused(family):
    with pytest.raises(ParameterError, match="family"):
        LocalProfile(epsilon0=1.0, family=family, domain_size=3)


def test_the_channel_takes_no_part_in_comparisons():
    profile = LocalProfile(epsilon0=1.0, channel=lambda: ((1,),))
    assert profile == LocalProfile(epsilon0=1.0)
    assert "channel" not in repr(profile)
    assert profile.channel() == ((1,),)


def test_profiles_and_atoms_are_frozen():
    with pytest.raises(AttributeError):
        LocalProfile(epsilon0=1.0).epsilon0 = 2.0
    with pytest.raises(AttributeError):
        BlanketAtom(mass=0.5, ratio0=1.0, ratio1=2.0).mass = 1.0


@pytest.mark.parametrize("participation", [-0.1, 0.05, 1.1, math.nan])
def test_participation_is_a_probability_of_at_least_delta0(participation):
    with pytest.raises(ParameterError, match="participation"):
        LocalProfile(epsilon0=1.0, delta0=0.1, participation=participation)


HALF = Fraction(1, 2)


def profile(**changes):
    fields = {
        "protocol": "predrawn-signs",
        "epsilon0": 1.0,
        "max_changes": 3,
        "num_levels": 4,
        "sign_correlations": (Fraction(1), HALF, Fraction(-1, 8)),
        "uniform_share": HALF,
        "alternating": False,
    }
    return MonitoringProfile(**(fields | changes))


def test_correlations_that_are_not_on_record_are_zero():
    assert [profile().correlation(order) for order in range(5)] == [1, HALF, Fraction(-1, 8), 0, 0]
    assert profile().gap == 0.5
    assert profile(sign_correlations=(Fraction(1),)).gap == 0.0


def test_a_correlation_has_an_order():
    with pytest.raises(ParameterError, match="order"):
        profile().correlation(-1)


@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1e-300, "1", None])
def test_epsilon0_must_be_a_finite_number_of_monitoring_profile(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        profile(epsilon0=epsilon0)


@pytest.mark.parametrize("name", ["max_changes", "num_levels"])
@pytest.mark.parametrize("value", [0, -1, 1.0, "1", None])
def test_counts_are_whole_numbers_from_one(name, value):
    with pytest.raises(ParameterError, match=name):
        profile(**{name: value}, sign_correlations=(Fraction(1),))


@pytest.mark.parametrize("share", [Fraction(-1, 2**70), 1 + Fraction(1, 2**70), math.nan])
def test_the_uniform_share_is_a_probability(share):
    with pytest.raises(ParameterError, match="uniform_share"):
        profile(uniform_share=share)


@pytest.mark.parametrize(
    ("correlations", "says"),
    [
        ((), "has 0 entries: give r_0"),
        ((Fraction(1),) + (Fraction(0),) * 4, "at most max_changes = 3"),
        ((HALF, HALF), "give r_0 = 1"),
        ((Fraction(1), Fraction(1), Fraction(3, 2)), r"more in \[-1, 1\]"),
        ((Fraction(1), Fraction(1), Fraction(-3, 2)), r"more in \[-1, 1\]"),
        ((Fraction(1), Fraction(-1, 2)), "exchange the two signs"),
    ],
)
def test_correlations_are_those_of_signs(correlations, says):
    with pytest.raises(ParameterError, match=says):
        profile(sign_correlations=correlations)


def test_numbers_are_stored_as_plain_ones():
    # float32 arithmetic further down would round upper bounds to 24 bits, in either direction.
    stored = profile(epsilon0=np.float32(0.1), max_changes=np.int64(3), num_levels=np.uint8(4))
    assert type(stored.epsilon0) is float
    assert type(stored.max_changes) is type(stored.num_levels) is int


def test_it_is_frozen_and_compares_by_value():
    assert profile() == profile()
    assert profile() != profile(alternating=True)
    with pytest.raises(AttributeError):
        profile().epsilon0 = 0.1
