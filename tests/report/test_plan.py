"""The page of a plan: a valid chart, the same as a table, and nothing from the network."""

import dataclasses
import math

import pytest

import shuffledp as sdp
from collection.kinds import KINDS, NUM_USERS
from report.pages import Page, drawn
from shuffledp.collection.choices import Alternative
from shuffledp.core.errors import OutputError
from shuffledp.randomizers.registry import RANDOMIZERS
from shuffledp.report import terminal_text, write_report
from shuffledp.report.plan import figure_of_errors


@pytest.fixture(scope="module", params=KINDS)
def plan(request):
    return sdp.plan(KINDS[request.param].question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)


def test_the_chart_is_drawn(plan):
    figure = figure_of_errors(plan)
    assert drawn(figure)
    assert drawn(figure, "narrow")
    (bars,) = figure.spec["data"]
    assert len(bars["x"]) == len(bars["text"]) == len(bars["customdata"])
    assert len(bars["x"]) == 1 + len(plan.alternatives)
    assert "table" in figure.description


def test_bars_are_sorted_and_the_chosen_one_is_darker(plan):
    (bars,) = figure_of_errors(plan).spec["data"]
    colours = bars["marker"]["color"]
    assert colours.count("var(--accent)") == 1
    assert bars["x"][colours.index("var(--accent)")] == plan.expected_standard_error
    drawn = [length for length in bars["x"] if length]
    assert drawn == sorted(drawn)


def test_errors_are_in_the_unit_of_the_question(plan):
    figure = figure_of_errors(plan)
    is_mean = plan.question.kind in ("mean", "vector-mean")
    assert figure.spec["layout"]["xaxis"]["tickformat"] == ("" if is_mean else ".2%")
    shown = [text for text in figure.spec["data"][0]["text"] if "times" not in text]
    assert all(text.endswith("%") != is_mean for text in shown)


def test_the_page_is_complete_and_loads_nothing(plan, tmp_path):
    path = write_report(plan, tmp_path / "plan.html")
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert f"Plan for {plan.question.describe()}" in page.text
    for name in (plan.randomizer.name, *(each.randomizer.name for each in plan.alternatives)):
        assert name in page.text
    assert "without a shuffler" in page.text
    assert "with a trusted curator" in page.text
    loading = {"src", "href", "srcset", "data", "action", "poster", "background", "ping"}
    links = [(t, n, v) for t, n, v in page.attributes if n in loading]
    assert links == [("link", "href", "data:,")]
    assert "script" not in page.tags
    assert "Without the shuffler" in page.text
    assert len(html) < 100_000


def with_alternative(plan, error):
    first, *_ = *plan.alternatives, plan
    other = Alternative(
        randomizer=first.randomizer, expected_standard_error=error, asked_epsilon0=1.0
    )
    return dataclasses.replace(plan, alternatives=(other,))


@pytest.mark.parametrize("error", [math.inf, 1e6])
def test_errors_beyond_comparison_have_no_bar_but_a_row(plan, error, tmp_path):
    changed = with_alternative(plan, error)
    (bars,) = figure_of_errors(changed).spec["data"]
    assert bars["x"] == [plan.expected_standard_error, 0.0]
    assert bars["text"][1] == "more than 20 times the least"
    html = write_report(changed, tmp_path / "plan.html").read_text(encoding="utf-8")
    assert changed.alternatives[0].randomizer.name in Page(html).text
    assert changed.alternatives[0].randomizer.name in terminal_text(changed)


def test_a_page_that_cannot_be_written(plan, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_report(plan, tmp_path / "absent" / "plan.html")
    assert list(tmp_path.iterdir()) == []


def test_limits_and_names_are_escaped(tmp_path):
    plan = sdp.plan(sdp.VectorMean(["<b>x</b>", "y"]), num_users=1000, epsilon=1.0, delta=1e-6)
    html = write_report(plan, tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "<b>x</b>" not in html


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


def test_html_is_one_table_without_scripts(binary_plan):
    html = binary_plan._repr_html_()
    assert html.count("<table>") == 1
    assert html.count("<tr>") == 1 + len(RANDOMIZERS) + 4  # head, choices, other models
    assert "<script" not in html
    assert "\u03b5\u00a0\u2264\u00a01" in html
