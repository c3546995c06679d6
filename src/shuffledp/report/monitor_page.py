"""The page about a monitored statistic: running counts with bands, their errors, the statement.

For its privacy statement read `shuffledp.report.statement` on why "the odds change by at most a
factor, but for an exception of probability delta" says exactly what (epsilon, delta) means.
"""

import math
from html import escape
from typing import Any

import numpy as np

from shuffledp.report.figures import COLOURS, Figure, LegendEntry, axis, base_layout, line
from shuffledp.report.formatting import brief, fixed, odds_factor, rounded, shorten
from shuffledp.report.monitor import (
    Curve,
    FloatArray,
    MonitorView,
    counted,
    share_text,
    shown_periods,
    table_headings,
    table_rows,
)
from shuffledp.report.page import page_html, render_page
from shuffledp.report.statement import Paragraph, exception_paragraph, limit_text

SEEDED = (
    "This run was given a seed, so whoever knows the seed can undo its randomization. It protects "
    "nobody: do not publish it as private."
)

_MINUS = "\u2212"
_MANY_ROWS = 30
_LONGEST_LABEL = 40
_NUM_TICKS, _NUM_NARROW_TICKS = 8, 4
_SHADE = 0.18
_ACCENT = "#2f7fb8"  # in the middle of the light and the dark page's accents, for shades
_GREY = "#808080"


@page_html.register
def _(subject: MonitorView) -> str:
    running, errors = running_figure(subject), errors_figure(subject)
    rows = table_rows(subject)
    are_all_shown = len(shown_periods(subject)) == len(subject.periods)
    kind = "Simulated monitoring" if subject.is_seeded or subject.is_truth_known else "Monitoring"
    return render_page(
        "monitor.html",
        title=(
            f"{kind} of {subject.num_users:,} users over {counted(len(subject.periods), 'period')}"
        ),
        view=subject,
        seeded=SEEDED if subject.is_seeded else "",
        key_figures=_key_figures(subject),
        running=running,
        errors=errors,
        headings=table_headings(subject),
        rows=[_shown(subject, row) for row in rows],
        is_long=len(rows) > _MANY_ROWS,
        which_periods=(
            f"All {len(subject.periods):,} periods"
            if are_all_shown
            else f"{len(shown_periods(subject)):,} of the periods"
        ),
        paragraphs=statement_paragraphs(subject),
        statement_facts=statement_facts(subject),
    )


def _shown(view: MonitorView, row: tuple[str, ...]) -> tuple[str, ...]:
    """Return a row with labels shortened, and numbers with a proper minus."""
    period, *numbers = row
    labels = []
    if len(view.curves) > 1:
        label, *numbers = numbers
        labels = [shorten(label, 60)]
    return (period, *labels, *(number.replace("-", _MINUS) for number in numbers))


def _key_figures(view: MonitorView) -> list[tuple[str, ...]]:
    """Return the strip on top: what can be said of a period, and what it costs."""
    periods = counted(view.num_periods, "period")
    return [
        (
            "Error of a count",
            f"\u00b1{share_text(view.worst_half_width, view.num_users)}",
            f"of users, in the worst period: {view.band}",
            "",
        ),
        (
            "Central privacy loss",
            f"epsilon <= {rounded(view.central.upper, up=True, digits=3)}",
            f"all {periods} together, delta = {brief(view.delta)}",
            "",
        ),
        (
            "Local privacy loss",
            f"epsilon0 <= {rounded(view.local.upper, up=True)}",
            "all that a user sends, without the shuffler",
            "",
        ),
        ("Periods", f"{len(view.periods):,}", f"of {view.num_periods:,} planned", ""),
    ]


def statement_paragraphs(view: MonitorView) -> list[Paragraph]:
    """Return titles and texts; every number is rounded to the safe side."""
    seeded = [("This was a simulation.", SEEDED)] if view.is_seeded else []
    known = [_known_truth(view)] if view.is_truth_known else []
    return [
        *seeded,
        _what_reports_reveal(view),
        exception_paragraph(
            # No exception where all that is claimed is the local guarantee.
            view.delta if view.central.upper < view.local.upper else 0.0,
            brief(view.delta),
            view.num_users,
            without="what is claimed is the local guarantee, which holds without exception.",
        ),
        _local(view),
        _whole_history(view),
        *known,
        _more_changes(view),
        (
            "What it does not promise.",
            "It does not hide what is true of a group: the estimates can tell something about a "
            "person through the people who resemble them. It does not hide that somebody takes "
            "part. And it covers these periods only: whoever is monitored again, or asked "
            "something else, spends more, and the losses add up.",
        ),
    ]


def statement_facts(view: MonitorView) -> list[tuple[str, str]]:
    """Return the central guarantee, how far it is from what is unavoidable, then the local one."""
    central, local = view.central, view.local
    unavoidable, gap = "not known", "not known"
    if central.lower is not None and central.gap is not None:
        unavoidable = f"epsilon >= {rounded(central.lower, up=False)}"
        gap = f"{100.0 * central.gap:.1f}%"
    return [
        (
            "Proved upper bound",
            f"epsilon <= {rounded(central.upper, up=True)} at delta = {brief(view.delta)}",
        ),
        ("Proved unavoidable", unavoidable),
        ("Gap", gap),
        ("Method", central.method),
        ("Source", central.source),
        ("Local", f"epsilon0 <= {rounded(local.upper, up=True)}, {local.method}"),
        ("Source", local.source),
    ]


