"""Pages: the one of a run, with its charts and its tables beside the estimates, and others."""

import math
from collections.abc import Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from shuffledp.collection.leakage import leakage_of
from shuffledp.collection.output import whole_file
from shuffledp.collection.questions.question import INTERVALS_ABOUT
from shuffledp.collection.result import Result
from shuffledp.estimation.post_processing import POST_PROCESSING
from shuffledp.report import dummies, wording
from shuffledp.report.drawing import Axis, Bar, Figure, Line, bars_figure, isolated, lines_figure
from shuffledp.report.formatting import decimals_for, percent, shorten, shown_label
from shuffledp.report.leakage import leakage_facts
from shuffledp.report.page import render
from shuffledp.report.statement import SIMULATION_WARNING, meets_target, privacy_statement

_MOST_BINS = 128  # of a distribution, drawn in their order
_MOST_BARS = 30  # more cannot be read; the table beside the chart is complete
_LONGEST_COLUMN = 32  # characters of a column's name in the title


def page_html(subject: object) -> str:
    """Return the whole page about a result.

    Parameters
    ----------
    subject : Result or MonitorResult
        Sections whose data is empty are left out.

    Returns
    -------
    str
        HTML, its charts as SVG; below 500 kB up to some thousand estimates. Depends on nothing but
        ``subject``: the same subject gives the same page.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    >>> page_html(result).startswith("<!DOCTYPE html>")
    True
    """
    if isinstance(subject, Result):
        return _page(subject)
    from shuffledp.monitoring.simulation import MonitorResult
    from shuffledp.report.monitor import page

    if isinstance(subject, MonitorResult):
        return page(subject)
    raise TypeError(f"there is no page about a {type(subject).__name__}")


