"""The figure of `network curve`: which lines there are, in the table and on which axes."""

import csv

import pytest

pytest.importorskip("matplotlib")

from shuffledp.network.account import NetworkCurve
from shuffledp.report.network_figures import _drawing, _lines, write_network_curves

OURS, PUBLISHED = "ours", "published theorem, corrected"
UNIFORM, LOCAL = "trusted uniform shuffler", "local reports, epsilon0"


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


def axis_of(*curves):
    return _drawing(curves, list(_lines(curves))).axes[0]


def test_files(tmp_path):
    silent = curve(name="star", uniform_epsilon=0.3, published=(None, None))
    image = write_network_curves([curve(epsilon_of_most=(0.9, 0.4)), silent], tmp_path / "new")
    content = image.read_bytes()
    assert content.startswith(b"\x89PNG")
    with (tmp_path / "new" / "network-curve.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["claim"], row["variant"], row["x"], row["value"]) for row in rows] == [
        (OURS, "ring", "1.0", "1.0"),
        (OURS, "ring", "2.0", "0.5"),
        (OURS, "ring, 99 % of users", "1.0", "0.9"),
        (OURS, "ring, 99 % of users", "2.0", "0.4"),
        (PUBLISHED, "ring", "1.0", ""),
        (PUBLISHED, "ring", "2.0", "3.0"),
        (UNIFORM, "ring", "", "0.4"),
        (OURS, "star", "1.0", "1.0"),
        (OURS, "star", "2.0", "0.5"),
        (UNIFORM, "star", "", "0.3"),
        (LOCAL, "", "", "1.0"),
    ]
    assert [row["settings"] for row in rows[:3]] == ["exact bounds", "exact bounds", ""]
    text = (tmp_path / "new" / "network-curve.txt").read_text()
    assert "ring: 5 users, 5 edges, exact bounds" in text
    assert len(list((tmp_path / "new").iterdir())) == 3
    write_network_curves([curve(epsilon_of_most=(0.9, 0.4)), silent], tmp_path / "new")
    assert image.read_bytes() == content


def test_one_level_where_graphs_have_as_many_users():
    lines = list(_lines([curve(), curve(name="star")]))
    assert [(line.variant, line.y) for line in lines if line.claim == UNIFORM] == [("", (0.4,))]


def test_axes_and_legends():
    axis = axis_of(curve(), curve(name="star"))
    assert (axis.get_xscale(), axis.get_yscale(), axis.get_ylim()[1]) == ("linear", "log", 4.0)
    assert axis_of(curve(rounds=(1, 500))).get_xscale() == "log"
    assert axis_of(curve(rounds=(0, 500))).get_xscale() == "linear"
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["ring", "star"]
    (legend,) = axis.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [OURS, PUBLISHED, UNIFORM, LOCAL]
    ring, published, star = axis.get_lines()[:3]
    assert ring.get_color() == published.get_color() != star.get_color()
    assert ring.get_linestyle() != published.get_linestyle()
    assert 'protocol "all"' in axis.get_title(loc="left")
