"""Apache Spark: reports are counted, randomized and shuffled where the data are stored.

A session is found, or started with a Java that is new enough. Spark may run a task again, so that
tasks must not draw random numbers: `spark_blocks` defines how a row is randomized once. Partial
counts of tasks add up.
"""

import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

import numpy as np

from shuffledp.collection import dummies as added
from shuffledp.collection.counting import added_up, in_batches
from shuffledp.collection.plan import Plan, require_plan
from shuffledp.collection.report_files import (
    COLUMN,
    METADATA_KEY,
    answers_of,
    as_encoded,
    facts_of,
    from_frame,
)
from shuffledp.collection.result import Result
from shuffledp.collection.run import Collected, drawn_by_users
from shuffledp.collection.run import estimate as estimated
from shuffledp.collection.source.tables import Source, is_text_table, require_users
from shuffledp.core import errors
from shuffledp.core.errors import DataError, MissingPackageError, ShuffledpError, needing
from shuffledp.core.files import require_file
from shuffledp.core.lazy import pl
from shuffledp.core.reports import Reports
from shuffledp.engines.spark_blocks import prepared, require_columns, session_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Workers", "estimate", "randomize", "run", "run_files", "session", "shuffle"]

# Number of equal reports for each row of the shuffle, and number of rows of an output file.
_EQUAL_ROWS: Final = 1 << 20
_ROWS_A_FILE: Final = 1 << 22

# Number of rows that are counted at a time; Spark passes on fewer.
_ROWS_COUNTED: Final = 1 << 20

# Reports of at most this many bytes have at most 65,536 different values.
_FEW_BYTES: Final = 2

# The oldest Java that runs pyspark 4.
_JAVA: Final = 17

# Number of items of a task: a task of Spark costs a fifth of a second, and so do several items.
_ITEMS_A_TASK: Final = 16


def session(settings: Mapping[str, str] | None = None) -> "SparkSession":
    """Return the running session of Spark, or start one with the local settings.

    Parameters
    ----------
    settings : mapping of str, optional
        Settings of Spark, such as ``spark.driver.memory``, for a session that is started; a cluster
        is named in ``PYSPARK_SUBMIT_ARGS`` or ``spark-defaults.conf``, as for any program.

    Returns
    -------
    SparkSession
        A classic session: its driver is this process.

    Raises
    ------
    MissingPackageError
        If pyspark is not installed, or Java is missing or older than 17.
    """
    with needing("pyspark", "Apache Spark", "shuffledp[spark]"):
        from pyspark.sql import SparkSession
    found = SparkSession.getActiveSession()
    if found is None:
        require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("shuffledp")
        alone = {"spark.executorEnv.POLARS_MAX_THREADS": "1"}  # for many workers
        for name, value in (alone | dict(settings or {})).items():
            builder = builder.config(name, value)
        found = builder.getOrCreate()
    return found


def require_java() -> None:
    """Raise unless Java, as Spark would start it, is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    said = ""
    if java and os.access(java, os.X_OK):
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603  # the user's own
        said = ran.stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        where = f"JAVA_HOME = {home}" if home else "PATH"
        held = f"Java {version[1]}" if version else "no Java"
        raise MissingPackageError(
            f"Apache Spark needs Java {_JAVA} or newer, and {where} has {held}: install one, such "
            "as the package openjdk-17-jre-headless, or set JAVA_HOME",
            name="java",
        )


@contextmanager
def told() -> Iterator[None]:
    """Raise an error of ours in a task, however Spark wraps it, as the same error here."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = re.findall(r"shuffledp\.core\.errors\.(\w+): (.*)", str(error))
        if not found:
            raise
        name, message = found[-1]
        raise getattr(errors, name, ShuffledpError)(message) from None


