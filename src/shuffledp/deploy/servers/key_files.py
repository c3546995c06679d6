"""Keys of servers as files: destroyed when they have served, and new ones before they run out.

The key of an epoch is never replaced, for devices may have sealed to it; new ones are of later
epochs. What is said here of files holds on disks that do not keep what was deleted: leave the
folder out of backups and snapshots.
"""

import os
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.core.durable_files import sync_folder
from shuffledp.core.errors import DataError, OutputError
from shuffledp.deploy.database import write_new
from shuffledp.deploy.messages import NUM_KEYS, SealKey, SignedKeys
from shuffledp.deploy.servers.settings import (
    AnalyzerSettings,
    ShufflerSettings,
    key_path,
    opening_list,
    read_list,
    read_task,
    sealed_to,
    sealing_keys,
    shuffler_list,
    signing_key,
    write_key,
)
from shuffledp.deploy.task import Task


def destroy_key(folder: Path, number: int) -> bool:
    """Overwrite and delete the key of an epoch, or that of a number; False if there is none."""
    path = key_path(folder, number)
    try:
        with path.open("r+b") as file:
            file.write(b"0" * path.stat().st_size)
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OutputError(f"cannot destroy {path}: {error.strerror or error}") from None
    return True


def destroy_opening_key(settings: AnalyzerSettings, number: int) -> bool:
    """Destroy an old key of the analyzer; False if it is gone, `DataError` if it is the newest."""
    newest = read_list(settings.public_keys, settings.read_task(), "analyzer").keys[0].number
    if number == newest:
        raise DataError(
            f"key {number} is the one that devices seal to now: run shuffledp keys rotate first"
        )
    return destroy_key(settings.opening_keys, number)


def keys_of(settings: ShufflerSettings | AnalyzerSettings, task: Task) -> dict[int, Any]:
    """Return a server's private keys; raise if one is another than its list says.

    Reports that are sealed to such a key would never open.
    """
    by_epoch = isinstance(settings, ShufflerSettings)
    listed = read_list(settings.public_keys, task, "shuffler" if by_epoch else "analyzer")
    if isinstance(settings, ShufflerSettings):
        folder = settings.sealing_keys
    else:
        folder = settings.opening_keys
    public = {each.number: each.public_key for each in listed.keys}
    keys = sealing_keys(folder)
    for number, key in keys.items():
        is_listed = not by_epoch or listed.serial - NUM_KEYS <= number < listed.serial
        said = public.get(number % NUM_KEYS) if is_listed else None
        if said is not None and said != key.public_key().public_bytes_raw():
            raise DataError(
                f"{key_path(folder, number)} is another key than the list that devices get: put "
                "back the keys and the list that were made together"
            )
    return keys


def rotate(folder: Path, now: float) -> tuple[range, int]:
    """Make the analyzer's next key, and keys of epochs as far as numbers reach; sign the lists.

    Return which epochs have a key now, none if each had one, and the number of the analyzer's.
    Private keys are on disk before the lists name them. Stopped in between it can be run again.
    """
    task, operator = read_task(folder / "task.bin"), signing_key(folder / "operator.key")
    grace = ShufflerSettings.read(folder / "shuffler.toml").grace_seconds
    shuffler, analyzer = folder / "shuffler", folder / "analyzer"
    before = read_list(shuffler / "keys.bin", task, "shuffler")
    first = max(0, int((now - grace - task.start) // task.epoch_seconds))
    epochs = range(max(first, before.serial), min(task.num_epochs, first + NUM_KEYS))
    made = {epoch: X25519PrivateKey.generate() for epoch in epochs}
    _write_keys(shuffler / "keys", made)
    if made:
        known = [*sealed_to(made), *_of_epochs(before, first)]
        _replace(shuffler / "keys.bin", shuffler_list(task, operator, known, epochs.stop, grace))
    serial = read_list(analyzer / "keys.bin", task, "analyzer").serial + 1
    opening, number = X25519PrivateKey.generate(), (serial - 1) % NUM_KEYS
    _write_keys(analyzer / "keys", {number: opening})
    after = opening_list(task, operator, opening, serial, grace)
    for path in (shuffler / "analyzer_keys.bin", analyzer / "keys.bin"):
        _replace(path, after)
    return epochs, number


def _of_epochs(listed: SignedKeys, first: int) -> list[SealKey]:
    """Return the keys of a list from an epoch on, newest first."""
    epochs = range(max(first, listed.serial - len(listed.keys)), listed.serial)
    return [listed.key_of_epoch(epoch) for epoch in reversed(epochs)]


def _write_keys(folder: Path, keys: dict[int, X25519PrivateKey]) -> None:
    """Write keys that no list names yet: what a run that was stopped left is replaced."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for number, key in keys.items():
        destroy_key(folder, number)
        write_key(key_path(folder, number), key)
    sync_folder(folder)


def _replace(path: Path, signed: SignedKeys) -> None:
    """Put a list in the place of an older one, all or nothing."""
    partial = path.with_suffix(".part")
    partial.unlink(missing_ok=True)
    write_new(partial, signed.encode(), mode=0o644)
    partial.replace(path)
    sync_folder(path.parent)
