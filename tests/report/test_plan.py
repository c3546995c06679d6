"""Figures and tables of a plan, and known deployments: complete rows, and the nearest by ratio."""

import dataclasses
import math

import pytest

import shuffledp as sdp
from collection.kinds import KINDS, NUM_USERS
from report.pages import drawn, labels, of_class
from shuffledp.collection.choices import Alternative
from shuffledp.randomizers.registry import RANDOMIZERS
from shuffledp.report import terminal_text
from shuffledp.report.plan import PRECEDENTS, figure_of_errors, nearest, plan_table
from shuffledp.report.wording import randomizer_title


@pytest.fixture(scope="module", params=KINDS)
def plan(request):
    return sdp.plan(KINDS[request.param].question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)


def test_a_bar_a_randomizer_sorted_and_the_chosen_one_is_darker(plan):
    figure = figure_of_errors(plan)
    elements = drawn(figure)
    bars, texts = of_class(elements, "bar"), labels(elements, "beside")
    assert len(bars) == len(texts) == 1 + len(plan.alternatives)
    assert "table" in figure.description
    styles = [bar.get("style") for bar in bars]
    assert styles.count("fill:var(--accent)") == 1
    chosen = bars[styles.index("fill:var(--accent)")]
    assert randomizer_title(plan.randomizer) in chosen.find("title").text
    widths = [float(bar.get("width")) for bar in bars if float(bar.get("width"))]
    assert widths == sorted(widths)
    is_mean = plan.question.kind in ("mean", "vector-mean", "mean-by-group")
    shown = [text for text in texts if "times" not in text]
    assert all(text.endswith("%") != is_mean for text in shown)
    assert all(("%" in text) != is_mean for text in labels(elements, "xtick"))


def with_alternative(plan, error):
    first, *_ = *plan.alternatives, plan
    other = Alternative(
        randomizer=first.randomizer, expected_standard_error=error, asked_epsilon0=1.0
    )
    return dataclasses.replace(plan, alternatives=(other,))


@pytest.mark.parametrize("error", [math.inf, 1e6])
def test_errors_beyond_comparison_have_no_bar_but_a_row(plan, error):
    changed = with_alternative(plan, error)
    elements = drawn(figure_of_errors(changed))
    assert [float(bar.get("width")) > 0.0 for bar in of_class(elements, "bar")] == [True, False]
    assert labels(elements, "beside")[1] == "more than 20 times the least"
    assert changed.alternatives[0].randomizer.name in terminal_text(changed)


@pytest.fixture(scope="module")
def binary_plan():
    return sdp.plan(sdp.Categories(["yes", "no"]), num_users=10_000, epsilon=1.0, delta=1e-7)


def test_text_lists_every_choice(binary_plan):
    text = str(binary_plan)
    assert text.startswith("10,000 users, ")
    assert "epsilon <= 1" in text
    names = [
        binary_plan.randomizer.name,
        *(other.randomizer.name for other in binary_plan.alternatives),
    ]
    assert len(names) == len(RANDOMIZERS)
    assert all(name in text for name in names)
    assert "without a shuffler" in text
    assert "with a trusted curator" in text


def test_others_at_the_limit_on_epsilon0_spend_at_most_the_target():
    how = {"num_users": 10_000, "epsilon": 1.0, "delta": 1e-7, "max_epsilon0": 2.0}
    _, rows = plan_table(sdp.plan(sdp.Categories(["yes", "no"]), **how))
    chosen, *others = rows[: len(RANDOMIZERS)]
    assert float(chosen[-1]) < 0.5
    assert {each[-1] for each in others} == {"<= 1"}


def test_html_is_one_table_without_scripts(binary_plan):
    html = binary_plan._repr_html_()
    assert html.count("<table>") == 1
    assert html.count("<tr>") == 1 + len(RANDOMIZERS) + 4  # head, choices, other models
    assert "<script" not in html
    assert "\u03b5\u00a0\u2264\u00a01" in html


@pytest.fixture(scope="module")
def hidden_plan():
    return sdp.plan(
        sdp.Categories(range(16)),
        num_users=10_000,
        epsilon=1.0,
        delta=1e-6,
        dummies="best",
        no_local_noise=True,
        frequency=0.3,
    )


@pytest.mark.slow
def test_a_plan_with_dummies_states_three_guarantees_and_all_errors(hidden_plan):
    text, shown = str(hidden_plan), hidden_plan._repr_html_()
    for part in (
        "432 expected in all, 0.043 a user, laplace:2.0:27; about 0.043 s of one processor",
        "if the shuffler colludes with nobody; any number of users, whatever the others send",
        ", if the reports are shuffled and no dummies added",
        "the shuffler and the analyst together would see every answer",
        "sampling",
        "at 30%",
        "shuffler's dummies",
        "users' dummies",
    ):
        assert part in text
        assert part in shown.replace("&#39;", "'").replace("\u00a0", " ")


@pytest.mark.slow
def test_what_is_left_without_the_shuffler_is_of_all_rounds():
    asked = {"num_users": 10_000, "epsilon": 1.0, "delta": 1e-6, "rounds": 3}
    text = str(sdp.plan(sdp.Categories(range(4)), dummies="shuffler", max_epsilon0=8.0, **asked))
    assert "no shuffler: epsilon of 3 rounds = 24.0" in text
    assert "expected in each round, " in text


def test_each_row_has_the_error_of_a_frequent_answer_and_of_sampling(hidden_plan):
    headings, rows = plan_table(hidden_plan)
    assert headings == ("", "epsilon0", "error", "at 30%", "sampling", "epsilon")
    assert {len(row) for row in rows} == {len(headings)}
    found = {name: row for name, *row in rows}
    assert found["chosen: shuffler's dummies"] == [
        "infinity", "0.027%", "0.027%", "0.458%", "1"
    ]  # fmt: skip
    assert found["or k-rr"][1:4] == ["0.088%", "0.144%", "0.458%"]
    assert found["with a trusted curator"][1:4] == ["0.027%", "0.027%", "0.458%"]
    worst = dataclasses.replace(hidden_plan, frequency=None)
    assert plan_table(worst)[0][3] == "worst case"
    mean = sdp.plan(sdp.Mean(0, 1), num_users=100, epsilon=1.0, delta=1e-6)
    assert plan_table(mean)[0] == ("", "epsilon0", "bytes", "standard error", "epsilon")


def test_each_has_its_unit_and_its_source():
    for each in PRECEDENTS:
        assert all((each.name, each.unit, each.source))
        assert each.epsilon > 0
        assert 0 <= each.delta < 1
        assert 2014 < each.year < 2027
    assert PRECEDENTS[1].title == "Apple, health data types (2017)"
    assert PRECEDENTS[1].parameters == "local epsilon 2 for each report"
    assert "central epsilon 1, delta 1.5e-7 for each user" in PRECEDENTS[5].parameters


def test_the_nearest_are_of_one_kind_and_nearest_by_ratio():
    assert [each.epsilon for each in nearest(3.0, is_local=True)] == [2.0, 4.0]
    assert [each.epsilon for each in nearest(1e-9, is_local=False, most=1)] == [1.0]
    assert [each.epsilon for each in nearest(500.0, is_local=False)] == [17.14, 34.9]
