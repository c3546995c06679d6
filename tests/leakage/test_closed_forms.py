"""The uninformed adversary's closed forms, against enumeration, fractions and multiprecision."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.multinomial_exact import exact_exchangeable_vulnerability
from oracles.shuffled_guesses import identity, k_rr, one_target
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.uninformed import (
    exact_shuffled_vulnerability,
    randomizer_vulnerability,
    shuffled_vulnerability,
    shuffler_vulnerability,
)

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "leakage_values.json").read_text(encoding="ascii")
)
TRUTHS = (Fraction(1), Fraction(9, 10), Fraction(3, 5))


def uniform(num_values):
    return [Fraction(1, num_values)] * num_values


@pytest.mark.parametrize("num_values", [2, 3, 4])
@pytest.mark.parametrize("truth", [Fraction(1), Fraction(3, 5), "least"])
def test_all_data_listed(num_values, truth):
    truth = Fraction(1, num_values) if truth == "least" else truth
    for num_users in range(1, 7 if num_values == 2 else 5):
        exact = one_target(num_users, k_rr(num_values, truth), uniform(num_values))
        assert exact_shuffled_vulnerability(num_users, num_values, truth) == exact
        found = shuffled_vulnerability(num_users, num_values, truth)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower <= 2e-12
        as_float = shuffled_vulnerability(num_users, num_values, float(truth))
        assert as_float.upper == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("truth", TRUTHS)
def test_propositions_by_histograms(truth):
    # Props. 16, 18, 20 and 21 sum over histograms; Theorems 17 and 19 and eq. 17 do not.
    for num_users, num_values in ((7, 2), (24, 2), (9, 3), (20, 3), (8, 5)):
        summed = exact_exchangeable_vulnerability(num_users, k_rr(num_values, truth))
        assert exact_shuffled_vulnerability(num_users, num_values, truth) == summed


def test_theorem_17_as_printed():
    for num_users in [*range(1, 60), 200, 1001]:
        printed = Fraction(1, 2) + Fraction(
            math.comb(num_users - 1, (num_users - 1) // 2), 2**num_users
        )
        found = shuffler_vulnerability(num_users, 2)
        assert found.lower <= printed <= found.upper
        assert found.upper - found.lower <= 1e-14


@pytest.mark.parametrize("num_users", [126, 128, 129, 130, 131, 1000, 99_999, 100_000])
def test_theorem_17_across_the_series(num_users):
    exact = exact_shuffled_vulnerability(num_users, 2, 1)
    found = shuffler_vulnerability(num_users, 2)
    assert found.lower <= exact <= found.upper


@pytest.mark.parametrize("entry", GOLDEN["shuffled"])
def test_golden(entry):
    found = shuffled_vulnerability(entry["num_users"], entry["num_values"], entry["truth"])
    assert found.lower <= entry["value"] <= found.upper or found.upper == pytest.approx(
        entry["value"], rel=1e-14
    )
    assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize(
    ("num_users", "num_values", "truth", "digits"),
    [
        (200, 2, 1.0, "0.5282"),  # printed as .5286
        (200, 2, 0.9, "0.5225"),
        (200, 2, 0.6, "0.5056"),
        (100, 3, 1.0, "0.3826"),
        (1000, 3, 1.0, "0.3488"),
    ],
)
def test_values_in_the_text(num_users, num_values, truth, digits):
    found = shuffled_vulnerability(num_users, num_values, truth)
    assert f"{found.lower:.4f}" == f"{found.upper:.4f}" == digits


@pytest.mark.parametrize(("num_values", "truth"), [(2, 0.9), (5, 0.8)])
def test_the_excess_falls_as_a_root_and_not_exponentially(num_values, truth):
    few, many = (  # Sec. IV-B and VI-B print "exponentially"
        shuffled_vulnerability(n, num_values, truth).lower - 1.0 / num_values for n in (200, 20_000)
    )
    assert few / many == pytest.approx(10.0, rel=0.02)


def test_reports_without_a_shuffle():
    for truth in (Fraction(1, 4), Fraction(2, 3), Fraction(1)):
        rows = k_rr(4, truth)
        found = randomizer_vulnerability(rows)
        assert found.lower <= truth <= found.upper <= 1.0
        assert found.upper - found.lower <= 1e-14
    # With a prior the sum of the columns' largest products.
    found = randomizer_vulnerability(k_rr(2, 0.75), [0.9, 0.1])
    assert found.upper == pytest.approx(0.9, rel=1e-14)
    found = randomizer_vulnerability(k_rr(2, 0.75), [0.6, 0.4])
    assert found.upper == pytest.approx(0.45 + 0.3, rel=1e-14)


@given(st.integers(1, 10**15), st.floats(0.5, 1.0), st.floats(0.5, 1.0))
def test_two_values_monotone(num_users, first, second):
    low, high = sorted((first, second))
    noisy, clear = (shuffled_vulnerability(num_users, 2, truth) for truth in (low, high))
    assert noisy.lower <= clear.upper
    assert 0.5 * (1.0 - 1e-12) <= noisy.lower <= noisy.upper <= high * (1.0 + 1e-12)
    more = shuffled_vulnerability(min(num_users + 1, 10**15), 2, low)
    assert more.lower <= noisy.upper


@given(st.integers(1, 400), st.integers(3, 30), st.floats(0.0, 1.0))
def test_many_values_monotone(num_users, num_values, share):
    truth = 1.0 / num_values + share * (1.0 - 1.0 / num_values)
    found = shuffled_vulnerability(num_users, num_values, truth)
    assert found.lower <= truth * (1.0 + 1e-12)  # never beyond the randomizer alone
    assert found.upper >= 1.0 / num_values
    assert shuffled_vulnerability(num_users + 1, num_values, truth).lower <= found.upper
    assert found.lower <= shuffler_vulnerability(num_users, num_values).upper


def test_edges():
    for num_values in (2, 3, 10_000):
        for num_users in (1, 2, 10**9):
            blind = shuffled_vulnerability(num_users, num_values, 1.0 / num_values)
            assert blind.upper == pytest.approx(1.0 / num_values, rel=1e-14)
        alone = shuffler_vulnerability(1, num_values)
        assert alone.upper == 1.0
        assert alone.lower == pytest.approx(1.0, rel=1e-14)
    half = shuffled_vulnerability(1, 3, Fraction(1, 2))
    assert half.lower <= Fraction(1, 2) <= half.upper


@pytest.mark.parametrize("num_values", [2, 3, 7, 10_000])
def test_a_rounded_blind_guess_is_no_refusal(num_values):
    truth = 1.0 / (1.0 + (num_values - 1) * math.exp(-0.0))
    assert shuffled_vulnerability(10, num_values, truth).upper == pytest.approx(1.0 / num_values)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: shuffled_vulnerability(0, 2, 1.0), ParameterError, "num_users = 0"),
        (lambda: shuffled_vulnerability(10**15 + 1, 2, 1.0), ParameterError, "above 1e"),
        (lambda: shuffled_vulnerability(5, 1, 1.0), ParameterError, "num_values = 1"),
        (lambda: shuffled_vulnerability(5, 2, 1.01), ParameterError, "truth"),
        (lambda: shuffled_vulnerability(5, 2, -0.1), ParameterError, "truth"),
        (lambda: shuffled_vulnerability(5, 2, math.nan), ParameterError, "truth"),
        (lambda: shuffled_vulnerability(5, 3, 0.3), OutOfRegimeError, "p >= 1/k"),
        (lambda: shuffled_vulnerability(5, 3, Fraction(3, 10)), OutOfRegimeError, "p >= 1/k"),
        (lambda: exact_shuffled_vulnerability(5, 2, 0.75), ParameterError, "give a Fraction"),
        (lambda: exact_shuffled_vulnerability(5, 3, Fraction(1, 4)), OutOfRegimeError, "1/k"),
        (lambda: exact_shuffled_vulnerability(100_001, 2, 1), ParameterError, "above 100000"),
        (lambda: randomizer_vulnerability([[1.0]]), ParameterError, "1 row"),
        (lambda: randomizer_vulnerability(np.full((2, 2), 0.4)), ParameterError, "row 0"),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_oracle_knows_the_shuffler():
    # Three users, two values: 3/4 by hand.
    assert one_target(3, identity(2), uniform(2)) == Fraction(3, 4)
