"""The sums behind certificates, each against an oracle and against each other."""

import math
from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import binom

from oracles import multiprecision
from oracles.binary import BinaryConvolution
from oracles.enumeration import hockey_stick, neighbouring_laws, randomized_response
from oracles.profiles import any_randomizer, k_rr, optimized_unary, symmetric_unary
from shuffledp.accounting.certification import laws
from shuffledp.accounting.certification.engines import BinaryBalls, Pair, worst_delta
from shuffledp.accounting.certification.laws import (
    CLOSED_FORMS,
    floor_of_lower,
    outer_mass,
    outward,
    up_to,
    window,
)
from shuffledp.accounting.certification.sums import (
    contour_delta,
    enumerated_delta,
    enumeration_work,
    symmetric_delta,
    symmetric_work,
)
from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.profile import BlanketAtom


@pytest.fixture(autouse=True)
def _precision():
    with ctx.workprec(192):
        yield


def _encloses(ball, exact):
    """Whether a narrow ball holds a number known to fifty digits, or exactly."""
    if isinstance(exact, Fraction):
        return ball.contains(_rational(exact)) and ball.rad() < 1e-20
    known = arb(mp.nstr(exact, 58), mp.nstr(exact * mpf(10) ** -50, 5))
    return ball.overlaps(known) and ball.rad() < 1e-20 * ball.mid()


def _integral(atoms, num_users, epsilon, smoothing, most=3e7):
    kept = tuple(atom for atom in atoms if not atom[0].is_zero())
    return contour_delta(
        kept,
        num_users,
        arb(epsilon),
        relative_smoothing=smoothing,
        negligible_exponent=80.0,
        most_operations=most,
    )


@pytest.mark.parametrize("num_users", [1, 2, 9, 25])
@pytest.mark.parametrize(("epsilon0", "share"), [(1.0, 0.3), (4.0, 0.97), (0.1, 0.0), (30.0, 0.99)])
def test_sums_against_sixty_digits(epsilon0, share, num_users):
    epsilon = epsilon0 * share
    exact = multiprecision.blanket_delta(multiprecision.clone_atoms(epsilon0), epsilon, num_users)
    law = laws.clones(any_randomizer(epsilon0))
    assert _encloses(symmetric_delta(law, num_users, arb(epsilon), 120.0), exact)
    if num_users < 10:
        exact = multiprecision.blanket_delta(
            multiprecision.k_rr_atoms(epsilon0, 5), epsilon, num_users
        )
        law = laws.k_rr_blanket(k_rr(epsilon0, 5))
        assert _encloses(symmetric_delta(law, num_users, arb(epsilon), 120.0), exact)
        assert _encloses(enumerated_delta(law.atoms, num_users, arb(epsilon)), exact)


@pytest.mark.parametrize("optimized", [False, True])
def test_the_unary_blanket_against_sixty_digits(optimized):
    profile = (optimized_unary if optimized else symmetric_unary)(2.0)
    exact = multiprecision.blanket_delta(
        multiprecision.unary_atoms(2.0, optimized=optimized), 0.7, 6
    )
    own = enumerated_delta(laws.unary_blanket(profile), 6, arb(0.7))
    assert _encloses(own, exact)
    for dominating in (laws.unary_lightened(profile), laws.unary_spread(profile)):
        assert own < symmetric_delta(dominating, 6, arb(0.7), 60.0)


def _rational_law(p, k, *, third=False):
    """k-RR's law for an exact p: the blanket, or data whose others hold a third answer."""
    ratio = arb(fmpq(p.numerator, p.denominator))
    symbol = 1 / (ratio + (k - 1))
    return laws.SymmetricBalls(
        epsilon0=ratio.log(),
        low=arb(1),
        pair_mass=2 * symbol,
        rest_mass=(k - (3 if third else 2)) * symbol,
        rest_weight=arb(1),
        base_mass=(ratio if third else ratio - 1) * symbol,
        base_weight=1 / ratio if third else arb(0),
    )


def _rational(number):
    return arb(fmpq(number.numerator, number.denominator))


@pytest.mark.parametrize(("k", "num_users"), [(3, 4), (4, 3)])
@pytest.mark.parametrize("e", [Fraction(1), Fraction(2), Fraction(27, 10)])
def test_laws_against_exact_enumeration(k, num_users, e):
    p = Fraction(3)
    epsilon, channel = _rational(e).log() if e > 1 else arb(0), randomized_response(k, p)
    third = symmetric_delta(_rational_law(p, k, third=True), num_users, epsilon, 60.0)
    largest = Fraction(0)
    for first, second, (x, other), others in neighbouring_laws(channel, num_users):
        exact = hockey_stick(first, second, e)
        largest = max(largest, exact)
        if set(others).isdisjoint({x, other}) and len(set(others)) == 1:
            assert _encloses(third, exact)
    blanket = symmetric_delta(_rational_law(p, k), num_users, epsilon, 60.0)
    assert not blanket < _rational(largest)


