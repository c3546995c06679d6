"""``shuffledp task next``: the next round of a search for popular texts among devices."""

import json
import time
from pathlib import Path
from typing import Any

import click

import shuffledp as sdp
from shuffledp.cli import options as shared
from shuffledp.cli.deployment import LISTEN, say_task, task
from shuffledp.cli.options import options, require_service
from shuffledp.collection.output import PRIVACY_FILE
from shuffledp.core.errors import DataError


@task.command(
    "next", epilog="Example: shuffledp task next round1/ results1/ --epoch 1d --out round2/"
)
@click.argument("folder", type=shared.PATH)
@click.argument("results", type=shared.PATH)
@options(
    f"""
    Batches:
    epoch_seconds=--epoch DURATION  Time in which reports are gathered; by default as in the last
        round.
    --grace DURATION  Time after it in which reports are still accepted.  [default: 1h]
    --codes FILE  The codes of the devices, one a line, if the shuffler requires them, as
        in shuffler/codes.txt of round 1.
    {LISTEN}
    --shuffler-url TEXT  URL of the shuffler for devices; by default as in the last round.
    --analyzer-url TEXT  URL of the analyzer for devices.
    Output:
    {shared.OUT.format("the task and its keys")}
    """
)
def next_round(
    *,
    folder: Path,
    results: Path,
    grace: float,
    shuffler: str,
    analyzer: str,
    codes: Path | None,
    out: Path,
    **changed: Any,
) -> None:
    """Make the next task of a search for popular texts from the last round's task and results.

    FOLDER is the last round's, with task.bin and operator.key, and RESULTS the folder written by
    `shuffledp collect`. The promised epsilon covers the whole search. All keys are new except the
    operator's. The epoch begins now.
    """
    require_service()
    from shuffledp.deploy.database import bytes_of
    from shuffledp.deploy.servers.settings import codes_of, read_task, signing_key, write_task

    given = {name: each for name, each in changed.items() if each is not None}
    last, operator = read_task(folder / "task.bin"), signing_key(folder / "operator.key")
    if out.exists():
        raise click.UsageError(f"{out} exists: choose another --out")
    try:
        record = json.loads(bytes_of(results / PRIVACY_FILE))
    except ValueError:
        raise DataError(
            f"{results / PRIVACY_FILE} is no JSON: give the folder of collect"
        ) from None
    made: sdp.deploy.Task = last.after(record, start=int(time.time()), **given)
    made.check()
    admitted = [] if codes is None else codes_of(codes)
    listen = (shuffler, analyzer)
    write_task(out, made, operator, listen=listen, grace_seconds=grace, codes=admitted)
    say_task(made, out / "task.bin")
