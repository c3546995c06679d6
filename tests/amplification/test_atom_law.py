import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import enumeration
from oracles.channels import inside, staircase
from oracles.family_laws import atom_epsilon
from oracles.multiprecision import blanket_delta
from oracles.stated_blankets import atoms_of
from shuffledp.amplification.atom_law import AtomLaw, atom_delta, atom_delta_above
from shuffledp.amplification.clones_and_families import family_law
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics import positive_part_kernels
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.positive_part import SMALLEST_UPPER
from shuffledp.core.profile import BlanketAtom, LocalProfile

SHARES = (0.0, 0.05, 0.3, 0.8, 0.999)
LN3 = math.log(3.0)
SLACK = mpf(10) ** -40  # round-off of the oracles


def reversed_law(law):
    """The law of the same pair in the other order."""
    return AtomLaw(law.masses, law.ratios1, law.ratios0, accuracy=law.accuracy)


def law_of(atoms, **options):
    return AtomLaw(*zip(*atoms, strict=True), **options)


def exact_atoms(atoms):
    return [tuple(mpf(number) for number in atom) for atom in atoms]


def assert_encloses(found, exact):
    assert found.lower <= exact * (1 + SLACK)
    assert exact * (1 - SLACK) <= found.upper


# An asymmetric pair, weights of its own, and all of it with ratios of mean one: (0.2, 0.1; rest).
RICH = [
    (0.2, 2.0, 0.5), (0.05, 0.25, 3.0), (0.1, 1.5, 1.75), (0.3, 0.75, 0.9), (0.05, 1.25, 2.0)
]  # fmt: skip
HIGHEST = math.log(4.0)


# ------------------------------------------------------------------ sandwiched


@pytest.mark.parametrize("num_users", [1, 2, 5, 9])
@pytest.mark.parametrize("share", SHARES)
def test_any_atoms_against_multiprecision(num_users, share):
    epsilon = HIGHEST * share
    for law, atoms in (
        (law_of(RICH), RICH),
        (reversed_law(law_of(RICH)), [(mass, second, first) for mass, first, second in RICH]),
    ):
        exact = blanket_delta(exact_atoms(atoms), epsilon, num_users)
        found = atom_delta(law, num_users, epsilon)
        assert_encloses(found, exact)
        assert found.upper - found.lower <= 1e-9 * exact + 1e-15


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(1e-9, 1.0), st.floats(0.0, 30.0), st.floats(0.0, 30.0)),
        min_size=1,
        max_size=4,
    ),
    st.floats(0.3, 1.0),
    st.integers(1, 6),
    st.floats(0.0, 4.0),
)
def test_random_atoms_against_multiprecision(atoms, present, num_users, epsilon):
    total = sum(mass for mass, *_ in atoms) / present
    atoms = [(mass / total, *ratios) for mass, *ratios in atoms]
    found = atom_delta(law_of(atoms), num_users, epsilon)
    exact = blanket_delta(exact_atoms(atoms), epsilon, num_users)
    # the oracle's missing mass is exact; that of doubles is a rounding away from one
    assert found.upper >= min(exact, 1) * (1 - mpf(10) ** -14)
    assert found.lower <= exact * (1 + mpf(10) ** -14) + mpf(10) ** -300


@pytest.mark.parametrize("make", [staircase, inside])
@pytest.mark.parametrize("num_users", [2, 3])
def test_others_who_hold_one_value_are_an_atom_law_exactly(make, num_users):
    # R_x2 in place of the blanket: not a bound but the divergence itself, in both orders.
    generator = Entropy.from_seed(5).generator()
    for _ in range(4):
        channel = make(3, 4.0, generator)
        law = AtomLaw(channel[2], channel[0] / channel[2], channel[1] / channel[2], accuracy=1e-14)
        others = (2,) * (num_users - 1)
        for first, second, pair, held in enumeration.neighbouring_laws(channel, num_users):
            if held != others or pair not in ((0, 1), (1, 0)):
                continue
            asked = law if pair == (0, 1) else reversed_law(law)
            for epsilon in (0.0, 0.2, 0.9):
                exact = enumeration.hockey_stick(first, second, math.exp(epsilon))
                found = atom_delta(asked, num_users, epsilon)
                assert found.lower <= exact * (1.0 + 1e-12) + 1e-15
                assert found.upper >= exact * (1.0 - 1e-12) - 1e-15
                assert found.upper - found.lower <= 1e-11 * exact + 1e-13


