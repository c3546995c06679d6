"""The bound for a channel matrix: enumeration, named methods, invariance, edges."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import enumeration, profiles
from oracles.given_channels import listed, random_channel, randomized_response
from oracles.stated_blankets import atoms_of, epsilon0_of, stated, subset_selection
from shuffledp.amplification import channel_blanket
from shuffledp.amplification.channel_blanket import CHANNEL_BLANKET, ceilings, violated_hypothesis
from shuffledp.amplification.channel_rows import blanket_delta, channel_profile, channel_rows
from shuffledp.amplification.registry import METHODS
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.0, 4.0)
DELTAS = (1e-6, 1e-3, 0.05, 0.3)


def upper_delta(matrix, num_users, epsilon):
    return CHANNEL_BLANKET.delta(channel_profile(matrix), num_users, epsilon).upper


def upper_epsilon(matrix, num_users, delta):
    return CHANNEL_BLANKET.epsilon(channel_profile(matrix), num_users, delta).upper


# ------------------------------------------------------------------ enumeration of all data


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("num_users", [1, 2, 3, 4, 5])
def test_no_data_do_worse(num_users, zeros):
    for seed in range(15):
        rows = random_channel(seed, zeros=zeros, largest=3 if num_users == 5 else 4)
        profile = channel_profile(rows)
        truth = enumeration.ShuffledDivergence(rows.tolist(), num_users)
        for epsilon in EPSILONS:
            exact = truth.delta(epsilon)
            bound = CHANNEL_BLANKET.delta(profile, num_users, epsilon).upper
            assert bound >= exact * (1.0 - 1e-12) - 1e-15
        for delta in DELTAS:
            if violated_hypothesis(profile, num_users, delta) is None:
                bound = CHANNEL_BLANKET.epsilon(profile, num_users, delta).upper
                assert bound >= truth.epsilon(delta, 50.0) * (1.0 - 1e-11) - 1e-12


def test_a_zero_outside_the_pair_is_not_forgotten():
    # The third input never sends the second output; where all others hold it, the victim's report
    # stands out. Without the second sum of (Z) the bound would be 0 here.
    rows = [[Fraction(1, 2)] * 2, [Fraction(3, 4), Fraction(1, 4)], [Fraction(1), Fraction(0)]]
    e = Fraction(3, 2)
    for num_users in (2, 3, 4):
        exact = max(
            enumeration.hockey_stick(p, q, e)
            for p, q, pair, _ in enumeration.neighbouring_laws(rows, num_users)
            if 2 not in pair
        )
        assert exact >= Fraction(1, 8)
        two = channel_rows(rows)
        found = channel_blanket.blanket_delta(
            two.rows[0], two.rows[1], two.hidden, num_users=num_users, epsilon=math.log(e)
        )
        assert found.upper >= exact


def test_one_user_is_as_private_as_the_channel():
    for seed in range(20):
        rows = random_channel(seed, zeros=True)
        for epsilon in EPSILONS:
            e = math.exp(epsilon)
            exact = max(np.maximum(p - e * q, 0.0).sum() for p in rows for q in rows)
            assert upper_delta(rows, 1, epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-13)


# ------------------------------------------------------------------ independent sums


@pytest.mark.slow
@pytest.mark.parametrize("num_users", [7, 15])
def test_it_is_the_largest_listed_sum_over_pairs(num_users):
    for seed in range(6):
        rows = random_channel(seed, zeros=seed % 2 == 1)
        omega = rows.min(axis=0)
        for epsilon in (0.1, 1.0):
            exact = max(
                float(listed(p, q, omega, epsilon, num_users))
                for p in rows
                for q in rows
                if p is not q
            )
            found = upper_delta(rows, num_users, epsilon)
            assert exact * (1.0 - 1e-12) <= found <= exact * 1.003 + 1e-11


# ------------------------------------------------------------------ the named methods


@pytest.mark.parametrize("num_users", [20, 1000, 10**6, 10**12])
@pytest.mark.parametrize(("k", "epsilon0"), [(3, 0.5), (4, 1.0), (16, 3.0), (64, 5.0)])
def test_k_rr_as_a_matrix(k, epsilon0, num_users):
    named = METHODS["k-rr-blanket"]
    profile = profiles.k_rr(epsilon0, k)
    matrix = randomized_response(k, epsilon0)
    for delta in (1e-8, 1e-4):
        own = upper_epsilon(matrix, num_users, delta)
        other = named.epsilon(profile, num_users, delta).upper
        assert own == pytest.approx(other, rel=2e-6, abs=1e-12)


def test_optimised_unary_as_a_matrix():
    p = math.exp(1.0)
    matrix = enumeration.optimized_unary(4, p)
    profile = profiles.optimized_unary(1.0, 4)
    for num_users in (1000, 10**6):
        own = upper_epsilon(matrix, num_users, 1e-6)
        other = METHODS["unary-blanket"].epsilon(profile, num_users, 1e-6).upper
        # The named method brings three weights to two; the matrix needs not.
        assert other * 0.97 <= own <= other * (1.0 + 1e-6)


def test_subset_selection_as_a_matrix():
    p = Fraction(5, 2)
    matrix = subset_selection(5, 2, p)
    profile = stated(epsilon0_of(p), atoms_of(matrix), 5)
    for num_users in (1000, 10**6):
        own = upper_epsilon(matrix, num_users, 1e-6)
        other = METHODS["stated-blanket"].epsilon(profile, num_users, 1e-6).upper
        assert other * 0.98 <= own <= other * (1.0 + 1e-6)


def test_clones_are_never_better_than_the_blanket_of_a_pair():
    # Two inputs only: the blanket is the pair's own.
    for epsilon0 in (0.5, 2.0):
        own = upper_epsilon(randomized_response(2, epsilon0), 5000, 1e-6)
        clones = METHODS["clones"].epsilon(LocalProfile(epsilon0=epsilon0), 5000, 1e-6).upper
        assert own <= clones * (1.0 + 1e-6)


# ------------------------------------------------------------------ invariance


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), zeros=st.booleans(), num_users=st.sampled_from([2, 40, 3000]))
def test_order_repetition_and_splitting_change_nothing(seed, zeros, num_users):
    rows = random_channel(seed, zeros=zeros)
    plain = upper_delta(rows, num_users, 0.2)
    shuffled = rows[::-1][:, np.roll(np.arange(rows.shape[1]), 1)]
    repeated = np.concatenate([rows, rows[:1]])
    split = np.concatenate([0.25 * rows, 0.75 * rows], axis=1)
    for same in (shuffled, repeated, split):
        assert upper_delta(same, num_users, 0.2) == pytest.approx(plain, rel=5e-3, abs=1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), zeros=st.booleans(), num_users=st.sampled_from([2, 40, 3000]))
def test_merged_outputs_hide_more_and_more_inputs_less(seed, zeros, num_users):
    rows = random_channel(seed, zeros=zeros)
    plain = upper_delta(rows, num_users, 0.2)
    merged = np.concatenate([rows[:, :1] + rows[:, 1:2], rows[:, 2:]], axis=1)
    assert upper_delta(merged, num_users, 0.2) <= plain * 1.005 + 1e-11
    mixed = np.concatenate([rows, 0.5 * rows[:1] + 0.5 * rows[1:2]])
    assert upper_delta(mixed, num_users, 0.2) == pytest.approx(plain, rel=5e-3, abs=1e-11)
    if rows.shape[0] == 3:
        assert upper_delta(rows[:2], num_users, 0.2) <= plain * 1.005 + 1e-11


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), num_users=st.sampled_from([3, 200, 10**6]))
def test_more_users_and_more_delta_lower_epsilon(seed, num_users):
    rows = random_channel(seed, zeros=False)
    found = upper_epsilon(rows, num_users, 1e-6)
    assert upper_epsilon(rows, 2 * num_users, 1e-6) <= found * (1.0 + 1e-5)
    assert upper_epsilon(rows, num_users, 1e-5) <= found * (1.0 + 1e-5)
    assert found <= channel_profile(rows).epsilon0


def test_epsilon_and_delta_invert_each_other():
    rows = random_channel(3, zeros=False)
    for num_users in (50, 10**4):
        epsilon = upper_epsilon(rows, num_users, 1e-5)
        assert upper_delta(rows, num_users, epsilon) <= 1e-5 * (1.0 + 1e-9)
        assert upper_delta(rows, num_users, epsilon * 0.999) > 1e-5


# ------------------------------------------------------------------ which pairs are evaluated


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("num_users", [1, 10, 10**4, 10**12])
def test_ceilings_are_above_every_pair(num_users, zeros):
    for seed in range(10):
        channel = channel_rows(random_channel(seed, zeros=zeros))
        for epsilon in (0.0, 1.0 / math.sqrt(num_users), 2.0):
            found = ceilings(channel, num_users, epsilon)
            for i in range(channel.num_inputs):
                for j in range(channel.num_inputs):
                    if i == j:
                        assert found[i, j] == -math.inf
                    else:
                        exact = blanket_delta(
                            *channel.rows[[i, j]], channel.hidden, num_users, epsilon
                        )
                        assert found[i, j] >= exact.lower


def test_ceilings_of_blocks_are_those_of_the_whole(monkeypatch):
    channel = channel_rows(random_channel(1, zeros=True))
    whole = ceilings(channel, 100, 0.1)
    monkeypatch.setattr(channel_blanket, "_COLUMNS", 2)
    assert ceilings(channel, 100, 0.1) == pytest.approx(whole, rel=1e-9)


def test_pairs_that_cannot_be_worst_are_not_evaluated(monkeypatch):
    # Ten inputs alike and one far from them: only pairs with that one are looked at.
    rows = np.full((11, 6), 1.0 / 6.0)
    for number in range(10):
        rows[number] += 1e-4 * np.roll([1.0, -1.0, 0.0, 0.5, -0.5, 0.0], number) / (1 + number)
    rows[10] = [0.3, 0.1, 0.1, 0.2, 0.2, 0.1]
    looked_at = []
    delta = channel_blanket._Pairs.delta

    def counted(self, pair, epsilon):
        looked_at.append(pair)
        return delta(self, pair, epsilon)

    monkeypatch.setattr(channel_blanket._Pairs, "delta", counted)
    upper_epsilon(rows, 10**4, 1e-6)
    assert looked_at
    assert all(10 in pair for pair in looked_at)


@pytest.mark.parametrize("most_columns", [512, 1])
def test_pairs_with_the_same_columns_are_evaluated_once(monkeypatch, most_columns):
    monkeypatch.setattr(channel_blanket, "_MOST_SORTED_COLUMNS", most_columns)
    looked_at = []
    delta = channel_blanket._Pairs.delta

    def counted(self, pair, epsilon):
        looked_at.append(pair)
        return delta(self, pair, epsilon)

    monkeypatch.setattr(channel_blanket._Pairs, "delta", counted)
    profile = channel_profile(enumeration.randomized_response(6, Fraction(3)))
    CHANNEL_BLANKET.delta(profile, 100, 0.1)
    assert len(looked_at) == (1 if most_columns > 1 else 30)


# ------------------------------------------------------------------ edges and refusals


def test_erasure_reveals_with_probability_one_half_whatever_n():
    matrix = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    profile = channel_profile(matrix)
    for num_users in (1, 1000, 10**15):
        assert upper_delta(matrix, num_users, 0.0) == pytest.approx(0.5, rel=1e-9)
        assert upper_delta(matrix, num_users, 600.0) == pytest.approx(0.5, rel=1e-9)
        assert CHANNEL_BLANKET.epsilon(profile, num_users, 0.6).upper == 0.0
        assert "delta of at least 0.5" in violated_hypothesis(profile, num_users, 0.4)


def test_zeros_need_no_delta0():
    # 1e-7 of the reports are certain: with delta above that a crowd hides all else.
    matrix = np.array([[0.7, 0.3 - 1e-7, 1e-7], [0.3, 0.7, 0.0], [0.5, 0.5, 0.0]])
    profile = channel_profile(matrix)
    found = CHANNEL_BLANKET.epsilon(profile, 10**6, 1e-6).upper
    without = upper_epsilon(np.array([[0.7, 0.3], [0.3, 0.7], [0.5, 0.5]]), 10**6, 9e-7)
    assert found == pytest.approx(without, rel=1e-3)


@pytest.mark.parametrize("num_users", [1, 2, 10**15])
@pytest.mark.parametrize("epsilon0", [1e-9, 1.0, 50.0, 190.0])
def test_extremes_give_a_number(epsilon0, num_users):
    matrix = randomized_response(4, epsilon0)
    for delta in (1e-300, 1e-12, 0.5):
        found = upper_epsilon(matrix, num_users, delta)
        assert 0.0 <= found <= epsilon0 * (1.0 + 1e-12) + 1e-13
    for epsilon in (0.0, 1e-12, 1.0, 300.0):
        assert 0.0 <= upper_delta(matrix, num_users, epsilon) <= 1.0 + 1e-9


def test_equal_rows_are_perfectly_private():
    assert upper_delta([[0.2, 0.8], [0.2, 0.8]], 10, 0.0) == 0.0
    assert upper_epsilon([[0.2, 0.8], [0.2, 0.8]], 10, 1e-9) == 0.0


def test_rows_that_round_to_the_same_are_not_called_private():
    third, nearly = Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**20)
    matrix = [[third, 1 - third], [nearly, 1 - nearly]]
    assert Fraction(upper_delta(matrix, 1, 0.0)) >= Fraction(1, 10**20)
    assert upper_delta(matrix, 1, 1e-13) == 0.0
    assert 0.0 < upper_epsilon(matrix, 10, 1e-30) < 1e-13


def test_hypotheses_are_named():
    matrix = randomized_response(3, 1.0)

    def profile(**changes):
        given = {"epsilon0": 1.1, "family": RandomizerFamily.OTHER, "channel": lambda: matrix}
        return LocalProfile(**(given | changes))

    assert violated_hypothesis(profile(), 10) is None
    assert violated_hypothesis(profile(), 10, 1e-6) is None
    assert "channel" in violated_hypothesis(profile(channel=None), 10)
    assert "channel" in violated_hypothesis(profile(family=RandomizerFamily.ANY), 10)
    assert "epsilon0 that covers" in violated_hypothesis(profile(epsilon0=0.9), 10)
    far = [[1.0 - 1e-100, 1e-100], [0.5, 0.5]]
    assert "at most 200" in violated_hypothesis(channel_profile(far), 10)
    erasure = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    assert "delta0 that covers" in violated_hypothesis(profile(channel=lambda: erasure), 10)
    with pytest.raises(ParameterError, match="sums to"):
        violated_hypothesis(profile(channel=lambda: [[0.5, 0.4], [0.5, 0.5]]), 10)
