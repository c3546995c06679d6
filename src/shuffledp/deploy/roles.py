"""What runs: shuffler and analyzer, a fleet of simulated devices, and who collects results."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import DTypeLike

from shuffledp.collection.arrangements import UNIFORM, Stage
from shuffledp.collection.output import results_folder, write_results
from shuffledp.collection.plan import plan
from shuffledp.collection.results import About, Guarantee, Result
from shuffledp.collection.run import estimate
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, OutputError, ShuffledpError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress
from shuffledp.deploy.admission import report_id_of
from shuffledp.deploy.analyzer import Analyzer, Opened
from shuffledp.deploy.key_files import keys_of
from shuffledp.deploy.messages import MOST_REPORTS, REPORT_ID_BYTES, Answer, Report
from shuffledp.deploy.remote import Server, fetch_keys
from shuffledp.deploy.service import (
    analyzer_app,
    batches_in,
    serve,
    shuffler_app,
)
from shuffledp.deploy.settings import (
    AnalyzerSettings,
    ShufflerSettings,
    signing_key,
)
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.task import Task
from shuffledp.deploy.watch import AnalyzerWatch, ShufflerWatch, Watch

# Of an analyzer, which asks again anyway, and is to end soon when it is told to.
_POLL_PATIENCE_SECONDS = 1.0

#: What a result is made of.
FILES = ("estimates.csv", "privacy.json", "report.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A uniform shuffle done by a shuffler elsewhere, whose guarantee the analyzer has stated."""

    stated: Guarantee
    name: ClassVar[str] = "uniform"
    remedy: ClassVar[str] = ""

    def guarantee(
        self,
        profile: LocalProfile,  # noqa: ARG002  # the protocol's, as the next ones
        num_users: int,  # noqa: ARG002
        *,
        delta: float,  # noqa: ARG002
        with_lower: bool = True,  # noqa: ARG002
    ) -> Guarantee:
        """Return the guarantee of the batch, which counts honest reports only."""
        return self.stated

    def stage(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...],
        entropy: Entropy,
        directory: str | PathLike[str] | None,
    ) -> Stage:
        """Return what shuffles reports."""
        return UNIFORM.stage(dtype=dtype, row_shape=row_shape, entropy=entropy, directory=directory)


