"""The shuffler's dummies, and the numbers of the batches that were handed out.

A batch that is handed out twice, with different dummies, would reveal which records are dummies;
reports that are in two batches are hidden by those in both alone. So dummies are drawn once and
kept until the batch is on disk; and a file that lies beside the keys, hence in no backup of the
store, has the numbers of the batches that were handed out, so that a store restored from a backup
does not release them again.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, telling
from shuffledp.deploy.database import bytes_of
from shuffledp.deploy.messages import inner_info
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import seal, uint

HANDED_OUT: Final = "handed_out"

#: Dummies of batches not yet on disk; recreated with each batch, so that no trace of them is left.
TABLE: Final = (
    "CREATE TABLE dummies (record BLOB PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID"
)


def sealed_dummies(task: Task, numbers: Iterable[int], keys: Mapping[int, bytes]) -> list[bytes]:
    """Return new dummies for each class of records, sealed as reports are, to one of these keys.

    The dummies of a class follow its number alone, which marks a class that has none. Their number
    by answer is kept nowhere. Costs 0.1 ms a dummy.
    """
    if task.dummies is None or not task.adds_dummies:
        return []
    info, entropy, found = inner_info(task.task_id), Entropy.from_operating_system(), []
    for number in sorted(numbers):
        found.append(uint(number, 1))
        drawn = task.asked.dummies(task.dummies, entropy)
        found += (uint(number, 1) + seal(text, keys[number], info) for text in drawn)
    return found


def kept(store: Any, number: int, sealed: Iterable[bytes]) -> list[bytes]:
    """Return the dummies that a store keeps for a batch: for each class, the ones stored first."""
    first: list[bytes] = store.column("SELECT record FROM dummies WHERE batch = ?", (number,))
    known = {record[0] for record in first}
    new = sorted(record for record in sealed if record[0] not in known)
    store.insert_new("dummies", "record, batch", [(record, number) for record in new])
    return first + new


def clear(store: Any) -> None:
    """Forget which records are dummies."""
    store.change("DROP TABLE dummies")
    store.change(TABLE)


def lost_batch(store: Any, path: Path) -> int | None:
    """Return the number of the newest batch that was handed out, if a store lacks it."""
    query = "SELECT count(*) FROM batches WHERE number = ? AND state NOT IN ('closed', 'short')"
    number = newest_handed_out(path)
    return number if number and not store.value(query, (number,)) else None


def drop_batch(store: Any, number: int, *, first_epoch: int) -> None:
    """Note that a batch, and those before it that are not sealed, are never released."""
    clear(store)
    change = "UPDATE batches SET state = 'dropped' WHERE state = 'closed' AND number < ?"
    store.change(change, (number,))
    store.change(
        "INSERT INTO batches VALUES (?, 'dropped', ?, ?, NULL, NULL) "
        "ON CONFLICT (number) DO UPDATE SET state = 'dropped'",
        (number, first_epoch, number - 1),
    )


def newest_handed_out(path: Path) -> int:
    """Return the number of the newest batch that was handed out, 0 for none."""
    try:
        return max(map(int, bytes_of(path).split()), default=0)
    except (DataError, ValueError):
        raise DataError(
            f"cannot read {path}, which has the numbers of the batches that were handed out: put "
            "it back; if it is lost, write the largest number into it that the analyzer has, or 0 "
            "if it has none. Reports of that batch and those before are not released again"
        ) from None


def learn_handed_out(store: Any, path: Path) -> None:
    """Note on disk what another process of a store, perhaps on another machine, handed out."""
    note_handed_out(path, store.fact(HANDED_OUT) or 0)


def tell_handed_out(store: Any, number: int) -> None:
    """Note in a store, for its other processes, that a batch may have been handed out."""
    with store.transaction():
        store.set_fact(HANDED_OUT, max(number, store.fact(HANDED_OUT) or 0))


def note_handed_out(path: Path, number: int) -> None:
    """Note on disk that a batch may have been handed out."""
    if number <= newest_handed_out(path):
        return
    with telling(f"write {path}"), path.open("ab") as file:
        file.write(b"\n%d\n" % number)  # a power cut may have left part of another number
        file.flush()
        os.fsync(file.fileno())
