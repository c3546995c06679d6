import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import enumeration, profiles
from shuffledp.amplification.atom_law import AtomLaw, atom_delta
from shuffledp.amplification.clones_and_families import blanket_atoms
from shuffledp.amplification.lower_bounds import attack_atoms
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.amplification.registry import account_delta
from shuffledp.amplification.sampling import (
    amplified_epsilon,
    inner_epsilon,
    participating,
    sampling_fraction,
    subsampled_curve,
)
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile, RandomizerFamily

CHANNELS = {
    "2-rr": (lambda p: enumeration.randomized_response(2, p), lambda e: profiles.k_rr(e, 2)),
    "3-rr": (lambda p: enumeration.randomized_response(3, p), lambda e: profiles.k_rr(e, 3)),
    "any": (
        lambda p: enumeration.randomized_response(2 if p <= 2.0 else 3, p),
        profiles.any_randomizer,
    ),
    "unary": (
        lambda p: enumeration.symmetric_unary(3, math.sqrt(p)),
        lambda e: profiles.symmetric_unary(e, 3),
    ),
}


def sampled_laws(channel, drawn, population):
    """Yield the exact laws of the histogram for every pair of neighbours."""
    values = range(len(channel))

    def law(dataset):
        total = 0.0
        for chosen in itertools.combinations(range(population), drawn):
            one = np.array([1.0])
            for count, user in enumerate(chosen):
                one = enumeration._add_report(one, channel[dataset[user]], count)
            total = total + one
        return total / math.comb(population, drawn)

    for others in itertools.combinations_with_replacement(values, population - 1):
        laws = [law((x, *others)) for x in values]
        yield from itertools.permutations(laws, 2)


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize(("drawn", "population"), [(1, 3), (2, 3), (2, 4), (3, 4)])
@pytest.mark.parametrize("epsilon0", [0.3, 1.5])
def test_between_explicit_data_and_the_bound_for_all_data(name, drawn, population, epsilon0):
    make_channel, make_profile = CHANNELS[name]
    pairs = list(sampled_laws(make_channel(math.exp(epsilon0)), drawn, population))
    release = ShuffledRelease(
        profile=make_profile(epsilon0), num_users=drawn, sampled_from=population
    )
    curve = release.curve(1e-3)
    for epsilon in (0.0, 0.01, 0.1, 0.3, 0.6, 1.0):
        exact = max(enumeration.hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs)
        assert exact <= curve.forward(epsilon).upper + 1e-15
        assert curve.backward(epsilon).upper == curve.forward(epsilon).upper
        for attack in release.attacks():
            assert attack.forward(epsilon).lower <= exact + 1e-15
            assert attack.backward(epsilon).lower <= exact + 1e-15
        bound = release.delta(epsilon)
        assert bound.lower - 1e-15 <= exact <= bound.upper + 1e-15


def test_explicit_data_have_exactly_the_divergence_that_is_claimed():
    channel = enumeration.randomized_response(3, 4.0)
    release = ShuffledRelease(profile=profiles.k_rr(math.log(4.0), 3), num_users=2, sampled_from=4)
    (attack,) = release.attacks()

    def law(victim):
        total = 0.0
        for chosen in itertools.combinations((victim, 2, 2, 2), 2):
            one = np.array([1.0])
            for count, value in enumerate(chosen):
                one = enumeration._add_report(one, channel[value], count)
            total = total + one
        return total / 6.0

    for epsilon in (0.0, 0.1, 0.2, 0.4):
        exact = enumeration.hockey_stick(law(0), law(1), math.exp(epsilon))
        assert attack.forward(epsilon).lower == pytest.approx(exact, rel=1e-4, abs=1e-12)


@given(epsilon=st.floats(1e-12, 3000.0), fraction=st.floats(1e-15, 1.0))
def test_both_maps_err_on_the_safe_side_by_little(epsilon, fraction):
    with mp.workdps(1500):
        exact = mp.log(1 + mpf(fraction) * mp.expm1(mpf(epsilon)))
        found = amplified_epsilon(epsilon, fraction)
        assert exact <= found <= exact * (1 + mpf(1e-13)) or found == epsilon
        exact = mp.log(1 + mp.expm1(mpf(epsilon)) / mpf(fraction))
        found = inner_epsilon(epsilon, fraction)
        assert exact * (1 - mpf(1e-13)) <= found <= exact or found == epsilon


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_the_ends_stay(epsilon):
    assert amplified_epsilon(epsilon, 0.3) == epsilon
    assert amplified_epsilon(1.25, 1.0) == inner_epsilon(1.25, 1.0) == 1.25
    assert inner_epsilon(0.0, 0.3) == 0.0


def test_a_tiny_fraction_does_not_overflow():
    assert inner_epsilon(500.0, 1e-200) == pytest.approx(500.0 + 200.0 * math.log(10.0))
    assert amplified_epsilon(1000.0, 1e-15) == pytest.approx(1000.0 - 15.0 * math.log(10.0))


