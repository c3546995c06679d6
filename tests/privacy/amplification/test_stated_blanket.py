import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import enumeration, profiles
from oracles.channels import inside, largest_ratio, staircase
from oracles.multiprecision import blanket_delta
from oracles.stated_blankets import (
    ThreeWeights,
    atoms_of,
    epsilon0_of,
    linear_hashing,
    merged,
    stated,
    subset_selection,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.privacy.amplification import symmetric_blanket
from shuffledp.privacy.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.privacy.amplification.stated_blanket import (
    ACCURACY,
    candidate_laws,
    violated_hypothesis,
)
from shuffledp.privacy.amplification.symmetric_blanket import (
    SMALLEST_DELTA,
    SymmetricBlanket,
    SymmetricLaw,
)

NAME = "stated-blanket"
RATIOS = (Fraction(11, 10), Fraction(5, 2), Fraction(8), Fraction(40))
SHARES = (0.0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.999)

# What the enumerations in doubles may be off by.
RELATIVE, ABSOLUTE = 1e-12, 1e-15

CHANNELS = {
    "subsets of 2 of 3": lambda p: subset_selection(3, 2, p),
    "subsets of 2 of 4": lambda p: subset_selection(4, 2, p),
    "hashing of 3 to 3": lambda p: linear_hashing(3, 3, p),
    "hashing of 3 to 2": lambda p: linear_hashing(2, 3, p),
    "hashing of 4 to 2": lambda p: linear_hashing(2, 4, p),
}


def profile_of(channel, p):
    return stated(epsilon0_of(p), atoms_of(channel), len(channel))


def as_floats(channel):
    return [[float(chance) for chance in row] for row in channel]


def k_rr_atoms(p, k):
    mass = 1.0 / (p + k - 1.0)
    return [(mass, p, 1.0), (mass, 1.0, p), ((k - 2) * mass, 1.0, 1.0)]


def hashing_atoms(p, g, num_seeds=math.inf):
    """Two inputs whose digits differ, seeds with equal and unequal hashes counted."""
    lie, meet = 1.0 / (p + g - 1.0), 1.0 / g
    return [
        (lie * (1.0 - meet), p, 1.0),
        (lie * (1.0 - meet), 1.0, p),
        (lie * (meet - 1.0 / num_seeds), p, p),
        (lie * ((g - 2) * (1.0 - meet) + (g - 1) * (meet - 1.0 / num_seeds)), 1.0, 1.0),
        (1.0 / num_seeds, 1.0, 1.0),
    ]


def own_delta(profile, num_users, epsilon):
    return account_delta(profile, num_users=num_users, epsilon=epsilon, method=NAME).upper


# ------------------------------------------------------------------ enumeration of all data


@pytest.mark.parametrize("num_users", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CHANNELS)
def test_no_data_do_worse(name, num_users):
    for p in RATIOS:
        channel = CHANNELS[name](p)
        assert all(sum(row) == 1 for row in channel)
        profile = profile_of(channel, p)
        truth = enumeration.ShuffledDivergence(as_floats(channel), num_users)
        for share in SHARES:
            epsilon = profile.epsilon0 * share
            exact = truth.delta(epsilon)
            assert own_delta(profile, num_users, epsilon) >= exact * (1.0 - RELATIVE) - ABSOLUTE
        for delta in (1e-12, 1e-6, 1e-3, 0.03, 0.3):
            exact = truth.epsilon(delta, profile.epsilon0)
            bound = account_epsilon(profile, num_users=num_users, delta=delta)
            assert bound.upper >= exact * (1.0 - 1e-11) - 1e-12


@pytest.mark.parametrize("name", CHANNELS)
def test_no_data_do_worse_in_exact_fractions(name):
    p = Fraction(5, 2)
    channel = CHANNELS[name](p)
    profile = profile_of(channel, p)
    laws = list(enumeration.neighbouring_laws(channel, 2))
    for e in (Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(249, 100)):
        exact = max(enumeration.hockey_stick(first, second, e) for first, second, *_ in laws)
        # ln e rounded up asks for less, so it is no fair question: round down.
        epsilon = max(math.nextafter(math.log(e), 0.0), 0.0)
        assert Fraction(own_delta(profile, 2, epsilon)) >= exact


@pytest.mark.parametrize("name", CHANNELS)
def test_every_pair_of_inputs_has_the_same_blanket(name):
    # The profile states one pair; by symmetry the others are no worse.
    channel = CHANNELS[name](Fraction(3))
    first = sorted(merged(atoms_of(channel, (0, 1))))
    for pair in itertools.permutations(range(len(channel)), 2):
        assert sorted(merged(atoms_of(channel, pair))) == first


def test_closed_forms_of_hashing_are_what_its_channel_says():
    for g, k in ((2, 4), (3, 3), (3, 9)):
        exact = sorted(merged(atoms_of(linear_hashing(g, k, Fraction(3)))))
        closed = sorted(merged([a for a in hashing_atoms(3.0, g, g if k == g else g**2) if a[0]]))
        for found, wanted in zip(closed, exact, strict=True):
            assert [float(x) for x in found] == pytest.approx([float(x) for x in wanted])


# ------------------------------------------------------------------ (B) over the original atoms


@pytest.mark.parametrize("num_users", [1, 2, 4, 8])
@pytest.mark.parametrize("name", CHANNELS)
def test_two_weights_are_above_all_the_weights(name, num_users):
    for p in RATIOS:
        atoms = atoms_of(CHANNELS[name](p))
        profile = stated(epsilon0_of(p), atoms)
        for share in SHARES:
            epsilon = profile.epsilon0 * share
            exact = blanket_delta(merged(atoms), epsilon, num_users)
            for law in candidate_laws(profile, num_users):
                assert SymmetricBlanket(law, num_users).enclose(epsilon).upper >= exact
            if share <= 0.6:
                # At most a third of delta for handfuls of users, nothing for one.
                loss = 1e-8 if num_users == 1 else 0.33
                assert own_delta(profile, num_users, epsilon) <= exact * (1.0 + loss)


@pytest.mark.parametrize("num_users", [50, 200])
@pytest.mark.parametrize(("p", "g"), [(1.5, 5), (6.0, 2), (6.0, 7)])
def test_a_few_per_cent_of_epsilon_are_lost(p, g, num_users):
    (pair, *_), _, (heavy, *_), (light, *_), _ = atoms = hashing_atoms(p, g)
    truth = ThreeWeights(p, pair, heavy, light, num_users)
    profile = stated(math.log(p), atoms)
    for delta in (1e-8, 1e-4):
        exact = truth.epsilon(delta, profile.epsilon0)
        bound = account_epsilon(profile, num_users=num_users, delta=delta, method=NAME)
        assert exact * (1.0 - 1e-9) <= bound.upper <= exact * 1.11
        assert own_delta(profile, num_users, exact) >= truth.delta(exact) * (1.0 - 1e-9)


def test_the_oracle_of_three_weights_agrees_with_multiprecision():
    (pair, *_), _, (heavy, *_), (light, *_), _ = atoms = hashing_atoms(3.0, 4)
    truth = ThreeWeights(3.0, pair, heavy, light, 9)
    for epsilon in (0.0, 0.2, 0.7, 1.0):
        exact = blanket_delta(merged(atoms[:-1]), epsilon, 9)
        assert truth.delta(epsilon) == pytest.approx(float(exact), rel=1e-11)


def test_lowering_and_spreading_lose_little_in_a_large_crowd():
    # From above to where the mean weight alone would put epsilon: mu = sqrt(pair moments / n).
    p, g, num_users = 6.0, 7, 10**7
    atoms = hashing_atoms(p, g)
    pair = 2.0 * atoms[0][0]
    weights = SymmetricLaw(
        epsilon0=math.log(p), low=1.0, pair_mass=pair, rest_mass=0.0, base_mass=1.0 - pair,
        base_weight=(1.0 - 0.5 * pair * (p + 1.0)) / (1.0 - pair),
    )  # fmt: skip
    least = SymmetricBlanket(weights, num_users).enclose_epsilon(1e-8, math.log(p)).lower
    bound = account_epsilon(stated(math.log(p), atoms), num_users=num_users, delta=1e-8)
    assert least <= bound.upper <= least * (1.0 + 2e-5)


@settings(max_examples=60)
@given(
    st.floats(1.01, 30.0),
    st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0)), max_size=3),
    st.floats(0.05, 1.0),
    st.integers(1, 5),
    st.floats(0.0, 0.98),
)
def test_any_neutral_weights_at_all(p, neutrals, pair_mass, num_users, share):
    # Masses of mean one: as all ratios are at least 1, they add up to less than that.
    weighted = [(mass, 1.0 + place * (p - 1.0)) for mass, place in neutrals]
    mean = pair_mass * (p + 1.0) + sum(mass * weight for mass, weight in weighted)
    atoms = [(pair_mass / mean, p, 1.0), (pair_mass / mean, 1.0, p)]
    atoms += [(mass / mean, weight, weight) for mass, weight in weighted]
    epsilon0 = math.log(p)
    profile = stated(epsilon0, atoms)
    exact = blanket_delta(merged(atoms), epsilon0 * share, num_users)
    for law in candidate_laws(profile, num_users):
        found = SymmetricBlanket(law, num_users).enclose(epsilon0 * share)
        assert found.upper >= exact * (1 - mpf(10) ** -13)
    # and it is still below the clones, of which the exact sum is known
    a = 1 / (1 + mp.mpf(p))
    clones = blanket_delta([(a, mpf(p), mpf(1)), (a, mpf(1), mpf(p))], epsilon0 * share, num_users)
    assert exact <= clones * (1 + mpf(10) ** -12)


