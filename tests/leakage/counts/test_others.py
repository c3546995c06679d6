"""The law of the others' reports, as coins and as histograms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.informed_guesses import informed_guess, known_laws, others_law
from shuffledp.core.numerics.binomial_kernels import log_binomial_pmf
from shuffledp.leakage.counts.others import (
    Coins,
    Kind,
    bernstein_window,
    best_guess,
    histogram_box,
    histogram_law,
    mode_mass,
    phase_remainder,
    report_law,
)

groups = st.lists(
    st.builds(
        Coins,
        number=st.integers(0, 25),
        chance=st.integers(0, 64).map(lambda part: Fraction(part, 64)),
    ),
    min_size=1,
    max_size=3,
)


def binomial_pmf(n, k, p, q):
    return math.exp(log_binomial_pmf(n, k, p, q))


def exact_law(coins):
    law = [Fraction(1)]
    for group in coins:
        for _ in range(group.number):
            law = [
                (law[i] if i < len(law) else 0) * (1 - group.chance)
                + (law[i - 1] * group.chance if i > 0 else 0)
                for i in range(len(law) + 1)
            ]
    return law


@given(groups)
def test_against_fractions(coins):
    exact = exact_law(coins)
    found = report_law(coins)
    off = Fraction(0)
    for s in range(max(len(exact), found.first + found.masses.size)):
        place = s - found.first
        mass = found.masses[place] if 0 <= place < found.masses.size else 0.0
        off += abs(Fraction(float(mass)) - (exact[s] if s < len(exact) else 0))
    assert off <= found.error <= 1e-12
    mode = mode_mass(coins)
    assert mode.lower <= max(exact) <= mode.upper
    assert mode.upper - mode.lower <= 1e-12


@pytest.mark.parametrize("number", [1000, 10**6, 10**9])
@pytest.mark.parametrize("chance", [Fraction(3, 10), Fraction(1, 10**6), 1 - Fraction(1, 10**5)])
def test_binomial_at_any_size(number, chance):
    p, q = float(chance), float(1 - chance)
    found = report_law([Coins(number, chance)])
    places = found.first + np.linspace(0, found.masses.size - 1, 50).astype(int)
    places = places[places <= number]
    pmf = [binomial_pmf(float(number), float(s), p, q) for s in places]
    masses = found.masses[places - found.first]
    assert np.abs(masses - pmf).max() <= 1e-10 * max(pmf) + 1e-16
    assert found.masses.sum() == pytest.approx(1.0, abs=found.error)
    center = round(number * chance)
    best = max(
        binomial_pmf(float(number), float(min(max(center + d, 0), number)), p, q)
        for d in (-1, 0, 1)
    )
    mode = mode_mass([Coins(number, chance)])
    assert mode.lower == pytest.approx(best, rel=1e-10)
    assert mode.upper - mode.lower <= 1e-12 * best


def test_phases_continue_where_the_series_ends():
    # Multiprecision would say the same: both ways agree where both are accurate.
    angles = np.array([0.0299999, 0.0300001])
    for chance in (0.5, 0.2, 1e-7):
        below, above = phase_remainder(chance, angles)
        scale = chance * (1.0 - chance) * 0.03**3
        assert below == pytest.approx(above, abs=1e-4 * scale + 1e-16)
        if chance < 0.5:
            assert below != 0.0


def test_a_window_holds_all_but_its_tails():
    mean, variance = Fraction(300), 210.0
    first, last = bernstein_window(mean, variance, 1000)
    outside = sum(
        binomial_pmf(1000.0, float(s), 0.3, 0.7) for s in range(1001) if not first <= s <= last
    )
    assert outside <= 2.0 * math.exp(-44.0)
    assert bernstein_window(Fraction(1), 1.0, 3) == (0, 3)


def test_sure_coins():
    law = report_law([Coins(10**9, Fraction(1)), Coins(5, Fraction(0))])
    assert law.masses[10**9 - law.first] == pytest.approx(1.0, abs=1e-12)
    assert mode_mass([Coins(0, Fraction(1, 2))]).upper == 1.0


@st.composite
def laws(draw, size):
    parts = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any))
    return [Fraction(part, sum(parts)) for part in parts]


@st.composite
def cases(draw):
    domain_size, num_outcomes = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    channel = [draw(laws(num_outcomes)) for _ in range(domain_size)]
    counts = draw(st.lists(st.integers(0, 2), min_size=domain_size, max_size=domain_size))
    return draw(laws(domain_size)), channel, counts


def kinds_of(channel, counts):
    rows = np.array(channel, dtype=np.float64)
    return [Kind(count, row) for count, row in zip(counts, rows, strict=True)]


@settings(max_examples=60)
@given(cases())
def test_against_all_reports(case):
    prior, channel, counts = case
    kinds = kinds_of(channel, counts)
    box = histogram_box(kinds)
    law = histogram_law(kinds, box)
    exact = others_law(known_laws(channel, counts), len(channel[0]))
    kept = [y for y in range(len(channel[0])) if y != box.implied]
    off = np.array(law.masses)
    for seen, chance in exact.items():
        place = tuple(seen[y] - first for y, first in zip(kept, box.firsts, strict=True))
        off[place] -= float(chance)
    assert np.abs(off).sum() <= law.error <= 1e-11
    joint = np.array(prior, dtype=np.float64)[:, None] * np.array(channel, dtype=np.float64)
    found = best_guess(law, joint)
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
    found = best_guess(law, np.array([[0.375, 0.125], [0.125, 0.375]]))
    assert found.lower <= 0.75 <= found.upper
