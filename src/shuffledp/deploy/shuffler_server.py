"""The shuffler over HTTP: bodies are bytes as in `messages`, errors one line of JSON.

Reports that arrive together are stored in one transaction, and each is acknowledged when it is on
disk.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.core.errors import DataError, ShuffledpError
from shuffledp.deploy import messages
from shuffledp.deploy.messages import Answer, Batch, Report
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers import settings as files
from shuffledp.deploy.servers.batches import BatchState, Held, opened_in, workers
from shuffledp.deploy.servers.settings import ShufflerSettings
from shuffledp.deploy.servers.watch import Watch, clock_of
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.task import Task

#: Largest number of reports that wait to be stored, and of bytes; beyond it clients must retry.
MOST_WAITING: Final = 20_000
_MOST_WAITING_BYTES: Final = 1 << 26

# Seconds until clients may retry when an epoch is full, which only its operator can change.
_FULL_SECONDS: Final = 600

_ENOUGH_AT_ONCE = 1_000
_TICK_SECONDS = 1.0

# Largest share of the time for counting stored reports, which reads all of them.
_COUNTING_SHARE = 0.05

_STATES = ("closed", "short", "sealed", "fetched", "dropped")

_JUMPED = (
    "the clock is more than an epoch from when the server ran last, or the task began, so nothing "
    "is taken in or closed: set it right, or start with --accept-clock if it is"
)


def open_shuffler(settings: ShufflerSettings) -> Shuffler:
    """Return the shuffler of a file of settings."""
    task, key = files.read_task(settings.task), files.signing_key(settings.signing_key)
    if settings.signs_as.lower() != key.public_key().public_bytes_raw().hex():
        what = f"{settings.signing_key} is not the key that signs as {settings.signs_as}"
        raise DataError(f"{what}, by which the analyzer knows batches: put that key back")
    law = str(task.dummies) if task.adds_dummies else ""
    if law != (settings.dummies or ""):
        raise DataError(
            f"dummies = {settings.dummies!r} in the settings, and the task promises "
            f"{law or 'none'}: who agrees to add these writes "
            + (f'dummies = "{law}" into the settings' if law else "no dummies into the settings")
        )
    shuffler = Shuffler(
        task,
        settings.store,
        signing_key=key,
        sealing_keys=files.keys_of(settings, task),
        grace_seconds=settings.grace_seconds,
        admission=settings.admission(task),
        ledger=settings.ledger,
        database=settings.database,
        batches=settings.batches,
        handed_out=settings.sealing_keys / files.HANDED_OUT,
    )
    shuffler.max_epoch_reports = settings.max_epoch_reports
    shuffler.inner_keys = _inner_keys(settings, task)
    return shuffler


def _inner_keys(settings: ShufflerSettings, task: Task) -> dict[int, bytes]:
    """Return the analyzer's public keys by number."""
    listed = files.read_list(settings.analyzer_keys, task, "analyzer")
    return {key.number: key.public_key for key in listed.keys}


def verify(settings: ShufflerSettings) -> tuple[str, list[str]]:
    """Return the content of a store put back from a backup, in one line, and its faults.

    Sealed batches must be there, and the keys of waiting reports. A store that does not open, or is
    of another task, raises; only an older version is changed.
    """
    settings.require_store()
    with open_shuffler(settings) as shuffler:
        task, key = shuffler.task, files.signing_key(settings.signing_key)
        public, wrong = key.public_key().public_bytes_raw(), []
        sealed, unreleased = shuffler.sealed_after(0), shuffler.unreleased()
        for number in sealed:
            try:
                Batch.decode(shuffler.read(shuffler.batch(number)), task, public)
            except (ShuffledpError, OSError) as error:
                wrong.append(f"batch {number}: {error}")
        wrong += [
            f"epoch {epoch}: its reports are not released and its key is gone, so nobody can open "
            "them; the backup is older than the key's end, or the keys are not put back"
            for epoch in unreleased
            if epoch not in shuffler.epochs_with_keys
        ]
        if (lost := shuffler.lost_batch()) is not None:
            wrong.append(
                f"batch {lost}: it was handed out, and the store is older. A second release would "
                "tell the reports in both from all others, so once started, the shuffler drops all "
                f"reports of epochs before {lost}; put back a newer backup if there is one"
            )
        said = (
            f"batches: {sum(shuffler.states().values())}, to be fetched: {len(sealed)}, "
            f"reports that wait: {shuffler.num_unreleased():,}, of epochs: {len(unreleased)}"
        )
    return said, wrong


