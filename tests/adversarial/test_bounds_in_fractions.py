"""Unwidened pairs, thinned reports and reduced data against exhaustive sums in exact fractions."""

import itertools
import math
from fractions import Fraction

import pytest

from shuffledp.amplification.lower_bounds import (
    unavoidable_delta,
    unavoidable_epsilon,
)
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.amplification.sampling import participating
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

ROUNDING = Fraction(1, 10**12)


def mean_positive_part(atoms, epsilon, num_users):
    """(1/n) E[(sum of r0 - e r1)_+], over all counts; what is missing from mass 1 gains nothing."""
    ratio = Fraction(math.exp(epsilon))
    atoms = [*atoms, (1 - sum(mass for mass, *_ in atoms), Fraction(0), Fraction(0))]
    total = Fraction(0)
    for cuts in itertools.combinations(range(num_users + len(atoms) - 1), len(atoms) - 1):
        ends = (-1, *cuts, num_users + len(atoms) - 1)
        counts = [after - before - 1 for before, after in itertools.pairwise(ends)]
        gain = sum(
            c * (one - ratio * other) for c, (_, one, other) in zip(counts, atoms, strict=True)
        )
        if gain > 0:
            chance = math.prod(mass**c for c, (mass, *_) in zip(counts, atoms, strict=True))
            ways = math.factorial(num_users) // math.prod(map(math.factorial, counts))
            total += ways * chance * gain
    return total / num_users


def profile_of(atoms, epsilon0, *, attack=()):
    blanket, data = (
        tuple(BlanketAtom(mass=float(m), ratio0=float(r), ratio1=float(s)) for m, r, s in each)
        for each in (atoms, attack)
    )
    return LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.OTHER, blanket=blanket, attack=data
    )


PAIR = [
    (Fraction(1, 4), Fraction(3, 2), Fraction(1)),
    (Fraction(1, 4), Fraction(1), Fraction(3, 2)),
    (Fraction(3, 8), Fraction(1), Fraction(1)),
]


@pytest.mark.parametrize("num_users", [1, 2, 5, 9])
@pytest.mark.parametrize("epsilon0", [math.log(1.5) + 1e-12, 1.0, 6.0])
def test_a_symmetric_pair_is_widened_no_further_than_it_may_be(epsilon0, num_users):
    profile = profile_of(PAIR, epsilon0)
    for epsilon in (0.0, 0.02, 0.1, 0.3):
        exact = mean_positive_part(PAIR, epsilon, num_users)
        upper = account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False).upper
        assert exact * (1 - ROUNDING) <= upper <= exact * Fraction(1001, 1000) + Fraction(1, 10**8)


@pytest.mark.parametrize("chance", [Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**300)])
@pytest.mark.parametrize("num_users", [1, 2, 4])
def test_a_report_that_is_seldom_sent_reveals_as_seldom(chance, num_users):
    p = Fraction(3)
    own, other = p / (p + 1), 1 / (p + 1)
    epsilon0 = math.log(3.0) + 1e-12
    seldom = LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2
    )
    profile = participating(seldom, float(chance))
    for epsilon in (0.0, 0.3):
        ratio = Fraction(math.exp(epsilon))
        # All others hold one value: ratios to its law, and to no report.
        data = [
            (chance * own, Fraction(1), other / own),
            (chance * other, Fraction(1), own / other),
            (1 - chance, Fraction(1), Fraction(1)),
        ]
        exact = mean_positive_part(data, epsilon, num_users)
        upper = account_delta(profile, num_users=num_users, epsilon=epsilon).upper
        assert exact * (1 - ROUNDING) <= upper
        sent = chance * (own - ratio * other)
        assert upper <= max(sent * (1 + Fraction(1, 10**9)), Fraction(2, 10**300))
    assert account_epsilon(profile, num_users=num_users, delta=0.2).upper == pytest.approx(0.0)


def test_participation_of_next_to_nothing_is_next_to_nothing():
    release = ShuffledRelease(epsilon0=1.0, num_users=1000, participation=1e-300)
    assert release.epsilon(1e-6).upper == 0.0
    assert release.delta(0.1).upper <= 2e-300
    assert (10 * release).epsilon(1e-6).upper == 0.0
    approximate = LocalProfile(epsilon0=1.0, delta0=1e-3, family=RandomizerFamily.OTHER)
    thinned = participating(approximate, 1e-5)
    assert account_delta(thinned, num_users=5, epsilon=0.0).upper <= 1e-5
    assert account_epsilon(thinned, num_users=5, delta=2e-5).upper == 0.0


def attack_of(channel):
    """Ratios of inputs 0 and 1 to the law of input 2, report by report."""
    return [(w, one / w, other / w) for one, other, w in zip(*channel[:3], strict=True)]


def merged(atoms):
    groups = {}
    for mass, *ratios in atoms:
        groups[tuple(ratios)] = groups.get(tuple(ratios), Fraction(0)) + mass
    return [(mass, *ratios) for ratios, mass in groups.items()]


def test_local_hashing_has_a_lower_end_near_its_upper_one():
    from shuffledp.randomizers.registry import make_randomizer

    profile = make_randomizer("optimized-local-hashing", domain_size=100, epsilon0=16.0).profile
    lower = unavoidable_epsilon(profile, 1000, 1e-6)
    assert lower == pytest.approx(15.9784578, rel=1e-6)  # 5.35 without the reduced data
    assert unavoidable_delta(profile, 1000, lower * (1.0 - 1e-9)) >= 1e-6
