"""The most useful knowledge: against the listing of all, and against each other."""

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
    worst_knowledge,
)
from shuffledp.leakage.others import Coins, mode_mass
from shuffledp.leakage.strong import strong_vulnerability


@pytest.fixture
def few_blocks(monkeypatch):
    """Coarser ends in less time, and for five values other ones."""
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
    found, exact = worst_knowledge(num_users, domain_size, truth), max(values.values())
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
        assert worst_knowledge(others + 1, 2, truth).counts == (others // 2, others // 2)


def test_ends_are_close_where_not_all_is_compared(monkeypatch):
    one = worst_knowledge(400, 2, 0.8)
    monkeypatch.setattr(knowledge, "_MOST_SCANNED", 10)
    other = worst_knowledge(400, 2, 0.8)
    assert one.is_extreme
    assert not other.is_extreme
    assert other.vulnerability.lower <= one.vulnerability.upper
    assert one.vulnerability.lower <= other.vulnerability.upper
    assert other.vulnerability.upper - other.vulnerability.lower < 3e-5


@pytest.mark.parametrize("num_users", [10**9, 10**9 + 1])
def test_two_values_at_any_size(num_users):
    worst = worst_knowledge(num_users, 2, 0.8)
    assert sum(worst.counts) == num_users - 1
    for counts in (worst.counts, (0, num_users - 1)):
        assert strong_vulnerability(0.8, counts).lower <= worst.vulnerability.upper


def test_ends_for_more_values(monkeypatch):
    exact = worst_knowledge(12, 3, 0.6)
    monkeypatch.setattr(knowledge, "_MOST_VALUES", 2)
    ends = worst_knowledge(12, 3, 0.6)
    assert exact.is_extreme
    assert not ends.is_extreme
    assert ends.vulnerability.lower <= exact.vulnerability.lower
    assert exact.vulnerability.upper <= ends.vulnerability.upper
    monkeypatch.setattr(knowledge, "_MOST_VALUES", 8)
    monkeypatch.setattr(knowledge, "_MOST_MULTISETS", 3)
    assert not worst_knowledge(12, 3, 0.6).is_extreme


@pytest.mark.parametrize(
    ("num_users", "domain_size"),
    [(10**4, 5), (10**6, 100), pytest.param(10**9, 10**4, marks=pytest.mark.slow), (10**9, 3)],
)
def test_large_sizes(num_users, domain_size, few_blocks):
    worst = worst_knowledge(num_users, domain_size, 0.6)
    assert 1.0 / domain_size < worst.vulnerability.lower < worst.vulnerability.upper
    assert worst.vulnerability.upper < 1.2 / domain_size
    assert sum(worst.counts) == num_users - 1


def test_edges():
    for values in (2, 3):
        assert worst_knowledge(1, values, 0.75).vulnerability.upper == pytest.approx(0.75)
        assert worst_knowledge(9, values, 1).vulnerability.lower == 1.0
        silent = worst_knowledge(9, values, 1 / values).vulnerability
        assert silent.upper == pytest.approx(1.0 / values)
        with pytest.raises(OutOfRegimeError):
            worst_knowledge(9, values, 0.2)
        with pytest.raises(ParameterError):
            worst_knowledge(0, values, 0.75)
    with pytest.raises(ParameterError):
        worst_knowledge(9, 1, 0.75)


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
        compared, found = compared_knowledge(4, randomizer, np.array(prior))
        assert compared == 4
        exact = max(values.values())
        assert found.vulnerability.lower - 1e-14 <= exact <= found.vulnerability.upper + 1e-14
        assert found.vulnerability.upper - found.vulnerability.lower < 1e-10
        assert values[found.counts] == pytest.approx(exact, abs=1e-12)


def test_the_worst_case_of_fewer_users_is_above(monkeypatch):
    """More users never help: neither what is compared, nor the ends beyond."""
    last = 1.0
    for num_users in (2, 5, 9, 14):
        worst = worst_knowledge(num_users, 3, 0.6).vulnerability
        assert worst.upper <= last
        last = worst.upper
    exact = worst_knowledge(14, 3, 0.6).vulnerability
    monkeypatch.setattr(knowledge, "_MOST_MULTISETS", 21)
    assert worst_knowledge(13, 3, 0.6).is_extreme
    ends = worst_knowledge(14, 3, 0.6).vulnerability
    assert exact.upper <= ends.upper <= worst_knowledge(13, 3, 0.6).vulnerability.upper
    monkeypatch.setattr(knowledge, "_MOST_COUNTS", 30)
    compared, worst = compared_knowledge(20, 0.6, np.array([0.5, 0.3, 0.2]))
    assert compared == 7
    assert compared_knowledge(7, 0.6, np.array([0.5, 0.3, 0.2]))[1] == worst
