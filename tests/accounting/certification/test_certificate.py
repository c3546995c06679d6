import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from oracles.profiles import any_randomizer, every_family, k_rr, optimized_unary, symmetric_unary
from oracles.stated_blankets import atoms_of, epsilon0_of, stated, subset_selection
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.accounting.certification import engines
from shuffledp.accounting.certification.certificate import certify_delta, certify_epsilon
from shuffledp.core.bound import Bound
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
    "2-rr": (lambda epsilon0: k_rr(epsilon0, 2), "binary-exact"),
    "5-rr": (lambda epsilon0: k_rr(epsilon0, 5), "k-rr-blanket"),
}


def _bound(upper, method="clones", lower=None):
    return Bound(lower=lower, upper=upper, method=method, source="", assumptions=())


def _subset_selection():
    p = Fraction(3)
    return stated(epsilon0_of(p), atoms_of(subset_selection(5, 2, p)), 5)


@pytest.mark.parametrize("family", FAMILIES)
def test_golden_deltas_certify_and_are_enclosed(family):
    make, method = FAMILIES[family]
    certified = 0
    for case in (each for each in GOLDEN if each["family"] == family):
        profile, where = make(case["epsilon0"]), {"num_users": case["num_users"]}
        try:
            bound = account_delta(profile, epsilon=case["epsilon"], method=method, **where)
        except PrecisionError:
            continue  # doubles have no answer to certify
        found = certify_delta(profile, bound=bound, epsilon=case["epsilon"], **where)
        assert found.holds
        assert found.lower_holds
        assert found.enclosure.lower <= case["delta"] * (1.0 + 1e-15)
        assert case["delta"] * (1.0 - 1e-15) <= found.enclosure.upper <= bound.upper
        certified += 1
    assert certified > 130


@pytest.mark.parametrize(
    ("profile", "num_users"),
    [
        (any_randomizer(1.0), 1000),
        (any_randomizer(1.0), 10_000),
        (any_randomizer(1.0), 100_000),
        (any_randomizer(3.0), 10_000),
        (k_rr(1.0, 4), 1000),
        (k_rr(3.0, 16), 1000),
        (k_rr(3.0, 16), 100_000),
        (k_rr(1.0, 2), 1000),
        (k_rr(3.0, 2), 10_000),
        (optimized_unary(2.0, 8), 100),
        (symmetric_unary(2.0, 8), 300),
        (_subset_selection(), 20_000),
    ],
)
def test_accounted_epsilons_certify(profile, num_users):
    bound = account_epsilon(profile, num_users=num_users, delta=1e-6)
    found = certify_epsilon(profile, num_users=num_users, bound=bound, delta=1e-6)
    assert found.holds
    assert found.bits >= 128
    assert 0.0 < found.enclosure.lower < found.enclosure.upper <= 1e-6
    if bound.method in {"clones", "k-rr-blanket", "binary-exact"}:
        # the accountant gives away less than a part in a million of epsilon
        assert found.enclosure.lower > 1e-6 * (1.0 - 2e-5)
    assert found.lower_holds is (True if bound.lower is not None else None)


@pytest.mark.parametrize(
    ("profile", "num_users", "share"),
    [
        (any_randomizer(1.0), 1000, 1e-6),
        (any_randomizer(1.0), 10**9, 1e-6),
        (k_rr(3.0, 16), 1000, 1e-6),
        (k_rr(3.0, 16), 10**7, 1e-6),
        (k_rr(1.0, 2), 1000, 1e-6),
        (optimized_unary(2.0, 8), 20, 0.05),
    ],
)
def test_an_epsilon_that_is_too_small_is_refused(profile, num_users, share):
    bound = account_epsilon(profile, num_users=num_users, delta=1e-6, with_lower=False)
    wrong = replace(bound, upper=bound.upper * (1.0 - share))
    with pytest.raises(PrecisionError, match=r"does not hold.*report this as a bug"):
        certify_epsilon(profile, num_users=num_users, bound=wrong, delta=1e-6)


def test_a_delta_that_is_too_small_is_refused():
    bound = account_delta(any_randomizer(1.0), num_users=500, epsilon=0.1)
    wrong = replace(bound, lower=None, upper=bound.upper * (1.0 - 1e-6))
    with pytest.raises(PrecisionError, match="does not hold"):
        certify_delta(any_randomizer(1.0), num_users=500, bound=wrong, epsilon=0.1)


