"""Charts as static SVG: lines and bars, with the words and numbers that replace them.

A plot knows the places of its lines and bars, and ``chart.html`` draws them. Colours are CSS
variables, so that the style sheet's light and dark theme hold in charts too.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from shuffledp.report.formatting import fixed, given, percent, rounded, shorten

# Readable on a white and on a dark page.
COLOURS = ("#1f77b4", "#c4621a", "#2f8f4e", "#c8414b", "#8a63c9", "#8c6d4f", "#c2559d", "#25858f")
DASHES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "8 3 2 3"}

# Pixels: size of a chart of lines, wide and for a phone; width of a character in a font of 13,
# height of a line of text, and of bars.
_WIDE, _NARROW = (880.0, 400.0), (340.0, 300.0)
_CHARACTER = 7.2
_LINE = 18.0
_BAR, _SLIM_BAR, _MANY_BARS = 38.0, 26.0, 12

_PAD = 0.04  # share of the axis beyond the data
_MOST_POINTS = 60  # shown on a line, with their numbers
_MOST_DECADES = 8  # with labels
_LONGEST_NAME = 34

Point = tuple[float, float]


class Tick(NamedTuple):
    """A text at a place along an axis, with an optional raised part."""

    place: float
    text: str
    raised: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, with the words and numbers that replace it where it cannot be seen."""

    name: str
    drawing: "Plot"
    narrow: "Plot"  # the same for a phone
    description: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()  # empty if the page has the table anyway
    legend: tuple["Line", ...] = ()
    band: str = ""  # definition of the bands of lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Content of an axis; limits and labelled values follow from the data by default."""

    title: str = ""
    is_log: bool = False
    is_share: bool = False
    has_zero: bool = False
    limits: tuple[float, float] | None = None
    labels: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart, with an optional band; a level across if it has one value and no x."""

    name: str
    y: tuple[float, ...]
    colour: str
    x: tuple[float, ...] = ()
    dash: str = "solid"
    width: float = 2.0
    band: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @property
    def dashes(self) -> str:
        """Lengths of its dashes."""
        return DASHES[self.dash]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A horizontal bar from 0, with an optional interval on it and text at its end."""

    label: str
    value: float
    title: str
    colour: str = "var(--accent-soft)"
    text: str = ""
    interval: Point | None = None
    population: Point | None = None  # an interval that is drawn thin


# --------------------------------------------------------------------- figures
def lines_figure(
    name: str, lines: Sequence[Line], *, x: Axis, y: Axis, here: float | None = None, band: str = ""
) -> Figure:
    """Return lines over a common axis, with a legend, and the numbers as a table.

    A dotted line from top to bottom is at ``here``; ``band`` is the definition of the bands.
    """
    ends = (value for each in lines if each.band for side in each.band for value in side)
    xs = [value for each in lines for value in each.x]
    ys = [*(value for each in lines for value in each.y), *ends]
    sizes = _WIDE, _NARROW
    plots = [Plot((x, xs), (y, ys), size, lines=lines, here=here) for size in sizes]
    places = sorted({place for each in lines for place in each.x})
    columns = []
    for each in lines:
        level = dict.fromkeys(places, each.y[0])
        values = dict(zip(each.x, each.y, strict=True)) if each.x else level
        columns.append([_number(values.get(place)) for place in places])
    legend = {each.name: each for each in lines}
    return Figure(
        name=name,
        drawing=plots[0],
        narrow=plots[1],
        description=f"Line chart of {len(lines)} lines: {y.title} against {x.title}. The table "
        "below holds the numbers.",
        headings=(x.title, *(each.name for each in lines)),
        rows=tuple(zip((f"{place:,.6g}" for place in places), *columns, strict=True)),
        legend=tuple(legend.values()),
        band=band,
    )


def bars_figure(
    name: str, bars: Sequence[Bar], *, x: Axis, description: str, are_dots: bool = False
) -> Figure:
    """Return horizontal bars from top to bottom, each with its label on the left.

    Dots on their intervals instead are for a single number, and need no zero.
    """
    labels = [(place, isolated(each.label, _LONGEST_NAME)) for place, each in enumerate(bars)]
    ends = (end for each in bars for end in (each.interval or ()) + (each.population or ()))
    values = [*([] if are_dots else [0.0]), *(each.value for each in bars), *ends]
    rows = Axis(limits=(len(bars) - 0.5, -0.5), labels=tuple(labels))
    slim = _BAR if len(bars) <= _MANY_BARS else _SLIM_BAR
    sizes = ((_WIDE[0], slim), (_NARROW[0], slim + _LINE))
    heights = ((width, 70.0 + row * len(bars)) for width, row in sizes)
    plots = [Plot((x, values), (rows, []), size, bars=bars, are_dots=are_dots) for size in heights]
    return Figure(name=name, drawing=plots[0], narrow=plots[1], description=description)


def isolated(text: str, limit: int) -> str:
    """Return a shortened label for display, isolated from the direction of its surroundings."""
    return f"\u2068{shorten(text, limit)}\u2069"


def _number(value: float | None) -> str:
    """Return a value as text, rounded up; a dash for a missing one."""
    return "-" if value is None else rounded(value, up=True, digits=5)