@pytest.mark.parametrize("level", [1.0, 0.6])
def test_pairs_of_less_than_the_full_ratio_are_widened(level):
    # h / l below e^epsilon0: the loss may be claimed too high, but a bound it stays.
    p = 4.0
    high = 1.0 + level * (p - 1.0)
    mass = 0.9 / (high + 1.0)
    atoms = [(mass, high, 1.0), (mass, 1.0, high), (0.1, 1.0, 1.0)]
    profile = stated(math.log(p), atoms)
    (law,) = candidate_laws(profile, 6)
    assert law.pair_weight == pytest.approx(0.5 * (high + 1.0))
    for share in SHARES[:-2]:
        exact = blanket_delta(merged(atoms), math.log(p) * share, 6)
        upper = own_delta(profile, 6, math.log(p) * share)
        assert upper >= exact
        if level == 1.0:
            assert upper == pytest.approx(float(exact), rel=1e-7, abs=1e-13)


# ------------------------------------------------------------------ rounding


def perturbed(atoms, signs):
    u = ACCURACY
    return [
        (mass * (1.0 + s * u), *(ratio * (1.0 + t * u) for ratio in ratios))
        for (mass, *ratios), s, t in zip(atoms, signs[::2], signs[1::2], strict=True)
    ]


def law_as_stated(profile):
    """Masses and weights taken at their word: what a method without any care would evaluate."""
    first, _, neutral = profile.blanket
    return SymmetricLaw(
        epsilon0=profile.epsilon0, low=first.ratio1, pair_mass=2.0 * first.mass,
        rest_mass=neutral.mass, base_mass=1.0 - 2.0 * first.mass - neutral.mass,
        rest_weight=neutral.ratio0,
    )  # fmt: skip


