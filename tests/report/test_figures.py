import json
import math
from html import unescape

import numpy as np
import plotly.graph_objects as go
import pytest

from report.pages import colours_filled_in
from shuffledp.report.figures import (
    MOST_BARS,
    figure_by_honest_share,
    figure_by_num_users,
    figure_of_estimates,
)

MAKERS = (figure_of_estimates, figure_by_num_users, figure_by_honest_share)


@pytest.mark.parametrize("make", MAKERS)
def test_plotly_accepts_every_entry(make_result, make):
    spec = colours_filled_in(make(make_result()).spec)
    go.Figure(data=spec["data"], layout=spec["layout"])  # refuses unknown or ill-typed entries


@pytest.mark.parametrize("make", MAKERS)
def test_every_chart_is_json_and_described_in_words(make_result, make):
    figure = make(make_result())
    json.dumps(figure.spec, allow_nan=False)
    assert "chart" in figure.description.lower()
    assert "table" in figure.description


def test_whiskers_end_where_the_intervals_end(make_result):
    result = make_result()
    bars, intervals = figure_of_estimates(result).spec["data"]
    middle, half = np.array(intervals["x"]), np.array(intervals["error_x"]["array"])
    np.testing.assert_allclose(middle - half, result.estimates.lower, atol=1e-15)
    np.testing.assert_allclose(middle + half, result.estimates.upper, atol=1e-15)
    np.testing.assert_array_equal(bars["x"], result.estimates.frequency)


def test_of_many_answers_the_largest_are_drawn_in_order(make_result):
    domain = [f"answer {i}" for i in range(1000)]
    shares = [0.0005] * 1000
    shares[700], shares[30] = 0.2, 0.3
    figure = figure_of_estimates(make_result(domain, shares=shares, num_users=10**6))
    ticks = figure.spec["layout"]["yaxis"]["ticktext"]
    assert len(ticks) == MOST_BARS
    assert [tick.strip("\u2068\u2069") for tick in ticks[:2]] == ["answer 30", "answer 700"]
    assert "30 largest" in figure.description


def test_labels_are_text_whatever_they_contain(make_result):
    domain = ["<b>bold</b>", "<a href='http://example.org'>x</a>", "$x$", "y" * 300, "y" * 301]
    spec = figure_of_estimates(make_result(domain)).spec
    ticks = spec["layout"]["yaxis"]["ticktext"]
    assert not any("<" in tick or "$" in tick for tick in ticks)
    assert unescape(ticks[0]).strip("\u2068\u2069") == "<b>bold</b>"
    assert all(len(unescape(tick)) <= 36 for tick in ticks)
    assert len(spec["layout"]["yaxis"]["tickvals"]) == 5  # equal shortened labels stay two bars
    narrow = spec["narrow"]["yaxis.ticktext"]
    assert all(len(unescape(tick)) <= 16 for tick in narrow)


def test_epsilon_by_users_is_drawn_on_logarithmic_axes(make_result):
    figure = figure_by_num_users(make_result())
    layout = figure.spec["layout"]
    assert layout["xaxis"]["type"] == layout["yaxis"]["type"] == "log"
    assert layout["xaxis"]["ticktext"] == ["1k", "10k", "100k"]
    assert figure.rows[0] == ("636", "1.582")
    assert "from 1.582 at 636 to 0.05000 at 636,600" in figure.description


def test_a_short_range_keeps_a_linear_epsilon_and_names_its_points(make_result):
    figure = figure_by_num_users(make_result(epsilon_by_num_users=((300, 0.6), (700, 0.4))))
    layout = figure.spec["layout"]
    assert "type" not in layout["yaxis"]
    assert layout["xaxis"]["ticktext"] == ["300", "700"]


def test_an_epsilon_of_zero_cannot_be_on_a_logarithmic_axis(make_result):
    points = ((10**6, 0.6), (10**9, 0.001), (10**12, 0.0))
    layout = figure_by_num_users(make_result(epsilon_by_num_users=points)).spec["layout"]
    assert "type" not in layout["yaxis"]
    assert layout["xaxis"]["ticktext"] == ["1M", "10M", "100M", "1B", "10B", "100B", "1T"]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (figure_by_num_users, "epsilon_by_num_users"),
        (figure_by_honest_share, "epsilon_by_honest_share"),
    ],
)
def test_without_two_finite_points_there_is_no_curve(make_result, make, field):
    assert make(make_result(**{field: ()})) is None
    assert make(make_result(**{field: ((1, math.inf), (2, 0.5))})) is None


def test_infinite_points_are_left_out(make_result):
    points = ((0.1, math.inf), (0.5, 0.9), (0.875, 0.6), (1.0, 0.5))
    figure = figure_by_honest_share(make_result(epsilon_by_honest_share=points))
    assert [x for x, _ in figure.rows] == ["50%", "87.5%", "100%"]


def test_the_run_itself_is_marked_where_it_lies_on_the_curve(make_result):
    def marks(figure):
        return [trace for trace in figure.spec["data"] if trace.get("text") == ["this run"]]

    result = make_result()
    assert marks(figure_by_num_users(result))[0]["x"] == [6366]
    assert marks(figure_by_honest_share(result))[0]["x"] == [1.0]
    infinite = make_result(upper=math.inf, lower=None)
    assert not marks(figure_by_num_users(infinite))
