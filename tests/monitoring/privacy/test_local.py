"""The local guarantee; by enumeration it is tested beside the central one."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from oracles import monitored_release as oracle
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.privacy.central import local_guarantee


@pytest.mark.parametrize("changes", [200, 1, 4, 65, 40])
def test_sampled_change_is_tight(changes):
    profile = oracle.sampled_profile(changes, 5, num_levels=8)
    bound = local_guarantee(profile)
    if changes <= 127:
        assert bound.lower == pytest.approx(math.log(5.0), rel=1e-12)
    else:  # more changes than periods: only 127 of them, and the rest never come
        part = 127 / changes * 2 / 3  # of all changes it is 2/3 either way, a ratio of 5
        assert bound.lower == pytest.approx(math.log((1 + part) / (1 - part)), rel=1e-12)
    assert bound.upper == profile.epsilon0
    assert bound.method == "local"


def test_many_pre_drawn_signs():
    correlations = (Fraction(1), *[Fraction(1, 2) ** i for i in range(1, 71)])
    profile = replace(
        oracle.sampled_profile(70, 5, num_levels=9),
        epsilon0=80.0,
        sign_correlations=correlations,
    )
    # Independent signs: densities (1 + g)^(k - i) (1 - g)^i.
    assert local_guarantee(profile).lower == pytest.approx(70 * math.log(3.0), rel=1e-12)


def test_a_single_period():
    profile = oracle.sampled_profile(1, 3, num_levels=1)
    assert local_guarantee(profile).lower == pytest.approx(math.log(2.0))
    flat = replace(profile, sign_correlations=(Fraction(1),))
    assert local_guarantee(flat).lower == 0.0


def test_a_stated_loss_that_is_too_small_is_noticed():
    profile = replace(oracle.sampled_profile(2, 3, num_levels=4), epsilon0=0.5)
    with pytest.raises(ParameterError, match="so it is wrong"):
        local_guarantee(profile)


def test_densities_that_are_no_densities_claim_nothing():
    profile = replace(
        oracle.sampled_profile(2, 3, num_levels=2),
        epsilon0=5.0,
        sign_correlations=(Fraction(1), Fraction(1)),
    )
    assert local_guarantee(profile).lower == 0.0
