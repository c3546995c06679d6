"""The charts of a run's report, read as a browser draws them."""

import pytest

from report.pages import drawn, labels, of_class
from shuffledp.report.run import figure_of_estimates


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
