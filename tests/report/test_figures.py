import math
from html import unescape

import numpy as np
import pytest

from report.pages import drawn, of_class
from shuffledp.report.figures import MOST_BARS, figure_of_estimates
from shuffledp.report.run_page import figure_by_honest_share, figure_by_num_users

MAKERS = (figure_of_estimates, figure_by_num_users, figure_by_honest_share)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_every_chart_is_drawn_and_described_in_words(make_result, make, kind):
    figure = make(make_result())
    assert drawn(figure, kind)
    assert "chart" in figure.description.lower()
    assert "table" in figure.description


def test_bars_begin_at_zero_and_whiskers_are_drawn(make_result):
    elements = drawn(figure_of_estimates(make_result()))
    bars = of_class(elements, "bar")
    assert len(bars) == len(of_class(elements, "whisker")) == 5
    (zero,) = {bar.get("x") for bar in bars}
    labels = {each.text: float(each.get("x")) for each in of_class(elements, "xtick")}
    assert labels["0%"] == pytest.approx(float(zero))
    widths = [float(bar.get("width")) for bar in bars]
    assert widths == sorted(widths, reverse=True)  # as the shares of the fixture are
    at = zip(of_class(elements, "ytick"), bars, strict=True)
    for label, bar in at:
        middle = float(bar.get("y")) + 0.5 * float(bar.get("height"))
        assert float(label.get("y")) == pytest.approx(middle, abs=6.0)
        assert bar.find("title").text.startswith(label.text)


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
    assert not any("<" in tick for tick in ticks)
    assert unescape(ticks[0]).strip("\u2068\u2069") == "<b>bold</b>"
    assert all(len(unescape(tick)) <= 36 for tick in ticks)
    assert len(spec["layout"]["yaxis"]["tickvals"]) == 5  # equal shortened labels stay two bars
    narrow = spec["narrow"]["yaxis.ticktext"]
    assert all(len(unescape(tick)) <= 16 for tick in narrow)


def test_epsilon_by_users_is_drawn_on_logarithmic_axes(make_result):
    figure = figure_by_num_users(make_result())
    layout = figure.spec["layout"]
    assert layout["xaxis"]["type"] == layout["yaxis"]["type"] == "log"
    assert figure.rows[0] == ("636", "1.5819", "0.50000")
    assert [entry.label for entry in figure.legend] == ["upper bound on epsilon", "asked: 0.5"]


@pytest.mark.parametrize("points", [((300, 0.6), (700, 0.4)), ((10**6, 0.6), (10**12, 0.0))])
def test_a_short_range_or_zero_keeps_a_linear_epsilon(make_result, points):
    figure = figure_by_num_users(make_result(epsilon_by_num_users=points))
    assert figure.spec["layout"]["yaxis"]["type"] == "linear"
    assert drawn(figure)


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
    assert [row[0] for row in figure.rows] == ["50", "87.5", "100"]


def test_the_run_itself_is_marked(make_result):
    result = make_result()
    assert figure_by_num_users(result).spec["layout"]["here"] == 6366
    assert figure_by_honest_share(result).spec["layout"]["here"] == 100.0