@contextmanager
def stopped(where: str) -> Iterator[None]:
    """Raise an error of Spark itself, of many lines, as one of one line."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        causes = re.findall(r"^Caused by: (.+)", str(error), re.MULTILINE)
        raise ShuffledpError(f"{where}: {(causes or str(error).splitlines()[:1])[-1]}") from error


class Workers:
    """Spark's workers as an engine for pieces of work: files of reports, or sealed pages.

    Each worker reads the files itself, by their absolute paths.

    Examples
    --------
    >>> list(Workers().map(abs, [-1, 2]))  # doctest: +SKIP
    [1, 2]
    """

    def __init__(self) -> None:
        self._context = session().sparkContext

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of the function for each item, in their order.

        Items may be written to scratch files of Spark; the values bound to the function are not.
        """
        waiting, tasks = iter(items), 2 * self._context.defaultParallelism
        while some := list(islice(waiting, _ITEMS_A_TASK * tasks)):
            with told():
                spread = self._context.parallelize(some, min(len(some), tasks))
                found = spread.map(function).collect()
            yield from found


@told()
def estimate(
    frame: "DataFrame", plan: Plan[Any], *, num_users: SupportsIndex | None = None, **options: Any
) -> Result[Any]:
    """Estimate from reports in a frame of Spark, which are counted where they are stored.

    Parameters
    ----------
    frame : DataFrame
        Frame with a column ``report``, one row a report, as ``shuffledp.collection.open_reports``
        reads it from files, or as made by `randomize`. Its column names law and origin of the
        reports only if Spark made them: of others the plan's law, and users' devices, are assumed.
        Of a union of frames Spark keeps what the first says, so estimate reports of each origin
        apart.
    plan : Plan
        Plan of the reports.
    num_users : int, optional
        Number of users' reports, if the plan has dummies.
    **options
        Other options of ``shuffledp.estimate``.

    Returns
    -------
    Result
        As for ``shuffledp.estimate``, with the guarantee for the reports that arrived.

    Raises
    ------
    DataError
        If a row holds no report of the plan's randomizer, or if the frame names another law.

    Notes
    -----
    Each task passes on the aggregate of its reports, and Spark adds them up: memory is bounded by a
    block of reports and the number of answers. Counts are whole numbers, so that the result does
    not depend on the tasks.
    """
    require_plan(plan)
    found = _counted(frame, plan)
    told = added.told_users(plan.dummies, None, num_users)
    found = added.less_dummies(found, plan.dummies, num_users=told)
    facts = frame.schema[COLUMN].metadata.get(METADATA_KEY, {})
    by = facts.get("collected_by", "devices")
    made = facts_of(plan.randomizer, answers_of(plan), by)
    if any(
        facts.get(name, made.get(name)) != made.get(name) for name in ("fingerprint", "answers")
    ):
        raise DataError(
            "the frame holds reports of another law than the plan's, or on other answers: give the "
            "plan that they were made under"
        )
    given = Collected(found, by, (drawn_by_users(plan.randomizer),), what="estimate")
    return estimated(given, plan, num_users=num_users, **options)


@told()
def randomize(
    frame: "DataFrame",
    column: str | None,
    plan: Plan[Any],
    *,
    id_column: str | None = None,
    seed: SupportsIndex | None = None,
    **reading: Any,
) -> "DataFrame":
    """Return a frame of one report for each row, the same whenever it is computed.

    Parameters
    ----------
    frame : DataFrame
        One row a user. Its rows must not change while the result is in use.
    column : str or None
        Column with the values; None if the question names its columns.
    plan : Plan
        Plan of the question and the randomizer; without dummies.
    id_column : str
        Column with a permanent id of each row, such as a primary key: whole numbers or text,
        without missing or repeated ids.
    seed : int, optional
        For a reproducible simulation, which protects nobody.
    **reading
        ``missing``, ``other``, ``clip`` and the like, as for ``shuffledp.collection.open_column``.

    Returns
    -------
    DataFrame
        A column ``report``, in an order that depends on the ids: `shuffle` it before anybody sees
        it.

    Raises
    ------
    ParameterError
        If there is no id column, or one of another type.
    DataError
        If ids are missing or repeated, or values cannot be used; before anything is randomized.

    Notes
    -----
    Each call has its own key, and so draws new reports: write one result, once. Ids are not
    released with reports. Two passes over the rows, each a shuffle of Spark by a hash of the id.
    """
    return prepared(frame, column, plan, id_column, seed, reading)[0]


