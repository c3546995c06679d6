"""Charts as SVG: round labels, decades, gaps, and nothing that is out of place."""

import itertools
import math

import pytest

from report.pages import drawn, of_class
from shuffledp.report.charts import Line, lines_figure
from shuffledp.report.figures import COLOURS


def chart(*lines, **changes):
    made = [Line(name=f"line {i}", colour=COLOURS[i], **each) for i, each in enumerate(lines)]
    return lines_figure("chart-test", made, x_title="x", y_title="y", **changes)


def labels(elements, kind):
    return ["".join(each.itertext()) for each in of_class(elements, kind)]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((-3.0, 4.0), ["\u22122", "0", "2", "4"]),
        (
            (10_000.0, 40_000.0),
            ["10,000", "15,000", "20,000", "25,000", "30,000", "35,000", "40,000"],
        ),
        ((0.5, 0.5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_linear_labels_are_round(values, texts):
    assert labels(drawn(chart({"x": (0.0, 1.0), "y": values})), "ytick") == texts


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((1e-6, 1.0), ["10\u22126", "10\u22125", "10\u22124", "0.001", "0.01", "0.1", "1"]),
        ((1e-300, 1e-10), ["10\u2212280", "10\u2212240", "10\u2212200", "10\u2212160",
                           "10\u2212120", "10\u221280", "10\u221240", "1"]),
        ((0.04, 2.0), ["0.05", "0.1", "0.2", "0.5", "1", "2"]),
        ((1.0, 3.0), ["1.0", "1.5", "2.0", "2.5", "3.0"]),
    ],
)  # fmt: skip
def test_logarithmic_labels_are_decades_or_round(values, texts):
    elements = drawn(chart({"x": (0.0, 1.0), "y": values}, y_scale="log"))
    assert labels(elements, "ytick") == texts


def test_equal_steps_are_equally_far():
    elements = drawn(chart({"x": (1.0, 10.0, 100.0), "y": (0.0, 1.0, 2.0)}, x_scale="log"))
    points = of_class(elements, "point")
    x = [float(each.get("cx")) for each in points]
    y = [float(each.get("cy")) for each in points]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert x[0] < x[1]
    assert y[0] > y[1] > y[2]  # upwards


def test_a_gap_and_a_level():
    elements = drawn(chart({"x": (1.0, 2.0, 3.0, 4.0), "y": (1.0, None, 3.0, 4.0)}, {"y": (2.0,)}))
    gap, level = of_class(elements, "trace")
    assert gap.get("d").count("M") == 2
    assert level.get("d").count("M") == 1
    assert len(of_class(elements, "point")) >= 3
    assert "line 0" in next(iter(of_class(elements, "point"))).find("title").text


def test_a_dotted_line_marks_a_place_and_limits_hold():
    figure = chart(
        {"x": (1.0, 2.0), "y": (1e-40, 1.0)}, y_scale="log", y_axis={"range": [-3, 0]}, here=1.5
    )
    elements = drawn(figure)
    assert labels(elements, "ytick") == ["0.001", "0.01", "0.1", "1"]
    assert [each.get("stroke-dasharray") for each in elements].count("2 3") == 1


def test_labels_below_do_not_touch_on_a_phone():
    figure = chart({"x": (100.0, 1e9), "y": (1.0, 2.0)}, x_scale="log")
    wide, narrow = (labels(drawn(figure, kind), "xtick") for kind in ("wide", "narrow"))
    assert set(narrow) <= set(wide)
    places = [float(each.get("x")) for each in of_class(drawn(figure, "narrow"), "xtick")]
    assert all(b - a > 25.0 for a, b in itertools.pairwise(places))


def test_without_any_line_there_are_axes():
    assert labels(drawn(chart()), "ytick")


def test_infinite_values_have_no_place():
    elements = drawn(chart({"x": (1.0, 2.0, 3.0), "y": (math.inf, 2.0, 3.0)}))
    assert len(of_class(elements, "point")) == 2