@contextmanager
def shuffler_service(
    read: Callable[[], ShufflerSettings], *, accept_clock: bool = False
) -> Iterator[http.Service]:
    """Hold one task's shuffler, ready to be served.

    With ``accept_clock`` the clock is trusted, however wrong it seems.
    """
    settings = read()
    with open_shuffler(settings) as shuffler:
        clock = clock_of(shuffler.task, shuffler.last_time(), is_accepted=accept_clock)
        shuffler.prepare(time.time())
        watch = ShufflerWatch(shuffler, settings.sealing_keys)
        lists = settings.lists()

        def reload() -> Callable[[], None]:
            new = settings.read_again(read)
            task, known = shuffler.task, new.lists()
            keys, admission = files.keys_of(new, task), new.admission(task)
            inner_keys = _inner_keys(new, task)
            if admission is not None:
                admission.prepare(shuffler.epochs_around(time.time()))

            def use() -> None:
                shuffler.replace_keys(keys, admission)
                shuffler.inner_keys = inner_keys
                shuffler.max_epoch_reports = new.max_epoch_reports
                lists.update(known)

            return use

        app = shuffler_app(
            shuffler,
            lists=lists,
            analyzer_key=bytes.fromhex(settings.analyzer),
            watch=watch,
            now=clock,
            work=[lambda: http.on_hangup(reload, watch)],
        )
        yield http.Service(app=app, task=shuffler.task, watch=watch, settings=settings)


def destroy_by_hand(settings: ShufflerSettings, shuffler: Shuffler, epoch: int) -> bool:
    """Destroy an epoch's key; False if it is gone, `DataError` if it is still needed."""
    path = files.key_path(settings.sealing_keys, epoch)
    if not path.exists():
        return False
    if epoch in shuffler.unreleased():
        why, until = "has reports that are not released", "their batch is sealed or dropped"
    elif epoch not in shuffler.finished():
        why, until = "still takes reports in, or is to come", "it and its time of grace are over"
    else:
        return files.destroy_key(settings.sealing_keys, epoch)
    raise DataError(f"epoch {epoch} {why}, and {path} opens them: keep it until {until}")


def destroy_finished(shuffler: Shuffler, folder: Path) -> Iterator[int]:
    """Destroy the keys of epochs whose reports are all released or dropped; yield the epochs."""
    for epoch in shuffler.finished():
        is_ours = files.destroy_key(folder, epoch)
        shuffler.forget_key(epoch)
        if is_ours:  # otherwise another process of this shuffler has destroyed it
            yield epoch


