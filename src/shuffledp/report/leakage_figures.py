"""Charts and tables of information leakage as PNG: drawn by matplotlib without a window."""

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.leakage.curves import LeakageCurve
from shuffledp.report.drawing import require_matplotlib
from shuffledp.report.leakage_matrix import draw_matrix
from shuffledp.reproduction.leakage import CHARTS, LEAKAGE, Reproduced
from shuffledp.reproduction.leakage_charts import (
    Chart,
    LeakageFigure,
    Line,
    Seen,
    num_decimals,
)
from shuffledp.reproduction.leakage_curve_charts import curve_figure
from shuffledp.reproduction.leakage_tables import LeakageTable
from shuffledp.reproduction.settings import Settings
from shuffledp.reproduction.written_figures import WrittenFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The stroke says what is seen, or how it is approximated; the colour is the variant.
_STROKES: dict[Seen, dict[str, Any]] = {
    Seen.BOTH: {"linestyle": "-", "linewidth": 1.9, "zorder": 4},
    Seen.SHUFFLER: {"linestyle": "-", "linewidth": 1.9, "zorder": 3},
    Seen.RANDOMIZER: {"linestyle": ":", "linewidth": 1.5, "zorder": 2},
    Seen.PUBLISHED: {"linestyle": ":", "linewidth": 1.6, "zorder": 2},
    Seen.APPROXIMATION: {"linestyle": "--", "linewidth": 1.2, "zorder": 5},
    Seen.NOTHING: {"linestyle": "-", "linewidth": 0.8, "zorder": 1, "alpha": 0.8},
}

# Of exact lines that an approximation is drawn over.
_BACKGROUND = {"linewidth": 4.5, "alpha": 0.35}

# Of lines without a variant; Okabe and Ito's, which people with any colour vision tell apart.
_COLOURS = {
    Seen.BOTH: "#0072B2",
    Seen.SHUFFLER: "#D55E00",
    Seen.RANDOMIZER: "#009E73",
    Seen.PUBLISHED: "#CC79A7",
    Seen.APPROXIMATION: "#000000",
    Seen.NOTHING: "#555555",
}

# Variants are ordered (p or k), so their colours run from light to dark, which grey print keeps.
_RAMP, _LIGHTEST, _DARKEST = "inferno", 0.8, 0.12

_PANEL_INCHES = (5.4, 4.1)
_FOOT_INCHES = 0.75
_DPI = 150
_SMALL_SIZE = 8.0
_CORRECTED = "#A33F00"
_TEXT_PER_INCH = 12.0  # characters of the foot line
_LETTERS_PER_INCH, _LETTERS_A_HANDLE = 15.0, 7  # of the legend
_SMALL_VALUES = 1e-3  # these are written with a power of ten each
_VISIBLE = 1e-4  # enclosures narrower than this share of the axis show as lines


def draw_leakage_figure(figure: Reproduced, path: Path) -> None:
    """Draw charts side by side, or a table, into a PNG file.

    Parameters
    ----------
    figure : LeakageFigure or LeakageTable
        With at least one line or entry.
    path : Path
        The file, replaced if it exists.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    tools = require_matplotlib()
    drawing = tools.figure(layout="constrained", dpi=_DPI)
    tools.canvas(drawing)
    if isinstance(figure, LeakageTable):
        draw_matrix(drawing, figure)
    else:
        _draw_charts(drawing, figure)
    drawing.savefig(path, format="png", metadata={"Software": None})


def draw_leakage_curve(curve: LeakageCurve, path: str | os.PathLike[str]) -> None:
    """Draw what an adversary guesses of one collection into a PNG file.

    Parameters
    ----------
    curve : LeakageCurve
        Of either adversary.
    path : str or path-like
        The file, replaced if it exists.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    draw_leakage_figure(curve_figure(curve), Path(path))


def draw_paper_figures(
    folder: str | os.PathLike[str], *, settings: Settings | None = None
) -> tuple[WrittenFigure, ...]:
    """Write Fig. 2 to 7 of the paper, each as an image, a table and a caption.

    Parameters
    ----------
    folder : str or path-like
        Made if need be; files of the same names are replaced.
    settings : Settings, optional
        How much to compute.

    Returns
    -------
    tuple of WrittenFigure
        In the paper's order.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    OutputError
        If the folder cannot be written to.
    """
    require_matplotlib()
    return LEAKAGE.reproduce(
        folder,
        draw_leakage_figure,
        figures=CHARTS,
        settings=settings,
        seed=0,  # nothing is random
    )


def _draw_charts(drawing: "Figure", figure: LeakageFigure) -> None:
    """Draw charts side by side, and below them what is corrected and a legend."""
    width, height = _PANEL_INCHES
    width *= len(figure.charts)
    drawing.set_size_inches(width, height + _FOOT_INCHES)
    colours = _colours_of(figure)
    axes = drawing.subplots(1, len(figure.charts), squeeze=False)[0]
    for axis, chart in zip(axes, figure.charts, strict=True):
        _draw_chart(axis, chart, colours)
        number = f"Fig. {figure.name}{chart.name}: " if figure.name else ""
        axis.set_title(number + chart.title, fontsize=10.5, loc="left")
    legend = _draw_legend_of_strokes(drawing, figure)
    if figure.correction:
        text = f"Corrected: {figure.correction}."
        legend.set_title(
            textwrap.fill(text, int(width * _TEXT_PER_INCH)), prop={"size": _SMALL_SIZE}
        )
        legend.get_title().set_color(_CORRECTED)


