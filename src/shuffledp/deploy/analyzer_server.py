"""The analyzer as a service: polls the shuffler, publishes results, serves its key list."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger
from shuffledp.collection.counting import Engine
from shuffledp.collection.output import PRIVACY_FILE, results_folder, write_results
from shuffledp.core.errors import BudgetError, OutputError, ShuffledpError
from shuffledp.deploy.analyzer import Analyzer, batch_facts, result_of
from shuffledp.deploy.remote import FILES, Server, json_of, value_at
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers.batches import note_of
from shuffledp.deploy.servers.settings import AnalyzerSettings, keys_of, read_task, signing_key
from shuffledp.deploy.servers.watch import Watch, clock_of
from shuffledp.deploy.task import Task

# Short: the analyzer polls, and must stop promptly.
_POLL_PATIENCE_SECONDS: Final = 1.0


def open_analyzer(settings: AnalyzerSettings, engine: Engine | None = None) -> Analyzer:
    """Return the analyzer of a file of settings; the engine opens its seals."""
    task = read_task(settings.task)
    return Analyzer(
        task,
        settings.store,
        shuffler_key=bytes.fromhex(settings.shuffler),
        opening_keys=keys_of(settings, task),
        ledger=settings.ledger,
        database=settings.database,
        engine=engine,
    )


def verify(settings: AnalyzerSettings) -> tuple[str, list[str]]:
    """Return the content of a store put back from a backup, in one line, and its faults.

    Each taken batch must have its result and its entry in the ledger, and vice versa. A store that
    does not open, or is of another task, raises; only an older version is changed.
    """
    settings.require_store()
    with open_analyzer(settings) as analyzer:
        task, taken = analyzer.task, analyzer.taken()
    wrong, results = [], settings.store / "results"
    for number, root in taken.items():
        if fault := _result_fault(results / str(number), root):
            again = "if the shuffler still has it, it is taken again for nothing"
            wrong.append(f"batch {number}: {fault}; {again}")
    wrong += [
        f"batch {number}: it has a result and the store does not know it: the store is older, and "
        "repeated reports of that batch would be counted again"
        for number in batches_in(results)
        if number not in taken
    ]
    if settings.ledger is not None:
        try:
            wrong += _ledger_faults(open_ledger(settings.ledger), task, taken)
        except ShuffledpError as error:
            wrong.append(str(error))
    return f"batches that were taken: {len(taken)}", wrong


def _result_fault(folder: Path, root: bytes) -> str:
    """Return the faults of a result; none if it is complete."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        return f"its result lacks {', '.join(missing)}"
    record = json_of((folder / PRIVACY_FILE).read_bytes())
    if value_at(record, "parameters", "batch_sha256") != root.hex():
        return "its result is of other records than the store says"
    return ""


def _ledger_faults(ledger: Ledger, task: Task, taken: dict[int, bytes]) -> Iterator[str]:
    """Yield the differences between ledger and store."""
    spent, known = {entry.key for entry in ledger.entries}, {root.hex() for root in taken.values()}
    for number, root in taken.items():
        if root.hex() not in spent:
            yield f"batch {number}: the ledger has no entry for it; put back a newer ledger"
    for entry in ledger.entries:
        if entry.note.startswith(note_of(task, 0)[:-1]) and entry.key not in known:
            yield (
                f"{entry.note}: the ledger has spent it and the store does not know it; if the "
                "shuffler has it no more, the store is too old, and its reports could be counted "
                "again"
            )


def publish(analyzer: Analyzer, data: bytes, folder: Path) -> int:
    """Open a batch, write its result, and return the number of counted reports.

    For a batch that is kept return 0, and write nothing. A repeated call spends nothing, and leaves
    the published result as it is.
    """
    opened, task = analyzer.take(data), analyzer.task
    if opened is None:
        return 0
    if not all((folder / name).exists() for name in FILES):
        with results_folder(folder, overwrite=True) as partial:
            write_results(result_of(task, opened), partial, parameters=batch_facts(task, opened))
    return opened.num_users


