"""The report of a monitored statistic: one HTML file with everything in it.

For its privacy statement read `shuffledp.report.statement` on why "the odds change by at most a
factor, but for an exception of probability delta" says exactly what (epsilon, delta) means.
"""

import math
from collections.abc import Iterable
from html import escape
from os import PathLike
from pathlib import Path

from shuffledp._version import __version__
from shuffledp.core.bound import Bound
from shuffledp.report.formatting import (
    best_guess,
    brief,
    odds_factor,
    one_in,
    rounded,
    shorten,
)
from shuffledp.report.monitor_figures import errors_figure, legend, running_figure
from shuffledp.report.monitor_view import (
    MonitorView,
    TableRow,
    counted,
    share_text,
    shown_periods,
    table_headings,
    table_rows,
)
from shuffledp.report.page import document
from shuffledp.report.sections import facts_list, figure_place, section
from shuffledp.report.typesetting import typeset
from shuffledp.report.writing import write_text_atomically

SEEDED = (
    "This run was given a seed, so whoever knows the seed can undo its randomization. It protects "
    "nobody: do not publish it as private."
)

Paragraph = tuple[str, str]


def statement_paragraphs(view: MonitorView) -> list[Paragraph]:
    """Return titles and texts; every number is rounded to the safe side."""
    seeded = [("This was a simulation.", SEEDED)] if view.is_seeded else []
    known = [_known_truth(view)] if view.is_truth_known else []
    return [
        *seeded,
        _what_reports_reveal(view),
        _exception(view),
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
        ("Safe to publish", f"{safe_epsilon(central)} at delta = {brief(view.delta)}"),
        ("Proved unavoidable", unavoidable),
        ("Gap", gap),
        ("Method", central.method),
        ("Source", central.source),
        ("Local", f"epsilon0 <= {rounded(local.upper, up=True)}, {local.method}"),
        ("Source", local.source),
    ]


def safe_epsilon(bound: Bound) -> str:
    """Return what is safe to publish."""
    return f"epsilon <= {rounded(bound.upper, up=True)}"


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
    text = (
        f"{adversary} faces a limit on what it can learn about any one person. Whatever two "
        f"histories of at most {counted(view.max_changes, 'change')} it weighs against each "
        "other, all reports together change the odds between them by a factor of at most "
        f"{odds_factor(epsilon)}, which is e^epsilon for epsilon = {rounded(epsilon, up=True)}. If "
        "both seemed equally likely before, it guesses right with a chance of at most "
        f"{best_guess(epsilon, view.delta)}, where tossing a coin gives 50%."
    )
    return title, text + (" A factor this large protects little." if epsilon > 5.0 else "")


