"""Rows of the CSV: one a point, levels without x, gaps without a value."""

from shuffledp.reproduction.network_charts import Chart, Claim, Line, NetworkFigure

LINES = (
    Line(claim=Claim.OURS, variant="a", x=(1.0, 2.0), y=(0.5, None), notes=("one", "two")),
    Line(claim=Claim.PRINTED, variant="a", x=(1.0,), y=(3.0,), deviation=(0.1,)),
    Line(claim=Claim.UNIFORM, y=(0.25,)),
)


def test_rows():
    chart = Chart(name="b", title="t", x_label="rounds", y_label="epsilon", lines=LINES)
    rows = list(NetworkFigure(name="4", caption="c", charts=(chart,)).rows())
    assert len({tuple(row) for row in rows}) == 1
    assert [(row["x"], row["value"]) for row in rows] == [
        (1.0, 0.5),
        (2.0, ""),
        (1.0, 3.0),
        ("", 0.25),
    ]
    assert {row["figure"] for row in rows} == {"4b"}
    assert [row["settings"] for row in rows] == ["one", "two", "", ""]
    assert [row["standard_deviation"] for row in rows] == ["", "", 0.1, ""]
    assert rows[3]["claim"] == "trusted uniform shuffler"
    assert {row["trials"] for row in rows} == {""}
