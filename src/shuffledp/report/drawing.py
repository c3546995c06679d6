"""Charts as static SVG, drawn once for a wide page and once for a narrow one.

A drawing is a list of elements with their attributes; ``chart.html`` writes them down and escapes
them. Colours are CSS variables, so that the style sheet's light and dark theme hold in charts too.
A chart's entries have the names that plotly.js gives them, of which these are the ones we use.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, NamedTuple

from shuffledp.report.formatting import display_width, fixed, given, percent

DASHES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "8 3 2 3"}

_WIDE, _NARROW = 880.0, 350.0  # pixels
_CHARACTER = 7.2  # pixels, of a font of 13
_LINE = 18.0
_PAD = 0.04  # of the axis, beyond the data
_MOST_TITLES = 60  # points of a line that tell their numbers
_MOST_DECADES = 8  # that are labelled

Point = tuple[float, float]


class Mark(NamedTuple):
    """An element of SVG; of a text, the part that is raised follows."""

    tag: str
    attributes: dict[str, object]
    text: str = ""
    raised: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart: axes, then marks within the plot, which cuts off what is beyond it, then texts."""

    kind: str
    width: float
    height: float
    plot: dict[str, float]
    frame: list[Mark]
    marks: list[Mark]
    texts: list[Mark]


class Tick(NamedTuple):
    """A label at a value of an axis."""

    value: float
    text: str
    raised: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis: where its values are, in pixels; ``low`` and ``high`` are logarithms if it is."""

    low: float
    high: float
    first: float
    last: float
    is_log: bool

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        if self.is_log:
            value = math.log10(value) if value > 0.0 else self.low - 1.0
        share = (value - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)


def drawings(spec: dict[str, Any]) -> list[Drawing]:
    """Return the chart as it is drawn on a desktop and on a phone."""
    layout = spec["layout"]
    narrow = {name: dict(layout[name]) for name in ("xaxis", "yaxis")}
    for path, value in spec["narrow"].items():
        name, key = path.split(".")
        narrow[name][key] = value
    return [
        _drawing(spec["data"], layout, "wide", _WIDE),
        _drawing(spec["data"], {**layout, **narrow}, "narrow", _NARROW),
    ]


def _drawing(
    data: list[dict[str, Any]], layout: dict[str, Any], kind: str, width: float
) -> Drawing:
    """Return the chart at one width."""
    x_axis, y_axis, height = layout["xaxis"], layout["yaxis"], float(layout["height"])
    x_title, y_title = x_axis["title"], y_axis["title"]
    top, bottom = 8.0, height - (_LINE + 6.0) - (_LINE + 4.0) * bool(x_title)
    y = _scale(y_axis, _values(data, "y"), bottom, top)
    y_ticks = list(_ticks(y_axis, y, most=7))
    labels = max((_text_width(tick.text + tick.raised) for tick in y_ticks), default=0.0)
    left = labels + 12.0 + _LINE * bool(y_title)
    right = max((_text_width(text) for text in _end_texts(data)), default=8.0) + 8.0
    x = _scale(x_axis, _values(data, "x"), left, width - right)
    plot = {"x": left, "y": top, "width": width - right - left, "height": bottom - top}
    frame = [
        *_x_labels(x_axis, x, bottom, x_title),
        *_y_labels(y_axis, y, y_ticks, (left, width - right), y_title),
    ]
    marks = []
    if "here" in layout:
        place = x(layout["here"])
        marks = [_line((place, top), (place, bottom), "var(--ink-soft)", dash=DASHES["dot"])]
    marks += [mark for trace in data for mark in _trace(trace, x, y)]
    return Drawing(
        kind=kind,
        width=width,
        height=height,
        plot=plot,
        frame=frame,
        marks=[mark for mark in marks if mark.tag != "text"],
        texts=[mark for mark in marks if mark.tag == "text"],
    )


def _values(data: list[dict[str, Any]], name: str) -> list[float]:
    """Return all that has to fit on an axis."""
    found = [0.0 for trace in data if trace["type"] == "bar" and name == "x"]
    for trace in data:
        reach = trace.get(f"error_{name}", {}).get("array", [0.0] * len(trace[name]))
        for value, more in zip(trace[name], reach, strict=True):
            if value is not None and math.isfinite(value):
                found += [value - more, value + more]
    return found


def _scale(axis: dict[str, Any], values: list[float], first: float, last: float) -> Scale:
    """Return an axis that holds all values, or the range it was given."""
    is_log = axis.get("type") == "log"
    if "range" in axis:
        low, high = axis["range"]
        if low > high:  # from top to bottom
            low, high, first, last = high, low, last, first
        return Scale(low=low, high=high, first=first, last=last, is_log=is_log)
    if is_log:
        values = [math.log10(value) for value in values if value > 0.0]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if axis.get("rangemode") == "tozero":
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    pad = _PAD * (high - low)
    ends = low if low == 0.0 and not is_log else low - pad, high + pad
    return Scale(low=ends[0], high=ends[1], first=first, last=last, is_log=is_log)


def _ticks(axis: dict[str, Any], scale: Scale, *, most: int) -> Iterator[Tick]:
    """Yield the labels: those that are given, decades, or round numbers."""
    if "tickvals" in axis:
        for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True):
            yield Tick(value, _plain(text))
        return
    low, high = scale.low, scale.high
    if scale.is_log:
        decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        if len(decades) > 2:
            step = max(axis.get("dtick", 1), -(-len(decades) // _MOST_DECADES))
            yield from (_decade(decade) for decade in decades if decade % step == 0)
            return
        if high - low > 0.7:
            for decade in range(math.floor(low), math.floor(high) + 1):
                for value in (float(f"{digit}e{decade}") for digit in (1, 2, 5)):
                    if low <= math.log10(value) <= high:
                        yield Tick(value, given(value))
            return
        low, high = 10.0**low, 10.0**high
    step = _round_step((high - low) / axis.get("nticks", most))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    in_percent = "%" in axis.get("tickformat", "")
    for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        value = index * step
        text = percent(value, max(decimals - 2, 0)) if in_percent else fixed(value, decimals)
        yield Tick(value, text.replace("-", "\u2212"))


def _decade(exponent: int) -> Tick:
    """Return a power of ten, written out where it is short."""
    if -3 <= exponent <= 3:
        return Tick(10.0**exponent, given(10.0**exponent))
    return Tick(10.0**exponent, "10", str(exponent).replace("-", "\u2212"))


def _round_step(least: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1.0, 2.0, 5.0, 10.0) if digit * power >= least * 0.999)


def _x_labels(axis: dict[str, Any], x: Scale, bottom: float, title: str) -> Iterator[Mark]:
    """Yield labels below the plot, as many as have room, and its lower edge."""
    yield _line((x.first, bottom), (x.last, bottom), "var(--line-strong)")
    taken = -math.inf
    most = int((x.last - x.first) / 60.0) + 1
    for tick in _ticks(axis, x, most=most):
        place, half = x(tick.value), 0.5 * _text_width(tick.text + tick.raised)
        if place - half < taken or not x.first - 1.0 <= place <= x.last + 1.0:
            continue
        taken = place + half + 6.0
        yield _line((place, bottom), (place, bottom + 5.0), "var(--line-strong)")
        yield _label(place, bottom + _LINE, tick, "middle", "xtick")
    if title:
        middle = 0.5 * (x.first + x.last)
        yield _label(
            middle, bottom + 2.0 * _LINE + 4.0, Tick(0.0, _plain(title)), "middle", "title"
        )


def _y_labels(
    axis: dict[str, Any], y: Scale, ticks: list[Tick], sides: Point, title: str
) -> Iterator[Mark]:
    """Yield labels on the left of the plot, and lines across it."""
    left, right = sides
    for tick in ticks:
        place = y(tick.value)
        if axis.get("showgrid", True):
            yield _line((left, place), (right, place), "var(--line)")
        yield _label(left - 8.0, place + 4.5, tick, "end", "ytick")
    if title:
        middle = 0.5 * (y.first + y.last)
        mark = _label(_LINE - 5.0, middle, Tick(0.0, _plain(title)), "middle", "title")
        yield mark._replace(
            attributes=mark.attributes | {"transform": f"rotate(-90 {_LINE - 5.0} {middle})"}
        )


def _trace(trace: dict[str, Any], x: Scale, y: Scale) -> Iterator[Mark]:
    """Yield bars, or a line with its points, whiskers and texts."""
    if trace["type"] == "bar":
        yield from _bars(trace, x, y)
        return
    points = [
        None if b is None or not math.isfinite(b) else (x(a), y(b))
        for a, b in zip(trace["x"], trace["y"], strict=True)
    ]
    yield from _whiskers(trace, points, x)
    if "line" not in trace:
        return
    style, mode, marker = trace["line"], trace["mode"], trace["marker"]
    if "fill" in trace:
        path = _path([points]) + "Z"
        yield Mark("path", {"class": "band", "d": path, "style": f"fill:{trace['fillcolor']}"})
        return
    if "lines" in mode:
        attributes = {"class": "trace", "d": _path(_pieces(points)), "fill": "none"}
        drawn = f"stroke:{style['color']};stroke-width:{style['width']}"
        dash = DASHES[style["dash"]]
        yield Mark("path", attributes | {"style": drawn, "stroke-dasharray": dash or None})
    titles = trace.get("customdata") or [""] * len(points)
    if len(points) > _MOST_TITLES:
        titles = [""] * len(points)
    for point, title in zip(points, titles, strict=True):
        if point is not None and ("markers" in mode or title):
            yield _dot(point, marker, title, is_shown="markers" in mode)


def _dot(point: Point, marker: dict[str, Any], title: str, *, is_shown: bool) -> Mark:
    """Return a point, or an unseen one that tells its numbers."""
    colour = marker["color"] if is_shown else "transparent"
    return Mark(
        "circle",
        {
            "class": "point",
            "cx": point[0],
            "cy": point[1],
            "r": 0.5 * marker["size"] if is_shown else 6,
            "style": f"fill:{colour}",
        },
        title=_plain(title),
    )


def _whiskers(trace: dict[str, Any], points: Sequence[Point | None], x: Scale) -> Iterator[Mark]:
    """Yield the error bars of a trace."""
    ends = trace.get("error_x")
    for point, value, reach in zip(points, trace["x"], ends["array"] if ends else (), strict=False):
        if ends is not None and point is not None:
            low, high, (_, y), cap = x(value - reach), x(value + reach), point, 4.0
            path = f"M{low} {y}H{high}M{low} {y - cap}V{y + cap}M{high} {y - cap}V{y + cap}"
            style = f"stroke:{ends['color']};stroke-width:{ends['thickness']}"
            yield Mark("path", {"class": "whisker", "d": path, "fill": "none", "style": style})


def _bars(trace: dict[str, Any], x: Scale, y: Scale) -> Iterator[Mark]:
    """Yield horizontal bars from 0, each with its text at the end."""
    colours = trace["marker"]["color"]
    texts = trace.get("text") or [""] * len(trace["x"])
    half = 0.5 * trace["width"]
    zero = x(0.0)
    for index, (value, place) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        end, above, below = x(value), y(place - half), y(place + half)
        colour = colours if isinstance(colours, str) else colours[index]
        yield Mark(
            "rect",
            {
                "class": "bar",
                "x": min(zero, end),
                "y": above,
                "width": round(abs(end - zero), 1),
                "height": round(below - above, 1),
                "style": f"fill:{colour}",
            },
            title=_plain(trace["customdata"][index]),
        )
        if texts[index]:
            yield _label(end + 6.0, y(place) + 4.5, Tick(0.0, texts[index]), "start", "beside")


def _end_texts(data: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the texts of long bars, for which there must be room on the right."""
    for trace in data:
        if trace["type"] == "bar" and "text" in trace:
            half = 0.5 * max(trace["x"])
            yield from (
                text for value, text in zip(trace["x"], trace["text"], strict=True) if value > half
            )


