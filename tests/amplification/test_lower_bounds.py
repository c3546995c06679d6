import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from oracles import enumeration, profiles
from oracles.binary import BinaryConvolution
from oracles.channels import inside, largest_ratio, staircase
from oracles.multiprecision import blanket_delta
from oracles.sums import DirectSum, k_rr_third_answer
from shuffledp.amplification import lower_bounds
from shuffledp.amplification.atom_law import atom_delta
from shuffledp.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.amplification.lower_bounds import (
    ATTACK_ACCURACY,
    attack_curves,
    dominated_law,
    unavoidable_delta,
    unavoidable_epsilon,
)
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import LowerEndWarning, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

SHARES = (0.0, 0.1, 0.4, 0.8)


def two_and_three(epsilon0, num_users, epsilon):
    """Exact delta of binary RR and of ternary RR with all others at the third answer."""
    return (
        BinaryConvolution(epsilon0, num_users).delta(epsilon),
        DirectSum(k_rr_third_answer(epsilon0, 3), num_users).delta(epsilon),
    )


def attack_atoms(channel, pair=(0, 1), held=2):
    """The pair's likelihood ratios to the row that all others draw from."""
    return tuple(
        BlanketAtom(mass=float(w), ratio0=float(r0 / w), ratio1=float(r1 / w))
        for r0, r1, w in zip(channel[pair[0]], channel[pair[1]], channel[held], strict=True)
    )


def attacked(channel):
    """A particular randomizer that states such data."""
    return LocalProfile(
        epsilon0=math.log(largest_ratio(np.array(channel, float))) * (1.0 + 1e-15),
        family=RandomizerFamily.OTHER,
        attack=attack_atoms(channel),
    )


def exact_divergences(channel, num_users, epsilon):
    """Of the data of the pair (0, 1), all others holding 2: forward and backward."""
    found = {}
    for first, second, pair, held in enumeration.neighbouring_laws(channel, num_users):
        if held == (2,) * (num_users - 1) and pair in ((0, 1), (1, 0)):
            found[pair] = enumeration.hockey_stick(first, second, math.exp(epsilon))
    return found[0, 1], found[1, 0]


# ------------------------------------------------------------------ the class


@pytest.mark.parametrize("num_users", [10, 100])
@pytest.mark.parametrize("epsilon0", [0.3, 0.6, 1.5, 4.0])
def test_the_class_is_attacked_by_the_better_of_two_and_three(num_users, epsilon0):
    for share in (0.0, 0.1, 0.4):
        binary, ternary = two_and_three(epsilon0, num_users, epsilon0 * share)
        found = unavoidable_delta(profiles.any_randomizer(epsilon0), num_users, epsilon0 * share)
        assert found <= max(binary, ternary) * (1.0 + 1e-11)
        assert found >= 0.8 * max(binary, ternary)  # data at the ends, or nearly the worst
        found = unavoidable_epsilon(
            profiles.any_randomizer(epsilon0), num_users, max(binary, ternary)
        )
        assert found <= epsilon0 * share * (1.0 + 1e-9) + 1e-12


def test_ternary_is_the_worse_above_ln_two():
    for epsilon0, worse in ((0.5, 0), (2.0, 1)):
        deltas = two_and_three(epsilon0, 300, 0.1)
        assert deltas[worse] == max(deltas)


def test_a_class_of_two_inputs_is_attacked_by_binary_only():
    two = LocalProfile(epsilon0=2.0, domain_size=2)
    three = LocalProfile(epsilon0=2.0, domain_size=3)
    binary, ternary = two_and_three(2.0, 100, 0.1)
    assert unavoidable_delta(two, 100, 0.1) <= binary * (1.0 + 1e-11) < ternary
    assert unavoidable_delta(three, 100, 0.1) == pytest.approx(ternary, rel=1e-6)


@pytest.mark.parametrize(
    "profile",
    [
        profiles.symmetric_unary(1.0),
        profiles.optimized_unary(1.0, 2),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, domain_size=2),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, domain_size=9),
    ],
)
def test_nothing_is_claimed_where_nothing_is_known(profile):
    assert unavoidable_delta(profile, 10, 0.1) is None
    assert unavoidable_epsilon(profile, 10, 0.1) is None
    assert attack_curves(profile, 10) == []


