"""``shuffledp run``: the main job, from a file of answers to private estimates."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.asked import Asked, question_options
from shuffledp.cli.console import print_facts, print_json, print_warnings, progress_bar, read_paths
from shuffledp.cli.options import (
    PATH,
    estimate_options,
    json_option,
    max_epsilon0_option,
    out_option,
    overwrite_option,
    plan_option,
    randomizer_option,
    require_target,
    seed_option,
    show_values_option,
    take_estimating,
    taken,
)
from shuffledp.cli.shuffles import shuffler_options, take_shuffle
from shuffledp.core.checks import require_non_negative
from shuffledp.report.wording import guarantee_facts, without_shuffler_line

if TYPE_CHECKING:
    from shuffledp.accounting.composed import Composable
    from shuffledp.collection.results import Result

# Ways of reading a table, and what they are where nothing is said.
_READING = {
    "missing": "error",
    "other": False,
    "clip": False,
    "separator": None,
    "truncate": False,
    "csv_separator": None,
    "header": True,
}


@click.command(
    epilog="Example: shuffledp run answers.csv --column answer --domain yes,no,refused "
    "--epsilon 0.5 --delta 1e-8 --out results/"
)
@click.argument("table", type=PATH)
@click.option("--column", help="Column with the values; each row is one user.")
@click.option("--epsilon", type=float, help="Central epsilon to meet, in nats.")
@click.option("--delta", type=float, help="Failure probability, far below 1/users.")
@max_epsilon0_option
@plan_option
@out_option("results")
@question_options
@click.option("--other", is_flag=True, help='Count values outside the domain as "other".')
@click.option(
    "--missing",
    type=click.Choice(["error", "drop", "category"]),
    default="error",
    show_default=True,
    help='Rows without an answer: stop, leave them out, or count them as "missing".',
)
@click.option("--clip", is_flag=True, help="Move numbers outside the limits to the nearest inside.")
@click.option(
    "--separator", metavar="TEXT", help="Between a user's answers, for --max-answers; by default ;"
)
@click.option("--truncate", is_flag=True, help="Keep the first S answers of users with more.")
@click.option(
    "--csv-separator", metavar="C", help="Between the columns of TABLE, where it is not seen."
)
@click.option(
    "--no-header",
    "header",
    flag_value=False,
    default=True,
    help="TABLE begins with values; its columns are column_1, column_2 and so on.",
)
@shuffler_options
@randomizer_option
@click.option("--epsilon0", type=float, help="Fix the local epsilon instead of giving --epsilon.")
@estimate_options
@click.option(
    "--prior",
    "prior_file",
    type=PATH,
    metavar="FILE",
    help="Also say what an adversary guesses who believes this prior (JSON) about the answers.",
)
@seed_option
@click.option(
    "--ledger",
    type=PATH,
    metavar="FILE",
    help="Spend from the budget in this ledger before anything is written.",
)
@click.option("--save-reports", is_flag=True, help="Write the shuffled reports, too.")
@overwrite_option
@show_values_option
@json_option
def run(  # noqa: PLR0913  # one parameter an option
    *,
    table: Path,
    column: str | None,
    out: Path,
    plan_file: Path | None,
    prior_file: Path | None,
    seed: int | None,
    ledger: Path | None,
    save_reports: bool,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Randomize, shuffle and estimate the values in TABLE (CSV or Parquet).

    Values are answers out of a domain, each user's one; --mean, --vector, --dictionary and
    --max-answers are for numbers, vectors, texts and several answers.

    Writes estimates.csv, privacy.json and report.html into the folder of --out, and with
    --save-reports also reports.parquet: all of them, or nothing. With --shuffler mallows or
    displacement also rows.csv or rows.parquet, where each report lies near its user. With
    --shuffler network reports are passed on along the edges of a graph, so that nobody need be
    trusted.
    """
    from shuffledp.collection.output import results_folder, write_results
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.run import run as run_plan
    from shuffledp.collection.source.columns import open_column
    from shuffledp.collection.source.prior_files import read_prior
    from shuffledp.leakage.of_runs import json_of_run

    privacy = taken(options, "epsilon", "epsilon0", "delta", "max_epsilon0", "randomizer")
    planned = None if plan_file is None else Plan.load(plan_file)
    if planned is None:
        _require_privacy(**privacy)
    elif any(each is not None for each in privacy.values()):
        raise click.UsageError("--plan says epsilon, delta and randomizer: give none beside it")
    intervals, about = take_estimating(options)
    if ledger is not None and seed is not None:
        raise click.UsageError("--seed simulates, and a simulation spends nothing: no --ledger")
    ways = taken(options, *_READING)
    reading = {name: value for name, value in ways.items() if value != _READING[name]}
    is_uniform = options["shuffler"] == "uniform"
    shuffle = take_shuffle(options, table, column, ways, save_reports=save_reports, seed=seed)
    what = Asked(**options)
    if planned is not None and (what.is_given or not is_uniform):
        raise click.UsageError("--plan says what is asked, of a uniform shuffle: leave both out")
    prior = None if prior_file is None else read_prior(prior_file)
    with (
        results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder,
        progress_bar() as on_progress,
    ):
        if planned is None:
            asked, values = what.open(table, column, reading, seed=seed, on_progress=on_progress)
        else:
            asked = planned.question
            values = open_column(table, column, asked, on_progress=on_progress, **reading)
        arranged = shuffle(values.num_users, on_progress)
        setting = planned or arranged.plan(asked, **privacy)
        result = run_plan(
            setting,
            values,
            seed=seed,
            **intervals,
            sink=arranged.sink(folder, setting),
            scratch=folder,
            prior=prior,
            on_progress=on_progress,
        )
        result = replace(arranged.with_facts(result), about=about)
        files = {"plan": plan_file, "prior": prior_file, "ledger": ledger}
        parameters = {
            "table": str(table),
            "column": column,
            "domain_is_discovered": planned is None and what.is_discovering,
            **ways,
            "num_missing_dropped": values.num_missing,
            "seed": seed,
            **{name: str(file) for name, file in files.items() if file is not None},
        }
        write_results(result, folder, parameters=parameters, findings=json_of_run(result))
        # Last: what is spent here and not published, say because the disk is full, is safe.
        left = None if ledger is None else _spent(result, ledger, table)
    print_warnings(result.warnings)
    print_result(result, out, left, as_json=as_json)


