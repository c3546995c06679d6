"""All bounds as curves, and the legend that says which is which."""

import math
from dataclasses import dataclass
from html import escape
from typing import Any

from shuffledp.collection.bounds import BoundCurves, Over
from shuffledp.report.bounds_view import number, users_text
from shuffledp.report.figures import AXIS, Figure, base_layout
from shuffledp.report.formatting import given
from shuffledp.report.typesetting import typeset

# Readable on the white page and on the dark one. With the strokes there are more pairs than
# methods; dashes are kept for the lower end.
COLOURS = ("#1f77b4", "#c4621a", "#2f8f4e", "#c8414b", "#8a63c9", "#8c6d4f", "#c2559d", "#25858f")
_STROKES = (("solid", ""), ("dot", "2 3"), ("dashdot", "8 3 2 3"))
_LOWER_STROKE = ("dash", "7 4")
_INK = "var(--ink)"

_LEAST_DELTA = 1e-30  # nobody cares for less
_MANY_DECADES = 12

_TITLES = {Over.NUM_USERS: "Number of users", Over.EPSILON0: "Local \u03b5<sub>0</sub>"}
_AXIS_WORDS = {Over.NUM_USERS: "number of users", Over.EPSILON0: "local epsilon0"}
_TICK_KEYS = ("tickvals", "ticktext")
_EPSILON0_TICKS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve.

    Parameters
    ----------
    name : str
        The method, or what the lower end is.
    values : tuple of float or None
        One for each position; None leaves a gap.
    here : float or None
        The value of the scenario that was asked about.
    colour : str
        A CSS colour or variable.
    stroke : tuple of str
        Plotly's name of the stroke, and the same for SVG.
    up : bool
        Whether numbers are rounded up: false for the lower end.
    """

    name: str
    values: tuple[float | None, ...]
    here: float | None
    colour: str
    stroke: tuple[str, str]
    up: bool = True


def series_of(curves: BoundCurves) -> list[Series]:
    """Return a curve for each method that has a bound anywhere, then the lower end.

    In the order of the comparison, smallest first at the scenario that was asked about.
    """
    useful = {each.method.name: each.value for each in curves.here.useful}
    drawn = [
        (name, values)
        for name in (each.method.name for each in curves.here.bounds)
        for values in (curves.curve(name),)
        if any(value is not None for value in values)
    ]
    found = [
        Series(
            name=name,
            values=values,
            here=useful.get(name),
            colour=COLOURS[index % len(COLOURS)],
            stroke=_STROKES[index // len(COLOURS) % len(_STROKES)],
        )
        for index, (name, values) in enumerate(drawn)
    ]
    lower = curves.lower_curve
    if any(value is not None for value in lower):
        found.append(
            Series(
                name="lower end",
                values=lower,
                here=curves.here.lower,
                colour=_INK,
                stroke=_LOWER_STROKE,
                up=False,
            )
        )
    return found


def bounds_figure(curves: BoundCurves) -> Figure:
    """Return the chart: logarithmic axes, a dotted line at the scenario that was asked about."""
    series = series_of(curves)
    scenario, over = curves.here.scenario, curves.over
    layout = base_layout(height=460)
    label = {"font": {"color": "var(--ink-soft)", "size": 13}, "standoff": 12}
    ticks = _ticks(curves)
    layout["xaxis"] = {
        **AXIS,
        "title": {"text": _TITLES[over], **label},
        "type": "log",
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [position_text(tick, over, short=True) for tick in ticks],
    }
    layout["yaxis"] = {
        **AXIS,
        "title": {"text": "Safe \u03b5" if scenario.asked == "epsilon" else "Safe \u03b4", **label},
        "type": "log",
        "exponentformat": "power",
        **_range(series),
    }
    layout["shapes"] = [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": getattr(scenario, over.field),
            "x1": getattr(scenario, over.field),
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"color": "var(--ink-soft)", "width": 1, "dash": "dot"},
        }
    ]
    return Figure(
        name="chart-bounds",
        spec={
            "data": [_trace(each, curves) for each in series],
            "layout": layout,
            # On a phone every second label, so that they stay level.
            "narrow": {f"xaxis.{key}": layout["xaxis"][key][::2] for key in _TICK_KEYS},
        },
        description=(
            f"Line chart of {len(series)} curves on logarithmic axes: bounds on {scenario.asked} "
            f"against the {_AXIS_WORDS[over]}. The table below holds the numbers."
        ),
    )


def legend(curves: BoundCurves) -> str:
    """Return the legend in words, as HTML: how each curve is drawn, and its value here."""
    entries = "".join(
        f'<li style="break-inside: avoid">{_swatch(each)} {typeset(_legend_text(each))}</li>'
        for each in series_of(curves)
    )
    return (
        '<ul class="soft" style="list-style: none; margin: 0 0 1rem; padding: 0; '
        f'columns: 17rem">{entries}</ul>'
    )


def position_text(position: float, over: Over, *, short: bool = False) -> str:
    """Return a place on the axis in words.

    Examples
    --------
    >>> position_text(1e6, Over.NUM_USERS), position_text(0.5, Over.EPSILON0)
    ('1,000,000 users', 'epsilon0 = 0.5')
    >>> position_text(1e6, Over.NUM_USERS, short=True)
    '1M'
    """
    if over is Over.EPSILON0:
        return given(position) if short else f"epsilon0 = {given(position)}"
    if not short:
        return users_text(int(position))
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if position >= scale:
            return f"{position / scale:.3g}{letter}"
    return f"{position:g}"


def _ticks(curves: BoundCurves) -> list[float]:
    """Return the places of the labels: every decade of users, 1, 2, 5 of epsilon0."""
    first, last = curves.positions[0], curves.positions[-1]
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    digits = (1.0,) if curves.over is Over.NUM_USERS else _EPSILON0_TICKS
    places = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [place for place in places if first <= place <= last]


def _range(series: list[Series]) -> dict[str, Any]:
    """Return labels and limits of the vertical axis: deltas fall without end."""
    drawn = [value for each in series for value in each.values if value is not None]
    lowest, highest = min(drawn, default=1.0), max(drawn, default=1.0)
    lowest = max(lowest, _LEAST_DELTA)
    decades = math.log10(max(highest, lowest)) - math.log10(lowest)
    labels = {"dtick": 1 if decades < _MANY_DECADES else 5} if decades > 2.0 else {"nticks": 8}
    if min(drawn, default=1.0) >= _LEAST_DELTA:
        return labels
    return {**labels, "range": [math.log10(_LEAST_DELTA), math.ceil(math.log10(highest))]}


def _trace(series: Series, curves: BoundCurves) -> dict[str, Any]:
    """Return one curve; where a value is missing, so is the line."""
    asked = {"epsilon": "\u03b5", "delta": "\u03b4"}[curves.here.scenario.asked]
    relation = "\u2264" if series.up else "\u2265"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(series.name),
        "x": list(curves.positions),
        "y": list(series.values),
        "connectgaps": False,
        "line": {"color": series.colour, "width": 2, "dash": series.stroke[0]},
        "marker": {"size": 4, "color": series.colour},
        "customdata": [
            f"{escape(series.name)}<br>{position_text(position, curves.over)}<br>"
            f"<b>{asked} {relation} {number(value, up=series.up)}</b>"
            for position, value in zip(curves.positions, series.values, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _legend_text(series: Series) -> str:
    """Return what stands beside a swatch."""
    if not series.up:
        return f"lower end: no analysis can go below; here {number(series.here, up=False)}"
    if series.here is None:
        return f"{series.name}: says nothing here"
    return f"{series.name}: here {number(series.here, up=True)}"


def _swatch(series: Series) -> str:
    """Return a short piece of the curve."""
    return (
        '<svg width="34" height="10" aria-hidden="true"><line x1="1" y1="5" x2="33" y2="5" '
        f'stroke-width="2.5" stroke-dasharray="{series.stroke[1]}" '
        f'style="stroke: {series.colour}"/></svg>'
    )
