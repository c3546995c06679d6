"""``shuffledp run``: the main job, from a file of answers to private estimates."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp.core.checks import require_non_negative, require_open_unit
from shuffledp.interface.cli.console import (
    guarantee_facts,
    print_facts,
    print_json,
    print_warnings,
    progress_bar,
)
from shuffledp.interface.cli.options import (
    chosen_domain,
    domain_options,
    json_option,
    randomizer_option,
    require_target,
    seed_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from shuffledp.collection.datasets.columns import AnswerColumn
    from shuffledp.collection.results import RunResult
    from shuffledp.collection.run import Setting


@click.command(
    epilog="Example: shuffledp run answers.csv --column answer --domain yes,no,refused "
    "--epsilon 0.5 --delta 1e-8 --out results/"
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--column", required=True, help="Column with the answers; each row is one user.")
@click.option("--epsilon", type=float, help="Central epsilon to meet, in nats.")
@click.option("--delta", type=float, required=True, help="Failure probability, far below 1/users.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to create for results."
)
@domain_options
@click.option("--other", is_flag=True, help='Count values outside the domain as "other".')
@click.option(
    "--missing",
    type=click.Choice(["error", "drop", "category"]),
    default="error",
    show_default=True,
    help='Rows without an answer: stop, leave them out, or count them as "missing".',
)
@randomizer_option
@click.option("--epsilon0", type=float, help="Fix the local epsilon instead of giving --epsilon.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of each interval.")
@click.option(
    "--interval", type=click.Choice(["wilson", "wald"]), default="wilson", show_default=True
)
@seed_option
@click.option("--save-reports", is_flag=True, help="Write the shuffled reports, too.")
@click.option("--overwrite", is_flag=True, help="Replace a folder of earlier results.")
@json_option
def run(  # noqa: PLR0913  # one parameter an option
    *,
    table: Path,
    column: str,
    epsilon: float | None,
    delta: float,
    out: Path,
    domain: tuple[str, ...] | None,
    domain_file: Path | None,
    other: bool,
    missing: str,
    randomizer: str | None,
    epsilon0: float | None,
    confidence: float,
    interval: str,
    seed: int | None,
    save_reports: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Randomize, shuffle and estimate the answers in TABLE (CSV or Parquet).

    Writes estimates.csv, privacy.json and report.html into the folder of --out, and with
    --save-reports also reports.parquet: all of them, or nothing.
    """
    from shuffledp.collection.datasets.tables import open_table
    from shuffledp.collection.output import (
        REPORTS_FILE,
        reports_writer,
        results_folder,
        write_results,
    )
    from shuffledp.collection.run import run_plan

    plan_for = _planner(epsilon=epsilon, epsilon0=epsilon0, delta=delta, randomizer=randomizer)
    require_open_unit("confidence", confidence)
    listed = chosen_domain(domain, domain_file)
    if other and listed is None:
        raise click.UsageError("--other needs --domain or --domain-file")
    with results_folder(out, overwrite=overwrite) as folder, progress_bar() as on_progress:
        answers = open_table(
            table, column, domain=listed, other=other, missing=missing, on_progress=on_progress
        )
        result = run_plan(
            plan_for(answers),
            answers,
            seed=seed,
            confidence=confidence,
            interval=interval,
            sink=reports_writer(folder / REPORTS_FILE, answers.domain) if save_reports else None,
            scratch=folder,
            on_progress=on_progress,
        )
        parameters = {
            "table": str(table),
            "column": column,
            "domain_is_discovered": answers.domain_is_discovered,
            "other": other,
            "missing": missing,
            "num_missing_dropped": answers.num_missing,
            "seed": seed,
        }
        write_results(result, folder, parameters=parameters)
    print_warnings(result.warnings)
    if as_json:
        print_json(result.to_json_dict())
    else:
        _print_result(result, out)


def _print_result(result: "RunResult", out: Path) -> None:
    """Print the estimates, the guarantee and where the report is."""
    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.interface.reports import terminal_text

    click.echo(terminal_text(replace(result, warnings=())))  # these are on stderr already
    click.echo()
    print_facts([*guarantee_facts(result.guarantee), ("report", str(out / REPORT_FILE))])


def _planner(
    *, epsilon: float | None, epsilon0: float | None, delta: float, randomizer: str | None
) -> "Callable[[AnswerColumn], Setting]":
    """Return what plans for a target epsilon, or takes the epsilon0 that is given."""
    from shuffledp.collection.plan import make_plan
    from shuffledp.collection.run import fixed_setting

    require_target(epsilon=epsilon, delta=delta)
    if epsilon is not None and epsilon0 is None:
        return lambda answers: make_plan(
            answers.num_users, answers.domain, epsilon, delta, randomizer=randomizer
        )
    if epsilon0 is not None and epsilon is None:
        require_non_negative("epsilon0", epsilon0)
        return lambda answers: fixed_setting(
            num_users=answers.num_users,
            domain=answers.domain,
            randomizer=randomizer or "k-rr",
            epsilon0=epsilon0,
            delta=delta,
        )
    raise click.UsageError("give exactly one of --epsilon (to be met) and --epsilon0 (fixed)")