@pytest.mark.parametrize("epsilon0", [25.0, 32.0, 36.0, 40.0, 60.0, 100.0, 199.0])
@pytest.mark.parametrize("num_users", [1, 100, 10**6])
def test_large_epsilon0_is_attacked_too(epsilon0, num_users):
    # Nearly every report is the truth: the victim's is lost in the crowd with next to no chance.
    for profile in (profiles.any_randomizer(epsilon0), profiles.k_rr(epsilon0, 5)):
        epsilon = unavoidable_epsilon(profile, num_users, 1e-6)
        assert 0.0 <= epsilon <= epsilon0
        delta = unavoidable_delta(profile, num_users, 0.5 * epsilon0)
        assert 0.0 <= delta <= 1.0
        assert math.isfinite(delta)
        if num_users * math.exp(-0.5 * epsilon0) < 1e-4:
            assert epsilon > 0.9 * epsilon0
            assert delta > 0.9


# ------------------------------------------------------------------ curves against enumeration


@pytest.mark.parametrize("num_users", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.4, 1.5, 4.0])
@pytest.mark.parametrize("k", [3, 4])
def test_curves_of_k_rr_are_exact(k, epsilon0, num_users):
    channel = enumeration.randomized_response(k, math.exp(epsilon0))
    (curve,) = attack_curves(profiles.k_rr(epsilon0, k), num_users)
    assert curve.highest == epsilon0
    for share in SHARES:
        exact = exact_divergences(channel, num_users, epsilon0 * share)
        for one_way, wanted in zip((curve.forward, curve.backward), exact, strict=True):
            found = one_way(epsilon0 * share)
            assert found.lower <= wanted * (1.0 + 1e-11) + 1e-15
            assert found.lower == pytest.approx(wanted, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("num_users", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.4, 1.5, 4.0])
@pytest.mark.parametrize("optimized", [True, False])
def test_curves_of_unary_encodings_are_of_what_is_left_of_the_report(
    optimized, epsilon0, num_users
):
    # Some bits are thrown away, so each is below the divergence of the whole report.
    make = profiles.optimized_unary if optimized else profiles.symmetric_unary
    if optimized:
        channel = enumeration.optimized_unary(3, math.exp(epsilon0))
    else:
        channel = enumeration.symmetric_unary(3, math.exp(0.5 * epsilon0))
    curves = attack_curves(make(epsilon0, 3), num_users)
    assert len(curves) == 2
    for share in SHARES:
        exact = exact_divergences(channel, num_users, epsilon0 * share)
        best = 0.0
        for curve in curves:
            for one_way, wanted in zip((curve.forward, curve.backward), exact, strict=True):
                found = one_way(epsilon0 * share)
                assert found.lower <= wanted * (1.0 + 1e-11) + 1e-15
                best = max(best, found.lower)
        assert best >= 0.3 * max(exact) - 1e-6


@pytest.mark.parametrize("num_users", [1, 2, 5, 40])
@pytest.mark.parametrize("epsilon0", [0.4, 1.5, 4.0])
def test_curves_of_binary_rr_are_exact_in_each_order(epsilon0, num_users):
    (curve,) = attack_curves(profiles.k_rr(epsilon0, 2), num_users)
    truth = BinaryConvolution(epsilon0, num_users)
    for share in SHARES:
        deltas = truth.deltas(epsilon0 * share)
        ends = sorted((deltas[0], deltas[-1]))
        found = sorted(way(epsilon0 * share).lower for way in (curve.forward, curve.backward))
        assert found == pytest.approx(ends, rel=1e-7, abs=1e-14)
        assert all(one <= end * (1.0 + 1e-11) for one, end in zip(found, ends, strict=True))


@pytest.mark.parametrize("make", [staircase, inside])
@pytest.mark.parametrize("num_users", [1, 2, 3])
def test_curves_of_stated_data_are_exact_in_each_order(make, num_users):
    generator = Entropy.from_seed(2).generator()
    for _ in range(6):
        channel = make(3, 5.0, generator).tolist()
        profile = attacked(channel)
        (curve,) = attack_curves(profile, num_users)
        for share in SHARES:
            epsilon = profile.epsilon0 * share
            exact = exact_divergences(channel, num_users, epsilon)
            for one_way, wanted in zip((curve.forward, curve.backward), exact, strict=True):
                found = one_way(epsilon)
                assert found.lower <= wanted * (1.0 + 1e-11) + 1e-15
                assert found.lower >= wanted - 1e-7
            found = unavoidable_delta(profile, num_users, epsilon)
            assert found == pytest.approx(max(exact), abs=1e-7)


