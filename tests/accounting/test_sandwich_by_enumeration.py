"""lower <= exact <= upper, the exact value from a list of all data, outcomes and directions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from oracles import enumeration, profiles
from oracles.channels import inside, largest_ratio, staircase
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.entropy import Entropy

SHARES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999)
DELTAS = (1e-12, 1e-6, 1e-3, 0.03, 0.3)

# The enumeration itself adds doubles; what it may be off by.
RELATIVE, ABSOLUTE = 1e-12, 1e-15

CASES = [
    *(("k-rr", k, n) for k in (2, 3) for n in range(1, 9)),
    *(("k-rr", 4, n) for n in (1, 2, 3, 5, 7)),
    *((name, k, n) for name in ("symmetric", "optimized") for k in (2, 3) for n in range(1, 5)),
]


def channel_and_profile(name, k, epsilon0):
    p = math.exp(epsilon0)
    if name == "k-rr":
        return enumeration.randomized_response(k, p), profiles.k_rr(epsilon0, k)
    if name == "symmetric":
        return (
            enumeration.symmetric_unary(k, math.sqrt(p)),
            profiles.symmetric_unary(epsilon0, k),
        )
    return enumeration.optimized_unary(k, p), profiles.optimized_unary(epsilon0, k)


def check_delta(exact, bound):
    assert bound.upper >= exact * (1.0 - RELATIVE) - ABSOLUTE
    if bound.lower is not None:
        assert bound.lower <= exact * (1.0 + RELATIVE) + ABSOLUTE


def check_epsilon(exact, bound):
    assert bound.upper >= exact * (1.0 - 1e-11) - 1e-12
    if bound.lower is not None:
        assert bound.lower <= exact * (1.0 + 1e-11) + 1e-12


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 7.0])
@pytest.mark.parametrize(("name", "k", "num_users"), CASES)
def test_every_randomizer_is_inside_its_bounds(name, k, num_users, epsilon0):
    channel, profile = channel_and_profile(name, k, epsilon0)
    truth = enumeration.ShuffledDivergence(channel, num_users)
    for share in SHARES:
        epsilon = epsilon0 * share
        exact = truth.delta(epsilon)
        for method in METHODS:
            if METHODS[method].violated_hypothesis(profile, num_users, None) is None:
                bound = account_delta(
                    profile, num_users=num_users, epsilon=epsilon, method=method, with_lower=False
                )
                assert bound.upper >= exact * (1.0 - RELATIVE) - ABSOLUTE, (method, epsilon)
        check_delta(exact, account_delta(profile, num_users=num_users, epsilon=epsilon))
    for delta in DELTAS:
        exact = truth.epsilon(delta, epsilon0)
        check_epsilon(exact, account_epsilon(profile, num_users=num_users, delta=delta))


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 7.0])
@pytest.mark.parametrize("num_users", range(1, 9))
def test_binary_is_exact(num_users, epsilon0):
    truth = enumeration.ShuffledDivergence(
        enumeration.randomized_response(2, math.exp(epsilon0)), num_users
    )
    profile = profiles.k_rr(epsilon0, 2)
    for share in SHARES[:-1]:
        exact = truth.delta(epsilon0 * share)
        bound = account_delta(profile, num_users=num_users, epsilon=epsilon0 * share)
        assert bound.upper == pytest.approx(exact, rel=2e-7, abs=ABSOLUTE)
        assert bound.lower == pytest.approx(exact, rel=2e-7, abs=ABSOLUTE)
    for delta in DELTAS[1:]:
        exact = truth.epsilon(delta, epsilon0)
        bound = account_epsilon(profile, num_users=num_users, delta=delta)
        assert bound.upper == pytest.approx(exact, rel=2e-8, abs=1e-9 * epsilon0)
        assert bound.lower == pytest.approx(exact, rel=2e-8, abs=1e-9 * epsilon0)


def random_channels():
    generator = Entropy.from_seed(20).generator()
    for num_inputs, num_users, count in ((2, 6, 40), (3, 4, 40), (3, 2, 20), (4, 3, 30)):
        for i in range(count):
            p = math.exp(generator.choice([0.2, math.log(2.0), 1.0, 2.0, 5.0]))
            make = inside if i % 4 == 3 else staircase
            yield make(num_inputs, p, generator), num_users


def test_clones_dominate_every_channel_tried():
    strictest, tried = 0.0, 0
    for channel, num_users in random_channels():
        epsilon0 = math.log(largest_ratio(channel))
        truth = enumeration.ShuffledDivergence(channel.tolist(), num_users)
        # From |eps| <= epsilon0 to the law's own ratio: rounded like a profile's, upwards.
        profile = profiles.any_randomizer(epsilon0 * (1.0 + 1e-14))
        for share in SHARES[:-1]:
            exact = truth.delta(epsilon0 * share)
            upper = account_delta(
                profile, num_users=num_users, epsilon=epsilon0 * share, with_lower=False
            ).upper
            assert upper >= exact * (1.0 - RELATIVE) - ABSOLUTE, (channel, num_users, share)
            strictest, tried = max(strictest, exact / upper), tried + 1
    # The channels are no straw men: some come within a tenth of the bound.
    assert tried == 780
    assert strictest > 0.9


def test_the_attack_on_the_class_is_a_member_of_the_class():
    # The lower end for "any randomizer" must be reached by binary or ternary randomized response.
    for epsilon0 in (0.3, 1.0, 2.5):
        members = [
            enumeration.ShuffledDivergence(
                enumeration.randomized_response(k, math.exp(epsilon0)), 6
            )
            for k in (2, 3)
        ]
        for share in SHARES[:-1]:
            bound = account_delta(
                profiles.any_randomizer(epsilon0), num_users=6, epsilon=epsilon0 * share
            )
            reached = max(member.delta(epsilon0 * share) for member in members)
            assert 0.0 < bound.lower <= reached * (1.0 + RELATIVE)
            assert bound.lower <= bound.upper


def others_at_third_value(channel, num_users, e):
    """Divergence of the pair (0, 1) where all others hold the value 2."""
    return next(
        enumeration.hockey_stick(p, q, e)
        for p, q, pair, others in enumeration.neighbouring_laws(channel, num_users)
        if pair == (0, 1) and set(others) == {2}
    )


def test_published_counterexample_in_exact_fractions():
    # k-RR, n = 3, k = 8, e^epsilon0 = 3, e^epsilon = 2, others at a third value (theory 2.3):
    # the variation-ratio bound is 11/1000.
    channel = enumeration.randomized_response(8, Fraction(3))
    exact = others_at_third_value(channel, 3, Fraction(2))
    assert exact == Fraction(7, 500)
    assert exact > Fraction(11, 1000)
    profile = profiles.k_rr(math.log(3.0), 8)
    bound = account_delta(profile, num_users=3, epsilon=math.log(2.0))
    assert bound.upper >= float(exact)
    assert bound.lower == pytest.approx(float(exact), rel=1e-9)


def test_second_published_counterexample():
    # n = 4, k = 4, epsilon0 = 2, epsilon = 1.5: exact 0.0955, variation-ratio 0.0647.
    channel = enumeration.randomized_response(4, math.exp(2.0))
    exact = others_at_third_value(channel, 4, math.exp(1.5))
    assert exact == pytest.approx(0.0955, abs=5e-5)
    bound = account_delta(profiles.k_rr(2.0, 4), num_users=4, epsilon=1.5)
    assert bound.upper >= exact > 0.0647
    assert bound.lower == pytest.approx(exact, rel=1e-9)


def test_worst_data_of_the_others_depend_on_epsilon():
    # n = 3, k = 3, epsilon0 = 1, epsilon = 0.7: theory 2.3 lists data and (B).
    channel, e = enumeration.randomized_response(3, math.exp(1.0)), math.exp(0.7)
    by_others = {}
    for p, q, pair, others in enumeration.neighbouring_laws(channel, 3):
        if pair in ((0, 1), (1, 0)):
            value = enumeration.hockey_stick(p, q, e)
            by_others[others] = max(by_others.get(others, 0.0), value)
    assert by_others[(0, 0)] == pytest.approx(0.04956, abs=5e-6)
    assert by_others[(2, 2)] == pytest.approx(0.03352, abs=5e-6)
    blanket = account_delta(profiles.k_rr(1.0, 3), num_users=3, epsilon=0.7, method="k-rr-blanket")
    assert blanket.upper == pytest.approx(0.05332, abs=5e-6)
    assert blanket.upper >= max(by_others.values())


def test_the_enumeration_agrees_with_itself_in_fractions():
    exact = enumeration.randomized_response(3, Fraction(5, 2))
    rounded = [[float(x) for x in row] for row in exact]
    pairs = zip(
        enumeration.neighbouring_laws(exact, 4),
        enumeration.neighbouring_laws(rounded, 4),
        strict=True,
    )
    for (p, q, *_), (p_float, q_float, *_) in pairs:
        assert sum(p) == sum(q) == 1
        value = enumeration.hockey_stick(p, q, Fraction(3, 2))
        assert enumeration.hockey_stick(p_float, q_float, 1.5) == pytest.approx(
            float(value), rel=1e-12, abs=1e-16
        )
    assert np.all([sum(row) == 1 for row in enumeration.symmetric_unary(2, Fraction(3))])
    assert np.all([sum(row) == 1 for row in enumeration.optimized_unary(3, Fraction(3))])
