"""Stated blankets err upwards: (B) of the floats of a profile against (B) of the exact law.

Both are sums over all outcomes in exact fractions, at rational e. The exact law is the infimum of
the randomizer's channel, or k-RR's from its integer threshold, and shares no code with the atoms.
"""

import itertools
import math
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from laws_of_numbers import channel_of, coarse
from shuffledp.amplification.clones_and_families import blanket_atoms
from shuffledp.amplification.sampling import participating
from shuffledp.amplification.stated_blanket import STATED_BLANKET
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily, rounded_atoms
from shuffledp.randomizers import Duchi, SplitAnswers
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.local_hashing import HadamardResponse, OptimizedLocalHashing
from shuffledp.randomizers.subset_selection import SubsetSelection
from shuffledp.randomizers.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding

EPSILON0S = (0.0, 1e-9, 0.1, 0.37, 1.0, 1.9, 3.3, 7.7, 20.0, 60.0)
CATEGORIES = (
    HadamardResponse,
    KRandomizedResponse,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    SubsetSelection,
    SymmetricUnaryEncoding,
)


def bound(atoms, e, num_users):
    """(1/n) E[(sum of r0 - e r1)_+], over all counts; what is missing from mass 1 gains nothing."""
    laws = {}
    for mass, ratio0, ratio1 in atoms:
        gain = Fraction(ratio0) - e * Fraction(ratio1)
        laws[gain] = laws.get(gain, Fraction(0)) + Fraction(mass)
    laws[Fraction(0)] = laws.get(Fraction(0), Fraction(0)) + 1 - sum(laws.values())
    total = Fraction(0)
    for outcome in itertools.combinations_with_replacement(laws.items(), num_users):
        gain = sum(each for each, _ in outcome)
        if gain > 0:
            counts = [len(list(same)) for _, same in itertools.groupby(outcome)]
            ways = math.factorial(num_users) // math.prod(map(math.factorial, counts))
            total += ways * math.prod(mass for _, mass in outcome) * gain
    return total / num_users


def stated(atoms):
    return [(atom.mass, atom.ratio0, atom.ratio1) for atom in atoms]


def of_channel(channel, first, second):
    """The infimum of all rows, and the ratios of two of them to it."""
    columns = [column for column in zip(*channel, strict=True) if max(column) > 0]
    return [(min(c), c[first] / min(c), c[second] / min(c)) for c in columns]


def shortfalls(exact, found, ratio):
    """How often, of a few e and n, the floats' bound is below the exact one."""
    exponents = [Fraction(step, 7) for step in (0, 1, 3, 5, 6)]
    cases = itertools.product([1 + (ratio - 1) * each for each in exponents], (1, 2, 3))
    return sum(bound(found, e, n) < bound(exact, e, n) for e, n in cases)


@pytest.mark.parametrize("k", [2, 3, 7, 64])
def test_k_rr_errs_upwards(k):
    for epsilon0 in EPSILON0S:
        randomizer = KRandomizedResponse(domain_size=k, epsilon0=epsilon0)
        channel = randomizer.channel()
        lie = min(channel[0]) if randomizer.epsilon0 else Fraction(1, k)
        ratio = (1 - (k - 1) * lie) / lie
        exact = [(lie, ratio, 1), (lie, 1, ratio), ((k - 2) * lie, 1, 1)]
        assert shortfalls(exact, stated(randomizer.profile.blanket), ratio) == 0


def test_rounding_to_nearest_does_not():
    found = 0
    for epsilon0 in EPSILON0S[2:]:
        lie = min(KRandomizedResponse(domain_size=7, epsilon0=epsilon0).channel()[0])
        ratio = (1 - 6 * lie) / lie
        exact = [(lie, ratio, 1), (lie, 1, ratio), (5 * lie, 1, 1)]
        found += shortfalls(exact, stated(rounded_atoms(exact)), ratio)
    assert found > 20


@pytest.mark.parametrize("make", CATEGORIES)
@pytest.mark.parametrize("k", [2, 4])
def test_categories_err_upwards(make, k):
    for epsilon0 in EPSILON0S:
        randomizer = make(domain_size=k, epsilon0=epsilon0)
        if randomizer.epsilon0 == 0.0:
            continue  # all atoms are neutral
        channel = randomizer.channel()
        columns = zip(*channel, strict=True)
        ratio = max(max(column) / min(column) for column in columns if max(column) > 0)
        exact = of_channel(channel, 0, 1)
        assert shortfalls(exact, stated(randomizer.profile.blanket), ratio) == 0
        with mp.workdps(60):
            assert mpf(randomizer.profile.epsilon0) >= mp.log(mpf(ratio.numerator)) - mp.log(
                ratio.denominator
            )


@pytest.mark.parametrize("make", [Duchi, coarse(1)])
def test_numbers_err_upwards(make):
    for epsilon0 in EPSILON0S[2:]:
        randomizer = make(low=0, high=1, epsilon0=epsilon0)
        if randomizer.num_steps >= 64:
            continue
        channel = channel_of(randomizer)
        columns = zip(*channel, strict=True)
        ratio = max(max(column) / min(column) for column in columns if max(column) > 0)
        exact = of_channel(channel, 0, -1)
        assert shortfalls(exact, stated(randomizer.profile.blanket), ratio) == 0


def products(atoms, num_parts):
    """Masses and ratios of independent slots, those of the same ratios as one."""
    masses = {(Fraction(1), Fraction(1)): Fraction(1)}
    for _ in range(num_parts):
        held, masses = masses, {}
        for ratios, mass in held.items():
            for own, *more in atoms:
                both = tuple(ratio * each for ratio, each in zip(ratios, more, strict=True))
                masses[both] = masses.get(both, 0) + mass * own
    return [(mass, *ratios) for ratios, mass in masses.items()]


