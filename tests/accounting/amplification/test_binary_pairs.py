import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.accounting.amplification.binary_pairs import TwoBinomials

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "accountant_values.json").read_text(encoding="ascii")
)["two_binomials"]


def law(high, low, q):
    return TwoBinomials(np.array([high], float), np.array([low], float), q)


def tilt_for(high, low, q, s):
    """The tilt that the module recommends."""
    deviation = math.sqrt((high + low) * q * (1.0 - q))
    tilt = law(high, low, q).saddle_tilt(np.array([s], float))
    return np.minimum(tilt, math.exp(-0.7 / max(deviation, 1)))


def points(high, low, q, s):
    """The four numbers at one place."""
    return law(high, low, q).points_and_tail(np.array([s], float), tilt_for(high, low, q, s))[:4, 0]


@pytest.mark.parametrize("q", [0.05, 0.3, 0.4999])
def test_points_and_tail_against_sixty_digits(q):
    cases = [case for case in GOLDEN if case[2] == q]
    assert len(cases) > 20
    for high, low, _, s, *exact in cases:
        found = points(high, low, q, s)
        allowed = 1e-12 + 4e-15 * math.sqrt(high + low)
        assert found == pytest.approx(exact, rel=allowed, abs=1e-15 * max(exact)), (high, low, s)


def test_almost_certain_terms_against_sixty_digits():
    # Points that are far smaller than their neighbours are good to the neighbours' round-off only.
    for high, low, q, s, *exact in (case for case in GOLDEN if case[2] == 1e-9):
        found = points(high, low, q, s)
        assert found == pytest.approx(exact, rel=1e-11, abs=1e-13 * max(exact)), (high, low, s)


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_a_single_binomial_against_scipy_at_large_n(n):
    q = 0.3
    for distance in (-6.0, -2.0, 0.0):
        s = round(n * q + distance * math.sqrt(n * q * (1.0 - q)))
        found = points(0, n, q, s)
        # scipy is the less accurate of the two
        assert found == pytest.approx(
            [*binom.pmf([s - 1, s, s + 1], n, q), binom.cdf(s - 1, n, q)], rel=1e-7
        )


@pytest.mark.parametrize("r", [1e-9, 0.2, 0.9, 1.0])
def test_tilted_moments(r):
    high, low, q = 5, 9, 0.2
    masses = np.convolve(
        binom.pmf(np.arange(high + 1), high, 1.0 - q), binom.pmf(np.arange(low + 1), low, q)
    )
    outcomes = np.arange(masses.size)
    tilted = masses * r**outcomes
    tilted /= tilted.sum()
    mean = (tilted * outcomes).sum()
    variance = (tilted * (outcomes - mean) ** 2).sum()
    found = np.array(law(high, low, q).tilted_moments(np.array([r])))[:, 0]
    assert found == pytest.approx((mean, variance), rel=1e-12)


def test_many_places_at_once_are_what_they_are_alone():
    """Also where there are more nodes than are looked at together."""
    high, low = np.array([0.0, 40.0, 10.0**6, 3.0]), np.array([10.0**9, 2.0, 0.0, 10.0**4])
    places = np.array([3e8 - 1e4, 27.0, 7e5, 3000.0])
    several = TwoBinomials(np.tile(high, 200), np.tile(low, 200), 0.3)
    tilts = np.array(
        [tilt_for(*case)[0] for case in zip(high, low, [0.3] * 4, places, strict=True)]
    )
    found = several.points_and_tail(np.tile(places, 200), np.tile(tilts, 200))
    for i in range(4):
        alone = points(high[i], low[i], 0.3, places[i])
        assert np.allclose(found[:4, i::4], alone[:, None], rtol=1e-12, atol=0.0)


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(1e-9, 0.4999), st.floats(0.01, 0.99))
def test_saddle_tilt_puts_the_mean_at_s(high, low, q, share):
    if high + low < 2:
        return
    s = min(max(round(share * (high + low)), 1), high + low - 1)
    r = law(high, low, q).saddle_tilt(np.array([s], float))[0]
    mean = high * (1.0 - q) * r / (q + (1.0 - q) * r) + low * q * r / (1.0 - q + q * r)
    assert mean == pytest.approx(s, rel=1e-6)


def test_the_last_outcome_needs_an_infinite_tilt():
    assert law(3, 4, 0.2).saddle_tilt(np.array([7.0]))[0] == math.inf
