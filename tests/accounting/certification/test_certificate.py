import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from oracles.profiles import any_randomizer, k_rr, optimized_unary, symmetric_unary
from oracles.stated_blankets import atoms_of, epsilon0_of, stated, subset_selection
from shuffledp.accounting.certification import balls
from shuffledp.accounting.certification.certificate import certify
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.errors import (
    MissingPackageError,
    OutOfRegimeError,
    ParameterError,
    PrecisionError,
)
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "accountant_values.json").read_text(encoding="ascii")
)["blanket"]
FAMILIES = {
    "any": (any_randomizer, "clones"),
    "5-rr": (lambda epsilon0: k_rr(epsilon0, 5), "k-rr-blanket"),
}


def _bound(upper, method="clones"):
    return Bound(lower=None, upper=upper, method=method, source="", assumptions=())


def certify_epsilon(profile, *, num_users, bound, delta):
    return certify(profile, Guarantee(epsilon=bound, delta=delta, num_users=num_users))


def certify_delta(profile, *, num_users, bound, epsilon):
    return certify(profile, Guarantee(epsilon=epsilon, delta=bound, num_users=num_users))


def _subset_selection():
    p = Fraction(3)
    return stated(epsilon0_of(p), atoms_of(subset_selection(5, 2, p)), 5)


@pytest.mark.parametrize("family", FAMILIES)
def test_golden_deltas_certify_and_are_enclosed(family):
    make, method = FAMILIES[family]
    certified = 0
    for case in (each for each in GOLDEN if each["family"] == family):
        profile, where = make(case["epsilon0"]), {"num_users": case["num_users"]}
        bound = account_delta(profile, epsilon=case["epsilon"], method=method, **where)
        found = certify_delta(profile, bound=bound, epsilon=case["epsilon"], **where)
        assert found.enclosure.lower <= case["delta"] * (1.0 + 1e-15)
        assert case["delta"] * (1.0 - 1e-15) <= found.enclosure.upper <= bound.upper
        certified += 1
    assert certified > 130


@pytest.mark.parametrize(
    ("profile", "num_users"),
    [
        (any_randomizer(1.0), 100),
        (any_randomizer(1.0), 10_000),
        pytest.param(any_randomizer(1.0), 10**9, marks=pytest.mark.slow),
        (any_randomizer(1.0), 10**15),
        (any_randomizer(3.0), 10_000),
        (k_rr(3.0, 16), 10_000),
        (optimized_unary(2.0, 8), 2000),
        (symmetric_unary(2.0, 8), 10_000),
        (_subset_selection(), 20_000),
    ],
)
def test_accounted_epsilons_certify(profile, num_users):
    bound = account_epsilon(profile, num_users=num_users, delta=1e-8, with_lower=False)
    found = certify_epsilon(profile, num_users=num_users, bound=bound, delta=1e-8)
    assert found.bits >= 128
    # the accountant gives away less than a part in a million of epsilon
    assert 1e-8 * (1.0 - 4e-5) < found.enclosure.lower < found.enclosure.upper <= 1e-8


@pytest.mark.parametrize(
    ("profile", "num_users"),
    [
        (any_randomizer(1.0), 1000),
        (any_randomizer(1.0), 10**9),
        (k_rr(3.0, 16), 10**7),
        (optimized_unary(2.0, 8), 20),
    ],
)
def test_an_epsilon_that_is_too_small_is_refused(profile, num_users):
    bound = account_epsilon(profile, num_users=num_users, delta=1e-6, with_lower=False)
    wrong = replace(bound, upper=bound.upper * (1.0 - 1e-4))
    with pytest.raises(PrecisionError, match=r"does not hold.*report this as a bug"):
        certify_epsilon(profile, num_users=num_users, bound=wrong, delta=1e-6)


def test_a_delta_that_is_too_small_is_refused():
    bound = account_delta(any_randomizer(1.0), num_users=500, epsilon=0.1)
    wrong = replace(bound, lower=None, upper=bound.upper * (1.0 - 1e-4))
    with pytest.raises(PrecisionError, match="does not hold"):
        certify_delta(any_randomizer(1.0), num_users=500, bound=wrong, epsilon=0.1)


def test_the_statement_says_what_is_proved():
    bound = account_epsilon(any_randomizer(1.0), num_users=100, delta=1e-6)
    found = certify_epsilon(any_randomizer(1.0), num_users=100, bound=bound, delta=1e-6)
    assert found.statement.startswith(f"at epsilon = {bound.upper!r} and num_users = 100 delta")
    assert "by ball arithmetic of 128 bits" in found.statement
    assert found.statement.endswith("<= 1e-06")


