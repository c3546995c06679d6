import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import mpf

from oracles import discrete_pairs, gaussian_pairs
from shuffledp.accounting.composition import compose_curves
from shuffledp.accounting.divergences.discretization import dominated_loss, dominating_loss
from shuffledp.accounting.divergences.privacy_loss import PrivacyLoss
from shuffledp.accounting.divergences.trade_off import type_two_errors
from shuffledp.core.errors import ParameterError

LEVELS = np.array([0.0, 1e-9, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0])


@pytest.mark.parametrize("count", [1, 30, 1000])
def test_gaussian_trade_off_curves(count):
    mu = 0.05
    curve = gaussian_pairs.curve(mu)
    upper = compose_curves([(curve, count)], smallest_delta=1e-9, upper=True)
    lower = compose_curves([(curve, count)], smallest_delta=1e-9, upper=False)
    normal = NormalDist()
    exact = np.array(
        [
            normal.cdf(normal.inv_cdf(1.0 - a) - mu * math.sqrt(count)) if 0.0 < a < 1.0 else 1 - a
            for a in LEVELS
        ]
    )
    below, above = type_two_errors(upper, LEVELS), type_two_errors(lower, LEVELS)
    both = type_two_errors(upper, LEVELS, both_orders=True)
    assert np.all(below <= exact + 1e-15)
    assert np.all(above >= exact - 1e-15)
    assert np.all(above - below <= 2e-3)
    # the pair is symmetric, so the curve is its own inverse
    assert np.all((both >= below) & (both <= exact + 1e-15))


def exact_curve(rows, level):
    """Neyman and Pearson: reject on the largest ratios, with a coin for the last."""
    error, left = mpf(1), mpf(level)
    for p, q in sorted(rows, key=lambda row: row[0] / row[1], reverse=True):
        share = min(mpf(1), left / q)
        error -= share * p
        left -= share * q
    return error


@pytest.mark.parametrize("interval", [0.0625, 0.5])
def test_small_pairs_exactly(interval):
    pair = [
        (Fraction(1, 2), Fraction(1, 8)),
        (Fraction(3, 10), Fraction(3, 8)),
        (Fraction(1, 5), Fraction(1, 2)),
    ]
    rows = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in pair]
    curve = discrete_pairs.curve_of(pair)
    upper, lower = (f(curve, interval, 1e-9) for f in (dominating_loss, dominated_loss))
    levels = np.linspace(0.0, 1.0, 21)
    below, above = type_two_errors(upper, levels), type_two_errors(lower, levels)
    for level, low, high in zip(levels, below, above, strict=True):
        exact = exact_curve(rows, level)
        assert low <= exact + mpf(10) ** -15
        assert exact <= high + mpf(10) ** -15
    if interval < 0.1:
        assert np.all(above - below <= 0.02)
    assert np.all(np.diff(below) <= 0.0)


def law(masses, first, direction, *, interval=1.0, infinite=0.0):
    return PrivacyLoss(
        interval=interval,
        first=first,
        masses=np.array(masses),
        infinite_mass=infinite,
        error=0.0,
        direction=direction,
    )


def test_perfect_privacy_and_none():
    levels = np.array([0.0, 0.25, 1.0])
    for direction in ("upper", "lower"):
        same = type_two_errors(law([1.0], 0, direction), levels)
        assert same == pytest.approx(1.0 - levels, abs=1e-12)
    exposed = law([0.0], 0, "upper", infinite=1.0)
    assert type_two_errors(exposed, levels).tolist() == [0.0, 0.0, 0.0]


def test_losses_beyond_the_range_of_doubles():
    far = law([1.0], 800, "upper")
    assert type_two_errors(far, [0.5]).tolist() == [0.0]
    assert type_two_errors(law([1.0], 800, "lower"), [0.5]).tolist() == [0.5]
    # some losses in range, some not
    assert type_two_errors(law([0.5] + [0.0] * 799 + [0.5], 0, "upper"), [0.25])[0] <= 0.375


def test_a_lower_law_with_little_mass_claims_little():
    little = law([0.25], -1, "lower")
    found = type_two_errors(little, [0.0, 0.5])
    assert found == pytest.approx([1.0, 0.5])


def test_blocks_agree_with_one_sum():
    # intervals so large that a block is a single loss, and so small that one block is all
    masses = np.full(64, 1.0 / 64.0)
    for interval in (0.001, 1.0, 40.0):
        loss = law(masses, -20, "upper", interval=interval)
        found = float(type_two_errors(loss, [0.125])[0])
        best = max(
            1.0 - loss.delta((i - 20) * interval) - math.exp(min((i - 20) * interval, 600)) * 0.125
            for i in range(64)
        )
        assert found == pytest.approx(max(best, 0.0), abs=1e-10)
        assert found <= max(best, 0.0)


def test_arguments():
    for level in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="type_one_errors"):
            type_two_errors(law([1.0], 0, "upper"), [level])
    with pytest.raises(ParameterError, match="both_orders"):
        type_two_errors(law([1.0], 0, "lower"), [0.1], both_orders=True)