def test_ten_digits_are_enough():
    # k-RR, where nothing is lowered or spread: only the care for rounding is left above (B).
    p, num_users = 3.0, 8
    atoms = k_rr_atoms(p, 5)
    careless = 0
    for signs in itertools.product((-1, 1), repeat=4):
        # both atoms of the pair alike
        profile = stated(math.log(p), perturbed(atoms, (*signs[:2], *signs)))
        for share in (0.0, 0.3, 0.9):
            exact = blanket_delta(merged(atoms), math.log(p) * share, num_users)
            upper = own_delta(profile, num_users, math.log(p) * share)
            assert upper >= exact
            assert upper <= exact * (1.0 + 2e-7)
            naive = SymmetricBlanket(law_as_stated(profile), num_users)
            careless += naive.enclose(math.log(p) * share).upper < exact
    assert careless > 0  # the care is needed


def test_masses_that_differ_within_their_accuracy_are_a_pair():
    (mass, *pair), mirrored, neutral = k_rr_atoms(3.0, 5)
    uneven = stated(math.log(3.0), [(mass * (1.0 + 1e-10), *pair), mirrored, neutral])
    even = stated(math.log(3.0), k_rr_atoms(3.0, 5))
    assert own_delta(uneven, 50, 0.1) == pytest.approx(own_delta(even, 50, 0.1), rel=1e-8)


