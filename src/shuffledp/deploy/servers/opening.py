"""Opening seals, which is nearly all of a batch's work: in processes of their own where it pays."""

import asyncio
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.deploy.sealing import open_seal

#: Sealed texts that are read, and opened, at once.
PAGE: Final = 5_000

# Below, a process would take longer to start than to open them.
_FEW: Final = 20_000

# Pages under way for each process: one that is opened, and one that waits.
_PAGES_EACH: Final = 2


class Page(NamedTuple):
    """Texts sealed to one key; goes to other processes, and so is plain bytes."""

    key: bytes | None  # none where it is gone: then nothing opens
    texts: Sequence[tuple[bytes, bytes]]  # what each is bound to, and the sealed text


def opened(page: Page) -> list[bytes | None]:
    """Return the texts of a page, None for what does not open."""
    if page.key is None:
        return [None] * len(page.texts)
    key = X25519PrivateKey.from_private_bytes(page.key)
    return [open_seal(sealed, key, info) for info, sealed in page.texts]


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
