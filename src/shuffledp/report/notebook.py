"""Results and plans in a few lines: HTML without scripts for notebooks, text for terminals."""

import math
from collections.abc import Sequence
from dataclasses import fields
from functools import singledispatch

from shuffledp.collection.leakage import RunLeakage
from shuffledp.collection.plan import Plan
from shuffledp.collection.result import Result
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.display import visible
from shuffledp.core.shown import Frames, Shown
from shuffledp.report import dummies, wording
from shuffledp.report import plan as plan_words
from shuffledp.report.formatting import brief, given, literal, rounded, shorten
from shuffledp.report.page import render
from shuffledp.report.run import further_tables
from shuffledp.report.statement import SIMULATION_WARNING, headline, privacy_statement

_MOST_ROWS = 20  # of the table; the report and result.estimates have all
_LONGEST_LABEL = 40  # characters
_SHOWN = {"What the reports reveal.", "The exception.", "The dummies.", "Who held true answers."}


@singledispatch
def notebook_html(subject: object) -> str:
    """Return an HTML fragment; it runs no script and loads nothing.

    Parameters
    ----------
    subject : Shown
        A table shows at most 20 rows; for a result the first answers of the domain.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> "<table>" in notebook_html(sdp.account(epsilon0=1.0, num_users=1_000, delta=1e-6))
    True
    """
    raise TypeError(f"nothing is shown of a {type(subject).__name__}")


@singledispatch
def terminal_text(subject: object) -> str:
    """Return the same as plain text; only the answers themselves may be other than ASCII.

    Parameters
    ----------
    subject : Result or Plan
        For a result at most 20 answers are shown, in the order of the domain; for a plan none.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> print(terminal_text(plan).partition(":")[0])
    100 users, k-ary randomized response for 2 answers
    """
    raise TypeError(f"nothing is shown of a {type(subject).__name__}")


@notebook_html.register
def _(subject: Result) -> str:
    statement = privacy_statement(subject)
    headings, rows = _cells(subject)
    return _fragment(
        literal(wording.finding(subject)),
        [*_quantile_lines(subject), statement.headline, _summary(subject)],
        headings,
        rows[:_MOST_ROWS],
        alert=f"Simulation. {SIMULATION_WARNING}" if subject.is_simulation else "",
        warnings=subject.warnings,
        num_more=max(0, len(rows) - _MOST_ROWS),
        # The meaning of epsilon is correct only together with its exception, delta.
        paragraphs=[(title, text) for title, text in statement.paragraphs if title in _SHOWN],
    )


@terminal_text.register
def _(subject: Result) -> str:
    headings, rows = _cells(subject)
    lines = []
    if subject.is_simulation:
        lines.append(f"SIMULATION. {SIMULATION_WARNING}")
    lines += [f"Warning: {visible(warning)}" for warning in subject.warnings]
    lines += [
        wording.finding(subject),
        *_quantile_lines(subject),
        "",
        *wording.same_width([headings, *rows[:_MOST_ROWS]]),
    ]
    if len(rows) > _MOST_ROWS:
        where = "estimates.csv (in Python result.estimates)"
        lines.append(f"and {len(rows) - _MOST_ROWS:,} more, in {where}")
    for table in further_tables(subject):
        if table.is_short:
            lines += ["", f"{table.title}:", *wording.same_width([table.headings, *table.rows])]
    lines += ["", headline(subject), _summary(subject)]
    found = wording.finding_rows(getattr(subject.estimates, "findings", {}))
    facts = [*found, *dummies.guarantee_rows(subject), *wording.trust_facts(subject)]
    facts += wording.dishonest_facts(subject)
    return "\n".join([*lines, *(f"{name}: {text}" for name, text in facts)])


@notebook_html.register
def _(subject: Plan) -> str:
    line, *expected = _plan_lines(subject)
    return _fragment(line, expected, *plan_words.plan_table(subject))