def _what_reports_reveal(view: MonitorView) -> Paragraph:
    """Say what the central epsilon means for a whole history."""
    title = "What the reports reveal."
    levels = "" if view.is_level_hidden else ", and who reports at which level,"
    adversary = (
        f"An adversary who sees the shuffled reports of all {view.num_periods:,} periods{levels} "
        "and knows everybody else's history"
    )
    epsilon = view.central.upper
    if math.isinf(epsilon):
        return title, f"{adversary} may learn a person's history: no finite epsilon is proved."
    return title, limit_text(
        f"{adversary} faces a limit on what it can learn about any one person. Whatever two "
        f"histories of at most {counted(view.max_changes, 'change')} it weighs against each "
        "other, all reports together change",
        "both",
        epsilon=epsilon,
        delta=view.delta,
        shown=rounded(epsilon, up=True),
    )


def _local(view: MonitorView) -> Paragraph:
    """Say what is left if the shuffler is broken."""
    return "If the shuffler fails.", (
        "Every user randomized on the own device. Whoever sees all that one user ever sends, from "
        "the first period to the last, with the name on it, changes the odds by a factor of at "
        f"most {odds_factor(view.local.upper)} (epsilon0 = {rounded(view.local.upper, up=True)})."
    )


def _whole_history(view: MonitorView) -> Paragraph:
    """Say that nothing has to be multiplied by the number of periods."""
    return "What counts as one person's data.", (
        f"The whole history, over all {view.num_periods:,} periods. Both limits are for everything "
        "a person sends in that time; they are not to be multiplied by the number of periods."
    )


def _known_truth(view: MonitorView) -> Paragraph:
    """Say that the true counts are not part of what is released."""
    where = "tables and charts of this page" if len(view.periods) > 1 else "this page"
    return "What is not private here.", (
        f"The true counts in the {where}, and the number of ignored changes. A simulation has "
        "everybody's history at hand; a real server has not. Nothing above covers them: do not "
        "publish them."
    )


def _more_changes(view: MonitorView) -> Paragraph:
    """Say what becomes of changes beyond the limit."""
    title = f"Users who change more than {_times(view.max_changes)}."
    text = (
        "Their later changes are ignored on their own device, so their privacy is that of "
        "everybody else. The estimates miss these changes."
    )
    if not view.num_ignored_changes:
        return title, text + " In this run there were none."
    return title, text + (
        f" In this run that were {counted(view.num_ignored_changes, 'change')} of "
        f"{counted(view.num_users_with_ignored, 'user')}: the estimates are of the histories "
        "without them."
    )


def _times(number: int) -> str:
    """Return ``"once"`` or ``"4 times"``."""
    return "once" if number == 1 else f"{number:,} times"


def running_figure(view: MonitorView) -> Figure:
    """Return the estimates as lines in their bands, and the true counts dashed, where known."""
    traces = [_band_trace(curve.lower, curve.upper, colour) for curve, colour in _coloured(view)]
    traces += [
        _line(curve.estimates, colour, width=2.0, texts=_texts(view, curve))
        for curve, colour in _coloured(view)
    ]
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
        legend=_legend(view),
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


def _legend(view: MonitorView) -> tuple[LegendEntry, ...]:
    """Return how lines and bands are drawn."""
    entries = [
        LegendEntry(colour, label=shorten(curve.label, _LONGEST_LABEL))
        if curve.label
        else LegendEntry(colour, "estimate")
        for curve, colour in _coloured(view)
    ]
    shade = _shade(_GREY if len(view.drawn) > 1 else _ACCENT)
    entries.append(LegendEntry(shade, view.band, is_shade=True))
    if view.is_truth_known:
        known = "true count, known only because this is a simulation"
        entries.append(LegendEntry("var(--ink)", known, dashes="5 4"))
    return tuple(entries)


def _coloured(view: MonitorView) -> list[tuple[Curve, str]]:
    """Return the curves to draw, each with its colour."""
    if len(view.drawn) == 1:
        return [(view.drawn[0], "var(--accent)")]
    return list(zip(view.drawn, COLOURS, strict=False))


def _band_trace(lower: FloatArray, upper: FloatArray, colour: str) -> dict[str, Any]:
    """Return a shaded band: there along its upper end, and back along its lower one."""
    forth = list(range(1, len(lower) + 1))
    ends = upper.tolist() + lower[::-1].tolist()
    band = line(forth + forth[::-1], ends, colour, mode="lines", width=0)
    return band | {"fill": "toself", "fillcolor": _shade(colour)}


def _line(
    values: FloatArray,
    colour: str,
    *,
    width: float,
    dash: str = "solid",
    texts: list[str] | None = None,
) -> dict[str, Any]:
    """Return a line over the periods, which count from 1; one period is a point."""
    mode = "lines" if len(values) > 1 else "markers"
    return line(
        range(1, len(values) + 1), values.tolist(), colour, texts=texts, mode=mode, width=width,
        dash=dash, marker=6,
    )  # fmt: skip


def _texts(view: MonitorView, curve: Curve) -> list[str]:
    """Return what is shown beside each estimate on hovering."""
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
    return texts


def _layout(view: MonitorView, title: str, *, height: int) -> dict[str, Any]:
    """Return axes whose labels are names of periods."""
    layout = base_layout(height=height)
    places, names = _ticks(view, _NUM_TICKS)
    layout["xaxis"] = axis(
        "Period",
        range=[0.5, len(view.periods) + 0.5],
        tickmode="array",
        tickvals=places,
        ticktext=names,
        tickangle=0,
    )
    layout["yaxis"] = axis(title, nticks=7)
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