@given(drawn=st.integers(1, 10**15), more=st.integers(0, 10**15), further=st.integers(1, 10**12))
def test_fractions_are_rounded_up_and_fall_with_the_population(drawn, more, further):
    fraction = sampling_fraction(drawn, drawn + more)
    assert Fraction(fraction) >= Fraction(drawn, drawn + more)
    assert (fraction == 1.0) or more > 0
    assert sampling_fraction(drawn, drawn + more + further) <= fraction


@pytest.mark.parametrize(("drawn", "population"), [(5, 4), (0, 4), (1, 0), (2.5, 4), (2, math.nan)])
def test_impossible_draws_are_refused(drawn, population):
    with pytest.raises(ParameterError):
        sampling_fraction(drawn, population)


def test_everybody_drawn_is_the_same_curve():
    curve = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 0.1), backward=lambda _: Enclosure(0.0, 0.2), highest=1.0
    )
    assert subsampled_curve(curve, 1.0) is curve
    half = subsampled_curve(curve, 0.5)
    assert half.forward(0.1).upper == pytest.approx(0.05)
    assert half.backward(0.1).upper == pytest.approx(0.1)
    assert half.highest == amplified_epsilon(1.0, 0.5)
    for fraction in (0.1, 0.3, 0.9):
        product = Fraction(0.1) * Fraction(fraction)
        assert subsampled_curve(curve, fraction).forward(0.1).upper > product


@pytest.mark.parametrize("inner", [0.0, 1e-300, 5e-324])
def test_only_nothing_stays_nothing(inner):
    curve = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, inner),
        backward=lambda _: Enclosure(0.0, inner),
        highest=math.inf,
    )
    outer = subsampled_curve(curve, 1e-9).forward(0.1)
    assert outer.lower == 0.0
    assert outer.upper == (1e-300 if inner else 0.0)


CHANNELS_OF_PARTICIPATION = {
    "2-rr": (lambda p: enumeration.randomized_response(2, p), lambda e: profiles.k_rr(e, 2)),
    "4-rr": (lambda p: enumeration.randomized_response(4, p), lambda e: profiles.k_rr(e, 4)),
    "any": (
        lambda p: enumeration.randomized_response(2 if p <= 2.0 else 3, p),
        profiles.any_randomizer,
    ),
    "symmetric": (
        lambda p: enumeration.symmetric_unary(3, math.sqrt(p)),
        lambda e: profiles.symmetric_unary(e, 3),
    ),
    "optimized": (
        lambda p: enumeration.optimized_unary(3, p),
        lambda e: profiles.optimized_unary(e, 3),
    ),
}


def thinned(channel, chance):
    return [[*(chance * entry for entry in row), 1.0 - chance] for row in channel]


@pytest.mark.parametrize("name", CHANNELS_OF_PARTICIPATION)
@pytest.mark.parametrize("num_users", [1, 2, 3])
@pytest.mark.parametrize("chance", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("epsilon0", [0.4, 2.0])
def test_between_explicit_data_and_the_bound_for_all_data_of_participation(
    name, num_users, chance, epsilon0
):
    make_channel, make_profile = CHANNELS_OF_PARTICIPATION[name]
    exact = enumeration.ShuffledDivergence(
        thinned(make_channel(math.exp(epsilon0)), chance), num_users
    )
    profile = participating(make_profile(epsilon0), chance)
    release = ShuffledRelease(
        profile=make_profile(epsilon0), num_users=num_users, participation=chance
    )
    law = AtomLaw.from_atoms(profile.blanket)
    for epsilon in (0.0, 0.05, 0.3, 1.0, 1.9):
        truth = exact.delta(epsilon)
        bound = account_delta(profile, num_users=num_users, epsilon=epsilon)
        assert truth <= bound.upper * (1 + 1e-12)
        assert release.delta(epsilon).upper == bound.upper
        assert truth <= atom_delta(law, num_users, epsilon).upper * (1 + 1e-12) + 1e-15
        for attack in release.attacks():
            assert attack.forward(epsilon).lower <= truth + 1e-15
            assert attack.backward(epsilon).lower <= truth + 1e-15


@pytest.mark.parametrize("name", CHANNELS_OF_PARTICIPATION)
@given(epsilon0=st.floats(1e-6, 30.0), chance=st.floats(1e-6, 1.0))
def test_atoms_are_laws(name, epsilon0, chance):
    profile = participating(CHANNELS_OF_PARTICIPATION[name][1](epsilon0), chance)
    assert profile.epsilon0 == epsilon0
    for atoms in (profile.blanket, profile.attack):
        mass = math.fsum(atom.mass for atom in atoms)
        assert mass <= 1.0 + 1e-12
        for ratio in ("ratio0", "ratio1"):
            mean = math.fsum(atom.mass * getattr(atom, ratio) for atom in atoms)
            assert mean == pytest.approx(1.0 if atoms else 0.0, rel=1e-12)
    if profile.attack:
        assert math.fsum(atom.mass for atom in profile.attack) == pytest.approx(1.0, rel=1e-12)


def test_everybody_taking_part_changes_nothing():
    profile = profiles.k_rr(1.0, 5)
    assert participating(profile, 1.0) is profile


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.0000001, math.nan, math.inf])
def test_impossible_chances_are_refused(chance):
    with pytest.raises(ParameterError, match="participation"):
        ShuffledRelease(epsilon0=1.0, num_users=10, participation=chance)


