"""``shuffledp bounds``: every bound side by side, for researchers."""

from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli import console
from shuffledp.cli.options import JSON, LAW, cli, options, require_one_asked

if TYPE_CHECKING:
    from shuffledp.accounting.compare import BoundComparison


@cli.command(epilog="Example: shuffledp bounds --epsilon0 1 --num-users 10000 --delta 1e-6")
@options(
    f"""
    --epsilon0 FLOAT  Local privacy loss of each report, in nats.  [required]
    --num-users N     Honest users in one shuffled batch.  [required]
    {LAW}
    {JSON}
    """,
)
def bounds(**asked: Any) -> None:
    """Compare every bound on the privacy of a shuffled collection.

    Smallest first, down to what explicit data prove unavoidable. For the answer alone, use
    account.
    """
    from shuffledp.accounting.compare import Scenario, compare_scenario
    from shuffledp.collection.cautions import delta_cautions

    require_one_asked(epsilon=asked["epsilon"], delta=asked["delta"])
    compared = compare_scenario(Scenario(**asked))
    if asked["delta"] is not None:
        console.print_warnings(delta_cautions(asked["delta"], asked["num_users"]))
    if not console.print_json(compared.to_json_dict()):
        _print_comparison(compared)


def _print_comparison(compared: "BoundComparison") -> None:
    """Print the bounds, smallest first and the lower end last; then what says nothing here."""
    from shuffledp.report.bounds import bound_rows, headings, missing_rows, scenario_text

    click.echo(f"{scenario_text(compared.scenario)}\n")
    console.print_table(headings(compared), bound_rows(compared))
    if compared.lower is None:
        click.echo("\nno lower end is known")
    click.echo("\nthese say nothing here")  # there are always some: no method fits all
    console.print_facts(missing_rows(compared))
