"""Charts as SVG: round labels, decades, and nothing that is out of place."""

import itertools
import math

import pytest

from report.pages import drawn, labels, of_class
from shuffledp.report.drawing import COLOURS, Axis, Bar, Line, bars_figure, lines_figure


def chart(*lines, x=None, y=None, **changes):
    made = [Line(name=f"line {i}", colour=COLOURS[i], **each) for i, each in enumerate(lines)]
    axes = {"x": Axis(title="x", **(x or {})), "y": Axis(title="y", **(y or {}))}
    return lines_figure("chart-test", made, **axes, **changes)


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
    elements = drawn(chart({"x": (0.0, 1.0), "y": values}, y={"is_log": True}))
    assert labels(elements, "ytick") == texts


def test_equal_steps_are_equally_far():
    elements = drawn(chart({"x": (1.0, 10.0, 100.0), "y": (0.0, 1.0, 2.0)}, x={"is_log": True}))
    points = of_class(elements, "point")
    x = [float(each.get("cx")) for each in points]
    y = [float(each.get("cy")) for each in points]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert x[0] < x[1]
    assert y[0] > y[1] > y[2]  # upwards


def test_a_curve_over_powers_of_ten_with_a_level_and_a_place():
    sizes = (636.0, 2013.0, 6366.0, 20131.0, 63660.0, 201310.0, 636600.0)
    curve = {"x": sizes, "y": tuple(0.5 * math.sqrt(63660 / size) for size in sizes)}
    level = {"y": (0.5,), "dash": "dot"}
    figure = chart(curve, level, x={"is_log": True}, y={"is_log": True}, here=63660)
    elements = drawn(figure)
    assert {"1000", "100"} & set(labels(elements, "xtick"))
    assert labels(elements, "ytick")[0] != "0"
    assert figure.rows[0] == ("636", "5.0024", "0.50000")
    assert [entry.name for entry in figure.legend] == ["line 0", "line 1"]
    ups = [each for each in elements if each.get("stroke-dasharray") == "2 3" and each.get("x1")]
    assert len(ups) == 1


def test_a_line_and_a_level():
    elements = drawn(chart({"x": (1.0, 2.0, 3.0, 4.0), "y": (1.0, 2.0, 3.0, 4.0)}, {"y": (2.0,)}))
    for line, points in zip(of_class(elements, "trace"), (4, 2), strict=True):
        assert (line.get("d").count("M"), line.get("d").count("L")) == (1, points - 1)
    assert len(of_class(elements, "point")) >= 3
    assert "line 0" in next(iter(of_class(elements, "point"))).find("title").text


def test_a_dotted_line_marks_a_place_and_limits_hold():
    figure = chart(
        {"x": (1.0, 2.0), "y": (1e-40, 1.0)}, y={"is_log": True, "limits": (1e-3, 1.0)}, here=1.5
    )
    elements = drawn(figure)
    assert labels(elements, "ytick") == ["0.001", "0.01", "0.1", "1"]
    assert [each.get("stroke-dasharray") for each in elements].count("2 3") == 1


def test_labels_below_do_not_touch():
    names = tuple((float(i), f"a long name, number {i}") for i in range(20))
    elements = drawn(chart({"x": (0.0, 19.0), "y": (1.0, 2.0)}, x={"labels": names}))
    places = [float(each.get("x")) for each in of_class(elements, "xtick")]
    assert 2 < len(places) < 20
    assert all(b - a > 100.0 for a, b in itertools.pairwise(places))


def test_without_any_line_there_are_axes():
    assert labels(drawn(chart()), "ytick")


def test_a_band_goes_forth_above_and_back_below():
    band = ((0.0, 1.0), (2.0, 4.0))
    figure = chart({"x": (1.0, 2.0), "y": (1.0, 2.0), "band": band}, band="95% band")
    (shade,) = of_class(drawn(figure), "band")
    (trace,) = of_class(drawn(figure), "trace")
    corners = [tuple(map(float, each.split())) for each in shade.get("d")[1:-1].split("L")]
    assert [x for x, _ in corners] == [corners[0][0], corners[1][0], corners[1][0], corners[0][0]]
    first, last, back_last, back_first = (y for _, y in corners)
    assert last < first < back_first  # upwards: 4, 2, 0
    assert back_last < back_first
    assert f"L{corners[1][0]}" in trace.get("d")
    assert figure.band == "95% band"


def test_many_points_are_a_line_alone():
    elements = drawn(chart({"x": tuple(map(float, range(61))), "y": (1.0,) * 61}))
    assert of_class(elements, "point") == []


def end_places(elements):
    """Return where the first whisker ends."""
    line = of_class(elements, "whisker")[0].get("d")[1:].partition("M")[0]
    return [float(each) for each in line.replace("H", " ").split()[::2]]


def test_bars_begin_at_zero_with_whiskers_and_texts():
    bars = [
        Bar(label="<b>bold</b>", value=2.0, title="two", interval=(1.5, 2.5), text="2.00"),
        Bar(label="y" * 300, value=-1.0, title="minus one", interval=(-2.0, 0.0)),
    ]
    elements = drawn(bars_figure("chart-test", bars, x=Axis(), description="a chart"))
    first, second = of_class(elements, "bar")
    ticks = zip(labels(elements, "xtick"), of_class(elements, "xtick"), strict=True)
    zero = next(
        float(each.get("x")) for text, each in ticks if float(text.replace("\u2212", "-")) == 0
    )
    assert float(first.get("x")) == pytest.approx(zero)
    assert float(second.get("x")) + float(second.get("width")) == pytest.approx(zero, abs=0.2)
    assert float(first.get("width")) == pytest.approx(2.0 * float(second.get("width")), abs=0.3)
    assert [each.find("title").text for each in (first, second)] == ["two", "minus one"]
    low, high = end_places(elements)
    assert low < float(first.get("x")) + float(first.get("width")) < high
    assert labels(elements, "beside") == ["2.00"]
    names = [each.strip("\u2068\u2069") for each in labels(elements, "ytick")]
    assert names == ["<b>bold</b>", "y" * 33 + "\u2026"]
    places = [float(each.get("y")) for each in of_class(elements, "ytick")]
    assert places[0] < places[1]  # from top to bottom


def test_dots_stand_on_their_intervals():
    alone = [Bar(label="income", value=30.1, title="30.1", interval=(29.9, 30.3))]
    elements = drawn(bars_figure("c", alone, x=Axis(), description="", are_dots=True))
    (dot,) = of_class(elements, "bar")
    low, high = end_places(elements)
    assert dot.tag.endswith("circle")
    assert float(dot.get("cx")) == pytest.approx(0.5 * (low + high), abs=0.2)
    assert high - low > 300.0  # the interval fills the axis, which need not begin at zero


def test_shares_are_labelled_in_percent():
    bars = [Bar(label="a", value=0.5, title="")]
    elements = drawn(bars_figure("c", bars, x=Axis(is_share=True), description=""))
    assert "40%" in labels(elements, "xtick")


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return math.fsum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#ffffff", "#14171b"])  # --page of report.css, light and dark
@pytest.mark.parametrize("colour", COLOURS)
def test_colours_can_be_seen_on_both_pages(colour, page):
    low, high = sorted((luminance(colour), luminance(page)))
    assert (high + 0.05) / (low + 0.05) >= 3.0
