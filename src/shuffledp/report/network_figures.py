"""``shuffledp network curve`` on disk: an image by matplotlib, a table and a caption."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.collection.output import whole_file, write_rows
from shuffledp.network.account import NetworkCurve
from shuffledp.report.drawing import require_matplotlib

_OURS, _PUBLISHED = "ours", "published theorem, corrected"
_UNIFORM, _LOCAL = "trusted uniform shuffler", "local reports, epsilon0"

# The stroke says whose number it is, the colour which graph.
_STROKES: dict[str, dict[str, Any]] = {
    _OURS: {"linestyle": "-", "linewidth": 1.9, "marker": "o", "markersize": 4.0, "zorder": 4},
    _PUBLISHED: {"linestyle": "--", "linewidth": 1.4, "zorder": 3},
    _UNIFORM: {"linestyle": (0, (7, 2, 1, 2, 1, 2)), "linewidth": 1.0, "zorder": 1},
    _LOCAL: {"linestyle": "-", "linewidth": 0.9, "zorder": 0},
}

# Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_NEUTRAL = "#555555"
_MOST_MARKS = 12  # on one line; more would hide it

# A published bound may be far above epsilon0, where it says nothing.
_TOP = 4.0

_X_LABEL, _Y_LABEL = "rounds", "central epsilon (nats)"
_CAPTION = """\
Central epsilon against rounds of an exchange through a network, protocol "{protocol}", epsilon0 =
{epsilon0:g}, delta = {delta:g}. {graphs}. Ours: for every user, safe to publish. Published: Liew et
al., "Network Shuffling", arXiv:2204.03919, in the form that is proved after any number of rounds on
any graph; where it exceeds epsilon0 it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line; a level across where there is no x."""

    claim: str
    variant: str = ""
    x: tuple[float, ...] = ()
    y: tuple[float | None, ...]
    note: str = ""


def write_network_curves(curves: Sequence[NetworkCurve], folder: str | os.PathLike[str]) -> Path:
    """Write ``network-curve.png``, ``.csv`` and ``.txt``; return the image.

    Parameters
    ----------
    curves : sequence of NetworkCurve
        At least one, of the same epsilon0, delta and protocol; each graph has a colour.
    folder : str or path-like
        Made if need be; files of these names are replaced.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    OutputError
        If the folder cannot be written to.
    """
    image = Path(folder) / "network-curve.png"
    lines = list(_lines(curves))
    with whole_file(image.with_suffix(".csv")) as partial:
        write_rows(_rows(lines), partial)
    with whole_file(image.with_suffix(".txt")) as partial:
        partial.write_text(_caption(curves) + "\n", encoding="utf-8")
    drawing = _drawing(curves, lines)
    with whole_file(image) as partial:
        drawing.savefig(partial, format="png", metadata={"Software": None})
    return image


def _lines(curves: Sequence[NetworkCurve]) -> Iterator[_Line]:
    """Yield the lines of all graphs; one level for all of them where they have as many users."""
    levels = {each.uniform_epsilon for each in curves}
    for each in curves:
        x, note = tuple(map(float, each.rounds)), f"{each.method} bounds"
        yield _Line(claim=_OURS, variant=each.name, x=x, y=each.epsilon, note=note)
        if each.epsilon_of_most:
            yield _Line(
                claim=_OURS, variant=f"{each.name}, 99 % of users", x=x, y=each.epsilon_of_most
            )
        if any(value is not None for value in each.published):
            yield _Line(claim=_PUBLISHED, variant=each.name, x=x, y=each.published)
        if len(levels) > 1:
            yield _Line(claim=_UNIFORM, variant=each.name, y=(each.uniform_epsilon,))
    if len(levels) == 1:
        yield _Line(claim=_UNIFORM, y=tuple(levels))
    yield _Line(claim=_LOCAL, y=(curves[0].epsilon0,))


def _rows(lines: Sequence[_Line]) -> Iterator[dict[str, object]]:
    """Yield one mapping a point; levels have no x, gaps no value."""
    for line in lines:
        for x, value in zip(line.x or ("",), line.y, strict=True):
            yield {
                "claim": line.claim,
                "variant": line.variant,
                "x": x,
                "value": value,
                "x_label": _X_LABEL,
                "y_label": _Y_LABEL,
                "settings": line.note,
            }


def _caption(curves: Sequence[NetworkCurve]) -> str:
    """Return what the figure shows, on one line."""
    one = curves[0]
    graphs = "; ".join(
        f"{each.name}: {each.num_users:,} users, {each.num_edges:,} edges, {each.method} bounds"
        for each in curves
    )
    text = _CAPTION.format(
        protocol=one.protocol, epsilon0=one.epsilon0, delta=one.delta, graphs=graphs
    )
    return " ".join(text.split())


def _drawing(curves: Sequence[NetworkCurve], lines: Sequence[_Line]) -> Any:
    """Draw all lines on one pair of axes, with legends of the graphs and of the claims."""
    tools = require_matplotlib()
    drawing = tools.figure(figsize=(5.2, 4.85), layout="constrained", dpi=150)
    tools.canvas(drawing)
    axis = drawing.subplots()
    variants = list(dict.fromkeys(line.variant for line in lines if line.variant))
    colours = {each: _COLOURS[i % len(_COLOURS)] for i, each in enumerate(variants)}
    for line in lines:
        style = _STROKES[line.claim] | {"color": colours.get(line.variant, _NEUTRAL)}
        if line.x:
            values = np.array(line.y, dtype=np.float64)  # None becomes NaN: a gap
            axis.plot(line.x, values, markevery=-(-values.size // _MOST_MARKS), **style)
        else:
            axis.axhline(line.y[0], **style)
    one = curves[0]
    first, last = min(each.rounds[0] for each in curves), max(each.rounds[-1] for each in curves)
    axis.set_xscale("log" if first > 0 and last >= 50 * first else "linear")
    axis.set_yscale("log")
    axis.set_ylim(top=_TOP * one.epsilon0)
    axis.set(xlabel=_X_LABEL, ylabel=_Y_LABEL)
    axis.set_title(
        f'protocol "{one.protocol}", epsilon0 = {one.epsilon0:g}, delta = {one.delta:g}',
        fontsize=10.5,
        loc="left",
    )
    axis.grid(color="#e6e6e6", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(handles=[_handle(each, color=colours[each]) for each in variants], fontsize=8)
    claims = [each for each in _STROKES if any(line.claim == each for line in lines)]
    drawing.legend(
        handles=[_handle(each, color="#000000", **_STROKES[each]) for each in claims],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return drawing


def _handle(label: str, **style: Any) -> Any:
    """Return an entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)