class ShufflerWatch(Watch):
    """Watch of a shuffler; called between its steps, on its thread."""

    def __init__(self, shuffler: Shuffler, keys: Path | None = None) -> None:
        """``keys`` is the folder of the epochs' keys, destroyed when they are no longer needed."""
        super().__init__("shuffler")
        self._shuffler, self._keys = shuffler, keys
        self._next_count, self._last_closed = 0.0, 0
        self.set("least_batch_reports", shuffler.task.min_batch)

    def stored(self, seconds: float, num_left: int) -> None:
        """Note that reports are on disk, the seconds that this took, and the number that wait."""
        self.observe("commit_seconds", seconds)
        self.set("queue_reports", num_left)
        self.store_works()

    def clock_jumped(self, is_wrong: bool) -> None:
        """Note whether the clock can be trusted."""
        self.set("clock_believed", int(not is_wrong))
        self.look("clock", _JUMPED * is_wrong, failed="clock_jumped", works="clock_back")

    def closed(self, number: int) -> None:
        """Note that the members of a batch are fixed; logged once, however often it is tried."""
        if number != self._last_closed:
            self.say("batch_closed", batch=number)
        self._last_closed = number

    def released(self, state: BatchState) -> None:
        """Note the new state of a batch."""
        self._next_count = 0.0
        if state.state == "sealed":
            self.say("batch_sealed", batch=state.number, reports=state.size or 0)
        elif state.state in ("short", "dropped"):
            self.say(f"batch_{state.state}", batch=state.number)

    def tick(self, now: float) -> None:
        """Destroy keys that are not needed any more, and update the metrics."""
        shuffler = self._shuffler
        if self._keys is not None:
            for epoch in destroy_finished(shuffler, self._keys):
                self.say("key_destroyed", epoch=epoch)
        if "store" in self.problems:  # no upload tests it while clients wait for readiness
            shuffler.try_store()
            self.store_works()
        # Each process stores its refusals; only one of those that share the store publishes totals.
        counts = shuffler.counts()
        self.set_all("reports_total", counts if shuffler.leads() else {})
        if time.monotonic() >= self._next_count:
            begun = time.monotonic()
            self.set("waiting_reports", shuffler.num_unreleased())
            took = time.monotonic() - begun
            self._next_count = time.monotonic() + took / _COUNTING_SHARE
        states, due = shuffler.states(), shuffler.oldest_sealed()
        for state in _STATES:
            self.set("batches", states.get(state, 0), state)
        self.set("short_epochs", shuffler.num_short_epochs())
        self.set("sealed_age_seconds", 0.0 if due is None else max(0.0, now - shuffler.end_of(due)))
        self._look_at_keys(now)

    def _look_at_keys(self, now: float) -> None:
        """Publish the age and life of keys, and whether the present epoch has one."""
        task, epochs = self._shuffler.task, self._shuffler.epochs_with_keys
        starts: list[float] = [task.start + epoch * task.epoch_seconds for epoch in epochs]
        left = starts[-1] + task.epoch_seconds - now if starts else 0.0
        self.set("oldest_key_age_seconds", max(0.0, now - starts[0]) if starts else 0.0)
        self.set("task_left_seconds", max(0.0, task.end - now))
        self.set("keys_left_seconds", max(0.0, left))
        present = task.epoch_at(now)
        has_key = present is None or present in epochs
        self.set("key_present", int(has_key))
        self.look("keys", "" if has_key else f"there is no key for epoch {present}: rotate keys")


# Seconds since 1970; None while the clock cannot be trusted.
Now = Callable[[], float | None]

_Waiting = tuple[list[Report], asyncio.Future[list[Answer]]]