@pytest.mark.parametrize("num_users", [1, 3])
def test_a_channel_matrix_is_attacked_by_its_own_rows(num_users):
    channel = [
        [Fraction(4, 10), Fraction(3, 10), Fraction(3, 10)],
        [Fraction(2, 10), Fraction(5, 10), Fraction(3, 10)],
        [Fraction(3, 10), Fraction(2, 10), Fraction(5, 10)],
    ]
    profile = LocalProfile(
        epsilon0=math.log(2.5), family=RandomizerFamily.OTHER, domain_size=3,
        channel=lambda: channel,
    )  # fmt: skip
    floats = [[float(chance) for chance in row] for row in channel]
    truth = enumeration.ShuffledDivergence(floats, num_users)
    for epsilon in (0.0, 0.2, 0.7):
        exact = truth.delta(epsilon)
        assert 0.5 * exact <= unavoidable_delta(profile, num_users, epsilon) <= exact + 1e-15
    delta = truth.delta(0.2)
    found = unavoidable_epsilon(profile, num_users, delta)
    assert 0.0 < found <= 0.2 * (1.0 + 1e-9)


def test_the_class_has_both_curves():
    assert len(attack_curves(profiles.any_randomizer(1.0), 100)) == 2
    assert len(attack_curves(profiles.any_randomizer(1.0), 10**6)) == 2
    assert len(attack_curves(LocalProfile(epsilon0=1.0, domain_size=2), 10**6)) == 1
    for curve in attack_curves(profiles.any_randomizer(1.0), 10**6):
        mirrored = curve.reversed
        assert mirrored.forward(0.001) == curve.backward(0.001)


# ------------------------------------------------------------------ all others hold the same


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 5.0, 12.0])
def test_binary_rr_by_atoms_is_binary_rr_by_binomials(epsilon0):
    num_users = 10**6
    (curve,) = attack_curves(profiles.k_rr(epsilon0, 2), num_users)
    by_binomials = BinaryRandomizedResponse(epsilon0, num_users)
    scale = unavoidable_epsilon(profiles.k_rr(epsilon0, 2), num_users, 1e-6)
    for epsilon in (0.0, 0.3 * scale, scale, min(1.5 * scale, 0.99 * epsilon0)):
        found = sorted((curve.forward(epsilon), curve.backward(epsilon)), key=lambda x: x.lower)
        wanted = sorted(
            (
                Enclosure(by_binomials._lower(epsilon, ones), by_binomials._upper(epsilon, ones))
                for ones in (0.0, num_users - 1.0)
            ),
            key=lambda x: x.lower,
        )
        for one, other in zip(found, wanted, strict=True):
            assert one.lower <= other.upper * (1.0 + 1e-11)
            assert other.lower <= one.upper * (1.0 + 1e-11)
            assert one.lower == pytest.approx(other.lower, rel=1e-4, abs=1e-290)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-200])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 5.0, 30.0, 100.0])
