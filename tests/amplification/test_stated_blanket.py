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
from oracles.family_laws import atom_epsilon
from oracles.multiprecision import blanket_delta
from oracles.stated_blankets import (
    ThreeWeights,
    atoms_of,
    epsilon0_of,
    hashing_atoms,
    k_rr_atoms,
    linear_hashing,
    merged,
    stated,
    subset_selection,
)
from shuffledp.amplification.atom_law import AtomLaw, atom_delta
from shuffledp.amplification.clones_and_families import symmetric_law
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.amplification.stated_blanket import ACCURACY, dominating_laws, violated_hypothesis
from shuffledp.core.entropy import Entropy

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
def test_laws_dominate_the_original_atoms(name, num_users):
    for p in RATIOS:
        atoms = atoms_of(CHANNELS[name](p))
        profile = stated(epsilon0_of(p), atoms)
        (law,) = dominating_laws(profile)  # the pair is symmetric: one order is both
        for share in SHARES:
            epsilon = profile.epsilon0 * share
            exact = blanket_delta(merged(atoms), epsilon, num_users)
            assert atom_delta(law, num_users, epsilon).upper >= exact
            if share <= 0.6:
                # A few parts in 1e9 of epsilon are what the missing digits cost.
                assert own_delta(profile, num_users, epsilon) <= exact * (1.0 + 1e-7)


@pytest.mark.parametrize("num_users", [60])
@pytest.mark.parametrize(("p", "g"), [(1.5, 5), (6.0, 2), (6.0, 7)])
def test_a_part_in_a_million_of_epsilon_is_lost(p, g, num_users):
    (pair, *_), _, (heavy, *_), (light, *_), _ = atoms = hashing_atoms(p, g)
    truth = ThreeWeights(p, pair, heavy, light, num_users)
    profile = stated(math.log(p), atoms)
    for delta in (1e-8, 1e-4):
        exact = truth.epsilon(delta, profile.epsilon0)
        bound = account_epsilon(profile, num_users=num_users, delta=delta, method=NAME)
        assert exact * (1.0 - 1e-9) <= bound.upper <= exact * (1.0 + 1e-6)
        assert own_delta(profile, num_users, exact) >= truth.delta(exact) * (1.0 - 1e-9)


def test_the_oracle_of_three_weights_agrees_with_multiprecision():
    (pair, *_), _, (heavy, *_), (light, *_), _ = atoms = hashing_atoms(3.0, 4)
    truth = ThreeWeights(3.0, pair, heavy, light, 9)
    for epsilon in (0.0, 0.2, 0.7, 1.0):
        exact = blanket_delta(merged(atoms[:-1]), epsilon, 9)
        assert truth.delta(epsilon) == pytest.approx(float(exact), rel=1e-11)


def test_several_weights_hardly_matter_in_a_large_crowd():
    # From above to where the mean weight alone would put epsilon: mu = sqrt(pair moments / n).
    p, g, num_users = 6.0, 7, 10**7
    atoms = hashing_atoms(p, g)
    pair = 2.0 * atoms[0][0]
    weight = (1.0 - 0.5 * pair * (p + 1.0)) / (1.0 - pair)
    law = symmetric_law(math.log(p), low=1.0, pair_mass=pair, others=[(1.0 - pair, weight)])
    least = atom_epsilon(law, num_users, 1e-8, math.log(p)).lower
    bound = account_epsilon(stated(math.log(p), atoms), num_users=num_users, delta=1e-8)
    assert least <= bound.upper <= least * (1.0 + 2e-6)


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
    exact = blanket_delta(merged(atoms), epsilon0 * share, num_users)
    (law,) = dominating_laws(stated(epsilon0, atoms))
    assert atom_delta(law, num_users, epsilon0 * share).upper >= exact * (1 - mpf(10) ** -13)
    # and it is still below the clones, of which the exact sum is known
    a = 1 / (1 + mp.mpf(p))
    clones = blanket_delta([(a, mpf(p), mpf(1)), (a, mpf(1), mpf(p))], epsilon0 * share, num_users)
    assert exact <= clones * (1 + mpf(10) ** -12)


