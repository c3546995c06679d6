import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import discrete_pairs
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition.compose_losses import compose_curves
from shuffledp.composition.privacy_loss import (
    PrivacyLoss,
    loss_on_lattice,
    no_loss,
    to_dp_accounting,
)
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure


def one(_epsilon):
    return Enclosure(0.1, 0.2)


def other(_epsilon):
    return Enclosure(0.3, 0.4)


def test_the_other_order_of_the_pair():
    curve = HockeyStickCurve(forward=one, backward=other, highest=math.inf).reversed
    assert (curve.forward(0.0), curve.backward(0.0)) == (other(0.0), one(0.0))


@pytest.mark.parametrize("highest", [-1.0, math.nan])
def test_it_ends_somewhere(highest):
    with pytest.raises(ParameterError, match="highest"):
        HockeyStickCurve(forward=one, backward=one, highest=highest)


def law(masses, *, first=0, interval=0.25, infinite=0.0, error=0.0, is_upper=True):
    return PrivacyLoss(
        interval=interval,
        first=first,
        masses=np.array(masses, dtype=np.float64),
        infinite_mass=infinite,
        error=error,
        is_upper=is_upper,
    )


def exact_delta(loss, epsilon):
    return mpf(loss.infinite_mass) + sum(
        mpf(float(mass))
        * max(-mp.expm1(mpf(epsilon) - (loss.first + i) * mpf(loss.interval)), mpf(0))
        for i, mass in enumerate(loss.masses)
    )


weights = st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any)


@given(weights, st.integers(-8, 8), st.floats(-4.0, 6.0), st.floats(0.0, 0.5))
def test_delta_encloses_the_sum_at_any_real_epsilon(values, first, epsilon, infinite):
    masses = np.array(values) / sum(values) * (1.0 - infinite)
    upper = law(masses, first=first, infinite=infinite)
    lower = law(masses, first=first, infinite=infinite, is_upper=False)
    exact = exact_delta(upper, epsilon)
    # a sum of masses rounded above one would make delta exceed one
    assert min(exact, 1) <= upper.delta(epsilon) <= float(exact) * (1.0 + 1e-13) + 1e-13
    # below, 1 - e^epsilon is known of every pair, also where these masses give less
    trivial = -math.expm1(min(epsilon, 0.0))
    assert float(exact) * (1.0 - 1e-12) - 1e-13 <= lower.delta(epsilon)
    assert lower.delta(epsilon) <= max(float(exact), trivial) * (1.0 + 1e-15)


@given(weights, st.integers(-8, 8), st.floats(1e-12, 0.9))
def test_epsilon_inverts_delta_on_the_safe_side(values, first, delta):
    masses = np.array(values) / sum(values)
    upper, lower = law(masses, first=first), law(masses, first=first, is_upper=False)
    epsilon = upper.epsilon(delta)
    assert epsilon == 0.0 or exact_delta(upper, epsilon) <= delta
    least = lower.epsilon(delta)
    assert least <= epsilon
    assert least == 0.0 or exact_delta(lower, least) > delta
    assert epsilon - least <= 1e-8 * epsilon + 1e-12


def test_zero_delta_is_the_largest_loss():
    masses = [0.5, 0.0, 0.5, 0.0]
    assert law(masses).epsilon(0.0) == math.nextafter(0.5, 1.0)
    assert law(masses, is_upper=False).epsilon(0.0) == math.nextafter(0.5, 0.0)
    assert law([0.5, 0.5], first=-3).epsilon(0.0) == 0.0


def test_infinite_losses():
    genuine = law([0.9], infinite=0.1)
    assert genuine.epsilon(0.05) == math.inf
    assert genuine.epsilon(0.1) == 0.0
    assert genuine.delta(math.inf) == 0.1
    assert genuine.delta(1e308) == 0.1
    assert genuine.delta(-math.inf) == 1.0
    cut = law([0.9], infinite=0.1, error=0.1)
    with pytest.raises(PrecisionError, match="smaller smallest_delta"):
        cut.epsilon(0.05)
    partly = law([0.9], infinite=0.1, error=0.02)
    assert partly.epsilon(0.05) == math.inf
    with pytest.raises(PrecisionError, match="cut off"):
        partly.epsilon(0.09)


def test_no_masses_claims_nothing_but_one_minus_e_to_the_epsilon():
    nothing = law([0.0], is_upper=False)
    assert nothing.delta(0.5) == 0.0
    assert nothing.delta(-1.0) == pytest.approx(1.0 - math.exp(-1.0))
    assert nothing.epsilon(0.1) == 0.0
    assert no_loss(1.0, upper=True).delta(0.0) < 1e-14
    assert no_loss(1.0, upper=True).epsilon(1e-300) == 0.0


def test_tiny_deltas_keep_their_digits():
    loss = law([1.0, 1e-290], first=0, interval=2.0)
    exact = exact_delta(loss, 1.0)
    assert exact <= loss.delta(1.0) <= float(exact) * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interval": 0.0}, "interval"),
        ({"interval": math.nan}, "interval"),
        ({"masses": []}, "masses"),
        ({"masses": [-1e-18]}, "masses"),
        ({"masses": [math.nan]}, "masses"),
        ({"infinite": -0.1}, "infinite_mass"),
        ({"infinite": 0.1, "error": 0.2}, "error"),
        ({"infinite": math.nan}, "infinite_mass"),
    ],
)
def test_what_is_no_law_is_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        law(**({"masses": [1.0]} | change))


def test_arguments():
    with pytest.raises(ParameterError, match="nan"):
        law([1.0]).delta(math.nan)
    for delta in (-1.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match="delta"):
            law([1.0]).epsilon(delta)
    with pytest.raises(ValueError, match="read-only"):
        law([1.0]).masses[0] = 0.5


LEVELS = np.array([0.0, 1e-9, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0])


def exact_curve(rows, level):
    """Neyman and Pearson: reject on the largest ratios, with a coin for the last."""
    error, left = mpf(1), mpf(level)
    for p, q in sorted(rows, key=lambda row: row[0] / row[1], reverse=True):
        share = min(mpf(1), left / q)
        error -= share * p
        left -= share * q
    return error


def law_of_trade_off(masses, first, is_upper, *, interval=1.0, infinite=0.0):
    return PrivacyLoss(
        interval=interval,
        first=first,
        masses=np.array(masses),
        infinite_mass=infinite,
        error=0.0,
        is_upper=is_upper,
    )


PAIR = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(1, 4), Fraction(3, 8)),
    (Fraction(1, 4), Fraction(3, 8)),
]
CURVE = discrete_pairs.curve_of(PAIR)
FORWARD = loss_on_lattice(CURVE, 0.015625, 1e-12, upper=True)
BACKWARD = loss_on_lattice(CURVE.reversed, 0.015625, 1e-12, upper=True)


def test_deltas_agree():
    for law in (FORWARD, BACKWARD):
        exported = to_dp_accounting(law)
        for epsilon in (0.0, 0.1, 0.5):
            found = exported.get_delta_for_epsilon(epsilon)
            assert found == pytest.approx(law.delta(epsilon), rel=1e-9)


def test_it_composes_there_as_here():
    theirs = to_dp_accounting(FORWARD).self_compose(10)
    ours = compose_curves([(CURVE, 10)], smallest_delta=1e-6, upper=True)
    for epsilon in (0.5, 1.5):
        assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(ours.delta(epsilon), rel=5e-3)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.pld_pmf", None)
    with pytest.raises(ModuleNotFoundError, match="pip install 'dp-accounting'"):
        to_dp_accounting(FORWARD)
