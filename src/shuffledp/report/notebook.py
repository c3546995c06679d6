"""A result in a few lines: an HTML fragment without scripts for notebooks, text for terminals."""

from html import escape

from shuffledp.collection.results import Result
from shuffledp.core.display import visible
from shuffledp.report.formatting import display_width, shorten
from shuffledp.report.statement import (
    SIMULATION_WARNING,
    privacy_statement,
)
from shuffledp.report.tables import EstimateRow, estimate_headings, estimate_rows
from shuffledp.report.typesetting import typeset
from shuffledp.report.wording import randomizer_title

_MOST_ROWS = 20  # of the table; the rest is in the report and in result.estimates
_LONGEST_LABEL = 40  # characters
# Colours are mixed from the notebook's own, so that both of its themes work.
_CELL = "padding:.2em .8em;font-variant-numeric:tabular-nums"
_ALERT = "border-left:4px solid #c0392b;padding:.4em .8em;margin:.4em 0;font-weight:600"
_NOTE = "border-left:4px solid #c98a12;padding:.4em .8em;margin:.4em 0"


def notebook_html(result: Result) -> str:
    """Return an HTML fragment: headline, table, statement. It runs no script and loads nothing.

    Parameters
    ----------
    result : Result
        At most 20 answers are shown, in the order of the domain.
    """
    statement = privacy_statement(result)
    # What epsilon means is true only together with its exception, delta.
    words = "".join(
        f"<p><b>{typeset(title)}</b> {typeset(text)}</p>"
        for title, text in statement.paragraphs
        if title in {"What the reports reveal.", "The exception."}
    )
    alert = f'<p style="{_ALERT}">Simulation. {escape(SIMULATION_WARNING)}</p>'
    notes = "".join(f'<p style="{_NOTE}">{escape(warning)}</p>' for warning in result.warnings)
    rows = estimate_rows(result)
    body = "".join(_html_row(row, "td") for row in rows[:_MOST_ROWS])
    hidden = len(rows) - _MOST_ROWS
    more = f"<p>and {hidden:,} more, in <code>result.estimates</code></p>" if hidden > 0 else ""
    return (
        f'<div style="max-width:60em">{alert if result.is_simulation else ""}{notes}'
        f"<p><b>{typeset(statement.headline)}</b><br>{typeset(_summary(result))}</p>"
        f"<table><thead>{_html_row(estimate_headings(result), 'th')}</thead>"
        f"<tbody>{body}</tbody></table>{more}"
        f"{words}</div>"
    )


def terminal_text(result: Result) -> str:
    """Return the same as plain text; only the answers themselves may leave ASCII.

    Parameters
    ----------
    result : Result
        At most 20 answers are shown, in the order of the domain.
    """
    statement = privacy_statement(result)
    rows = estimate_rows(result)
    lines = [_summary(result)]
    if result.is_simulation:
        lines.append(f"SIMULATION. {SIMULATION_WARNING}")
    lines += [f"Warning: {visible(warning)}" for warning in result.warnings]
    lines += ["", *_aligned([estimate_headings(result), *rows[:_MOST_ROWS]])]
    if len(rows) > _MOST_ROWS:
        lines.append(f"and {len(rows) - _MOST_ROWS:,} more, in result.estimates")
    return "\n".join([*lines, "", statement.headline])


def _summary(result: Result) -> str:
    """Say on one line what was run."""
    return (
        f"{result.num_users:,} users, {randomizer_title(result.randomizer)} "
        f"({result.question.describe()}, epsilon0 = {result.randomizer.epsilon0:.4g}), "
        f"{result.shuffler} shuffler"
    )


def _cells(row: EstimateRow) -> tuple[str, ...]:
    """Return the columns, the label shortened."""
    label = shorten(row.value, _LONGEST_LABEL).replace("\u2026", "...")
    return (label, *row.few_numbers)


def _html_row(row: EstimateRow, tag: str) -> str:
    """Return one table row, labels to the left and numbers to the right."""
    label, *numbers = _cells(row)
    first = f'<{tag} style="{_CELL};text-align:left"><bdi>{escape(label)}</bdi></{tag}>'
    rest = "".join(f'<{tag} style="{_CELL};text-align:right">{n}</{tag}>' for n in numbers)
    return f"<tr>{first}{rest}</tr>"


def _aligned(rows: list[EstimateRow]) -> list[str]:
    """Return lines with labels to the left and numbers to the right, by display width."""
    table = [_cells(row) for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    lines = []
    for label, *numbers in table:
        padded = label + " " * (widths[0] - display_width(label))
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([padded, *cells]))
    return lines
