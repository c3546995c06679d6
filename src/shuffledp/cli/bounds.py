"""``shuffledp bounds``: every bound side by side, for researchers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp import report
from shuffledp.cli import console
from shuffledp.cli.options import JSON, LAW, cli, options, page_path, require_one_asked

if TYPE_CHECKING:
    from shuffledp.accounting.compare import BoundComparison


@cli.command(
    epilog="Example: shuffledp bounds --epsilon0 1 --num-users 10000 --delta 1e-6 --figure out.html"
)
@options(
    f"""
    --epsilon0 FLOAT  Local privacy loss of each report, in nats.  [required]
    --num-users N     Honest users in one shuffled batch.  [required]
    {LAW}
    --figure PATH     Write a page (HTML) with all bounds as curves.
    --over [num-users|epsilon0]
        What changes along the curves, num-users by default; with --json they are printed.
    {JSON}
    """,
    figure=page_path,
)
def bounds(*, figure: Path | None, over: str | None, **asked: Any) -> None:
    """Compare every bound on the privacy of a shuffled collection.

    Smallest first, down to what explicit data prove unavoidable. For the answer alone, use
    account.
    """
    from shuffledp.accounting.compare import Over, Scenario, bound_curves, compare_scenario
    from shuffledp.collection.cautions import delta_cautions

    require_one_asked(epsilon=asked["epsilon"], delta=asked["delta"])
    if over is not None and figure is None and not console.is_json():
        raise click.UsageError("--over is about the curves: give --figure or --json too")
    scenario = Scenario(**asked)
    if figure is None and over is None:
        compared = compare_scenario(scenario)
        record = compared.to_json_dict()
    else:
        with console.progress_bar() as progress:
            curves = bound_curves(scenario, Over(over or "num-users"), progress=progress)
        compared, record = curves.here, curves.to_json_dict()
        if figure is not None:
            report.write_report(curves, figure)
    if scenario.delta is not None:
        console.print_warnings(delta_cautions(scenario.delta, scenario.num_users))
    if not console.print_json(record):
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