class Intake:
    """Stores arriving reports, many uploads in one transaction."""

    def __init__(self, shuffler: Shuffler, now: Now, watch: ShufflerWatch) -> None:
        self._shuffler, self._now, self._watch = shuffler, now, watch
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._num_waiting = 0
        size = messages.report_size(*shuffler.task.sizes)
        self._most = min(MOST_WAITING, _MOST_WAITING_BYTES // size)

    async def take(self, reports: list[Report]) -> list[Answer]:
        """Return the answer to each report of an upload, once it is on disk."""
        if self._num_waiting + len(reports) > self._most:
            raise HTTPException(503, "too many reports wait to be stored: try again")
        for epoch in {report.epoch for report in reports}:
            if self._shuffler.is_full(epoch):
                what = f"epoch {epoch} has all the reports that this shuffler takes in: its "
                what += "operator may raise max_epoch_reports"
                raise HTTPException(429, what, {"retry-after": str(_FULL_SECONDS)})
        stored: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((reports, stored))
        self._num_waiting += len(reports)
        return await stored

    async def run(self) -> None:
        """Store waiting uploads, until cancelled."""
        while True:
            some = [await self._waiting.get()]
            reports = [*some[0][0]]
            while len(reports) < _ENOUGH_AT_ONCE and not self._waiting.empty():
                some.append(self._waiting.get_nowait())
                reports += some[-1][0]
            self._num_waiting -= len(reports)
            self._store(some, reports)
            await asyncio.sleep(0)  # lets other tasks run

    def _believed(self) -> float:
        """Return the time; raise while the clock is wrong, so that clients send again."""
        if (now := self._now()) is None:
            raise HTTPException(503, "the shuffler's clock is wrong: try again later")
        return now

    def _store(self, some: Sequence[_Waiting], reports: Sequence[Report]) -> None:
        """Store uploads in one transaction."""
        begun = time.monotonic()
        try:
            answers = iter(self._shuffler.take(reports, self._believed()))
        except (HTTPException, ShuffledpError) as error:
            for _, stored in some:
                if not stored.done():
                    stored.set_exception(error)
            return
        self._watch.stored(time.monotonic() - begun, self._num_waiting)
        for each, stored in some:
            found = list(islice(answers, len(each)))
            if not stored.done():
                stored.set_result(found)


def shuffler_app(
    shuffler: Shuffler,
    *,
    lists: Mapping[str, bytes],
    analyzer_key: bytes,
    watch: ShufflerWatch,
    now: Now = time.time,
    tick_seconds: float = _TICK_SECONDS,
    work: Sequence[Callable[[], Awaitable[None]]] = (),
) -> Starlette:
    """Return the shuffler's application, with its clock and the lists of keys that it serves."""
    task = shuffler.task
    intake = Intake(shuffler, now, watch)
    most = messages.most_reports(*task.sizes) * messages.report_size(*task.sizes)

    async def reports(request: Request) -> Response:
        body = await http.body_of(request, most)
        return http.data_of(bytes(await intake.take(messages.decode_upload(body, task))))

    async def batches(request: Request) -> Response:
        http.require_signed(request, task, analyzer_key)
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > 10:  # as in paths: no longer number is one
            raise HTTPException(400, f"after = {after!r} is not a number of a batch")
        return JSONResponse({"sealed": shuffler.sealed_after(int(after))})

    async def fetch(request: Request) -> Response:
        http.require_signed(request, task, analyzer_key)
        state = shuffler.require_sealed(request.path_params["number"])
        return http.data_of(await asyncio.to_thread(shuffler.read, state))

    async def forget(request: Request) -> Response:
        http.require_signed(request, task, analyzer_key)
        shuffler.forget(number := request.path_params["number"])
        await _delete_fetched(shuffler)
        watch.say("batch_fetched", batch=number)
        return Response(status_code=204)

    return http.application(
        {
            ("POST", "/reports"): reports,
            ("GET", ""): http.listed({"": task.encode()}, ""),
            ("GET", "/law"): http.listed({"law": task.asked.integers}, "law"),
            ("GET", "/keys"): http.listed(lists, "keys"),
            ("GET", "/analyzer_keys"): http.listed(lists, "analyzer_keys"),
            ("GET", "/batches"): batches,
            ("GET", "/batches/{number:number}"): fetch,
            ("DELETE", "/batches/{number:number}"): forget,
        },
        [
            intake.run,
            watch.live,
            lambda: _release_batches(shuffler, watch, now, tick_seconds),
            lambda: _prepare_epochs(shuffler, now, tick_seconds),
            *work,
        ],
        base=task.path,
        watch=watch,
    )


async def _release_batches(
    shuffler: Shuffler, watch: ShufflerWatch, now: Now, tick_seconds: float
) -> None:
    """Release batches as epochs end; uploads are taken in while reports are opened."""
    opened: dict[int, tuple[Held, list[list[bytes | None]]]] = {}  # kept if writing fails
    while True:
        seen = now()
        watch.clock_jumped(seen is None)
        try:
            for state in shuffler.closed(seen) if seen is not None else ():
                watch.closed(state.number)
                if state.number not in opened:
                    held, number, pages = shuffler.to_open(state)
                    with workers(number) as executor:
                        opened = {state.number: (held, await opened_in(executor, pages))}
                sealed = await asyncio.to_thread(shuffler.seal_dummies, *opened[state.number])
                found = (*opened[state.number], shuffler.keep_dummies(state, sealed))
                written = await asyncio.to_thread(shuffler.write, state, *found)
                if written.refusal:
                    watch.say("budget_refused", batch=state.number, reason=written.refusal)
                watch.released(shuffler.settle(state, written))
                opened = {}
            if seen is not None:
                watch.tick(seen)
            await _delete_fetched(shuffler)
        except ShuffledpError as error:  # a full disk, no ledger: each step can be done again
            watch.look("batches", str(error), failed="store_failed")
        else:
            watch.look("batches", "", works="store_works")
        await asyncio.sleep(tick_seconds)


async def _delete_fetched(shuffler: Shuffler) -> None:
    """Delete the files of fetched batches; uploads are taken in even if that takes minutes."""
    for number in shuffler.to_delete():
        await asyncio.to_thread(shuffler.delete, number)
        shuffler.deleted(number)


async def _prepare_epochs(shuffler: Shuffler, now: Now, tick_seconds: float) -> None:
    """Compute the admitted ids before an epoch begins; uploads are taken in meanwhile."""
    while True:
        if (seen := now()) is not None:
            await asyncio.to_thread(shuffler.prepare, seen)
        await asyncio.sleep(tick_seconds)
