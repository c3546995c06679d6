"""A plan in a few lines: text for terminals, an HTML table for notebooks."""

from html import escape
from typing import TYPE_CHECKING

from shuffledp.report.formatting import decimals_for, given, rounded
from shuffledp.report.wording import randomizer_title, wording_for

if TYPE_CHECKING:
    from shuffledp.collection.plan import Alternative, Plan

_CELL = "padding:.2em .8em;font-variant-numeric:tabular-nums;text-align:"
HEADINGS = ("", "epsilon0", "bytes", "standard error", "epsilon")


def plan_text(plan: "Plan") -> str:
    """Return what was chosen and what it is compared with, as aligned plain text.

    Parameters
    ----------
    plan : Plan
        Of any number of answers; the answers themselves are not listed.
    """
    rows = [HEADINGS, *plan_rows(plan)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    expected = [f"{name}: {text}" for name, text in expected_errors(plan)]
    return "\n".join([_headline(plan), *expected, "", *(line.rstrip() for line in lines)])


def plan_html(plan: "Plan") -> str:
    """Return the same as an HTML fragment without scripts.

    Parameters
    ----------
    plan : Plan
        Of any number of answers; the answers themselves are not listed.
    """
    head, *body = (
        "<tr>"
        + "".join(
            f'<{tag} style="{_CELL}{"right" if index else "left"}">{escape(cell)}</{tag}>'
            for index, cell in enumerate(row)
        )
        + "</tr>"
        for tag, row in [("th", HEADINGS), *(("td", row) for row in plan_rows(plan))]
    )
    return (
        f"<p><b>{escape(_headline(plan))}</b></p>"
        + "".join(f"<p>{escape(f'{name}: {text}')}</p>" for name, text in expected_errors(plan))
        + f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
    )


def _headline(plan: "Plan") -> str:
    """Say on one line what will be run and what holds then."""
    return (
        f"{plan.num_users:,} users, {randomizer_title(plan.randomizer)} for "
        f"{plan.question.describe()}: epsilon <= "
        f"{rounded(plan.guarantee.epsilon_upper, up=True)} at delta = {given(plan.target_delta)}"
    )


def error_text(plan: "Plan", error: float) -> str:
    """Return a standard error of the plan in the unit of its estimates: percent, or as it is."""
    words = wording_for(plan.question)
    return words.format(error, decimals_for([words.unit * plan.expected_standard_error]))


def expected_errors(plan: "Plan") -> list[tuple[str, str]]:
    """Return both expected errors with their names: about these users, and about a population."""
    about_users = error_text(plan, plan.expected_standard_error)
    about_population = error_text(plan, plan.expected_population_standard_error)
    return [
        ("standard error", f"{about_users} expected, {plan.question.expected_for}"),
        ("population", f"standard error {about_population} expected, with sampling"),
    ]


def plan_rows(plan: "Plan") -> list[tuple[str, str, str, str, str]]:
    """Return name, epsilon0, bytes, standard error and central (or local) epsilon of each."""
    target = given(plan.target_epsilon)
    choices: list[tuple[str, Plan | Alternative]] = [("chosen:", plan)]
    choices += [("or", other) for other in plan.alternatives]
    rows = [
        (
            f"{name} {choice.randomizer.name}",
            rounded(choice.randomizer.epsilon0, up=True),
            f"{choice.randomizer.num_report_bytes:,}",
            error_text(plan, choice.expected_standard_error),
            target,
        )
        for name, choice in choices
    ]
    for name, model in (
        ("same error without a shuffler", plan.local_model),
        ("same error with a trusted curator", plan.central_model),
    ):
        cost = rounded(model.epsilon_for_same_error, up=True)
        rows.append((name, "", "", error_text(plan, plan.expected_standard_error), cost))
    return rows
