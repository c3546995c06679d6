"""The client of Erlingsson et al., with the constants that its guarantee really has."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.signs import SampledChange


@given(k=st.integers(1, 2**40), epsilon0=st.floats(1e-6, 25.0))
def test_the_sign_is_kept_with_the_odds_of_the_loss(k, epsilon0):
    law = SampledChange(max_changes=k, epsilon0=epsilon0)
    assert law.epsilon0 <= epsilon0
    assert law.epsilon0 == pytest.approx(epsilon0, rel=1e-6)
    turned = law.flip_threshold / 2**64
    assert turned == pytest.approx(1 / (1 + math.exp(epsilon0)), rel=1e-6)
    assert law.gap == pytest.approx(math.tanh(epsilon0 / 2) / k, rel=1e-6)
    assert law.pair_correlation == 0.0


def test_half_of_what_theorem_5_states_is_enough():
    # As printed the sign is kept with probability e^(eps/2) / (1 + e^(eps/2)), for a loss of eps/2.
    printed, loss = 2.0, 1.0
    kept = math.exp(printed / 2) / (1 + math.exp(printed / 2))
    law = SampledChange(max_changes=1, epsilon0=loss)
    assert 1 - law.flip_threshold / 2**64 == pytest.approx(kept, rel=1e-12)


def test_the_profile_says_it_exactly():
    law = SampledChange(max_changes=3, epsilon0=1.0)
    profile = law.profile(num_levels=7, alternating=False)
    turned = Fraction(law.flip_threshold, 2**64)
    assert profile.sign_correlations == (1, (1 - 2 * turned) / 3)
    assert profile.uniform_share == 2 * turned
    assert (profile.protocol, profile.epsilon0) == ("sampled-change", law.epsilon0)
    assert (profile.max_changes, profile.num_levels, profile.alternating) == (3, 7, False)


def test_no_privacy_loss_tells_nothing():
    law = SampledChange(max_changes=4, epsilon0=0.0)
    assert (law.epsilon0, law.gap, law.flip_threshold) == (0.0, 0.0, 2**63)


def test_any_large_epsilon0_gives_the_same_law():
    laws = {SampledChange(max_changes=4, epsilon0=each) for each in (50.0, 1e3, 1e308)}
    (law,) = laws
    assert law.flip_threshold == 1
    assert law.epsilon0 == pytest.approx(64 * math.log(2), rel=1e-12)


@given(epsilon0=st.floats(0.0, 1e3))
def test_a_law_rebuilt_from_what_it_printed_is_the_same(epsilon0):
    law = SampledChange(max_changes=2, epsilon0=epsilon0)
    again = SampledChange(max_changes=2, epsilon0=law.epsilon0)
    assert again == law
    assert again.identity == law.identity


@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1.0, "1", None])
def test_epsilon0_must_be_a_number(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        SampledChange(max_changes=2, epsilon0=epsilon0)


@pytest.mark.parametrize("k", [0, -1, 1.0, None])
def test_changes_are_counted(k):
    with pytest.raises(ParameterError, match="max_changes"):
        SampledChange(max_changes=k, epsilon0=1.0)