def test_the_published_counterexample():
    # n = 3, k = 8, p = 3, e = 2, both others at a third answer: docs, "k-ary randomized response"
    law = _rational_law(Fraction(3), 8, third=True)
    assert _encloses(symmetric_delta(law, 3, arb(2).log(), 60.0), Fraction(7, 500))


def test_ties_that_balls_cannot_see_are_covered():
    # p = 3, e = 2: six pair reports with five heads add up to zero exactly.
    p, e, num_users = Fraction(3), Fraction(2), 6
    exact = Fraction(0)
    for kinds in product(range(3), repeat=num_users):
        value = sum(((p - e), (1 - p * e), Fraction(0))[kind] for kind in kinds)
        mass = Fraction(1)
        for kind in kinds:
            mass *= (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))[kind]
        exact += mass * max(value, 0)
    law = _rational_law(p, 2)
    epsilon = _rational(e).log()
    assert _encloses(symmetric_delta(law, num_users, epsilon, 60.0), exact / num_users)
    atoms = tuple(atom for atom in law.atoms if not atom[0].is_zero())
    assert _encloses(enumerated_delta(atoms, num_users, epsilon), exact / num_users)


@pytest.mark.parametrize(
    ("atoms", "num_users", "epsilon"),
    [
        (laws.clones(any_randomizer(1.0)), 2000, 0.1),
        (laws.k_rr_blanket(k_rr(2.0, 6)), 3000, 0.1),
        (laws.unary_lightened(symmetric_unary(1.0)), 3000, 0.05),
    ],
)
def test_the_integral_against_sums(atoms, num_users, epsilon):
    exact = symmetric_delta(atoms, num_users, arb(epsilon), 100.0)
    for smoothing, width in ((1e-3, 1e-4), (1e-4, 1e-6)):
        found = _integral(atoms.atoms, num_users, epsilon, smoothing)
        assert found.contains(exact)
        assert 0 < found.rad() < width * exact


def test_the_integral_of_a_law_that_is_not_symmetric():
    atoms = tuple(
        (arb(mass), arb(ratio0), arb(ratio1))
        for mass, ratio0, ratio1 in ((0.5, 1.0, 1.0), (0.25, 1.75, 1.0), (0.0625, 1.0, 4.0))
    )
    exact = enumerated_delta(atoms, 40, arb(0.1))
    found = _integral(atoms, 40, 0.1, 1e-2)
    assert found.contains(exact)
    assert found.rad() < 0.01 * exact


def test_deep_tails_keep_their_relative_accuracy():
    law = laws.clones(any_randomizer(1.0))
    found = _integral(law.atoms, 1000, 0.6, 1e-3)
    assert arb(2) ** -500 < found < arb(2) ** -100
    assert found.rad() < 1e-3 * found.mid()
    with ctx.workprec(1000):
        assert found.contains(symmetric_delta(law, 1000, arb(0.6), 400.0))


def test_an_integral_with_no_possible_gain_is_zero():
    atoms = ((arb(1), arb(1), arb(1)),)
    assert _integral(atoms, 10, 0.1, 1e-3).is_zero()


def test_an_integral_that_takes_too_long_is_refused():
    law = laws.clones(any_randomizer(1.0))
    with pytest.raises(OutOfRegimeError, match="nodes"):
        _integral(law.atoms, 100, 0.3, 1e-5, most=1e5)


@settings(max_examples=25)
@given(
    epsilon0=st.floats(0.05, 5.0),
    share=st.floats(0.0, 0.99),
    num_users=st.integers(1, 40),
    k=st.integers(2, 9),
)
def test_sums_agree_and_fall_with_users_and_epsilon(epsilon0, share, num_users, k):
    law, epsilon = laws.k_rr_blanket(k_rr(epsilon0, k)), epsilon0 * share
    found = symmetric_delta(law, num_users, arb(epsilon), 60.0)
    if num_users <= 12:
        atoms = tuple(atom for atom in law.atoms if not atom[0].is_zero())
        assert found.overlaps(enumerated_delta(atoms, num_users, arb(epsilon)))
    assert symmetric_delta(law, num_users + 1, arb(epsilon), 60.0) <= found
    assert symmetric_delta(law, num_users, arb(epsilon + 0.005 * epsilon0), 60.0) < found


@pytest.mark.parametrize(("epsilon0", "share"), [(1.0, 0.0), (1.0, 0.2), (4.0, 0.9), (12.0, 0.99)])
def test_binary_pairs_against_convolution(epsilon0, share):
    num_users, epsilon = 12, epsilon0 * share
    balls = BinaryBalls(epsilon0, epsilon, 60.0, 1e9)
    for ones, exact in enumerate(BinaryConvolution(epsilon0, num_users).deltas(epsilon)):
        # j ones, and j ones in the other direction, which is n - 1 - j
        found = balls.delta(Pair(ones, num_users - 1 - ones))
        assert float(found) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("num_users", [1, 2, 10])
