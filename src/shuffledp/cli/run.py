"""``shuffledp run`` and ``estimate``: from a file of answers, or of reports, to estimates."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import shuffledp as sdp
from shuffledp import report
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.asked import QUESTION, Asked
from shuffledp.cli.options import cli, options, taken
from shuffledp.cli.shuffles import GROUPING_OF_RUN, SHUFFLED, SHUFFLER, take_shuffle
from shuffledp.collection.dummies import protect_alone
from shuffledp.collection.output import REPORT_FILE, write_results
from shuffledp.core.checks import require_non_negative, require_open_unit, require_positive
from shuffledp.report.formatting import rounded
from shuffledp.report.wording import guarantee_facts, without_shuffler_line, words_of_result

# Options of reading a table, with their defaults.
_READING = {"missing": "error", "other": False, "clip": False, "separator": None}
_READING |= {"truncate": False, **shared.WAYS}


@cli.command(
    epilog="Example: shuffledp run answers.csv --column answer --domain yes,no,refused "
    "--epsilon 0.5 --delta 1e-8 --out results/"
)
@click.argument("table", type=shared.PATH)
@options(
    f"""
    Question:
    --column TEXT  Column with the values; each row is one user.
    {QUESTION}
    Privacy:
    --epsilon FLOAT  Central epsilon to meet, in nats.
    --delta FLOAT    Central delta to meet, far below 1/users.
    {shared.MAX_EPSILON0}
    --epsilon0 FLOAT  Fix epsilon0 instead of --epsilon; the central epsilon is computed.
    {shared.RANDOMIZER}
    {shared.PLAN}
    --ledger FILE  Spend the guarantee from the budget in this ledger; if the budget does not cover
        it, nothing is written or spent.
    Table:
    --missing [error|drop|category]  Rows without an answer: stop, leave them out (then the number
        of users depends on the answers, outside the guarantee), or count them as "missing".
        [default: error]
    --other  Count answers outside the domain as "other" instead of stopping.
    --clip  Move numbers outside the limits to the nearest inside, and shorten vectors that are too
        long, instead of stopping.
    --separator TEXT  With --max-answers: separator of one person's answers, a semicolon by default.
    --truncate  With --max-answers: keep the first S answers of a person, instead of stopping.
    --weight COLUMN  Column of public weights, by which users are drawn: estimates speak for the
        whole weight, the guarantee counts the users drawn.
    --most-weight X  Count larger weights as this: more users are drawn, with a little bias.
    {shared.READING}
    {shared.DECIMAL}
    {shared.SHOW_VALUES}
    {SHUFFLER}
    {GROUPING_OF_RUN}
    {SHUFFLED}
    {shared.ESTIMATING}
    Simulation:
    {shared.SEED}
    --dishonest N  With --seed: let N random users send the reports that raise the first estimate
        most, and state by how much.
    {shared.WORK}
    {shared.RESULTS}
    --save-reports  Also write the shuffled reports: reports.parquet, on Spark a folder.
    """,
)
def run(
    *,
    table: Path,
    column: str | None,
    out: Path,
    plan_file: Path | None,
    ledger: Path | None,
    processes: int | None,
    overwrite: bool,
    **given: Any,
) -> None:
    """Randomize, shuffle and estimate the values in TABLE (CSV or Parquet).

    Each row is one user with one of several answers, unless another question is asked, such as
    --mean.

    Writes estimates.csv, privacy.json and report.html into --out, or nothing if anything fails.
    --shuffler mallows and displacement also write rows.csv or rows.parquet.
    """
    if ledger is not None and given["seed"] is not None:
        raise click.UsageError("--seed simulates, and a simulation spends nothing: no --ledger")
    is_on_spark = shared.is_on_spark(given, processes)
    intervals, about = shared.take_estimating(given)
    with console.new_folder(out, overwrite=overwrite) as folder:
        if is_on_spark:
            result, read = _run_on_spark(table, column, plan_file, folder, intervals, **given)
        else:
            result, read = _run_here(
                table, column, plan_file, folder, intervals, processes=processes, **given
            )
        result = replace(result, about=replace(about, column=column or ""))
        files = {"table": table, "plan": plan_file, "ledger": ledger}
        named = {name: str(file) for name, file in files.items() if file is not None}
        _write(result, folder, {**named, "column": column, **read})
        left = None
        if ledger is not None:
            # Last: budget spent without a publication, say because the disk is full, is safe.
            release = result.release()
            left = sdp.accounting.spend(ledger, release, f"shuffledp run {table.name}").remaining
    _print_result(result, out, left)


def _run_here(
    table: Path,
    column: str | None,
    plan_file: Path | None,
    folder: Path,
    intervals: dict[str, Any],
    *,
    processes: int | None,
    **given: Any,
) -> "tuple[sdp.Result, dict[str, Any]]":
    """Run on this machine; return the result, and the options by which the table was read."""
    privacy = taken(given, "epsilon", "epsilon0", "delta", "max_epsilon0", "randomizer")
    planned = _planned(plan_file, privacy)
    simulated = taken(given, "seed")
    liars, weighing = taken(given, "dishonest"), taken(given, "weight", "most_weight")
    ways = taken(given, *_READING)
    reading = {name: value for name, value in ways.items() if value != _READING[name]}
    is_uniform = given["shuffler"] == "uniform"
    others = taken(given, "save_reports") | simulated | {"ways": shared.take_reading(dict(ways))}
    others["leaves_out"] = ways["missing"] == "drop" or weighing["weight"] is not None
    shuffle = take_shuffle(given, table, column, **others)
    what = Asked(given)
    if planned is not None and (what.is_given or not is_uniform):
        raise click.UsageError("--plan says what is asked, of a uniform shuffle: leave both out")
    with console.progress_bar() as on_progress, sdp.engines.Processes(processes) as workers:
        reading |= {"on_progress": on_progress, **weighing, **simulated}
        if planned is None:
            values = what.open(table, column, **reading)
        else:
            values = sdp.collection.open_column(table, column, planned.question, **reading)
        arranged = shuffle(values.num_users, on_progress)
        setting = planned or arranged.plan(values.question, **privacy)
        result = sdp.run(
            setting,
            values,
            sink=arranged.sink(folder, setting),
            scratch=folder,
            on_progress=on_progress,
            engine=workers.map,
            **simulated,
            **liars,
            **intervals,
        )
    is_discovered = planned is None and what.is_read_from_data
    number = values.num_missing
    read = {"domain_is_discovered": is_discovered, **ways, "num_missing_dropped": number}
    return result, read | simulated | weighing


def _run_on_spark(
    table: Path,
    column: str | None,
    plan_file: Path | None,
    folder: Path,
    intervals: dict[str, Any],
    **given: Any,
) -> "tuple[sdp.Result, dict[str, Any]]":
    """Carry out a plan on Spark, on the rows of Parquet files; return as `_run_here` does."""
    if plan_file is None:
        raise click.UsageError("--engine spark carries a plan out: give --plan, --column and --id")
    planned = sdp.Plan.load(plan_file)
    used = {"id_column", "seed", "save_reports", *planned.question.reads}
    used |= {"shuffler"} if given["shuffler"] == "uniform" else set()
    if unread := shared.flags_given(given.keys() - used):
        raise click.UsageError(
            "--engine spark carries a plan out, with the uniform shuffle: leave out "
            + ", ".join(unread)
        )
    reads = planned.question.reads
    reading = {name: given[name] for name in reads if given[name] != _READING[name]}
    save_to = folder / "reports.parquet" if given["save_reports"] else None
    drawn = taken(given, "id_column", "seed")
    return sdp.spark.run_files(
        table, column, planned, save_to=save_to, reading=reading, **drawn, **intervals
    ), {
        "engine": "spark",
        **drawn,
        **reading,
    }


def _write(result: "sdp.Result", folder: Path, parameters: dict[str, Any]) -> None:
    """Write the files of a result, with the success of adversaries who see the release."""
    from shuffledp.collection.leakage import json_of_run

    write_results(result, folder, parameters=parameters, findings=json_of_run(result))


def _planned(plan_file: Path | None, privacy: dict[str, Any]) -> "sdp.Plan | None":
    """Return the plan of a file, or None if the options state the privacy."""
    if plan_file is None:
        _require_privacy(**privacy)
        return None
    planned = sdp.Plan.load(plan_file)
    if any(each is not None for each in privacy.values()):
        raise click.UsageError("--plan says epsilon, delta and randomizer: give none beside it")
    return planned


def _require_privacy(
    *, epsilon: float | None, epsilon0: float | None, delta: float | None, **_: Any
) -> None:
    """Raise before the table is read unless delta and one of epsilon and epsilon0 are given."""
    if delta is None:
        raise click.UsageError("give --delta, or --plan")
    if (epsilon is None) == (epsilon0 is None):
        raise click.UsageError("give exactly one of --epsilon (to be met) and --epsilon0 (fixed)")
    require_open_unit("delta", delta)
    if epsilon is not None:
        require_positive("epsilon", epsilon)
    if epsilon0 is not None:
        require_non_negative("epsilon0", epsilon0)


@cli.command(epilog="Example: shuffledp estimate reports.parquet --plan plan.json --out results/")
@click.argument("reports", type=shared.PATH)
@options(
    f"""
    Plan:
    {shared.PLAN}
    --num-users N  Number of true reports, if the plan has dummies: known to the shuffler, and part
        of a file of `run --save-reports`.
    --strict  Stop, instead of warning, if too few reports arrived for the planned epsilon.
    Table:
    --missing [error|drop]  Rows without a report: stop, or leave them out.  [default: error]
    {shared.READING}
    Estimates:
    --dishonest N  State by how much N lying users can shift an estimate; by default 1 of 100.
    {shared.ESTIMATING}
    {shared.WORK}
    {shared.RESULTS}
    """,
)
def estimate(
    *,
    reports: Path,
    plan_file: Path | None,
    out: Path,
    processes: int | None,
    overwrite: bool,
    **given: Any,
) -> None:
    """Estimate from REPORTS that users randomized under a plan.

    REPORTS is a Parquet or CSV file with a column `report` and one row a user, in any order, or a
    folder of Parquet files. Writes the files of `shuffledp run`. The guarantee counts the reports
    that arrived, and assumes that nobody saw whose report is whose and that each was drawn once
    with its own randomness.
    """
    if plan_file is None:
        raise click.UsageError("give --plan, the file of `shuffledp plan --out`")
    is_on_spark = shared.is_on_spark(given, processes)
    intervals, about = shared.take_estimating(given)
    planned, ways = sdp.Plan.load(plan_file), shared.take_reading(given)
    with (
        console.new_folder(out, overwrite=overwrite) as folder,
        console.progress_bar() as on_progress,
        sdp.engines.Processes(processes) as workers,
    ):
        how = {**given, **intervals, **ways, "on_progress": on_progress, "engine": workers.map}
        path = reports
        if is_on_spark:  # its workers may run in another folder
            path, how["engine"] = reports.absolute(), sdp.spark.Workers().map
        result = replace(sdp.estimate(path, planned, **how), about=about)
        files = {"reports": str(reports), "plan": str(plan_file), "missing": given["missing"]}
        _write(result, folder, files | ways)
    _print_result(result, out)


def _print_result(result: "sdp.Result", out: Path, left: float | None = None) -> None:
    """Print the estimates, the guarantee and the path of the report."""
    from shuffledp.report.leakage import run_line

    console.print_warnings(result.warnings)
    guessed = sdp.collection.leakage_of(result)
    beside = {} if guessed is None else {"leakage": guessed.to_json_dict()}
    spent = {} if left is None else {"ledger_left": left}
    if console.print_json(result.to_json_dict() | beside | spent):
        return
    # With dummies the result itself prints this line, as one of three.
    line = without_shuffler_line(result.randomizer.profile)
    facts = [] if result.dummies else [("no shuffler", line)]
    if guessed is not None and (line := run_line(guessed)):
        facts.append(("best guess", line))
    facts += words_of_result(result).rows
    if left is not None:
        facts.append(("ledger", f"epsilon {rounded(left, up=False)} is left of the budget"))
    print_estimates(result, facts, out)


def print_estimates(result: "sdp.Result", facts: list[tuple[str, str]], out: Path) -> None:
    """Print the estimates, the guarantee, further facts and the path of the report."""
    click.echo(report.terminal_text(replace(result, warnings=())))  # these are on stderr already
    click.echo()
    alone = protect_alone(result.dummies)
    found = [*guarantee_facts(result.guarantee, is_for_any=alone), *facts]
    lines = [(name[0].lower() + name[1:], value) for name, value in found]
    console.print_facts([*lines, ("report", str(out / REPORT_FILE))])
