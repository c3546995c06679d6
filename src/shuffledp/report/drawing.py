"""Charts as static SVG: lines and bars, with the words and numbers that stand in for them.

A drawing is a list of elements with their attributes; ``chart.html`` writes them down and escapes
them. Colours are CSS variables, so that the style sheet's light and dark theme hold in charts too.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shuffledp.report.formatting import display_width, fixed, given, percent, rounded, shorten

# Readable on the white page and on the dark one.
COLOURS = ("#1f77b4", "#c4621a", "#2f8f4e", "#c8414b", "#8a63c9", "#8c6d4f", "#c2559d", "#25858f")
DASHES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "8 3 2 3"}

# Pixels: of a chart, of a character in a font of 13, of a line of text, of whiskers, of a bar.
_WIDTH, _LINES_HEIGHT = 880.0, 400.0
_CHARACTER = 7.2
_LINE = 18.0
_CAP = 4.0
_BAR, _SLIM_BAR, _MANY_BARS = 38.0, 26.0, 12

_PAD = 0.04  # of the axis, beyond the data
_MOST_POINTS = 60  # of a line that are shown and tell their numbers
_MOST_DECADES = 8  # that are labelled
_LONGEST_NAME = 34

Point = tuple[float, float]


class Mark(NamedTuple):
    """An element of SVG; of a text, the part that is raised follows."""

    tag: str
    attributes: dict[str, object]
    text: str = ""
    raised: str = ""
    title: str = ""


class Drawing(NamedTuple):
    """A chart: axes, then marks within the plot, which cuts off what is beyond it, then texts."""

    width: float
    height: float
    plot: dict[str, float]
    frame: list[Mark]
    marks: list[Mark]
    texts: list[Mark]


class LegendEntry(NamedTuple):
    """How a line or band is drawn, and what it is: a name that may come from outside, our words."""

    colour: str
    name: str
    note: str = ""
    dashes: str = ""
    is_shade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, with the words and numbers that stand in for it where it cannot be seen."""

    name: str
    drawing: Drawing
    description: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()  # empty where the page has the table anyway
    legend: tuple[LegendEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What an axis shows; limits and labelled values follow from the data if none are given."""

    title: str = ""
    is_log: bool = False
    is_share: bool = False
    has_zero: bool = False
    limits: tuple[float, float] | None = None
    labels: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart, perhaps in a band; a level across where there is one value and no x."""

    name: str
    y: tuple[float | None, ...]
    colour: str
    x: tuple[float, ...] = ()
    dash: str = "solid"
    width: float = 2.0
    note: str = ""
    up: bool = True  # whether numbers are rounded up
    band: tuple[tuple[float, ...], tuple[float, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A horizontal bar from 0, perhaps with an interval on it and a text at its end."""

    label: str
    value: float
    title: str
    colour: str = "var(--accent-soft)"
    text: str = ""
    interval: Point | None = None


# --------------------------------------------------------------------- figures
def lines_figure(
    name: str, lines: Sequence[Line], *, x: Axis, y: Axis, here: float | None = None, band: str = ""
) -> Figure:
    """Return lines over a common axis, with a legend, and the numbers as a table.

    A dotted line from top to bottom is at ``here``; ``band`` says what bands are.
    """
    ends = (value for each in lines if each.band for side in each.band for value in side)
    plot = _Plot(
        (x, [value for each in lines for value in each.x]),
        (y, [*(value for each in lines for value in each.y if value is not None), *ends]),
        height=_LINES_HEIGHT,
    )
    marks = [mark for each in lines for mark in plot.band(each)]
    if here is not None:
        place = plot.x(here)
        up = (place, plot.bottom), (place, plot.top)
        marks.append(_straight(*up, "var(--ink-soft)", dash=DASHES["dot"]))
    marks += [mark for each in lines for mark in plot.line(each, x.title)]
    places = sorted({place for each in lines for place in each.x})
    columns = []
    for each in lines:
        values = (
            dict(zip(each.x, each.y, strict=True)) if each.x else dict.fromkeys(places, each.y[0])
        )
        columns.append([_number(values.get(place), each) for place in places])
    legend = {
        each.name: LegendEntry(
            each.colour, each.name, f": {each.note}" if each.note else "", DASHES[each.dash]
        )
        for each in lines
    }
    shades = (LegendEntry("var(--ink-soft)", "", band, is_shade=True),) if band else ()
    return Figure(
        name=name,
        drawing=plot.drawing(marks),
        description=f"Line chart of {len(lines)} lines: {y.title} against {x.title}. The table "
        "below holds the numbers.",
        headings=(x.title, *(each.name for each in lines)),
        rows=tuple(zip((f"{place:,.6g}" for place in places), *columns, strict=True)),
        legend=(*legend.values(), *shades),
    )


def bars_figure(name: str, bars: Sequence[Bar], *, x: Axis, description: str) -> Figure:
    """Return horizontal bars from top to bottom, each with its label on the left."""
    labels = [(place, isolated(each.label, _LONGEST_NAME)) for place, each in enumerate(bars)]
    ends = (end for each in bars for end in each.interval or ())
    half_longest = 0.5 * max((each.value for each in bars), default=0.0)
    plot = _Plot(
        (x, [0.0, *(each.value for each in bars), *ends]),
        (Axis(limits=(len(bars) - 0.5, -0.5), labels=tuple(labels)), []),
        height=70.0 + (_BAR if len(bars) <= _MANY_BARS else _SLIM_BAR) * len(bars),
        beside=[each.text for each in bars if each.value > half_longest],
    )
    marks = [mark for place, each in enumerate(bars) for mark in plot.bar(place, each)]
    return Figure(name=name, drawing=plot.drawing(marks), description=description)


def isolated(text: str, limit: int) -> str:
    """Return a label that is shown as it is: shortened, its direction kept inside."""
    return f"\u2068{shorten(text, limit)}\u2069"


def _number(value: float | None, of: Line) -> str:
    """Return a value; nothing where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    return rounded(value, up=of.up, digits=5)


# --------------------------------------------------------------------- axes
@dataclass(frozen=True, slots=True)
class _Scale:
    """An axis: where its values are, in pixels; ``low`` and ``high`` are logarithms if it is."""

    axis: Axis
    low: float
    high: float
    first: float
    last: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float], first: float, last: float) -> "_Scale":
        """Return an axis that holds all values, or the limits it was given."""
        if axis.limits is not None:
            low, high = (math.log10(each) if axis.is_log else each for each in axis.limits)
            return cls(axis, low, high, first, last)
        finite = [each for each in values if math.isfinite(each)]
        if axis.is_log:
            finite = [math.log10(each) for each in finite if each > 0.0]
        if axis.has_zero:
            finite.append(0.0)
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        if high <= low:
            low, high = low - 0.5, high + 0.5
        pad = _PAD * (high - low)
        if low != 0.0 or axis.is_log:
            low -= pad
        return cls(axis, low, high + pad, first, last)

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        if self.axis.is_log:
            value = math.log10(value) if value > 0.0 else self.low - 1.0
        share = (value - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)

    def labels(self, most: int) -> Iterator[tuple[float, str, str]]:
        """Yield the labelled values: those that are given, decades, or round numbers."""
        low, high, axis = self.low, self.high, self.axis
        if axis.labels:
            yield from ((value, text, "") for value, text in axis.labels)
            return
        if axis.is_log:
            decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            if len(decades) > 2:
                every = -(-len(decades) // _MOST_DECADES)
                yield from (_decade(each) for each in decades if each % every == 0)
                return
            if high - low > 0.7:
                start, stop = math.floor(low), math.floor(high)
                near = [float(f"{a}e{b}") for b in range(start, stop + 1) for a in (1, 2, 5)]
                yield from ((v, given(v), "") for v in near if low <= math.log10(v) <= high)
                return
            low, high = 10.0**low, 10.0**high
        least = (high - low) / most
        power = 10.0 ** math.floor(math.log10(least))
        step = next(each * power for each in (1.0, 2.0, 5.0, 10.0) if each * power >= 0.999 * least)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
            value = index * step
            text = percent(value, max(decimals - 2, 0)) if axis.is_share else fixed(value, decimals)
            yield value, text.replace("-", "\u2212"), ""


def _decade(exponent: int) -> tuple[float, str, str]:
    """Return a power of ten, written out where it is short."""
    if -3 <= exponent <= 3:
        return 10.0**exponent, given(10.0**exponent), ""
    return 10.0**exponent, "10", str(exponent).replace("-", "\u2212")


class _Plot:
    """Both axes of a chart with their values, and what is drawn between them."""

    def __init__(
        self,
        x: tuple[Axis, Sequence[float]],
        y: tuple[Axis, Sequence[float]],
        *,
        height: float,
        beside: Sequence[str] = (),
    ) -> None:
        self.height, self.top = height, 8.0
        self.bottom = height - (_LINE + 6.0) - (_LINE + 4.0) * bool(x[0].title)
        self.y = _Scale.of(*y, self.bottom, self.top)
        self.y_labels = list(self.y.labels(7))
        widths = (_text_width(text + raised) for _, text, raised in self.y_labels)
        left = max(widths, default=0.0) + 12.0 + _LINE * bool(y[0].title)
        right = max(map(_text_width, beside), default=8.0) + 8.0
        self.x = _Scale.of(*x, left, _WIDTH - right)

    def drawing(self, marks: Sequence[Mark]) -> Drawing:
        """Return the chart with its marks."""
        left, top, width = self.x.first, self.top, self.x.last - self.x.first
        return Drawing(
            width=_WIDTH,
            height=self.height,
            plot={"x": left, "y": top, "width": width, "height": self.bottom - top},
            frame=[*self._x_frame(), *self._y_frame()],
            marks=[mark for mark in marks if mark.tag != "text"],
            texts=[mark for mark in marks if mark.tag == "text"],
        )

    def _x_frame(self) -> Iterator[Mark]:
        """Yield labels below the plot, as many as have room, and its lower edge."""
        x, bottom = self.x, self.bottom
        yield _straight((x.first, bottom), (x.last, bottom), "var(--line-strong)")
        taken = -math.inf
        for value, text, raised in x.labels(int((x.last - x.first) / 60.0) + 1):
            place, half = x(value), 0.5 * _text_width(text + raised)
            if place - half < taken or not x.first - 1.0 <= place <= x.last + 1.0:
                continue
            taken = place + half + 6.0
            yield _straight((place, bottom), (place, bottom + 5.0), "var(--line-strong)")
            yield _text(place, bottom + _LINE, text, "middle", "xtick", raised)
        if x.axis.title:
            middle = 0.5 * (x.first + x.last)
            yield _text(middle, bottom + 2.0 * _LINE + 4.0, x.axis.title, "middle", "title")

    def _y_frame(self) -> Iterator[Mark]:
        """Yield labels on the left of the plot, and lines across it unless they name bars."""
        left, right, y = self.x.first, self.x.last, self.y
        for value, text, raised in self.y_labels:
            place = y(value)
            if not y.axis.labels:
                yield _straight((left, place), (right, place), "var(--line)")
            yield _text(left - 8.0, place + 4.5, text, "end", "ytick", raised)
        if y.axis.title:
            side, middle = _LINE - 5.0, 0.5 * (y.first + y.last)
            mark = _text(side, middle, y.axis.title, "middle", "title")
            mark.attributes["transform"] = f"rotate(-90 {side} {middle})"
            yield mark

    def band(self, line: Line) -> Iterator[Mark]:
        """Yield the band of a line: there along its upper end, and back along its lower one."""
        if line.band is not None:
            lower, upper = line.band
            places = [self.x(each) for each in line.x]
            ends = [*map(self.y, upper), *map(self.y, reversed(lower))]
            path = _path(list(zip([*places, *reversed(places)], ends, strict=True))) + "Z"
            style = f"fill:{line.colour};fill-opacity:0.18"
            yield Mark("path", {"class": "band", "d": path, "style": style})

    def line(self, line: Line, unit: str) -> Iterator[Mark]:
        """Yield a line and, unless there are many, its points, which tell their numbers."""
        points: list[Point | None] = [
            None if y is None or not math.isfinite(y) else (self.x(x), self.y(y))
            for x, y in zip(line.x, line.y, strict=False)
        ]
        if not line.x:
            level = self.y(float(line.y[0] or 0.0))
            points = [(self.x.first, level), (self.x.last, level)]
        path = {"class": "trace", "d": "".join(map(_path, _pieces(points))), "fill": "none"}
        style = f"stroke:{line.colour};stroke-width:{line.width}"
        dashes = {"stroke-dasharray": DASHES[line.dash] or None}
        yield Mark("path", {**path, "style": style, **dashes})
        if len(line.x) <= _MOST_POINTS:
            for point, x, y in zip(points, line.x, line.y, strict=False):
                if point is not None:
                    title = f"{isolated(line.name, 60)}\n{x:,.6g} {unit}\n{_number(y, line)}"
                    place = {"class": "point", "cx": point[0], "cy": point[1], "r": 2.5}
                    yield Mark("circle", place | {"style": f"fill:{line.colour}"}, title=title)

    def bar(self, row: int, bar: Bar) -> Iterator[Mark]:
        """Yield a bar, its whiskers and its text."""
        zero, end, middle = self.x(0.0), self.x(bar.value), self.y(row)
        above, below = self.y(row - 0.31), self.y(row + 0.31)
        size = {"width": round(abs(end - zero), 1), "height": round(below - above, 1)}
        place = {"class": "bar", "x": min(zero, end), "y": above, **size}
        yield Mark("rect", place | {"style": f"fill:{bar.colour}"}, title=bar.title)
        if bar.interval is not None:
            low, high = map(self.x, bar.interval)
            caps = (f"M{each} {middle - _CAP}V{middle + _CAP}" for each in (low, high))
            style = "stroke:var(--ink);stroke-width:1.5"
            path = f"M{low} {middle}H{high}" + "".join(caps)
            yield Mark("path", {"class": "whisker", "d": path, "fill": "none", "style": style})
        if bar.text:
            yield _text(end + 6.0, middle + 4.5, bar.text, "start", "beside")


def _pieces(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """Yield runs of points between gaps."""
    run: list[Point] = []
    for point in [*points, None]:
        if point is not None:
            run.append(point)
        elif run:
            yield run
            run = []


def _path(points: Sequence[Point]) -> str:
    """Return a line through points."""
    return "M" + "L".join(f"{x} {y}" for x, y in points)


def _straight(start: Point, end: Point, colour: str, *, dash: str = "") -> Mark:
    """Return a thin straight line."""
    (x1, y1), (x2, y2) = start, end
    style = {"style": f"stroke:{colour}", "stroke-dasharray": dash or None}
    return Mark("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, **style})


def _text(  # noqa: PLR0917  # a place, and what stands there
    x: float, y: float, text: str, anchor: str, kind: str, raised: str = ""
) -> Mark:
    """Return a text at a place."""
    attributes = {"class": kind, "x": round(x, 1), "y": round(y, 1), "text-anchor": anchor}
    return Mark("text", attributes, text, raised)


def _text_width(text: str) -> float:
    """Return about how wide a text is, in pixels."""
    return _CHARACTER * display_width(text)
