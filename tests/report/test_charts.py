"""Pages of nothing but charts: which lines there are, their numbers, and that they can be drawn."""

import pytest

from report.pages import Page, drawn
from shuffledp.groups.attacks.survey import Measured
from shuffledp.network.account import NetworkCurve
from shuffledp.report import page_html
from shuffledp.report.charts import (
    LOCAL,
    OURS,
    PUBLISHED,
    UNIFORM,
    measured_page,
    network_lines,
    network_page,
)

HOSTILE = "<img src=x onerror=alert(1)>"


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


def measured(*trials, **changes):
    return Measured(
        **{"task": "t", "measure": "m, n", "arrangement": "raw", "trials": trials} | changes
    )


PAGES = {
    "network": lambda: network_page([curve(), curve(name=HOSTILE, rounds=(1, 500))]),
    "attack": lambda: measured_page([measured(0.1, 0.3), measured(0.5)], "attack"),
}


@pytest.mark.parametrize("name", PAGES)
def test_charts_are_drawn_and_their_numbers_stand_in_tables(name):
    page = PAGES[name]()
    for section in page.sections:
        figure = section.figure
        if figure is None:
            assert {len(row) for row in section.rows} == {len(section.headings)}
            continue
        assert drawn(figure)
        assert drawn(figure, "narrow")
        assert {len(row) for row in figure.rows} == {len(figure.headings)}
        assert "table" in figure.description
    read = Page(page_html(page))
    assert page.title in read.text
    assert read.tags.count("table") == len(page.sections)
    assert "script" not in read.tags
    assert "img" not in read.tags


def test_lines_of_networks():
    silent = curve(name="star", uniform_epsilon=0.3, published=(None, None))
    lines = network_lines([curve(epsilon_of_most=(0.9, 0.4)), silent])
    assert [(claim, variant, line.x, line.y) for claim, variant, line in lines] == [
        (OURS, "ring", (1.0, 2.0), (1.0, 0.5)),
        (OURS, "ring, 99 % of users", (1.0, 2.0), (0.9, 0.4)),
        (PUBLISHED, "ring", (1.0, 2.0), (None, 3.0)),
        (UNIFORM, "ring", (), (0.4,)),
        (OURS, "star", (1.0, 2.0), (1.0, 0.5)),
        (UNIFORM, "star", (), (0.3,)),
        (LOCAL, "", (), (1.0,)),
    ]
    colours = {variant: line.colour for _, variant, line in lines if variant}
    assert len(set(colours.values())) == len(colours)
    assert len({line.dash for claim, variant, line in lines if variant == "ring"}) == 3
    assert lines[1][2].note == ""
    one_level = network_lines([curve(), curve(name="star")])
    assert [(variant, line.y) for claim, variant, line in one_level if claim == UNIFORM] == [
        ("", (0.4,))
    ]


def axes_of(*curves):
    (section,) = network_page(curves).sections
    layout = section.figure.spec["layout"]
    return layout["xaxis"]["type"], layout["yaxis"]["type"], layout["yaxis"].get("range")


def test_axes_of_networks():
    scales = axes_of(curve())
    assert scales[:2] == ("linear", "log")
    assert 10.0 ** scales[2][1] == pytest.approx(4.0)  # four times epsilon0, and no more
    assert axes_of(curve(rounds=(1, 500)))[0] == "log"
    assert axes_of(curve(rounds=(0, 500)))[0] == "linear"
    assert axes_of(curve(epsilon0=0.0, epsilon=(0.0, 0.0), uniform_epsilon=0.0))[2] is None


@pytest.mark.parametrize(
    ("result", "row"),
    [
        (measured(0.0, 0.2), ("0.1000", "0.0000", "0.2414")),
        (measured(0.4), ("0.4000", "0.4000", "0.4000")),
    ],
)
def test_tables_of_measures(result, row):
    (section,) = measured_page([result], "attack").sections
    assert section.rows == (("raw", *row),)


def test_of_two_guesses_the_better_is_shown_and_named():
    both = measured(0.1, own_report=(0.3,))
    (section,) = measured_page([both, measured(0.2, arrangement="uniform")], "attack").sections
    assert section.rows[0][:2] == ("raw (own report)", "0.3000")
    assert section.rows[1][0] == "uniform"
