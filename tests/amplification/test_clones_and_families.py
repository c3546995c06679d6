import itertools
import math

import pytest

from oracles import enumeration, sums
from oracles.family_laws import Blanket, pair_of
from oracles.multiprecision import blanket_delta, unary_atoms
from oracles.profiles import any_randomizer, k_rr, optimized_unary, symmetric_unary
from oracles.sums import UnaryFourKinds
from shuffledp.amplification.clones_and_families import (
    CLONES,
    clone_law,
    third_answer_law,
    third_bit_law,
    third_value_law,
    unary_law,
)
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.errors import OutOfRegimeError


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
    assert pair_of(clone_law(math.log(3.0))) == pytest.approx((0.5, 3.0, 1.0))
    assert clone_law(0.0).masses.sum() == 1.0


def test_it_applies_to_every_pure_randomizer():
    assert CLONES.violated_hypothesis(k_rr(1.0, 5), 1, None) is None
    named = account_delta(k_rr(1.0, 5), num_users=50, epsilon=0.2, method="clones")
    general = account_delta(any_randomizer(1.0), num_users=50, epsilon=0.2, method="clones")
    assert named.upper == general.upper


@pytest.mark.parametrize(
    ("epsilon0", "k", "lower", "upper"),
    [
        # n = 1000, delta = 1e-6. By the direct triple sum of `oracles.sums`, see the next test.
        # Theory 2.3 prints [0.11772937, 0.11782479] and [0.59009421, 0.59025693], which are off by
        # up to 7e-6.
        (1.0, 4, 0.11772935, 0.11782414),
        (3.0, 16, 0.59008696, 0.59025046),
    ],
)
def test_reference_values_of_k_randomized_response(epsilon0, k, lower, upper):
    bound = account_epsilon(k_rr(epsilon0, k), num_users=1000, delta=1e-6)
    assert bound.upper == pytest.approx(upper, abs=1.1e-8)
    assert bound.lower == pytest.approx(lower, abs=1e-6)
    assert bound.method == "k-rr-blanket"


def test_reference_values_by_the_direct_sum():
    for law, epsilon in (
        (sums.k_rr(1.0, 4), 0.11782414),
        (sums.k_rr_third_answer(1.0, 4), 0.11772935),
        (sums.k_rr(3.0, 16), 0.59025046),
        (sums.k_rr_third_answer(3.0, 16), 0.59008696),
    ):
        truth = sums.DirectSum(law, 1000)
        assert truth.delta(epsilon + 1e-8) < 1e-6 < truth.delta(epsilon - 1e-8)


@pytest.mark.parametrize("k", [3, 4, 6])
@pytest.mark.parametrize("num_users", [1, 2, 4, 6])
def test_third_answer_law_is_the_divergence_of_its_data(k, num_users):
    if k == 6 and num_users == 6:
        return
    for epsilon0 in (0.5, 2.0, 5.0):
        channel = enumeration.randomized_response(k, math.exp(epsilon0))
        p, q = next(
            (p, q)
            for p, q, pair, others in enumeration.neighbouring_laws(channel, num_users)
            if pair == (0, 1) and set(others) <= {2}
        )
        blanket = Blanket(third_answer_law(epsilon0, k), num_users)
        for share in (0.0, 0.3, 0.9):
            exact = enumeration.hockey_stick(p, q, math.exp(epsilon0 * share))
            found = blanket.enclose(epsilon0 * share)
            assert found.lower <= exact * (1.0 + 1e-12)
            assert found.upper >= exact * (1.0 - 1e-12)
            assert found.upper == pytest.approx(exact, rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("k", [3, 5, 40, 10**6])
@pytest.mark.parametrize("num_users", [1, 30, 3000])
def test_it_never_loses_to_clones_and_improves_with_k(k, num_users):
    for epsilon in (0.0, 0.05, 0.5):
        own = account_delta(k_rr(1.0, k), num_users=num_users, epsilon=epsilon)
        smaller = account_delta(k_rr(1.0, k - 1), num_users=num_users, epsilon=epsilon)
        clones = account_delta(any_randomizer(1.0), num_users=num_users, epsilon=epsilon)
        assert own.upper <= clones.upper * (1.0 + 5e-6)
        if k > 3:
            assert own.upper <= smaller.upper * (1.0 + 5e-6)


def test_gap_between_blanket_and_data():
    # theory 2.3: at most 0.08 % at n = 1e3, about 1e-5 from n = 1e5
    assert account_epsilon(k_rr(1.0, 4), num_users=1000, delta=1e-6).gap < 0.00082
    assert account_epsilon(k_rr(1.0, 4), num_users=100_000, delta=1e-6).gap < 2e-5


@pytest.mark.parametrize("profile", [any_randomizer(1.0), symmetric_unary(1.0, 4)])
def test_only_for_k_rr(profile):
    with pytest.raises(OutOfRegimeError, match="k-ary randomized response"):
        account_epsilon(profile, num_users=10, delta=0.1, method="k-rr-blanket")


KINDS = pytest.mark.parametrize(
    ("profile_for", "optimized"), [(symmetric_unary, False), (optimized_unary, True)]
)


@KINDS
@pytest.mark.parametrize("num_users", [1, 2, 10, 30])
def test_three_weights_against_the_direct_sum(profile_for, optimized, num_users):
    for epsilon0 in (0.3, 1.0, 3.0, 6.0):
        truth = UnaryFourKinds(epsilon0, num_users, optimized=optimized)
        blanket = Blanket(unary_law(profile_for(epsilon0)), num_users)
        for share in (0.0, 0.1, 0.4, 0.8, 0.97):
            exact = truth.delta(epsilon0 * share)
            upper = blanket.enclose(epsilon0 * share).upper
            assert upper >= exact * (1.0 - 1e-11), (epsilon0, share)
            assert upper <= exact * (1.0 + 1e-5) + 1e-15, (epsilon0, share)


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
        blanket = Blanket(third_value_law(profile_for(epsilon0)), num_users)
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

        blanket = Blanket(third_bit_law(profile_for(epsilon0)), num_users)
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
