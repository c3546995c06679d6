"""A plan says what will be: errors are the server's, guarantees the accountant's."""

import functools
import json
import math

import numpy as np
import pytest

from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring import plan as plan_module
from shuffledp.monitoring.comparison import Verdict
from shuffledp.monitoring.plan import (
    PlanRequest,
    designs_by_gap,
    plan_monitoring,
    reason_for,
)
from shuffledp.monitoring.privacy.central import central_guarantee, local_guarantee
from shuffledp.monitoring.server import MonitorServer
from shuffledp.monitoring.signs import SIGN_LAWS, sign_law

ASKED = {
    "periods": 13,
    "max_changes": 3,
    "num_users": 40_000,  # a multiple of the 4 levels
    "delta": 1e-6,
    "epsilon0": 1.0,
}


@functools.cache
def planned(**changes):
    """Plan once what several tests look at."""
    return plan_monitoring(**{**ASKED, **changes})


@pytest.fixture
def plan():
    return planned()


@pytest.mark.parametrize("domain", [None, range(5)])
def test_errors_are_those_of_the_server(domain):
    plan = planned(domain=domain)
    design, tree = plan.design, plan.design.tree
    server = MonitorServer(design)
    columns = design.encoding.num_columns
    at_level = 40_000 // 4
    numbers = np.full(columns, at_level // columns)
    numbers[: at_level % columns] += 1  # every user of the level reports at each of its nodes
    for level in range(1, tree.num_levels + 1):
        for position in range(1, tree.nodes_at(level) + 1):
            server.ingest_sums(level, position * tree.length(level), numbers % 2, numbers)
    for method, expected in plan.errors.items():
        found = server.running_counts(13, method=method, confidence=0.95)
        errors = found.standard_errors.reshape(13, -1)
        assert np.allclose(errors, expected.standard_errors[:, None], rtol=1e-9)
        half = (found.upper - found.lower).reshape(13, -1) / 2.0
        assert np.allclose(half, expected.simultaneous_half_widths[:, None], rtol=1e-9)
        alone = server.running_counts(13, method=method, confidence=0.95, simultaneous=False)
        half = (alone.upper - alone.lower).reshape(13, -1) / 2.0
        assert np.allclose(half, expected.pointwise_half_widths[:, None], rtol=1e-9)
    smoothed = server.running_counts(13, smoothed=True).standard_errors.reshape(13, -1)
    assert np.allclose(smoothed, plan.smoothed_standard_errors[:, None], rtol=1e-9)


def test_errors_of_the_cover_in_closed_form(plan):
    design = plan.design
    nodes = np.array([t.bit_count() for t in range(1, 14)])
    closed = np.sqrt(40_000 * 4 * nodes) / design.law.gap
    found = plan.errors["cover"]
    assert np.allclose(found.standard_errors, closed)
    assert found.worst == pytest.approx(closed.max())
    assert found.mean == pytest.approx(closed.mean())
    assert found.root_mean_square == pytest.approx(math.sqrt((closed**2).mean()))
    least = plan.errors["least-squares"]
    assert np.all(least.standard_errors <= found.standard_errors * (1.0 + 1e-12))
    assert np.all(plan.smoothed_standard_errors <= least.standard_errors * (1.0 + 1e-9))
    for each in plan.errors.values():
        # Bernstein's inequality needs no normal law, and so cannot be below one
        assert np.all(each.proven > each.simultaneous_half_widths)
        assert np.all(each.simultaneous_half_widths >= each.pointwise_half_widths)
        assert each.pointwise_quantile == pytest.approx(1.959964, abs=1e-6)


def test_guarantees_are_those_of_the_accountant(plan):
    profile = plan.design.profile
    assert plan.local == local_guarantee(profile)
    assert plan.central == central_guarantee(profile, num_users=40_000, delta=1e-6)
    assert plan.central.upper < plan.local.upper <= 1.0
    seen = planned(level_hidden=False)
    assert seen.central.upper > plan.central.upper
    assert seen.central == central_guarantee(
        profile, num_users=40_000, delta=1e-6, level_hidden=False
    )
    columns = planned(domain=range(5))
    assert columns.bits_per_report == 2 + 3 + 1
    assert columns.central == central_guarantee(
        columns.design.profile, num_users=40_000, delta=1e-6, changing_share=0.5
    )


def test_reports_and_bits(plan):
    # levels with 13, 6, 3 and 1 nodes
    assert plan.reports_per_user == 23 / 4
    assert plan.bits_per_report == 3
    assert plan.bits_per_user == 69 / 4


def test_the_law_with_the_smallest_error_is_taken(plan):
    gaps = {name: sign_law(name, max_changes=3, epsilon0=1.0).gap for name in SIGN_LAWS}
    assert [each.protocol for each in plan.considered] == sorted(gaps, key=lambda name: -gaps[name])
    assert plan.design.law.gap == max(gaps.values())
    assert plan.reason.startswith(f"{plan.design.protocol} has the smallest error")
    asked = plan_monitoring(**ASKED, protocol="sampled-change")
    assert asked.design.protocol == "sampled-change"
    assert asked.reason == "sampled-change was asked for."
    assert len(asked.considered) == 1
    assert asked.errors["cover"].worst > plan.errors["cover"].worst


def test_one_change_leaves_no_choice():
    one = plan_monitoring(**{**ASKED, "max_changes": 1}, protocol="auto")
    assert "have the same error here" in one.reason


def test_with_many_changes_only_one_law_is_left():
    many = plan_monitoring(**{**ASKED, "periods": 70, "max_changes": 63})
    assert many.design.protocol == "sampled-change"
    assert many.reason == "sampled-change is the only one for 63 changes."


def test_a_central_target_is_met():
    asked = {"epsilon0": None, "epsilon": 0.05, "num_users": 10_000}
    plan = planned(**asked)
    assert plan.asked_epsilon == 0.05
    assert plan.central.upper <= 0.05
    assert plan.central.upper == pytest.approx(0.05, rel=0.01)
    # a little more local loss would break the target
    request = PlanRequest(**{**ASKED, **asked})
    protocol, epsilon0 = plan.design.protocol, plan.design.epsilon0
    assert request.can_meet(protocol, epsilon0)
    assert not request.can_meet(protocol, 1.01 * epsilon0)
    without = PlanRequest(**ASKED)
    assert without.can_meet(protocol, 40.0)
    looser = planned(**{**asked, "epsilon": 0.1})
    assert looser.errors["cover"].worst < plan.errors["cover"].worst


@pytest.mark.parametrize(("max_changes", "epsilon"), [(1, 0.05), (3, 0.02), (3, 0.2)])
def test_laws_that_are_not_worked_out_have_the_larger_error(max_changes, epsilon):
    asked = {**ASKED, "max_changes": max_changes, "epsilon0": None, "epsilon": epsilon}
    request = PlanRequest(**asked)
    designs = designs_by_gap(request, "auto")
    every = [request.design(name) for name in SIGN_LAWS]
    assert designs[0].law.gap == pytest.approx(max(each.law.gap for each in every), rel=1e-5)
    reason = reason_for(designs, request, None)
    assert ("at this central guarantee" in reason) == (len(designs) == 1)
    assert reason_for(designs, request, designs[0].protocol).endswith("was asked for.")


def test_a_law_is_worked_out_where_it_might_be_better(monkeypatch):
    # as if the laws were tried the other way round: then the better one comes second
    monkeypatch.setattr(
        plan_module, "SIGN_LAWS", {name: SIGN_LAWS[name] for name in reversed(SIGN_LAWS)}
    )
    asked = {**ASKED, "epsilon0": None, "epsilon": 0.05}
    request = PlanRequest(**asked)
    designs = designs_by_gap(request, None)
    assert [each.protocol for each in designs] == list(SIGN_LAWS)
    assert "predrawn-signs has the smallest error" in reason_for(designs, request, None)


def test_more_users_help_everybody(plan):
    more = plan_monitoring(**{**ASKED, "num_users": 160_000})
    assert more.central.upper < plan.central.upper
    assert np.allclose(
        more.errors["cover"].standard_errors, 2.0 * plan.errors["cover"].standard_errors
    )


def test_the_comparison_is_at_the_same_guarantees(plan):
    compared = plan.comparison
    assert compared.standard_error == plan.errors["least-squares"].root_mean_square
    assert compared.local_epsilon == plan.design.epsilon0
    assert compared.everybody_local.local_epsilon == plan.design.epsilon0
    assert compared.everybody_central.central.upper <= plan.central.upper
    assert compared.few_answers.central.upper <= plan.central.upper
    assert compared.few_answers.local_epsilon <= plan.design.epsilon0
    seen = planned(level_hidden=False).comparison
    assert seen.few_answers.name != compared.few_answers.name


def test_few_periods_are_repeated_and_many_are_monitored():
    few = plan_monitoring(**{**ASKED, "periods": 4, "max_changes": 4})
    assert few.verdict is Verdict.REPEAT
    many = plan_monitoring(**{**ASKED, "periods": 1024, "max_changes": 1})
    assert many.verdict is Verdict.MONITOR
    assert many.advice[0].startswith("Monitor: no ")


def test_one_period():
    plan = plan_monitoring(**{**ASKED, "periods": 1, "max_changes": 1})
    assert plan.verdict is Verdict.ONE_SHOT
    assert "shuffledp run" in plan.advice[0]
    # one level, one node, no smoothing
    assert plan.reports_per_user == 1.0
    assert plan.errors["cover"].worst == pytest.approx(200.0 / plan.design.law.gap)


def test_a_user_alone():
    plan = plan_monitoring(**{**ASKED, "num_users": 1})
    assert plan.central.upper <= plan.local.upper
    assert any("drowns" in caution for caution in plan.cautions)


def test_cautions(plan):
    assert plan.cautions == ()
    delta, bare = planned(epsilon0=12.0, delta=0.1).cautions
    assert "1/num_users" in delta
    assert "only the shuffler" in bare


def test_where_delta_pays_for_everything():
    plan = plan_monitoring(**{**ASKED, "epsilon0": 0.1, "delta": 0.99})
    assert plan.central.upper == 0.0
    assert plan.comparison.central_epsilon > 0.0
    json.dumps(plan.to_dict(), allow_nan=False)


def test_what_programs_read(plan):
    record = plan.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["periods"] == 13
    assert record["central"]["upper"] == plan.central.upper
    assert record["errors"]["cover"]["worst_standard_error"] == plan.errors["cover"].worst
    assert len(record["errors"]["cover"]["proven_errors"]) == 13
    assert record["comparison"]["verdict"] == str(plan.verdict)
    assert record["considered"][0]["protocol"] == record["protocol"]


def test_arrays_are_read_only(plan):
    with pytest.raises(ValueError, match="read-only"):
        plan.errors["cover"].standard_errors[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        plan.smoothed_standard_errors[0] = 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 1.0}, "give exactly one"),
        ({"epsilon0": None}, "give exactly one"),
        ({"epsilon0": 0.0}, "epsilon0"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"epsilon0": math.inf}, "epsilon0"),
        ({"epsilon0": 1e-25}, "say nothing"),
        ({"epsilon0": None, "epsilon": 0.0}, "epsilon"),
        ({"periods": 0}, "periods"),
        ({"periods": 2.5}, "periods"),
        ({"periods": 2**20 + 1}, "longer periods"),
        ({"max_changes": 0}, "max_changes"),
        ({"max_changes": 14}, "max_changes"),
        ({"num_users": 0}, "num_users"),
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"protocol": "magic"}, "protocol"),
    ],
)
def test_arguments_out_of_range(changes, words):
    with pytest.raises(ParameterError, match=words) as caught:
        plan_monitoring(**{**ASKED, **changes})
    assert "\n" not in str(caught.value)


def test_a_domain_that_cannot_be_used():
    with pytest.raises(DomainError):
        plan_monitoring(**ASKED, domain=["a", "a"])