def test_one_report_alone():
    profile = LocalProfile(epsilon0=1.0, delta0=1e-3)
    bound = account_epsilon(profile, num_users=50, delta=0.01, method="local")
    found = certify_epsilon(profile, num_users=50, bound=bound, delta=0.01)
    assert 0.0099999 < found.enclosure.upper <= 0.01
    found = certify_delta(profile, num_users=50, bound=_bound(1e-3, "local"), epsilon=1.0)
    assert found.enclosure.lower <= 1e-3 == found.enclosure.upper
    with pytest.raises(OutOfRegimeError, match="delta0 = 0"):
        certify_delta(profile, num_users=50, bound=_bound(0.1), epsilon=0.5)
    profile = LocalProfile(epsilon0=1.0, delta0=1e-3, participation=0.5)
    bound = account_delta(profile, num_users=50, epsilon=0.5, method="local")
    found = certify_delta(profile, num_users=50, bound=bound, epsilon=0.5)
    assert found.enclosure.lower <= bound.upper <= found.enclosure.lower * (1.0 + 1e-12)


@pytest.mark.parametrize("num_users", [1, 2, 10**15])
@pytest.mark.parametrize("epsilon0", [0.0, 1e-12, 50.0, 250.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.3])
def test_edges(num_users, epsilon0, delta):
    profile = any_randomizer(epsilon0)
    bound = account_epsilon(profile, num_users=num_users, delta=delta, with_lower=False)
    found = certify_epsilon(profile, num_users=num_users, bound=bound, delta=delta)
    assert found.enclosure.upper <= delta


def test_stated_laws_count_in_both_orders():
    # The pair is not symmetric: reversed, the same atoms lose more.
    atoms = [(0.5, 1.0, 1.0), (0.2, 1.5, 1.0), (0.1, 2.0, 3.0)]
    blanket = tuple(BlanketAtom(mass=m, ratio0=r0, ratio1=r1) for m, r0, r1 in atoms)
    found = []
    for each in (blanket, tuple(replace(a, ratio0=a.ratio1, ratio1=a.ratio0) for a in blanket)):
        profile = LocalProfile(epsilon0=1.2, family=RandomizerFamily.OTHER, blanket=each)
        bound = account_delta(profile, num_users=5, epsilon=0.1, method="stated-blanket")
        found.append(certify_delta(profile, num_users=5, bound=bound, epsilon=0.1).enclosure)
    assert found[0] == found[1]


def test_a_number_inside_the_narrowest_ball_is_undecided():
    profile, num_users, epsilon = any_randomizer(1.0), 10**15, 1e-8
    exact = account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False)
    found = certify_delta(profile, num_users=num_users, bound=exact, epsilon=epsilon).enclosure
    # halve the interval until what is left cannot be told apart
    low, high = 0.5 * found.lower, exact.upper
    with pytest.raises(PrecisionError, match="undecided"):
        for _ in range(200):
            middle = 0.5 * (low + high)
            try:
                claimed = replace(exact, upper=middle)
                certify_delta(profile, num_users=num_users, bound=claimed, epsilon=epsilon)
                high = middle
            except PrecisionError as error:
                if "undecided" in str(error):
                    raise
                low = middle
    assert (high - low) / high < 1e-6


@pytest.mark.parametrize("error", [PrecisionError("not finite"), OutOfRegimeError("much work")])
def test_what_never_becomes_a_number_decides_nothing(monkeypatch, error):
    def lost(*_):
        raise error

    monkeypatch.setattr(balls, "method_delta", lost)
    with pytest.raises(PrecisionError, match="in doubt"):
        certify_epsilon(any_randomizer(1.0), num_users=9, bound=_bound(0.5), delta=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_users": 0}, ParameterError, "num_users = 0"),
        ({"num_users": 10**16}, ParameterError, "1e15"),
        ({"num_users": 10.5}, ParameterError, "whole number"),
        ({"delta": 1.0}, ParameterError, "delta"),
        ({"delta": float("nan")}, ParameterError, "delta"),
        ({"bound": _bound(0.5, "folklore")}, OutOfRegimeError, "has no certificate"),
        ({"bound": _bound(0.5, "k-rr-blanket")}, OutOfRegimeError, "k-ary"),
        ({"bound": _bound(float("inf"))}, ParameterError, "epsilon = inf"),
    ],
)
def test_refusals(arguments, error, message):
    given = {"num_users": 100, "bound": _bound(0.9), "delta": 1e-6} | arguments
    with pytest.raises(error, match=message):
        certify_epsilon(any_randomizer(1.0), **given)


def test_without_the_package_it_says_which_to_install(monkeypatch):
    name = "shuffledp.accounting.certification.balls"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("shuffledp.accounting.certification.balls")
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'shuffledp\[certify\]'"):
        certify_epsilon(any_randomizer(1.0), num_users=10, bound=_bound(1.0), delta=1e-6)


def test_other_missing_modules_are_not_blamed_on_it(monkeypatch):
    name = "shuffledp.accounting.certification.balls"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("shuffledp.accounting.certification.balls")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError) as refused:
        certify_epsilon(any_randomizer(1.0), num_users=10, bound=_bound(1.0), delta=1e-6)
    assert not isinstance(refused.value, MissingPackageError)
