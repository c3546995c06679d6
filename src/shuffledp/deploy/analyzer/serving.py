"""The analyzer at work: fetches batches, publishes what they say, and serves that to the operator.

Results lie in folders named by their batch's number.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shuffledp.accounting.ledger_files import open_ledger
from shuffledp.collection.arrangements import UNIFORM
from shuffledp.collection.output import results_folder, write_results
from shuffledp.collection.plan import plan
from shuffledp.collection.results import About, Guarantee, Result
from shuffledp.collection.run import estimate
from shuffledp.core.errors import BudgetError, OutputError, ShuffledpError
from shuffledp.deploy.analyzer.analyzer import Analyzer, Opened
from shuffledp.deploy.remote import FILES, Server
from shuffledp.deploy.servers.http_server import data_of
from shuffledp.deploy.servers.key_files import keys_of
from shuffledp.deploy.servers.serving import constant, require_signed, serve, task_app
from shuffledp.deploy.servers.settings import AnalyzerSettings, signing_key
from shuffledp.deploy.servers.watch import Watch
from shuffledp.deploy.task import Task

# Of an analyzer, which asks again anyway, and is to end soon when it is told to.
_POLL_PATIENCE_SECONDS = 1.0


class Deployed:
    """A uniform shuffle done by a shuffler elsewhere, whose guarantee the analyzer has stated."""

    name, remedy, stage = "uniform", "", UNIFORM.stage

    def __init__(self, stated: Guarantee) -> None:
        self._stated = stated

    def guarantee(self, *_: object, **__: object) -> Guarantee:
        """Return the guarantee of the batch, which counts honest reports only."""
        return self._stated


def result_of(task: Task, opened: Opened) -> Result:
    """Return estimates and guarantee of a batch, as of any other collection."""
    asked, delta = task.asked, float(task.delta)
    planned = plan(
        asked.question,
        num_users=opened.reports.num_reports,
        epsilon0=asked.epsilon0,
        delta=delta,
        randomizer=asked.randomizer.name,
        shuffling=Deployed(opened.guarantee),
    )
    found = estimate(opened.reports, replace(planned, target_epsilon=float(task.epsilon)))
    today = datetime.now(UTC).date().isoformat()
    about = About(title=task.info, question=asked.text, date=today)
    return replace(found, about=about)


def batch_facts(task: Task, opened: Opened) -> dict[str, object]:
    """Return what a result says of where it comes from, as JSON values."""
    ledger = opened.ledger
    return {
        "task_id": task.task_id.hex(),
        "task": task.info,
        "batch": opened.number,
        "batch_sha256": opened.root.hex(),
        **opened.counts,
        "num_honest": opened.guarantee.num_users,
        "honest_fraction": task.honest_ppm / 1_000_000,
        "budget": None
        if ledger is None
        else {
            "spent_under": opened.root.hex(),
            "epsilon": ledger.epsilon,
            "delta": ledger.delta,
            "spent": ledger.spent.upper,
            "left": ledger.remaining,
        },
    }


def open_analyzer(settings: AnalyzerSettings) -> Analyzer:
    """Return the analyzer of a file of settings."""
    task = settings.read_task()
    return Analyzer(
        task,
        settings.store,
        shuffler_key=bytes.fromhex(settings.shuffler),
        opening_keys=keys_of(settings, task),
        ledger=settings.ledger,
        database=settings.database,
    )


def publish(analyzer: Analyzer, data: bytes, folder: Path) -> int:
    """Open a batch, write what it says, and return how many reports it counts.

    Done again it spends nothing, and leaves what was said as it is.
    """
    opened, task = analyzer.take(data), analyzer.task
    if not all((folder / name).exists() for name in FILES):
        with results_folder(folder, overwrite=True) as partial:
            write_results(result_of(task, opened), partial, parameters=batch_facts(task, opened))
    return opened.reports.num_reports


class AnalyzerWatch(Watch):
    """Follows an analyzer, and keeps why it refuses which batches."""

    def __init__(self, ledger: Path | None = None, now: Callable[[], float] = time.time) -> None:
        super().__init__("analyzer")
        self._ledger, self._now, self._is_away = ledger, now, False
        self.refusals: dict[int, str] = {}
        self.problems["shuffler"] = "the shuffler has not been asked yet"

    def shuffler_answered(self) -> None:
        """Note that the shuffler is there."""
        self.set("shuffler_answers", 1)
        self.set("shuffler_answered_timestamp_seconds", self._now())
        self.problems.pop("shuffler", None)
        if self._is_away:
            self.say("shuffler_back")
        self._is_away = False

    def shuffler_away(self, reason: str) -> None:
        """Note that the shuffler does not answer; said once until it does."""
        self.set("shuffler_answers", 0)
        self.problems["shuffler"] = reason
        if not self._is_away:
            self.say("shuffler_away", reason=reason)
        self._is_away = True

    def published(self, number: int, num_reports: int) -> None:
        """Note that a batch has its result."""
        self.set("newest_batch_reports", num_reports)
        self.say("published", batch=number, reports=num_reports)
        self.store_works()

    def refused(self, number: int, error: ShuffledpError) -> None:
        """Note that nothing is said of a batch."""
        self.refusals[number] = str(error)
        event = "budget_refused" if isinstance(error, BudgetError) else "batch_refused"
        self.say(event, batch=number, reason=str(error))

    def tick(self, num_published: int) -> None:
        """Bring the numbers up to date."""
        self.set("batches", num_published, "published")
        self.set("batches", len(self.refusals), "refused")
        if self._ledger is not None:
            try:
                ledger = open_ledger(self._ledger)
            except ShuffledpError as error:
                self.problems["ledger"] = str(error)
                return
            self.problems.pop("ledger", None)
            self.set("budget_epsilon", ledger.epsilon)
            self.set("budget_left_epsilon", ledger.remaining)


def serve_analyzer(settings: AnalyzerSettings, on_ready: Callable[[str], None]) -> None:
    """Serve one task's analyzer until the process is told to end."""
    watch, results = AnalyzerWatch(settings.ledger), settings.store / "results"
    results.mkdir(exist_ok=True)
    with (
        open_analyzer(settings) as analyzer,
        Server(
            task := analyzer.task,
            task.shuffler_url,
            "shuffler",
            signing_key(settings.identity_key),
            patience_seconds=_POLL_PATIENCE_SECONDS,
        ) as shuffler,
    ):

        async def work() -> None:
            while True:
                try:
                    await _take_batches(analyzer, shuffler, results, watch)
                except ShuffledpError as error:  # the shuffler is away: it will come back
                    watch.shuffler_away(str(error))
                watch.tick(len(_batches_in(results)))
                await asyncio.sleep(settings.poll_seconds)

        app = _analyzer_app(task, settings.public_keys.read_bytes(), results, work, watch)
        serve(app, task, watch, settings, on_ready)


