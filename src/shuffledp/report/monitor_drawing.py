"""Charts of a monitored statistic as an image: drawn by matplotlib without a window."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.core.errors import ParameterError
from shuffledp.report.drawing import require_matplotlib
from shuffledp.report.formatting import shorten
from shuffledp.report.monitor_view import Curve, FloatArray, MonitorView

# Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INK = "#222222"

_INCHES = (8.4, 5.8)
_FLAT_INCHES = (8.4, 4.2)
_DPI = 150
_SHADE = 0.2
_LONGEST_LABEL = 30
_MOST_TICKS = 8
_FEW = 10
_FORMATS = {".png": "png", ".svg": "svg"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorLine:
    """The expected standard error over the periods, for one way to collect.

    Parameters
    ----------
    name : str
        What it is, for the legend.
    values : NDArray of float
        As shares of the users, one a period.
    is_main : bool
        Whether it is what the plan would do.
    is_elsewhere : bool
        Whether it is something other than monitoring.
    """

    name: str
    values: FloatArray
    is_main: bool = False
    is_elsewhere: bool = False


def require_image_name(path: Path) -> str:
    """Return the format of an image file; better before the work than after it.

    Parameters
    ----------
    path : Path
        Ends in .png or .svg.

    Returns
    -------
    str
        Its format.

    Raises
    ------
    ParameterError
        If it ends otherwise.

    Examples
    --------
    >>> require_image_name(Path("a.SVG"))
    'svg'
    """
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise ParameterError(
            f"figure = {str(path)!r} is no image that can be drawn: give it a name that ends in "
            ".png or .svg"
        )
    return _FORMATS[suffix]


def draw_running_counts(view: MonitorView, path: Path) -> None:
    """Draw running counts in their bands, and below them the errors where the truth is known.

    Parameters
    ----------
    view : MonitorView
        What to draw.
    path : Path
        A .png or .svg file, replaced if it exists.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    ParameterError
        If ``path`` has another name.
    """
    known = view.is_truth_known
    drawing = _canvas(_INCHES if known else _FLAT_INCHES)
    axes = drawing.subplots(
        1 + known, 1, squeeze=False, sharex=True, height_ratios=(2.2, 1.0) if known else (1.0,)
    )[:, 0]
    places = np.arange(1, len(view.periods) + 1)
    colours = list(zip(view.drawn, _COLOURS, strict=False))
    for curve, colour in colours:
        _draw_curve(axes[0], places, curve, colour)
    _finish(axes[0], "users")
    axes[-1].set_xlabel("period")
    if known:
        _draw_errors(axes[1], places, colours)
        _finish(axes[1], "estimate less truth")
    _name_periods(axes[-1], view.periods)
    title = f"{shorten(view.what, 40)}: {view.num_users:,} users, {len(view.periods):,} periods"
    axes[0].set_title(title, fontsize=10.5, loc="left", parse_math=False)
    _legend(drawing, view, colours)
    _save(drawing, path)


def draw_expected_errors(
    lines: Sequence[ErrorLine], path: Path, *, title: str, y_label: str
) -> None:
    """Draw the expected error of each period, for several ways to collect, on a log axis.

    Parameters
    ----------
    lines : sequence of ErrorLine
        At least one, all over the same periods.
    path : Path
        A .png or .svg file, replaced if it exists.
    title, y_label : str
        What it is about, and what the vertical axis shows.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    ParameterError
        If ``path`` has another name.
    """
    drawing = _canvas(_FLAT_INCHES)
    from matplotlib.ticker import LogLocator

    axis = drawing.subplots()
    for index, line in enumerate(lines):
        values = np.where(np.isfinite(line.values), line.values, np.nan)
        axis.plot(
            np.arange(1, len(values) + 1),
            100.0 * values,
            color=_COLOURS[index % len(_COLOURS)],
            linestyle="--" if line.is_elsewhere else "-",
            linewidth=1.7 if line.is_main else 1.1,
            marker="o" if len(values) == 1 else None,
            label=line.name,
        )
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:g}%")
    axis.yaxis.set_minor_formatter("")
    axis.set_xlabel("period")
    _set_limits(axis, len(lines[0].values))
    _finish(axis, y_label)
    axis.set_title(title, fontsize=10.5, loc="left")
    drawing.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    _save(drawing, path)


def _canvas(inches: tuple[float, float]) -> Any:
    """Return an empty drawing."""
    tools = require_matplotlib()
    drawing = tools.figure(figsize=inches, layout="constrained", dpi=_DPI)
    tools.canvas(drawing)
    return drawing


def _draw_curve(axis: Any, places: Any, curve: Curve, colour: str) -> None:
    """Draw one band with its estimates, and the truth dashed."""
    mark = "o" if len(places) == 1 else None
    if mark:
        below, above = curve.estimates - curve.lower, curve.upper - curve.estimates
        axis.errorbar(places, curve.estimates, yerr=(below, above), color=colour, capsize=4)
    axis.fill_between(places, curve.lower, curve.upper, color=colour, alpha=_SHADE, linewidth=0)
    axis.plot(places, curve.estimates, color=colour, linewidth=1.7, marker=mark, zorder=4)
    if curve.truth is not None:
        axis.plot(places, curve.truth, "--", color=_INK, linewidth=1.1, zorder=5)


def _draw_errors(axis: Any, places: Any, colours: list[tuple[Curve, str]]) -> None:
    """Draw errors about 0, within the width of the bands; of several, within the widest."""
    curves = [curve for curve, _ in colours]
    lower = np.min([curve.lower - curve.estimates for curve in curves], axis=0)
    upper = np.max([curve.upper - curve.estimates for curve in curves], axis=0)
    axis.fill_between(places, lower, upper, color=_shade(colours), alpha=_SHADE, linewidth=0)
    axis.axhline(0.0, color="#888888", linewidth=0.8, zorder=1)
    for curve, colour in colours:
        axis.plot(
            places,
            curve.errors,
            color=colour,
            linewidth=1.2 if len(colours) == 1 else 0.8,
            marker="o" if len(places) == 1 else None,
            zorder=4,
        )


def _shade(colours: list[tuple[Curve, str]]) -> str:
    """Return the colour of a band that stands for all curves."""
    return colours[0][1] if len(colours) == 1 else "#777777"


def _finish(axis: Any, y_label: str) -> None:
    """Label an axis, with thousands as people write them."""
    axis.set_ylabel(y_label)
    if axis.get_yscale() == "linear":
        axis.yaxis.set_major_formatter("{x:,.10g}")
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _name_periods(axis: Any, periods: tuple[str, ...]) -> None:
    """Write names of periods along the axis, evenly spread from the first."""
    step = max(1, -(-(len(periods) - 1) // (_MOST_TICKS - 1)))
    places = range(1, len(periods) + 1, step)
    names = [shorten(periods[place - 1], 16) for place in places]
    axis.set_xticks(list(places), names, parse_math=False)
    _set_limits(axis, len(periods))


def _set_limits(axis: Any, num_periods: int) -> None:
    """Let the axis begin at period 1, with some room around few periods."""
    room = 0.5 if num_periods < _FEW else 0.0
    axis.set_xlim(1 - room, num_periods + room)


def _legend(drawing: Any, view: MonitorView, colours: list[tuple[Curve, str]]) -> None:
    """Say below the charts what is drawn how."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color=colour, linewidth=1.7, label=_plain(curve.label or "estimate"))
        for curve, colour in colours
    ]
    handles.append(Patch(color=_shade(colours), alpha=_SHADE, linewidth=0, label=view.band))
    if view.is_truth_known:
        known = "true count (known only in a simulation)"
        handles.append(Line2D([], [], color=_INK, linewidth=1.2, linestyle="--", label=known))
    drawing.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )


def _plain(label: str) -> str:
    """Return a label that is shown as it is: no formulas, and not left out for an underscore."""
    text = shorten(label, _LONGEST_LABEL).replace("$", r"\$")
    return f"\u2009{text}" if text.startswith("_") else text


def _save(drawing: Any, path: Path) -> None:
    """Write the image; the same drawing gives the same bytes."""
    form = require_image_name(path)
    if form == "png":
        drawing.savefig(path, format="png", metadata={"Software": None})
        return
    import matplotlib as mpl

    # Names of elements are hashes with a salt, at random unless given.
    with mpl.rc_context({"svg.hashsalt": "shuffledp"}):
        drawing.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