@pytest.mark.parametrize("profile", [any_randomizer(1.0), k_rr(1.0, 4), k_rr(1.0, 2)])
def test_a_lower_end_that_is_too_large_is_refused(profile):
    bound = account_epsilon(profile, num_users=300, delta=1e-6)
    above = min(bound.lower * (1.0 + 1e-5), bound.upper * (1.0 + 1e-5))
    wrong = replace(bound, lower=above, upper=bound.upper * (1.0 + 1e-4))
    with pytest.raises(PrecisionError, match="no explicit data"):
        certify_epsilon(profile, num_users=300, bound=wrong, delta=1e-6)
    wrong = _bound(2.0, lower=profile.epsilon0)
    with pytest.raises(PrecisionError, match="no explicit data"):
        certify_epsilon(profile, num_users=300, bound=wrong, delta=1e-6)


def test_the_statement_says_what_is_proved():
    profile = any_randomizer(1.0)
    bound = account_epsilon(profile, num_users=100, delta=1e-6)
    found = certify_epsilon(profile, num_users=100, bound=bound, delta=1e-6)
    assert found.statement.startswith(f"at epsilon = {bound.upper!r} and num_users = 100 delta")
    assert "by ball arithmetic of 128 bits" in found.statement
    assert (
        f"<= 1e-06; explicit data have a delta of at least 1e-06 at epsilon = {bound.lower!r}"
        in (found.statement)
    )
    bound = account_delta(profile, num_users=100, epsilon=0.1)
    found = certify_delta(profile, num_users=100, bound=bound, epsilon=0.1)
    assert found.statement.endswith(f"explicit data have a delta of at least {bound.lower!r}")
    without = certify_delta(profile, num_users=100, bound=replace(bound, lower=None), epsilon=0.1)
    assert without.lower_holds is None
    assert without.enclosure == found.enclosure


@pytest.mark.parametrize(
    "method", ["local", "erlingsson", "erlingsson-moderate", "erlingsson-small"]
)
def test_closed_forms_certify_and_are_sharp(method):
    profile = any_randomizer(0.2)
    bound = account_epsilon(profile, num_users=10_000, delta=1e-6, method=method, with_lower=False)
    found = certify_epsilon(profile, num_users=10_000, bound=bound, delta=1e-6)
    # (the delta of a single report hardly depends on epsilon)
    assert found.enclosure.lower == pytest.approx(1e-6, rel=1e-9)
    wrong = replace(bound, upper=bound.upper * (1.0 - 1e-6))
    with pytest.raises(PrecisionError, match="does not hold"):
        certify_epsilon(profile, num_users=10_000, bound=wrong, delta=1e-6)
    bound = account_delta(profile, num_users=10_000, epsilon=0.15, method=method)
    assert certify_delta(profile, num_users=10_000, bound=bound, epsilon=0.15).holds


def test_closed_forms_without_an_answer_give_one():
    for method in ("erlingsson", "erlingsson-moderate", "erlingsson-small"):
        profile = any_randomizer(0.4)
        bound = account_delta(profile, num_users=1000, epsilon=1e-3, method=method)
        found = certify_delta(profile, num_users=1000, bound=bound, epsilon=1e-3)
        assert found.enclosure.upper == bound.upper == 1.0


def test_failing_local_randomizers_keep_their_delta0():
    profile = LocalProfile(epsilon0=1.0, delta0=1e-3)
    bound = account_epsilon(profile, num_users=50, delta=0.01, method="local")
    bound = replace(bound, lower=0.1)
    found = certify_epsilon(profile, num_users=50, bound=bound, delta=0.01)
    assert found.enclosure.upper <= 0.01
    assert found.lower_holds  # pure randomizers belong to the class
    ternary = LocalProfile(
        epsilon0=1.0,
        delta0=1e-3,
        family=RandomizerFamily.K_RANDOMIZED_RESPONSE,
        domain_size=3,
    )
    found = certify_epsilon(ternary, num_users=50, bound=bound, delta=0.01)
    assert found.lower_holds is None
    assert found.statement.endswith("no data on record decide it")
    bound = _bound(1e-3, method="local")
    found = certify_delta(profile, num_users=50, bound=bound, epsilon=1.0)
    assert found.enclosure.lower <= 1e-3 == found.enclosure.upper
    with pytest.raises(OutOfRegimeError, match="delta0 = 0"):
        certify_delta(profile, num_users=50, bound=_bound(0.1), epsilon=0.5)


