"""All bounds side by side."""

import copy
import json
import math
import pickle
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.accounting import compare as comparison
from shuffledp.accounting.compare import Scenario, Standing, compare_scenario
from shuffledp.accounting.profiles import named_profile
from shuffledp.amplification import registry
from shuffledp.amplification.method import Method
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.errors import LowerEndWarning, OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure

# ---------------- comparison
BASE = {"epsilon0": 1.0, "num_users": 10_000}


def by_name(compared):
    return {each.method.name: each for each in compared.bounds}


def test_a_comparison_can_be_pickled_and_copied():
    compared = compare_scenario(Scenario(**BASE, delta=1e-6))
    assert pickle.loads(pickle.dumps(compared)) == compared  # noqa: S301  # our own
    assert copy.deepcopy(compared) == compared


def planted(monkeypatch, enclose, violated=None, **changes):
    """Make the registry hold one more method, and return its name."""
    method = Method(
        name="planted",
        source="nowhere",
        statement="none",
        automatic=False,
        violated_hypothesis=lambda _profile, _num_users, _delta: violated,
        epsilon=enclose,
        delta=enclose,
        **changes,
    )
    methods = MappingProxyType({**METHODS, method.name: method})
    monkeypatch.setattr(comparison, "METHODS", methods)
    monkeypatch.setattr(registry, "METHODS", methods)
    return method.name


@pytest.mark.parametrize("asked", [{"delta": 1e-6}, {"epsilon": 0.05}])
@pytest.mark.parametrize(
    "randomizer",
    [
        {},
        {"randomizer": "k-rr", "domain_size": 2},
        {"randomizer": "k-rr", "domain_size": 16},
        {"randomizer": "duchi"},
    ],
)
def test_every_method_is_there_with_the_accountants_number(asked, randomizer):
    scenario = Scenario(**BASE, **asked, **randomizer)
    profile = named_profile(
        randomizer.get("randomizer"), epsilon0=1.0, domain_size=randomizer.get("domain_size")
    )
    compared = compare_scenario(scenario)
    assert set(by_name(compared)) == set(METHODS)
    answer = account_epsilon if "delta" in asked else account_delta
    for name in METHODS:
        each = by_name(compared)[name]
        if each.standing is Standing.OUTSIDE:
            with pytest.raises(OutOfRegimeError):
                answer(profile, num_users=10_000, method=name, **asked)
        else:
            found = answer(profile, num_users=10_000, method=name, with_lower=False, **asked)
            assert each.value == found.upper
    best = answer(profile, num_users=10_000, **asked)
    assert compared.best <= best.upper
    assert compared.lower == best.lower


@pytest.mark.parametrize("asked", [{"delta": 1e-6}, {"epsilon": 0.05}])
def test_bounds_stand_smallest_first_and_above_the_lower_end(asked):
    compared = compare_scenario(Scenario(**BASE, **asked))
    values = [each.value for each in compared.bounds if each.value is not None]
    assert values == sorted(values)
    assert [each.value for each in compared.bounds[len(values) :]].count(None) == (
        len(compared.bounds) - len(values)
    )
    assert 0.0 < compared.lower <= compared.best == values[0]
    assert compared.ratio(values[0]) == 1.0
    assert compared.ratio(2.0 * values[0]) == pytest.approx(2.0)
    assert compared.ratio(None) is None
    useful = [each.method.name for each in compared.useful]
    assert useful[-1] == "local"
    assert all(each.reason == "" for each in compared.useful)


def test_what_says_nothing_says_why():
    found = by_name(compare_scenario(Scenario(**BASE, delta=1e-6)))
    assert found["erlingsson-small"].standing is Standing.OUTSIDE
    assert found["erlingsson-small"].reason == "needs epsilon0 < 1/2"
    assert found["erlingsson"].standing is Standing.NO_GAIN
    assert found["erlingsson"].value > 1.0
    assert "'local'" in found["erlingsson"].reason


@pytest.mark.parametrize("epsilon0", [0.0, 300.0])
def test_where_the_accountant_evaluates_nothing_so_does_the_comparison(epsilon0):
    compared = compare_scenario(Scenario(epsilon0=epsilon0, num_users=10, delta=1e-6))
    assert [each.method.name for each in compared.useful] == ["local"]
    clones = by_name(compared)["clones"]
    assert clones.standing is Standing.NOT_EVALUATED
    assert clones.value is None
    assert "'local'" in clones.reason


def test_of_a_best_bound_of_zero_there_are_no_multiples():
    compared = compare_scenario(Scenario(epsilon0=1.0, num_users=10, epsilon=1.5))
    assert compared.best == compared.lower == 0.0
    assert compared.ratio(0.0) is None


