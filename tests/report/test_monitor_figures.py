"""The charts of a monitored statistic, as plotly draws them."""

import json

import plotly.graph_objects as go
import pytest

from report.monitor_views import build_view
from report.pages import Page, colours_filled_in
from shuffledp.report.monitor_figures import errors_figure, legend, running_figure

VIEWS = {
    "one": build_view(),
    "several": build_view(num_curves=3),
    "many": build_view(num_curves=9, num_periods=40),
    "real": build_view(truth=False),
    "single": build_view(1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_plotly_accepts_the_charts(name):
    view = VIEWS[name]
    for figure in (running_figure(view), errors_figure(view)):
        if figure is None:
            assert not view.is_truth_known
            continue
        json.dumps(figure.spec, allow_nan=False)
        spec = colours_filled_in(figure.spec)
        go.Figure(data=spec["data"], layout=spec["layout"])
        for path in spec["narrow"]:
            axis, key = path.split(".")
            assert key in spec["layout"][axis]
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
    assert "true count" not in legend(view)


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
    assert hostile in Page(legend(view)).text
    assert "img" not in Page(legend(view)).tags
    shown = json.dumps(running_figure(view).spec)
    assert "<img" not in shown
