"""``shuffledp bounds``: every bound side by side, for researchers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_table,
    print_warnings,
    progress_bar,
)
from shuffledp.cli.options import (
    figure_option,
    json_option,
    law_options,
    require_one_asked,
    whole_number,
)

if TYPE_CHECKING:
    from shuffledp.collection.bounds import BoundComparison, Scenario


@click.command(
    epilog="Example: shuffledp bounds --epsilon0 1 --num-users 10000 --delta 1e-6 --figure out.html"
)
@click.option(
    "--epsilon0", type=float, required=True, help="Local privacy loss of each report, in nats."
)
@click.option(
    "--num-users",
    type=whole_number,
    required=True,
    metavar="N",
    help="Honest users in one shuffled batch.",
)
@law_options
@figure_option("all bounds as curves")
@click.option(
    "--over",
    type=click.Choice(["num-users", "epsilon0"]),
    help="What changes along the curves, num-users by default; with --json they are printed.",
)
@json_option
def bounds(*, figure: Path | None, over: str | None, as_json: bool, **asked: Any) -> None:
    """Compare every bound on the privacy of a shuffled collection.

    Smallest first, down to what explicit data prove unavoidable. For the answer alone, use
    account.
    """
    from shuffledp.collection.bounds import Scenario, compare_scenario
    from shuffledp.collection.results import delta_cautions

    require_one_asked(epsilon=asked["epsilon"], delta=asked["delta"])
    if over is not None and figure is None and not as_json:
        raise click.UsageError("--over is about the curves: give --figure or --json too")
    scenario = Scenario(**asked)
    if figure is None and over is None:
        compared = compare_scenario(scenario)
        record = compared.to_json_dict()
    else:
        compared, record = _with_curves(scenario, over or "num-users", figure)
    if scenario.delta is not None:
        print_warnings(delta_cautions(scenario.delta, scenario.num_users))
    if as_json:
        print_json(record)
    else:
        _print_comparison(compared)


def _with_curves(
    scenario: "Scenario", over: str, figure: Path | None
) -> "tuple[BoundComparison, dict[str, object]]":
    """Compute the curves, and write the page if there is to be one."""
    from shuffledp.collection.bounds import Over, bound_curves
    from shuffledp.report import write_report

    with progress_bar() as progress:
        curves = bound_curves(scenario, Over(over), progress=progress)
    if figure is not None:
        write_report(curves, figure)
    return curves.here, curves.to_json_dict()


def _print_comparison(compared: "BoundComparison") -> None:
    """Print the bounds, smallest first and the lower end last; then what says nothing here."""
    from shuffledp.report.bounds import (
        bound_rows,
        headings,
        missing_rows,
        scenario_text,
    )

    click.echo(f"{scenario_text(compared.scenario)}\n")
    print_table(headings(compared), bound_rows(compared))
    if compared.lower is None:
        click.echo("\nno lower end is known")
    click.echo("\nthese say nothing here")  # there are always some: no method fits all
    print_facts(missing_rows(compared))
