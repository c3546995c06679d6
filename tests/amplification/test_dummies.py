"""Dummies alone: (D1) against its references, and what local noise makes of it."""

import math

import pytest

from shuffledp.amplification.dummies import pair_of_bins
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

BARE = LocalProfile(epsilon0=math.inf, family="k-rr", domain_size=16)
LAW = DummyLaw.from_text("laplace:2.025:27")


@pytest.mark.parametrize(
    ("text", "epsilon", "delta"),
    [
        ("laplace:20.25:219", 0.1, 9.9238624547e-7),
        ("laplace:4.05:51", 0.5, 8.345532896e-7),
        ("laplace:2.025:27", 1.0, 7.839348804e-7),
        ("poisson:43", 1.0, 9.19752737002e-7),
        ("poisson:137", 0.5, 9.38952336142e-7),
        ("poisson:20", 1.0, 3.19986799872e-4),
    ],
)
def test_references(text, epsilon, delta):
    found = account_delta(BARE, num_users=1, epsilon=epsilon, dummies=DummyLaw.from_text(text))
    assert found.lower <= found.upper <= found.lower * (1.0 + 1e-10)
    assert found.upper == pytest.approx(delta, rel=3e-10)


def test_epsilon_inverts_delta():
    delta = account_delta(BARE, num_users=7, epsilon=0.9, dummies=LAW).upper
    found = account_epsilon(BARE, num_users=7, delta=delta, dummies=LAW)
    assert found.lower == pytest.approx(0.9, rel=1e-6)
    assert found.upper == pytest.approx(0.9, rel=1e-6)


def test_bare_values_have_no_epsilon_without_dummies():
    with pytest.raises(OutOfRegimeError, match="dummies"):
        account_epsilon(BARE, num_users=10**6, delta=1e-6)
    assert account_delta(BARE, num_users=10**6, epsilon=3.0).upper == 1.0
    with pytest.raises(OutOfRegimeError, match="larger delta"):
        account_epsilon(BARE, num_users=1, delta=0.0, dummies=LAW)


@pytest.mark.parametrize("family", [RandomizerFamily.ANY, RandomizerFamily.K_RANDOMIZED_RESPONSE])
def test_local_noise_comes_on_top_and_dummies_never_make_it_worse(family):
    profile = LocalProfile(epsilon0=2.0, family=family, domain_size=16)
    bare = account_delta(BARE, num_users=1, epsilon=0.5, dummies=LAW).upper
    found = account_delta(profile, num_users=1, epsilon=0.5, dummies=LAW)
    assert found.upper < bare
    assert account_delta(profile, num_users=1, epsilon=2.0, dummies=LAW).upper == 0.0
    crowd = account_epsilon(profile, num_users=10**6, delta=1e-8)
    least = account_epsilon(profile, num_users=10**6, delta=1e-8, dummies=LAW)
    assert least.upper <= crowd.upper


def test_the_pair_is_the_same_in_both_orders_of_bins():
    found = pair_of_bins(DummyLaw.from_text("gaussian:3.0:17"), 1).enclose(0.0)
    assert 0.0 < found.lower <= found.upper < 1.0