# --------------------------------------------------------------------- axes
@dataclass(frozen=True, slots=True)
class _Scale:
    """An axis in pixels; ``low`` and ``high`` are logarithms on a logarithmic axis."""

    axis: Axis
    low: float
    high: float
    first: float
    last: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float], first: float, last: float) -> "_Scale":
        """Return an axis that holds all values, or has the given limits."""
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

    def ticks(self, most: int) -> Iterator[Tick]:
        """Yield the labelled values: given values, decades, or round numbers."""
        for value, *text in self.axis.labels or self._round_values(most):
            yield Tick(self(value), *text)

    def _round_values(self, most: int) -> Iterator[tuple[float, str] | tuple[float, str, str]]:
        """Yield decades or round numbers with their texts."""
        low, high, axis = self.low, self.high, self.axis
        if axis.is_log:
            decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            if len(decades) > 2:
                every = -(-len(decades) // _MOST_DECADES)
                yield from (_decade(each) for each in decades if each % every == 0)
                return
            if high - low > 0.7:
                start, stop = math.floor(low), math.floor(high)
                near = [float(f"{a}e{b}") for b in range(start, stop + 1) for a in (1, 2, 5)]
                yield from ((v, given(v)) for v in near if low <= math.log10(v) <= high)
                return
            low, high = 10.0**low, 10.0**high
        least = (high - low) / most
        power = 10.0 ** math.floor(math.log10(least))
        step = next(each * power for each in (1.0, 2.0, 5.0, 10.0) if each * power >= 0.999 * least)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
            value = index * step
            text = percent(value, max(decimals - 2, 0)) if axis.is_share else fixed(value, decimals)
            yield value, text.replace("-", "\u2212")


def _decade(exponent: int) -> tuple[float, str, str]:
    """Return a power of ten, written out if it is short."""
    if -3 <= exponent <= 3:
        return 10.0**exponent, given(10.0**exponent), ""
    return 10.0**exponent, "10", str(exponent).replace("-", "\u2212")


class Plot:
    """Both axes of a chart with their values, and the places of lines and bars between them."""

    def __init__(
        self,
        x: tuple[Axis, Sequence[float]],
        y: tuple[Axis, Sequence[float]],
        size: tuple[float, float],
        *,
        lines: Sequence[Line] = (),
        here: float | None = None,
        bars: Sequence[Bar] = (),
        are_dots: bool = False,
    ) -> None:
        (self.width, self.height), self.top = size, 8.0
        self.lines, self.here, self.bars, self.are_dots = lines, here, bars, are_dots
        #: Rows of a narrow chart have their labels above the bars.
        self.is_stacked = bool(y[0].labels) and self.width < _WIDE[0]
        self.bottom = self.height - (_LINE + 6.0) - (_LINE + 4.0) * bool(x[0].title)
        self.y = _Scale.of(*y, self.bottom, self.top)
        self.y_ticks = list(self.y.ticks(7))
        labels = [] if self.is_stacked else self.y_ticks
        left = max(map(_tick_width, labels), default=8.0) + 12.0 + _LINE * bool(y[0].title)
        half_longest = 0.5 * max((each.value for each in bars), default=0.0)
        beside = (_text_width(each.text) for each in bars if each.value > half_longest)
        self.x = _Scale.of(*x, left, self.width - max(beside, default=8.0) - 8.0)
        self.x_ticks = list(self._x_ticks())

    def _x_ticks(self) -> Iterator[Tick]:
        """Yield the labels that fit below the plot."""
        first, last = self.x.first, self.x.last
        taken = -math.inf
        for tick in self.x.ticks(int((last - first) / 60.0) + 1):
            half = 0.5 * _tick_width(tick)
            if tick.place - half >= taken and first - 1.0 <= tick.place <= last + 1.0:
                taken = tick.place + half + 6.0
                yield tick

    def _points(self, line: Line) -> list[Point]:
        """Return the places of a line; the ends of a level, which crosses the plot."""
        if not line.x:
            return [(end, self.y(line.y[0])) for end in (self.x.first, self.x.last)]
        return [(self.x(x), self.y(y)) for x, y in zip(line.x, line.y, strict=False)]

    def path(self, line: Line) -> str:
        """Return the path of a line."""
        return _path(self._points(line))

    def band(self, line: Line) -> str:
        """Return the path around a band: along its upper end, and back along its lower one."""
        lower, upper = line.band or ((), ())
        there = [(self.x(x), self.y(y)) for x, y in zip(line.x, upper, strict=True)]
        back = [(self.x(x), self.y(y)) for x, y in zip(line.x, lower, strict=True)]
        return _path([*there, *reversed(back)]) + "Z"

    def points(self, line: Line) -> Iterator[tuple[float, float, str]]:
        """Yield the points of a line with their numbers, unless there are many."""
        if len(line.x) <= _MOST_POINTS:
            name, unit = isolated(line.name, 60), self.x.axis.title
            for place, x, y in zip(self._points(line), line.x, line.y, strict=False):
                yield *place, f"{name}\n{x:,.6g} {unit}\n{_number(y)}"

    def rows(self) -> Iterator[tuple[Bar, float, float]]:
        """Yield each bar with its upper and its lower side."""
        for row, bar in enumerate(self.bars):
            yield bar, self.y(row - (0.0 if self.is_stacked else 0.31)), self.y(row + 0.31)


def _path(points: Sequence[Point]) -> str:
    """Return a line through points."""
    return "M" + "L".join(f"{x} {y}" for x, y in points)


def _tick_width(tick: Tick) -> float:
    """Return the approximate width of a label in pixels."""
    return _text_width(tick.text + tick.raised)


def _text_width(text: str) -> float:
    """Return the approximate width of a text in pixels."""
    return _CHARACTER * cell_len(text)
