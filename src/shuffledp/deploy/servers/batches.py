"""What a batch costs a server: seals to open, nearly all of its work, and a part of the budget.

Seals are opened in processes of their own where that pays.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import spend
from shuffledp.deploy.messages import Batch
from shuffledp.deploy.sealing import Seal, mail_key, open_seal
from shuffledp.deploy.task import Task
from shuffledp.engines.processes import start_processes, usable_cores

#: Sealed texts that are read, and opened, at once.
PAGE: Final = 5_000

# Below, a process would take longer to start than to open them.
_FEW: Final = 20_000

# Pages under way for each process: one that is opened, and one that waits.
_PAGES_EACH: Final = 2


class BatchState(NamedTuple):
    """What is known of a batch: reports released are ``size``, once it is sealed."""

    number: int
    state: str  # closed, short, sealed, fetched or dropped
    first_epoch: int
    last_epoch: int
    size: int | None
    root: bytes | None


class Held(NamedTuple):
    """Records that were opened before and wait, and how many of them may be dishonest."""

    records: frozenset[bytes] = frozenset()
    num_dishonest: int = 0


class Written(NamedTuple):
    """What became of all that was opened for a batch, and how many reports did not open, and so on.

    No root where nothing is released, and then why the budget refuses it, if that is why.
    """

    size: int
    root: bytes | None
    held: Held
    counted: Mapping[str, int]
    refusal: str = ""


class Page(NamedTuple):
    """Texts sealed to one key; goes to other processes, and so is plain bytes."""

    key: bytes | None  # none where it is gone: then nothing opens
    texts: Sequence[tuple[bytes, bytes]]  # what each is bound to, and the sealed text
    kind: Seal = "x25519"


def open_page(page: Page) -> list[bytes | None]:
    """Return the texts of a page, None for what does not open."""
    if page.key is None:
        return [None] * len(page.texts)
    key = mail_key(page.kind, page.key)
    return [open_seal(sealed, key, info) for info, sealed in page.texts]


def open_texts(
    key: bytes, info: bytes, sealed: Sequence[bytes], *, kind: Seal = "x25519"
) -> list[bytes | None]:
    """Return the texts that are sealed to one key and bound to one thing, None for others."""
    return open_page(Page(key, [(info, each) for each in sealed], kind))


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
        under_way.append(loop.run_in_executor(executor, open_page, page))
        if len(under_way) > most:
            found.append(await under_way.popleft())
    return found + [await each for each in under_way]


def note_of(task: Task, number: int) -> str:
    """Return the ledger's note of a batch."""
    return f"task {task.task_id.hex()[:16]}, batch {number}"


def spend_for_batch(ledger: Path, task: Task, batch: Batch, num_honest: int) -> Ledger:
    """Take a batch off the budget of those who answer; return the ledger.

    Once: under the hash of its records. ``num_honest`` are the honest reports of its least part,
    which with dummies makes no difference.

    Raises
    ------
    BudgetError
        If the budget does not cover it; nothing is spent.
    """
    return spend(
        ledger, task.release(num_honest), note_of(task, batch.number), key=batch.root.hex()
    )