@settings(max_examples=40)
@given(
    st.floats(1.05, 20.0),
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
        min_size=2,
        max_size=3,
    ),
    st.integers(1, 4),
    st.floats(0.0, 0.98),
)
def test_any_atoms_at_all_in_both_orders(p, drawn, num_users, share):
    atoms = of_mean_one([(m, 1.0 + x * (p - 1.0), 1.0 + y * (p - 1.0)) for m, x, y in drawn], p)
    epsilon0 = math.nextafter(math.log(p), math.inf)
    profile = stated(epsilon0, atoms)
    assert violated_hypothesis(profile) is None
    upper = own_delta(profile, num_users, epsilon0 * share)
    worst = max(
        blanket_delta(merged(order), epsilon0 * share, num_users)
        for order in (atoms, [(mass, second, first) for mass, first, second in atoms])
    )
    assert upper >= worst * (1 - mpf(10) ** -13)
    # a ratio is raised by 5e-10 of itself, and p of them are the most there is
    assert upper <= worst * (1 + mpf(10) ** -7) + mpf(10) ** -8


def of_mean_one(atoms, p):
    """The atoms, scaled, with one more that makes both ratios' means equal, and telling."""
    atoms = [*atoms, (0.3, p, 1.0), (0.3, 1.0, p)]
    means = [sum(mass * atom[i] for mass, *atom in atoms) for i in (0, 1)]
    short = 0 if means[0] < means[1] else 1
    balance = [1.0, 1.0]
    balance[short] = p
    atoms.append((abs(means[0] - means[1]) / (p - 1.0), *balance))
    mean = sum(mass * first for mass, first, _ in atoms)
    return [(mass / mean, *ratios) for mass, *ratios in atoms]


@pytest.mark.parametrize("level", [1.0, 0.6])
def test_pairs_of_less_than_the_full_ratio_stay_as_narrow(level):
    # h / l below e^epsilon0: the loss may be claimed too high
    p = 4.0
    high = 1.0 + level * (p - 1.0)
    mass = 0.9 / (high + 1.0)
    atoms = [(mass, high, 1.0), (mass, 1.0, high), (0.1, 1.0, 1.0)]
    profile = stated(math.log(p), atoms)
    (law,) = dominating_laws(profile)
    weights = 0.5 * (law.ratios0 + law.ratios1)
    assert weights.max() == pytest.approx(0.5 * (high + 1.0))
    assert (law.ratios0 / np.maximum(law.ratios1, 1e-9)).max() == pytest.approx(high)
    for share in SHARES[:-2]:
        exact = blanket_delta(merged(atoms), math.log(p) * share, 6)
        upper = own_delta(profile, 6, math.log(p) * share)
        assert upper >= exact
        # where no loss is left, what is made up for digits stays: 4e-10 of the ratio
        assert upper == pytest.approx(float(exact), rel=1e-7, abs=1e-13 if level == 1.0 else 1e-9)


def test_the_wider_one_of_nearly_mirrored_atoms_counts():
    # Both means are 1 to 1e-9; each stated digit may be off by 1e-10.
    wider = 3.0 * (1.0 + 0.9e-9)
    atoms = [(0.2, 3.0, 1.0), (0.2, 1.0, wider), (0.2, 1.0, 1.0)]
    profile = stated(1.5, atoms)
    assert violated_hypothesis(profile) is None
    (law,) = dominating_laws(profile)
    assert law.ratios0.max() >= wider * (1.0 + 2e-10) * law.ratios1[law.ratios0.argmax()]


def test_many_weights_cost_nothing():
    # Two hundred neutral weights: no worse than their mean weight allows, and a bound.
    weights = [1.0 + i / 100.0 for i in range(200)]
    atoms = [(0.125, 3.0, 1.0), (0.125, 1.0, 3.0)]
    atoms += [(0.5 / 200 / weight, weight, weight) for weight in weights]
    profile = stated(math.log(3.0), atoms)
    alone = own_delta(profile, 1, 0.3)
    assert alone == pytest.approx(0.125 * (3.0 - math.exp(0.3)), rel=1e-8)
    mean_weight = 0.5 / sum(mass for mass, *_ in atoms[2:])
    even = [*atoms[:2], (0.5 / mean_weight, mean_weight, mean_weight)]
    for num_users in (1000, 10**6):
        found = account_epsilon(profile, num_users=num_users, delta=1e-6, method=NAME).upper
        wanted = account_epsilon(
            stated(math.log(3.0), even), num_users=num_users, delta=1e-6, method=NAME
        ).upper
        assert found == pytest.approx(wanted, rel=1e-3)