def _require_privacy(*, epsilon: float | None, epsilon0: float | None, **other: Any) -> None:
    """Raise unless a target is given, or a local loss."""
    if other["delta"] is None:
        raise click.UsageError("give --delta, or --plan")
    require_target(epsilon=epsilon, delta=other["delta"], max_epsilon0=other["max_epsilon0"])
    if (epsilon is None) == (epsilon0 is None):
        raise click.UsageError("give exactly one of --epsilon (to be met) and --epsilon0 (fixed)")
    if epsilon0 is not None:
        require_non_negative("epsilon0", epsilon0)


def _spent(result: "Result", ledger: Path, table: Path) -> float:
    """Spend a run from a ledger, and return what is left of its epsilon."""
    from shuffledp.accounting.ledger_files import spend
    from shuffledp.accounting.release import ShuffledRelease, StatedRelease
    from shuffledp.collection.arrangements import UNIFORM

    guarantee = result.guarantee
    release: Composable
    if result.shuffler == UNIFORM.name:
        release = ShuffledRelease(profile=result.randomizer.profile, num_users=result.num_users)
    else:
        release = StatedRelease(epsilon=guarantee.epsilon_upper, delta=guarantee.delta_upper)
    return spend(ledger, release, f"shuffledp run {table.name}").remaining


def print_result(result: "Result", out: Path, left: float | None, *, as_json: bool) -> None:
    """Print the estimates, the guarantee and where the report is."""
    from shuffledp.leakage.of_runs import json_of_run, of_run

    if as_json:
        spent = {} if left is None else {"ledger_left": left}
        print_json(result.to_json_dict() | json_of_run(result) | spent)
        return
    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.report import (
        group_rows,
        network_rows,
        shuffle_rows,
        terminal_text,
        walk_rows,
    )
    from shuffledp.report.formatting import rounded
    from shuffledp.report.leakage import run_line

    click.echo(terminal_text(replace(result, warnings=())))  # these are on stderr already
    click.echo()
    facts = [
        *guarantee_facts(result.guarantee),
        ("no shuffler", without_shuffler_line(result.randomizer.profile)),
    ]
    if (found := of_run(result)) is not None and (line := run_line(found)):
        facts.append(("best guess", line))
    if result.groups is not None:
        facts += [*group_rows(result.groups), *shuffle_rows(result.groups)]
    if result.network is not None:
        facts += [*network_rows(result.network), *walk_rows(result.network)]
    if left is not None:
        facts.append(("ledger", f"epsilon {rounded(left, up=False)} is left of the budget"))
    lines = [(name[0].lower() + name[1:], value) for name, value in facts]
    print_facts([*lines, ("report", str(out / REPORT_FILE))])