def test_in_exact_fractions():
    # 3-RR, p = 3, n = 2: data (x1, x3) against (x2, x3), e = 2.
    channel = enumeration.randomized_response(3, Fraction(3))
    atoms = [
        (channel[2][y], channel[0][y] / channel[2][y], channel[1][y] / channel[2][y])
        for y in range(3)
    ]
    (exact,) = [
        enumeration.hockey_stick(first, second, Fraction(2))
        for first, second, pair, held in enumeration.neighbouring_laws(channel, 2)
        if pair == (0, 1) and held == (2,)
    ]
    law = law_of([tuple(float(number) for number in atom) for atom in atoms])
    found = atom_delta(law, 2, math.log(2.0))
    assert found.lower == pytest.approx(float(exact), rel=1e-11)
    assert found.upper == pytest.approx(float(exact), rel=1e-11)


# ------------------------------------------------------------------ large crowds


def test_clones_at_a_million_million_users():
    # delta = mu (phi(t) - t Phi(-t)), epsilon = t mu: the central limit is exact to 1e-6 here.
    p, num_users = math.e, 10**12
    law = AtomLaw([1.0 / (p + 1.0)] * 2, [p, 1.0], [1.0, p])
    mu = (p - 1.0) * math.sqrt(2.0 / (p + 1.0) / num_users)
    t = 2.0
    density = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    central = mu * (density - 0.5 * t * math.erfc(t / math.sqrt(2.0)))
    found = atom_delta(law, num_users, t * mu)
    assert found.lower == pytest.approx(central, rel=1e-5)
    assert found.upper == pytest.approx(central, rel=1e-5)
    epsilon = atom_epsilon(law, num_users, central, 1.0)
    assert epsilon.upper == pytest.approx(t * mu, rel=1e-5)


# ------------------------------------------------------------------ inversion


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.integers(1, 10**15),
    st.floats(-40.0, -0.5),
    st.floats(0.05, 0.3),
    st.floats(1.1, 20.0),
)
def test_delta_at_epsilon_is_no_more_than_asked_for(num_users, log_delta, mass, ratio):
    delta = 10.0**log_delta
    mass = min(mass, 0.9 / (ratio + 1.0))
    law = AtomLaw([mass, mass, 0.2], [ratio, 1.0, 1.0], [1.0, ratio, 1.0])
    highest = math.log(ratio) + 1e-9
    found = atom_epsilon(law, num_users, delta, highest)
    assert 0.0 <= found.lower <= found.upper <= highest
    if found.upper < highest:
        assert atom_delta(law, num_users, found.upper).upper <= delta
    if found.lower > 0.0:
        assert atom_delta(law, num_users, found.lower).lower > delta
    # a little less epsilon is not known to be enough
    if found.lower > 0.0:
        assert atom_delta(law, num_users, found.lower * 0.999).lower > delta


def test_epsilon_is_zero_where_delta_is_large():
    law = AtomLaw([0.25, 0.25], [3.0, 1.0], [1.0, 3.0])
    assert atom_epsilon(law, 10**6, 0.5, LN3) == Enclosure(0.0, 0.0)
    assert atom_epsilon(law, 10**15, 1e-3, LN3) == Enclosure(0.0, 0.0)


def test_epsilon_is_the_highest_where_delta_is_tiny():
    law = AtomLaw([0.25, 0.25], [3.0, 1.0], [1.0, 3.0])
    for delta in (1e-300, 5e-324):
        found = atom_epsilon(law, 3, delta, LN3)
        assert found.upper == pytest.approx(LN3, rel=1e-9)
        assert found.upper <= LN3
    found = atom_epsilon(law, 10**15, 1e-300, LN3)
    assert 0.0 < found.lower <= found.upper < 1e-5
    assert found.upper <= found.lower * (1.0 + 1e-5)


# ------------------------------------------------------------------ edges


@pytest.mark.parametrize("mass", [0.25, 1e-6, 1e-200])
@pytest.mark.parametrize("ratio", [1.0 + 1e-12, 3.0, math.exp(50.0), math.exp(200.0)])
def test_one_user_alone(mass, ratio):
    mass = min(mass, 1.0 / (ratio + 1.0))
    law = AtomLaw([mass, mass], [ratio, 1.0], [1.0, ratio])
    for share in (0.0, 0.5, 0.999999):
        epsilon = math.log(ratio) * share
        exact = mpf(mass) * (mpf(ratio) - mp.exp(mpf(epsilon)))
        found = atom_delta(law, 1, epsilon)
        assert found.lower <= exact * (1 + mpf(10) ** -12)
        assert found.upper >= min(exact, 1)
        # to a few roundings of the ratios, which cancel close to the largest loss
        assert found.upper <= exact + mpf(mass) * mpf(ratio) * mpf(10) ** -11 + SMALLEST_UPPER


