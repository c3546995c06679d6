"""What the console says of a task: numbers, epsilon, results, alerts."""

import math
from dataclasses import replace

import pytest

import shuffledp as sdp
from deploy.make_vectors import make_task
from deploy.roles import HIDDEN
from report.pages import drawn, of_class
from shuffledp.collection.questions.rounds import Search
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.web import console
from shuffledp.deploy.web.console import TaskState, alerts, epsilon_among, page_facts, row_of

TASK = make_task()
DAY = TASK.epoch_seconds


def record(number, share, budget=None):
    """Return the parts of a privacy record that a console reads."""
    return {
        "num_users": 12_000,
        "confidence": 0.95,
        "guarantee": {"epsilon": {"upper": 0.11}, "delta": 1e-8},
        "parameters": {"num_honest": 10_800, "budget": budget},
        "estimates": [
            {"value": label, "frequency": each, "lower": each - 0.02, "upper": each + 0.02}
            for label, each in (("yes", share), ("no", 1.0 - share))
        ],
    }


def state_of(numbers=(), **changes):
    known = {"task": TASK, "problems": (), "records": {}, "refused": {}}
    return TaskState(numbers=dict(numbers), **known | changes)


def test_epsilon_is_that_of_the_honest_reports_that_wait():
    state = state_of({"shuffler_waiting_reports": 20_000.0})
    facts = page_facts(state, TASK.start + 1.5 * DAY)
    expected = TASK.guarantee(18_000).epsilon_upper
    assert epsilon_among(TASK, 20_000) == expected
    assert facts["figures"][0][1:] == ("20,000", "of 10,000, the least batch")
    assert facts["figures"][1][1] == f"epsilon <= {math.ceil(expected * 1e5) / 1e5:.5f}"
    assert facts["figures"][3][1] == "2 of 30"
    assert row_of(state, TASK.start)["reports"] == "20,000 of 10,000"


def test_no_number_is_made_up_for_a_shuffler_that_does_not_answer():
    silent, empty = state_of(), state_of({"shuffler_waiting_reports": 0.0})
    for state, said in ((silent, ("unknown", "unknown")), (empty, ("0", "no report"))):
        figures = page_facts(state, TASK.start)["figures"]
        assert (figures[0][1], figures[1][1]) == said
        assert row_of(state, TASK.start)["reports"] == f"{said[0]} of 10,000"


def test_the_curve_falls_as_reports_come_in_and_meets_the_promise():
    curve = page_facts(state_of(), TASK.start)["curve"]
    epsilons = [float(row[1]) for row in curve.rows]
    assert epsilons == sorted(epsilons, reverse=True)
    at = {row[0]: float(row[1]) for row in curve.rows}
    assert at["10,000"] <= float(TASK.epsilon)
    assert {line.name for line in curve.legend} == {
        "upper bound on epsilon",
        "promised",
        "epsilon0",
    }


@pytest.mark.parametrize(
    ("epsilon", "is_log"),
    [
        (lambda number: 100.0 / number, True),
        (lambda number: 0.6 if number < 10_000 else 0.4, False),
        (lambda number: 0.6 if number < 10_000 else 0.0, False),
    ],
    ids=["powers", "short", "zero"],
)
def test_the_curve_has_a_logarithmic_axis_where_it_falls_by_powers(monkeypatch, epsilon, is_log):
    monkeypatch.setattr(console, "epsilon_among", lambda _, number: epsilon(number))
    axis = page_facts(state_of(), TASK.start)["curve"].drawing.y.axis
    assert (axis.is_log, axis.has_zero) == (is_log, not is_log)


def test_batches_without_a_proved_epsilon_are_left_out_of_the_curve(monkeypatch):
    for least, rows in ((10_000, 6), (10**9, None)):
        monkeypatch.setattr(
            console,
            "epsilon_among",
            lambda _, number, least=least: 0.5 if number >= least else math.inf,
        )
        curve = page_facts(state_of(), TASK.start)["curve"]
        assert (curve and len(curve.rows)) == rows