def test_nothing_jumps_at_the_switch(epsilon0, delta):
    below, above = (
        unavoidable_epsilon(profiles.k_rr(epsilon0, 2), num_users, delta)
        for num_users in (10**6 - 1, 10**6)
    )
    assert above == pytest.approx(below, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("num_users", [10**6, 10**9, 10**12, 10**15])
def test_the_bracket_closes_on_binary_rr(num_users):
    # Its upper end is exact, too, and computed from binomials.
    profile = profiles.k_rr(1.0, 2)
    if num_users > 10**9:
        found = unavoidable_epsilon(profile, num_users, 1e-12)
        mu = math.expm1(1.0) * math.exp(-0.5) / math.sqrt(num_users)
        assert 0.0 <= found <= 8.0 * mu
        return
    bound = account_epsilon(profile, num_users=num_users, delta=1e-12)
    assert bound.lower == pytest.approx(bound.upper, rel=1e-3)


# ------------------------------------------------------------------ digits that are missing


def test_the_law_is_dominated_whatever_is_missing():
    # Masses and ratios off by their full accuracy in any direction; a bound from below it stays.
    generator = Entropy.from_seed(4).generator()
    careless = 0
    channel = inside(3, 4.0, generator)[:, :4]
    channel /= channel.sum(axis=1, keepdims=True)
    exact_atoms = attack_atoms(channel.tolist())
    total = sum(mpf(atom.mass) for atom in exact_atoms)
    truth = [(mpf(atom.mass) / total, mpf(atom.ratio0), mpf(atom.ratio1)) for atom in exact_atoms]
    for signs in itertools.product((-1, 1), repeat=3):
        for turned in range(len(truth) + 1):
            moved = [
                BlanketAtom(
                    **{
                        name: float(
                            number * (1 + (-s if i == turned else s) * mpf(0.99) * ATTACK_ACCURACY)
                        )
                        for name, number, s in zip(
                            ("mass", "ratio0", "ratio1"), atom, signs, strict=True
                        )
                    }
                )
                for i, atom in enumerate(truth)
            ]
            law = dominated_law(moved)
            assert math.fsum(law.masses) == pytest.approx(1.0, abs=1e-15)
            for num_users, epsilon in itertools.product((1, 3), (0.0, 0.5, 1.2)):
                exact = blanket_delta(truth, epsilon, num_users)
                assert atom_delta(law, num_users, epsilon).lower <= exact
                stated = [(mpf(a.mass), mpf(a.ratio0), mpf(a.ratio1)) for a in moved]
                careless += blanket_delta(stated, epsilon, num_users) > exact
    assert careless > 0  # the care is needed


def test_little_is_lost_to_missing_digits():
    channel = enumeration.randomized_response(3, 3.0)
    law = dominated_law(attack_atoms(channel))
    truth = DirectSum(k_rr_third_answer(math.log(3.0), 3), 50)
    for epsilon in (0.0, 0.2, 0.5):
        exact = truth.delta(epsilon)
        found = atom_delta(law, 50, epsilon).lower
        assert exact * (1.0 - 3e-7) <= found <= exact * (1.0 + 1e-12)


# ------------------------------------------------------------------ against the upper ends


@settings(max_examples=15)
@given(
    st.floats(1e-3, 12.0),
    st.one_of(st.integers(1, 3000), st.integers(10**5, 10**8)),
    st.floats(-30.0, -0.5),
    st.integers(0, 7),
)
def test_no_attack_is_above_the_bound(epsilon0, num_users, log_delta, kind):
    profile, delta = profiles.every_family(epsilon0)[kind], 10.0**log_delta
    upper = account_epsilon(profile, num_users=num_users, delta=delta, with_lower=False).upper
    found = unavoidable_epsilon(profile, num_users, delta)
    assert found is None or 0.0 <= found <= upper * (1.0 + 1e-8)
    epsilon = min(upper, 0.9 * epsilon0)
    upper = account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False).upper
    found = unavoidable_delta(profile, num_users, epsilon)
    assert found is None or 0.0 <= found <= upper * (1.0 + 1e-8)


@pytest.mark.parametrize("num_users", [1, 3, 50, 10**4])
def test_no_stated_data_are_above_the_class(num_users):
    generator = Entropy.from_seed(9).generator()
    for make in (staircase, inside):
        profile = attacked(make(3, 4.0, generator).tolist())
        for delta in (1e-2, 1e-6):
            found = unavoidable_epsilon(profile, num_users, delta)
            clones = account_epsilon(
                LocalProfile(epsilon0=profile.epsilon0),
                num_users=num_users,
                delta=delta,
                with_lower=False,
            )
            assert 0.0 <= found <= clones.upper * (1.0 + 1e-8)


# ------------------------------------------------------------------ round-off


def test_an_attack_lost_in_round_off_proves_nothing(monkeypatch):
    def lost(*_arguments, **_options):
        raise PrecisionError("round-off dominates")

    profile = attacked(enumeration.randomized_response(3, 3.0))
    monkeypatch.setattr(lower_bounds.atom_law, "atom_delta", lost)
    monkeypatch.setattr(lower_bounds.atom_law, "atom_epsilon_below", lost)
    with pytest.warns(LowerEndWarning, match="round-off dominates"):
        assert unavoidable_delta(profile, 10, 0.1) is None
    with pytest.warns(LowerEndWarning, match="round-off dominates"):
        assert unavoidable_epsilon(profile, 10, 1e-3) is None
    monkeypatch.setattr(lower_bounds.atom_law, "atom_delta", lambda *_, **__: Enclosure(0.25, 0.5))
    assert unavoidable_delta(profile, 10, 0.1) == 0.25


@pytest.mark.parametrize(
    "family", [{}, {"family": "k-rr", "domain_size": 2}, {"family": "k-rr", "domain_size": 3}]
)
def test_nothing_is_claimed_of_reports_that_may_stay_away(family):
    """The data of a family are of reports that are sent: with half of them less is attained."""
    epsilon0, num_users, epsilon = 1.0, 4, 0.1
    profile = LocalProfile(epsilon0=epsilon0, participation=0.5, **family)
    assert unavoidable_delta(profile, num_users, epsilon) is None
    assert account_delta(profile, num_users=num_users, epsilon=epsilon).lower is None
    half = ShuffledRelease(profile=profile, num_users=num_users, participation=0.9)
    assert half.delta(epsilon).lower is None
    assert (half * 2).delta(epsilon).lower is None