def test_fewer_participants_are_more_private():
    deltas = [
        account_delta(
            participating(LocalProfile(epsilon0=1.0), chance), num_users=1000, epsilon=0.05
        ).upper
        for chance in (0.01, 0.1, 0.5, 0.9)
    ]
    assert deltas == sorted(deltas)


def test_without_a_blanket_only_delta0_shrinks():
    profile = participating(
        LocalProfile(epsilon0=1.0, delta0=0.01, family=RandomizerFamily.OTHER), 0.5
    )
    assert profile.blanket == profile.attack == ()
    assert profile.delta0 == pytest.approx(0.005)
    assert profile.delta0 >= 0.005
    assert participating(LocalProfile(epsilon0=1e4), 0.5).blanket == ()
    assert participating(LocalProfile(epsilon0=0.0), 0.5).attack == ()


def test_a_channel_gains_an_output_for_no_report():
    channel = enumeration.randomized_response(2, Fraction(3))
    profile = LocalProfile(
        epsilon0=math.log(3.0), family=RandomizerFamily.OTHER, channel=lambda: channel
    )
    rows = participating(profile, 0.25).channel()
    assert rows == (
        (Fraction(3, 16), Fraction(1, 16), Fraction(3, 4)),
        (Fraction(1, 16), Fraction(3, 16), Fraction(3, 4)),
    )


@pytest.mark.parametrize("name", [name for name in CHANNELS_OF_PARTICIPATION if name != "any"])
@pytest.mark.parametrize("epsilon0", [0.4, 2.0])
def test_atoms_of_known_families_follow_from_their_channels(name, epsilon0):
    # Unary encodings are seen through the pair's bits only; their other bits are summed over.
    make_channel, make_profile = CHANNELS_OF_PARTICIPATION[name]
    channel = np.array(make_channel(math.exp(epsilon0)))
    third = len(channel) - 1
    for atoms, omega, is_attack in (
        (blanket_atoms(make_profile(epsilon0)), channel.min(axis=0), False),
        (attack_atoms(make_profile(epsilon0)), channel[third], True),
    ):
        merged = {}
        for m, r0, r1 in zip(omega, channel[0] / omega, channel[1] / omega, strict=True):
            key = (round(r0, 9), round(r1, 9))
            merged[key] = merged.get(key, 0.0) + m
        stated = {}
        for atom in atoms:
            key = (round(atom.ratio0, 9), round(atom.ratio1, 9))
            stated[key] = stated.get(key, 0.0) + atom.mass
        law = AtomLaw([*merged.values()], *zip(*merged, strict=True), accuracy=1e-8)
        own = AtomLaw([*stated.values()], *zip(*stated, strict=True), accuracy=1e-8)
        for epsilon in (0.0, 0.2):
            truth, claimed = atom_delta(law, 3, epsilon), atom_delta(own, 3, epsilon)
            if is_attack:  # reports may have been merged, which lowers
                assert claimed.lower <= truth.upper
            else:  # omega may have been taken smaller, which raises
                assert claimed.upper >= truth.lower
            if name.endswith("rr"):
                assert stated.keys() == merged.keys()
                assert claimed.upper == pytest.approx(truth.upper, rel=1e-6)


def test_stated_atoms_come_first():
    stated = participating(profiles.k_rr(1.0, 3), 0.5)
    assert blanket_atoms(stated) == stated.blanket
    assert attack_atoms(stated) == stated.attack


def test_any_randomizer_of_two_inputs_is_attacked_by_the_binary_one():
    atoms = attack_atoms(LocalProfile(epsilon0=2.0, domain_size=2))
    assert len(atoms) == 2
    assert len(attack_atoms(LocalProfile(epsilon0=2.0))) == 3


@pytest.mark.parametrize("size", [None, 2])
def test_no_data_are_known_for_a_unary_encoding_of_two(size):
    assert attack_atoms(profiles.symmetric_unary(1.0, size)) == ()


def test_a_thinned_channel_is_made_once_only():
    release = ShuffledRelease(
        profile=LocalProfile(
            epsilon0=1.0,
            family=RandomizerFamily.OTHER,
            channel=partial(enumeration.randomized_response, 2, math.e),
        ),
        num_users=10,
        participation=0.5,
    )
    assert release.curve(1e-6) is release.curve(1e-6)


def test_a_tiny_chance_of_a_report_that_hides_nothing():
    profile = participating(LocalProfile(epsilon0=600.0), 1e-250)
    assert profile.blanket == ()
    release = ShuffledRelease(epsilon0=150.0, num_users=10, participation=1e-250)
    assert (release * 2).epsilon(1e-251).upper <= 300.0
