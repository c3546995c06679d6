import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.accounting.amplification.binary_randomized_response_kernels import saddle_tilt
from shuffledp.core.numerics.two_binomials_kernels import points_and_tail, tilted_moments

GOLDEN = json.loads(
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
    cases = [case for case in GOLDEN if case[2] == q]
    assert len(cases) > 20
    for high, low, _, s, *exact in cases:
        tilt = tilt_for(high, low, q, s)
        found = points_and_tail(float(high), float(low), q, float(s), tilt)
        allowed = 1e-12 + 4e-15 * math.sqrt(high + low)
        assert found == pytest.approx(exact, rel=allowed, abs=1e-15 * max(exact)), (high, low, s)


def test_almost_certain_terms_against_sixty_digits():
    # Points that are far smaller than their neighbours are good to the neighbours' round-off only.
    for high, low, q, s, *exact in (case for case in GOLDEN if case[2] == 1e-9):
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
