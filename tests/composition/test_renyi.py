"""Renyi divergences of releases from above, against closed forms and enumerations."""

import math
from fractions import Fraction

import numpy as np
import pytest

from oracles import discrete_pairs, enumeration, gaussian_pairs, profiles
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition import renyi
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.composition.renyi import renyi_divergence, renyi_without_failure
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure

LARGE = ShuffledRelease(epsilon0=1.0, num_users=100_000)
PAIRS = {
    "one bit": [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))],
    "three answers": [
        (Fraction(1, 2), Fraction(1, 4)),
        (Fraction(1, 4), Fraction(1, 2)),
        (Fraction(1, 4), Fraction(1, 4)),
    ],
    "lopsided": [(Fraction(1, 3), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 2))],
    "nearly equal": [
        (Fraction(10001, 20000), Fraction(1, 2)),
        (Fraction(9999, 20000), Fraction(1, 2)),
    ],
}


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("order", [1.0001, 1.5, 2.0, 10.0, 100.0, 1000.0])
def test_small_pairs_exactly(name, order):
    pair = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in PAIRS[name]]
    curve = discrete_pairs.curve_of(PAIRS[name])
    for asked, rows in ((curve, pair), (curve.reversed, [(q, p) for p, q in pair])):
        exact = discrete_pairs.renyi(rows, order)
        upper = renyi_divergence(asked, order)
        assert exact <= upper <= 1.002 * exact
        assert upper <= curve.highest


@pytest.mark.parametrize("order", [2.0, 10.0, 100.0])
def test_a_rare_but_large_loss(order):
    # far beyond what the deviation suggests, where knots are few
    pair = [
        (Fraction(21, 10000), Fraction(1, 10000)),
        (Fraction(9979, 10000), Fraction(9999, 10000)),
    ]
    rows = [(discrete_pairs.exact(p), discrete_pairs.exact(q)) for p, q in pair]
    exact = discrete_pairs.renyi(rows, order)
    assert exact <= renyi_divergence(discrete_pairs.curve_of(pair), order) <= 1.1 * exact


def test_a_gaussian_that_ends():
    # Beyond 0.3 = 30 deviations the tail no longer matters.
    gaussian = gaussian_pairs.curve(0.01)
    assert renyi_divergence(gaussian, 2.0) == math.inf  # no value excludes it
    curve = HockeyStickCurve(forward=gaussian.forward, backward=gaussian.backward, highest=0.3)
    for order in (2.0, 60.0):
        exact = order * 1e-4 / 2.0
        assert exact <= renyi_divergence(curve, order) <= 1.002 * exact


def test_what_lies_beyond_the_last_knots_counts():
    """Chords of both parts are exact; the smaller one is below the tail at which knots end."""
    small, near, far = 5e-9, math.exp(0.1), math.e
    large = (0.01 / math.sqrt(0.012 * math.pi) - small * (far - 1.0)) / (near - 1.0)
    parts = ((large, near), (small, far))

    def at(epsilon):
        value = math.fsum(mass * max(ratio - math.exp(epsilon), 0.0) for mass, ratio in parts)
        return Enclosure(value, value)

    exact = math.log1p(math.fsum(m * (r - 1.0) ** 2 * (1.0 + 1.0 / r) for m, r in parts))
    found = renyi_divergence(HockeyStickCurve(at, at, 1.0), 2.0)
    assert exact < found < exact * (1.0 + 1e-6)


def test_nothing_to_tell_apart():
    zero = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 0.0), backward=lambda _: Enclosure(0.0, 0.0), highest=1.0
    )
    assert renyi_divergence(zero, 2.0) == 0.0
    assert renyi_without_failure(StatedRelease(epsilon=0.0), 2.0) == 0.0


def binary_renyi(epsilon, order):
    """Renyi divergence of randomized response, in closed form."""
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    terms = keep**order * (1 - keep) ** (1 - order) + (1 - keep) ** order * keep ** (1 - order)
    return math.log(terms) / (order - 1.0)


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_stated_guarantees_have_the_closed_form(order, delta):
    exact = binary_renyi(0.5, order)
    found = renyi_without_failure(StatedRelease(epsilon=0.5, delta=delta), order)
    assert exact <= found <= exact * 1.005


@pytest.mark.parametrize("order", [2.0, 5.0])
def test_above_the_enumeration(order):
    channel = enumeration.randomized_response(2, math.e)
    pairs = [(p, q) for p, q, _, _ in enumeration.neighbouring_laws(channel, 3)]
    exact = max(math.log(float(np.sum(p**order * q ** (1 - order)))) for p, q in pairs)
    release = ShuffledRelease(profile=profiles.k_rr(1.0, 2), num_users=3)
    found = renyi_without_failure(release, order)
    assert exact / (order - 1.0) <= found <= 1.3 * exact / (order - 1.0)


@pytest.mark.parametrize("order", [2.0, 16.0, 24.0, 64.0])
def test_large_crowds_are_nearly_gaussian(order):
    variance = 2.0 * (math.e - 1.0) ** 2 / (math.e + 1.0) / 100_000
    found = renyi_without_failure(LARGE, order)
    assert found == pytest.approx(0.5 * order * variance, rel=0.01)


def test_where_round_off_dominates_the_local_loss_is_left(monkeypatch):
    def lost(*_arguments):
        raise PrecisionError("planted")

    monkeypatch.setattr(renyi, "renyi_divergence", lost)
    renyi._divergence.cache_clear()
    found = renyi_without_failure(LARGE, 3.0)
    renyi._divergence.cache_clear()
    assert found == 1.0