@notebook_html.register
def _(subject: Frames) -> str:
    columns = subject.to_dict()
    rows = [*zip(*(_shown(name, cells) for name, cells in columns.items()), strict=True)]
    title = getattr(subject, "title", type(subject).__name__)
    lines = [f"The first {_MOST_ROWS} of {len(rows):,} rows."] if len(rows) > _MOST_ROWS else []
    return _fragment(title, lines, tuple(columns), rows[:_MOST_ROWS])


@notebook_html.register
def _(subject: Shown) -> str:
    found = [(each.name, getattr(subject, each.name)) for each in fields(subject)]  # type: ignore[arg-type]  # all are dataclasses
    rows = [(name.replace("_", " "), text) for name, value in found if (text := _value(value))]
    return _fragment(type(subject).__name__, [], ("", "value"), rows)


@notebook_html.register
def _(subject: RunLeakage) -> str:
    rows = [(each.sentence, rounded(each.both.upper, up=True)) for each in subject.accounts]
    return _fragment(type(subject).__name__, [*subject.notes], ("", "right guess at most"), rows)


def _value(value: object) -> str:
    """Return a field as text, empty for an array or a part with fields of its own."""
    match value:
        case bool() | str():
            return str(value)
        case int() | float():
            return f"{value:,}" if isinstance(value, int) else brief(value)
        case Bound():
            upper = rounded(value.upper, up=True)
            low = "" if value.lower is None else f"{rounded(value.lower, up=False)} to "
            return f"{low}{upper} (proved, {value.method})"
        case Guarantee():
            return wording.guarantee_text(value)
        case tuple() if value and all(isinstance(each, str) for each in value):
            return "; ".join(value)
    return ""


def _shown(name: str, cells: Sequence[object]) -> list[str]:
    """Return the cells of a column as text; numbers rounded up, lower ends down."""
    up = "lower" not in name
    return [
        rounded(cell, up=up) if isinstance(cell, float) else "" if cell is None else str(cell)
        for cell in cells
    ]


def _fragment(
    headline: str,
    lines: list[str],
    headings: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    **more: object,
) -> str:
    """Return a table below a headline, with warnings above and paragraphs below, if any."""
    facts = {"headline": headline, "lines": lines, "headings": headings, "rows": rows}
    nothing = {"alert": "", "warnings": (), "num_more": 0, "paragraphs": ()}
    return render("notebook.html", **(nothing | facts | more))


@terminal_text.register
def _(subject: Plan) -> str:
    headings, rows = plan_words.plan_table(subject)
    table = wording.same_width([headings, *rows])
    return "\n".join([*_plan_lines(subject), "", *table])


def _plan_lines(plan: Plan) -> list[str]:
    """Return the planned run, its guarantee, its dummies and its errors in lines."""
    facts = [*plan_words.plan_rows(plan), *plan_words.expected_errors(plan)]
    return [
        f"{plan.num_users:,} users, {wording.randomizer_title(plan.randomizer)} for "
        f"{plan.question.describe()}: epsilon <= "
        f"{rounded(plan.guarantee.epsilon_upper, up=True)} at delta = {given(plan.target_delta)}",
        *(f"{name}: {text}" for name, text in facts),
    ]


def _summary(result: Result) -> str:
    """Return the run on one line."""
    loss = float(rounded(result.randomizer.epsilon0, up=True))
    local, added = f"epsilon0 = {given(loss)}", f"{result.num_dummies:,} dummies"
    if math.isinf(result.randomizer.epsilon0):
        local = wording.local_loss(result.randomizer.profile)
    return (
        f"{result.num_users:,} users, {wording.randomizer_title(result.randomizer)} "
        f"({result.question.describe()}, {local}), "
        f"{result.shuffler} shuffler" + (f", {added}" if result.dummies else "")
    )


def _quantile_lines(result: Result) -> list[str]:
    """Return quantiles, one a line, if there are more than the finding names."""
    facts = wording.quantile_facts(result)
    return [f"{name}: {text}" for name, text in facts] if len(facts) > 1 else []


def _cells(result: Result) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the narrow table of estimates, with shortened labels."""
    headings, rows = wording.estimate_table(result, is_narrow=True)
    return headings, [
        (shorten(label, _LONGEST_LABEL).replace("\u2026", "..."), *numbers)
        for label, *numbers in rows
    ]
