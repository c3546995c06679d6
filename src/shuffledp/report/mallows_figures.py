"""Reproduced figures as PNG: drawn by matplotlib without a window."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.report.drawing import require_matplotlib
from shuffledp.reproduction.figure_data import (
    ChartFigure,
    Curve,
    FigureData,
    MapFigure,
    MapPanel,
    Panel,
    Series,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; lines and marks differ too.
_STYLES: dict[Series, dict[str, Any]] = {
    Series.RAW: {"color": "#D55E00", "linestyle": ":", "marker": "^"},
    Series.PUBLISHED: {"color": "#0072B2", "linestyle": "-", "marker": "s"},
    Series.OURS: {"color": "#009E73", "linestyle": "--", "marker": "o"},
    Series.UNIFORM: {"color": "#555555", "linestyle": "-.", "marker": "v"},
}

# Several curves of one series: from dark to light, the marks change too.
_VARIANT_MARKS = ("o", "s", "^", "D", "v")
_VARIANT_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7")

# Warm cluster: reds and oranges; cool cluster: blues and greens; dark and light halves.
_LABEL_COLOURS = (
    "#9E1B0A",
    "#F0776B",
    "#C77700",
    "#FFC857",
    "#08458C",
    "#6FB1F0",
    "#00634B",
    "#5FD0AE",
)

_PANEL_INCHES = (4.6, 3.9)
_DPI = 150
_MOST_DOTS = 5_000


def draw_figure(figure: FigureData, path: Path) -> None:
    """Draw a figure into a PNG file.

    Parameters
    ----------
    figure : ChartFigure or MapFigure
        What to draw.
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
    if isinstance(figure, MapFigure):
        _draw_maps(drawing, figure)
    elif isinstance(figure, ChartFigure):
        _draw_charts(drawing, figure)
    drawing.savefig(path, format="png")


def _draw_charts(drawing: "Figure", figure: ChartFigure) -> None:
    """Draw panels side by side."""
    width, height = _PANEL_INCHES
    drawing.set_size_inches(width * len(figure.panels), height + 0.9)
    axes = drawing.subplots(1, len(figure.panels), squeeze=False)[0]
    for axis, panel in zip(axes, figure.panels, strict=True):
        _draw_panel(axis, panel)
        letter = f"Fig. {figure.name}{panel.name}"
        axis.set_title(f"{letter}: {panel.title}", fontsize=10.5, loc="left")
    if not _has_variants(figure.panels[0]):
        handles, labels = axes[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    else:
        for axis in axes:
            axis.legend(fontsize=8, frameon=False, loc="best")
        drawing.legend(
            handles=_mechanism_handles(figure), loc="outside lower center", ncols=2, frameon=False
        )


def _draw_panel(axis: Any, panel: Panel) -> None:
    """Draw one chart: levels as lines across, curves with marks and error bars."""
    if panel.x_scale == "symlog":
        axis.set_xscale("symlog", linthresh=1.0)
    else:
        axis.set_xscale(panel.x_scale)
    variants = list(dict.fromkeys(curve.variant for curve in panel.curves))
    for curve in panel.curves:
        style = dict(_STYLES[curve.series])
        label: str | None = curve.series.value
        if _has_variants(panel):
            index = variants.index(curve.variant)
            style["color"] = _VARIANT_COLOURS[index % len(_VARIANT_COLOURS)]
            style["marker"] = _VARIANT_MARKS[index % len(_VARIANT_MARKS)]
            label = curve.variant if curve.series is panel.curves[0].series else None
        _draw_curve(axis, curve, style, label)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_curve(axis: Any, curve: Curve, style: dict[str, Any], label: str | None) -> None:
    """Draw a line with error bars, or a level with a band of one deviation."""
    deviations = np.array(curve.deviation or (0.0,) * len(curve.mean))
    if not curve.x:
        level, deviation = curve.mean[0], float(deviations[0])
        style.pop("marker")
        axis.axhline(level, label=label, linewidth=1.6, **style)
        axis.axhspan(level - deviation, level + deviation, color=style["color"], alpha=0.12, lw=0)
        return
    shown = deviations if curve.deviation else None
    axis.errorbar(
        curve.x,
        curve.mean,
        yerr=shown,
        label=label,
        markersize=4.5,
        linewidth=1.4,
        capsize=2.5,
        **style,
    )


def _has_variants(panel: Panel) -> bool:
    """Tell whether a series has several curves, so that colours tell these apart."""
    return any(curve.variant for curve in panel.curves)


def _mechanism_handles(figure: ChartFigure) -> list[Any]:
    """Return legend entries for the line styles, which tell series apart."""
    from matplotlib.lines import Line2D

    present = dict.fromkeys(curve.series for panel in figure.panels for curve in panel.curves)
    return [
        Line2D([], [], color="#000000", linestyle=_STYLES[each]["linestyle"], label=each.value)
        for each in present
    ]


def _draw_maps(drawing: "Figure", figure: MapFigure) -> None:
    """Draw what is released above what the attack makes of it."""
    columns = len(figure.panels)
    drawing.set_size_inches(1.9 * columns, 6.2)
    axes = drawing.subplots(2, columns, squeeze=False, sharex=True, sharey=True)
    for index, panel in enumerate(figure.panels):
        _draw_map(axes[0, index], figure, panel, guessed=False)
        _draw_map(axes[1, index], figure, panel, guessed=True)
    axes[0, 0].set_ylabel("released labels")
    axes[1, 1].set_ylabel("attacker's guesses")
    _draw_label_legend(axes[1, 0], figure)


def _draw_map(axis: Any, figure: MapFigure, panel: MapPanel, *, guessed: bool) -> None:
    """Draw one map; the truth has no guesses below it."""
    codes = panel.guessed if guessed else panel.released
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal")
    if codes is None:
        axis.set_axis_off()
        return
    step = max(1, figure.points.shape[0] // _MOST_DOTS)
    points = figure.points[::step]
    colours = np.array(_LABEL_COLOURS)[codes[::step]]
    axis.scatter(points[:, 0], points[:, 1], c=colours, s=1.5, linewidths=0, rasterized=True)
    if guessed:
        shares = " / ".join(f"{share:.0%}" for share in panel.accuracy.values())
        ways = " / ".join(f"{each}" for each in panel.accuracy)
        axis.set_title(f"{ways}-way right:\n{shares}", fontsize=8)
    else:
        axis.set_title(panel.title, fontsize=9)


def _draw_label_legend(axis: Any, figure: MapFigure) -> None:
    """Name the colours in the empty place below the truth."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=name)
        for name, colour in zip(figure.label_names, _LABEL_COLOURS, strict=False)
    ]
    axis.legend(handles=handles, loc="center", fontsize=8, frameon=False, ncols=1)
