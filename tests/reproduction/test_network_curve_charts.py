"""From curves to a chart: which lines there are, and on which axes."""

from shuffledp.network.curves import NetworkCurve
from shuffledp.reproduction.network_charts import Claim
from shuffledp.reproduction.network_curve_charts import curves_figure, rounds_chart


def curve(**changes):
    facts = {
        "name": "ring",
        "num_users": 5,
        "num_edges": 5,
        "protocol": "all",
        "epsilon0": 1.0,
        "delta": 1e-6,
        "rounds": (1, 2),
        "epsilon": (1.0, 0.5),
        "published": (None, 3.0),
        "uniform_epsilon": 0.4,
        "method": "exact",
    }
    return NetworkCurve(**(facts | changes))


def test_lines_and_axes():
    chart = rounds_chart([curve(), curve(name="star")], "t")
    assert [(line.claim, line.variant) for line in chart.lines] == [
        (Claim.OURS, "ring"),
        (Claim.CORRECTED, "ring"),
        (Claim.OURS, "star"),
        (Claim.CORRECTED, "star"),
        (Claim.UNIFORM, ""),
        (Claim.LOCAL, ""),
    ]
    assert chart.lines[1].y == (None, 3.0)
    assert (chart.x_scale, chart.top) == ("linear", 4.0)
    assert rounds_chart([curve(rounds=(1, 500))], "t").x_scale == "log"
    assert rounds_chart([curve(rounds=(0, 500))], "t").x_scale == "linear"


def test_levels_of_their_own_and_theorems_that_say_nothing():
    silent = curve(name="star", uniform_epsilon=0.3, published=(None, None))
    chart = rounds_chart([curve(), silent], "t")
    levels = [(line.variant, line.y) for line in chart.lines if line.claim is Claim.UNIFORM]
    assert levels == [("ring", (0.4,)), ("star", (0.3,))]
    assert (Claim.CORRECTED, "star") not in {(line.claim, line.variant) for line in chart.lines}


def test_caption():
    figure = curves_figure([curve()])
    assert figure.name == ""
    assert "ring: 5 users, 5 edges, exact bounds" in figure.caption
    assert 'protocol "all"' in figure.charts[0].title