@pytest.mark.parametrize("base", ["k-rr", "optimized-local-hashing", "symmetric-unary"])
@pytest.mark.parametrize("num_parts", [1, 2, 3])
def test_split_sets_err_upwards(base, num_parts):
    for epsilon0 in (1e-9, 0.1, 0.9, 3.3, 12.0):
        sets = SplitAnswers(base_name=base, domain_size=3, max_answers=num_parts, epsilon0=epsilon0)
        slot = of_channel(sets.base.channel(), 0, 1)
        ratio = max(r0 for _, r0, _ in slot)
        exact, found = products(slot, num_parts), stated(sets.profile.blanket)
        for e in (1 + (ratio**num_parts - 1) * step / 7 for step in (0, 1, 4)):
            assert all(bound(found, e, n) >= bound(exact, e, n) for n in (1, 2))


def test_split_sets_that_hide_next_to_nothing_are_stated_to_nearest():
    """As before: neutral reports, of mass 1e-26, have no room for outward rounding."""
    for epsilon0 in (60.0, 120.0):
        sets = SplitAnswers(base_name="k-rr", domain_size=3, max_answers=2, epsilon0=epsilon0)
        exact = products(of_channel(sets.base.channel(), 0, 1), 2)
        found = stated(sets.profile.blanket)
        assert sum(Fraction(mass) for mass, _, _ in found) == pytest.approx(
            sum(mass for mass, _, _ in exact), rel=1e-10
        )
    assert SplitAnswers(
        base_name="subset-selection", domain_size=3, max_answers=3, epsilon0=100.0
    ).profile
    most = SplitAnswers(base_name="symmetric-unary", domain_size=40, max_answers=36, epsilon0=30.0)
    assert most.profile.blanket == ()


@pytest.mark.parametrize("chance", [1e-3, 0.3, 0.9, 1.0 - 2.0**-53])
def test_users_who_stay_away_err_upwards(chance):
    """Against the thinned law of the exact fractions, of one pair and of two."""
    for epsilon0 in (0.1, 1.0, 3.3):
        base = KRandomizedResponse(domain_size=4, epsilon0=epsilon0)
        sets = SplitAnswers(base_name="k-rr", domain_size=3, max_answers=2, epsilon0=epsilon0)
        for profile, channel, num_parts in (
            (base.profile, base.channel(), 1),
            (sets.profile, sets.base.channel(), 2),
        ):
            whole = products(of_channel(channel, 0, 1), num_parts)
            exact = [(Fraction(chance) * mass, r0, r1) for mass, r0, r1 in whole]
            exact.append((1 - Fraction(chance), 1, 1))
            found = stated(participating(profile, chance).blanket)
            assert shortfalls(exact, found, max(r0 for _, r0, _ in exact)) == 0


def test_asymmetric_atoms_are_thinned_to_nearest():
    atoms = (BlanketAtom(mass=0.5, ratio0=1.5, ratio1=1.0),)
    stays = LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, blanket=atoms)
    assert participating(stays, 0.5).blanket[0] == BlanketAtom(mass=0.25, ratio0=1.5, ratio1=1.0)


@pytest.mark.parametrize("epsilon0", [36.0, 45.0, 60.0])
def test_where_atoms_are_rounded_to_nearest_the_accountants_margin_makes_up(epsilon0):
    """Split sets of a large loss, whose neutral reports have too little mass to give."""
    sets = SplitAnswers(base_name="k-rr", domain_size=3, max_answers=2, epsilon0=epsilon0)
    exact = products(of_channel(sets.base.channel(), 0, 1), 2)
    for share, num_users in itertools.product((0.2, 0.6, 0.9), (1, 2, 3)):
        epsilon = share * epsilon0
        with mp.workdps(60):
            above = Fraction(int(mp.ceil(mp.exp(mpf(epsilon)) * 10**30)), 10**30)
        found = STATED_BLANKET.delta(sets.profile, num_users, epsilon).upper
        assert Fraction(found) >= bound(exact, above, num_users)


@pytest.mark.parametrize("family", ["any", "k-rr", "symmetric-unary", "optimized-unary"])
def test_families_known_by_their_loss_alone_err_upwards(family):
    """Masses and ratios against 60 digits: the conditions of docs/results/blankets.md."""
    size = 16 if family == "k-rr" else None
    for epsilon0 in (1e-9, 0.3, 1.0, 5.0, 30.0):
        profile = LocalProfile(epsilon0=epsilon0, family=RandomizerFamily(family), domain_size=size)
        with mp.workdps(60):
            p, root = mp.exp(epsilon0), mp.exp(mpf(epsilon0) / 2)
            noise, low = {
                "symmetric-unary": (1 / (1 + root), 1 / root),
                "optimized-unary": (1 / (1 + p), (1 + 1 / p) / 2),
            }.get(family, (None, None))
            if noise is None:
                own = 1 / (p + (15 if size else 1))
                exact = {"pair": own, "p": None, "one": 14 * own}
            else:
                exact = {
                    "pair": low * noise * (1 - noise),
                    "p": low * noise**2,
                    "one": low * (1 - noise) ** 2,
                }
            for atom in blanket_atoms(profile):
                mass, high, small = (
                    mpf(atom.mass),
                    mpf(max(atom.ratio0, atom.ratio1)),
                    mpf(min(atom.ratio0, atom.ratio1)),
                )
                if high != small:
                    assert small == 1
                    assert mass <= exact["pair"]
                    assert high * mass >= p * exact["pair"]
                elif high == 1:
                    assert mass <= exact["one"]
                else:
                    assert mass <= exact["p"]
                    assert high <= p
