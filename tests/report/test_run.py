"""The charts of a run's report, read as a browser draws them."""

import math

import pytest

from report.pages import drawn, labels, of_class
from shuffledp.report.drawing import Axis, epsilon_figure, level
from shuffledp.report.run import figure_of_estimates


def curve(points, **axis):
    """Return epsilon against some axis."""
    return epsilon_figure("chart", points, [level("asked: 0.5", 0.5)], x=Axis(**axis), here=63660)


def test_bars_are_as_long_as_the_shares_and_described_in_words(make_result):
    result = make_result()
    figure = figure_of_estimates(result)
    elements = drawn(figure)
    bars = of_class(elements, "bar")
    assert len(bars) == len(of_class(elements, "whisker")) == 5
    widths = [float(bar.get("width")) for bar in bars]
    shares = result.estimates.frequency.tolist()
    assert widths[0] / widths[1] == pytest.approx(shares[0] / shares[1], rel=0.01)
    assert "0%" in labels(elements, "xtick")
    titles = [bar.find("title").text for bar in bars]
    assert titles[0].startswith("\u2068never\u2069\n")
    assert "chart" in figure.description
    assert "table" in figure.description


def test_of_many_answers_the_largest_are_drawn_in_order(make_result):
    domain = [f"answer {i}" for i in range(1000)]
    shares = [0.0005] * 1000
    shares[700], shares[30] = 0.2, 0.3
    figure = figure_of_estimates(make_result(domain, shares=shares, num_users=10**6))
    names = [each.strip("\u2068\u2069") for each in labels(drawn(figure), "ytick")]
    assert len(names) == 30
    assert names[:2] == ["answer 30", "answer 700"]
    assert "30 largest" in figure.description


def test_epsilon_that_falls_by_powers_is_drawn_on_logarithmic_axes():
    numbers = (636, 2013, 6366, 20131, 63660, 201310, 636600)
    points = [(number, 0.5 * math.sqrt(63660 / number)) for number in numbers]
    figure = curve(points, title="number of users", is_log=True)
    elements = drawn(figure)
    assert {"1000", "100"} & set(labels(elements, "xtick"))
    assert labels(elements, "ytick")[0] != "0"
    assert figure.rows[0] == ("636", "5.0024", "0.50000")
    assert [entry.name for entry in figure.legend] == ["upper bound on epsilon", "asked: 0.5"]
    ups = [each for each in elements if each.get("stroke-dasharray") == "2 3" and each.get("x1")]
    assert len(ups) == 1


@pytest.mark.parametrize("points", [((300, 0.6), (700, 0.4)), ((10**6, 0.6), (10**12, 0.0))])
def test_a_short_range_or_zero_keeps_a_linear_epsilon(points):
    assert float(labels(drawn(curve(points)), "ytick")[0]) == 0.0


def test_infinite_points_are_left_out():
    assert curve(()) is None
    assert curve(((1, math.inf), (2, 0.5))) is None
    figure = curve(((10.0, math.inf), (50.0, 0.9), (87.5, 0.6), (100.0, 0.5)))
    assert [row[0] for row in figure.rows] == ["50", "87.5", "100"]