async def _take_batches(
    analyzer: Analyzer, shuffler: Server, results: Path, watch: AnalyzerWatch
) -> None:
    """Fetch and publish what the shuffler has, and let it forget that."""
    sealed = await asyncio.to_thread(shuffler.sealed)
    watch.shuffler_answered()
    for number in sealed:
        if number in watch.refusals:
            continue
        data = await asyncio.to_thread(shuffler.batch, number)
        try:
            folder = results / str(number)
            num_reports = await asyncio.to_thread(publish, analyzer, data, folder)
        except OutputError as error:  # a full disk: the batch is asked for again
            watch.store_failed(error)
            return
        except ShuffledpError as error:
            watch.refused(number, error)
            continue
        watch.published(number, num_reports)
        await asyncio.to_thread(shuffler.forget, number)


def _analyzer_app(
    task: Task,
    public_keys: bytes,
    results: Path,
    work: Callable[[], Awaitable[None]],
    watch: AnalyzerWatch,
) -> Starlette:
    """Return the analyzer's application."""

    async def index(request: Request) -> Response:
        require_signed(request, task, task.operator_key)
        said = {str(number): why for number, why in watch.refusals.items()}
        return JSONResponse({"batches": _batches_in(results), "refused": said})

    async def file(request: Request) -> Response:
        require_signed(request, task, task.operator_key)
        number, name = request.path_params["number"], request.path_params["name"]
        path = results / str(number) / name
        if number not in _batches_in(results) or name not in FILES or not path.is_file():
            raise HTTPException(404, f"there is no file {name!r} of batch {number}")
        return data_of(path.read_bytes())

    return task_app(
        task,
        {
            ("GET", "/keys"): constant(public_keys),
            ("GET", "/results"): index,
            ("GET", "/results/{number:number}/{name}"): file,
        },
        [work],
        watch,
    )


def _batches_in(results: Path) -> list[int]:
    """Return the numbers of batches with results."""
    return sorted(int(path.name) for path in results.glob("[0-9]*") if path.is_dir())