# ------------------------------------------------------------------ channels, in both orders


@pytest.mark.parametrize(("make", "least_asymmetric"), [(staircase, 0), (inside, 3)])
def test_any_channel_is_bounded_in_both_orders(make, least_asymmetric):
    generator = Entropy.from_seed(11).generator()
    num_asymmetric = 0
    for _ in range(12):
        channel = make(3, 4.0, generator).tolist()
        profile = stated(math.log(largest_ratio(np.array(channel))), atoms_of(channel))
        if "apart" in (violated_hypothesis(profile) or ""):
            continue  # a vertex that treats this pair alike
        num_asymmetric += len(dominating_laws(profile)) == 2
        truth = dict.fromkeys((0.0, 0.4, 0.9 * profile.epsilon0), 0.0)
        for first, second, pair, _ in enumeration.neighbouring_laws(channel, 3):
            if pair in ((0, 1), (1, 0)):
                for epsilon, found in truth.items():
                    exact = enumeration.hockey_stick(first, second, math.exp(epsilon))
                    truth[epsilon] = max(found, exact)
        for epsilon, exact in truth.items():
            upper = own_delta(profile, 3, epsilon)
            assert upper >= exact * (1.0 - RELATIVE) - ABSOLUTE
            assert upper <= 1.0
    assert num_asymmetric >= least_asymmetric  # both orders were needed


# ------------------------------------------------------------------ rounding


def perturbed(atoms, signs):
    u = 0.999 * ACCURACY  # at the limit itself, the last digit of a logarithm would decide
    return [
        (mass * (1.0 + s * u), *(ratio * (1.0 + t * u) for ratio in ratios))
        for (mass, *ratios), s, t in zip(atoms, signs[::2], signs[1::2], strict=True)
    ]


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
            naive = AtomLaw.from_atoms(profile.blanket)  # taken at their word
            careless += atom_delta(naive, num_users, math.log(p) * share).upper < exact
    assert careless > 0  # the care is needed


def test_ten_digits_are_enough_on_the_general_path():
    # Every atom of its own, its mass and both its ratios off in any direction.
    p, num_users = 4.0, 3
    atoms = of_mean_one([(0.5, 2.5, 1.25), (0.25, 1.5, 3.5)], p)
    careless = 0
    for signs in itertools.product((-1, 1), repeat=3):
        for turned in range(len(atoms)):
            moved = [
                tuple(
                    number * (1.0 + sign * (-1 if i == turned else 1) * 0.999 * ACCURACY)
                    for number, sign in zip(atom, signs, strict=True)
                )
                for i, atom in enumerate(atoms)
            ]
            moved = [(m, *(min(max(r, 1.0), p) for r in ratios)) for m, *ratios in moved]
            profile = stated(math.nextafter(math.log(p), math.inf), moved)
            assert len(dominating_laws(profile)) == 2
            naive = AtomLaw.from_atoms(profile.blanket)
            for share in (0.0, 0.4, 0.95):
                epsilon = profile.epsilon0 * share
                exact = blanket_delta(merged(atoms), epsilon, num_users)
                assert own_delta(profile, num_users, epsilon) >= exact
                careless += atom_delta(naive, num_users, epsilon).upper < exact
    assert careless > 0  # the care is needed


def test_masses_that_differ_within_their_accuracy_are_a_pair():
    (mass, *pair), mirrored, neutral = k_rr_atoms(3.0, 5)
    uneven = stated(math.log(3.0), [(mass * (1.0 + 1e-10), *pair), mirrored, neutral])
    even = stated(math.log(3.0), k_rr_atoms(3.0, 5))
    assert own_delta(uneven, 50, 0.1) == pytest.approx(own_delta(even, 50, 0.1), rel=1e-8)


# ------------------------------------------------------------------ what must not matter


@pytest.mark.parametrize(
    "epsilon",
    [pytest.param(0.0, marks=pytest.mark.slow), 0.1, pytest.param(0.9, marks=pytest.mark.slow)],
)
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


@settings(max_examples=6)
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
