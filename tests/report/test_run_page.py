"""The code at the end of a report runs, and gives the same guarantee and the same law again."""

import re

import pytest

import shuffledp as sdp
from collection.kinds import KINDS, NUM_USERS
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.run import run as run_plan
from shuffledp.report.run_page import python_code

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class DoubledResponse(sdp.randomizers.KRandomizedResponse):
    """A randomizer that nobody registered."""

    __slots__ = ()
    name = "doubled"


def executed(code, values, seed=1):
    """Run the code as a reader would, once the values are there and the seed is filled in."""
    names = {"values": values}
    exec(code.replace("seed=...", f"seed={seed}"), names)  # noqa: S102  # what readers run
    return names


@EACH
def test_the_code_plans_and_runs_the_same(kind, capsys):
    plan = sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, kind.values, seed=1)
    names = executed(python_code(result), kind.values)
    printed = capsys.readouterr().out.strip()
    again = sdp.account(result.randomizer.profile, num_users=NUM_USERS, delta=1e-6)
    assert printed == repr(again.bound)
    assert again.epsilon_upper == pytest.approx(result.guarantee.epsilon_upper, rel=1e-5)
    assert names["law"] == result.randomizer
    assert names["law"].fingerprint == result.randomizer.fingerprint
    assert names["question"] == result.question
    assert names["plan"].randomizer.fingerprint == result.randomizer.fingerprint
    assert names["plan"].guarantee == plan.guarantee
    assert names["result"].to_json_dict() == result.to_json_dict()


@EACH
def test_a_named_randomizer_is_named_again(kind):
    name = list(kind.question.candidates())[-1]
    plan = sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6, randomizer=name)
    code = python_code(sdp.run(plan, kind.values))
    assert f"randomizer={name!r}" in code
    assert "seed" not in code
    assert executed(code, kind.values)["plan"].randomizer == plan.randomizer


def test_a_fixed_epsilon0_is_met_by_planning_for_its_epsilon():
    kind = KINDS["frequencies"]
    setting = make_plan(
        kind.question, num_users=NUM_USERS, randomizer="k-rr", epsilon0=2.0, delta=1e-6
    )
    result = run_plan(setting, kind.values, seed=1)
    names = executed(python_code(result), kind.values)
    assert names["law"] == setting.randomizer
    assert names["plan"].randomizer.epsilon0 == pytest.approx(2.0, rel=1e-4)


def test_a_class_of_ones_own_is_imported(monkeypatch):
    import sys

    # The name by which the code will find this module.
    monkeypatch.setitem(sys.modules, DoubledResponse.__module__, sys.modules[__name__])
    kind = KINDS["frequencies"]
    plan = sdp.plan(
        sdp.Categories(kind.question.domain, own=[DoubledResponse]),
        num_users=NUM_USERS,
        epsilon=1.0,
        delta=1e-6,
    )
    code = python_code(sdp.run(plan, kind.values, seed=1))
    assert "own=(DoubledResponse,)" in code
    assert executed(code, kind.values)["plan"].randomizer == plan.randomizer


def test_a_list_that_is_too_long_is_left_out_and_the_rest_is_python(make_result):
    result = make_result([f"answer number {i}" for i in range(1000)], num_users=10**6)
    code = python_code(result)
    compile(code, "report", "exec")
    assert "question = sdp.Categories(domain=[...])" in code
    assert max(map(len, code.splitlines())) < 500
    short = python_code(make_result())
    assert "domain=('never', 'once or twice'" in short


def test_hostile_labels_stay_text_in_the_code(make_result):
    domain = ["'); raise SystemExit(1); ('", '"""', "\\", "a\nb", "\u202e"]
    code = python_code(make_result(domain))
    listed = re.search(r"question = (sdp\..*)", code)[1]
    assert eval(listed, {"sdp": sdp}).domain == tuple(domain)  # noqa: S307  # our own code
