import json
import math
import re
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.collection import plan as choosing
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.questions import Categories
from shuffledp.collection.run import run as run_plan
from shuffledp.core.errors import DomainError, InfeasibleTargetError, ParameterError
from shuffledp.estimation.frequencies import expected_standard_error
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer

NAMES = sorted(RANDOMIZERS)


def domain(k):
    return [f"answer {i}" for i in range(k)]


@settings(max_examples=25)
@given(
    st.floats(1.5, 6.0).map(lambda exponent: round(10.0**exponent)),
    st.integers(2, 40),
    st.floats(-1.5, 1.0).map(lambda exponent: 10.0**exponent),
    st.floats(-14.0, -2.0).map(lambda exponent: 10.0**exponent),
    st.sampled_from([None, *NAMES]),
)
def test_the_guarantee_meets_the_target(num_users, k, epsilon, delta, name):
    try:
        plan = make_plan(
            Categories(domain(k)),
            num_users=num_users,
            epsilon=epsilon,
            delta=delta,
            randomizer=name,
        )
    except InfeasibleTargetError:
        assert num_users * epsilon < 200.0
        return
    assert plan.guarantee.epsilon_upper <= epsilon
    assert plan.guarantee.delta_upper == delta
    assert plan.guarantee.num_users == num_users
    at_target = account_delta(plan.randomizer.profile, num_users=num_users, epsilon=epsilon)
    assert at_target.upper <= delta
    # nothing is given away: the guarantee comes close to the target unless epsilon0 ends at 40
    assert plan.guarantee.epsilon_upper >= 0.999 * epsilon or plan.randomizer.epsilon0 > 39.0
    assert plan.expected_standard_error <= plan.question.useless_error
    for other in plan.alternatives:
        assert 1.02 * other.expected_standard_error >= plan.expected_standard_error
        other_delta = account_delta(
            other.randomizer.profile, num_users=num_users, epsilon=epsilon, with_lower=False
        )
        assert other_delta.upper <= delta


def test_the_expected_error_is_that_of_the_randomizer():
    plan = make_plan(Categories(domain(5)), num_users=10_000, epsilon=0.5, delta=1e-8)
    variances = [
        expected_standard_error(
            support_probabilities=plan.randomizer.support_probabilities,
            num_users=10_000,
            frequency=frequency,
        )
        ** 2
        for frequency in (0.5, 0.25, 0.25, 0.0, 0.0)
    ]
    assert plan.expected_standard_error == pytest.approx(math.sqrt(sum(variances) / 5))


def test_other_trust_models():
    plan = make_plan(Categories(domain(3)), num_users=10_000, epsilon=0.5, delta=1e-8)
    assert plan.local_model.epsilon_for_same_error == plan.randomizer.epsilon0 > 0.5
    assert plan.local_model.standard_error_at_same_epsilon > plan.expected_standard_error
    assert plan.central_model.standard_error_at_same_epsilon < plan.expected_standard_error
    assert plan.central_model.epsilon_for_same_error < 0.5
    # Laplace noise of scale 2/epsilon: standard deviation sqrt(2) 2/epsilon on a count
    same = plan.central_model.epsilon_for_same_error
    assert plan.expected_standard_error == pytest.approx(math.sqrt(2.0) * 2.0 / same / 10_000)


def test_json_keys():
    plan = make_plan(Categories(domain(3)), num_users=np.int64(10_000), epsilon=0.5, delta=1e-8)
    printed = json.loads(json.dumps(plan.to_json_dict(), allow_nan=False))
    assert {
        "randomizer", "epsilon0", "guarantee", "expected_standard_error", "alternatives"
    } <= set(printed)  # fmt: skip
    assert printed["expected_for"] == "root mean square over the answers"
    both = printed["expected_standard_error"] ** 2 + 2 / 9 / 10_000
    assert printed["expected_population_standard_error"] == pytest.approx(math.sqrt(both))
    assert set(printed["guarantee"]) == {"epsilon", "delta", "method", "source", "assumptions"}
    assert printed["guarantee"]["epsilon"]["upper"] <= 0.5
    assert printed["guarantee"]["delta"] == 1e-8
    assert printed["domain"] == domain(3)
    assert printed["num_users"] == 10_000
    assert [set(each) for each in printed["alternatives"]] == [
        {"randomizer", "epsilon0", "num_report_bytes", "expected_standard_error"}
    ] * (len(RANDOMIZERS) - 1)
    assert set(printed["local_model"]) == set(printed["central_model"])


@pytest.mark.parametrize("name", NAMES)
def test_a_chosen_randomizer_is_the_one_used(name):
    plan = make_plan(
        Categories(domain(4)), num_users=5000, epsilon=0.7, delta=1e-7, randomizer=name
    )
    assert plan.randomizer.name == name
    assert plan.alternatives == ()


