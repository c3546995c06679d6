"""Tables of estimates beside the one value for each label."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from shuffledp.collection.result import Result
from shuffledp.estimation.cross_tables import Association
from shuffledp.report import wording
from shuffledp.report.formatting import decimals_for, percent, shown_label


class Table(NamedTuple):
    """A table with labels from users in its first column and in its headings."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    #: True if terminals show it, too.
    is_short: bool = False


def tables(result: Result, tested: Sequence[Association]) -> list[Table]:
    """Return the associations of columns, and their cross-tables."""
    question: Any = result.question
    names, errors, low, high = (
        dict(question.domains),
        *(wording.errors_and_ends(result, about=result.interval_about)),
    )
    decimals = decimals_for([100.0 * error for error in errors])
    every = (
        percent(value, decimals) + f" ({' to '.join(ends)})"
        for value, *ends in zip(
            wording.main_estimates(result),
            *([percent(end, decimals) for end in each] for each in (low, high)),
            strict=True,
        )
    )
    cells = islice(every, question.num_margins, None)
    found, interval = [], wording.interval_name(result, about=result.interval_about)
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
