"""Pages of nothing but charts: which lines there are, their numbers, and that they can be drawn."""

from report.pages import Page, drawn, labels
from shuffledp.network.account import NetworkCurve
from shuffledp.report import page_html
from shuffledp.report.charts import network_lines, network_page

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


def test_the_chart_is_drawn_and_its_numbers_stand_in_a_table():
    page = network_page([curve(), curve(name=HOSTILE, rounds=(1, 500))])
    (section,) = page.sections
    assert drawn(section.figure)
    assert {len(row) for row in section.rows} == {len(section.headings)}
    assert "table" in section.figure.description
    read = Page(page_html(page))
    assert page.title in read.text
    assert read.tags.count("table") == 1
    assert "script" not in read.tags
    assert "img" not in read.tags


def test_lines_of_networks():
    silent = curve(name="star", uniform_epsilon=0.3, published=(None, None))
    lines = network_lines([curve(epsilon_of_most=(0.9, 0.4)), silent])
    assert [(line.name, line.x, line.y) for line in lines] == [
        ("ours, ring", (1.0, 2.0), (1.0, 0.5)),
        ("ours, ring, 99 % of users", (1.0, 2.0), (0.9, 0.4)),
        ("published theorem, corrected, ring", (1.0, 2.0), (None, 3.0)),
        ("trusted uniform shuffler, ring", (), (0.4,)),
        ("ours, star", (1.0, 2.0), (1.0, 0.5)),
        ("trusted uniform shuffler, star", (), (0.3,)),
        ("local reports alone", (), (1.0,)),
    ]
    curves = [(line.colour, line.dash) for line in lines if line.x]
    assert len(set(curves)) == len(curves)
    one_level = network_lines([curve(), curve(name="star")])
    assert [line.y for line in one_level if line.name.startswith("trusted")] == [(0.4,)]


def x_labels(*curves):
    return labels(drawn(network_page(curves).sections[0].figure), "xtick")


def test_axes_of_networks():
    assert "10" in x_labels(curve(rounds=(1, 500)))
    assert "10" not in x_labels(curve(rounds=(0, 500)))
    elements = drawn(network_page([curve(published=(None, 300.0))]).sections[0].figure)
    assert labels(elements, "ytick")[-1] == "2"  # four times epsilon0, and no more
    assert drawn(
        network_page([curve(epsilon0=0.0, epsilon=(0.0, 0.0), uniform_epsilon=0.0)])
        .sections[0]
        .figure
    )
