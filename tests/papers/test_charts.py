"""Rows of the tables, and drawings read back from the axes."""

import pytest

pytest.importorskip("matplotlib")

import charts
from charts import Chart, Figure, Line, line_of_bounds, rounds_to
from shuffledp import Bound

STROKES = {"ours": {"linestyle": "-"}, "theirs": {"linestyle": ":"}, "level": {"linestyle": "--"}}
BOUNDS = [
    Bound(lower=lower, upper=upper, method=method, source="", assumptions=())
    for lower, upper, method in ((0.9, 1.0, "exact"), (None, 0.52817, "upper end"))
]
LINES = (
    line_of_bounds("ours", "p = 1", [1, 200], BOUNDS, {200.0: "0.5286", 7.0: "0.7"}),
    Line(kind="theirs", variant="p = 0.5", x=(1.0, 2.0), y=(0.5, None), deviation=(0.1, 0.1)),
    Line(kind="level", y=(0.75,), deviation=(0.1,)),
)


def figure(**changes):
    chart = Chart(name="b", title="t", x_label="n", y_label="V", lines=LINES, trials=2)
    facts = {"name": "2", "caption": "c", "charts": (chart,), "strokes": STROKES}
    return Figure(**(facts | changes))


def test_rows():
    rows = list(figure().rows())
    assert len({tuple(row) for row in rows}) == 1
    assert [(row["x"], row["value"], row["lower"]) for row in rows] == [
        (1.0, 1.0, 0.9),
        (200.0, 0.52817, 0.0),
        (1.0, 0.5, None),
        (2.0, None, None),
        (None, 0.75, None),
    ]
    assert [row["printed"] for row in rows] == ["", "0.5286", "", "", ""]
    assert [row["mark"] for row in rows] == ["", "corrected", "", "", ""]
    assert [row["settings"] for row in rows] == ["exact", "upper end", "", "", ""]
    assert {row["figure"] for row in rows} == {"2b"}


@pytest.mark.parametrize(
    ("value", "printed", "agrees"),
    [(0.52817, "0.5282", True), (0.52817, "0.5286", False), (0.25, "0.3", False), (2.0, "2", True)],
)
def test_rounding_as_printed(value, printed, agrees):
    assert rounds_to(value, printed) is agrees


def test_drawing(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(charts, "save", lambda *drawn: kept.append(drawn))
    figure(correction="it is 1").draw(tmp_path / "x.png")
    ((drawing, path),) = kept
    monkeypatch.undo()
    charts.save(drawing, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    (axis,) = drawing.axes
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == list(STROKES)
    assert legend.get_title().get_text() == "Corrected: it is 1."
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["p = 1", "p = 0.5"]
    assert [text.get_text() for text in axis.texts] == ["0.5282\n(printed 0.5286)"]
    ours, level = axis.get_lines()[0], axis.get_lines()[-1]
    assert (ours.get_linestyle(), level.get_linestyle()) == ("-", "--")
    assert ours.get_color() != level.get_color()