def _exception(view: MonitorView) -> Paragraph:
    """Say what delta means for one person and for anyone at all."""
    title, delta = "The exception.", view.delta
    if delta == 0.0 or view.central.upper >= view.local.upper:
        return title, (
            "There is none: what is claimed is the local guarantee, which holds without exception."
        )
    text = (
        f"For each person the limit may fail with a chance of at most delta = {brief(delta)}, that "
        f"is {one_in(delta)}. "
    )
    anyone = view.num_users * delta  # union bound over the users
    if anyone < 1.0:
        return title, text + f"That it fails for anyone at all has a chance below {one_in(anyone)}."
    return title, text + (
        f"With {view.num_users:,} users it may fail for somebody: ask for a delta far below "
        f"{rounded(1.0 / view.num_users, up=False, digits=2)}."
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


_MINUS = "\u2212"
_MANY_ROWS = 30


def write_monitor_page(view: MonitorView, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML report of a monitored statistic.

    Parameters
    ----------
    view : MonitorView
        What to show.
    path : str or path-like
        Where to; an existing file is replaced in one step.

    Returns
    -------
    Path
        The file written, about 5 MB.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    return write_text_atomically(path, monitor_html(view))


def monitor_html(view: MonitorView) -> str:
    """Return the whole page; it depends on nothing but ``view``."""
    running, errors = running_figure(view), errors_figure(view)
    kind = "Simulated monitoring" if view.is_seeded or view.is_truth_known else "Monitoring"
    return document(
        title=f"{kind} of {view.num_users:,} users over {counted(len(view.periods), 'period')}",
        lead=_lead(view),
        banners=_banners(view),
        key_figures=_key_figures(view),
        body=(
            _estimates(view),
            _reading(view),
            _privacy(view),
            _done(view),
            _assumptions(view),
            _reproduce(view),
        ),
        figures=(running, *(() if errors is None else (errors,))),
        eyebrow="shuffledp monitor",
    )


def _lead(view: MonitorView) -> str:
    """Say in one sentence what happened."""
    return (
        f"Each of {view.num_users:,} users reported randomized changes of "
        f"<bdi>{escape(shorten(view.what, 60))}</bdi>, at most {view.max_changes:,} of them; these "
        "are the running counts estimated from the reports, period by period."
    )


def _banners(view: MonitorView) -> str:
    """Return what nobody may overlook."""
    banners = [
        f'<div class="banner"><p><strong>Warning.</strong> {escape(warning)}</p></div>'
        for warning in view.warnings
    ]
    if view.is_seeded:
        banners.insert(
            0,
            '<div class="banner alert" role="alert"><p><strong>Simulation.</strong> '
            f"{escape(SEEDED)}</p></div>",
        )
    return "\n".join(banners)


def _key_figures(view: MonitorView) -> str:
    """Return the strip on top: what can be said of a period, and what it costs."""
    cells = (
        (
            "Error of a count",
            f"\u00b1{share_text(view.worst_half_width, view.num_users)}",
            f"of users, in the worst period: {view.band}",
        ),
        (
            "Central privacy loss",
            typeset(f"epsilon <= {rounded(view.central.upper, up=True, digits=3)}"),
            typeset(
                f"all {counted(view.num_periods, 'period')} together, delta = {brief(view.delta)}"
            ),
        ),
        (
            "Local privacy loss",
            typeset(f"epsilon0 <= {rounded(view.local.upper, up=True)}"),
            "all that a user sends, without the shuffler",
        ),
        ("Periods", f"{len(view.periods):,}", f"of {view.num_periods:,} planned"),
    )
    return '<dl class="key-figures">{}</dl>'.format(
        "".join(
            f'<div><dt>{name}</dt><dd class="figure">{figure}</dd>'
            f'<dd class="detail">{detail}</dd></div>'
            for name, figure, detail in cells
        )
    )


def _estimates(view: MonitorView) -> str:
    """Return the charts and the table."""
    caption = f"Estimated number of users in each period. Shaded: {typeset(view.band)}."
    if len(view.drawn) < len(view.curves):
        caption += (
            f" Shown are the {len(view.drawn)} largest of {len(view.curves):,} values; being "
            "picked for their size, they tend to be a little too large."
        )
    charts = figure_place(running_figure(view), caption) + legend(view)
    errors = errors_figure(view)
    if errors is not None:
        charts += figure_place(
            errors, "Estimate less true count. Shaded: how wide the band is in each period."
        )
    return section("estimates", "Running counts", charts + _table(view))


def _table(view: MonitorView) -> str:
    """Return the numbers; a long table can be closed."""
    head, rows = table_headings(view), table_rows(view)
    header = "".join(
        f'<th scope="col" role="columnheader">{name}</th>' for name in (head.name, *head.numbers)
    )
    body = "".join(_row(row, head) for row in rows)
    is_long = len(rows) > _MANY_ROWS
    table = (
        f'<div class="table estimates{" long" * is_long}" role="region" tabindex="0" '
        'aria-label="Table of running counts">'
        f'<table role="table"><thead role="rowgroup"><tr role="row">{header}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )
    if not is_long:
        return table
    shown = len(shown_periods(view))
    name = f"All {shown:,} periods" if shown == len(view.periods) else f"{shown:,} of the periods"
    return f"<details open><summary>{name}</summary>{table}</details>"


def _row(row: TableRow, head: TableRow) -> str:
    """Return one period; on a phone each number shows its heading."""
    cells = "".join(
        f'<td role="cell" data-label="{label}"><bdi>{_number(label, number)}</bdi></td>'
        for label, number in zip(head.numbers, row.numbers, strict=True)
    )
    name = f'<th scope="row" role="rowheader"><bdi>{escape(row.name)}</bdi></th>'
    return f'<tr role="row">{name}{cells}</tr>\n'


def _number(label: str, text: str) -> str:
    """Return a cell: labels as they are, numbers with a proper minus."""
    return escape(shorten(text, 60)) if label == "Value" else text.replace("-", _MINUS)


def _reading(view: MonitorView) -> str:
    """Say what the curves can be used for."""
    points = [
        "The estimates are unbiased and are shown as they are: a count near 0 can come out "
        "negative, and one near everybody can come out above the number of users.",
        f"The shaded region is a {view.band}. A movement of the curve that stays inside the band "
        "may be noise alone.",
        "Errors of neighbouring periods are not independent: periods share reports. The error "
        "jumps up and down with the binary form of the period's number, and is least where few "
        "sums of reports cover the time since the start.",
    ]
    if view.is_truth_known:
        total = len(view.periods) * len(view.curves)
        points.append(
            f"Of {total:,} true counts, {view.num_outside:,} lie outside their band. They are "
            "known only because this is a simulation."
        )
    return section("reading", "How to read it", _list(points))


def _privacy(view: MonitorView) -> str:
    """Return the statement in plain words, then the facts that it rests on."""
    words = "".join(
        f"<p><strong>{typeset(title)}</strong> {typeset(text)}</p>"
        for title, text in statement_paragraphs(view)
    )
    facts = facts_list([(name, typeset(value)) for name, value in statement_facts(view)])
    return section("privacy", "Privacy statement", f'<div class="statement">{words}</div>{facts}')


def _done(view: MonitorView) -> str:
    """Return how it ran."""
    facts = facts_list([(escape(name), typeset(value)) for name, value in view.facts])
    return section("method", "What was done", facts)


def _assumptions(view: MonitorView) -> str:
    """Return everything that must hold for the statement to be true."""
    return section(
        "assumptions",
        "Assumptions",
        "<p>The statement is true if all of these hold.</p>"
        f"<h3>With the shuffler</h3>{_list(view.central.assumptions)}"
        f"<h3>Without it</h3>{_list(view.local.assumptions)}",
    )


def _list(sentences: Iterable[str]) -> str:
    """Return our own sentences as a list."""
    items = "".join(f"<li>{typeset(sentence)}</li>" for sentence in sentences)
    return f'<ul class="assumptions">{items}</ul>'


def _reproduce(view: MonitorView) -> str:
    """Return how to run it again and what to cite."""
    facts = facts_list(
        [
            ("Software", f"shuffledp {__version__}"),
            ("Central guarantee", typeset(view.central.source)),
            ("Local guarantee", typeset(view.local.source)),
        ]
    )
    return section("reproduce", "Reproduce and cite", f"<pre>{escape(view.code)}</pre>{facts}")
