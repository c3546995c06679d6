"""``shuffledp monitor``: a changing statistic, tracked for months on one privacy budget.

``plan`` says how exact and how private that will be; ``simulate`` runs every client and the server.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_list,
    print_table,
    print_warnings,
    progress_bar,
    read_paths,
)
from shuffledp.cli.options import (
    PATH,
    answer_list,
    json_option,
    out_option,
    overwrite_option,
    require_target,
    seed_option,
    show_values_option,
    whole_number,
)
from shuffledp.report.wording import gap_text, guarantee_facts

if TYPE_CHECKING:
    from shuffledp.monitoring.plan import MonitorPlan
    from shuffledp.monitoring.simulation import MonitorResult

_HINTS = {"simulating": "errors at once: shuffledp monitor plan"}

_READING = ("user", "time", "value", "categories", "periods", "start", "every")

# Written out, since --help must not load the laws of the signs; a test compares them.
PROTOCOLS = ("predrawn-signs", "sampled-change")

_max_changes_option = click.option(
    "--max-changes",
    type=whole_number,
    required=True,
    metavar="K",
    help="Changes of a user's value that are followed, counting the first value.",
)

_delta_option = click.option(
    "--delta", type=float, required=True, help="Central failure probability, far below 1/users."
)

_categories_option = click.option(
    "--categories",
    type=answer_list,
    metavar="A,B,...",
    help="Values are one of these, rather than on or off.",
)

_confidence_option = click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="That the bands of all periods hold at once with.",
)


@click.group()
def monitor() -> None:
    """Track how many users have a value, period by period, as values change.

    plan says beforehand what that costs and how exact it is; simulate does it to a table of
    histories.
    """


@monitor.command(
    epilog="Example: shuffledp monitor plan --periods 365 --max-changes 4 --num-users 1000000 "
    "--epsilon0 1 --delta 1e-8"
)
@click.option("--periods", type=whole_number, required=True, metavar="D", help="How many periods.")
@_max_changes_option
@click.option(
    "--num-users",
    type=whole_number,
    required=True,
    metavar="N",
    help="Honest users who take part from the first period to the last.",
)
@click.option(
    "--epsilon0", type=float, help="Local privacy loss of all that a user ever sends, in nats."
)
@click.option(
    "--epsilon", type=float, help="Central target instead, for all that is ever published."
)
@_delta_option
@_categories_option
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    help="How clients randomize; by default the first, up to 62 changes.",
)
@_confidence_option
@json_option
def plan(*, categories: tuple[str, ...] | None, as_json: bool, **asked: Any) -> None:
    """Say how exact running counts will be, how private, and whether to monitor at all.

    The guarantees are of a user's whole history, over all periods. Give --epsilon0 (local) or
    --epsilon (central; the largest epsilon0 that meets it is found).

    The plan is compared with one-shot collections. Either everybody answers in every period; or
    "few answers each": every user draws a few periods, tells nobody which, and answers only then.
    """
    from shuffledp.monitoring.plan import plan_monitoring

    require_target(epsilon=asked["epsilon"], delta=asked["delta"])
    if (asked["epsilon0"] is None) == (asked["epsilon"] is None):
        raise click.UsageError(
            "give exactly one of --epsilon0 (local, fixed) and --epsilon (central, to be met)"
        )
    planned = plan_monitoring(domain=categories, **asked)
    print_warnings(planned.cautions)
    if as_json:
        print_json(planned.to_dict())
        return
    _print_plan(planned)


def _print_plan(planned: "MonitorPlan") -> None:
    """Print the errors and guarantees, what else could be done, what to do, and on what terms."""
    from shuffledp.report.monitor import (
        HEADINGS,
        comparison_rows,
        design_facts,
        error_facts,
    )

    print_facts([*error_facts(planned), *_guarantee_facts(planned), *design_facts(planned)])
    click.echo()
    print_table(HEADINGS, comparison_rows(planned))
    click.echo()
    print_facts([("advice", planned.advice)])
    click.echo()
    print_facts([("method", planned.central.method), ("source", planned.central.source)])
    print_list("assumptions", planned.central.assumptions)


def _guarantee_facts(planned: "MonitorPlan") -> list[tuple[str, str]]:
    """Return the central guarantee and the local one."""
    from shuffledp.report.formatting import given, rounded

    def safe(value: float) -> str:
        return rounded(value, up=True, digits=6)

    central, local = planned.central, planned.local
    return [
        ("epsilon", f"{safe(central.upper)} (proved upper bound, of all that is ever published)"),
        ("gap", gap_text(central, "epsilon")),
        ("delta", given(planned.delta)),
        ("epsilon0", f"{safe(local.upper)} (of all that a user ever sends, without a shuffler)"),
    ]


@monitor.command(
    epilog="Example: shuffledp monitor simulate states.parquet --user id --time day --value flag "
    "--max-changes 4 --epsilon0 1 --delta 1e-8 --out results/"
)
@click.argument("table", type=PATH)
@click.option("--user", required=True, metavar="COLUMN", help="Column that says whose row it is.")
@click.option(
    "--time", required=True, metavar="COLUMN", help="Column with numbers from 1, dates or times."
)
@click.option(
    "--value", required=True, metavar="COLUMN", help="Column with the value from then on."
)
@_max_changes_option
@click.option(
    "--epsilon0",
    type=float,
    required=True,
    help="Local privacy loss of all that a user ever reports, in nats.",
)
@_delta_option
@out_option("results")
@_categories_option
@click.option(
    "--periods",
    type=whole_number,
    metavar="D",
    help="How many periods are planned; by default up to the last row.",
)
@click.option(
    "--start", metavar="TIME", help="Where period 1 begins; by default 1, or the earliest day."
)
@click.option(
    "--every",
    metavar="LENGTH",
    help="Length of a period: 1h, 1d, 1w, 1mo, or how many numbers; by default a day, or 1.",
)
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default=PROTOCOLS[0],
    show_default=True,
    help="How clients randomize.",
)
@click.option("--smoothed", is_flag=True, help="Use later reports for earlier periods, too.")
@_confidence_option
@seed_option
@click.option(
    "--stop-after", type=whole_number, metavar="T", help="Simulate up to this period only."
)
@overwrite_option
@show_values_option
@json_option
def simulate(
    *,
    table: Path,
    out: Path,
    overwrite: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Run the client of every user in TABLE (Parquet or CSV) and the server, period by period.

    A row says that a user has a value from a time on, until the user's next row. A table with a
    row for each user and period will do, too.

    Writes estimates.csv, result.json and report.html into the folder of --out: running counts with
    bands, and the true ones beside them, which only a simulation knows.
    """
    from shuffledp.collection.output import REPORT_FILE, results_folder
    from shuffledp.monitoring.histories import open_histories
    from shuffledp.monitoring.simulation import simulate_monitoring, write_monitor_result
    from shuffledp.report import write_report
    from shuffledp.report.monitor import MonitorView

    parameters = {"table": str(table), **asked}
    reading = {name: asked.pop(name) for name in _READING}
    with results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder:
        with progress_bar(hidden=as_json, hints=_HINTS) as on_progress:
            histories = open_histories(table, **reading, on_progress=on_progress)
            result = simulate_monitoring(histories, on_progress=on_progress, **asked)
        write_monitor_result(result, folder, parameters=parameters)
        view = MonitorView(result=result, what=reading["value"])
        write_report(view, folder / REPORT_FILE)
    print_warnings(result.warnings)
    if as_json:
        print_json(result.to_json_dict())
        return
    _print_monitored(result, out)


