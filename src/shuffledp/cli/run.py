"""``shuffledp run``: the main job, from a file of answers to private estimates."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.asked import Asked, Reading, question_options
from shuffledp.cli.console import (
    guarantee_facts,
    print_facts,
    print_json,
    print_warnings,
    progress_bar,
    read_paths,
)
from shuffledp.cli.grouped_run import GroupedRun, PreparedGroups, grouped_run_options
from shuffledp.cli.network_run import NetworkRun, PreparedNetwork, network_run_options
from shuffledp.cli.options import (
    json_option,
    randomizer_option,
    require_target,
    seed_option,
    show_values_option,
)
from shuffledp.core.checks import require_non_negative, require_open_unit

if TYPE_CHECKING:
    from shuffledp.accounting.composed import Composable
    from shuffledp.collection.arrangements import Arrangement
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question
    from shuffledp.collection.results import Result
    from shuffledp.collection.run import ReportSink


@click.command(
    epilog="Example: shuffledp run answers.csv --column answer --domain yes,no,refused "
    "--epsilon 0.5 --delta 1e-8 --out results/"
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--column", help="Column with the values; each row is one user.")
@click.option("--epsilon", type=float, help="Central epsilon to meet, in nats.")
@click.option("--delta", type=float, required=True, help="Failure probability, far below 1/users.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to create for results."
)
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
@grouped_run_options
@network_run_options
@randomizer_option
@click.option("--epsilon0", type=float, help="Fix the local epsilon instead of giving --epsilon.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of each interval.")
@click.option(
    "--interval",
    type=click.Choice(["wilson", "wald", "clopper-pearson"]),
    default="wilson",
    show_default=True,
    help="Kind of interval, for shares.",
)
@click.option("--simultaneous", is_flag=True, help="Intervals that all hold at once.")
@click.option(
    "--prior",
    "prior_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also say what an adversary guesses who believes this prior (JSON) about the answers.",
)
@click.option(
    "--post-process",
    multiple=True,
    metavar="STEP",
    help="Bias for plausibility: clip, norm-sub or simplex. May be given more than once.",
)
@seed_option
@click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Spend from the budget in this ledger before anything is written.",
)
@click.option("--save-reports", is_flag=True, help="Write the shuffled reports, too.")
@click.option("--overwrite", is_flag=True, help="Replace a folder of earlier results.")
@show_values_option
@json_option
def run(  # noqa: PLR0913  # one parameter an option
    *,
    table: Path,
    column: str | None,
    epsilon: float | None,
    delta: float,
    out: Path,
    other: bool,
    missing: str,
    clip: bool,
    separator: str | None,
    truncate: bool,
    randomizer: str | None,
    epsilon0: float | None,
    confidence: float,
    interval: str,
    simultaneous: bool,
    post_process: tuple[str, ...],
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
    from shuffledp.collection.run import run as run_plan
    from shuffledp.collection.source.prior_files import read_prior
    from shuffledp.leakage.of_results import json_of_run

    asked_epsilon = _AskedPrivacy(
        epsilon=epsilon, epsilon0=epsilon0, delta=delta, randomizer=randomizer
    )
    require_open_unit("confidence", confidence)
    _require_release(ledger, seed)
    network = NetworkRun.take(options)
    grouped = GroupedRun.take(options)
    what = Asked(**options)
    _require_fitting(grouped, network, column, missing=missing, save_reports=save_reports)
    prior = None if prior_file is None else read_prior(prior_file)
    reading = Reading(
        other=other, missing=missing, clip=clip, separator=separator, truncate=truncate
    )
    with (
        results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder,
        progress_bar() as on_progress,
    ):
        question, values = what.open(table, column, reading, seed=seed, on_progress=on_progress)
        within = None if grouped is None else grouped.open(table, on_progress)
        through = (
            None
            if network is None
            else network.open(table, num_users=values.num_users, on_progress=on_progress)
        )
        setting, arrangement = asked_epsilon.setting(question, values.num_users, within, through)
        result = run_plan(
            setting,
            values,
            seed=seed,
            confidence=confidence,
            interval=interval,
            simultaneous=simultaneous,
            post_processing=post_process,
            sink=_sink(folder, setting, within, through, column, save_reports=save_reports),
            scratch=folder,
            shuffling=arrangement,
            prior=prior,
            on_progress=on_progress,
        )
        if within is not None:
            result = within.with_facts(result, seed)
        if through is not None:
            result = through.with_facts(result, on_progress)
        parameters = {
            "table": str(table),
            "column": column,
            "domain_is_discovered": what.is_about_answers and not what.has_domain,
            **asdict(reading),
            "num_missing_dropped": values.num_missing,
            "seed": seed,
            **_named_files(prior=prior_file, ledger=ledger),
        }
        write_results(result, folder, parameters=parameters, findings=json_of_run(result))
        # Last: what is spent here and not published, say because the disk is full, is safe.
        left = None if ledger is None else _spent(result, ledger, table)
    print_warnings(result.warnings)
    _print_result(result, out, left, as_json=as_json)


def _named_files(**files: Path | None) -> dict[str, str]:
    """Return the names of the files that were given."""
    return {name: str(file) for name, file in files.items() if file is not None}


def _require_release(ledger: Path | None, seed: int | None) -> None:
    """Raise if a simulation is to spend from a ledger."""
    if ledger is not None and seed is not None:
        raise click.UsageError("--seed simulates, and a simulation spends nothing: no --ledger")


def _spent(result: "Result", ledger: Path, table: Path) -> float:
    """Spend a run from a ledger, and return what is left of its epsilon."""
    from shuffledp.accounting.ledger_files import spend
    from shuffledp.accounting.release import ShuffledRelease
    from shuffledp.accounting.stated_release import StatedRelease
    from shuffledp.collection.arrangements import UNIFORM

    guarantee = result.guarantee
    release: Composable
    if result.shuffler == UNIFORM.name:
        release = ShuffledRelease(profile=result.randomizer.profile, num_users=result.num_users)
    else:
        release = StatedRelease(epsilon=guarantee.epsilon_upper, delta=guarantee.delta_upper)
    return spend(ledger, release, f"shuffledp run {table.name}").remaining


def _require_fitting(
    grouped: GroupedRun | None,
    network: NetworkRun | None,
    column: str | None,
    *,
    missing: str,
    save_reports: bool,
) -> None:
    """Raise unless the ways of reading and writing go with the shuffler."""
    if grouped is not None:
        grouped.require_public(column)
        if save_reports or missing == "drop":
            raise click.UsageError(
                f"--shuffler {grouped.shuffler} writes rows.csv or rows.parquet with every row of "
                "the table, so it takes neither --save-reports nor --missing drop"
            )
    if network is not None:
        network.require_public(column)
        if missing == "drop":
            raise click.UsageError(
                "--shuffler network passes on a report of every user of the graph, so it takes no "
                "--missing drop: count such rows with --missing category"
            )


def _sink(
    folder: Path,
    setting: "Plan",
    within: PreparedGroups | None,
    through: PreparedNetwork | None,
    column: str | None,
    *,
    save_reports: bool,
) -> "ReportSink | None":
    """Return what stores the shuffled reports, if anything does."""
    from shuffledp.collection.output import REPORTS_FILE
    from shuffledp.collection.report_files import reports_writer
    from shuffledp.groups.released_rows import rows_writer

    if within is not None:
        return rows_writer(
            within.table,
            folder,
            column=column or "report",
            public=within.public_columns,
            setting=setting,
        )
    if not save_reports:
        return None
    path = folder / REPORTS_FILE
    return reports_writer(path, setting) if through is None else through.sink(path, setting)


def _print_result(result: "Result", out: Path, left: float | None, *, as_json: bool) -> None:
    """Print the estimates, the guarantee and where the report is."""
    from shuffledp.leakage.of_results import json_of_run, of_run

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
    from shuffledp.report.leakage_wording import run_line

    click.echo(terminal_text(replace(result, warnings=())))  # these are on stderr already
    click.echo()
    facts = [*guarantee_facts(result.guarantee)]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _AskedPrivacy:
    """A target epsilon to plan for, or the epsilon0 that is given."""

    epsilon: float | None
    epsilon0: float | None
    delta: float
    randomizer: str | None

    def __post_init__(self) -> None:
        require_target(epsilon=self.epsilon, delta=self.delta)
        if (self.epsilon is None) == (self.epsilon0 is None):
            raise click.UsageError(
                "give exactly one of --epsilon (to be met) and --epsilon0 (fixed)"
            )
        if self.epsilon0 is not None:
            require_non_negative("epsilon0", self.epsilon0)

    def setting(
        self,
        question: "Question",
        num_users: int,
        within: PreparedGroups | None,
        through: PreparedNetwork | None,
    ) -> "tuple[Plan, Arrangement]":
        """Return the randomizer for a question and what it guarantees, and the shuffle."""
        from shuffledp.collection.arrangements import UNIFORM
        from shuffledp.collection.plan import plan as make_plan

        if through is not None:
            return through.setting(
                question,
                epsilon=self.epsilon,
                epsilon0=self.epsilon0,
                delta=self.delta,
                randomizer=self.randomizer,
            )
        arrangement = UNIFORM if within is None else within.arrangement
        setting: Plan
        if self.epsilon is None:
            setting = make_plan(
                question,
                num_users=num_users,
                randomizer=self.randomizer or next(iter(question.candidates())),
                epsilon0=self.epsilon0 or 0.0,
                delta=self.delta,
                shuffling=arrangement,
            )
        elif within is not None:
            setting = make_plan(
                question,
                num_users=num_users,
                epsilon=self.epsilon,
                delta=self.delta,
                shuffling=arrangement,
                randomizer=self.randomizer,
            )
        else:
            setting = make_plan(
                question,
                num_users=num_users,
                epsilon=self.epsilon,
                delta=self.delta,
                randomizer=self.randomizer,
            )
        return setting, arrangement
