"""The coarse lattice, against the listing of all reports, all histograms, and maximum loads."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.informed_guesses import informed_guess, known_laws, mixed_law
from shuffledp.core.entropy import Entropy
from shuffledp.leakage.counts import coarse_lattice as lattices
from shuffledp.leakage.counts.coarse_lattice import MOST_WORK, coarse_vulnerability
from shuffledp.leakage.strong import _checked, strong_vulnerability
from shuffledp.leakage.uninformed import shuffled_vulnerability


def situation(randomizer, counts, *, prior=None, num_unknown=0):
    return _checked(randomizer, counts, prior, num_unknown)


def coarse(asked, work=MOST_WORK):
    return coarse_vulnerability(asked.kinds(), asked.prior[:, None] * asked.rows(), work=work)


def even(others, domain_size):
    return [others // domain_size + (x < others % domain_size) for x in range(domain_size)]


def width(found, before):
    """The distance of the ends, relative to the lower end of what is leaked."""
    return (found.upper - found.lower) / (found.lower - before)


@st.composite
def channels(draw):
    domain_size, num_outcomes = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    rows = [
        draw(st.lists(st.integers(0, 6), min_size=num_outcomes, max_size=num_outcomes).filter(any))
        for _ in range(domain_size)
    ]
    counts = draw(
        st.lists(st.integers(0, 2), min_size=domain_size, max_size=domain_size).filter(any)
    )
    parts = draw(
        st.lists(st.integers(0, 5), min_size=domain_size, max_size=domain_size).filter(any)
    )
    law = [Fraction(part, sum(parts)) for part in parts]
    channel = [[Fraction(a, sum(row)) for a in row] for row in rows]
    return channel, counts, law, draw(st.integers(0, 1)), draw(st.sampled_from([2.4e7, 300.0]))


@pytest.mark.slow
@settings(max_examples=60)
@given(channels())
def test_all_reports_of_any_channel(case):
    """With blocks of one number and of several: the ends hold; one number leaves no more open."""
    channel, counts, law, unknown, work = case
    laws = known_laws(channel, counts) + [mixed_law(law, channel)] * unknown
    exact = float(informed_guess(law, channel, laws))
    floats = [[float(each) for each in row] for row in channel]
    asked = situation(floats, counts, prior=[float(each) for each in law], num_unknown=unknown)
    found = coarse(asked, work)
    if asked.num_outcomes == 1:
        assert found is None
        return
    assert found.lower - 1e-14 <= exact <= found.upper + 1e-14


@pytest.mark.parametrize("counts", [(300, 300, 299), (700, 199, 0), (20, 20, 20, 19), (5,) * 5])
@pytest.mark.parametrize("leaning", [0.0, 0.002])
def test_all_histograms(counts, leaning):
    """Blocks of several widths around what is exact: the ends hold, and close up with the width."""
    size = len(counts)
    prior = np.full(size, 1.0 / size) + leaning * (np.arange(size) - 0.5 * (size - 1))
    exact = strong_vulnerability(0.6, counts, prior=prior)
    assert exact.method == "histograms"
    before = float(prior.max())
    widths = []
    for work in (2.4e7, 2e5 if size == 5 else 2e4, 2e3 * size):
        found = coarse(situation(0.6, counts, prior=prior), work)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper
        widths.append((found.upper - found.lower) / (exact.upper - before))
    assert widths[0] < 1e-3 * (1.0 if leaning == 0.0 else 20.0)
    assert widths[0] < widths[-1]


@pytest.mark.parametrize(
    ("num_users", "domain_size"), [(30_000, 3), (10**6, 3), (10**9, 3), (10**9, 4)]
)
def test_what_is_exact_for_uniform_strangers(num_users, domain_size):
    """Nobody is known: eq. 17 of the source, by way of the fullest bin, at any size."""
    exact = shuffled_vulnerability(num_users, domain_size, 0.6)
    work = 2e6 if domain_size == 4 else MOST_WORK
    found = coarse(situation(0.6, [0] * domain_size, num_unknown=num_users - 1), work)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert width(found, 1.0 / domain_size) < 0.01
    # A planted error of a hundredth of what is leaked shows.
    leaked = exact.upper - 1.0 / domain_size
    for wrong in (exact.upper + 0.01 * leaked, exact.lower - 0.01 * leaked):
        assert not found.lower <= wrong <= found.upper


def test_five_values():
    """With fewer blocks than usual, for the time it takes."""
    exact = shuffled_vulnerability(10**6, 5, 0.6)
    found = coarse(situation(0.6, [0] * 5, num_unknown=10**6 - 1), 2e6)
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert width(found, 0.2) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("num_users", [10**4, 10**6, 10**9])
def test_five_values_within_a_hundredth(num_users):
    exact = shuffled_vulnerability(num_users, 5, 0.6)
    found = coarse(situation(0.6, [0] * 5, num_unknown=num_users - 1))
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    leaked = exact.upper - 0.2
    assert found.upper - exact.upper < 0.013 * leaked
    assert exact.lower - found.lower < 0.01 * leaked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain_size", "sizes"), [(3, (25_000, 25_300, 30_000, 10**6, 10**9)), (4, (200, 203, 10**6))]
)
def test_what_is_reported_does_not_jump_where_listing_ends(domain_size, sizes):
    """Both ends fall with users; before, the distance went from 1e-6 of what is leaked to 0.3."""
    last = None
    for num_users in sizes:
        found = strong_vulnerability(0.6, even(num_users - 1, domain_size))
        assert width(found, 1.0 / domain_size) < 0.01
        if last is not None:
            assert found.upper < last.upper
            assert found.lower < last.lower
        last = found


@pytest.mark.slow
@pytest.mark.parametrize("prior", [None, [0.3334, 0.3333, 0.3333]])
def test_names_of_values_do_not_matter(prior):
    """Another outcome is implied, another guess the base."""
    ends = []
    for order in itertools.permutations(range(3)):
        counts = [[50_000, 30_000, 19_999][x] for x in order]
        law = None if prior is None else [prior[x] for x in order]
        ends.append(coarse(situation(0.5, counts, prior=law)))
    assert max(each.lower for each in ends) <= min(each.upper for each in ends)


def test_more_outcomes_than_values():
    rows = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    exact = strong_vulnerability(rows, [300, 500])
    found = coarse(situation(rows, [300, 500]))
    assert exact.method == "histograms"
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert width(found, 0.5) < 1e-3


def test_where_it_does_not_apply(monkeypatch):
    assert coarse(situation(0.5, [10] * 6)) is None
    monkeypatch.setattr(lattices, "_MOST_NODES", 10)
    assert coarse(situation(0.5, [1000] * 3)) is None


def halved(values, axis, order):
    """Coefficients of B-splines of order four or six in terms of those half as wide."""
    last, following = np.roll(values, 1, axis), np.roll(values, -1, axis)
    even_ones = (last + 6.0 * values + following) / 8.0
    odd_ones = (values + following) / 2.0
    if order == 6:
        even_ones = (6.0 * last + 20.0 * values + 6.0 * following) / 32.0
        odd_ones = (last + 15.0 * (values + following) + np.roll(values, -2, axis)) / 32.0
    shape = [size * (1 + (i == axis)) for i, size in enumerate(values.shape)]
    return np.stack([even_ones, odd_ones], axis=axis + 1).reshape(shape)


@pytest.mark.parametrize("widths", [(2, 4), (2, 1), (1, 1)])
@pytest.mark.parametrize("order", [4, 6])
def test_narrower_splines(widths, order):
    """Refinement near ties is what refinement everywhere gives."""
    found = Entropy.from_seed(3).generator().normal(size=(2, 7, 9))
    refined, share = found, 1.0
    for axis, each in enumerate(widths, start=1):
        if each > 1:
            refined, share = halved(refined, axis, order), 0.5 * share
    exact = share * np.maximum(refined.max(axis=0), 0.0).sum()
    largest = np.maximum(found.max(axis=0), 0.0).sum()
    total = lattices._synthesis_sum(widths, found, order)
    # Of order six, ties two blocks away are not looked for.
    assert exact * (1 - 1e-12) <= total <= (largest if order == 6 else exact * (1 + 1e-8))
    assert total <= largest * (1 + 1e-12)
