"""``shuffledp send``: one device that answers a task, or a fleet of simulated ones from a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import print_facts, print_json, print_warnings, progress_bar
from shuffledp.cli.deployment import task_facts
from shuffledp.cli.options import PATH, answer_list, json_option, require_service, whole_number
from shuffledp.core.errors import DataError

if TYPE_CHECKING:
    from shuffledp.deploy.task import Task

_OF_A_DEVICE = ("value", "store", "max_epsilon0", "least_batch")

# What a device is told, and what to do next.
_MEANINGS = {
    "ACCEPTED": "the shuffler has it",
    "REPLAYED": "the shuffler has a report under its id: yours, if you sent it before",
    "LATE": "its epoch is over: it counts only if an earlier try arrived in time",
    "EARLY": "its epoch has not begun: check the clock of this device, then send again",
    "UNKNOWN_KEY": "it was sealed to a key that the shuffler no longer has: send again",
    "NOT_ADMITTED": "the shuffler wants a code, another than yours if you sent one: ask for one, "
    "then send again with --codes",
}
_TAKEN = ("ACCEPTED", "REPLAYED")


@click.command(epilog="Example: shuffledp send task/task.bin --value yes")
@click.argument("task_file", type=PATH)
@click.argument("table", type=PATH, required=False)
@click.option(
    "--value",
    help="The answer of this device; asked for if left out, since others may see a command line.",
)
@click.option(
    "--store",
    type=PATH,
    metavar="FILE",
    help="Where the device keeps its report; by default a file of the task in the user's folder "
    "for state.",
)
@click.option(
    "--max-epsilon0",
    type=float,
    metavar="X",
    help="Answer no task with a larger epsilon0, in nats.",
)
@click.option(
    "--least-batch",
    type=whole_number,
    metavar="N",
    help="Answer no task that releases batches of fewer reports.",
)
@click.option("--column", help="Column of TABLE with the values; each row is one device.")
@click.option(
    "--codes",
    type=PATH,
    metavar="FILE",
    help="Codes to send with, one a line: the device's own, or one for each row of TABLE.",
)
@json_option
def send(
    *,
    task_file: Path,
    table: Path | None,
    column: str | None,
    codes: Path | None,
    as_json: bool,
    **device: Any,
) -> None:
    """Answer the task in TASK_FILE as one device, or send the answers in TABLE as a fleet of them.

    A device says first what is asked, what its report tells and what is promised; then it
    randomizes the answer once, keeps that report, and sends it. Started again it sends that one.

    With TABLE, for pilots and load tests: one report a row, and the true answers in one file.
    """
    require_service()
    from shuffledp.deploy.servers.settings import codes_of, read_task

    made = read_task(task_file)
    own = [] if codes is None else codes_of(codes)
    if table is None:
        if column is not None:
            raise click.UsageError("--column is for TABLE")
        _answer(made, own, as_json=as_json, **device)
        return
    given = [name for name in _OF_A_DEVICE if device[name] is not None]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} is for a device: leave TABLE out")
    _send_table(made, table, column, own if codes else None, as_json=as_json)


def _answer(
    made: "Task",
    codes: list[bytes],
    *,
    as_json: bool,
    value: str | None,
    store: Path | None,
    max_epsilon0: float | None,
    least_batch: int | None,
) -> None:
    """Say what is asked, then randomize, keep and send, as one device."""
    from shuffledp.deploy.client import Client, Limits, default_store
    from shuffledp.deploy.http_client import cautions_about

    if len(codes) > 1:
        raise click.UsageError(f"--codes has {len(codes):,} codes: a device has one")
    if not as_json:
        print_facts([*task_facts(made), ("store", str(store or default_store(made)))])
        sys.stdout.flush()
    for name, url in (("shuffler", made.shuffler_url), ("analyzer", made.analyzer_url)):
        print_warnings(cautions_about(url, name))
    limits = Limits(
        max_epsilon0=float("inf") if max_epsilon0 is None else max_epsilon0,
        least_batch=least_batch or 1,
    )
    with Client(made, store, limits=limits) as client:
        code = codes[0] if codes else None
        if client.kept() is None:
            said = str(click.prompt("Answer")) if value is None else value
            client.report(_read(made, said), code=code)
        else:
            client.report(None, code=code)  # the kept one, under the code's id if it needs one
        answer = client.send()
    if as_json:
        # What was typed is not repeated among the inputs: the true answer belongs in no log.
        click.get_current_context().params.pop("value")
        _print_counts(made, {each.name.lower(): int(each is answer) for each in type(answer)}, 1)
    elif answer.name in _TAKEN:
        print_facts([("sent", _MEANINGS[answer.name])])
    if answer.name not in _TAKEN:
        raise DataError(f"the report was not taken in: {_MEANINGS[answer.name]}")


def _print_counts(made: "Task", counts: dict[str, int], number: int) -> None:
    """Print as JSON what became of how many reports."""
    print_json({"task_id": made.task_id.hex(), "num_sent": number, "answers": counts})


def _read(made: "Task", said: str) -> Any:
    """Return what was typed as the question takes it."""
    kind = made.asked.question.kind
    return answer_list(said) if kind in ("vector-mean", "answer-sets") else said


def _send_table(
    made: "Task", table: Path, column: str | None, codes: list[bytes] | None, *, as_json: bool
) -> None:
    """Send the answers of a file, one report a row."""
    from shuffledp.collection.source.columns import open_column
    from shuffledp.deploy.remote import send_values

    values = open_column(table, column, made.asked.question)
    if codes is not None and len(codes) < values.num_users:
        raise click.UsageError(f"--codes has {len(codes):,} codes for {values.num_users:,} rows")
    with progress_bar() as on_progress:
        counts = send_values(
            made,
            values.blocks(),
            num_values=values.num_users,
            codes=codes,
            on_progress=on_progress,
        )
    if as_json:
        _print_counts(made, counts, values.num_users)
        return
    said = [(name.replace("_", " "), f"{number:,}") for name, number in counts.items() if number]
    print_facts([("sent", f"{values.num_users:,}"), *said])
