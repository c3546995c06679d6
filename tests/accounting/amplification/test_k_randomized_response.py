import math

import pytest

from oracles import enumeration, sums
from oracles.profiles import any_randomizer, k_rr, symmetric_unary
from shuffledp.accounting.amplification.k_randomized_response import blanket_law, third_answer_law
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.accounting.amplification.symmetric_blanket import SymmetricBlanket
from shuffledp.core.errors import OutOfRegimeError


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
def test_reference_values(epsilon0, k, lower, upper):
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
        blanket = SymmetricBlanket(third_answer_law(epsilon0, k), num_users)
        for share in (0.0, 0.3, 0.9):
            exact = enumeration.hockey_stick(p, q, math.exp(epsilon0 * share))
            found = blanket.enclose(epsilon0 * share)
            assert found.lower <= exact * (1.0 + 1e-12)
            assert found.upper >= exact * (1.0 - 1e-12)
            assert found.upper == pytest.approx(exact, rel=1e-8, abs=1e-14)


def test_two_answers_have_the_clone_law():
    law = blanket_law(1.3, 2)
    assert law.pair_mass == pytest.approx(2.0 / (math.exp(1.3) + 1.0))
    assert law.rest_mass == 0.0


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
