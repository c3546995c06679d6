"""``shuffledp estimate``: from reports that are randomized already to the same results as `run`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from shuffledp.cli.console import print_warnings, read_paths
from shuffledp.cli.options import (
    PATH,
    estimate_options,
    json_option,
    out_option,
    overwrite_option,
    plan_option,
    take_estimating,
)
from shuffledp.cli.run import print_result


@click.command(epilog="Example: shuffledp estimate reports.parquet --plan plan.json --out results/")
@click.argument("reports", type=PATH)
@plan_option
@out_option("results")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Rows without a report: stop, or leave them out.",
)
@click.option(
    "--strict", is_flag=True, help="Refuse where so few reports keep less than was planned."
)
@estimate_options
@overwrite_option
@json_option
def estimate(
    *,
    reports: Path,
    plan_file: Path | None,
    out: Path,
    missing: str,
    strict: bool,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate from REPORTS that users made under a plan; the guarantee is for those that arrived.

    REPORTS is a Parquet or CSV file with a column `report`, one row a user, in any order. Writes
    what `shuffledp run` writes. That nobody saw whose report is whose, and that each user made one
    with randomness of its own, is assumed: it cannot be seen from reports.
    """
    from shuffledp.collection.output import results_folder, write_results
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.run import estimate as estimate_plan
    from shuffledp.leakage.of_runs import json_of_run

    if plan_file is None:
        raise click.UsageError("give --plan, the file of `shuffledp plan --out`")
    intervals, about = take_estimating(options)
    planned = Plan.load(plan_file)
    with results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder:
        result = estimate_plan(reports, planned, missing=missing, strict=strict, **intervals)
        result = replace(result, about=about)
        parameters = {"reports": str(reports), "plan": str(plan_file), "missing": missing}
        write_results(result, folder, parameters=parameters, findings=json_of_run(result))
    print_warnings(result.warnings)
    print_result(result, out, None, as_json=as_json)
