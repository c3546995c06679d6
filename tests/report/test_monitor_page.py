"""The report of a monitored statistic: complete, offline, and saying what is true."""

import json

import pytest

from report.monitor_views import CENTRAL, LOCAL, build_view, infinite
from report.pages import Page, drawn
from shuffledp.core.bound import Bound
from shuffledp.core.errors import OutputError
from shuffledp.report import page_html, write_report
from shuffledp.report.monitor_page import (
    errors_figure,
    running_figure,
    statement_facts,
    statement_paragraphs,
)


def said(view):
    return dict(statement_paragraphs(view))


def test_the_page_is_complete_and_loads_nothing(tmp_path):
    path = write_report(build_view(), tmp_path / "report.html")
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
        "Reproduce and cite",
        "predrawn-signs",
        "Of 8 true counts, 0 lie outside their band.",
    ):
        assert text in page.text, text
    for name in ("chart-running", "chart-errors"):
        assert ("div", "id", name) in page.attributes
    assert "script" not in page.tags
    assert not [value for _, name, value in page.attributes if name in {"src"}]


def test_a_page_without_truth_says_nothing_of_simulations():
    page = Page(page_html(build_view(truth=False)))
    assert "Monitoring of 1,000 users over 8 periods" in page.text
    assert ("div", "id", "chart-errors") not in page.attributes
    assert "imulat" not in page.text


def test_a_seed_is_an_alarm_and_warnings_are_shown():
    html = page_html(build_view(is_seeded=True, warnings=("Mind <this>.",)))
    page = Page(html)
    assert ("div", "role", "alert") in page.attributes
    assert "It protects nobody" in page.text
    assert "Mind <this>." in page.text
    assert Page(page_html(build_view())).attributes.count(("div", "role", "alert")) == 0


def test_what_comes_from_outside_is_escaped():
    hostile = "<script>alert(1)</script>"
    view = build_view(
        num_curves=2, labels=[hostile, "b"], what=hostile, periods=(hostile, *"1234567")
    )
    page = Page(page_html(view))
    assert hostile in page.text
    assert "script" not in page.tags


def test_long_tables_can_be_closed_and_thinned_ones_say_so():
    assert "<summary>" not in page_html(build_view(8))
    assert "All 40 periods" in Page(page_html(build_view(40))).text
    page = Page(page_html(build_view(600, num_curves=40)))
    assert "25 of the periods" in page.text
    assert "the 6 largest of 40 values" in page.text
    assert "1 period " in Page(page_html(build_view(1))).text


def test_the_statement_covers_the_whole_history():
    texts = said(build_view())
    assert "all 8 periods" in texts["What the reports reveal."]
    assert "at most 4 changes" in texts["What the reports reveal."]
    assert "epsilon = 0.04321" in texts["What the reports reveal."]
    assert "are not to be multiplied" in texts["What counts as one person's data."]
    assert "factor of at most 2.72" in texts["If the shuffler fails."]
    assert "who reports at which level" not in texts["What the reports reveal."]
    seen = said(build_view(is_level_hidden=False))["What the reports reveal."]
    assert "who reports at which level" in seen


def test_true_counts_are_said_to_be_public_nowhere():
    assert "do not publish them" in said(build_view())["What is not private here."]
    assert "What is not private here." not in said(build_view(truth=False))


def test_ignored_changes_cost_accuracy_and_not_privacy():
    title = "Users who change more than 4 times."
    assert "there were none" in said(build_view())[title]
    text = said(build_view(num_ignored_changes=1, num_users_with_ignored=1))[title]
    assert "1 change of 1 user:" in text
    assert "privacy is that of everybody else" in text
    assert "Users who change more than once." in said(build_view(max_changes=1))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "1 in 100 million"),
        ({"delta": 0.01}, "it may fail for somebody"),
        ({"delta": 0.0}, "There is none"),
        ({"central": LOCAL}, "There is none"),
    ],
)
def test_the_exception(changes, text):
    assert text in said(build_view(**changes))["The exception."]


