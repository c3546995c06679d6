"""Opening seals, which is nearly all of a batch's work: in processes of their own where it pays."""

import asyncio
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.deploy.messages import open_outer, open_record

# Below, a process would take longer to start than to open them.
_FEW: Final = 20_000

# Pages under way for each process: one that is opened, and one that waits.
_PAGES_EACH: Final = 2


class Page(Protocol):
    """Sealed texts that are opened together; goes to other processes, and so is plain bytes."""

    def open(self) -> list[bytes | None]:
        """Return the texts, None for what does not open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """Reports of an epoch, with the shuffler's keys by number: id, key's number, sealed text."""

    task_id: bytes
    epoch: int
    keys: Mapping[int, bytes]
    reports: Sequence[tuple[bytes, int, bytes]]

    def open(self) -> list[bytes | None]:
        """Return what is for the analyzer."""
        keys = _private(self.keys)
        return [
            open_outer(self.task_id, self.epoch, report_id, sealed, keys[key])
            if key in keys
            else None
            for report_id, key, sealed in self.reports
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """Records of a batch, with the analyzer's keys by number."""

    task_id: bytes
    keys: Mapping[int, bytes]
    records: Sequence[bytes]

    def open(self) -> list[bytes | None]:
        """Return the randomized reports."""
        keys = _private(self.keys)
        return [open_record(self.task_id, each, keys) for each in self.records]


def _private(keys: Mapping[int, bytes]) -> dict[int, X25519PrivateKey]:
    """Return keys from their bytes."""
    return {n: X25519PrivateKey.from_private_bytes(each) for n, each in keys.items()}


def opened(page: Page) -> list[bytes | None]:
    """Return what is in a page; a function, so that other processes find it."""
    return page.open()


def workers(number: int) -> Executor:
    """Return who opens so many texts: a process for each core, or a thread if they are few."""
    if number < _FEW:
        return ThreadPoolExecutor(1)
    return ProcessPoolExecutor(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        mp_context=multiprocessing.get_context("spawn"),  # a server has threads
        initializer=_end_with_parent,
    )


async def opened_in(executor: Executor, pages: Iterable[Page]) -> list[list[bytes | None]]:
    """Return what is in each page, with few of them on their way at a time."""
    loop = asyncio.get_running_loop()
    found = []
    under_way: deque[asyncio.Future[list[bytes | None]]] = deque()
    most = _PAGES_EACH * getattr(executor, "_max_workers", 1)
    for page in pages:
        under_way.append(loop.run_in_executor(executor, opened, page))
        if len(under_way) > most:
            found.append(await under_way.popleft())
    return found + [await each for each in under_way]


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, killed or not."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