def test_binary_worst_against_sixty_digits(num_users):
    exact = multiprecision.binary_delta(1.0, 0.3, num_users)
    above, below = (arb(mp.nstr(exact * (1 + sign * mpf(10) ** -30), 50)) for sign in (1, -1))
    balls = BinaryBalls(1.0, 0.3, 120.0, 1e9)
    found = worst_delta(balls, num_users, above)
    assert found <= above
    assert found.upper() >= below
    assert not worst_delta(balls, num_users, below) <= below


def test_binary_settles_stretches_and_gives_up_when_it_must():
    exact = BinaryConvolution(1.0, 200).delta(0.3)
    found = worst_delta(BinaryBalls(1.0, 0.3, 60.0, 1e9), 200, arb(exact * (1.0 + 1e-7)))
    assert found <= arb(exact * (1.0 + 1e-7))
    assert found.upper() >= arb(exact * (1.0 - 1e-7))
    with pytest.raises(OutOfRegimeError):
        worst_delta(BinaryBalls(1.0, 0.3, 60.0, 1e3), 200, arb(exact * (1.0 + 1e-7)))


def test_binary_with_too_few_bits_is_wide_and_not_wrong():
    with ctx.workprec(12):
        found = BinaryBalls(1.0, 0.05, 60.0, 1e9).delta(Pair(300, 300))
    exact = BinaryConvolution(1.0, 601).deltas(0.05)[300]
    assert found.contains(arb(exact))
    assert found.rad() > 0.1


@pytest.mark.parametrize(("num_trials", "probability"), [(1, 0.5), (40, 0.1), (1000, 0.7)])
def test_tails_are_bounded(num_trials, probability):
    law = binom(num_trials, probability)
    for exponent in (1.0, 5.0, 30.0):
        first, last = window(num_trials, probability, exponent)
        outside = law.cdf(first - 1) + law.sf(last)
        found = outer_mass(
            num_trials, arb(probability), 1 - arb(probability), first=first, last=last
        )
        assert outside * (1.0 - 1e-9) <= float(found.upper()) <= 2.0 * math.exp(-exponent)
    # A window beside the mean leaves out anything.
    one = outer_mass(
        num_trials, arb(probability), 1 - arb(probability), first=num_trials, last=num_trials
    )
    assert float(one) >= 1.0 - probability**num_trials or num_trials == 1


def test_balls_round_outwards():
    third = arb(1) / 3
    assert outward(third).lower < 1 / 3 < outward(third).upper
    assert outward(arb(10) ** -400).upper > 0.0
    assert up_to(arb(-1)).is_zero()
    assert up_to(arb(0, 1)).contains(arb(0.5))
    for broken in (arb("nan"), arb("inf")):
        with pytest.raises(PrecisionError):
            outward(broken)
        with pytest.raises(PrecisionError):
            floor_of_lower(broken)


def test_work_grows_as_stated():
    pairs_only, with_rest = laws.clones(any_randomizer(1.0)), laws.k_rr_blanket(k_rr(1.0, 16))
    for law, growth in ((pairs_only, 10.0), (with_rest, 100.0)):
        ratio = symmetric_work(law, 10**8, 60.0) / symmetric_work(law, 10**6, 60.0)
        assert ratio == pytest.approx(growth, rel=0.1)


def test_many_kinds_of_reports_are_not_counted_beyond_reason():
    assert enumeration_work(4, 30) == pytest.approx(6.0 * math.comb(34, 4))
    assert 1e18 < enumeration_work(400, 10**15) < 1e300


@pytest.mark.parametrize(
    ("method", "epsilon0", "num_users"),
    [("erlingsson", 0.1, 1), ("erlingsson-moderate", 3.0, 100), ("erlingsson-small", 0.5, 2000)],
)
def test_hypotheses_of_closed_forms_are_checked_again(method, epsilon0, num_users):
    with pytest.raises(OutOfRegimeError, match="ball arithmetic"):
        CLOSED_FORMS[method](any_randomizer(epsilon0), num_users, arb(0.05))


def test_stated_masses_above_one_are_scaled():
    over = math.nextafter(0.5, 1.0)
    atoms = [
        BlanketAtom(mass=over, ratio0=1.5, ratio1=0.5),
        BlanketAtom(mass=over, ratio0=0.5, ratio1=1.5),
    ]
    (law,) = laws.stated(atoms)
    assert sum((atom[0] for atom in law), arb(0)).contains(1)
    assert all(
        (atom[0] * atom[1]).contains(arb(over) * r) for atom, r in zip(law, (1.5, 0.5), strict=True)
    )
