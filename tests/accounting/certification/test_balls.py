"""The integral behind certificates, against oracles and against listing all outcomes."""

import math
from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx, fmpq
from mpmath import mp, mpf

from oracles import multiprecision
from oracles.enumeration import hockey_stick, neighbouring_laws, randomized_response
from oracles.profiles import any_randomizer, k_rr, optimized_unary, symmetric_unary
from shuffledp.accounting.certification import balls
from shuffledp.accounting.certification.balls import (
    LAWS,
    contour_delta,
    enumerated_delta,
    enumeration_work,
    floor_of_lower,
    law_delta,
    outward,
    up_to,
)
from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.profile import BlanketAtom


@pytest.fixture(autouse=True)
def _precision():
    with ctx.workprec(192):
        yield


def _rational(number):
    return arb(fmpq(number.numerator, number.denominator))


def _encloses(ball, exact):
    """Whether a narrow ball holds a number known to fifty digits, or exactly."""
    if isinstance(exact, Fraction):
        return ball.contains(_rational(exact)) and ball.rad() < 1e-20
    known = arb(mp.nstr(exact, 58), mp.nstr(exact * mpf(10) ** -50, 5))
    return ball.overlaps(known) and ball.rad() < 1e-20 * ball.mid()


def _kept(method, profile):
    (atoms,) = LAWS[method](profile)
    return tuple(atom for atom in atoms if not atom[0].is_zero())


def _integral(atoms, num_users, epsilon, smoothing, most=3e7):
    return contour_delta(atoms, num_users, arb(epsilon), smoothing, most_operations=most)


@pytest.mark.parametrize("num_users", [1, 2, 9])
@pytest.mark.parametrize(("epsilon0", "share"), [(1.0, 0.3), (4.0, 0.97), (0.1, 0.0), (30.0, 0.99)])
def test_listed_laws_against_sixty_digits(epsilon0, share, num_users):
    epsilon = share * epsilon0
    for method, profile, atoms in (
        ("clones", any_randomizer(epsilon0), multiprecision.clone_atoms(epsilon0)),
        ("k-rr-blanket", k_rr(epsilon0, 5), multiprecision.k_rr_atoms(epsilon0, 5)),
        (
            "unary-blanket",
            optimized_unary(epsilon0),
            multiprecision.unary_atoms(epsilon0, optimized=True),
        ),
        (
            "unary-blanket",
            symmetric_unary(epsilon0),
            multiprecision.unary_atoms(epsilon0, optimized=False),
        ),
    ):
        exact = multiprecision.blanket_delta(atoms, epsilon, num_users)
        assert _encloses(enumerated_delta(_kept(method, profile), num_users, arb(epsilon)), exact)


@pytest.mark.parametrize(("k", "num_users"), [(3, 4), (4, 3)])
@pytest.mark.parametrize("e", [Fraction(1), Fraction(2), Fraction(27, 10)])
def test_the_blanket_is_above_every_divergence(k, num_users, e):
    epsilon0 = math.nextafter(math.log(3.0), 2.0)
    epsilon, channel = _rational(e).log() if e > 1 else arb(0), randomized_response(k, Fraction(3))
    largest = max(
        hockey_stick(first, second, e)
        for first, second, _, _ in neighbouring_laws(channel, num_users)
    )
    atoms = _kept("k-rr-blanket", k_rr(epsilon0, k))
    assert not enumerated_delta(atoms, num_users, epsilon) < _rational(largest)


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
    quarter, three = arb(1) / 4, arb(3)
    atoms = ((quarter, three, arb(1)), (quarter, arb(1), three))
    found = enumerated_delta(atoms, num_users, _rational(e).log())
    assert _encloses(found, exact / num_users)


@pytest.mark.parametrize(
    ("method", "profile", "num_users", "epsilon"),
    [
        ("clones", any_randomizer(1.0), 60, 0.1),
        pytest.param("k-rr-blanket", k_rr(2.0, 6), 40, 0.1, marks=pytest.mark.slow),
        pytest.param("unary-blanket", symmetric_unary(1.0), 25, 0.05, marks=pytest.mark.slow),
    ],
)
def test_the_integral_against_all_outcomes(method, profile, num_users, epsilon):
    atoms = _kept(method, profile)
    exact = enumerated_delta(atoms, num_users, arb(epsilon))
    for smoothing, width in ((1e-2, 1e-2), (1e-3, 1e-4)):
        found = _integral(atoms, num_users, epsilon, smoothing)
        assert found.contains(exact)
        assert 0 < found.rad() < width * exact


def test_where_an_integral_takes_longer_outcomes_are_listed(monkeypatch):
    monkeypatch.setattr(balls, "_FEW_OPERATIONS", 1e3)
    monkeypatch.setattr(balls, "SMOOTHINGS", (1e-9,))
    atoms = _kept("clones", any_randomizer(1.0))
    assert law_delta(atoms, 30, arb(0.3), 0).rad() < 1e-40
    monkeypatch.setattr(balls, "MOST_OPERATIONS", 2e3)
    with pytest.raises(OutOfRegimeError, match="nodes"):
        law_delta(atoms, 30, arb(0.3), 0)


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
    atoms = _kept("clones", any_randomizer(1.0))
    found = _integral(atoms, 1000, 0.6, 1e-3)
    assert arb(2) ** -500 < found < arb(2) ** -100
    assert found.rad() < 1e-3 * found.mid()


def test_an_integral_with_no_possible_gain_is_zero():
    assert _integral(((arb(1), arb(1), arb(1)),), 10, 0.1, 1e-3).is_zero()


def test_an_integral_that_takes_too_long_is_refused():
    with pytest.raises(OutOfRegimeError, match="nodes"):
        _integral(_kept("clones", any_randomizer(1.0)), 100, 0.3, 1e-5, most=1e5)


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


def test_many_kinds_of_reports_are_not_counted_beyond_reason():
    assert enumeration_work(4, 30) == pytest.approx(6.0 * math.comb(34, 4))
    assert 1e18 < enumeration_work(400, 10**15) < 1e300


def test_stated_masses_above_one_are_scaled():
    over = math.nextafter(0.5, 1.0)
    atoms = [
        BlanketAtom(mass=over, ratio0=1.5, ratio1=0.5),
        BlanketAtom(mass=over, ratio0=0.5, ratio1=1.5),
    ]
    (law,) = balls._stated(atoms)
    assert sum((atom[0] for atom in law), arb(0)).contains(1)
    assert all(
        (atom[0] * atom[1]).contains(arb(over) * r) for atom, r in zip(law, (1.5, 0.5), strict=True)
    )
