"""Laws of gains: (Z) from above and from below against sums at sixty digits.

Explicit data against a channel matrix: below all data enumerated, and near the worst.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import enumeration, profiles
from oracles.given_channels import listed, random_channel, randomized_response
from oracles.sums import DirectSum, k_rr_third_answer
from shuffledp.amplification import channel_rows
from shuffledp.amplification.channel_blanket import CHANNEL_BLANKET, violated_hypothesis
from shuffledp.amplification.channel_rows import (
    MOST_ATOMS,
    attack_delta,
    attack_epsilon,
    blanket_delta,
    channel_profile,
    delta_of_rows,
)
from shuffledp.amplification.registry import account_epsilon
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile

EPSILONS = (0.0, 1e-6, 0.1, 1.0, 3.0)

# What a row of doubles may be off from 1.
ROUNDED = 1e-12


def both(rows, omega, num_users, epsilon):
    given = {"num_users": num_users, "epsilon": epsilon}
    return (
        blanket_delta(rows[0], rows[1], omega, **given),
        delta_of_rows(rows[0], rows[1], omega, **given),
    )


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("num_users", [1, 2, 5, pytest.param(12, marks=pytest.mark.slow)])
def test_blanket_encloses_the_listed_sum(num_users, zeros):
    for seed in range(12):
        rows = random_channel(seed, zeros=zeros)
        omega = rows.min(axis=0)
        for epsilon in EPSILONS:
            exact = float(listed(rows[0], rows[1], omega, epsilon, num_users))
            found = blanket_delta(
                rows[0], rows[1], omega, num_users=num_users, epsilon=epsilon
            ).upper
            assert exact * (1.0 - ROUNDED) <= found <= exact * (1.0 + 1e-2) + 1e-11


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("num_users", [1, 2, 5, pytest.param(12, marks=pytest.mark.slow)])
def test_attack_is_below_the_listed_sum_and_near_it(num_users, zeros):
    for seed in range(12):
        rows = random_channel(seed, zeros=zeros)
        for omega in rows:
            for epsilon in EPSILONS:
                exact = float(listed(rows[0], rows[1], omega, epsilon, num_users))
                found = delta_of_rows(rows[0], rows[1], omega, num_users=num_users, epsilon=epsilon)
                assert found <= exact * (1.0 + ROUNDED) + 1e-16
                assert found >= exact * 0.99 - 1e-11


def test_many_outputs_are_brought_to_few_and_lose_little():
    # An average over thousands of outputs of nearly continuous ratios.
    size = 3000
    position = (np.arange(size) + 0.5) / size
    first = np.exp(0.8 * np.sin(6.3 * position))
    second = np.exp(0.8 * np.cos(6.3 * position))
    third = np.ones(size)
    rows = np.stack([each / each.sum() for each in (first, second, third)])
    omega = rows.min(axis=0)
    for num_users, epsilon in ((200, 0.3), (10**5, 0.015), (10**9, 1.5e-4)):
        given = {"num_users": num_users, "epsilon": epsilon}
        fine = blanket_delta(rows[0], rows[1], omega, **given)
        # Adjacent outputs merged in pairs: a channel of its own, which can only hide more.
        merged = rows.reshape(3, -1, 60).sum(axis=2)
        narrow = omega.reshape(-1, 60).sum(axis=1)
        coarse = blanket_delta(merged[0], merged[1], narrow, **given)
        assert coarse.lower * 0.97 <= fine.upper <= coarse.upper * 1.05
        attacked = delta_of_rows(rows[0], rows[1], rows[2], **given)
        assert attacked <= fine.upper
        kept = delta_of_rows(merged[0], merged[1], merged[2], **given)
        assert attacked >= kept * 0.97


def test_spreading_and_merging_go_up_and_down():
    # n = 1 lists any number of outputs: no kernel, no budget.
    generator = Entropy.from_seed(5).generator()
    rows = generator.gamma(1.0, size=(3, 5 * MOST_ATOMS)) + 1e-3
    rows /= rows.sum(axis=1, keepdims=True)
    for epsilon in (0.0, 0.2, 1.0):
        exact = np.maximum(rows[0] - math.exp(epsilon) * rows[1], 0.0).sum()
        found, attacked = (
            both(rows, rows.min(axis=0), 1, epsilon)[0],
            both(rows, rows[2], 1, epsilon)[1],
        )
        assert exact <= found.upper <= exact * 1.05
        assert exact * 0.95 <= attacked <= exact * (1.0 + 1e-12)


def test_equal_outputs_are_one():
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    split = np.repeat(rows / 100.0, 100, axis=1)
    for num_users in (3, 1000, 10**9):
        epsilon = 3.0 / math.sqrt(num_users)
        for one, many in zip(
            both(rows, rows.min(axis=0), num_users, epsilon),
            both(split, split.min(axis=0), num_users, epsilon),
            strict=True,
        ):
            wanted = getattr(one, "upper", one)
            assert getattr(many, "upper", many) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("num_users", [10, 1000, 10**6])
def test_an_output_too_rare_to_hide_anybody(num_users):
    # The one sends it once in a thousand times, all others once in 1e14.
    rare = 1e-14
    rows = np.array([[0.5, 0.5 - 1e-3, 1e-3], [0.5, 0.5 - rare, rare]])
    found = blanket_delta(rows[0], rows[1], rows[1], num_users=num_users, epsilon=1.0)
    attacked = delta_of_rows(rows[0], rows[1], rows[1], num_users=num_users, epsilon=1.0)
    assert 1e-3 * (1.0 - 1e-4) <= attacked <= found.upper <= 1e-3 * (1.0 + 1e-4)


def test_gains_far_below_are_no_obstacle():
    # k-RR at e^20: the other answer of the pair, once in 5e8 reports, has a gain of -e^39.
    p = math.exp(20.0)
    rows = np.array([[p, 1.0, 1.0, 1.0], [1.0, p, 1.0, 1.0], [1.0, 1.0, p, 1.0]]) / (p + 3.0)
    exact = (p - math.exp(19.0)) / (p + 3.0)
    found, _ = both(rows, np.full(4, 1.0 / (p + 3.0)), 1000, 19.0)
    attacked = delta_of_rows(rows[0], rows[1], rows[2], num_users=1000, epsilon=19.0)
    assert exact * (1.0 - 1e-4) <= attacked <= exact <= found.upper <= exact * (1.0 + 1e-4)


def test_gains_beyond_all_measure_prove_nothing_false():
    # A third input that sends the pair's outputs once in 1e16 reports, among 1e15 users.
    rows = np.array([[0.7, 0.3, 0.0], [0.3, 0.7, 0.0], [1e-16, 1e-16, 1.0 - 2e-16]])
    attacked = delta_of_rows(rows[0], rows[1], rows[2], num_users=10**15, epsilon=1e-8)
    assert 0.0 <= attacked <= 0.4


def test_an_output_that_the_others_never_send_stands_out_whatever_n():
    rows = np.array([[0.6, 0.4], [0.8, 0.2]])
    others = np.array([1.0, 0.0])
    for num_users in (1, 10, 10**15):
        found = delta_of_rows(rows[0], rows[1], others, num_users=num_users, epsilon=math.log(1.5))
        assert found == pytest.approx(0.1, rel=1e-9)
        assert found <= 0.1


def test_a_mean_above_zero_is_added_apart():
    # The pair's masses on the blanket differ, by far more than a sum of 1e15 gains varies.
    rows = np.array([[0.5, 0.3, 0.2], [0.5, 0.0, 0.5], [0.5, 0.2, 0.3]])
    omega = rows.min(axis=0)
    found = blanket_delta(rows[0], rows[1], omega, num_users=10**15, epsilon=0.0)
    assert found.upper == pytest.approx(0.3, rel=1e-7)
    for num_users in (3, 8):
        exact = float(listed(rows[2], rows[1], omega, 0.0, num_users))
        found = blanket_delta(rows[2], rows[1], omega, num_users=num_users, epsilon=0.0)
        assert exact * (1 - 1e-12) <= found.upper <= exact * (1.0 + 1e-4)


def test_entries_far_below_all_others_end_in_simpler_bounds():
    # Two of the pair's outputs are so rare that gains reach 1e37; the contour once went on forever.
    rows = np.array(
        [
            [1.0 - 1.61463e-3, 1.61463e-3, 2.52e-20, 0.0, 0.0],
            [1.61652e-3, 1.64e-40, 4.18e-14, 1.0 - 1.61652e-3 - 1.776e-11, 1.776e-11],
            [1.0 - 1.444e-8, 1.444e-8, 1.673e-50, 0.0, 2.917e-48],
        ]
    )
    given = {"num_users": 1_373_295_020, "epsilon": 2.75}
    # One report that stands out wherever it may, and nothing else is left.
    exact = np.maximum(rows[0] - math.exp(2.75) * rows[1], 0.0).sum()
    bound = blanket_delta(rows[0], rows[1], rows.min(axis=0), **given).upper
    assert 0.0 <= bound <= exact * (1.0 + 1e-12)
    assert 0.0 <= delta_of_rows(rows[0], rows[1], rows[2], **given) <= exact


def test_no_output_in_the_crowd():
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    nothing = np.zeros(3)
    found = blanket_delta(rows[0], rows[1], nothing, num_users=9, epsilon=1.0)
    assert found.upper == pytest.approx(0.5, rel=1e-12)


EPSILONS_OF_CHANNEL_ATTACKS = (0.0, 0.05, 0.3, 1.0, 2.0, 4.0)


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
        for epsilon in EPSILONS_OF_CHANNEL_ATTACKS:
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
    monkeypatch.setattr(channel_rows, "_MOST_RANKED", 1)
    few = attack_delta(profile, 200, 0.3)
    assert 0.5 * full <= few <= full * (1.0 + 1e-9)


def test_a_profile_without_a_channel_is_refused():
    with pytest.raises(ParameterError, match="no channel"):
        attack_delta(LocalProfile(epsilon0=1.0), 10, 0.1)
