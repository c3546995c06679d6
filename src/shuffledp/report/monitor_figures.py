"""Charts of a monitored statistic for the page: running counts with their bands, and the errors."""

from html import escape
from typing import Any

import numpy as np

from shuffledp.report.bounds_figure import COLOURS
from shuffledp.report.figures import AXIS, Figure, base_layout
from shuffledp.report.formatting import fixed, shorten
from shuffledp.report.monitor_view import Curve, FloatArray, MonitorView, share_text
from shuffledp.report.typesetting import typeset

_LONGEST_LABEL = 40
_NUM_TICKS, _NUM_NARROW_TICKS = 8, 4
_SHADE = 0.18
_ACCENT = "#2f7fb8"  # in the middle of the light and the dark page's accents, for shades
_GREY = "#808080"
_WIDE = 2.0


def running_figure(view: MonitorView) -> Figure:
    """Return the estimates as lines in their bands, and the true counts dashed, where known."""
    traces = [_band_trace(curve.lower, curve.upper, colour) for curve, colour in _coloured(view)]
    traces += [_estimates_trace(view, curve, colour) for curve, colour in _coloured(view)]
    for curve in view.drawn:
        if curve.truth is not None:
            traces.append(_line(curve.truth, "var(--ink)", dash="dash", width=1.3))
    return Figure(
        name="chart-running",
        spec={
            "data": traces,
            "layout": _layout(view, "Users", height=400),
            "narrow": _narrow(view),
        },
        description=(
            f"Line chart of {len(view.drawn)} running count{'s' * (len(view.drawn) != 1)} over "
            f"{len(view.periods):,} periods, each with its band. The table below holds the numbers."
        ),
    )


def errors_figure(view: MonitorView) -> Figure | None:
    """Return estimate less truth inside the band's width about 0; None where truth is unknown."""
    if not view.is_truth_known:
        return None
    layout = _layout(view, "Estimate less truth", height=260)
    colour = _coloured(view)[0][1] if len(view.drawn) == 1 else _GREY
    lower = np.min([curve.lower - curve.estimates for curve in view.drawn], axis=0)
    upper = np.max([curve.upper - curve.estimates for curve in view.drawn], axis=0)
    traces = [_band_trace(lower, upper, colour)]
    for curve, colour in _coloured(view):
        if curve.errors is not None:
            traces.append(_line(curve.errors, colour, width=1.5 if len(view.drawn) == 1 else 1.0))
    layout["yaxis"] |= {
        "zeroline": True,
        "zerolinewidth": 1.5,
        "zerolinecolor": "var(--line-strong)",
    }
    return Figure(
        name="chart-errors",
        spec={"data": traces, "layout": layout, "narrow": _narrow(view)},
        description=(
            "Line chart of the errors of the estimates within the bands. The table below holds "
            "the numbers."
        ),
    )


def legend(view: MonitorView) -> str:
    """Return how lines and bands are drawn, as HTML."""
    entries = []
    for curve, colour in _coloured(view):
        name = shorten(curve.label, _LONGEST_LABEL) if curve.label else "estimate"
        entries.append(f"{_swatch(colour)} <bdi>{escape(name)}</bdi>")
    entries.append(f"{_shade_swatch(view)} {typeset(view.band)}")
    if view.is_truth_known:
        known = "true count, known only because this is a simulation"
        entries.append(f"{_swatch('var(--ink)', '5 4')} {known}")
    items = "".join(f'<li style="break-inside: avoid">{entry}</li>' for entry in entries)
    return (
        '<ul class="soft" style="list-style: none; margin: 0 0 1rem; padding: 0; '
        f'columns: 18rem">{items}</ul>'
    )


def _coloured(view: MonitorView) -> list[tuple[Curve, str]]:
    """Return the curves to draw, each with its colour."""
    if len(view.drawn) == 1:
        return [(view.drawn[0], "var(--accent)")]
    return list(zip(view.drawn, COLOURS, strict=False))


def _places(view_periods: int) -> list[int]:
    """Return places on the axis: periods count from 1."""
    return list(range(1, view_periods + 1))


