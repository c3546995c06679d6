"""All bounds as a page: curves, the table, and what each method states and where."""

from html import escape
from os import PathLike
from pathlib import Path

from shuffledp.collection.bounds import BoundCurves, ComparedBound, Over, Scenario
from shuffledp.report.bounds_figure import (
    bounds_figure,
    legend,
    position_text,
    series_of,
)
from shuffledp.report.bounds_view import (
    bound_rows,
    gap_text,
    headings,
    missing_rows,
    number,
    scenario_text,
    users_text,
)
from shuffledp.report.formatting import given, rounded
from shuffledp.report.page import document
from shuffledp.report.sections import facts_list, figure_place, section
from shuffledp.report.typesetting import typeset
from shuffledp.report.writing import write_text_atomically

_APART = 'style="margin-top: 1.75rem"'
_OVER_TEXT = {Over.NUM_USERS: "the number of users", Over.EPSILON0: "epsilon0"}


def write_bounds_page(curves: BoundCurves, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML page that compares all bounds.

    Parameters
    ----------
    curves : BoundCurves
        From `bound_curves`.
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
    scenario = curves.here.scenario
    figure = bounds_figure(curves)
    curves_section = section(
        "curves",
        f"Over {typeset(_OVER_TEXT[curves.over])}",
        figure_place(figure, typeset(_caption(curves))) + legend(curves) + _numbers(curves),
    )
    page = document(
        title=f"Bounds on {scenario.asked}",
        lead=typeset(f"Every method of the accountant, for {scenario_text(scenario)}."),
        key_figures=_key_figures(curves),
        body=[curves_section, _table(curves), _methods(curves)],
        figures=[figure],
        eyebrow="shuffledp bounds",
    )
    return write_text_atomically(path, page)


def _key_figures(curves: BoundCurves) -> str:
    """Return the strip on top: the best bound, what is unavoidable, the gap, and the users."""
    here = curves.here
    asked = here.scenario.asked
    lower = "not known" if here.lower is None else f"{asked} >= {_short(here.lower, up=False)}"
    cells = (
        ("Best bound", f"{asked} <= {_short(here.best, up=True)}", here.bounds[0].method.name),
        ("Unavoidable", lower, "no analysis can go below"),
        ("Gap", gap_text(here.lower, here.best), "of the best bound"),
        ("Users", f"{here.scenario.num_users:,}", f"epsilon0 = {given(here.scenario.epsilon0)}"),
    )
    return '<dl class="key-figures">{}</dl>'.format(
        "".join(
            f'<div><dt>{name}</dt><dd class="figure">{typeset(figure)}</dd>'
            f'<dd class="detail">{typeset(detail)}</dd></div>'
            for name, figure, detail in cells
        )
    )


def _short(value: float, *, up: bool) -> str:
    """Return a number that fits a narrow cell."""
    return rounded(value, up=up, digits=4 if value >= 1e-4 else 3)


def _caption(curves: BoundCurves) -> str:
    """Say what is drawn, and why a curve may be missing."""
    fixed = _fixed_text(curves.here.scenario, curves.over)
    return (
        f"Safe {curves.here.scenario.asked} with {fixed}. A curve ends where its method does not "
        "apply, or says no more than the local guarantee. Below the dashed line no analysis can "
        "go; the dotted line is the collection that was asked about."
    )


def _fixed_text(scenario: Scenario, over: Over) -> str:
    """Name what does not change along the curves."""
    given_name = "epsilon" if scenario.asked == "delta" else "delta"
    fixed = (
        f"epsilon0 = {given(scenario.epsilon0)}"
        if over is Over.NUM_USERS
        else users_text(scenario.num_users)
    )
    return f"{fixed} and {given_name} = {given(scenario.given)}"


def _numbers(curves: BoundCurves) -> str:
    """Return the curves as a table that can be opened."""
    series = series_of(curves)
    head = "".join(
        f'<th scope="col">{typeset(name)}</th>'
        for name in (_OVER_TEXT[curves.over], *(each.name for each in series))
    )
    rows = "".join(
        f"<tr><td>{typeset(position_text(position, curves.over))}</td>"
        + "".join(f"<td>{typeset(_cell(each.values[index], up=each.up))}</td>" for each in series)
        + "</tr>"
        for index, position in enumerate(curves.positions)
    )
    return (
        '<details><summary>The numbers</summary><div class="table" role="region" tabindex="0" '
        'aria-label="Table of all curves">'
        f'<table style="white-space: nowrap"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _cell(value: float | None, *, up: bool) -> str:
    """Return one number of the table, short since there are many."""
    return "" if value is None else rounded(value, up=up, digits=4)


def _table(curves: BoundCurves) -> str:
    """Return the comparison at the scenario that was asked about."""
    here = curves.here
    names = [typeset(name) for name in headings(here)]
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    rows = "".join(_row(names, row) for row in bound_rows(here))
    table = (
        '<div class="table estimates"><table role="table"><thead role="rowgroup">'
        f'<tr role="row">{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )
    missing = [(escape(name), typeset(reason)) for name, reason in missing_rows(here)]
    rest = f"<h3 {_APART}>These say nothing here</h3>{facts_list(missing)}"
    return section("table", typeset(f"For {scenario_text(here.scenario)}"), table + rest)


def _row(names: list[str], row: tuple[str, ...]) -> str:
    """Return one bound; on a phone each number shows its heading."""
    cells = "".join(
        f'<td role="cell" data-label="{escape(name)}">{typeset(cell)}</td>'
        for name, cell in zip(names[1:], row[1:], strict=True)
    )
    heading = f'<th scope="row" role="rowheader">{typeset(row[0])}</th>'
    return f'<tr role="row">{heading}{cells}</tr>'


def _methods(curves: BoundCurves) -> str:
    """Return what each method states, and where it is proved."""
    body = "".join(
        f"<h3 {_APART}>{escape(each.method.name)}</h3>{facts_list(_facts(each))}"
        for each in curves.here.bounds
    )
    return section("methods", "What each method states", body)


def _facts(each: ComparedBound) -> list[tuple[str, str]]:
    """Return one method's entry."""
    method = each.method
    facts = [
        ("Here", typeset(each.reason or number(each.value, up=True))),
        ("Statement", f"<code>{escape(method.statement)}</code>"),
        ("Source", typeset(method.source)),
        ("Proof", "in the documentation" if method.proved_here else "in the source"),
    ]
    if method.is_exact:
        facts.append(("Exact", "some data attain it"))
    if method.assumptions:
        facts.append(("Assumes", "<br>".join(map(typeset, method.assumptions))))
    return facts