def test_with_a_shufflers_dummies_epsilon_is_the_same_for_any_number():
    task = make_task(**HIDDEN)
    assert epsilon_among(task, 1) == epsilon_among(task, 1000) == task.guarantee().epsilon_upper
    facts = page_facts(state_of(task=task), task.start)
    assert facts["curve"] is None
    assert "whoever else lies" in dict(facts["promises"])["with the shuffler"]
    assert "without dummies" in dict(facts["promises"])


@pytest.mark.slow
def test_without_the_shuffler_all_rounds_of_a_search_count():
    search = Search("1" * 32, is_for_all=True)
    asked = replace(sdp.HeavyHitters(max_bytes=2, most=2, bits=8), search=search)
    task = make_task(**HIDDEN | {"asked": AskedTerms.of(asked, "k-rr", 3.0), "num_epochs": 1})
    facts = page_facts(state_of(task=task), task.start)
    assert facts["figures"][2][1] == "epsilon of 2 rounds = 6.000"
    assert "2 rounds = 6.000" in dict(facts["promises"])["without the shuffler"]


def test_a_single_report_has_no_epsilon_but_the_local_one():
    found = epsilon_among(TASK, 1)
    assert math.isinf(found) or found == pytest.approx(TASK.asked.randomizer.epsilon0)


def test_means_below_zero_are_drawn():
    stated = dict(record(3, 0.3))
    stated["estimates"] = [
        {"name": name, "mean": mean, "lower": mean - 1.0, "upper": mean + 1.0}
        for name, mean in (("north", -4.0), ("south", 3.0))
    ]
    figure = page_facts(state_of(records={3: stated}), TASK.start)["estimates"]["figure"]
    north, south = of_class(drawn(figure), "bar")
    end = float(north.get("x")) + float(north.get("width"))
    assert end == pytest.approx(float(south.get("x")))  # both begin at 0


def test_results_are_named_with_intervals_and_over_time():
    spent = {"epsilon": 1.0, "delta": 1e-6, "spent": 0.25, "left": 0.75}
    state = state_of(records={3: record(3, 0.3), 4: record(4, 0.34, budget=spent)})
    facts = page_facts(state, TASK.start)
    assert facts["newest"] == 4
    assert facts["estimates"]["rows"][0] == ("yes", "34.0%", "32.0% to 36.0%")
    assert [row[0] for row in facts["results"]] == ["4", "3"]
    assert len(facts["history"].legend) == 2
    assert facts["budget"][1:] == [
        ("spent", "0.25 by the analyzer up to batch 4"),
        ("left", "0.7500"),
    ]
    assert row_of(state, TASK.start)["result"] == "batch 4: 12,000 reports"


ALERTS = {
    "Keys lost or stolen": {"shuffler_key_present": 0.0},
    "Keys to come": {
        "shuffler_keys_left_seconds": 2.0 * DAY,
        "shuffler_task_left_seconds": 9.0 * DAY,
    },
    "Batch short for days": {"shuffler_short_epochs": 3.0},
    "The clock has jumped": {"shuffler_clock_believed": 0.0},
    "The analyzer refuses a batch": {"shuffler_sealed_age_seconds": DAY + 1.0},
}


@pytest.mark.parametrize("heading", sorted(ALERTS))
def test_what_needs_a_person_is_named_with_the_heading_of_the_runbook(heading):
    assert [each for each, _ in alerts(state_of(ALERTS[heading]))] == [heading]


def test_all_is_well_and_what_servers_say_is_not():
    fine = {
        "shuffler_key_present": 1.0,
        "shuffler_keys_left_seconds": 2.0 * DAY,
        "shuffler_task_left_seconds": 2.0 * DAY,
        "shuffler_clock_believed": 1.0,
    }
    assert alerts(state_of(fine)) == []
    found = alerts(state_of(fine, problems=("the disk is full",), refused={"4": "forged"}))
    assert found[0][1] == "the disk is full"
    assert found[1][1] == "The analyzer refuses batch 4: forged"
    little = {"analyzer_budget_epsilon": 1.0, "analyzer_budget_left_epsilon": 0.05}
    assert "tenth of the budget" in alerts(state_of(little))[0][1]


def test_headings_of_alerts_stand_in_the_runbook(request):
    page = (request.config.rootpath / "docs/guides/runbook.md").read_text("utf-8")
    for heading in (*ALERTS, "Is all well?"):
        assert f"## {heading}\n" in page
