"""The chart of all bounds: valid, with gaps where nothing is said, and a legend in words."""

import json
import math

import plotly.graph_objects as go
import pytest

from report.pages import Page, colours_filled_in
from shuffledp.collection.bounds import Over, Scenario, bound_curves
from shuffledp.report.bounds_figure import (
    COLOURS,
    bounds_figure,
    legend,
    position_text,
    series_of,
)

ASKED = {
    "epsilon": Scenario(epsilon0=1.0, num_users=10_000, delta=1e-6),
    "delta": Scenario(epsilon0=1.0, num_users=10_000, epsilon=0.1),
}


@pytest.fixture(scope="module", params=[(name, over) for name in ASKED for over in Over], ids=str)
def curves(request):
    name, over = request.param
    return bound_curves(ASKED[name], over)


def test_plotly_accepts_the_chart(curves):
    figure = bounds_figure(curves)
    json.dumps(figure.spec, allow_nan=False)
    spec = colours_filled_in(figure.spec)
    go.Figure(data=spec["data"], layout=spec["layout"])
    assert "table" in figure.description


def test_a_trace_for_each_curve_and_a_dashed_one_below(curves):
    traces = bounds_figure(curves).spec["data"]
    assert [trace["name"] for trace in traces] == [each.name for each in series_of(curves)]
    assert [trace["name"] for trace in traces if trace["line"]["dash"] == "dash"] == ["lower end"]
    for trace in traces:
        assert trace["connectgaps"] is False
        assert len(trace["x"]) == len(trace["y"]) == len(trace["customdata"])
        assert all(value is None or value > 0.0 for value in trace["y"])
    styles = [(trace["line"]["color"], trace["line"]["dash"]) for trace in traces]
    assert len(set(styles)) == len(styles)


def test_axes_are_logarithmic_and_the_scenario_is_marked(curves):
    layout = bounds_figure(curves).spec["layout"]
    assert layout["xaxis"]["type"] == layout["yaxis"]["type"] == "log"
    here = getattr(curves.here.scenario, curves.over.field)
    assert (layout["shapes"][0]["x0"], layout["shapes"][0]["x1"]) == (here, here)
    ends = (curves.positions[0], curves.positions[-1])
    ticks = layout["xaxis"]["tickvals"]
    assert (ticks[0], ticks[-1]) == ends
    assert len(ticks) == len(layout["xaxis"]["ticktext"])
    if "range" in layout["yaxis"]:
        assert layout["yaxis"]["range"] == [-30.0, 0]
    else:
        assert curves.here.scenario.asked == "epsilon"


def test_the_legend_has_words_and_numbers_for_every_curve(curves):
    page = Page(legend(curves))
    assert page.tags.count("li") == page.tags.count("svg") == len(series_of(curves))
    for each in series_of(curves)[:-1]:
        assert f"{each.name}: " in page.text
    assert "no analysis can go below" in page.text
    assert "says nothing here" in page.text


def test_without_a_lower_end_there_is_no_curve_for_it():
    curves = bound_curves(Scenario(epsilon0=250.0, num_users=100, delta=1e-6), Over.NUM_USERS)
    assert [each.name for each in series_of(curves)] == ["local"]
    assert bounds_figure(curves).spec["layout"]["yaxis"]["nticks"] == 8


def test_a_chart_without_any_curve_is_still_a_chart():
    curves = bound_curves(Scenario(epsilon0=0.0, num_users=100, delta=1e-6), Over.NUM_USERS)
    figure = bounds_figure(curves)
    assert figure.spec["data"] == []
    spec = colours_filled_in(figure.spec)
    go.Figure(data=spec["data"], layout=spec["layout"])


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return math.fsum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#ffffff", "#14171b"])  # --page of report.css, light and dark
@pytest.mark.parametrize("colour", COLOURS)
def test_colours_can_be_seen_on_both_pages(colour, page):
    low, high = sorted((luminance(colour), luminance(page)))
    assert (high + 0.05) / (low + 0.05) >= 3.0


@pytest.mark.parametrize(
    ("position", "text"),
    [(100.0, "100"), (2e3, "2k"), (1e6, "1M"), (5e9, "5B"), (1e12, "1T")],
)
def test_short_numbers_of_users(position, text):
    assert position_text(position, Over.NUM_USERS, short=True) == text
    assert position_text(position, Over.NUM_USERS) == f"{int(position):,} users"
    assert position_text(0.5, Over.EPSILON0, short=True) == "0.5"
