"""What an adversary guesses of one collection as an image: drawn by matplotlib."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from shuffledp.collection.output import whole_file
from shuffledp.core.bound import Bound
from shuffledp.leakage.account import LeakageCurve
from shuffledp.report.drawing import require_matplotlib

# Okabe and Ito's colours, which people with any colour vision tell apart.
_STYLES: dict[str, dict[str, Any]] = {
    "k-RR and shuffle (NS)": {"color": "#0072B2", "linewidth": 1.9, "zorder": 4},
    "shuffle alone (S)": {"color": "#D55E00", "linewidth": 1.9, "zorder": 3},
    "k-RR alone (N)": {"color": "#009E73", "linewidth": 1.5, "linestyle": ":", "zorder": 2},
    "nothing (blind guess)": {"color": "#555555", "linewidth": 0.8, "zorder": 1, "alpha": 0.8},
}
_BOTH, _SHUFFLER, _RANDOMIZER, _NOTHING = _STYLES

_Y_LABEL = "probability of a right guess"
_X_LABELS = {
    "uninformed": "number of users n",
    "strong": "share of the other users that hold one value",
}
# Values above the prior by a smaller share are rounding.
_ROUNDING = 1e-12
# Values that differ by a smaller share are drawn as a level.
_FLAT = 1e-6
_SMALL_VALUES = 1e-3  # these are written with a power of ten each
_VISIBLE = 1e-4  # enclosures narrower than this share of the axis show as lines


def draw_leakage_curve(curve: LeakageCurve, path: str | os.PathLike[str]) -> None:
    """Draw a curve, and beside it how far it is from a blind guess, into a PNG file.

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
    OutputError
        If the file cannot be written.
    """
    tools = require_matplotlib()
    drawing = tools.figure(figsize=(10.8, 4.85), layout="constrained", dpi=150)
    tools.canvas(drawing)
    left, right = drawing.subplots(1, 2)
    is_uninformed = curve.adversary == "uninformed"
    _draw_curve(left, curve, 0.0)
    title = f"{curve.adversary} adversary, k = {curve.num_values:,}, p = {curve.truth:g}"
    _finish(left, curve, title, _Y_LABEL)
    if is_uninformed:  # on logarithmic axes, since it falls as 1/sqrt(n)
        right.set_yscale("log")
        _draw_curve(right, curve, curve.prior)
        _finish(right, curve, "more than a blind guess", f"{_Y_LABEL} less 1/k")
    else:
        _draw_close_up(right, curve)
        _finish(right, curve, f"{_BOTH}, more than a blind guess", f"{_Y_LABEL} less 1/k")
    handles, labels = left.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    with whole_file(path) as partial:
        drawing.savefig(partial, format="png", metadata={"Software": None})


def _draw_curve(axis: Any, curve: LeakageCurve, less: float) -> None:
    """Draw all lines less a number; those that are no more than it are left out."""
    for name, bounds in ((_BOTH, curve.both), (_SHUFFLER, curve.shuffler)):
        if max(each.upper for each in bounds) > less * (1.0 + _ROUNDING):
            _draw_bounds(axis, curve.x, bounds, less, _STYLES[name] | {"label": name})
    for name, level in ((_RANDOMIZER, curve.randomizer), (_NOTHING, curve.prior)):
        if level > less * (1.0 + _ROUNDING):
            axis.axhline(level - less, **_STYLES[name], label=name)


def _draw_close_up(axis: Any, curve: LeakageCurve) -> None:
    """Draw k-RR and shuffle less the blind guess; two values jump with what is known."""
    style = _STYLES[_BOTH]
    if curve.num_values == 2:
        style = style | {"marker": "o", "markersize": 2.8, "linewidth": 0.5}
    _draw_bounds(axis, curve.x, curve.both, curve.prior, style)
    most = max(each.upper for each in curve.both) - curve.prior
    least = min(max((each.lower or 0.0) - curve.prior, 0.0) for each in curve.both)
    if most - least <= _FLAT * most:
        axis.set_ylim(0.9 * most, 1.1 * most)


def _draw_bounds(
    axis: Any, x: Sequence[float], bounds: Sequence[Bound], less: float, style: dict[str, Any]
) -> None:
    """Draw upper ends, and a band below them where the enclosure is wide enough to be seen."""
    upper = np.array([each.upper for each in bounds]) - less
    lower = np.maximum(np.array([each.lower or 0.0 for each in bounds]) - less, 0.0)
    if (upper - lower).max() > _VISIBLE * upper.max() and axis.get_yscale() == "linear":
        axis.fill_between(x, lower, upper, color=style["color"], alpha=0.2, linewidth=0)
    axis.plot(x, upper, **style)


def _finish(axis: Any, curve: LeakageCurve, title: str, y_label: str) -> None:
    """Label the axes, and mark the collection's own number of users."""
    axis.set_title(title, fontsize=10.5, loc="left")
    axis.set(xlabel=_X_LABELS[curve.adversary], ylabel=y_label)
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    if axis.get_yscale() == "linear":
        axis.ticklabel_format(axis="y", useOffset=False)
        if axis.get_ylim()[1] < _SMALL_VALUES:
            axis.yaxis.set_major_formatter("{x:.8g}")
    if curve.adversary == "uninformed":
        axis.set_xscale("log")
        axis.axvline(curve.num_users, color="#999999", linewidth=0.9, linestyle="--", zorder=0)
        axis.annotate(
            f"n = {curve.num_users:,}",
            (curve.num_users, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -4),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=8,
            color="#666666",
        )