def _band_trace(lower: FloatArray, upper: FloatArray, colour: str) -> dict[str, Any]:
    """Return a shaded band: there along its upper end, and back along its lower one."""
    forth = _places(len(lower))
    return {
        "type": "scatter",
        "mode": "lines",
        "x": forth + forth[::-1],
        "y": upper.tolist() + lower[::-1].tolist(),
        "fill": "toself",
        "fillcolor": _shade(colour),
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
    }


def _line(values: FloatArray, colour: str, *, width: float, dash: str = "solid") -> dict[str, Any]:
    """Return a plain line."""
    return {
        "type": "scatter",
        "mode": "lines" if len(values) > 1 else "markers",
        "x": _places(len(values)),
        "y": values.tolist(),
        "line": {"color": colour, "width": width, "dash": dash},
        "marker": {"color": colour, "size": 6},
        "hoverinfo": "skip",
    }


def _estimates_trace(view: MonitorView, curve: Curve, colour: str) -> dict[str, Any]:
    """Return the estimates with their numbers on hovering."""
    name = f"<b>{escape(shorten(curve.label, _LONGEST_LABEL))}</b><br>" if curve.label else ""
    texts = []
    for index, period in enumerate(view.periods):
        estimate = float(curve.estimates[index])
        text = (
            f"{name}{escape(period)}<br><b>{fixed(estimate, 0)}</b> "
            f"({share_text(estimate, view.num_users)})<br>"
            f"{fixed(float(curve.lower[index]), 0)} to {fixed(float(curve.upper[index]), 0)}"
        )
        if curve.truth is not None:
            text += f"<br>true: {fixed(float(curve.truth[index]), 0)}"
        texts.append(text)
    return _line(curve.estimates, colour, width=_WIDE) | {
        "hoverinfo": "all",
        "customdata": texts,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _layout(view: MonitorView, title: str, *, height: int) -> dict[str, Any]:
    """Return axes whose labels are names of periods."""
    label = {"font": {"color": "var(--ink-soft)", "size": 13}, "standoff": 12}
    layout = base_layout(height=height)
    places, names = _ticks(view, _NUM_TICKS)
    layout["xaxis"] = {
        **AXIS,
        "title": {"text": "Period", **label},
        "range": [0.5, len(view.periods) + 0.5],
        "tickmode": "array",
        "tickvals": places,
        "ticktext": names,
        "tickangle": 0,
    }
    layout["yaxis"] = {**AXIS, "title": {"text": title, **label}, "nticks": 7}
    return layout


def _narrow(view: MonitorView) -> dict[str, Any]:
    """Return fewer labels, for a phone."""
    places, names = _ticks(view, _NUM_NARROW_TICKS)
    return {"xaxis.tickvals": places, "xaxis.ticktext": names}


def _ticks(view: MonitorView, most: int) -> tuple[list[int], list[str]]:
    """Return places of labels, evenly spread from the first period, and the labels."""
    num = len(view.periods)
    step = max(1, -(-(num - 1) // max(1, most - 1)))
    places = list(range(1, num + 1, step))
    return places, [escape(view.periods[place - 1]) for place in places]


def _shade(colour: str) -> str:
    """Return a colour that shines through."""
    code = (_ACCENT if colour.startswith("var(") else colour).removeprefix("#")
    red, green, blue = (int(code[at : at + 2], 16) for at in (0, 2, 4))
    return f"rgba({red},{green},{blue},{_SHADE})"


def _shade_swatch(view: MonitorView) -> str:
    """Return a piece of a band."""
    colour = _GREY if len(view.drawn) > 1 else _ACCENT
    return (
        '<svg width="34" height="10" aria-hidden="true"><rect x="1" y="0" width="32" height="10" '
        f'style="fill: {_shade(colour)}"/></svg>'
    )


def _swatch(colour: str, dashes: str = "") -> str:
    """Return a short piece of a line."""
    return (
        '<svg width="34" height="10" aria-hidden="true"><line x1="1" y1="5" x2="33" y2="5" '
        f'stroke-width="2.5" stroke-dasharray="{dashes}" style="stroke: {colour}"/></svg>'
    )