# ------------------------------------------------------------------ what must not matter


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_order_and_splitting_of_atoms_change_nothing(epsilon):
    atoms = hashing_atoms(3.0, 4, 64)
    plain = own_delta(stated(math.log(3.0), atoms), 40, epsilon)
    for order in itertools.permutations(atoms):
        assert own_delta(stated(math.log(3.0), order), 40, epsilon) == plain
    halves = [(0.5 * mass, *ratios) for mass, *ratios in atoms for _ in range(2)]
    assert own_delta(stated(math.log(3.0), halves), 40, epsilon) == plain
    thirds = [(mass / 3.0, *ratios) for mass, *ratios in atoms for _ in range(3)]
    assert own_delta(stated(math.log(3.0), thirds), 40, epsilon) == pytest.approx(plain, rel=1e-9)
    empty = [*atoms, (0.0, 2.0, 2.0), (0.0, 3.0, 1.0)]
    assert own_delta(stated(math.log(3.0), empty), 40, epsilon) == plain


def test_neutral_weights_that_agree_to_ten_digits_are_one():
    # A rounding apart; lowering the larger costs nothing, a second candidate would cost time.
    atoms = k_rr_atoms(3.0, 6)
    mass = atoms[2][0] / 2.0
    apart = [*atoms[:2], (mass, 1.0, 1.0), (mass, 1.0 + 5e-11, 1.0 + 5e-11)]
    (law,) = candidate_laws(stated(math.log(3.0), apart), 10)
    assert law.rest_weight == 1.0


@pytest.mark.parametrize(("p", "k"), [(math.e, 4), (math.exp(3.0), 16), (1.05, 3), (1e6, 50)])
@pytest.mark.parametrize("num_users", [10, 1000, 10**5, 10**9])
def test_k_rr_by_its_atoms_is_k_rr(p, k, num_users):
    epsilon0 = math.log(p)
    by_atoms, by_name = stated(epsilon0, k_rr_atoms(p, k)), profiles.k_rr(epsilon0, k)
    for delta in (1e-9, 1e-3):
        found = account_epsilon(by_atoms, num_users=num_users, delta=delta)
        wanted = account_epsilon(by_name, num_users=num_users, delta=delta)
        assert found.upper == pytest.approx(wanted.upper, rel=1e-6)
        assert found.lower is None
    epsilon = wanted.upper
    wanted = account_delta(by_name, num_users=num_users, epsilon=epsilon).upper
    # delta moves ten times as fast as epsilon does
    found = account_delta(by_atoms, num_users=num_users, epsilon=epsilon).upper
    assert found == pytest.approx(wanted, rel=1e-5)


