"""Measures, losses and means against 50 digits; parameters against a search of all others."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from laws_of_numbers import report_variance
from shuffledp.randomizers import PrivUnit, privunit
from shuffledp.randomizers.privunit import (
    UNIFORM,
    Measure,
    best_gamma,
    cap_measure,
    cap_moment,
    cosine_on_grid,
    law_for,
    log_odds_upper,
    weight_difference,
)

DIMENSIONS = (2, 3, 4, 5, 16, 100, 1024, 100_000)
ASKED_EPSILON0 = (0.0, 5e-324, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, math.log(3), 4.0, 10.0, 25.0)
ASKED_EPSILON0 += (60.0, 1e300)


def exact_measure(randomizer):
    """Return q and 1/2 - q of a randomizer's own cut, as multiprecision numbers."""
    half = mpmath.mpf(1) / 2
    a, gamma = mpmath.mpf(randomizer.dimension - 1) / 2, mpmath.mpf(randomizer.gamma)
    below_half = mpmath.betainc(half, a, 0, gamma**2, regularized=True) / 2
    return mpmath.betainc(a, half, 0, 1 - gamma**2, regularized=True) / 2, below_half


def exact_moment(randomizer):
    """Return E[<V, x>; inside] under the base law."""
    d = mpmath.mpf(randomizer.dimension)
    power = (1 - mpmath.mpf(randomizer.gamma) ** 2) ** ((d - 1) / 2)
    return power / ((d - 1) * mpmath.beta(mpmath.mpf(1) / 2, (d - 1) / 2))


def exact_share_inside(randomizer):
    return 1 - mpmath.mpf(randomizer.threshold) / 2**64


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(50):
        yield


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("asked", ASKED_EPSILON0)
def test_loss_and_mean_of_the_law_that_is_drawn(dimension, asked):
    randomizer = PrivUnit(dimension=dimension, epsilon0=asked)
    inside, below_half = exact_measure(randomizer)
    share = exact_share_inside(randomizer)
    log_odds = mpmath.log1p(-inside) - mpmath.log(inside)
    loss = mpmath.log(share / (1 - share)) + log_odds

    assert 0.0 <= loss <= randomizer.epsilon0 <= asked
    assert randomizer.epsilon0 - loss <= 1.1e-9 * log_odds + 1e-15 * randomizer.epsilon0
    if 1e-3 < asked < 40.0:
        assert randomizer.epsilon0 == pytest.approx(asked, rel=1e-12)
    assert 0 < randomizer.threshold <= 2**63
    jump = (share - inside) / (inside * (1 - inside))
    mean = float(jump * exact_moment(randomizer))
    assert randomizer.mean_along == pytest.approx(mean, rel=1e-9, abs=1e-300)
    assert below_half == 0 or float(below_half) > 0.0


@pytest.mark.parametrize("dimension", [*DIMENSIONS, 10**6])
@pytest.mark.parametrize("scaled", [1e-12, 1e-4, 0.3, 1.0, 3.0, 7.0, 12.0])
def test_cap_measure_and_moment(dimension, scaled):
    gamma = scaled / math.sqrt(dimension)
    if gamma >= 1.0:
        gamma = 1.0 - 2.0**-37
    randomizer = PrivUnit(dimension=dimension, epsilon0=1.0)
    object.__setattr__(randomizer, "gamma", gamma)
    inside, below_half = exact_measure(randomizer)
    measure = cap_measure(gamma, dimension)
    # The accounting allows for 3e-10.
    if inside > 1e-300:
        assert measure.inside == pytest.approx(float(inside), rel=1e-11)
        assert cap_moment(gamma, dimension) == pytest.approx(
            float(exact_moment(randomizer)), rel=1e-9
        )
    assert measure.below_half == pytest.approx(float(below_half), rel=1e-11)
    assert measure.outside == pytest.approx(float(1 - inside), rel=1e-12)


@pytest.mark.parametrize("epsilon0", [0.01, 0.5, 2.0, 6.0, 15.0])
def test_closed_form_on_the_ordinary_sphere(epsilon0):
    randomizer = PrivUnit(dimension=3, epsilon0=epsilon0)
    optimum = math.tanh(epsilon0 / 4)
    assert randomizer.gamma == pytest.approx(optimum, rel=1e-5)
    assert randomizer.mean_along == pytest.approx(optimum, rel=1e-9)
    assert 1 - randomizer.threshold / 2**64 == pytest.approx(
        1 / (1 + math.exp(-epsilon0 / 2)), rel=1e-5
    )


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon0", [1e-6, 0.1, 1.0, 4.0, 12.0])
def test_the_best_cap_begins_at_the_mean(dimension, epsilon0):
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    assert randomizer.gamma == pytest.approx(randomizer.mean_along, rel=2e-5)


