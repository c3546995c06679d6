import itertools
import math

import pytest

from oracles import enumeration
from oracles.multiprecision import blanket_delta, unary_atoms
from oracles.profiles import any_randomizer, k_rr, optimized_unary, symmetric_unary
from oracles.sums import UnaryFourKinds
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.accounting.amplification.symmetric_blanket import SymmetricBlanket
from shuffledp.accounting.amplification.unary_encoding import (
    lightened_law,
    spread_law,
    third_bit_law,
    third_value_law,
)
from shuffledp.core.errors import OutOfRegimeError

KINDS = pytest.mark.parametrize(
    ("profile_for", "optimized"), [(symmetric_unary, False), (optimized_unary, True)]
)


@KINDS
@pytest.mark.parametrize("num_users", [1, 2, 10, 30])
def test_two_weights_are_above_the_three_that_they_stand_for(profile_for, optimized, num_users):
    for epsilon0 in (0.3, 1.0, 3.0, 6.0):
        truth = UnaryFourKinds(epsilon0, num_users, optimized=optimized)
        profile = profile_for(epsilon0)
        for law in (spread_law(profile), lightened_law(profile)):
            blanket = SymmetricBlanket(law, num_users)
            for share in (0.0, 0.1, 0.4, 0.8, 0.97):
                exact = truth.delta(epsilon0 * share)
                upper = blanket.enclose(epsilon0 * share).upper
                assert upper >= exact * (1.0 - 1e-11), (epsilon0, share)
    # spreading costs of the order 1/n
    law = UnaryFourKinds(1.0, num_users, optimized=optimized)
    upper = SymmetricBlanket(spread_law(profile_for(1.0)), num_users).enclose(0.1).upper
    assert upper <= law.delta(0.1) * (1.0 + 2.0 / num_users)


@KINDS
def test_four_kinds_against_multiprecision(profile_for, optimized):
    for epsilon in (0.0, 0.4, 1.4):
        exact = blanket_delta(unary_atoms(1.5, optimized=optimized), epsilon, 8)
        law = UnaryFourKinds(1.5, 8, optimized=optimized)
        assert law.delta(epsilon) == pytest.approx(float(exact), rel=1e-12)
        assert sum(law.masses) == pytest.approx(1.0)
    # From epsilon0 = 30 doubles may refuse, but they must not err.
    for epsilon0, epsilon in ((12.0, 11.0), (20.0, 19.9), (35.0, 34.0), (40.0, 38.0)):
        exact = blanket_delta(unary_atoms(epsilon0, optimized=optimized), epsilon, 3)
        upper = account_delta(profile_for(epsilon0, 3), num_users=3, epsilon=epsilon).upper
        alone = -math.expm1(epsilon - epsilon0) / (1.0 + math.exp(-epsilon0))
        assert upper >= min(float(exact), alone) * (1.0 - 1e-14)


@KINDS
@pytest.mark.parametrize("num_users", [1, 2, 4])
def test_third_value_law_is_the_divergence_of_its_data(profile_for, optimized, num_users):
    # Seen through the pair's two bits only: four outcomes, rows for x, x' and a third value.
    for epsilon0 in (0.5, 2.0, 5.0):
        p = math.exp(epsilon0)
        keep = 0.5 if optimized else math.sqrt(p) / (1.0 + math.sqrt(p))
        noise = 1.0 / (p + 1.0) if optimized else 1.0 - keep
        channel = [
            [
                (first if a else 1.0 - first) * (second if b else 1.0 - second)
                for a, b in itertools.product((0, 1), repeat=2)
            ]
            for first, second in ((keep, noise), (noise, keep), (noise, noise))
        ]
        p_law, q_law = next(
            (p_law, q_law)
            for p_law, q_law, pair, others in enumeration.neighbouring_laws(channel, num_users)
            if pair == (0, 1) and set(others) <= {2}
        )
        blanket = SymmetricBlanket(third_value_law(profile_for(epsilon0)), num_users)
        for share in (0.0, 0.3, 0.9):
            exact = enumeration.hockey_stick(p_law, q_law, math.exp(epsilon0 * share))
            found = blanket.enclose(epsilon0 * share)
            assert found.lower <= exact * (1.0 + 1e-12)
            assert found.upper >= exact * (1.0 - 1e-12)


@KINDS
@pytest.mark.parametrize("num_users", [1, 2, 4])
def test_third_bit_law_is_the_divergence_of_its_data(profile_for, optimized, num_users):
    # Reports with the third bit unset and the pair's bits (1,0) or (0,1); all others are merged.
    for epsilon0 in (0.5, 2.0, 5.0):
        p = math.exp(epsilon0)
        full = (
            enumeration.optimized_unary(3, p)
            if optimized
            else enumeration.symmetric_unary(3, math.sqrt(p))
        )
        reports = list(itertools.product((0, 1), repeat=3))
        first, second = reports.index((1, 0, 0)), reports.index((0, 1, 0))
        merged = [[row[first], row[second], 1.0 - row[first] - row[second]] for row in full]

        def divergence(channel, epsilon):
            p_law, q_law = next(
                (p_law, q_law)
                for p_law, q_law, pair, others in enumeration.neighbouring_laws(channel, num_users)
                if pair == (0, 1) and set(others) <= {2}
            )
            return enumeration.hockey_stick(p_law, q_law, math.exp(epsilon))

        blanket = SymmetricBlanket(third_bit_law(profile_for(epsilon0)), num_users)
        for share in (0.0, 0.3, 0.9):
            exact = divergence(merged, epsilon0 * share)
            found = blanket.enclose(epsilon0 * share)
            assert found.lower <= exact * (1.0 + 1e-12)
            assert found.upper >= exact * (1.0 - 1e-12)
            # merging is post-processing: it never helps the adversary
            assert exact <= divergence(full, epsilon0 * share) * (1.0 + 1e-12) + 1e-16


@KINDS
def test_bracket_at_many_users(profile_for, optimized):
    bound = account_epsilon(profile_for(1.0, 16), num_users=10**5, delta=1e-8)
    assert bound.method == "unary-blanket"
    assert 0.0 < bound.lower < bound.upper
    # The blanket is a share l of the noise, the data's reports are noise whole: sqrt(l) apart.
    assert bound.gap < 0.25
    clones = account_epsilon(any_randomizer(1.0), num_users=10**5, delta=1e-8)
    assert bound.upper < clones.upper


@KINDS
def test_two_values_have_no_third(profile_for, optimized):
    for size in (None, 2):
        bound = account_epsilon(profile_for(1.0, size), num_users=100, delta=1e-4)
        assert bound.lower is None
        assert bound.gap is None


@pytest.mark.parametrize("profile", [any_randomizer(1.0), k_rr(1.0, 4)])
def test_only_for_unary_encodings(profile):
    with pytest.raises(OutOfRegimeError, match="unary encoding"):
        account_epsilon(profile, num_users=10, delta=0.1, method="unary-blanket")


@KINDS
@pytest.mark.parametrize(("num_users", "delta"), [(1, 0.1), (500, 1e-6), (10**6, 1e-250)])
def test_both_laws_are_tried(num_users, delta, profile_for, optimized):
    profile = profile_for(8.0)
    ends = [
        SymmetricBlanket(law, num_users).epsilon_above(delta, 8.0)
        for law in (lightened_law(profile), spread_law(profile))
    ]
    found = account_epsilon(profile, num_users=num_users, delta=delta, with_lower=False)
    assert found.upper <= min(ends)