@settings(max_examples=40)
@given(
    st.floats(1.001, 200.0),
    st.integers(2, 12),
    st.integers(1, 3000),
    st.floats(-10.0, -0.5),
    st.floats(1.0, 4.0),
)
def test_monotone_and_never_above_clones(p, g, num_users, log_delta, factor):
    profile, delta = stated(math.log(p), hashing_atoms(p, g)), 10.0**log_delta

    def epsilon(users, allowed, method="best"):
        return account_epsilon(
            profile, num_users=users, delta=allowed, method=method, with_lower=False
        ).upper

    bound = epsilon(num_users, delta)
    assert bound <= epsilon(num_users, delta, "clones")
    # A switch of candidates or a coarser grid may move it by the declared widths.
    assert epsilon(int(num_users * factor), delta) <= bound * (1.0 + 8e-6)
    assert epsilon(num_users, min(delta * factor, 0.9)) <= bound * (1.0 + 8e-6)
    at_bound = account_delta(profile, num_users=num_users, epsilon=bound).upper
    assert at_bound <= delta * (1.0 + 8e-5)
    beyond = account_delta(profile, num_users=num_users, epsilon=min(bound * factor, math.log(p)))
    assert beyond.upper <= at_bound * (1.0 + 8e-5)


# ------------------------------------------------------------------ edges


@pytest.mark.parametrize(
    ("epsilon0", "num_users"),
    [
        *itertools.product((1e-13, 1e-9, 1e-3, 1.0, 12.0, 40.0, 120.0, 199.0), (1, 2, 5000)),
        *itertools.product((1e-9, 5.0, 40.0), (10**12,)),
    ],
)
def test_edges(epsilon0, num_users):
    # gamma = 1 - O(epsilon0) at the first, next to no blanket at the last
    p = math.exp(epsilon0)
    profile = stated(epsilon0, hashing_atoms(p, 5))
    assert violated_hypothesis(profile, num_users) is None
    for delta in (1e-300, 1e-10, 0.3) if num_users < 10**12 else (1e-10,):
        bound = account_epsilon(profile, num_users=num_users, delta=delta)
        clones = account_epsilon(
            LocalProfile(epsilon0=epsilon0), num_users=num_users, delta=delta, with_lower=False
        )
        assert 0.0 <= bound.upper <= clones.upper
    for share in (0.0, 0.5, 1.0 - 1e-9):
        bound = account_delta(profile, num_users=num_users, epsilon=epsilon0 * share)
        assert SMALLEST_DELTA <= bound.upper <= 1.0
        # One user alone: (p - e) times the mass of a report that tells.
        if num_users == 1:
            with mp.workdps(60):
                exact = (
                    profile.blanket[0].mass
                    * mp.exp(mpf(epsilon0))
                    * -mp.expm1(mpf(epsilon0 * share) - mpf(epsilon0))
                )
            assert exact * (1.0 - 1e-9) <= bound.upper <= exact * (1.0 + 1e-8) + SMALLEST_DELTA


@pytest.mark.parametrize("epsilon0", [5e-324, 1e-300, 1e-17])
def test_where_the_ratios_round_to_one_no_pair_is_left(epsilon0):
    profile = stated(epsilon0, hashing_atoms(math.exp(epsilon0), 5))
    assert "a stated pair" in violated_hypothesis(profile, 10)
    bound = account_delta(profile, num_users=10, epsilon=0.0)
    assert bound.method in ("clones", "local")


def test_extreme_epsilon0_is_no_crash():
    for epsilon0 in (0.0, 201.0, 800.0, 1e308):
        profile = stated(epsilon0, [(0.5, 1.0, 1.0), (0.5, 1.0, 1.0)])
        assert account_epsilon(profile, num_users=10, delta=1e-6).upper <= epsilon0
        ratio = math.exp(min(epsilon0, 700.0))
        one = stated(epsilon0, k_rr_atoms(ratio, 3))
        assert account_epsilon(one, num_users=10, delta=1e-6).upper <= epsilon0


