"""Dummies and honest users together."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from oracles import profiles
from shuffledp.amplification import dummy_crowds
from shuffledp.amplification.dummy_crowds import crowd_curve, dummy_ends
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.profile import LocalProfile

LAPLACE = DummyLaw.from_text("laplace:4.0:50")
GAUSSIAN = DummyLaw.from_text("gaussian:6.0:33")


@pytest.mark.parametrize("num_users", [30, 1_000, 10**5])
@pytest.mark.parametrize(("k", "epsilon0"), [(2, 1.0), (16, 3.0)])
def test_levels_of_a_crowd_are_missed_as_rarely_as_they_say(k, epsilon0, num_users):
    chance = 2.0 / (math.exp(epsilon0) + k - 1.0)
    law = dummy_crowds._crowd_on_pair(num_users - 1, chance, GAUSSIAN)
    assert law is None or all(
        stats.binom.cdf(size - 2, num_users - 1, chance) <= miss
        for size, miss in zip(law.sizes, law.misses, strict=True)
    )
    assert law is not None or chance * num_users < 10.0


@pytest.mark.parametrize("number", [1, 2, 9, 400])
def test_rows_are_the_joint_law_of_both_bins(number):
    rows = dummy_crowds._rows(GAUSSIAN, number)
    assert rows.sum() == pytest.approx(1.0, rel=1e-12)
    table = np.array([each / 2**64 for each in GAUSSIAN.table])
    fair = stats.binom.pmf(np.arange(number + 1), number, 0.5)
    last = np.convolve(table * table[::-1], fair)  # Z_1 + Z_2 = 2t
    kept = rows[-1][rows[-1] > 1e-25]
    assert np.allclose(kept, last[last > 1e-25][: kept.size], rtol=1e-9, atol=1e-22)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN, DummyLaw.from_text("poisson:0.05")])
@pytest.mark.parametrize(("k", "epsilon0"), [(2, 2.0), (16, 4.0), (300, 6.0)])
def test_the_least_of_all_is_named_and_above_its_lower_end(law, k, epsilon0):
    profile = profiles.k_rr(epsilon0, k)
    for num_users in (1, 30, 300, 3_000, 30_000):
        plain = account_epsilon(profile, num_users=num_users, delta=1e-6, with_lower=False)
        found = account_epsilon(profile, num_users=num_users, delta=1e-6, dummies=law)
        uppers, _ = dummy_ends(profile, num_users, law, delta=1e-6, with_lower=False)
        assert found.upper == min(*uppers.values(), plain.upper)
        assert 0.3 * found.upper < found.lower <= found.upper
        at = account_delta(profile, num_users=num_users, epsilon=found.upper, dummies=law)
        assert at.upper <= 1e-6 * (1.0 + 1e-6)
        assert at.lower <= at.upper


def test_a_crowd_helps_dummies_where_neither_is_far_ahead():
    profile = profiles.k_rr(3.0, 2)
    joint = account_epsilon(profile, num_users=1_000, delta=1e-6, dummies=GAUSSIAN)
    assert joint.method == "joint-dummies"
    assert any("All counted users are honest" in each for each in joint.assumptions)
    assert joint.upper == pytest.approx(0.61815, rel=1e-4)
    alone = account_epsilon(profile, num_users=1, delta=1e-6, dummies=GAUSSIAN)
    assert any("may do what they like" in each for each in alone.assumptions)
    assert joint.upper < 0.95 * alone.upper


def test_users_dummies_count_as_further_users():
    law, profile = DummyLaw.from_text("poisson:0.04"), profiles.k_rr(5.0, 16)
    found = account_epsilon(profile, num_users=1_000, delta=1e-6, dummies=law)
    assert found.method == "raised-blanket"
    further = math.floor(16 * 40.0 / math.log1p(16 / math.expm1(5.0)))
    raised = account_epsilon(
        profile, num_users=1_000 + further, delta=1e-6, method="k-rr-blanket", with_lower=False
    )
    assert found.upper == pytest.approx(raised.upper, rel=1e-6)


def test_what_is_not_affordable_is_left_out():
    profile = profiles.k_rr(3.0, 2)
    assert crowd_curve(LAPLACE, profile, 1) is None
    assert crowd_curve(LAPLACE, LocalProfile(epsilon0=1.0), 100) is None
    few = profiles.k_rr(0.3, 2)  # 0.85 of the others answer uniformly: one is too few to count on
    assert crowd_curve(LAPLACE, few, 2) is None
    assert crowd_curve(LAPLACE, few, 3) is not None
    assert crowd_curve(DummyLaw.from_text("laplace:900.0:9000"), profile, 10_000) is None
    wide = account_epsilon(profile, num_users=10**7, delta=1e-6, dummies=LAPLACE)
    assert wide.lower is None
    assert wide.upper == account_epsilon(profile, num_users=10**7, delta=1e-6).upper
    assert account_epsilon(profile, num_users=9, delta=0.0, dummies=LAPLACE).lower is None


def test_explicit_data_are_the_difference_of_two_bins():
    law, profile, n = DummyLaw.from_text("laplace:1.0:4"), profiles.k_rr(1.5, 4), 5
    table = np.array([each / 2**64 for each in law.table])
    p, q = np.array([math.exp(1.5), 1.0]) / (math.exp(1.5) + 3.0)
    noise = np.convolve(table, table[::-1])
    for _ in range(n - 1):
        noise = np.convolve(noise, [q, 1.0 - 2.0 * q, q])
    one, other = (np.convolve(noise, [a, 2.0 * q, b]) for a, b in ((q, p), (p, q)))
    for epsilon in (0.0, 0.3, 1.0):
        wanted = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
        found = dummy_crowds.attack_delta(law, profile, n, epsilon)
        assert found == pytest.approx(wanted, rel=1e-8)
        assert found <= wanted


def test_more_users_or_wider_dummies_never_raise_the_bound():
    profile = profiles.k_rr(3.0, 4)
    for users, other in itertools.pairwise((1, 3, 50, 500, 5_000)):
        few, many = (
            account_delta(profile, num_users=n, epsilon=0.4, dummies=GAUSSIAN, with_lower=False)
            for n in (users, other)
        )
        assert many.upper <= few.upper * (1.0 + 1e-9)


def test_little_noise_and_many_dummies_are_no_more_users_than_can_be_counted():
    profile = profiles.k_rr(40.0, 16)
    law = DummyLaw.from_text("poisson:0.0043")
    found = account_delta(profile, num_users=10_000, epsilon=1.0, dummies=law)
    assert 0.0 < found.upper <= 1e-6


def test_what_is_too_wide_or_beyond_the_local_loss_is_not_computed():
    law, profile = DummyLaw.from_text("laplace:2.0:27"), profiles.k_rr(1.0, 4)
    assert dummy_crowds.attack_delta(law, profile, 10**9, 0.5) == 0.0
    found = dummy_crowds._joint(law, profile, None, 1.0)
    assert (found.lower, found.upper) == (0.0, 0.0)
