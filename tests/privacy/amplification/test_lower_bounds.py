import math

import pytest

from oracles import profiles
from oracles.binary import BinaryConvolution
from oracles.sums import DirectSum, k_rr_third_answer
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.privacy.amplification.lower_bounds import unavoidable_delta, unavoidable_epsilon


def two_and_three(epsilon0, num_users, epsilon):
    """Exact delta of binary RR and of ternary RR with all others at the third answer."""
    return (
        BinaryConvolution(epsilon0, num_users).delta(epsilon),
        DirectSum(k_rr_third_answer(epsilon0, 3), num_users).delta(epsilon),
    )


@pytest.mark.parametrize("num_users", [10, 100])
@pytest.mark.parametrize("epsilon0", [0.3, 0.6, 1.5, 4.0])
def test_the_class_is_attacked_by_the_better_of_two_and_three(num_users, epsilon0):
    for share in (0.0, 0.1, 0.4):
        binary, ternary = two_and_three(epsilon0, num_users, epsilon0 * share)
        found = unavoidable_delta(profiles.any_randomizer(epsilon0), num_users, epsilon0 * share)
        assert found <= max(binary, ternary) * (1.0 + 1e-11)
        assert found >= 0.8 * max(binary, ternary)  # data at the ends, or nearly the worst
        found = unavoidable_epsilon(
            profiles.any_randomizer(epsilon0), num_users, max(binary, ternary)
        )
        assert found <= epsilon0 * share * (1.0 + 1e-9) + 1e-12


def test_ternary_is_the_worse_above_ln_two():
    for epsilon0, worse in ((0.5, 0), (2.0, 1)):
        deltas = two_and_three(epsilon0, 300, 0.1)
        assert deltas[worse] == max(deltas)


def test_a_class_of_two_inputs_is_attacked_by_binary_only():
    two = LocalProfile(epsilon0=2.0, domain_size=2)
    three = LocalProfile(epsilon0=2.0, domain_size=3)
    binary, ternary = two_and_three(2.0, 100, 0.1)
    assert unavoidable_delta(two, 100, 0.1) <= binary * (1.0 + 1e-11) < ternary
    assert unavoidable_delta(three, 100, 0.1) == pytest.approx(ternary, rel=1e-6)


@pytest.mark.parametrize(
    "profile",
    [
        profiles.symmetric_unary(1.0),
        profiles.optimized_unary(1.0, 2),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, domain_size=2),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, domain_size=9),
    ],
)
def test_nothing_is_claimed_where_nothing_is_known(profile):
    assert unavoidable_delta(profile, 10, 0.1) is None
    assert unavoidable_epsilon(profile, 10, 0.1) is None


@pytest.mark.parametrize("epsilon0", [25.0, 32.0, 36.0, 40.0, 60.0, 100.0, 199.0])
@pytest.mark.parametrize("num_users", [1, 100])
def test_large_epsilon0_is_attacked_too(epsilon0, num_users):
    # Nearly every report is the truth: the victim's is lost in the crowd with next to no chance.
    for profile in (profiles.any_randomizer(epsilon0), profiles.k_rr(epsilon0, 5)):
        epsilon = unavoidable_epsilon(profile, num_users, 1e-6)
        assert 0.0 <= epsilon <= epsilon0
        delta = unavoidable_delta(profile, num_users, 0.5 * epsilon0)
        assert 0.0 <= delta <= 1.0
        assert math.isfinite(delta)
