import json
import math
from decimal import localcontext
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.amplification.binary_randomized_response_kernels import saddle_tilt
from shuffledp.core.numerics.binomial_kernels import (
    _STIRLING_ERROR_TABLE,
    _small_stirling_error,
    deviance,
    log_binomial_pmf,
    points_and_tail,
    stirling_error,
    tilted_moments,
)

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "accountant_values.json").read_text(encoding="ascii")
)


def binomial_pmf(n, k, p, q):
    return math.exp(log_binomial_pmf(n, k, p, q))


@pytest.mark.parametrize("p", sorted({p for _, _, p, _ in GOLDEN["binomial_pmf"]}))
def test_pmf_against_sixty_digits(p):
    cases = [case for case in GOLDEN["binomial_pmf"] if case[2] == p]
    assert len(cases) >= 10
    for n, k, _, exact in cases:
        allowed = 1e-12 + 4e-15 * math.sqrt(n)
        assert binomial_pmf(float(n), float(k), p, 1.0 - p) == pytest.approx(exact, rel=allowed), (
            n,
            k,
        )


@pytest.mark.parametrize(
    ("n", "k", "p", "exact"),
    [
        (0, 0, 0.3, 1.0),
        (5, 0, 0.0, 1.0),
        (5, 1, 0.0, 0.0),
        (5, 5, 1.0, 1.0),
        (5, 4, 1.0, 0.0),
        (5, 0, 0.25, 0.75**5),
        (5, 5, 0.25, 0.25**5),
        (1e15, 1e15, 0.5, 0.0),
        (1e15, 1.0, 0.5, 0.0),
    ],
)
def test_pmf_at_the_ends(n, k, p, exact):
    assert binomial_pmf(float(n), float(k), p, 1.0 - p) == pytest.approx(exact, rel=1e-15)


@given(st.integers(1, 40), st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
def test_pmf_against_fractions(n, p):
    chance = Fraction(float(p))
    for k in range(n + 1):
        exact = math.comb(n, k) * chance**k * (1 - chance) ** (n - k)
        assert binomial_pmf(float(n), float(k), float(p), float(1 - p)) == pytest.approx(
            float(exact), rel=1e-12
        )


@pytest.mark.parametrize("n", [*range(1, 40), 170, 1000])
def test_stirling_error_against_the_factorial(n):
    with mpmath.workdps(40):
        exact = mpmath.loggamma(n + 1) - (
            (n + mpmath.mpf(1) / 2) * mpmath.log(n) - n + mpmath.log(2 * mpmath.pi) / 2
        )
        assert abs(stirling_error(float(n)) - float(exact)) < 1e-15


def test_the_table_of_stirling_errors_does_not_depend_on_the_program():
    with localcontext(prec=3):
        assert _small_stirling_error(7) == _STIRLING_ERROR_TABLE[7]


@given(st.floats(1e-3, 1e15), st.floats(-0.999, 10.0))
def test_deviance_against_many_digits(mean, relative):
    x = mean * (1.0 + relative)
    with mpmath.workdps(60):
        exact = x * mpmath.log(mpmath.mpf(x) / mean) + mean - mpmath.mpf(x)
    assert deviance(x, mean, x - mean) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-12, 1e-8, 1e-3, 0.1, 0.3, 1.9, 1.99, 2.0, 2.01])
def test_deviance_near_its_zero_and_where_the_series_ends(gap):
    x, mean = 1e9 * (1.0 + gap), 1e9
    with mpmath.workdps(60):
        exact = x * mpmath.log(mpmath.mpf(x) / mean) + mean - mpmath.mpf(x)
    assert deviance(x, mean, x - mean) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)
    assert deviance(x, mean, x - mean) >= 0.0


GOLDEN_OF_TWO_BINOMIALS_KERNELS = json.loads(
    (Path(__file__).parents[2] / "golden" / "accountant_values.json").read_text(encoding="ascii")
)["two_binomials"]


def tilt_for(high, low, q, s):
    """The tilt that the module recommends."""
    deviation = math.sqrt((high + low) * q * (1.0 - q))
    return min(
        saddle_tilt(float(high), float(low), q, float(s)), math.exp(-0.7 / max(deviation, 1))
    )


@pytest.mark.parametrize("q", [0.05, 0.3, 0.4999])
def test_points_and_tail_against_sixty_digits(q):
    cases = [case for case in GOLDEN_OF_TWO_BINOMIALS_KERNELS if case[2] == q]
    assert len(cases) > 20
    for high, low, _, s, *exact in cases:
        tilt = tilt_for(high, low, q, s)
        found = points_and_tail(float(high), float(low), q, float(s), tilt)
        allowed = 1e-12 + 4e-15 * math.sqrt(high + low)
        assert found == pytest.approx(exact, rel=allowed, abs=1e-15 * max(exact)), (high, low, s)


def test_almost_certain_terms_against_sixty_digits():
    # Points that are far smaller than their neighbours are good to the neighbours' round-off only.
    for high, low, q, s, *exact in (
        case for case in GOLDEN_OF_TWO_BINOMIALS_KERNELS if case[2] == 1e-9
    ):
        found = points_and_tail(float(high), float(low), q, float(s), tilt_for(high, low, q, s))
        assert found == pytest.approx(exact, rel=1e-11, abs=1e-13 * max(exact)), (high, low, s)


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_a_single_binomial_against_scipy_at_large_n(n):
    q = 0.3
    for distance in (-6.0, -2.0, 0.0):
        s = round(n * q + distance * math.sqrt(n * q * (1.0 - q)))
        found = points_and_tail(0.0, float(n), q, float(s), tilt_for(0, n, q, s))
        # scipy is the less accurate of the two
        assert found == pytest.approx(
            [*binom.pmf([s - 1, s, s + 1], n, q), binom.cdf(s - 1, n, q)], rel=1e-7
        )


@pytest.mark.parametrize("r", [1e-9, 0.2, 0.9, 1.0])
def test_tilted_moments(r):
    high, low, q = 5, 9, 0.2
    law = np.convolve(
        binom.pmf(np.arange(high + 1), high, 1.0 - q), binom.pmf(np.arange(low + 1), low, q)
    )
    outcomes = np.arange(law.size)
    tilted = law * r**outcomes
    tilted /= tilted.sum()
    mean = (tilted * outcomes).sum()
    variance = (tilted * (outcomes - mean) ** 2).sum()
    assert tilted_moments(5.0, 9.0, q, r) == pytest.approx((mean, variance), rel=1e-12)
