"""Rows of the CSV: one a point, levels without x, printed numbers beside the computed ones."""

import pytest

from shuffledp.core.bound import Bound
from shuffledp.reproduction.leakage_charts import (
    Chart,
    LeakageFigure,
    Line,
    Seen,
    line_of_bounds,
    num_decimals,
    rounds_to,
)


def bound(lower, upper, method="exact"):
    return Bound(lower=lower, upper=upper, method=method, source="", assumptions=())


def test_rows():
    lines = (
        line_of_bounds(
            Seen.BOTH,
            "p = 1",
            [1, 200],
            [bound(0.9, 1.0), bound(None, 0.52817, "upper end")],
            {200.0: "0.5286", 7.0: "0.7"},
        ),
        Line(seen=Seen.APPROXIMATION, x=(200.0,), y=(0.5281,), printed={200.0: "0.528"}),
        Line(seen=Seen.RANDOMIZER, variant="p = 1", y=(1.0,)),
    )
    chart = Chart(name="b", title="t", x_label="n", y_label="V", lines=lines)
    rows = list(LeakageFigure(name="2", caption="c", charts=(chart,)).rows())
    assert len({tuple(row) for row in rows}) == 1
    assert [(row["x"], row["value"], row["lower"]) for row in rows] == [
        (1.0, 1.0, 0.9),
        (200.0, 0.52817, 0.0),
        (200.0, 0.5281, ""),
        ("", 1.0, ""),
    ]
    assert [row["printed"] for row in rows] == ["", "0.5286", "0.528", ""]
    assert [row["mark"] for row in rows] == ["", "corrected", "", ""]
    assert [row["settings"] for row in rows] == ["exact", "upper end", "", ""]
    assert {row["figure"] for row in rows} == {"2b"}
    assert rows[0]["seen"] == "k-RR and shuffle (NS)"


@pytest.mark.parametrize(
    ("value", "printed", "agrees"),
    [(0.52817, "0.5282", True), (0.52817, "0.5286", False), (0.25, "0.3", False), (2.0, "2", True)],
)
def test_rounding_as_printed(value, printed, agrees):
    assert rounds_to(value, printed) is agrees


def test_decimals():
    assert [num_decimals(each) for each in ("0.5286", ".5", "3")] == [4, 1, 0]