def write_report(subject: object, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML page, which opens without a network.

    Parameters
    ----------
    subject : Result or MonitorResult
        Subject of the report.
    path : str or path-like
        Path of the report; an existing file is replaced in one step.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    OutputError
        If the file cannot be written; no file is then left behind.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(result, f"{folder}/report.html").name
    'report.html'
    """
    html = page_html(subject)
    with whole_file(path) as partial:
        partial.write_text(html, encoding="utf-8", newline="")
    return Path(path)


def _page(subject: Result) -> str:
    """Return the whole page about a result."""
    kind = "Simulated" if subject.is_simulation else "Private"
    column, (headings, rows) = subject.about.column, wording.estimate_table(subject)
    of = f" of \u201c{shorten(column, _LONGEST_COLUMN)}\u201d" if column else ""
    cumulative, number = figure_of_cumulative(subject), _num_charted(subject)
    is_fine = cumulative is not None and len(rows) > _MOST_BINS
    is_picked = cumulative is None and number > _MOST_BARS
    return render(
        "run.html",
        title=subject.about.title or f"{kind} estimates{of} from {subject.num_users:,} users",
        result=subject,
        wording=wording,
        dummies=dummies,
        words=wording.wording(subject.question),
        simulation_warning=SIMULATION_WARNING,
        meets_target=meets_target(subject),
        bars=None if is_fine or not rows else figure_of_estimates(subject),
        num_picked=_MOST_BARS if is_picked else 0,
        num_charted=number,
        is_one=_is_one_number(subject),
        cumulative=cumulative,
        headings=headings,
        rows=[(label, *_with_minus(numbers)) for label, *numbers in rows],
        are_many=len(rows) > _MOST_BARS,
        further=further_tables(subject),
        biased=[each for each in subject.estimates.post_processing if each in POST_PROCESSING],
        statement=privacy_statement(subject),
        **leakage_facts(leakage_of(subject)),
        shuffle=wording.words_of_result(subject),
    )


def _num_charted(result: Result) -> int:
    """Return the number of estimates in the chart: cells of cross-tables are only in tables."""
    return getattr(result.question, "num_margins", len(result.domain))


def _is_one_number(result: Result) -> bool:
    """Return True for one mean, which needs no bars."""
    return len(result.domain) == 1 and not wording.wording(result.question).is_share


def _with_minus(numbers: Sequence[str]) -> list[str]:
    """Return numbers with minus signs instead of hyphens."""
    return [number.replace("-", "\u2212") for number in numbers]


# --------------------------------------------------------------------- charts
def figure_of_estimates(result: Result) -> Figure:
    """Return bars with intervals: up to 30 in the question's order, otherwise the 30 largest."""
    headings, rows = wording.estimate_table(result)
    words, values = wording.wording(result.question), wording.main_estimates(result)
    columns = (wording.errors_and_ends(result, about=each)[1:] for each in INTERVALS_ABOUT)
    ends = [list(zip(*each, strict=True)) for each in columns]
    number = _num_charted(result)
    shown = list(range(number))
    if number > _MOST_BARS and not hasattr(result.estimates, "edges"):
        shown = sorted(shown, key=lambda i: (math.isnan(values[i]), -values[i]))[:_MOST_BARS]
    which = f"each of {number}" if number == len(shown) else f"the {_MOST_BARS} largest"
    bars = []
    for i in shown:
        label, *_, estimate, _, own, _, population = rows[i]
        title = f"{isolated(label, 60)}\n{estimate}\n{headings[-3]}: {own}"
        title += f"\n{headings[-1]}: {population}"
        here, whole = (each[i] for each in ends)
        value = here[0] if math.isnan(values[i]) else values[i]  # no statement for this group
        bars.append(Bar(label=label, value=value, title=title, interval=here, population=whole))
    is_one = _is_one_number(result)
    return bars_figure(
        "chart-estimates",
        bars,
        x=Axis(is_share=words.is_share),
        description=f"{'Dot' if is_one else 'Bar'} chart of the estimated {words.plural}, {which}, "
        f"with {headings[-3]}s and {headings[-1]}s. The table of estimates holds the same numbers.",
        are_dots=is_one,
    )


def figure_of_cumulative(result: Result) -> Figure | None:
    """Return the share below each edge with its band and quantiles; None but for distributions."""
    estimates: Any = result.estimates
    if not hasattr(estimates, "edges"):  # only distributions have edges
        return None
    about, edges = result.interval_about, estimates.edges
    lower, upper = estimates.cumulative_interval(about=about, simultaneous=True)
    ends = tuple((first, *side.tolist()) for first, side in ((0.0, lower), (0.0, upper)))
    below = (0.0, *estimates.cumulative.tolist())
    name = "share below"
    lines = [Line(name=name, x=edges, y=below, colour="var(--accent)", band=(ends[0], ends[1]))]
    lines += [
        Line(name=title, x=(low, high), y=(share, share), colour="var(--ink)", width=2.5)
        for (share, (_, low, high)), (title, _) in zip(
            result.quantiles, wording.quantile_facts(result), strict=True
        )
    ]
    return lines_figure(
        "chart-cumulative",
        lines,
        x=Axis(title=result.about.column or getattr(result.question, "name", "")),
        y=Axis(title="share of users below", is_share=True, has_zero=True),
        band=f"{100.0 * estimates.confidence:g}% simultaneous intervals",
    )


# --------------------------------------------------------------------- further tables
class Table(NamedTuple):
    """A table with labels from users in its first column and in its headings."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    #: True if terminals show it, too.
    is_short: bool = False


def further_tables(result: Result) -> list[Table]:
    """Return the associations of columns, and their cross-tables; empty for other estimates."""
    tested = getattr(result.estimates, "associations", None)
    if tested is None:
        return []
    question: Any = result.question
    about = result.interval_about
    errors, low, high = wording.errors_and_ends(result, about=about)
    decimals = decimals_for([100.0 * error for error in errors])
    texts = (
        [percent(each, decimals) for each in column]
        for column in (wording.main_estimates(result), low, high)
    )
    every = (f"{value} ({least} to {most})" for value, least, most in zip(*texts, strict=True))
    cells = islice(every, question.num_margins, None)
    found, names = [], dict(question.domains)
    rows: list[tuple[str, ...]]
    if tested:
        rows = [
            (
                f"{shown_label(each.first)} and {shown_label(each.second)}",
                f"{each.chi_square:.2f}",
                str(each.degrees_of_freedom),
                chance(each.p_value),
            )
            for each in tested
        ]
        title = "Association of each pair, as if these users were a sample of a population"
        headings = ("Pair", "Chi-square", "Degrees of freedom", "p-value")
        found.append(Table(title, headings, rows, is_short=True))
    interval = wording.interval_name(result, about=about)
    for one, other in question.pairs:
        rows = [(shown_label(label), *islice(cells, len(names[other]))) for label in names[one]]
        title = f"{shown_label(one)} by {shown_label(other)}, with {interval}s"
        found.append(Table(title, (one, *map(shown_label, names[other])), rows))
    return found


def chance(p_value: float | None) -> str:
    """Return a p-value, or the reason why there is none."""
    if p_value is None:
        return "too few reports in some cell"
    return "below 0.0001" if p_value < 1e-4 else f"{p_value:.4f}"