class AnalyzerWatch(Watch):
    """Watch of an analyzer, with the reason of refusal of each refused batch."""

    def __init__(self, ledger: Path | None = None) -> None:
        super().__init__("analyzer")
        self._ledger = ledger
        self.refusals: dict[int, str] = {}
        self.kept: set[int] = set()
        self.look("start", "the shuffler has not been asked yet")

    def shuffler_asked(self, problem: str = "") -> None:
        """Note that the shuffler answers, or the problem."""
        self.set("shuffler_answers", int(not problem))
        if not problem:
            self.set("shuffler_answered_timestamp_seconds", time.time())
        self.look("start", "")
        self.look("shuffler", problem, failed="shuffler_away", works="shuffler_back")

    def published(self, number: int, num_reports: int) -> None:
        """Note that a batch has its result, or is kept and has none."""
        if not num_reports:
            self.kept.add(number)
            self.say("batch_kept", batch=number)
            return
        self.set("newest_batch_reports", num_reports)
        self.say("published", batch=number, reports=num_reports)
        self.store_works()

    def refused(self, number: int, error: ShuffledpError) -> None:
        """Note that a batch is refused, and gets no result."""
        self.refusals[number] = str(error)
        event = "budget_refused" if isinstance(error, BudgetError) else "batch_refused"
        self.say(event, batch=number, reason=str(error))

    def tick(self, num_published: int) -> None:
        """Update the metrics."""
        self.set("batches", num_published, "published")
        self.set("batches", len(self.refusals), "refused")
        if self._ledger is not None:
            try:
                ledger = open_ledger(self._ledger)
            except ShuffledpError as error:
                self.look("ledger", str(error))
                return
            self.look("ledger", "")
            self.set("budget_epsilon", ledger.epsilon)
            self.set("budget_left_epsilon", ledger.remaining)


@contextmanager
def analyzer_service(
    read: Callable[[], AnalyzerSettings], *, accept_clock: bool = False
) -> Iterator[http.Service]:
    """Hold one task's analyzer, ready to be served.

    With ``accept_clock`` the clock is trusted, however wrong it seems; its time is stored, since
    the destruction of keys depends on it.
    """
    settings = read()
    watch, results = AnalyzerWatch(settings.ledger), settings.store / "results"
    results.mkdir(exist_ok=True)
    with (
        open_analyzer(settings) as analyzer,
        Server(
            task := analyzer.task,
            "shuffler",
            signing_key(settings.identity_key),
            patience_seconds=_POLL_PATIENCE_SECONDS,
        ) as shuffler,
    ):
        lists = settings.lists()
        clock = clock_of(task, analyzer.last_time(), is_accepted=accept_clock)
        watch.kept.update(analyzer.kept())

        def reload() -> Callable[[], None]:
            new = settings.read_again(read)
            keys, known = keys_of(new, task), new.lists()

            def use() -> None:
                analyzer.replace_keys(keys)
                lists.update(known)
                watch.refusals.clear()  # a budget that was raised may cover these batches now

            return use

        async def work() -> None:
            while True:
                try:
                    analyzer.note_time(clock())
                    await _take(analyzer, shuffler, results, watch)
                    watch.store_works()  # what had failed, a time or a batch, was stored now
                except OutputError as error:
                    watch.store_failed(error)
                except ShuffledpError as error:  # the shuffler is away: it will come back
                    watch.shuffler_asked(str(error))
                watch.tick(len(batches_in(results)))
                await asyncio.sleep(settings.poll_seconds)

        async def index(request: Request) -> Response:
            http.require_signed(request, task, task.operator_key)
            found = {"batches": batches_in(results), "kept": sorted(watch.kept)}
            return JSONResponse({**found, "refused": watch.refusals})

        async def file(request: Request) -> Response:
            http.require_signed(request, task, task.operator_key)
            number, name = request.path_params["number"], request.path_params["name"]
            path = results / str(number) / name
            if number not in batches_in(results) or name not in FILES or not path.is_file():
                raise HTTPException(404, f"there is no file {name!r} of batch {number}")
            return http.data_of(path.read_bytes())

        endpoints = {
            ("GET", "/keys"): http.listed(lists, "keys"),
            ("GET", "/results"): index,
            ("GET", "/results/{number:number}/{name}"): file,
        }
        works = [work, watch.live, lambda: http.on_hangup(reload, watch)]
        app = http.application(endpoints, works, base=task.path, watch=watch)
        try:
            yield http.Service(app=app, task=task, watch=watch, settings=settings)
        finally:  # the destruction of a key depends on the time of the last run
            analyzer.note_time(clock())


async def _take(analyzer: Analyzer, shuffler: Server, results: Path, watch: AnalyzerWatch) -> None:
    """Fetch and publish the shuffler's batches, and let it forget them."""
    sealed = await asyncio.to_thread(shuffler.sealed)
    watch.shuffler_asked()
    failed: ShuffledpError | None = None
    for number in sealed:
        if number in watch.refusals:
            continue
        try:
            data = await asyncio.to_thread(shuffler.batch, number)
        except ShuffledpError as error:  # of this batch only, perhaps: later ones need not wait
            failed = error
            continue
        try:
            folder = results / str(number)
            num_reports = await asyncio.to_thread(publish, analyzer, data, folder)
        except OutputError:  # a full disk: the batch is asked for again
            raise
        except ShuffledpError as error:
            watch.refused(number, error)
            continue
        watch.published(number, num_reports)
        await asyncio.to_thread(shuffler.forget, number)
    if failed is not None:
        raise failed


def batches_in(results: Path) -> list[int]:
    """Return the numbers of batches with results."""
    found = (path for path in results.glob("[0-9]*") if path.is_dir())
    return sorted(int(path.name) for path in found if path.name.isdecimal())