@pytest.mark.parametrize("num_users", [1, 2, 1000, 10**15])
@pytest.mark.parametrize("epsilon0", [0.0, 1e-12, 50.0, 250.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.3])
def test_edges(num_users, epsilon0, delta):
    profiles = [any_randomizer(epsilon0)]
    if delta != 1e-300:
        profiles.append(k_rr(epsilon0, 5))
    for profile in profiles:
        bound = account_epsilon(
            profile, num_users=num_users, delta=delta, with_lower=num_users <= 1000
        )
        found = certify_epsilon(profile, num_users=num_users, bound=bound, delta=delta)
        assert found.enclosure.upper <= delta
        assert found.lower_holds is (None if bound.lower is None else True)


def test_zero_delta_needs_no_sums():
    profile = k_rr(1.0, 3)
    bound = account_epsilon(profile, num_users=10, delta=0.0)
    found = certify_epsilon(profile, num_users=10, bound=bound, delta=0.0)
    assert (found.enclosure.upper, found.lower_holds) == (0.0, True)
    assert "likelihood ratios" in found.statement
    own = LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER)
    claimed = _bound(1.0, method="local", lower=0.5)
    assert certify_epsilon(own, num_users=10, bound=claimed, delta=0.0).lower_holds is None


@pytest.mark.parametrize("profile", every_family(1.5))
def test_every_family_both_ways(profile):
    for num_users in (1, 7):
        bound = account_delta(profile, num_users=num_users, epsilon=0.4)
        found = certify_delta(profile, num_users=num_users, bound=bound, epsilon=0.4)
        assert found.enclosure.upper <= bound.upper
        assert found.lower_holds or bound.lower is None


def test_stated_laws_count_in_both_orders():
    # The pair is not symmetric: reversed, the same atoms lose more.
    atoms = [(0.5, 1.0, 1.0), (0.2, 1.5, 1.0), (0.1, 2.0, 3.0)]
    blanket = tuple(BlanketAtom(mass=m, ratio0=r0, ratio1=r1) for m, r0, r1 in atoms)
    orders = [blanket, tuple(replace(a, ratio0=a.ratio1, ratio1=a.ratio0) for a in blanket)]
    found = []
    for each in orders:
        profile = LocalProfile(epsilon0=1.2, family=RandomizerFamily.OTHER, blanket=each)
        bound = account_delta(profile, num_users=5, epsilon=0.1, method="stated-blanket")
        found.append(certify_delta(profile, num_users=5, bound=bound, epsilon=0.1).enclosure)
    assert found[0] == found[1]


def test_explicit_data_that_a_profile_states():
    ratio = 3.0
    attack = (
        BlanketAtom(mass=0.75, ratio0=1.0, ratio1=1.0 / ratio),
        BlanketAtom(mass=0.25, ratio0=1.0, ratio1=ratio),
    )
    blanket = (
        BlanketAtom(mass=0.25, ratio0=ratio, ratio1=1.0),
        BlanketAtom(mass=0.25, ratio0=1.0, ratio1=ratio),
    )
    profile = LocalProfile(
        epsilon0=epsilon0_of(Fraction(3)),
        family=RandomizerFamily.OTHER,
        blanket=blanket,
        attack=attack,
    )
    bound = account_epsilon(profile, num_users=40, delta=1e-4)
    assert bound.lower is not None
    assert certify_epsilon(profile, num_users=40, bound=bound, delta=1e-4).lower_holds
    wrong = replace(bound, lower=bound.upper)
    with pytest.raises(PrecisionError, match="no explicit data"):
        certify_epsilon(profile, num_users=40, bound=wrong, delta=1e-4)
    # A channel may know of other data, so that it is no disproof.
    matrix = replace(profile, channel=lambda: ((0.75, 0.25), (0.25, 0.75)))
    assert certify_epsilon(matrix, num_users=40, bound=wrong, delta=1e-4).lower_holds is None


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