def _print_monitored(result: "MonitorResult", out: Path) -> None:
    """Print how large errors are, then the guarantees, then where everything is."""
    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.report.formatting import rounded
    from shuffledp.report.monitor import band_text, users_and_share

    running, num_users = result.running, result.num_users
    half_widths = (running.upper - running.lower) / 2.0
    ignored = "none"
    if result.num_ignored_changes:
        ignored = f"{result.num_ignored_changes:,} of {result.num_limited_users:,} users"
    central = guarantee_facts(result.central)
    facts = [
        ("users", f"{num_users:,}"),
        ("periods", f"{result.through:,} of {result.design.periods:,}"),
        ("band", f"±{users_and_share(float(half_widths.max()), num_users)} at most"),
        ("", f"±{users_and_share(float(half_widths.mean()), num_users)} on average"),
        ("", band_text(running.confidence)),
        ("outside the band", f"{result.num_outside_bands:,} of {half_widths.size:,} true counts"),
        (
            "error found",
            f"{users_and_share(result.root_mean_square_error, num_users)}, root mean square",
        ),
        ("ignored changes", ignored),
        ("epsilon0", f"{rounded(result.local.upper, up=True, digits=6)} (all a user ever sends)"),
        *((name, value) for name, value in central if name != "users"),
        ("report", str(out / REPORT_FILE)),
    ]
    print_facts(facts)
