"""The most and the least useful knowledge: against the listing of all, and against each other."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from oracles.informed_guesses import all_counts, informed_guess, known_laws, uniform
from oracles.shuffled_guesses import k_rr
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage import coarse_lattice, knowledge
from shuffledp.leakage.knowledge import (
    balanced_mode,
    compared_knowledge,
    extreme_knowledge,
    least_mode_lower,
    modes,
)
from shuffledp.leakage.others import Coins, mode_mass
from shuffledp.leakage.strong import strong_vulnerability


@pytest.fixture
def few_blocks(monkeypatch):
    """Coarser ends in less time, and for five values other ones."""
    monkeypatch.setattr(coarse_lattice, "_MOST_WORK", 1e5)
    monkeypatch.setattr(coarse_lattice, "_MOST_NODES", 1e5)


@pytest.mark.parametrize(
    ("num_users", "domain_size"), [(1, 2), (2, 2), (5, 2), (6, 2), (1, 3), (4, 3), (5, 3), (4, 4)]
)
@pytest.mark.parametrize("truth", [Fraction(11, 20), Fraction(4, 5)])
def test_all_knowledge_by_enumeration(num_users, domain_size, truth):
    channel = k_rr(domain_size, truth)
    values = {
        counts: informed_guess(uniform(domain_size), channel, known_laws(channel, counts))
        for counts in all_counts(num_users - 1, domain_size)
    }
    extremes = extreme_knowledge(num_users, domain_size, truth)
    for found, exact in zip(extremes, (max(values.values()), min(values.values())), strict=True):
        assert found.vulnerability.lower <= exact <= found.vulnerability.upper
        assert found.vulnerability.upper - found.vulnerability.lower < 1e-10
        assert found.is_extreme
        assert float(values[found.counts]) == pytest.approx(float(exact), abs=1e-12)


def test_half_of_an_even_number_is_the_worst_case():
    truth = Fraction(4, 5)
    for others in (2, 8, 50):
        best = max(
            mode_mass([Coins(c, truth), Coins(others - c, 1 - truth)]).lower
            for c in range(others + 1)
        )
        balanced = balanced_mode(others, truth)
        assert best <= balanced.upper
        assert extreme_knowledge(others + 1, 2, truth).worst.counts == (others // 2, others // 2)


@pytest.mark.parametrize("others", [1, 3, 50, 201, 1000])
@pytest.mark.parametrize("truth", [Fraction(51, 100), Fraction(4, 5), Fraction(99, 100)])
def test_modes_one_by_one(others, truth):
    counts = np.arange(0, others + 1, max(others // 40, 1))
    found, error = modes(others, truth, counts)
    assert error < 1e-12
    for count, value in zip(counts.tolist(), found, strict=True):
        mode = mode_mass([Coins(count, truth), Coins(others - count, 1 - truth)])
        assert mode.lower - error <= value <= mode.upper + error
    # The ends that hold for every knowledge.
    assert least_mode_lower(others, truth) <= found.min() + error
    assert found.max() - error <= balanced_mode(others, truth).upper


def test_ends_are_close_where_not_all_is_compared(monkeypatch):
    exact = extreme_knowledge(1200, 2, 0.8)
    monkeypatch.setattr(knowledge, "_MOST_SCANNED", 10)
    monkeypatch.setattr(knowledge, "_SCANNED_BEYOND", 5)
    ends = extreme_knowledge(1200, 2, 0.8)
    for one, other in zip(exact, ends, strict=True):
        assert one.is_extreme
        assert not other.is_extreme
        assert other.vulnerability.lower <= one.vulnerability.upper
        assert one.vulnerability.lower <= other.vulnerability.upper
        assert other.vulnerability.upper - other.vulnerability.lower < 3e-5


@pytest.mark.parametrize("num_users", [10**9, 10**9 + 1])
def test_two_values_at_any_size(num_users):
    worst, best = extreme_knowledge(num_users, 2, 0.8)
    assert best.vulnerability.lower <= worst.vulnerability.upper
    assert worst.vulnerability.upper - best.vulnerability.lower < 1e-12
    assert sum(worst.counts) == sum(best.counts) == num_users - 1
    for found in (worst, best):
        value = strong_vulnerability(0.8, found.counts)
        assert value.lower <= worst.vulnerability.upper
        assert best.vulnerability.lower <= value.upper


def test_ends_for_more_values(monkeypatch):
    exact = extreme_knowledge(12, 3, 0.6)
    monkeypatch.setattr(knowledge, "_MOST_VALUES", 2)
    ends = extreme_knowledge(12, 3, 0.6)
    for one, other in zip(exact, ends, strict=True):
        assert one.is_extreme
        assert not other.is_extreme
        assert other.vulnerability.lower <= one.vulnerability.lower
        assert one.vulnerability.upper <= other.vulnerability.upper
    monkeypatch.setattr(knowledge, "_MOST_VALUES", 8)
    monkeypatch.setattr(knowledge, "_MOST_MULTISETS", 3)
    assert not extreme_knowledge(12, 3, 0.6).worst.is_extreme


@pytest.mark.parametrize(("num_users", "domain_size"), [(10**4, 5), (10**6, 100), (10**9, 10**4)])
def test_large_sizes(num_users, domain_size, few_blocks):
    worst, best = extreme_knowledge(num_users, domain_size, 0.6)
    for found in (worst, best):
        assert 1.0 / domain_size < found.vulnerability.lower < found.vulnerability.upper < 0.6
        assert sum(found.counts) == num_users - 1
    assert best.vulnerability.lower <= worst.vulnerability.upper
    assert worst.vulnerability.upper < 1.2 / domain_size


@pytest.mark.parametrize("law", [(10**9, 5, 0.6), (10**9, 3, 0.34)])
def test_where_the_quick_ways_take_long(law, few_blocks):
    """What is known of all others having one value is a lower end then."""
    both = extreme_knowledge(*law)
    assert 1 / law[1] < both.best.vulnerability.lower < both.worst.vulnerability.lower
    assert both.worst.vulnerability.lower < both.worst.vulnerability.upper


def test_edges():
    def find(which, *law):
        return extreme_knowledge(*law)[which]

    for which, values in itertools.product((0, 1), (2, 3)):
        assert find(which, 1, values, 0.75).vulnerability.upper == pytest.approx(0.75)
        assert find(which, 9, values, 1).vulnerability.lower == 1.0
        assert find(which, 9, values, 1 / values).vulnerability.upper == pytest.approx(1.0 / values)
        with pytest.raises(OutOfRegimeError):
            find(which, 9, values, 0.2)
        with pytest.raises(ParameterError):
            find(which, 0, values, 0.75)
    with pytest.raises(ParameterError):
        extreme_knowledge(9, 1, 0.75)


@pytest.mark.parametrize("prior", [[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3]])
def test_any_prior_and_channel_by_enumeration(prior):
    rows = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]]
    law = [Fraction(each) / sum(map(Fraction, prior)) for each in prior]
    for randomizer, channel in [
        (0.6, k_rr(3, Fraction(0.6))),
        (rows, [[Fraction(each) for each in row] for row in rows]),
    ]:
        values = {
            counts: float(informed_guess(law, channel, known_laws(channel, counts)))
            for counts in all_counts(3, 3)
        }
        compared, both = compared_knowledge(4, randomizer, np.array(prior))
        assert compared == 4
        for found, extreme in [(both.worst, max), (both.best, min)]:
            exact = extreme(values.values())
            assert found.vulnerability.lower - 1e-14 <= exact <= found.vulnerability.upper + 1e-14
            assert found.vulnerability.upper - found.vulnerability.lower < 1e-10
            assert values[found.counts] == pytest.approx(exact, abs=1e-12)


def test_the_worst_case_of_fewer_users_is_above(monkeypatch):
    """More users never help: neither what is compared, nor the ends beyond."""
    last = 1.0
    for num_users in (2, 5, 9, 14):
        worst = extreme_knowledge(num_users, 3, 0.6).worst.vulnerability
        assert worst.upper <= last
        last = worst.upper
    exact = extreme_knowledge(14, 3, 0.6).worst.vulnerability
    monkeypatch.setattr(knowledge, "_MOST_MULTISETS", 21)
    assert extreme_knowledge(13, 3, 0.6).worst.is_extreme
    ends = extreme_knowledge(14, 3, 0.6).worst.vulnerability
    assert exact.upper <= ends.upper <= extreme_knowledge(13, 3, 0.6).worst.vulnerability.upper
    monkeypatch.setattr(knowledge, "_MOST_COUNTS", 30)
    compared, both = compared_knowledge(20, 0.6, np.array([0.5, 0.3, 0.2]))
    assert compared == 7
    assert compared_knowledge(7, 0.6, np.array([0.5, 0.3, 0.2]))[1] == both