@pytest.mark.parametrize("num_users", [1, 2, 300, 10**4, 10**6, 10**9, 10**15])
@pytest.mark.parametrize("gap", [1e-16, 1e-12, 1e-9, 1e-4, 0.1])
def test_just_below_the_largest_log_ratio(num_users, gap):
    # Where only unanimous reports give a user away: delta >= 0.25^n (3 - e).
    epsilon = LN3 * (1.0 - gap)
    for atoms in (
        [(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)],
        [(0.25, 3.0, 1.0), (0.2, 1.0, 3.0), (0.1, 1.2, 1.3), (0.05, 2.0, 1.7)],
    ):
        found = atom_delta(law_of(atoms), num_users, epsilon)
        least = max(mpf(3.0) - mp.exp(mpf(epsilon)), mpf(0))  # ln 3 may be rounded up
        assert found.upper >= max(mpf(0.25) ** num_users * least, mpf(SMALLEST_UPPER) * (least > 0))
        assert found.lower <= 0.25 * least * (1 + mpf(10) ** -9) + SMALLEST_UPPER
        assert found.upper <= 0.25 * least + mpf(10) ** -14


@pytest.mark.parametrize("gap", [1e-10, 3e-10, 1e-9, 1e-8])
def test_small_gains_beside_a_large_base_are_not_rounded_away(gap):
    # ln 3 - gap: the gain is 1e-16 or so, the heaviest value is -8.
    law = AtomLaw([0.4, 0.3], [1.0, 3e-6], [3.0, 1e-6])
    epsilon = LN3 - gap
    exact = mpf(0.3) * (mpf(3e-6) - mp.exp(mpf(epsilon)) * mpf(1e-6))
    assert exact > 0
    assert_encloses(atom_delta(law, 1, epsilon), exact)


@pytest.mark.parametrize("epsilon0", [1.0, 5.0, 20.0, 30.0, 50.0, 120.0])
@pytest.mark.parametrize("num_users", [10**3, 10**6, 10**9])
def test_large_ratios_in_a_crowd(epsilon0, num_users):
    # Binary randomized response, the others as the victim: exact to a hair while lies are rare.
    shrink = math.exp(-epsilon0)
    law = AtomLaw([1.0 / (1.0 + shrink), shrink / (1.0 + shrink)], [1.0, 1.0], [shrink, 1 / shrink])
    for asked in (law, reversed_law(law)):
        found = atom_delta(asked, num_users, 0.5 * epsilon0)
        assert 0.0 <= found.lower <= found.upper <= 1.0
        if num_users * shrink < 1e-3:
            alone = atom_delta(asked, 1, 0.5 * epsilon0)
            if num_users * math.exp(-0.5 * epsilon0) < 1e-3:
                assert found.lower == pytest.approx(alone.lower, rel=2e-3)
            assert found.upper <= alone.upper * (1.0 + 1e-9)


def test_laws_that_tell_nothing():
    for num_users in (1, 10**9):
        assert atom_delta(AtomLaw([], [], []), num_users, 0.5) == Enclosure(0.0, 0.0)
        assert atom_delta(AtomLaw([0.5], [2.0], [2.0]), num_users, 0.5) == Enclosure(0.0, 0.0)
        assert atom_delta(AtomLaw([1.0], [1.0], [3.0]), num_users, 0.0) == Enclosure(0.0, 0.0)
    # At epsilon = 0 equal ratios differ by the stated accuracy only.
    assert atom_delta(AtomLaw([1.0], [1.0], [1.0]), 10**9, 0.0).upper < 1e-13


def test_a_revealing_report_is_certain():
    law = AtomLaw([1.0], [1.0], [0.0])
    for num_users in (1, 50, 10**9):
        found = atom_delta(law, num_users, 5.0)
        assert found.lower == pytest.approx(1.0, rel=1e-12)
        assert found.upper == 1.0


def test_the_upper_end_is_a_probability():
    # Ratios of mean two are no blanket, but nothing above one is ever claimed.
    found = atom_delta(AtomLaw([1.0], [2.0], [0.0]), 10, 0.5)
    assert found.lower <= found.upper == 1.0


# ------------------------------------------------------------------ what must not matter


def test_order_splitting_and_empty_atoms():
    plain = law_of(RICH)
    expected = {n: atom_delta(plain, n, 0.4) for n in (1, 8, 10**6)}
    for order in itertools.permutations(RICH):
        law = law_of(order)
        assert np.array_equal(law.masses, plain.masses)
        assert np.array_equal(law.ratios0, plain.ratios0)
    halves = law_of([(0.5 * mass, *ratios) for mass, *ratios in RICH for _ in range(2)])
    empty = law_of([*RICH, (0.0, 100.0, 0.0)])
    outside = law_of([*RICH, (1.0 - math.fsum(mass for mass, *_ in RICH), 0.0, 0.0)])
    for law in (halves, empty, outside):
        assert np.array_equal(law.masses, plain.masses)
        assert {n: atom_delta(law, n, 0.4) for n in expected} == expected


