"""The error budget of the convolution, against exact sums of fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.composition import compose_losses as convolution
from shuffledp.composition.compose_losses import Part, convolve
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import PrecisionError


def part(first, masses, count, interval=1.0):
    indices = first + np.arange(len(masses))
    return Part(indices, interval * indices.astype(np.float64), np.array(masses), count)


def exact_sum(parts):
    """Probabilities of all indices of the sum, exactly, of the doubles given."""
    law = {0: Fraction(1)}
    for item in parts:
        for _ in range(item.count):
            following = {}
            for at, weight in law.items():
                for index, mass in zip(item.indices.tolist(), item.masses.tolist(), strict=True):
                    following[at + index] = following.get(at + index, 0) + weight * Fraction(mass)
            law = following
    return law


def check(parts, negligible, interval=1.0):
    found = convolve(parts, interval, negligible)
    law = exact_sum(parts)
    for index, (mass, doubt) in enumerate(zip(found.masses, found.doubts, strict=True)):
        exact = law.get(found.first + index, Fraction(0))
        assert abs(Fraction(float(mass)) - exact) <= Fraction(float(doubt))
    last = found.first + found.masses.size - 1
    assert sum(mass for at, mass in law.items() if at < found.first) <= found.below
    assert sum(mass for at, mass in law.items() if at > last) <= Fraction(found.beyond)
    return found, law


laws = st.lists(st.integers(1, 1000), min_size=1, max_size=6)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(-5, 5), laws, st.integers(1, 6)), min_size=1, max_size=3),
    st.sampled_from([1e-300, 1e-30, 1e-6, 0.1]),
)
def test_every_probability_is_within_its_doubt(rows, negligible):
    check([part(first, np.array(row) / sum(row), count) for first, row, count in rows], negligible)


def test_far_tails_keep_their_digits():
    # A sum of forty of these ends at 1e-240; the doubt there is still small against it.
    indices = np.array([-1, 1])
    rare = Part(indices, indices.astype(np.float64), np.array([1.0 - 1e-6, 1e-6]), 40)
    found, law = check([rare], 1e-290)
    last = found.masses[-1]
    assert last == pytest.approx(float(law[40]), rel=1e-9)
    assert found.doubts[-1] <= 1e-6 * last


@pytest.mark.parametrize("num_points", [16, 256, 4096])
def test_the_constant_of_the_transforms(num_points):
    # Worst of many laws: sparse, dense, a single point. The bound must hold, by a margin.
    generator = Entropy.from_seed(7).generator()
    worst = 0.0
    for shape in (0.01, 0.1, 1.0, 100.0):
        masses = generator.gamma(shape, size=min(num_points // 3, 60)) + 1e-9
        masses /= masses.sum()
        item = part(-3, masses, 3)
        logs = [math.log(math.fsum(masses))]
        found, bound = convolution._convolved([item], 0.0, logs, num_points)
        exact = exact_sum([part(0, masses, 3)])
        wrapped = [Fraction(0)] * num_points
        for at, weight in exact.items():
            wrapped[(at - 9) % num_points] += weight
        error = max(
            abs(float(Fraction(float(value)) - expected))
            for value, expected in zip(found, wrapped, strict=True)
        )
        worst = max(worst, error / bound)
    assert worst <= 0.3


def test_a_window_too_small_is_noticed(monkeypatch):
    # Planted: windows that leave e^-3 outside. The doubts must grow accordingly, and cover it.
    item = part(-8, [1.0 / 17.0] * 17, 12)
    honest = convolve([item], 1.0, 1e-9)
    monkeypatch.setattr(convolution, "_OUTSIDE_EXPONENT", 3.0)
    found, _ = check([item], 1e-9)
    assert found.doubts.max() > 0.05
    assert honest.doubts.max() < 1e-12


def test_a_law_spread_too_far_is_refused(monkeypatch):
    monkeypatch.setattr(convolution, "_MOST_POINTS", 64)
    with pytest.raises(PrecisionError, match="spread over"):
        convolve([part(-8, [1.0 / 17.0] * 17, 100)], 1.0, 1e-9)


def test_a_single_loss():
    found = convolve([part(3, [1.0], 5)], 1.0, 1e-9)
    assert found.first == 15
    assert found.masses == pytest.approx([1.0])
    assert (found.beyond, found.masses.size) == (0.0, 1)


def test_tilts_are_limited(monkeypatch):
    # With a single tilt the far tail is in doubt, and says so.
    monkeypatch.setattr(convolution, "_MOST_TILTS", 1)
    found, _ = check([part(-1, [0.5, 0.25, 0.25], 30)], 1e-12)
    assert found.doubts[-1] > 1e-3 * found.masses[-1]
