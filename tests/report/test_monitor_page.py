"""The report of a monitored statistic: complete, offline, and saying what is true."""

import pytest

from report.monitor_results import LOCAL, build_result
from report.pages import Page, labels, of_class
from report.pages import drawn as drawn_elements
from shuffledp.core.bound import Bound
from shuffledp.report import page_html, write_report
from shuffledp.report.monitor import (
    MOST_CURVES,
    curves_of,
    drawn,
    result_rows,
    running_figure,
    statement_paragraphs,
    table_rows,
)


def said(result):
    return dict(statement_paragraphs(result))


def test_the_page_is_complete_and_loads_nothing(tmp_path):
    path = write_report(build_result(), tmp_path / "report.html")
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    for text in (
        "Simulated monitoring of 1,000 users over 8 periods",
        "Running counts",
        "How to read it",
        "Privacy statement",
        "What was done",
        "Assumptions",
        "Cite",
        "predrawn-signs",
        "Of 8 true counts, 0 lie outside their band.",
    ):
        assert text in page.text, text
    assert ("div", "id", "chart-running") in page.attributes
    assert "script" not in page.tags
    assert not [value for _, name, value in page.attributes if name in {"src"}]


def test_a_seed_is_an_alarm_and_warnings_are_shown():
    html = page_html(build_result(is_simulation=True, warnings=("Mind <this>.",)))
    page = Page(html)
    assert ("div", "role", "alert") in page.attributes
    assert "It protects nobody" in page.text
    assert "Mind <this>." in page.text
    assert Page(page_html(build_result())).attributes.count(("div", "role", "alert")) == 0


def test_what_comes_from_outside_is_escaped():
    hostile = "<script>alert(1)</script>"
    view = build_result(
        num_curves=2, labels=[hostile, "b"], column=hostile, period_labels=(hostile, *"1234567")
    )
    page = Page(page_html(view))
    assert hostile in page.text
    assert "script" not in page.tags


def test_long_tables_can_be_closed_and_thinned_ones_say_so():
    assert "<summary>" not in page_html(build_result(8))
    assert "All 40 periods" in Page(page_html(build_result(40))).text
    page = Page(page_html(build_result(600, num_curves=40)))
    assert "25 of the periods" in page.text
    assert "the 6 largest of 40 values" in page.text
    assert "1 period " in Page(page_html(build_result(1))).text


def test_the_statement_covers_the_whole_history():
    texts = said(build_result())
    assert "all 8 periods" in texts["What the reports reveal."]
    assert "at most 4 changes" in texts["What the reports reveal."]
    assert "epsilon = 0.04321" in texts["What the reports reveal."]
    assert "are not to be multiplied" in texts["What counts as one person's data."]
    assert "factor of at most 2.72" in texts["If the shuffler fails."]


def test_true_counts_are_said_to_be_public_nowhere():
    assert "do not publish them" in said(build_result())["What is not private here."]


def test_ignored_changes_cost_accuracy_and_not_privacy():
    title = "Users who change more than 4 times."
    assert "there were none" in said(build_result())[title]
    text = said(build_result(num_ignored_changes=1, num_limited_users=1))[title]
    assert "1 change of 1 user:" in text
    assert "privacy is that of everybody else" in text
    assert "Users who change more than once." in said(build_result(max_changes=1))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "1 in 100 million"),
        ({"delta": 0.01}, "they may do so for somebody"),
        ({"delta": 0.0}, "There is none"),
        ({"central": LOCAL}, "There is none"),
    ],
)
def test_the_exception(changes, text):
    assert text in said(build_result(**changes))["The exception."]


def test_large_losses_are_called_what_they_are():
    large = Bound(lower=None, upper=6.0, method="m", source="s", assumptions=())
    text = said(build_result(central=large))["What the reports reveal."]
    assert "protects little" in text


def test_facts_begin_with_what_is_safe():
    facts = list(result_rows(build_result())["guaranteed"])
    assert facts[:3] == [
        ("Epsilon", "0.0432100 (proved upper bound)"),
        ("Gap", "not known"),
        ("Delta", "1e-8"),
    ]
    known = Bound(lower=0.04, upper=0.05, method="m", source="s", assumptions=())
    facts = list(result_rows(build_result(central=known))["guaranteed"])
    assert facts[:2] == [
        ("Epsilon", "0.0500000 (proved upper bound)"),
        ("Gap", "20.0%: no analysis can show epsilon below 0.0400000"),
    ]


def test_assumptions_of_both_guarantees_are_listed():
    text = Page(page_html(build_result())).text
    assert "With the shuffler Reports of a period and level are shuffled. Nobody links" in text
    assert "Without it Each client keeps its signs." in text


RESULTS = {
    "one": build_result(),
    "several": build_result(num_curves=3),
    "many": build_result(num_curves=9, num_periods=40),
    "single": build_result(1),
}


@pytest.mark.parametrize("name", RESULTS)
def test_charts_are_drawn(name):
    figure = running_figure(RESULTS[name])
    elements = drawn_elements(figure)
    curves = drawn(curves_of(RESULTS[name]))
    assert len(of_class(elements, "band")) == len(curves)
    traces = of_class(elements, "trace")
    assert [each.get("stroke-dasharray") for each in traces].count("7 4") == len(curves)
    assert 1 <= len(labels(elements, "xtick")) <= 8
    assert "table" in figure.description


def test_labels_that_try_something_are_shown_as_they_are():
    hostile = "<img src=x onerror=alert(1)>"
    page = Page(page_html(build_result(num_curves=2, labels=[hostile, "b"])))
    assert hostile in page.text
    assert "img" not in page.tags


def test_the_largest_curves_are_drawn_in_their_order():
    curves = drawn(curves_of(RESULTS["many"]))
    assert [each.label for each in curves] == [f"value {i}" for i in range(9 - MOST_CURVES, 9)]
    few = curves_of(build_result(num_curves=MOST_CURVES))
    assert len(drawn(few)) == MOST_CURVES


def test_rows_hold_each_period_and_value():
    result = RESULTS["one"]
    rows = table_rows(result)
    assert [row[0] for row in rows] == list(result.period_labels)
    assert rows[0][1:] == ("\u221210", "10", "\u221240 to 20", "0")
    rows = table_rows(RESULTS["several"])
    assert len(rows) == 24
    assert rows[1][1:] == ("value 1", "0", "10", "\u221230 to 30", "10")


@pytest.mark.parametrize(("num_curves", "shown"), [(1, 600), (40, 25), (200, 5)])
def test_long_tables_have_periods_spread_to_the_last(num_curves, shown):
    rows = table_rows(build_result(600, num_curves=num_curves))
    periods = sorted({int(row[0]) for row in rows})
    assert len(rows) == len(periods) * num_curves
    assert (periods[0], periods[-1], len(periods)) == (1, 600, shown)
