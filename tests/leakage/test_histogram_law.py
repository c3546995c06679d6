"""Laws of histograms and the best guess, against the listing of all reports."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.informed_guesses import informed_guess, known_laws, others_law
from shuffledp.leakage.others import Kind, best_guess, histogram_box, histogram_law


@st.composite
def laws(draw, size):
    parts = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any))
    return [Fraction(part, sum(parts)) for part in parts]


@st.composite
def cases(draw):
    num_values, num_outcomes = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    channel = [draw(laws(num_outcomes)) for _ in range(num_values)]
    counts = draw(st.lists(st.integers(0, 2), min_size=num_values, max_size=num_values))
    return draw(laws(num_values)), channel, counts


def kinds_of(channel, counts):
    rows = np.array(channel, dtype=np.float64)
    return [Kind(count, row) for count, row in zip(counts, rows, strict=True)]


@settings(max_examples=60)
@given(cases())
def test_against_all_reports(case):
    prior, channel, counts = case
    kinds = kinds_of(channel, counts)
    law = histogram_law(kinds, histogram_box(kinds))
    exact = others_law(known_laws(channel, counts), len(channel[0]))
    kept = [y for y in range(len(channel[0])) if y != law.box.implied]
    off = np.array(law.masses)
    for seen, chance in exact.items():
        place = tuple(seen[y] - first for y, first in zip(kept, law.box.firsts, strict=True))
        off[place] -= float(chance)
    assert np.abs(off).sum() <= law.error <= 1e-11
    found = best_guess(law, np.array(prior, dtype=np.float64), np.array(channel, dtype=np.float64))
    value = informed_guess(prior, channel, known_laws(channel, counts))
    assert found.lower <= value <= found.upper <= found.lower + 1e-11


def test_windows_lose_nothing():
    # Wide enough for boxes to be shorter than the number of users: the same as one axis at a time.
    rows = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    kinds = [Kind(3000, rows[0]), Kind(2000, rows[1])]
    box = histogram_box(kinds)
    assert max(box.lengths) < 1000
    law = histogram_law(kinds, box)
    assert law.masses.sum() == pytest.approx(1.0, abs=law.error)
    kept = [y for y in range(3) if y != box.implied]
    for axis, y in enumerate(kept):
        counts = np.arange(box.lengths[axis]) + box.firsts[axis]
        margin = law.masses.sum(axis=1 - axis)
        mean = sum(kind.number * kind.law[y] for kind in kinds)
        variance = sum(kind.number * kind.law[y] * (1.0 - kind.law[y]) for kind in kinds)
        assert (margin * counts).sum() == pytest.approx(mean, rel=1e-9)
        assert (margin * (counts - mean) ** 2).sum() == pytest.approx(variance, rel=1e-7)


def test_no_others_at_all():
    kinds = [Kind(0, np.array([0.5, 0.5]))]
    law = histogram_law(kinds, histogram_box(kinds))
    assert law.masses.tolist() == [1.0]
    found = best_guess(law, np.array([0.5, 0.5]), np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert found.lower <= 0.75 <= found.upper