def result_of(task: Task, opened: Opened) -> Result:
    """Return estimates and guarantee of a batch, as of any other collection."""
    asked, delta = task.asked, float(task.delta)
    planned = plan(
        asked.question,
        num_users=opened.reports.num_reports,
        epsilon0=asked.epsilon0,
        delta=delta,
        randomizer=asked.randomizer.name,
        shuffling=Deployed(stated=opened.guarantee),
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
        "num_released": opened.num_released,
        "num_repeated": opened.num_repeated,
        "num_unopened": opened.num_unopened,
        "num_invalid": opened.num_invalid,
        "num_rare_key": opened.num_rare_key,
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


# ---------------------------------------------------------------- servers
def open_shuffler(settings: ShufflerSettings) -> Shuffler:
    """Return the shuffler of a file of settings."""
    task = settings.read_task()
    return Shuffler(
        task,
        settings.store,
        signing_key=signing_key(settings.signing_key),
        sealing_keys=keys_of(settings, task),
        grace_seconds=settings.grace_seconds,
        admission=settings.admission(task),
        ledger=settings.ledger,
        database=settings.database,
        batches=settings.batches,
    )


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


def serve_shuffler(settings: ShufflerSettings, on_ready: Callable[[str], None]) -> None:
    """Serve one task's shuffler until the process is told to end."""
    with open_shuffler(settings) as shuffler:
        watch = Watch.of("shuffler")
        app = shuffler_app(
            shuffler,
            public_keys=settings.public_keys.read_bytes(),
            analyzer_keys=settings.analyzer_keys.read_bytes(),
            analyzer_key=bytes.fromhex(settings.analyzer),
            watch=ShufflerWatch(watch, shuffler, settings.sealing_keys),
        )
        serve(app, watch, settings, on_ready)


def serve_analyzer(settings: AnalyzerSettings, on_ready: Callable[[str], None]) -> None:
    """Serve one task's analyzer until the process is told to end."""
    watch = AnalyzerWatch(Watch.of("analyzer"), settings.ledger)
    refusals: dict[int, str] = {}
    results = settings.store / "results"
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

        async def take_batches() -> None:
            sealed = await asyncio.to_thread(shuffler.sealed)
            watch.shuffler_answered()
            for number in sealed:
                if number in refusals:
                    continue
                data = await asyncio.to_thread(shuffler.batch, number)
                folder = results / str(number)
                try:
                    num_reports = await asyncio.to_thread(publish, analyzer, data, folder)
                except OutputError as error:  # a full disk: the batch is asked for again
                    watch.watch.store_failed(error)
                    return
                except ShuffledpError as error:
                    refusals[number] = str(error)
                    watch.refused(number, error)
                    continue
                watch.published(number, num_reports)
                await asyncio.to_thread(shuffler.forget, number)

        async def work() -> None:
            while True:
                try:
                    await take_batches()
                except ShuffledpError as error:  # the shuffler is away: it will come back
                    watch.shuffler_away(str(error))
                watch.tick(len(batches_in(results)), len(refusals))
                await asyncio.sleep(settings.poll_seconds)

        app = analyzer_app(
            task.task_id,
            public_keys=settings.public_keys.read_bytes(),
            operator_key=task.operator_key,
            results=results,
            refusals=refusals,
            work=work,
            watch=watch.watch,
        )
        serve(app, watch.watch, settings, on_ready)


def publish(analyzer: Analyzer, data: bytes, folder: Path) -> int:
    """Open a batch, write what it says, and return how many reports it counts.

    Done again it spends nothing, and leaves what was said as it is.
    """
    opened, task = analyzer.take(data), analyzer.task
    if not all((folder / name).exists() for name in FILES):
        with results_folder(folder, overwrite=True) as partial:
            write_results(result_of(task, opened), partial, parameters=batch_facts(task, opened))
    return opened.reports.num_reports


# ---------------------------------------------------------------- who asks them
def send_values(
    task: Task,
    values: Iterable[Any],
    *,
    num_values: int,
    codes: Sequence[bytes] | None = None,
    now: Callable[[], float] = time.time,
    on_progress: Progress | None = None,
) -> dict[str, int]:
    """Send the answers of simulated devices, each randomized once; return the counts of answers.

    ``values`` are blocks as a checked column yields them, ``codes`` one each if there are any. What
    is on its way when this is killed may be sent twice by another run: real devices keep their
    report, see `client.Client`.
    """
    asked = task.asked
    entropy = Entropy.from_operating_system()
    counts = dict.fromkeys((each.name.lower() for each in Answer), 0)
    with (
        Server(task, task.shuffler_url, "shuffler") as shuffler,
        Server(task, task.analyzer_url, "analyzer") as analyzer,
    ):
        shuffler_keys, analyzer_keys = fetch_keys(shuffler, analyzer, now())
        done = 0
        for reports in _encoded(asked, values, entropy):
            for start in range(0, len(reports), MOST_REPORTS):
                some = reports[start : start + MOST_REPORTS]
                epoch = task.epoch_at(now())
                if epoch is None:
                    raise DataError("the task takes no reports at this time")
                key = shuffler_keys.key_of_epoch(epoch)
                if codes is None:
                    ids = entropy.words(len(some) * REPORT_ID_BYTES // 8).tobytes()
                else:
                    own = codes[done : done + len(some)]
                    ids = b"".join(report_id_of(code, task.task_id, epoch) for code in own)
                body = b"".join(
                    Report.sealed_for(
                        task.task_id,
                        report,
                        report_id=ids[at * REPORT_ID_BYTES : (at + 1) * REPORT_ID_BYTES],
                        epoch=epoch,
                        shuffler=key,
                        analyzer=analyzer_keys.keys[0],
                    ).encode()
                    for at, report in enumerate(some)
                )
                for answer in shuffler.upload(body):
                    counts[answer.name.lower()] += 1
                done += len(some)
                if on_progress is not None:
                    on_progress("sending", done, num_values)
    return counts


def _encoded(asked: Any, blocks: Iterable[Any], entropy: Entropy) -> Iterator[list[bytes]]:
    """Yield randomized reports as bytes."""
    for values in blocks:
        yield asked.codec.encode(asked.randomizer.randomize(values, entropy))


def collect_results(
    task: Task,
    operator_key: Ed25519PrivateKey,
    folder: Path,
    *,
    batch: int | None = None,
    wait_seconds: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Fetch the newest result, or that of one batch, into a folder; return the batch's number.

    Waits until there is one, at most ``wait_seconds``.
    """
    waited, step = 0.0, min(1.0, task.epoch_seconds / 10)
    with Server(task, task.analyzer_url, "analyzer", operator_key) as analyzer:
        while True:
            found = analyzer.results()
            numbers = found["batches"]
            if (batch is None and numbers) or batch in numbers:
                break
            if str(batch) in found["refused"] or (batch is None and found["refused"]):
                reasons = "; ".join(found["refused"].values())
                raise DataError(f"the analyzer refuses what the shuffler released: {reasons}")
            if wait_seconds is not None and waited >= wait_seconds:
                raise DataError(
                    f"there is no result yet, {waited:g} seconds on: a batch is released when its "
                    "epoch and the time of grace are over, if it has enough reports"
                )
            sleep(step)
            waited += step
        number = int(numbers[-1] if batch is None else batch)
        for name in FILES:
            (folder / name).write_bytes(analyzer.file(number, name))
    return number