def _draw_chart(axis: Any, chart: Chart, colours: Mapping[str, Any]) -> None:
    """Draw one panel with its own legend of variants."""
    axis.set_xscale(chart.x_scale)
    axis.set_yscale(chart.y_scale)
    if chart.y_limits is not None:
        axis.set_ylim(*chart.y_limits)
    for line in chart.lines:
        colour = colours.get(line.variant, _COLOURS[line.seen])
        _draw_line(axis, line, dict(_stroke(line.seen, chart.lines), color=colour))
    if chart.mark is not None:
        axis.axvline(chart.mark, color="#999999", linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        axis.annotate(
            chart.mark_label,
            (chart.mark, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -4),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=8,
            color="#666666",
        )
    axis.set_xlabel(chart.x_label)
    axis.set_ylabel(chart.y_label)
    if chart.y_scale == "linear":
        axis.ticklabel_format(axis="y", useOffset=False)
        if axis.get_ylim()[1] < _SMALL_VALUES:
            axis.yaxis.set_major_formatter("{x:.8g}")
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    variants = dict.fromkeys(line.variant for line in chart.lines if line.variant)
    if len(variants) > 1:
        _draw_legend_of_variants(axis, {each: colours[each] for each in variants})


def _colours_of(figure: LeakageFigure) -> dict[str, Any]:
    """Return the colour of each variant, light to dark, the same in all charts of a figure."""
    from matplotlib import colormaps

    lines = [line for chart in figure.charts for line in chart.lines]
    variants = list(dict.fromkeys(line.variant for line in lines if line.variant))
    places = np.linspace(_LIGHTEST, _DARKEST, max(2, len(variants)))
    return {
        variant: colormaps[_RAMP](place) for variant, place in zip(variants, places, strict=False)
    }


def _stroke(seen: Seen, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the stroke of a line; exact ones are wide and pale below an approximation."""
    is_below = seen in {Seen.BOTH, Seen.SHUFFLER} and any(
        line.seen is Seen.APPROXIMATION for line in lines
    )
    return {**_STROKES[seen], **(_BACKGROUND if is_below else {})}


def _draw_line(axis: Any, line: Line, style: dict[str, Any]) -> None:
    """Draw one line with its enclosure, or a level across, and what the paper prints."""
    if not line.x:
        axis.axhline(line.y[0], **style)
        return
    upper, lower = np.array(line.y), np.array(line.lower or line.y)
    if (upper - lower).max() > _VISIBLE * upper.max():
        axis.fill_between(line.x, lower, upper, color=style["color"], alpha=0.2, linewidth=0)
    if line.is_scattered:
        axis.plot(line.x, upper, **{**style, "linewidth": 0.5, "alpha": 0.35})
        axis.plot(line.x, upper, "o", markersize=2.8, color=style["color"], zorder=4)
    else:
        axis.plot(line.x, upper, **style)
    for x in line.printed:
        if x in line.x:
            _draw_printed(axis, line, x, style["color"])


def _draw_printed(axis: Any, line: Line, x: float, colour: Any) -> None:
    """Mark a point whose value the paper gives, and say both where they differ."""
    value, printed = line.y[line.x.index(x)], line.printed[x]
    shown = f"{value:.{num_decimals(printed)}f}"
    text = shown if shown == printed else f"{shown}\n(printed {printed})"
    is_last = x == line.x[-1]  # beside the end there is room
    axis.plot([x], [value], "o", markersize=5.5, markerfacecolor="white", color=colour, zorder=6)
    axis.annotate(
        text,
        (x, value),
        xytext=(8, 0) if is_last else (7, 8),
        textcoords="offset points",
        ha="left",
        va="center" if is_last else "baseline",
        fontsize=_SMALL_SIZE,
        zorder=7,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.8},
    )


def _draw_legend_of_variants(axis: Any, colours: dict[str, Any]) -> None:
    """Say which colour is which p or k."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linewidth=2.4, label=variant)
        for variant, colour in colours.items()
    ]
    axis.legend(handles=handles, fontsize=8, frameon=True, framealpha=0.85, edgecolor="none")


def _draw_legend_of_strokes(drawing: "Figure", figure: LeakageFigure) -> Any:
    """Say below the charts which stroke is what."""
    from matplotlib.lines import Line2D

    lines = [line for chart in figure.charts for line in chart.lines]
    handles = []
    for seen in Seen:
        ours = [line for line in lines if line.seen is seen]
        if ours:
            colour = "#000000" if any(line.variant for line in ours) else _COLOURS[seen]
            handles.append(Line2D([], [], label=seen.value, **_stroke(seen, lines), color=colour))
    letters = sum(len(str(handle.get_label())) + _LETTERS_A_HANDLE for handle in handles)
    is_one_row = letters <= drawing.get_figwidth() * _LETTERS_PER_INCH
    return drawing.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles) if is_one_row else 2 * len(figure.charts),
        fontsize=9,
        handlelength=1.8,
        columnspacing=1.2,
        frameon=False,
    )