def test_too_much_work_names_a_size_that_is_not(monkeypatch):
    monkeypatch.setattr(engines, "MOST_OPERATIONS", 2e5)
    monkeypatch.setattr(engines, "_MOST_SUM_OPERATIONS", 1e5)
    profile = k_rr(1.0, 16)
    bound = account_epsilon(profile, num_users=3000, delta=1e-6)
    with pytest.raises(OutOfRegimeError, match=r"certify num_users = \d+ or fewer") as refused:
        certify_epsilon(profile, num_users=3000, bound=bound, delta=1e-6)
    fewer = int(str(refused.value).split("num_users = ")[2].split()[0])
    assert 10 < fewer < 3000
    bound = account_epsilon(profile, num_users=fewer, delta=1e-6)
    assert certify_epsilon(profile, num_users=fewer, bound=bound, delta=1e-6).holds
    binary = k_rr(1.0, 2)
    bound = account_epsilon(binary, num_users=5000, delta=1e-6)
    with pytest.raises(OutOfRegimeError, match="certify num_users = 1250 or fewer"):
        certify_epsilon(binary, num_users=5000, bound=bound, delta=1e-6)


def test_too_much_work_for_stated_laws(monkeypatch):
    profile = _subset_selection()
    bound = account_epsilon(profile, num_users=500, delta=1e-6)
    monkeypatch.setattr(engines, "MOST_OPERATIONS", 1e4)
    with pytest.raises(OutOfRegimeError, match=r"certify num_users = 1\d or fewer"):
        certify_epsilon(profile, num_users=500, bound=bound, delta=1e-6)


def test_balls_that_never_become_numbers_decide_nothing(monkeypatch):
    def lost(*_):
        raise PrecisionError("a ball is not finite")

    monkeypatch.setattr(engines, "upper_delta", lost)
    with pytest.raises(PrecisionError, match="in doubt"):
        certify_epsilon(any_randomizer(1.0), num_users=9, bound=_bound(0.5), delta=1e-6)
    monkeypatch.undo()
    monkeypatch.setattr(engines, "law_delta", lost)
    monkeypatch.setattr(engines, "_binary_balls", lost)
    claimed = _bound(1.0, method="local", lower=0.5)
    found = certify_epsilon(any_randomizer(1.0), num_users=9, bound=claimed, delta=1e-6)
    assert found.lower_holds is None


def test_lower_ends_too_long_to_sum_are_left_open(monkeypatch):
    profile = k_rr(1.0, 16)
    bound = account_epsilon(profile, num_users=3000, delta=1e-6)
    bound = replace(bound, method="local", upper=profile.epsilon0)
    monkeypatch.setattr(engines, "MOST_OPERATIONS", 2e5)
    monkeypatch.setattr(engines, "_MOST_SUM_OPERATIONS", 1e5)
    found = certify_epsilon(profile, num_users=3000, bound=bound, delta=1e-6)
    assert found.holds
    assert found.lower_holds is None


def test_large_crowds_prove_the_lower_end_of_binary_data(monkeypatch):
    profile = LocalProfile(epsilon0=0.5, domain_size=2)
    bound = account_epsilon(profile, num_users=10**12, delta=1e-9)
    monkeypatch.setattr(engines, "MOST_OPERATIONS", 1e7)
    shrunk = replace(bound, lower=bound.lower * (1.0 - 1e-6))
    found = certify_epsilon(profile, num_users=10**12, bound=shrunk, delta=1e-9)
    assert found.lower_holds


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
        ({"bound": _bound(0.5, "erlingsson"), "num_users": 1}, OutOfRegimeError, "num_users > 1"),
        ({"bound": _bound(float("inf"), "erlingsson")}, ParameterError, "bound.upper"),
    ],
)
def test_refusals(arguments, error, message):
    given = {"num_users": 100, "bound": _bound(0.9), "delta": 1e-6} | arguments
    with pytest.raises(error, match=message):
        certify_epsilon(any_randomizer(1.0), **given)


def test_without_the_package_it_says_which_to_install(monkeypatch):
    name = "shuffledp.accounting.certification.engines"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("shuffledp.accounting.certification.engines")
    for module in list(sys.modules):
        if module == "flint" or module.startswith(f"{name.rsplit('_', 1)[0]}_"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'shuffledp\[certify\]'"):
        certify_epsilon(any_randomizer(1.0), num_users=10, bound=_bound(1.0), delta=1e-6)


def test_other_missing_modules_are_not_blamed_on_it(monkeypatch):
    name = "shuffledp.accounting.certification.engines"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("shuffledp.accounting.certification.engines")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError) as refused:
        certify_epsilon(any_randomizer(1.0), num_users=10, bound=_bound(1.0), delta=1e-6)
    assert not isinstance(refused.value, MissingPackageError)