def test_large_and_infinite_losses_are_called_what_they_are():
    large = Bound(lower=None, upper=6.0, method="m", source="s", assumptions=())
    text = said(build_view(central=large))["What the reports reveal."]
    assert "protects little" in text
    text = said(build_view(central=infinite(CENTRAL)))["What the reports reveal."]
    assert "no finite epsilon" in text


def test_facts_begin_with_what_is_safe():
    facts = statement_facts(build_view())
    assert facts[0] == ("Proved upper bound", "epsilon <= 0.04321 at delta = 1e-8")
    assert facts[1] == ("Proved unavoidable", "not known")
    known = Bound(lower=0.04, upper=0.05, method="m", source="s", assumptions=())
    facts = statement_facts(build_view(central=known))
    assert facts[1:3] == [("Proved unavoidable", "epsilon >= 0.04000"), ("Gap", "20.0%")]


def test_assumptions_of_both_guarantees_are_listed():
    text = Page(page_html(build_view())).text
    assert "With the shuffler Reports of a period and level are shuffled. Nobody links" in text
    assert "Without it Each client keeps its signs." in text


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_report(build_view(), tmp_path / "missing" / "report.html")


VIEWS = {
    "one": build_view(),
    "several": build_view(num_curves=3),
    "many": build_view(num_curves=9, num_periods=40),
    "real": build_view(truth=False),
    "single": build_view(1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_charts_are_drawn(name):
    view = VIEWS[name]
    for figure in (running_figure(view), errors_figure(view)):
        if figure is None:
            assert not view.is_truth_known
            continue
        assert drawn(figure)
        assert drawn(figure, "narrow")
        for path in figure.spec["narrow"]:
            axis, key = path.split(".")
            assert key in figure.spec["layout"][axis]
        assert "table" in figure.description


def test_the_band_goes_forth_above_and_back_below():
    view = VIEWS["one"]
    band, estimates, truth = running_figure(view).spec["data"]
    (curve,) = view.curves
    assert band["x"] == [*range(1, 9), *range(8, 0, -1)]
    assert band["y"][:8] == curve.upper.tolist()
    assert band["y"][8:] == curve.lower.tolist()[::-1]
    assert band["fill"] == "toself"
    assert estimates["y"] == curve.estimates.tolist()
    assert truth["y"] == curve.truth.tolist()
    assert truth["line"]["dash"] == "dash"
    assert "true: 0" in estimates["customdata"][0]


def test_errors_lie_in_the_widest_band():
    view = VIEWS["several"]
    band, *errors = errors_figure(view).spec["data"]
    assert band["y"] == pytest.approx([30.0] * 8 + [-30.0] * 8)
    assert [line["y"] for line in errors] == [pytest.approx([-10.0, 10.0] * 4)] * 3


def test_without_the_truth_there_is_none_and_no_errors():
    view = VIEWS["real"]
    assert errors_figure(view) is None
    assert len(running_figure(view).spec["data"]) == 2
    assert not any("true count" in entry.text for entry in running_figure(view).legend)


def test_a_single_period_is_a_mark():
    assert {trace["mode"] for trace in running_figure(VIEWS["single"]).spec["data"][1:]} == {
        "markers"
    }


def test_labels_along_the_axis_are_few_and_fewer_on_a_phone():
    spec = running_figure(VIEWS["many"]).spec
    assert len(spec["layout"]["xaxis"]["tickvals"]) <= 8
    assert len(spec["narrow"]["xaxis.tickvals"]) <= 4
    assert spec["layout"]["xaxis"]["ticktext"][0] == "1"


def test_labels_that_try_something_are_shown_as_they_are():
    hostile = "<img src=x onerror=alert(1)>"
    view = build_view(num_curves=2, labels=[hostile, "b"])
    page = Page(page_html(view))
    assert hostile in page.text
    assert "img" not in page.tags
    shown = json.dumps(running_figure(view).spec)
    assert "<img" not in shown
