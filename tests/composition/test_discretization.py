import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from oracles import discrete_pairs, gaussian_pairs
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition.privacy_loss import curve_values, loss_on_lattice
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure

counts = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4)


def as_pair(rows):
    total_p, total_q = (sum(column) for column in zip(*rows, strict=True))
    return [(Fraction(p, total_p), Fraction(q, total_q)) for p, q in rows]


@settings(max_examples=60)
@given(
    counts.filter(lambda rows: all(sum(column) > 0 for column in zip(*rows, strict=True))),
    st.sampled_from([0.03125, 0.125, 1.0]),
    st.sampled_from([1e-13, 1e-7, 1e-3]),
    st.sampled_from([1, 3]),
)
def test_any_pair_is_dominated_and_dominates(rows, interval, width, stride):
    pair = as_pair(rows)
    curve = discrete_pairs.curve_of(pair, width=width)
    upper = loss_on_lattice(curve, interval, 1e-9, stride=stride, upper=True)
    lower = loss_on_lattice(curve, interval, 1e-9, stride=stride, upper=False)
    exact_rows = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in pair]
    for epsilon in (-3.0, -0.7, -0.01, 0.0, 0.02, 0.4, 1.7, 5.0):
        exact = discrete_pairs.divergence(exact_rows, epsilon)
        assert lower.delta(epsilon) <= exact <= upper.delta(epsilon)
    # sums of probabilities: all of P's, and at most all of Q's
    losses = (upper.first + np.arange(upper.masses.size)) * interval
    assert upper.masses.sum() + upper.infinite_mass == pytest.approx(1.0, abs=1e-9)
    assert upper.masses @ np.exp(-losses) <= 1.0 + 1e-9
    assert lower.masses.sum() <= 1.0 + 1e-12


@pytest.mark.parametrize("mu", [1e-8, 0.01, 1.0, 5.0])
@pytest.mark.parametrize("width", [1e-12, 1e-6])
def test_the_error_is_of_second_order(mu, width):
    curve = gaussian_pairs.curve(mu, width=width)
    found, delta = [], 1e-6 * min(mu, 1.0)
    for fraction in (8, 16):
        interval = math.ldexp(1.0, round(math.log2(mu / fraction)))
        relative = (interval / mu) ** 2
        upper = loss_on_lattice(curve, interval, 1e-12 * mu, upper=True)
        lower = loss_on_lattice(curve, interval, 1e-12 * mu, upper=False)
        losses = (upper.first + np.arange(upper.masses.size)) * interval
        centred = losses - mu * mu / 2.0
        variance = float(upper.masses @ centred**2) / mu**2
        assert variance - 1.0 == pytest.approx(relative / 6.0, rel=0.1, abs=4e-5)
        losses = (lower.first + np.arange(lower.masses.size)) * interval
        variance = float(lower.masses @ (losses - mu * mu / 2.0) ** 2) / mu**2
        assert 0.5 * relative <= 1.0 - variance <= 0.95 * relative
        found.append((lower.epsilon(delta), upper.epsilon(delta)))
    assert found[1][1] - found[1][0] <= 0.3 * (found[0][1] - found[0][0])
    assert gaussian_pairs.delta(mu, found[1][1]) <= delta <= gaussian_pairs.delta(mu, found[1][0])


def test_relative_accuracy_reaches_far_into_the_tail():
    curve = gaussian_pairs.curve(1.0)
    upper = loss_on_lattice(curve, 0.03125, 1e-250, upper=True)
    lower = loss_on_lattice(curve, 0.03125, 1e-250, upper=False)
    for epsilon in (0.0, 8.0, 16.0, 24.0, 30.0):
        exact = gaussian_pairs.delta(1.0, epsilon)
        assert exact <= upper.delta(epsilon) <= 1.3 * exact
        # where the chord exceeds the curve by half of it, nothing is left
        assert lower.delta(epsilon) <= exact
        assert lower.delta(epsilon) >= 0.4 * exact or epsilon > 20.0


def test_the_tail_is_infinite_above_and_gone_below():
    curve = gaussian_pairs.curve(1.0)
    upper = loss_on_lattice(curve, 0.125, 1e-3, upper=True)
    assert 0.0 < upper.infinite_mass == upper.error <= 1e-3
    assert loss_on_lattice(curve, 0.125, 1e-3, upper=False).infinite_mass == 0.0


