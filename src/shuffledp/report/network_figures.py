"""Charts of network shuffling as PNG: drawn by matplotlib without a window."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.report.drawing import require_matplotlib
from shuffledp.reproduction.network_charts import Chart, Claim, Line, NetworkFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The stroke says whose claim it is, the colour which graph or protocol.
_STROKES: dict[Claim, dict[str, Any]] = {
    Claim.OURS: {"linestyle": "-", "linewidth": 1.9, "zorder": 4},
    Claim.CORRECTED: {"linestyle": "--", "linewidth": 1.4, "zorder": 3},
    Claim.PRINTED: {"linestyle": ":", "linewidth": 1.5, "zorder": 2},
    Claim.UNIFORM: {"linestyle": (0, (7, 2, 1, 2, 1, 2)), "linewidth": 1.0, "zorder": 1},
    Claim.LOCAL: {"linestyle": "-", "linewidth": 0.9, "zorder": 0, "alpha": 0.7},
}

# Okabe and Ito's colours, which people with any colour vision tell apart; marks differ too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKS = ("o", "s", "^", "D", "v", "P")
_NEUTRAL = "#555555"

_PANEL_INCHES = (5.2, 4.1)
_LEGEND_INCHES = 0.75
_DPI = 150
_MOST_MARKS = 12  # on one line; more would hide it


def draw_network_figure(figure: NetworkFigure, path: Path) -> None:
    """Draw charts side by side into a PNG file.

    Parameters
    ----------
    figure : NetworkFigure
        At least one chart with at least one line.
    path : Path
        The file, replaced if it exists.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    tools = require_matplotlib()
    width, height = _PANEL_INCHES
    drawing = tools.figure(
        figsize=(width * len(figure.charts), height + _LEGEND_INCHES),
        layout="constrained",
        dpi=_DPI,
    )
    tools.canvas(drawing)
    axes = drawing.subplots(1, len(figure.charts), squeeze=False)[0]
    for axis, chart in zip(axes, figure.charts, strict=True):
        _draw_chart(axis, chart)
        axis.set_title(_title(figure, chart), fontsize=10.5, loc="left")
    _draw_legend_of_claims(drawing, figure)
    drawing.savefig(path, format="png", metadata={"Software": None})


def _title(figure: NetworkFigure, chart: Chart) -> str:
    """Return the panel's number, if there is one, and its title."""
    number = f"Fig. {figure.name}{chart.name}: " if figure.name else ""
    return number + chart.title


def _draw_chart(axis: Any, chart: Chart) -> None:
    """Draw one panel with its own legend of graphs or protocols."""
    variants = list(dict.fromkeys(line.variant for line in chart.lines if line.variant))
    for line in chart.lines:
        _draw_line(axis, line, variants)
    axis.set_xscale(chart.x_scale)
    axis.set_yscale(chart.y_scale)
    _set_limits(axis, chart)
    axis.set_xlabel(chart.x_label)
    axis.set_ylabel(chart.y_label)
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    if variants:
        _draw_legend_of_variants(axis, variants)


def _draw_line(axis: Any, line: Line, variants: list[str]) -> None:
    """Draw one line, or a level across."""
    style: dict[str, Any] = dict(_STROKES[line.claim], color=_colour(line.variant, variants))
    if not line.x:
        if line.y[0] is not None:
            axis.axhline(line.y[0], **style)
        return
    values = np.array([np.nan if value is None else value for value in line.y], dtype=np.float64)
    if line.claim in {Claim.OURS, Claim.CORRECTED} and line.variant:
        style["marker"] = _MARKS[variants.index(line.variant) % len(_MARKS)]
        style["markersize"] = 4.0 if line.claim is Claim.OURS else 3.0
        style["markevery"] = max(1, -(-values.size // _MOST_MARKS))
    if line.deviation:
        axis.errorbar(line.x, values, yerr=np.array(line.deviation), capsize=2.5, **style)
    else:
        axis.plot(line.x, values, **style)


def _colour(variant: str, variants: list[str]) -> str:
    """Return the colour of a graph or protocol; lines that are about none are grey."""
    return _COLOURS[variants.index(variant) % len(_COLOURS)] if variant else _NEUTRAL


def _set_limits(axis: Any, chart: Chart) -> None:
    """End the vertical axis where the chart says, and start a linear one at 0."""
    if chart.y_scale == "linear":
        axis.set_ylim(bottom=0.0)
    if chart.top is not None:
        axis.set_ylim(top=chart.top)


def _draw_legend_of_variants(axis: Any, variants: list[str]) -> None:
    """Say which colour and mark is which graph or protocol."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=_colour(each, variants),
            marker=_MARKS[index % len(_MARKS)],
            markersize=4.5,
            linewidth=1.9,
            label=each,
        )
        for index, each in enumerate(variants)
    ]
    axis.legend(handles=handles, fontsize=8, frameon=True, framealpha=0.85, edgecolor="none")


def _draw_legend_of_claims(drawing: "Figure", figure: NetworkFigure) -> None:
    """Say below the charts which stroke is whose claim."""
    from matplotlib.lines import Line2D

    present = {line.claim for chart in figure.charts for line in chart.lines}
    handles = [
        Line2D([], [], color="#000000", label=claim.value, **_STROKES[claim])
        for claim in Claim
        if claim in present
    ]
    columns = min(len(handles), 2 * len(figure.charts))
    drawing.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
