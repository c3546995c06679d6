import math

import pytest

from oracles import sums
from oracles.profiles import any_randomizer, k_rr
from shuffledp.accounting.amplification.clones import CLONES, clone_law
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon


@pytest.mark.parametrize(
    ("epsilon0", "num_users", "reference"),
    [
        (1.0, 1000, 0.14867062),
        (1.0, 10_000, 0.04320616),
        (1.0, 100_000, 0.01242990),
        (0.5, 1000, 0.06268657),
        (3.0, 10_000, 0.22607898),
    ],
)
def test_reference_values(epsilon0, num_users, reference):
    # theory 2.2 and 2.3, delta = 1e-6
    bound = account_epsilon(any_randomizer(epsilon0), num_users=num_users, delta=1e-6)
    assert bound.method == "clones"
    assert bound.upper == pytest.approx(reference, abs=1e-8)


@pytest.mark.parametrize(("epsilon0", "num_users"), [(0.5, 300), (2.0, 500), (5.0, 200)])
def test_inversion_against_a_direct_sum(epsilon0, num_users):
    truth = sums.DirectSum(sums.clones(epsilon0), num_users)
    for delta in (1e-9, 1e-4):
        exact = truth.epsilon(delta, epsilon0)
        bound = account_epsilon(any_randomizer(epsilon0), num_users=num_users, delta=delta)
        assert exact * (1.0 - 1e-12) <= bound.upper <= exact * (1.0 + 1e-7)


def test_total_variation_below_delta_means_epsilon_zero():
    bound = account_epsilon(any_randomizer(0.5), num_users=10**12, delta=1e-6)
    assert bound.upper == bound.lower == 0.0
    delta = account_delta(any_randomizer(0.5), num_users=10**12, epsilon=0.0)
    assert 0.0 < delta.lower <= delta.upper < 1e-6


@pytest.mark.parametrize(
    ("epsilon0", "gap"), [(0.5, 0.15), (1.0, 0.15), (2.0, 0.07), (4.0, 0.012), (6.0, 0.002)]
)
def test_how_far_the_class_is_known(epsilon0, gap):
    # theory 2.2: bracket 10-14.5 % for epsilon0 in [0.5, 1], 6.3 % at 2, 1 % at 4, 0.13 % at 6
    bound = account_epsilon(any_randomizer(epsilon0), num_users=10**6, delta=1e-8)
    assert 0.0 < bound.gap < gap


@pytest.mark.parametrize("num_users", [10**3, 10**4, 10**6])
def test_how_far_above_the_unavoidable_end(num_users):
    bounds = [
        account_epsilon(any_randomizer(epsilon0), num_users=num_users, delta=1e-6)
        for epsilon0 in (0.5, math.log(2.0), 1.0)
    ]
    excess = [bound.upper / bound.lower - 1.0 for bound in bounds]
    assert 0.10 < min(excess) < max(excess) < 0.175  # docs/results/clones.md: 10 to 17 %


def test_the_law_of_the_clone():
    law = clone_law(math.log(3.0))
    assert law.pair_mass == pytest.approx(0.5)
    assert (law.low, law.difference) == (1.0, pytest.approx(2.0))
    assert clone_law(0.0).pair_mass == 1.0
    assert clone_law(0.0).difference == 0.0


def test_it_applies_to_every_pure_randomizer():
    assert CLONES.violated_hypothesis(k_rr(1.0, 5), 1, None) is None
    named = account_delta(k_rr(1.0, 5), num_users=50, epsilon=0.2, method="clones")
    general = account_delta(any_randomizer(1.0), num_users=50, epsilon=0.2, method="clones")
    assert named.upper == general.upper
