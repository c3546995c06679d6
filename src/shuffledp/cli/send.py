"""``shuffledp send``: one device that answers a task, or a fleet of simulated ones from a file."""

import sys
from pathlib import Path
from typing import Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.deployment import task_facts
from shuffledp.cli.options import PATH, answer_list, cli, options, require_service
from shuffledp.core.errors import DataError

# Meaning of each answer of the shuffler, and the next step.
_MEANINGS = {
    "ACCEPTED": "the shuffler has it",
    "REPLAYED": "the shuffler has a report under its id: yours, if you sent it before",
    "LATE": "its epoch is over: it counts only if an earlier try arrived in time",
    "EARLY": "its epoch has not begun: check the clock of this device, then send again",
    "UNKNOWN_KEY": "it was sealed to a key that the shuffler no longer has: send again",
    "NOT_ADMITTED": "the shuffler wants a code, another than yours if you sent one: ask for one, "
    "then send again with --codes",
}

_ANSWERED = (
    "this device has answered already, so --value was not used: its first report is kept, cannot "
    "be changed, and is the one that is sent. Leave --value out to send it again; for another "
    "person's answer give a --store of their own"
)

_MISSED = (
    "no report of this device is known to be in {} of the {} earlier rounds: what it sends in the "
    "others is hidden by fewer devices than the task says"
)


@cli.command(epilog="Example: shuffledp send task/task.bin --value yes")
@click.argument("task_file", type=PATH)
@click.argument("table", type=PATH, required=False)
@options(
    f"""
    One device:
    --value TEXT
        The answer, several with commas between them; asked for if left out, since others may see a
        command line.
    --store FILE  File for the device's report, readable by its owner only; by default one for the
        task in the user's state folder.
    Limits:
    --max-epsilon0 X  Refuse tasks with a larger epsilon0, in nats: the guarantee if the shuffler
        fails.
    --least-batch N  Refuse tasks that release batches of fewer reports, 2 by default. With a
        shuffler's dummies any batch passes a limit of 2.
    --no-local-noise  Accept a task that sends answers without noise: the shuffler and the analyst
        together would see yours.
    --operator-key HEX  Refuse tasks of other operators than the one with this public key, which
        `shuffledp task check` prints.
    A fleet:
    --column TEXT     Column of TABLE with the answers; each row is one device.
    {shared.READING}
    {shared.DECIMAL}
    Both:
    --codes FILE  File of codes, one a line, if the shuffler requires them: the device's own, or one
        for each row of TABLE.
    {shared.JSON}
    """,
)
def send(
    *, task_file: Path, table: Path | None, column: str | None, codes: Path | None, **device: Any
) -> None:
    """Answer the task in TASK_FILE as one device, or with TABLE as a fleet.

    Prints the question and the guarantees, then randomizes the answer once, stores that report and
    sends it. Started again, it sends the same report.

    TABLE is for pilots and load tests, since it holds all true answers in one file.
    """
    require_service()
    ways = shared.take_reading(device)
    from shuffledp.deploy.servers.settings import codes_of, read_task

    made = read_task(task_file)
    own = [] if codes is None else codes_of(codes)
    if table is None:
        if column is not None or ways:
            raise click.UsageError("--column and ways of reading are for TABLE: leave them out")
        _answer(made, own, **device)
        return
    if given := shared.flags_given(device):
        raise click.UsageError(f"{given[0]} is for a device: leave TABLE out")
    _send_table(made, table, column, own if codes else None, **ways)


def _record(made: "sdp.deploy.Task", counts: dict[str, int], number: int) -> dict[str, object]:
    """Return the number of reports by answer of the shuffler, as a JSON object."""
    return {"task_id": made.task_id.hex(), "num_sent": number, "answers": counts}


def _require_taken_in(counts: dict[str, int], number: int) -> None:
    """Raise if the shuffler has not taken in all reports, with what its answers mean."""
    lost = {name: each for name, each in counts.items() if name not in ("accepted", "replayed")}
    if total := sum(lost.values()):
        what = "the report was" if number == 1 else f"{total:,} of {number:,} reports were"
        reasons = [_MEANINGS[name.upper()] for name, each in lost.items() if each]
        raise DataError(f"{what} not taken in: {'; '.join(reasons)}")


def _answer(
    made: "sdp.deploy.Task",
    codes: list[bytes],
    *,
    value: str | None,
    store: Path | None,
    **agreed: Any,
) -> None:
    """Print the question, then randomize, keep and send, as one device."""
    from shuffledp.collection.questions.question import has_parts
    from shuffledp.deploy.client import default_store
    from shuffledp.deploy.remote import cautions_about

    if len(codes) > 1:
        raise click.UsageError(f"--codes has {len(codes):,} codes: a device has one")
    if not console.is_json():
        console.print_facts([*task_facts(made), ("store", str(store or default_store(made)))])
        sys.stdout.flush()
    for name, url in (("shuffler", made.shuffler_url), ("analyzer", made.analyzer_url)):
        console.print_warnings(cautions_about(url, name))
    limits = sdp.deploy.Limits(**{name: each for name, each in agreed.items() if each is not None})
    with sdp.deploy.Client(made, store, limits=limits) as client:
        if client.num_missed:
            console.print_warnings([_MISSED.format(client.num_missed, made.round - 1)])
        code = codes[0] if codes else None
        was_sent = client.is_done
        if client.kept() is None:
            said = str(click.prompt("Answer")) if value is None else value
            is_list = has_parts(made.asked.question)
            client.report(answer_list(said) if is_list else said, code=code)
        else:
            if value is not None:
                console.print_warnings([_ANSWERED])
            client.report(None, code=code)  # the kept one, under the code's id if it needs one
        answer = client.send()
    # Leave the typed answer out of the printed inputs: a true answer belongs in no log.
    click.get_current_context().params.pop("value")
    counts = {each.name.lower(): int(each is answer) for each in type(answer)}
    is_printed = console.print_json(_record(made, counts, 1))
    _require_taken_in(counts, 1)
    if not is_printed:
        console.print_facts([("sent before" if was_sent else "sent", _MEANINGS[answer.name])])


def _send_table(
    made: "sdp.deploy.Task", table: Path, column: str | None, codes: list[bytes] | None, **ways: Any
) -> None:
    """Send the answers of a file, one report a row."""
    from shuffledp.deploy.client import fleet_values
    from shuffledp.deploy.remote import send_values

    values = sdp.collection.open_column(table, column, made.asked.question, **ways)
    number = values.num_users
    if codes is not None and len(codes) < number:
        raise click.UsageError(f"--codes has {len(codes):,} codes for {number:,} rows")
    blocks: Any = values.blocks()
    if made.asked.search:
        blocks = fleet_values(made, blocks, number)
    with console.progress_bar() as on_progress:
        counts = send_values(made, blocks, num_values=number, codes=codes, on_progress=on_progress)
    if not console.print_json(_record(made, counts, number)):
        said = [(name.replace("_", " "), f"{each:,}") for name, each in counts.items() if each]
        console.print_facts([("sent", f"{number:,}"), *said])
    _require_taken_in(counts, number)
