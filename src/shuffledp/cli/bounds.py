"""``shuffledp bounds``: every bound side by side, for researchers."""

from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli import console
from shuffledp.cli.options import JSON, LAW, cli, options, require_one_asked
from shuffledp.report.formatting import counted, given, rounded

if TYPE_CHECKING:
    from shuffledp.accounting.compare import BoundComparison, Scenario

_DIGITS, _RATIO_DIGITS = 6, 4

LOWER_END = "no analysis can go below"


@cli.command(epilog="Example: shuffledp bounds --epsilon0 1 --num-users 10000 --delta 1e-6")
@options(
    f"""
    Reports:
    --epsilon0 FLOAT  Local epsilon of each report, in nats.  [required]
    --num-users N     Number of honest users in one shuffled batch.  [required]
    {LAW}
    {JSON}
    """,
)
def bounds(**asked: Any) -> None:
    """Compare every bound on the privacy of a shuffled collection.

    Lists the smallest first, then the lower bound that explicit data prove. For the smallest alone
    use `shuffledp account`.
    """
    from shuffledp.accounting import compare
    from shuffledp.collection.cautions import delta_cautions

    require_one_asked(epsilon=asked["epsilon"], delta=asked["delta"])
    compared = compare.compare_scenario(compare.Scenario(**asked))
    if asked["delta"] is not None:
        console.print_warnings(delta_cautions(asked["delta"], asked["num_users"]))
    if console.print_json(compared.to_json_dict()):
        return
    click.echo(f"{scenario_text(compared.scenario)}\n")
    headings = ("bound", compared.scenario.asked, "times the best", "exact", "proved")
    console.print_table(headings, bound_rows(compared))
    if compared.lower is None:
        click.echo("\nno lower end is known")
    click.echo("\nthese say nothing here")  # never empty: no method fits all inputs
    console.print_facts(missing_rows(compared))


def scenario_text(scenario: "Scenario") -> str:
    """Return the line that describes a scenario."""
    law = "any randomizer"
    if scenario.randomizer is not None:
        sizes = {"k": scenario.domain_size, "dimension": scenario.dimension}
        shown = (f" {name} = {size}," for name, size in sizes.items() if size is not None)
        law = f"{scenario.randomizer},{''.join(shown)}"
    name = "epsilon" if scenario.asked == "delta" else "delta"
    return (
        f"{law} with epsilon0 = {given(scenario.epsilon0)}, {counted(scenario.num_users, 'user')}, "
        f"{name} = {given(scenario.given)}"
    )


def bound_rows(compared: "BoundComparison") -> list[tuple[str, ...]]:
    """Return the useful bounds, smallest first, rounded up; then the lower end, rounded down."""

    def numbers(value: float | None, *, up: bool) -> tuple[str, str]:
        return _number(value, _DIGITS, up=up), _number(compared.ratio(value), _RATIO_DIGITS, up=up)

    rows: list[tuple[str, ...]] = [
        (
            each.method.name,
            *numbers(each.value, up=True),
            "yes" if each.method.is_exact else "no",
            "here" if each.method.proved_here else "source",
        )
        for each in compared.useful
    ]
    if compared.lower is not None:
        rows.append((LOWER_END, *numbers(compared.lower, up=False), "", ""))
    return rows


def missing_rows(compared: "BoundComparison") -> list[tuple[str, str]]:
    """Return every other method, with the reason why it gives no useful bound here."""
    return [
        (
            each.method.name,
            f"{_number(each.value, _DIGITS, up=True)}: {each.reason}"
            if each.standing == "no gain"
            else each.reason,
        )
        for each in compared.bounds
        if each.standing != "bound"
    ]


def _number(value: float | None, digits: int, *, up: bool) -> str:
    """Return a bound rounded outwards to significant digits; an empty text for None."""
    return "" if value is None else rounded(value, up=up, digits=digits)
