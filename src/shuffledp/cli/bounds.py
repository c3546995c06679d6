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
@json_option
def bounds(*, figure: Path | None, as_json: bool, **asked: Any) -> None:
    """Compare every bound on the privacy of a shuffled collection.

    Smallest first, down to what explicit data prove unavoidable. For the answer alone, use
    account.
    """
    from shuffledp.collection.bounds import Scenario, compare_scenario
    from shuffledp.collection.results import delta_cautions

    require_one_asked(epsilon=asked["epsilon"], delta=asked["delta"])
    scenario = Scenario(**asked)
    compared = compare_scenario(scenario) if figure is None else _with_curves(scenario, figure)
    if scenario.delta is not None:
        print_warnings(delta_cautions(scenario.delta, scenario.num_users))
    if as_json:
        print_json(compared.to_json_dict())
    else:
        _print_comparison(compared)


def _with_curves(scenario: "Scenario", figure: Path) -> "BoundComparison":
    """Compute the curves and write their page."""
    from shuffledp.collection.bounds import bound_curves
    from shuffledp.report import write_report

    with progress_bar() as progress:
        curves = bound_curves(scenario, progress=progress)
    write_report(curves, figure)
    return curves.here


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