def variances(dimension, epsilon0):
    """Return the total variances for all cuts, on either side of the centre, at one loss."""
    gain = math.expm1(epsilon0)
    a = (dimension - 1) / 2
    # Caps of moderate measure, and caps that are small in few dimensions.
    moderate = np.linspace(0.0, min(0.99, 15.0 / math.sqrt(dimension)), 20_000)
    gamma = np.concatenate([moderate, 1.0 - np.geomspace(1e-9, 0.5, 20_000)])
    gamma = np.concatenate([-gamma, gamma])
    inside = special.betainc(a, a, (1 - gamma) / 2)
    log_moment = a * (np.log1p(-gamma) + np.log1p(gamma)) - special.betaln(0.5, a)
    mean = gain * np.exp(log_moment) / (dimension - 1) / (1 + gain * inside)
    return 1 / mean[mean > 1e-100] ** 2 - 1


@pytest.mark.parametrize("dimension", [2, 3, 5, 16, 1024, 100_000])
@pytest.mark.parametrize("epsilon0", [1e-3, 0.1, 1.0, 4.0, 10.0, 20.0, 40.0])
def test_no_other_cut_has_less_variance(dimension, epsilon0):
    if dimension < 5 and epsilon0 > 20.0:
        return  # the variance, about 1e-12, is beyond the digits of this search
    best = variances(dimension, epsilon0).min()
    randomizer = PrivUnit(dimension=dimension, epsilon0=epsilon0)
    found = report_variance(randomizer, 1.0) * dimension
    assert best * (1 - 1e-3) <= found <= best * (1 + 1e-3)


class TestSettling:
    def test_a_law_settled_for_its_own_loss_is_the_same(self):
        for dimension in (2, 7, 500):
            for asked in np.geomspace(2e-12, 120.0, 60):
                once = PrivUnit(dimension=dimension, epsilon0=asked)
                again = PrivUnit(dimension=dimension, epsilon0=once.epsilon0)
                assert again == once
                assert again.fingerprint == once.fingerprint

    def test_a_cap_that_moves_on_the_way_is_settled_too(self, monkeypatch):
        def best(epsilon0, dimension):  # has a step between what is asked and what it costs
            return 0.5 if epsilon0 >= 1.0 else 0.25

        monkeypatch.setattr(privunit, "best_gamma", best)
        law = PrivUnit(epsilon0=1.0, dimension=3)
        assert law == PrivUnit(epsilon0=law.epsilon0, dimension=3)
        assert law.epsilon0 <= 1.0

    def test_a_cap_that_costs_too_much_gives_the_uniform_law(self, monkeypatch):
        monkeypatch.setattr(privunit, "best_gamma", lambda *_: 0.9)
        assert law_for(1.0, 10) is UNIFORM

    def test_tiny_losses_are_not_spent(self):
        for asked in (0.0, 5e-324, 1e-300, 9e-13):
            randomizer = PrivUnit(dimension=5, epsilon0=asked)
            assert randomizer.epsilon0 == 0.0
            assert randomizer.mean_along == 0.0

    def test_saturation(self):
        for dimension in (2, 3, 1000):
            most = PrivUnit(dimension=dimension, epsilon0=1e300)
            assert most == PrivUnit(dimension=dimension, epsilon0=101.0)
            assert 57.0 < most.epsilon0 <= 100.0


class TestPieces:
    def test_log_odds_are_rounded_up_by_a_stated_margin(self):
        for inside in (0.5 - 1e-9, 0.4, 0.26, 0.25, 0.24, 1e-3, 1e-40):
            measure = Measure(inside=inside, below_half=0.5 - inside)
            exact = float(mpmath.log1p(-mpmath.mpf(inside)) - mpmath.log(inside))
            assert 0.0 < log_odds_upper(measure) / exact - 1.0 <= 1e-9

    def test_weights_make_the_density_integrate_to_one(self):
        # P = q (1 + (1 - q) jump), in numbers that are exact in binary.
        assert weight_difference(2**62, Measure(inside=0.25, below_half=0.25)) == 8 / 3
        assert weight_difference(2**63, Measure(inside=0.5, below_half=0.0)) == 0.0

    def test_grids(self):
        assert cosine_on_grid(0.0) == 0.0
        assert cosine_on_grid(-1e-9) == 0.0
        for cut in (1e-12, 0.3, 0.7, 1.0 - 1e-9):
            assert cosine_on_grid(cosine_on_grid(cut)) == cosine_on_grid(cut)
            assert cosine_on_grid(cut) == pytest.approx(cut, rel=2**-16)
            assert 1 - cosine_on_grid(cut) == pytest.approx(1 - cut, rel=2**-16)

    def test_cuts_rise_with_the_loss(self):
        losses = np.geomspace(1e-9, 100.0, 40)
        found = [best_gamma(loss, 10) for loss in losses]
        assert np.all(np.diff(found) >= 0.0)
