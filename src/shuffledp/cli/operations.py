"""``shuffledp keys``, ``restore``, ``aggregate`` and ``task next``: an operator's further steps."""

import json
import time
from pathlib import Path
from typing import Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli.deployment import LISTEN, say_task, task
from shuffledp.cli.options import JSON, OUT, PATH, WORK, cli, is_on_spark, options, require_service
from shuffledp.collection.output import PRIVACY_FILE
from shuffledp.core.errors import DataError
from shuffledp.core.progress import no_progress

_CONFIG = "--config PATH  Settings of the server.  [required]"


@cli.group()
def keys() -> None:
    """Make the next keys of a task, or destroy an old one."""


@keys.command(epilog="Example: shuffledp keys rotate task/")
@click.argument("folder", type=PATH)
def rotate(*, folder: Path) -> None:
    """Make new keys for the task in FOLDER, which has operator.key, and sign the new lists.

    The analyzer gets a key with the next number, used from the second epoch to begin from now,
    unless one is waiting already; older keys open earlier reports until they are destroyed. The
    shuffler gets a key for each coming epoch without one, up to 256 epochs ahead; its keys are
    never replaced.
    """
    require_service()
    from shuffledp.deploy.servers.settings import rotate as rotate_keys
    from shuffledp.report.page import rendered_rows

    epochs, key = rotate_keys(folder, time.time())
    console.print_facts(rendered_rows("keys.txt", epochs=epochs, key=key, folder=folder))


@keys.command(epilog="Example: shuffledp keys destroy --epoch 3 --config task/shuffler.toml")
@options(
    f"""
    {_CONFIG}
    --epoch N   Epoch of the shuffler's key.
    --number N  Number of the analyzer's old key.
    """,
    epoch=click.IntRange(0),
    number=click.IntRange(0, 255),
)
def destroy(*, config: Path, epoch: int | None, number: int | None) -> None:
    """Destroy a key: reports sealed to it can no longer be opened.

    Stop the server first. A running shuffler destroys the key of an epoch once its reports are
    released or dropped. Refused while the key is needed, or while the clock is wrong.
    """
    require_service()
    from shuffledp.deploy.analyzer_server import open_analyzer
    from shuffledp.deploy.servers import settings as servers
    from shuffledp.deploy.servers.watch import clock_of
    from shuffledp.deploy.shuffler_server import destroy_by_hand, open_shuffler

    settings = servers.read_settings(config)
    if isinstance(settings, servers.ShufflerSettings):
        if epoch is None or number is not None:
            raise click.UsageError("name the key of the shuffler by --epoch")
        with open_shuffler(settings) as shuffler:
            is_done = destroy_by_hand(settings, shuffler, epoch)
        what = f"the key of epoch {epoch}"
    else:
        if number is None or epoch is not None:
            raise click.UsageError("name the key of the analyzer by --number")
        with open_analyzer(settings) as analyzer:
            now = clock_of(analyzer.task, analyzer.last_time())()
        is_done, what = servers.destroy_opening_key(settings, number, now), f"key {number}"
    click.echo(f"{what} is destroyed" if is_done else f"{what} is gone already")


@cli.command(epilog="Example: shuffledp restore --verify --config task/shuffler.toml")
@options(
    f"""
    {_CONFIG}
    --verify  Check the store, and change nothing but its version, if older.  [required]
    """,
)
@click.pass_context
def restore(context: click.Context, *, config: Path, verify: bool) -> None:  # noqa: ARG001  # states the action
    """Check a server's store that was put back from a backup.

    Sealed batches must have their records, results must match their batches, and the ledger needs
    an entry for each; waiting reports need the key of their epoch. Prints a line for each fault;
    the exit code is then 2.
    """
    require_service()
    from shuffledp.deploy import analyzer_server, shuffler_server
    from shuffledp.deploy.servers.settings import ShufflerSettings, read_settings

    settings = read_settings(config)
    if isinstance(settings, ShufflerSettings):
        found, wrong = shuffler_server.verify(settings)
    else:
        found, wrong = analyzer_server.verify(settings)
    for line in wrong:
        click.echo(f"error: {line}", err=True)
    click.echo(f"{config}: {found}; faults: {len(wrong)}")
    if wrong:
        context.exit(2)


@cli.command(epilog="Example: shuffledp aggregate batches/ --config task/analyzer.toml")
@click.argument("batches", type=PATH)
@options(
    f"""
    --config PATH  Settings of the analyzer.  [required]
    {JSON}
    {WORK}
    """,
)
def aggregate(*, batches: Path, config: Path, processes: int | None, engine: str | None) -> None:
    """Open and count sealed BATCHES of a task.

    BATCHES is a file, or a folder of files batch-*.sdp. Does the work of `shuffledp serve analyzer`
    in the same store, with the same checks, guarantee, budget and results. Stop that server first.
    """
    require_service()
    from shuffledp.deploy.analyzer_server import open_analyzer, publish
    from shuffledp.deploy.database import bytes_of
    from shuffledp.deploy.messages import Batch
    from shuffledp.deploy.servers.settings import AnalyzerSettings

    is_spark = is_on_spark({"engine": engine}, processes)
    settings = AnalyzerSettings.read(config)
    files = sorted(batches.glob("batch-*.sdp")) if batches.is_dir() else [batches]
    if not files:
        raise DataError(f"{batches} holds no file batch-*.sdp: give the folder of the batches")
    record: list[dict[str, object]] = []
    with (
        sdp.engines.Processes(processes) as workers,
        console.progress_bar() as on_progress,
        open_analyzer(settings, sdp.spark.Workers().map if is_spark else workers.map) as analyzer,
    ):
        for done, file in enumerate(files):
            data = bytes_of(file)
            number = Batch.number_of(data)
            folder = settings.store / "results" / str(number)
            folder.parent.mkdir(exist_ok=True)
            found = publish(analyzer, data, folder)
            record.append({"batch": number, "num_users": found, "results": str(folder)})
            (on_progress or no_progress)("opening batches", done + 1, len(files))
    if not console.print_json({"batches": record}):
        counted, kept = "{num_users:,} reports, {results}", "kept for a later one"
        lines = ((counted if each["num_users"] else kept).format(**each) for each in record)
        console.print_facts(zip((f"batch {each['batch']}" for each in record), lines, strict=True))


@task.command(
    "next", epilog="Example: shuffledp task next round1/ results1/ --epoch 1d --out round2/"
)
@click.argument("folder", type=PATH)
@click.argument("results", type=PATH)
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
    {OUT.format("the task and its keys")}
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
    from shuffledp.deploy.servers import settings

    folder = settings.folder_of(folder)
    given = {name: each for name, each in changed.items() if each is not None}
    last = settings.read_task(folder / "task.bin")
    operator = settings.signing_key(folder / "operator.key")
    if out.exists():
        raise click.UsageError(f"{out} exists: choose another --out")
    try:
        record = json.loads(bytes_of(results / PRIVACY_FILE))
    except (ValueError, RecursionError):
        raise DataError(
            f"{results / PRIVACY_FILE} is no JSON: give the folder of collect"
        ) from None
    made: sdp.deploy.Task = last.after(record, start=int(time.time()), **given)
    made.check()
    admitted = [] if codes is None else settings.codes_of(codes)
    listen = (shuffler, analyzer)
    settings.write_task(out, made, operator, listen=listen, grace_seconds=grace, codes=admitted)
    say_task(made, out / "task.bin")
