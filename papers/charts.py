"""Charts as numbers, and how they become images and tables: shared by all papers."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from shuffledp import Bound

# Okabe and Ito's colours, which people with any colour vision tell apart; marks differ, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
CORRECTED_COLOUR = "#A33F00"
_NEUTRAL = "#555555"
_MOST_MARKS = 12  # on one line; more would hide it
_TEXT_PER_INCH = 12.0
_PANEL_INCHES = (5.2, 4.1)
_FOOT_INCHES = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart, or a level across it where there is no x."""

    kind: str  # whose numbers: decides on the stroke
    variant: str = ""  # which graph, p or k: decides on the colour
    x: tuple[float, ...] = ()
    y: tuple[float | None, ...]  # None leaves a gap
    lower: tuple[float, ...] = ()  # where y are upper ends of enclosures
    deviation: tuple[float, ...] = ()  # where y are means over trials
    notes: tuple[str, ...] = ()  # settings or methods behind each value, for the table
    printed: Mapping[float, str] = field(default_factory=dict)  # what the paper's text has at x
    is_scattered: bool = False  # values that jump are drawn as dots


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines on one pair of axes."""

    name: str = ""  # the panel's letter
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_scale: str = "linear"
    y_scale: str = "linear"
    y_limits: tuple[float | None, float | None] = (None, None)
    trials: int | None = None  # behind each mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Charts side by side."""

    name: str  # its number in the paper
    caption: str  # what it shows, with which settings, and how that differs from the paper
    charts: tuple[Chart, ...]
    strokes: Mapping[str, Mapping[str, Any]]  # how to draw each kind of line
    correction: str = ""  # what the paper has otherwise

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping a point; levels have no x, gaps no value."""
        for chart in self.charts:
            for line in chart.lines:
                for index, value in enumerate(line.y):
                    x = line.x[index] if line.x else None
                    printed = line.printed.get(x, "") if x is not None else ""
                    is_wrong = bool(printed) and not rounds_to(value or 0.0, printed)
                    yield {
                        "figure": self.name + chart.name,
                        "kind": line.kind,
                        "variant": line.variant,
                        "x": x,
                        "value": value,
                        "lower": line.lower[index] if line.lower else None,
                        "standard_deviation": line.deviation[index] if line.deviation else None,
                        "trials": chart.trials,
                        "printed": printed,
                        "mark": "corrected" if is_wrong else "",
                        "x_label": chart.x_label,
                        "y_label": chart.y_label,
                        "settings": line.notes[index] if line.notes else "",
                    }

    def draw(self, path: Path) -> None:
        """Draw the charts side by side into a PNG file, with a legend of strokes below them."""
        width, height = _PANEL_INCHES
        width *= len(self.charts)
        drawing = new_drawing((width, height + _FOOT_INCHES))
        axes = drawing.subplots(1, len(self.charts), squeeze=False)[0]
        for axis, chart in zip(axes, self.charts, strict=True):
            _draw_chart(axis, chart, self.strokes)
            axis.set_title(f"Fig. {self.name}{chart.name}: {chart.title}", fontsize=10, loc="left")
        lines = [line for chart in self.charts for line in chart.lines]
        plain = {"color": "#000000", "marker": ""} if any(line.variant for line in lines) else {}
        legend = drawing.legend(
            handles=[
                Line2D([], [], **dict(stroke) | plain, label=kind)
                for kind, stroke in self.strokes.items()
                if any(line.kind == kind for line in lines)
            ],
            loc="outside lower center",
            ncols=2 * len(self.charts),
            frameon=False,
        )
        if self.correction:
            text = f"Corrected: {self.correction}."
            legend.set_title(textwrap.fill(text, int(width * _TEXT_PER_INCH)), prop={"size": 8})
            legend.get_title().set_color(CORRECTED_COLOUR)
        save(drawing, path)


def line_of_bounds(
    kind: str,
    variant: str,
    x: Any,
    bounds: list[Bound],
    printed: Mapping[float, str] | None = None,
) -> Line:
    """Return a line through the upper ends of enclosures, whose methods become notes."""
    return Line(
        kind=kind,
        variant=variant,
        x=tuple(map(float, x)),
        y=tuple(each.upper for each in bounds),
        lower=tuple(each.lower or 0.0 for each in bounds),
        notes=tuple(each.method for each in bounds),
        printed=printed or {},
    )


def spread(first: int, last: int, most: int) -> list[int]:
    """Return whole numbers from first to last, evenly spread on a logarithmic axis."""
    return np.unique(np.rint(np.geomspace(first, last, most)).astype(int)).tolist()


def rounds_to(value: float, printed: str) -> bool:
    """Return whether a number has the digits that a paper prints.

    >>> rounds_to(0.52817, "0.5282"), rounds_to(0.52817, "0.5286")
    (True, False)
    """
    return f"{value:.{len(printed.partition('.')[2])}f}" == printed


def new_drawing(inches: tuple[float, float]) -> Drawing:
    """Return an empty drawing that needs no window."""
    drawing = Drawing(figsize=inches, layout="constrained", dpi=150)
    FigureCanvasAgg(drawing)
    return drawing


def save(drawing: Drawing, path: Path) -> None:
    """Write a drawing as PNG, the same bytes at each run."""
    drawing.savefig(path, format="png", metadata={"Software": None})


def _draw_chart(axis: Any, chart: Chart, strokes: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw one panel: the stroke is the kind of line, the colour and mark the variant."""
    variants = list(dict.fromkeys(line.variant for line in chart.lines if line.variant))
    looks = {
        variant: {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
        for i, variant in enumerate(variants)
    }
    axis.set_xscale(chart.x_scale)
    axis.set_yscale(chart.y_scale)
    for line in chart.lines:
        style: dict[str, Any] = {"markersize": 4.0, "linewidth": 1.4} | dict(strokes[line.kind])
        if variants:
            style |= looks.get(line.variant, {"color": _NEUTRAL})
        _draw_line(axis, line, style)
    axis.set_ylim(*chart.y_limits)
    axis.set(xlabel=chart.x_label, ylabel=chart.y_label)
    if chart.y_scale == "linear":
        axis.ticklabel_format(axis="y", useOffset=False)
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    if len(variants) > 1:
        handles = [Line2D([], [], **looks[each], markersize=4.0, label=each) for each in variants]
        axis.legend(handles=handles, fontsize=8, framealpha=0.85, edgecolor="none")


def _draw_line(axis: Any, line: Line, style: dict[str, Any]) -> None:
    """Draw a line with error bars, or a level with a band of one deviation."""
    values = np.array(line.y, dtype=np.float64)  # None becomes NaN
    if not line.x:
        axis.axhline(values[0], **style | {"marker": None})
        if line.deviation:
            ends = values[0] - line.deviation[0], values[0] + line.deviation[0]
            axis.axhspan(*ends, color=style["color"], alpha=0.12, linewidth=0)
        return
    if line.is_scattered:
        style |= {"linewidth": 0.5, "marker": "o", "markersize": 2.8}
    else:
        style["markevery"] = -(-values.size // _MOST_MARKS)
    errors = np.array(line.deviation) if line.deviation else None
    axis.errorbar(line.x, values, yerr=errors, capsize=2.5, **style)
    for x in set(line.printed) & set(line.x):
        _draw_printed(axis, x, line.y[line.x.index(x)] or 0.0, line.printed[x])


def _draw_printed(axis: Any, x: float, value: float, printed: str) -> None:
    """Write a value with as many digits as the paper has, and the paper's where it differs."""
    shown = f"{value:.{len(printed.partition('.')[2])}f}"
    axis.annotate(
        shown if shown == printed else f"{shown}\n(printed {printed})",
        (x, value),
        xytext=(7, 4),
        textcoords="offset points",
        fontsize=8,
        zorder=7,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.8},
    )