def test_a_lower_end_above_a_bound_is_left_out_with_a_warning(monkeypatch):
    planted(monkeypatch, lambda _profile, _num_users, _asked: Enclosure(0.0, 1e-4))
    with pytest.warns(LowerEndWarning, match=r"'planted' gives at most 0\.0001"):
        compared = compare_scenario(Scenario(**BASE, delta=1e-6))
    assert (compared.best, compared.lower) == (1e-4, None)


def test_an_infinite_bound_is_none(monkeypatch):
    name = planted(monkeypatch, lambda _profile, _num_users, _asked: Enclosure(0.0, math.inf))
    each = by_name(compare_scenario(Scenario(**BASE, delta=1e-6)))[name]
    assert (each.standing, each.value) == (Standing.NO_BOUND, None)
    assert each.reason == "no finite bound on epsilon"


def test_a_bound_lost_in_round_off_is_none(monkeypatch):
    def lost(_profile, _num_users, _asked):
        raise PrecisionError("too wide")

    name = planted(monkeypatch, lost)
    each = by_name(compare_scenario(Scenario(**BASE, delta=1e-6)))[name]
    assert (each.standing, each.value) == (Standing.ROUND_OFF, None)


def test_the_lower_end_of_an_exact_method_counts(monkeypatch):
    planted(monkeypatch, lambda *_: Enclosure(0.0420, 0.0440), is_exact=True)
    compared = compare_scenario(Scenario(**BASE, delta=1e-6))
    assert compared.lower == 0.0420


def test_ends_that_cross_by_rounding_meet(monkeypatch):
    best = compare_scenario(Scenario(**BASE, delta=1e-6)).best
    planted(
        monkeypatch, lambda *_: Enclosure(best * (1 + 1e-10), best * (1 + 2e-10)), is_exact=True
    )
    compared = compare_scenario(Scenario(**BASE, delta=1e-6))
    assert compared.lower == compared.best == best


@pytest.mark.parametrize("asked", [{"delta": 1e-6}, {"epsilon": 0.05}])
def test_json(asked):
    compared = compare_scenario(Scenario(**BASE, **asked, randomizer="k-rr", domain_size=4))
    record = json.loads(json.dumps(compared.to_json_dict(), allow_nan=False))
    (given_name, value), (name,) = *asked.items(), {"epsilon", "delta"} - set(asked)
    assert record[given_name] == value
    assert record[name] == {"lower": compared.lower, "upper": compared.best}
    assert record["randomizer"] == "k-rr"
    assert (record["k"], record["dimension"]) == (4, None)
    assert len(record["bounds"]) == len(compared.bounds)
    first = record["bounds"][0]
    assert first["method"] == "k-rr-blanket"
    assert first[name] == compared.best
    assert first["ratio"] == 1.0
    assert first["standing"] == "bound"
    assert first["source"] == METHODS["k-rr-blanket"].source


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"delta": None}, "exactly one"),
        ({"epsilon": 0.1}, "exactly one"),
        ({"delta": 0.0}, r"delta = 0.0 is not in \(0, 1\)"),
        ({"delta": math.nan}, "delta"),
        ({"delta": None, "epsilon": -1.0}, "epsilon = -1.0"),
        ({"delta": None, "epsilon": math.inf}, "epsilon = inf"),
        ({"epsilon0": -1.0}, "epsilon0"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"num_users": 0}, "num_users"),
        ({"num_users": 1.5}, "num_users"),
        ({"randomizer": "clones"}, "'clones' is not one of"),
        ({"randomizer": "subset-selection"}, "domain_size is needed"),
        ({"domain_size": 3}, "domain_size = 3"),
        ({"dimension": 3}, "dimension = 3"),
    ],
)
def test_scenarios_out_of_range(changes, match):
    with pytest.raises(ParameterError, match=match):
        Scenario(**{**BASE, "delta": 1e-6, **changes})


def test_too_many_users_are_refused_as_the_accountant_does():
    with pytest.raises(ParameterError, match="1e\\+15"):
        compare_scenario(Scenario(epsilon0=1.0, num_users=10**15 + 1, delta=1e-6))


@pytest.mark.slow
@settings(max_examples=25)
@given(
    epsilon0=st.floats(0.0, 12.0),
    num_users=st.integers(1, 10**9),
    exponent=st.floats(-300.0, -0.01),
)
def test_no_bound_is_ever_below_the_lower_end(epsilon0, num_users, exponent):
    scenario = Scenario(epsilon0=epsilon0, num_users=num_users, delta=10.0**exponent)
    compared = compare_scenario(scenario)
    assert compared.lower is not None
    assert compared.lower <= compared.best <= epsilon0
    assert all(each.value is None or each.value >= compared.lower for each in compared.bounds)
