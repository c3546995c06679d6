import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.numerics.binomial_kernels import (
    binomial_pmf,
    deviance,
    fair_tail_ratio,
    stirling_error,
)

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "accountant_values.json").read_text(encoding="ascii")
)


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


def test_fair_tail_ratio_against_sixty_digits():
    assert {n for n, _, _ in GOLDEN["fair_tail_ratio"]} >= {1, 2, 10**9, 10**15}
    for n, m, exact in GOLDEN["fair_tail_ratio"]:
        assert fair_tail_ratio(float(n), float(m)) == pytest.approx(exact, rel=1e-13), (n, m)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 17, 60, 301])
def test_fair_tail_ratio_against_whole_numbers(n):
    for m in range(max(1, (n + 1) // 2), n + 1):
        exact = Fraction(sum(math.comb(n, i) for i in range(m, n + 1)), math.comb(n, m))
        assert fair_tail_ratio(float(n), float(m)) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("n", [*range(1, 40), 170, 1000])
def test_stirling_error_against_the_factorial(n):
    with mpmath.workdps(40):
        exact = mpmath.loggamma(n + 1) - (
            (n + mpmath.mpf(1) / 2) * mpmath.log(n) - n + mpmath.log(2 * mpmath.pi) / 2
        )
        assert abs(stirling_error(float(n)) - float(exact)) < 1e-15


@given(st.floats(1e-3, 1e15), st.floats(-0.999, 10.0))
def test_deviance_against_many_digits(mean, relative):
    x = mean * (1.0 + relative)
    with mpmath.workdps(60):
        exact = x * mpmath.log(mpmath.mpf(x) / mean) + mean - mpmath.mpf(x)
    assert deviance(x, mean) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-12, 1e-8, 1e-3, 0.0999, 0.1, 0.2, 0.21, 0.3])
def test_deviance_near_its_zero_and_where_the_series_ends(gap):
    x, mean = 1e9 * (1.0 + gap), 1e9
    with mpmath.workdps(60):
        exact = x * mpmath.log(mpmath.mpf(x) / mean) + mean - mpmath.mpf(x)
    assert deviance(x, mean) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)
    assert deviance(x, mean) >= 0.0