@told()
def run(
    frame: "DataFrame",
    column: str | None,
    plan: Plan[Any],
    *,
    id_column: str | None = None,
    seed: SupportsIndex | None = None,
    sink: "Callable[[DataFrame], None] | None" = None,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Result[Any]:
    """Randomize each row once, and estimate from the reports, where the rows are stored.

    Parameters
    ----------
    frame, column, plan, id_column, seed
        As for `randomize`.
    sink : callable, optional
        Called with the shuffled reports as a frame, to store them.
    reading : dict, optional
        Options of ``shuffledp.collection.open_column`` for the values, such as ``missing``.
    **options
        Options of ``shuffledp.estimate``: ``confidence``, ``strict`` and others.

    Returns
    -------
    Result
        As for ``shuffledp.run``; each person counts once only if ids are unique to persons, which
        is one of its assumptions.

    Raises
    ------
    DataError
        As for `randomize`, or if the number of reports differs from the number of users.
    """
    reports, num_users, cautions = prepared(frame, column, plan, id_column, seed, reading or {})
    found = _counted(reports, plan)
    if found.num_reports != num_users:
        raise DataError(
            f"{found.num_reports:,} reports were counted, not {num_users:,}: the frame changed "
            "while it was read; store it first"
        )
    by = "table" if seed is None else "simulation"
    if sink is not None:
        sink(shuffle(reports))
    notes = (_HELD,) if seed is None else ()
    number = None if seed is None else int(seed)
    return estimated(
        Collected(found, by, (*notes, _ONE_ID, *cautions), cautions, number), plan, **options
    )


_HELD: Final = (
    "Whoever holds the true answers keeps them secret: each was randomized by a task of Apache "
    "Spark, whose machines, and the files that they keep meanwhile, are trusted with all of them."
)
_ONE_ID: Final = (
    "Each id is one person, and its row stays the same while Spark works: its report follows from "
    "the id, the row and a key of this job alone, so that a task that runs again sends the same."
)


def run_files(
    path: str | PathLike[str],
    column: str | None,
    plan: Plan[Any],
    *,
    save_to: Path | None = None,
    **how: Any,
) -> Result[Any]:
    """Run like `run` on the rows of Parquet files, and store shuffled reports in a folder."""

    def save(frame: "DataFrame") -> None:
        frame.write.parquet(Path(str(save_to)).resolve().as_uri())

    with stopped(f"Apache Spark stopped at {path}"):
        return run(_read(path), column, plan, sink=None if save_to is None else save, **how)


def _read(path: str | PathLike[str]) -> "DataFrame":
    """Return the rows of a Parquet file, or of a folder of them."""
    location = Path(path)
    reader = session().read.option("recursiveFileLookup", "true")
    if location.is_dir():
        if not any(location.rglob("*.parquet")):
            raise DataError(
                f"{path} holds no file whose name ends in .parquet: give another folder"
            )
        reader = reader.option("pathGlobFilter", "*.parquet")
    else:
        require_file(location)
        if is_text_table(location):
            raise DataError(f"cannot read {path} on Spark: convert it to Parquet, or run it here")
    return reader.parquet(location.resolve().as_uri())  # Java may run in another folder


def shuffle(frame: "DataFrame", *, num_files: SupportsIndex | None = None) -> "DataFrame":
    """Return the reports of a frame in an arrangement that depends only on their multiset.

    Parameters
    ----------
    frame : DataFrame
        Frame with a column ``report``; other columns are left out.
    num_files : int, optional
        Number of partitions; by default one for each four million reports.

    Returns
    -------
    DataFrame
        A column ``report``. The partition of a report is a hash of the report, and of its number
        among a million equal ones; partitions are sorted. So neither order, nor partitions, files
        and row groups reveal the source of a report, however often tasks run again.

    Notes
    -----
    For an adversary this is equivalent to a uniform shuffle: both reveal the multiset of reports
    and nothing more, since a uniform order is this one after an independent permutation. Equal
    reports are adjacent, so draw samples at random, not from the first rows.
    """
    from pyspark.sql import functions as F  # noqa: N812  # its usual name

    session_of(frame)
    reports = frame.select(COLUMN)
    if num_files is None:
        num_files = -(-reports.count() // _ROWS_A_FILE) or 1
    rest = F.col("count") - F.col("part") * _EQUAL_ROWS
    parts = F.sequence(F.lit(0).cast("bigint"), F.floor((F.col("count") - 1) / _EQUAL_ROWS))
    return (
        reports.groupBy(COLUMN)
        .count()
        .select(COLUMN, "count", F.explode(parts).alias("part"))
        .repartition(int(num_files), COLUMN, "part")
        .sortWithinPartitions(COLUMN, "part")
        .select(
            COLUMN,
            F.explode(F.array_repeat(F.lit(0), F.least(rest, F.lit(_EQUAL_ROWS)).cast("int"))),
        )
        .select(COLUMN)
    )


# --------------------------------------------------------------------- counting
def _counted(frame: "DataFrame", plan: Plan[Any]) -> Any:
    """Return the aggregate of the reports in a frame."""
    context = session_of(frame).sparkContext
    require_columns(frame, COLUMN)
    terms = context.broadcast((plan.question, plan.randomizer))
    reports = frame.select(COLUMN)
    if plan.randomizer.num_report_bytes <= _FEW_BYTES:  # Spark counts equal reports
        reports = reports.groupBy(COLUMN).count()
    parts = reports.mapInArrow(partial(_count, terms), "aggregate binary").rdd
    own = parts.map(lambda row: pickle.loads(row.aggregate))  # noqa: S301  # of our own tasks
    found = own.treeAggregate(None, _both, _both)
    num_reports = 0 if found is None else found.num_reports
    require_users(num_reports, f"there are {num_reports} reports")
    return found


def _both(first: Any, second: Any) -> Any:
    """Return the sum of two partial aggregates, either of which may be None."""
    return added_up((first, second))


def _count(terms: Any, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Yield the aggregate of a task's reports, in bytes."""
    import pyarrow as pa

    question, law = terms.value

    def blocks() -> Iterator[Reports]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= _ROWS_COUNTED:
                yield from _repeated(pa.Table.from_batches(held), question, law)
                held = []
        if held:
            yield from _repeated(pa.Table.from_batches(held), question, law)

    found = added_up(map(law.aggregate, in_batches(law, blocks())))
    yield pa.RecordBatch.from_pydict({"aggregate": [pickle.dumps(found)]})


def _repeated(table: "pa.Table", question: Any, law: Any) -> Iterator[Reports]:
    """Yield the reports of rows, each repeated by the count in a second column, if there is one."""
    found = _reports_of(table.select([COLUMN]), question, law)
    if table.num_columns == 1:
        yield found
        return
    left: Any = table.column(1).to_numpy().copy()
    while left.any():
        most: Any = max(1, _ROWS_COUNTED // np.count_nonzero(left))
        now = np.minimum(left, most)
        yield Reports(data=np.repeat(found.data, now, axis=0), fingerprint=law.fingerprint)
        left -= now


def _reports_of(table: "pa.Table", question: Any, law: Any) -> Reports:
    """Return the reports of rows of Spark, of any of its types."""
    frame: Any = pl.from_arrow(table)
    encoded = as_encoded(Source(frame.lazy(), (COLUMN,), "the frame"), question, law)
    return from_frame(frame.select(encoded), fingerprint=law.fingerprint)
