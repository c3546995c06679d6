"""Costs of a batch at a server: opening of seals, nearly all of its work, and part of the budget.

Seals are opened in processes of their own if there are many.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import spend
from shuffledp.deploy.messages import Batch
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Seal, mail_key, open_seal
from shuffledp.engines.processes import start_processes, usable_cores

#: Number of sealed texts that are read, and opened, at once.
PAGE: Final = 5_000

# Below this number a process would take longer to start than to open the texts.
_FEW: Final = 20_000

# Pages under way for each process: one that is being opened, and one that waits.
_PAGES_EACH: Final = 2


class BatchState(NamedTuple):
    """State of a batch; ``size`` is the number of released records, once it is sealed."""

    number: int
    state: str  # closed, short, sealed, fetched or dropped
    first_epoch: int
    last_epoch: int
    size: int | None
    root: bytes | None


class Held(NamedTuple):
    """Records opened before that wait, and upper bound on the number of dishonest ones."""

    records: frozenset[bytes] = frozenset()
    num_dishonest: int = 0


class Written(NamedTuple):
    """Outcome of a batch's opened records: released or held, and counts of those left out.

    No root if nothing is released, and then the reason, if the budget refuses it.
    """

    size: int
    root: bytes | None
    held: Held
    counted: Mapping[str, int]
    refusal: str = ""


#: Texts sealed to one key, with the associated data of each: plain bytes, since it goes to other
#: processes. The key is None if it is gone: then nothing opens.
Page: TypeAlias = tuple[Seal, bytes | None, Sequence[tuple[bytes, bytes]]]


def open_texts(
    kind: Seal, private: bytes | None, sealed: Sequence[tuple[bytes, bytes]]
) -> list[bytes | None]:
    """Return the texts of a `Page`, None for each that does not open."""
    if private is None:
        return [None] * len(sealed)
    key = mail_key(kind, private)
    return [open_seal(text, key, info) for info, text in sealed]


def workers(number: int) -> Executor:
    """Return an executor for opening texts: a process for each core, or a thread for few texts."""
    if number < _FEW:
        return ThreadPoolExecutor(1)
    return start_processes(usable_cores())


async def opened_in(executor: Executor, pages: Iterable[Page]) -> list[list[bytes | None]]:
    """Return the content of each page, with few pages in flight at a time."""
    loop = asyncio.get_running_loop()
    found = []
    under_way: deque[asyncio.Future[list[bytes | None]]] = deque()
    most = _PAGES_EACH * getattr(executor, "_max_workers", 1)
    for page in pages:
        under_way.append(loop.run_in_executor(executor, open_texts, *page))
        if len(under_way) > most:
            found.append(await under_way.popleft())
    return found + [await each for each in under_way]


def note_of(task: Task, number: int) -> str:
    """Return the ledger's note of a batch."""
    return f"task {task.task_id.hex()[:16]}, batch {number}"


def spend_for_batch(ledger: Path, task: Task, batch: Batch, num_honest: int) -> Ledger:
    """Spend a batch from the budget of the users who answer; return the ledger.

    Once: under the hash of its records. ``num_honest`` are the honest reports of its smallest part,
    which do not matter with dummies.

    Raises
    ------
    BudgetError
        If the budget does not cover it; nothing is spent.
    """
    return spend(
        ledger, task.release(num_honest), note_of(task, batch.number), key=batch.root.hex()
    )
