"""Stated blankets and attacks of all randomizers, against every list of reports of a few users.

Channels are written out from the documented laws. The blanket's bound and the attack's divergence
are summed directly over the atoms, without the accountant, so that a wrong atom cannot hide behind
it: the bound is at least the divergence of all data, and for one user it *is* the largest one; the
attack's divergence is that of the very data it stands for.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from adversarial import exact, laws
from laws_of_numbers import coarse
from shuffledp.randomizers.registry import (
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

EPSILON0S = (0.2, 1.0, 3.0)
SHARES = (0.0, 0.1, 0.35, 0.7, 0.95)
STATING = ("optimized-local-hashing", "hadamard-response", "subset-selection")


def mean_positive_part(atoms, num_users, epsilon):
    """Return E[(G_1 + ... + G_n)_+] / n over all multisets of n atoms."""
    e = math.exp(epsilon)
    terms = [(atom.mass, atom.ratio0 - e * atom.ratio1) for atom in atoms]
    terms.append((max(1.0 - math.fsum(mass for mass, _ in terms), 0.0), 0.0))
    total = []
    for chosen in itertools.combinations_with_replacement(range(len(terms)), num_users):
        orders = math.factorial(num_users)
        for number in set(chosen):
            orders //= math.factorial(chosen.count(number))
        value = math.fsum(terms[i][1] for i in chosen)
        total.append(orders * math.prod(terms[i][0] for i in chosen) * max(value, 0.0))
    return math.fsum(total) / num_users


def reversed_roles(atoms):
    """Return the atoms of the pair in the other order."""
    return [replace(atom, ratio0=atom.ratio1, ratio1=atom.ratio0) for atom in atoms]


def check_blanket(channel, profile, numbers_of_users, *, is_worst_pair_there=True):
    """Fail unless the bound is above all divergences, and for one user the largest of them."""
    for num_users in numbers_of_users:
        truth = exact.Shuffled(channel, num_users)
        for share in SHARES:
            epsilon = share * profile.epsilon0
            worst, where = truth.worst(epsilon)
            bound = mean_positive_part(profile.blanket, num_users, epsilon)
            assert bound >= worst * (1.0 - 1e-12) - 1e-14, (num_users, epsilon, where)
            if num_users == 1 and is_worst_pair_there:
                assert bound == pytest.approx(worst, rel=1e-7, abs=1e-13)


def check_attack(channel, profile, data, numbers_of_users):
    """Fail unless the attack's divergence is that of ``data`` = (x, x', what all others hold)."""
    first, second, other = data
    for num_users in numbers_of_users:
        truth = exact.Shuffled(channel, num_users)
        others = (other,) * (num_users - 1)
        for share in SHARES:
            epsilon = share * profile.epsilon0
            for atoms, pair in (
                (profile.attack, (first, second)),
                (reversed_roles(profile.attack), (second, first)),
            ):
                found = mean_positive_part(atoms, num_users, epsilon)
                expected = truth.delta(epsilon, (others, *pair))
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-14), (num_users, epsilon)


def affordable(k, numbers_of_users):
    """Leave out what takes long."""
    return [n for n in numbers_of_users if k**n <= 81]


def data_of(name, k):
    """Return the pair, and what all others hold."""
    if k == 2:
        return (0, 1, 1)
    return (0, 1, k - 1) if name == "subset-selection" else (1, 2, 0)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", STATING)
def test_categories(name, k):
    for epsilon0 in EPSILON0S:
        randomizer = RANDOMIZERS[name](domain_size=k, epsilon0=epsilon0)
        channel = laws.category(randomizer)
        check_blanket(channel, randomizer.profile, affordable(k, (1, 2, 3)))
        check_attack(channel, randomizer.profile, data_of(name, k), affordable(k, (1, 2, 3)))


@pytest.mark.parametrize("name", STATING)
def test_four_users(name):
    randomizer = RANDOMIZERS[name](domain_size=3, epsilon0=1.0)
    channel = laws.category(randomizer)
    check_blanket(channel, randomizer.profile, (4,))
    check_attack(channel, randomizer.profile, data_of(name, 3), (4,))


@pytest.mark.parametrize("resolution", [1, 2, 4])
def test_numbers_on_the_grid_and_between(resolution):
    tried = 0
    for epsilon0 in (0.7, 1.0, 2.0):
        randomizer = coarse(resolution)(low=-1, high=1, epsilon0=epsilon0)
        num_steps = randomizer.num_steps
        point = min(randomizer.law.window, num_steps - randomizer.law.window)
        if num_steps > 6:
            continue
        grid = [Fraction(i, num_steps) for i in range(num_steps + 1)]
        channel = laws.number(randomizer, grid)
        profile = randomizer.profile
        users = (1, 2, 3) if num_steps <= 3 else (1, 2)
        between = sorted({*grid, Fraction(1, 7), Fraction(1, 2)})
        check_blanket(laws.number(randomizer, between), profile, users)
        check_attack(channel, profile, (0, num_steps, point), users)
        tried += 1
    assert tried >= 1


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0, 8.0])
def test_vectors_around_the_circle(epsilon0):
    randomizer = VECTOR_RANDOMIZERS["privunit"](dimension=2, epsilon0=epsilon0)
    channel = laws.circle_vectors(randomizer, 4)
    check_blanket(channel, randomizer.profile, (1, 2, 3))
    check_attack(channel, randomizer.profile, (0, 2, 1), (1, 2, 3))
    thirds = laws.circle_vectors(randomizer, 3)
    check_blanket(thirds, randomizer.profile, (1, 2, 3), is_worst_pair_there=False)


def test_a_blanket_that_is_too_heavy_is_caught():
    randomizer = RANDOMIZERS["subset-selection"](domain_size=4, epsilon0=1.0)
    channel = laws.category(randomizer)
    heavier = RANDOMIZERS["subset-selection"](domain_size=7, epsilon0=1.0).profile
    wrong = replace(randomizer.profile, blanket=heavier.blanket)
    with pytest.raises(AssertionError):
        check_blanket(channel, wrong, (1, 2))


def test_an_attack_with_other_data_is_caught():
    randomizer = RANDOMIZERS["optimized-local-hashing"](domain_size=3, epsilon0=3.0)
    assert randomizer.num_buckets == 3
    channel = laws.category(randomizer)
    with pytest.raises(AssertionError):
        check_attack(channel, randomizer.profile, (0, 1, 1), (2,))