def test_few_candidates_however_many_weights():
    weights = [1.0 + i / 100.0 for i in range(200)]
    masses = [0.5 / 200 / weight for weight in weights]
    pair = 0.5 / 4.0
    atoms = [(pair, 3.0, 1.0), (pair, 1.0, 3.0)]
    atoms += [(mass, weight, weight) for mass, weight in zip(masses, weights, strict=True)]
    profile = stated(math.log(3.0), atoms)
    for num_users in (1, 30, 1000, 10**6):
        laws = candidate_laws(profile, num_users)
        assert 1 <= len(laws) <= 2
    assert laws[0].rest_weight == weights[-1]  # in a crowd, spreading is all but free
    assert candidate_laws(profile, 1)[0].rest_weight < weights[20]  # alone, it is not


def test_one_candidate_lost_in_round_off_leaves_the_other(monkeypatch):
    profile = stated(math.log(3.0), hashing_atoms(3.0, 4))
    assert len(candidate_laws(profile, 30)) == 2
    kept = min(SymmetricBlanket(law, 30).enclose(0.2).upper for law in candidate_laws(profile, 30))
    assert own_delta(profile, 30, 0.2) == kept

    lost = set()

    class Fragile:
        def __init__(self, law, num_users):
            self.weight = law.rest_weight

        def enclose(self, _epsilon):
            if self.weight in lost:
                raise PrecisionError("round-off dominates")
            return Enclosure(0.0, 0.25)

    monkeypatch.setattr(symmetric_blanket, "SymmetricBlanket", Fragile)
    for weight in (1.0, 3.0):
        lost = {weight}
        assert own_delta(profile, 30, 0.2) == 0.25
    lost = {1.0, 3.0}
    with pytest.raises(PrecisionError, match="round-off"):
        own_delta(profile, 30, 0.2)
    # "best" still has the others to offer
    assert account_delta(profile, num_users=30, epsilon=0.2).method in ("clones", "local")


# ------------------------------------------------------------------ refused

PAIR = [(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)]


def refused(atoms, match):
    epsilon0 = math.log(3.0)
    profile = stated(epsilon0, atoms)
    for ask in (
        lambda: account_delta(profile, num_users=10, epsilon=0.1, method=NAME),
        lambda: account_epsilon(profile, num_users=10, delta=0.1, method=NAME),
    ):
        with pytest.raises(OutOfRegimeError, match=match):
            ask()
    # and it is never used on the quiet
    bound = account_delta(profile, num_users=10, epsilon=0.1)
    clones = account_delta(LocalProfile(epsilon0=epsilon0), num_users=10, epsilon=0.1)
    assert bound.method == "clones"
    assert bound.upper == clones.upper
    assert bound.lower is None


@pytest.mark.parametrize("mass", [-1e-3, math.nan, math.inf, -math.inf, 1.5])
def test_masses_are_probabilities(mass):
    refused([*PAIR, (mass, 1.0, 1.0)], r"stated masses in \[0, 1\]")


@pytest.mark.parametrize("ratio", [0.0, -1.0, 0.999, 3.001, 1e300, math.nan, math.inf, -math.inf])
def test_ratios_lie_between_one_and_the_local_one(ratio):
    refused([*PAIR, (0.1, ratio, ratio)], "stated likelihood ratios in")
    refused([*PAIR, (0.1, 1.0, ratio)], "stated likelihood ratios in")


def test_masses_add_up_to_at_most_one():
    refused([*PAIR, (0.4, 1.0, 1.0), (0.2, 1.0, 1.0)], "add up to at most 1")


@pytest.mark.parametrize("scale", [0.5, 0.999, 1.001, 1.0 + 5e-9])
def test_means_are_one(scale):
    atoms = [(mass * scale, *ratios) for mass, *ratios in k_rr_atoms(3.0, 4)]
    refused(atoms, "mean 1")


def test_the_mean_of_each_ratio_counts():
    refused([(0.3, 3.0, 1.0), (0.25, 1.0, 3.0)], "mean 1")


