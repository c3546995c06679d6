"""``shuffledp monitor simulate``: every client and the server, on a table of real histories."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    guarantee_facts,
    print_facts,
    print_json,
    print_warnings,
    progress_bar,
    read_paths,
    say,
)
from shuffledp.cli.monitor_options import (
    ENCODINGS,
    PROTOCOLS,
    categories_option,
    confidence_option,
    delta_option,
    max_changes_option,
)
from shuffledp.cli.options import (
    json_option,
    seed_option,
    show_values_option,
    whole_number,
)

if TYPE_CHECKING:
    from shuffledp.monitoring.results import MonitorResult

IMAGE_FILE = "running-counts.png"

_READING = ("user", "time", "value", "categories", "periods", "start", "every")


@click.command(
    epilog="Example: shuffledp monitor simulate states.parquet --user id --time day --value flag "
    "--max-changes 4 --epsilon0 1 --delta 1e-8 --out results/"
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--user", required=True, metavar="COLUMN", help="Column that says whose row it is.")
@click.option(
    "--time", required=True, metavar="COLUMN", help="Column with numbers from 1, dates or times."
)
@click.option(
    "--value", required=True, metavar="COLUMN", help="Column with the value from then on."
)
@max_changes_option
@click.option(
    "--epsilon0",
    type=float,
    required=True,
    help="Local privacy loss of all that a user ever reports, in nats.",
)
@delta_option
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to create for results."
)
@categories_option
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
@click.option(
    "--encoding",
    type=click.Choice(ENCODINGS),
    help="How categories become bits; by default whichever errs less.",
)
@click.option(
    "--method",
    type=click.Choice(["least-squares", "cover"]),
    default="least-squares",
    show_default=True,
    help="How the server estimates.",
)
@click.option("--smoothed", is_flag=True, help="Use later reports for earlier periods, too.")
@confidence_option
@seed_option
@click.option(
    "--stop-after", type=whole_number, metavar="T", help="Simulate up to this period, for now."
)
@click.option("--resume", is_flag=True, help="Go on where a simulation stopped.")
@click.option(
    "--join-new-users", is_flag=True, help="With --resume: let users join who were not there."
)
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What is needed to go on; by default OUT.state while periods are left.",
)
@click.option("--overwrite", is_flag=True, help="Replace a folder of earlier results.")
@show_values_option
@json_option
def simulate(
    *,
    table: Path,
    out: Path,
    state_file: Path | None,
    resume: bool,
    join_new_users: bool,
    overwrite: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Run the client of every user in TABLE (Parquet or CSV) and the server, period by period.

    A row says that a user has a value from a time on, until the user's next row. A table with a
    row for each user and period will do, too.

    Writes estimates.csv, result.json, report.html and running-counts.png into the folder of --out:
    running counts with bands, and the true ones beside them, which only a simulation knows.
    """
    from shuffledp.collection.output import results_folder
    from shuffledp.monitoring.histories import open_histories
    from shuffledp.monitoring.results import write_monitor_result
    from shuffledp.monitoring.simulation import simulate_monitoring

    if join_new_users and not resume:
        raise click.UsageError("--join-new-users is for a simulation that goes on: add --resume")
    parameters = {"table": str(table), **asked}
    reading = {name: asked.pop(name) for name in _READING}
    state = state_file or _state_beside(out)
    # The results of the same run, up to an earlier period, give way to those up to now.
    inputs = [state, *read_paths(out)]  # a state is written as well, but never into the results
    with results_folder(out, overwrite=overwrite or resume, inputs=inputs) as folder:
        with progress_bar(hidden=as_json) as on_progress:
            histories = open_histories(table, **reading, on_progress=on_progress)
            try:
                result = simulate_monitoring(
                    histories,
                    state_file=state,
                    resume=resume,
                    join_new_users=join_new_users,
                    on_progress=on_progress,
                    **asked,
                )
            except KeyboardInterrupt:
                _say_how_to_go_on(state)
                raise
        write_monitor_result(result, folder, parameters=parameters)
        cautions = _write_pictures(result, folder, table, reading)
    is_over = result.through == result.design.periods
    if is_over and state_file is None:
        state.unlink(missing_ok=True)
    print_warnings((*result.warnings, *cautions))
    if as_json:
        print_json({**result.to_json_dict(), "state": None if is_over else str(state)})
        return
    _print_result(result, out, None if is_over else state)


def _state_beside(out: Path) -> Path:
    """Return the name of the folder with an ending more, whatever dots it has; also for `.`."""
    named = out if out.name.strip(".") else Path(os.path.abspath(out))  # noqa: PTH100  # no links
    return named.parent / f"{named.name}.state"


def _say_how_to_go_on(state: Path) -> None:
    """Print what Ctrl-C left behind, if it came late enough for that."""
    if state.exists():
        say(
            "stopped",
            f"{state} holds everything up to here; the same command with --resume goes on",
        )


def _write_pictures(
    result: "MonitorResult", folder: Path, table: Path, reading: dict[str, Any]
) -> tuple[str, ...]:
    """Write the page and the image; return what to say if there is no image."""
    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.core.errors import MissingPackageError
    from shuffledp.report.monitor_drawing import draw_running_counts
    from shuffledp.report.monitor_page import write_monitor_page
    from shuffledp.report.monitor_view import result_view

    view = result_view(result, what=reading["value"], arguments=_code(table, reading))
    write_monitor_page(view, folder / REPORT_FILE)
    try:
        draw_running_counts(view, folder / IMAGE_FILE)
    except MissingPackageError as error:
        return (f"{IMAGE_FILE} was left out: {error}",)
    return ()


def _code(table: Path, reading: dict[str, Any]) -> tuple[str, ...]:
    """Return the arguments of `open_histories`, as Python."""
    given = (f"{name}={value!r}" for name, value in reading.items() if value is not None)
    return (repr(str(table)), *given)


def _print_result(result: "MonitorResult", out: Path, state: Path | None) -> None:
    """Print how large errors are, then the guarantees, then where everything is."""
    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.report.formatting import rounded
    from shuffledp.report.monitor_view import result_view, users_and_share

    view = result_view(result, what="")
    num_counts = len(view.periods) * len(view.curves)
    ignored = "none"
    if result.num_ignored_changes:
        ignored = f"{result.num_ignored_changes:,} of {result.num_limited_users:,} users"
    central = guarantee_facts(result.central)
    facts = [
        ("users", f"{result.num_users:,}"),
        ("periods", f"{result.through:,} of {result.design.periods:,}"),
        ("band", f"±{users_and_share(view.worst_half_width, view.num_users)} at most"),
        ("", f"±{users_and_share(view.mean_half_width, view.num_users)} on average"),
        ("", f"{view.band}"),
        ("outside the band", f"{view.num_outside:,} of {num_counts:,} true counts"),
        (
            "error found",
            f"{users_and_share(result.root_mean_square_error, view.num_users)}, root mean square",
        ),
        ("ignored changes", ignored),
        ("epsilon0", f"{rounded(result.local.upper, up=True, digits=6)} (all a user ever sends)"),
        # Its crowd are the users of the first period, which late joiners do not belong to.
        *(("crowd" if name == "users" else name, value) for name, value in central),
        ("report", str(out / REPORT_FILE)),
    ]
    if state is not None:
        facts.append(("to go on", f"--resume (state: {state})"))
    print_facts(facts)
