"""``shuffledp keys`` and ``restore``: what an operator does now and then with a running task."""

import time
from pathlib import Path

import click

from shuffledp.cli import console
from shuffledp.cli.options import PATH, cli, options, require_service

_CONFIG = "--config PATH  The server's file of settings.  [required]"


@cli.group()
def keys() -> None:
    """Make the next keys of a task, or destroy one that has served."""


@keys.command(epilog="Example: shuffledp keys rotate task/")
@click.argument("folder", type=PATH)
@options(
    click.option(
        "--first-epoch",
        type=click.IntRange(0),
        help="The epoch from which devices seal to the analyzer's new key; by default the second "
        "to begin from now.",
    ),
)
def rotate(*, folder: Path, first_epoch: int | None) -> None:
    """Make new keys for the task in FOLDER, which has operator.key, and sign the new lists.

    The analyzer gets a key under the next number, used from a later epoch on, unless one waits for
    its epoch already; older ones open what is under way until they are destroyed. The shuffler gets
    a key for each epoch to come that has none, as far as there are numbers: 256 epochs from the
    present one. Keys of epochs are never replaced.
    """
    require_service()
    from shuffledp.deploy.servers.settings import rotate as rotate_keys

    made, key = rotate_keys(folder, time.time(), first_epoch)
    epochs = f"{made[0]} to {made[-1]}" if made else "each epoch to come had one"
    said, new = "one is to come already, or no epoch is", dict[str, list[str]]()
    if key is not None:
        said = f"number {key.number}, from epoch {key.first_epoch} on"
        new["analyzer"] = [f"analyzer/keys/{key.number}.key", "analyzer/keys.bin"]
        new["shuffler"] = ["shuffler/analyzer_keys.bin"]
    if made:
        files = ["shuffler/keys.bin", f"shuffler/keys: {len(made)} files"]
        new.setdefault("shuffler", []).extend(files)
    lines = [("keys of epochs", epochs), ("analyzer's key", said)]
    lines += [(f"for the {role}", str(folder / name)) for role in new for name in new[role]]
    console.print_facts(lines)


@keys.command(epilog="Example: shuffledp keys destroy --epoch 3 --config task/shuffler.toml")
@options(
    _CONFIG,
    click.option("--epoch", type=click.IntRange(0), help="Epoch of a key of the shuffler."),
    click.option(
        "--number", type=click.IntRange(0, 255), help="Number of an old key of the analyzer."
    ),
)
def destroy(*, config: Path, epoch: int | None, number: int | None) -> None:
    """Destroy a key: what is still sealed to it is noise from then on.

    A running shuffler does this by itself for each epoch whose reports are all released or
    dropped. Refused while reports are stored that the key opens, or of an analyzer while devices
    use it or the clock is far from when the analyzer ran last; stop the server first.
    """
    require_service()
    from shuffledp.deploy.analyzer_server import open_analyzer
    from shuffledp.deploy.servers import settings as servers
    from shuffledp.deploy.servers.clock import clock_of
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
    --verify  Check it; nothing else is done.  [required]
    """,
)
@click.pass_context
def restore(context: click.Context, *, config: Path, verify: bool) -> None:  # noqa: ARG001  # says what happens
    """Check a server's store that was put back from a backup, before the server is started.

    Sealed batches must have their records, results must match their batches, and the ledger needs
    an entry for each; reports that wait need the key of their epoch. Each fault is one line, and
    the exit code is 2 if there is any.
    """
    require_service()
    from shuffledp.deploy.restore import verify as verify_store
    from shuffledp.deploy.servers.settings import read_settings

    found, wrong = verify_store(read_settings(config))
    for line in wrong:
        click.echo(f"error: {line}", err=True)
    click.echo(f"{config}: {found}; faults: {len(wrong)}")
    if wrong:
        context.exit(2)