def check_advice(arguments, caught):
    """Feed what the message promises back in."""
    message = str(caught.value)
    enough = int(re.search(r"([\d,]+) users would do", message)[1].replace(",", ""))
    assert enough > arguments["num_users"]
    make_plan(**arguments | {"num_users": enough})
    by_epsilon = re.search(r"epsilon >= ([\d.e+-]+) with", message)
    if by_epsilon:
        large = float(by_epsilon[1])
        assert large > arguments["epsilon"]
        make_plan(**arguments | {"epsilon": large})
    return bool(by_epsilon)


@pytest.mark.parametrize("k", [2, 3, 50])
@pytest.mark.parametrize(
    ("num_users", "epsilon", "delta"),
    [(1, 0.1, 1e-9), (1, 1.0, 1e-6), (3, 0.5, 1e-9), (7, 0.3, 1e-6), (11, 0.17, 1e-4),
     (20, 0.05, 1e-12)],
)  # fmt: skip
def test_what_an_infeasible_target_advises_really_does(k, num_users, epsilon, delta):
    arguments = {"num_users": num_users, "domain": domain(k), "epsilon": epsilon, "delta": delta}
    with pytest.raises(InfeasibleTargetError) as caught:
        make_plan(**arguments)
    assert check_advice(arguments, caught)


@pytest.mark.parametrize("name", NAMES)
def test_the_advice_is_for_the_randomizer_asked_for(name):
    arguments = {
        "num_users": 5,
        "domain": domain(4),
        "epsilon": 0.3,
        "delta": 1e-8,
        "randomizer": name,
    }
    with pytest.raises(InfeasibleTargetError) as caught:
        make_plan(**arguments)
    check_advice(arguments, caught)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-12, 1e-300])
def test_hopeless_targets_are_refused_soon(epsilon, monkeypatch):
    # However many users it would take: the refusal must not take minutes, nor blame num_users for
    # being above the accountant's own limit.
    calibrated = Mock(wraps=choosing.largest_epsilon0)
    monkeypatch.setattr(choosing, "largest_epsilon0", calibrated)
    with pytest.raises(InfeasibleTargetError):
        make_plan(
            Categories(domain(2)), num_users=100, epsilon=epsilon, delta=1e-9, randomizer="k-rr"
        )
    assert 0 < calibrated.call_count <= 100


@pytest.mark.parametrize("epsilon", [12.0, 20.0, 33.0, 39.0, 45.0, 1e308])
@pytest.mark.parametrize("num_users", [10, 10**6])
def test_generous_targets(epsilon, num_users):
    plan = make_plan(Categories(domain(3)), num_users=num_users, epsilon=epsilon, delta=1e-9)
    assert plan.guarantee.epsilon_upper <= epsilon
    # Nothing is lost on the local epsilon but what multiples of 2^-64 cannot express.
    alone = make_randomizer("k-rr", k=3, epsilon0=min(epsilon, 39.9)).epsilon0
    assert plan.randomizer.epsilon0 >= alone * (1.0 - 1e-12)


@pytest.mark.parametrize("answers", [[], ["only"], ["a", "b", "a"]])
def test_unusable_domains(answers):
    with pytest.raises(DomainError):
        make_plan(Categories(answers), num_users=1000, epsilon=1.0, delta=1e-6)


def test_a_text_is_not_a_list_of_answers():
    with pytest.raises(ParameterError, match="is a single string: give a list"):
        make_plan(Categories("yes,no"), num_users=1000, epsilon=1.0, delta=1e-6)


def test_an_unknown_randomizer_gets_a_suggestion():
    with pytest.raises(ParameterError, match="symmetric-unary"):
        make_plan(
            Categories(domain(3)),
            num_users=1000,
            epsilon=1.0,
            delta=1e-6,
            randomizer="symetric-unary",
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"num_users": 0},
        {"num_users": 10.0},
        {"num_users": "10"},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"epsilon": "1"},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"delta": None},
    ],
)
def test_targets_out_of_range(changes):
    arguments = {"num_users": 100, "domain": domain(3), "epsilon": 1.0, "delta": 1e-6} | changes
    with pytest.raises(ParameterError, match=next(iter(changes))):
        make_plan(**arguments)


def test_a_plan_runs():
    plan = make_plan(Categories(["yes", "no"]), num_users=500, epsilon=1.0, delta=1e-6)
    result = run_plan(plan, ["yes"] * 300 + ["no"] * 200, seed=1)
    assert result.num_users == 500
    assert result.is_simulation
    bound = account_epsilon(plan.randomizer.profile, num_users=500, delta=1e-6)
    assert result.guarantee.epsilon_upper == pytest.approx(bound.upper, rel=1e-5)