def test_from_atoms_and_reversed():
    atoms = [BlanketAtom(mass=mass, ratio0=first, ratio1=second) for mass, first, second in RICH]
    law = AtomLaw.from_atoms(atoms, accuracy=1e-12)
    assert np.array_equal(law.masses, law_of(RICH).masses)
    assert law.accuracy == 1e-12


def test_the_stated_accuracy_is_paid_for_at_both_ends():
    plain, vague = law_of(RICH), law_of(RICH, accuracy=1e-6)
    for num_users in (1, 20, 10**6):
        found, wide = atom_delta(plain, num_users, 0.01), atom_delta(vague, num_users, 0.01)
        assert wide.lower < found.lower
        assert found.upper < wide.upper
    # worst perturbations stay inside
    for up in (True, False):
        sign = 1.0 if up else -1.0
        moved = [
            (mass, first * (1.0 + sign * 0.99e-6), second * (1.0 - sign * 0.99e-6))
            for mass, first, second in RICH
        ]
        exact = blanket_delta(exact_atoms(moved), 0.3, 6)
        assert_encloses(atom_delta(vague, 6, 0.3), exact)


@settings(max_examples=20)
@given(st.integers(1, 10**12), st.floats(0.0, 1.3), st.floats(0.0, 1.0), st.floats(1.0, 5.0))
def test_monotone(num_users, epsilon, more, factor):
    law = law_of(RICH)
    found = atom_delta(law, num_users, epsilon)
    assert atom_delta(law, num_users, epsilon + more).lower <= found.upper
    assert atom_delta(law, int(num_users * factor), epsilon).lower <= found.upper


@pytest.mark.parametrize("width", [1e-4, 1e-2])
def test_a_wide_enclosure_holds_the_narrow_one(width):
    law = law_of([(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)])
    narrow = atom_epsilon(law, 10_000, 1e-6, LN3)
    wide = atom_epsilon(law, 10_000, 1e-6, LN3, width=width)
    assert 0.0 < wide.lower <= narrow.lower <= narrow.upper <= wide.upper
    assert wide.upper <= wide.lower * (1.0 + 10.0 * width)


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    "arrays",
    [
        ([0.5], [1.0, 2.0], [1.0]),
        ([[0.5]], [[1.0]], [[1.0]]),
        (0.5, 1.0, 1.0),
        ([-0.1], [1.0], [1.0]),
        ([math.nan], [1.0], [1.0]),
        ([0.5], [math.nan], [1.0]),
        ([0.5], [1.0], [math.inf]),
        ([0.5], [-1.0], [1.0]),
        ([0.7, 0.4], [1.0, 2.0], [1.0, 1.0]),
    ],
)
def test_what_is_no_law_is_refused(arrays):
    with pytest.raises(ParameterError, match=r"masses|likelihood"):
        AtomLaw(*arrays)


def test_numbers_of_users_are_checked():
    law = law_of(RICH)
    for num_users in (0, 10**15 + 1):
        with pytest.raises(ParameterError, match="num_terms"):
            atom_delta(law, num_users, 0.1)


def test_no_epsilon_no_answer():
    with pytest.raises(ParameterError):
        atom_delta(law_of(RICH), 10, math.nan)


def test_masses_a_rounding_above_one_are_brought_back():
    law = AtomLaw([0.5 + 1e-10, 0.5], [2.0, 0.5], [1.0, 1.0])
    assert math.fsum(law.masses) == pytest.approx(1.0, rel=1e-15)


def test_atoms_of_a_channel_bound_its_divergence():
    # The blanket inf_x R_x: at least what any data of the others give.
    channel = staircase(3, 3.0, Entropy.from_seed(3).generator())
    exact_channel = [[Fraction(chance) for chance in row] for row in channel.tolist()]
    atoms = [tuple(map(float, atom)) for atom in atoms_of(exact_channel)]
    law = law_of(atoms, accuracy=1e-12)
    for first, second, pair, _ in enumeration.neighbouring_laws(channel.tolist(), 3):
        if pair in ((0, 1), (1, 0)):
            asked = law if pair == (0, 1) else reversed_law(law)
            exact = enumeration.hockey_stick(first, second, math.exp(0.3))
            assert atom_delta(asked, 3, 0.3).upper >= exact * (1.0 - 1e-12)


def test_a_contour_that_proves_little_is_tried_once(monkeypatch):
    law = family_law(LocalProfile(epsilon0=52.0, family="optimized-unary", domain_size=4))
    calls: list[float] = []
    contour = positive_part_kernels.enclose_positive_part
    monkeypatch.setattr(
        positive_part_kernels,
        "enclose_positive_part",
        lambda *given: calls.append(given[0].number) or contour(*given),
    )
    assert atom_delta_above(law, 10**12, 22.96) == pytest.approx(0.5)
    assert len(calls) == 1