def test_a_limit_is_a_genuine_infinite_loss():
    pair = [
        (Fraction(1, 10), Fraction(0)),
        (Fraction(9, 10), Fraction(9, 10)),
        (Fraction(0), Fraction(1, 10)),
    ]
    upper = loss_on_lattice(discrete_pairs.curve_of(pair), 0.125, 1e-9, upper=True)
    assert upper.infinite_mass == pytest.approx(0.1)
    assert upper.error == 0.0
    assert upper.epsilon(0.05) == math.inf
    # also where the curve is at its limit all but exactly, and much later falls
    curve = gaussian_pairs.curve(20.0)
    assert loss_on_lattice(curve, 2.0, 1e-9, upper=True).infinite_mass <= 1e-9


def test_full_exposure():
    curve = HockeyStickCurve(
        forward=lambda _: Enclosure(1.0, 1.0), backward=lambda _: Enclosure(1.0, 1.0), highest=9e9
    )
    exposed = loss_on_lattice(curve, 0.5, 1e-9, upper=True)
    assert exposed.delta(100.0) == 1.0
    assert exposed.epsilon(0.5) == math.inf
    assert loss_on_lattice(curve, 0.5, 1e-9, upper=False).delta(0.0) <= 1.0


def test_a_loss_on_the_lattice_stays_one_atom():
    pair = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    curve = discrete_pairs.curve_of(pair)
    step = curve.highest / 16.0
    upper = loss_on_lattice(curve, step, 1e-9, upper=True)
    assert upper.first == -16
    assert upper.masses[[0, -1]] == pytest.approx([0.25, 0.75], abs=1e-9)
    assert upper.masses[1:-1].max() < 1e-9


def test_knots_too_far_apart_prove_nothing():
    curve = gaussian_pairs.curve(0.01)
    lower = loss_on_lattice(curve, 1.0, 1e-9, upper=False)
    assert (lower.first, lower.masses.tolist()) == (0, [1.0])
    upper = loss_on_lattice(curve, 1.0, 1e-9, upper=True)
    assert upper.delta(0.5) >= gaussian_pairs.delta(0.01, 0.5)


def test_no_loss_at_all():
    zero = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 0.0), backward=lambda _: Enclosure(0.0, 0.0), highest=0.0
    )
    assert loss_on_lattice(zero, 0.5, 1e-9, upper=True).epsilon(0.0) == 0.0
    assert loss_on_lattice(zero, 0.5, 1e-9, upper=False).epsilon(0.0) == 0.0


def test_a_curve_without_end_is_cut_at_the_largest_loss():
    # falls ever so slowly: (1 - x)_+ plus 1/2 (1 - epsilon/2000), convex enough where asked
    def slow(epsilon):
        value = 0.5 * (1.0 - epsilon / 2000.0)
        return Enclosure(value, value)

    upper = loss_on_lattice(
        HockeyStickCurve(forward=slow, backward=slow, highest=math.inf), 0.125, 1e-9, upper=True
    )
    assert upper.infinite_mass == upper.error > 0.3
    assert upper.last_loss < 1300.0


def test_knots_may_be_few():
    curve = gaussian_pairs.curve(1.0)
    values = curve_values(curve, lambda: [0.5, 1.0], tail=1e-9, left_tail=1e-9, upper=True)
    assert values.epsilons.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert values.cut
    for epsilon, low, high in zip(values.epsilons, values.lower, values.upper, strict=True):
        excess = gaussian_pairs.delta(1.0, epsilon) - max(-math.expm1(epsilon), 0.0)
        assert low <= excess + mpf(10) ** -16
        assert excess <= high * (1.0 + 1e-15)


def test_every_value_is_asked_for_once():
    asked = []
    gaussian = gaussian_pairs.curve(1.0)

    def counted(epsilon):
        asked.append(epsilon)
        return gaussian.forward(epsilon)

    curve = HockeyStickCurve(forward=counted, backward=counted, highest=math.inf)
    loss_on_lattice(curve, 0.25, 1e-9, upper=True)
    assert len(asked) == len(set(asked)) < 40
    before = len(asked)
    loss_on_lattice(curve, 0.25, 1e-9, upper=False)
    assert len(asked) <= before + 1


@pytest.mark.parametrize("interval", [0.0, -1.0, math.nan, math.inf])
def test_intervals_are_positive(interval):
    for upper in (True, False):
        with pytest.raises(ParameterError, match="interval"):
            loss_on_lattice(gaussian_pairs.curve(1.0), interval, 1e-9, upper=upper)


def test_reversed_is_the_law_of_the_other_order():
    pair = [(Fraction(1, 2), Fraction(1, 8)), (Fraction(1, 2), Fraction(7, 8))]
    curve = discrete_pairs.curve_of(pair)
    backward = loss_on_lattice(curve.reversed, 0.03125, 1e-9, upper=True)
    exact = discrete_pairs.divergence([(mpf(1) / 8, mpf(1) / 2), (mpf(7) / 8, mpf(1) / 2)], 0.3)
    assert exact <= backward.delta(0.3) <= 1.02 * exact
