"""Explicit data against a channel matrix: below all data enumerated, and near the worst."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import enumeration, profiles
from oracles.given_channels import random_channel, randomized_response
from oracles.sums import DirectSum, k_rr_third_answer
from shuffledp.accounting.amplification import channel_attacks
from shuffledp.accounting.amplification.channel_attacks import attack_delta, attack_epsilon
from shuffledp.accounting.amplification.channel_blanket import CHANNEL_BLANKET, violated_hypothesis
from shuffledp.accounting.amplification.channel_rows import channel_profile
from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.0, 4.0)


def uniform_data(rows, num_users, epsilon):
    """The largest exact divergence over data in which all others hold one input."""
    e = math.exp(epsilon)
    return max(
        enumeration.hockey_stick(p, q, e)
        for p, q, _, others in enumeration.neighbouring_laws(rows.tolist(), num_users)
        if len(set(others)) <= 1
    )


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("num_users", [1, 2, 3, 5])
def test_it_is_the_best_of_uniform_data(num_users, zeros):
    for seed in range(15):
        rows = random_channel(seed, zeros=zeros, largest=3 if num_users == 5 else 4)
        profile = channel_profile(rows)
        for epsilon in EPSILONS:
            exact = uniform_data(rows, num_users, epsilon)
            found = attack_delta(profile, num_users, epsilon)
            assert found <= exact * (1.0 + 1e-12) + 1e-16
            assert found >= exact * 0.99 - 1e-11


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("num_users", [2, 4])
def test_epsilon_is_below_that_of_all_data(num_users, zeros):
    for seed in range(15):
        rows = random_channel(seed, zeros=zeros)
        profile = channel_profile(rows)
        truth = enumeration.ShuffledDivergence(rows.tolist(), num_users)
        for delta in (1e-6, 1e-3, 0.05, 0.3):
            if violated_hypothesis(profile, num_users, delta) is None:
                found = attack_epsilon(profile, num_users, delta)
                assert found <= truth.epsilon(delta, 50.0) * (1.0 + 1e-11) + 1e-12


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    zeros=st.booleans(),
    num_users=st.sampled_from([1, 30, 10**4, 10**9, 10**15]),
    epsilon=st.sampled_from([0.0, 1e-7, 1e-3, 0.5, 5.0]),
)
def test_ends_do_not_cross(seed, zeros, num_users, epsilon):
    profile = channel_profile(random_channel(seed, zeros=zeros, largest=8))
    lower = attack_delta(profile, num_users, epsilon)
    assert lower <= CHANNEL_BLANKET.delta(profile, num_users, epsilon).upper


@pytest.mark.parametrize(("k", "epsilon0"), [(4, 1.0), (16, 3.0)])
def test_k_rr_as_a_matrix(k, epsilon0):
    profile = channel_profile(randomized_response(k, epsilon0))
    named = account_epsilon(profiles.k_rr(epsilon0, k), num_users=1000, delta=1e-6)
    found = attack_epsilon(profile, 1000, 1e-6)
    assert found == pytest.approx(named.lower, rel=1e-6)
    direct = DirectSum(k_rr_third_answer(epsilon0, k), 300)
    delta = attack_delta(profile, 300, 0.2)
    # All others at a third answer, or better data.
    assert delta >= direct.delta(0.2) * (1.0 - 1e-4)


def test_two_inputs_are_enough():
    profile = channel_profile([[0.9, 0.1], [0.2, 0.8]])
    assert attack_epsilon(profile, 100, 1e-3) > 0.1


def test_what_stands_out_does_so_at_any_epsilon():
    profile = channel_profile([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    for num_users in (1, 10**15):
        assert attack_delta(profile, num_users, 100.0) == pytest.approx(0.5, rel=1e-8)
        assert attack_delta(profile, num_users, 100.0) < 0.5
    assert attack_epsilon(profile, 10, 0.7) == 0.0
    with pytest.raises(OutOfRegimeError, match="no epsilon is enough"):
        attack_epsilon(profile, 10, 0.3)


def test_without_zeros_nothing_is_unavoidable_from_epsilon0_on():
    profile = channel_profile(randomized_response(3, 1.0))
    assert attack_delta(profile, 10, 1.1) == 0.0


def test_equal_rows_cannot_be_attacked():
    profile = channel_profile([[0.2, 0.8], [0.2, 0.8]])
    assert attack_delta(profile, 10, 0.0) == 0.0
    assert attack_epsilon(profile, 10, 1e-9) == 0.0


def test_a_ranking_of_few_pairs_is_still_a_bound(monkeypatch):
    rows = np.concatenate(
        [random_channel(seed, zeros=False, largest=2)[:2, :2] for seed in range(8)]
    )
    profile = channel_profile(rows)
    full = attack_delta(profile, 200, 0.3)
    monkeypatch.setattr(channel_attacks, "_MOST_RANKED", 1)
    few = attack_delta(profile, 200, 0.3)
    assert 0.5 * full <= few <= full * (1.0 + 1e-9)


def test_a_profile_without_a_channel_is_refused():
    with pytest.raises(ParameterError, match="no channel"):
        attack_delta(LocalProfile(epsilon0=1.0), 10, 0.1)