@pytest.mark.parametrize(
    ("pair", "rest", "match"),
    [
        ([], (1.0, 1.0), "a stated pair"),
        ([(0.0, 3.0, 1.0), (0.0, 1.0, 3.0)], (1.0, 1.0), "a stated pair"),
        ([(0.2, 2.0, 1.0), (0.1, 1.0, 3.0)], (1.0, 1.0), "symmetric pair .*masses are 0.2 and"),
        ([(0.1, 3.0, 2.0), (0.1, 1.0, 2.0)], (1.0, 1.0), "one symmetric pair"),
        (
            [(0.1, 3.0, 1.0), (0.1, 1.0, 3.0), (0.1, 2.0, 1.0), (0.1, 1.0, 2.0)],
            (1.0, 1.0),
            "one symmetric pair",
        ),
        # A ratio a rounding apart is not neutral: at a small epsilon0 it could be the pair.
        ([(0.1, 3.0, 1.0), (0.1, 1.0, 3.0)], (1.0, 1.0 + 2.0**-52), "last digit"),
    ],
)
def test_asymmetric_pairs_are_left_to_the_clones(pair, rest, match):
    left = 1.0 - sum(mass * ratio0 for mass, ratio0, _ in pair)
    refused([*pair, (left, *rest)], match)


def test_mixed_channels_are_refused_or_bounded():
    # Means of one make vertices of the class symmetric, but not what is mixed from two of them.
    generator = Entropy.from_seed(11).generator()
    num_refused = 0
    for make in (staircase, inside):
        for _ in range(20):
            channel = make(3, 4.0, generator).tolist()
            profile = stated(math.log(largest_ratio(np.array(channel))), atoms_of(channel))
            num_refused += violated_hypothesis(profile, 3) is not None
            upper = account_delta(profile, num_users=3, epsilon=0.4).upper
            for first, second, pair, _ in enumeration.neighbouring_laws(channel, 3):
                if pair in ((0, 1), (1, 0)):
                    exact = enumeration.hockey_stick(first, second, math.exp(0.4))
                    assert upper >= exact * (1.0 - RELATIVE)
    assert 10 <= num_refused <= 30  # both kinds were tried


@pytest.mark.parametrize(
    "profile",
    [
        profiles.any_randomizer(1.0),
        profiles.k_rr(1.0, 4),
        profiles.symmetric_unary(1.0, 4),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER),
        LocalProfile(
            epsilon0=1.0,
            blanket=(BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),),
        ),
    ],
)
def test_only_for_randomizers_that_state_a_blanket(profile):
    with pytest.raises(OutOfRegimeError, match="states its blanket"):
        account_epsilon(profile, num_users=10, delta=0.1, method=NAME)


# ------------------------------------------------------------------ what a bound says


def test_what_it_rests_on_is_said():
    profile = stated(math.log(3.0), hashing_atoms(3.0, 4), 9)
    bound = account_epsilon(profile, num_users=1000, delta=1e-6)
    assert bound.method == NAME
    assert bound.lower is None
    assert any("ten digits" in sentence for sentence in bound.assumptions)
    assert METHODS[NAME].source == bound.source


@pytest.mark.parametrize("size", [None, 2, 3, 50])
@pytest.mark.parametrize("blanket", [True, False])
def test_no_data_are_known_that_are_as_bad(size, blanket):
    atoms = hashing_atoms(3.0, 4) if blanket else []
    profile = stated(math.log(3.0), atoms, size)
    assert account_epsilon(profile, num_users=100, delta=1e-6).lower is None
    assert account_delta(profile, num_users=100, epsilon=0.1).lower is None
    # A particular randomizer need not reach the epsilon0 that bounds it.
    at_zero = account_epsilon(profile, num_users=100, delta=0.0)
    assert (at_zero.lower, at_zero.upper) == (None, profile.epsilon0)