def _pieces(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """Yield runs of points between gaps."""
    run: list[Point] = []
    for point in [*points, None]:
        if point is not None:
            run.append(point)
        elif run:
            yield run
            run = []


def _path(pieces: Any) -> str:
    """Return lines through runs of points."""
    return "".join("M" + "L".join(f"{a} {b}" for a, b in piece) for piece in pieces)


def _line(start: Point, end: Point, colour: str, *, dash: str = "") -> Mark:
    """Return a thin straight line."""
    return Mark(
        "line",
        {
            "x1": start[0],
            "y1": start[1],
            "x2": end[0],
            "y2": end[1],
            "style": f"stroke:{colour}",
            "stroke-dasharray": dash or None,
        },
    )


def _label(x: float, y: float, tick: Tick, anchor: str, kind: str) -> Mark:
    """Return a text at a place."""
    attributes = {"class": kind, "x": round(x, 1), "y": round(y, 1), "text-anchor": anchor}
    return Mark("text", attributes, tick.text, tick.raised)


def _text_width(text: str) -> float:
    """Return about how wide a text is, in pixels."""
    return _CHARACTER * display_width(text)


def _plain(text: str) -> str:
    """Return a text without the few tags that chart specifications have."""
    text = text.replace("<sub>0</sub>", "\u2080").replace("<br>", "\n")
    return unescape(re.sub(r"</?b>", "", text))
