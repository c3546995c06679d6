"""Apache Spark: reports are counted, randomized and shuffled where the data already lie.

Spark may run a task again, and so a task draws nothing: `spark_blocks` says how a row is randomized
once.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from shuffledp.collection import dummies as added
from shuffledp.collection.plan import Plan, require_plan
from shuffledp.collection.report_files import COLUMN
from shuffledp.collection.result import Result
from shuffledp.collection.run import Collected
from shuffledp.collection.run import estimate as estimated
from shuffledp.core.errors import DataError
from shuffledp.core.files import require_file
from shuffledp.engines.spark_blocks import prepared
from shuffledp.engines.spark_counting import counted
from shuffledp.engines.spark_sessions import Workers, session, session_of, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Workers", "estimate", "randomize", "run", "run_files", "session", "shuffle"]

# Equal reports that one row of the shuffle stands for, and rows of a file that it makes.
_EQUAL_ROWS: Final = 1 << 20
_ROWS_A_FILE: Final = 1 << 22


@told()
def estimate(
    frame: "DataFrame", plan: Plan[Any], *, num_users: SupportsIndex | None = None, **options: Any
) -> Result[Any]:
    """Estimate from reports in a frame of Spark, which are counted where they lie.

    Parameters
    ----------
    frame : DataFrame
        With a column ``report``, one row a report, as ``shuffledp.collection.open_reports`` reads
        it from files, or as `randomize` makes it.
    plan : Plan
        What was collected.
    num_users : int, optional
        How many of the reports are users' where the plan has dummies.
    **options
        Others of ``shuffledp.estimate``.

    Returns
    -------
    Result
        As of ``shuffledp.estimate``, with the guarantee for the reports that arrived.

    Raises
    ------
    DataError
        If a row holds no report that the plan's randomizer makes.

    Notes
    -----
    Each task hands on how often its reports support each answer, without zeros, and Spark adds
    that up: memory is bounded by a block of reports and the number of answers. Counts are whole
    numbers, so that the result does not depend on the tasks.
    """
    require_plan(plan)
    found = counted(frame, plan)
    told = added.told_users(plan.dummies, None, num_users)
    found = added.less_dummies(found, plan.dummies, num_users=told)
    return estimated(found, plan, num_users=num_users, **options)


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
        Column with the values; None where the question names its columns.
    plan : Plan
        What is asked and how it is randomized; without dummies.
    id_column : str
        Column with an id of each row that stays the same, such as a primary key: whole numbers or
        text, none missing and none twice.
    seed : int, optional
        For a reproducible simulation, which protects nobody.
    **reading
        ``missing``, ``other``, ``clip`` and the like, as for ``shuffledp.collection.open_column``.

    Returns
    -------
    DataFrame
        A column ``report``, in an order that follows from the ids: `shuffle` it before anybody
        sees it.

    Raises
    ------
    ParameterError
        If there is no id column, or one of another type.
    DataError
        If ids are missing or repeated, or values cannot be used; before anything is randomized.

    Notes
    -----
    Each call has a key of its own, and so draws new reports: write one result, once. The id never
    leaves with a report. Two passes over the rows, each a shuffle of Spark by a hash of the id.
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
    """Randomize each row once, and estimate from the reports, where the rows lie.

    Parameters
    ----------
    frame, column, plan, id_column, seed
        As for `randomize`.
    sink : callable, optional
        Is handed the shuffled reports as a frame, to store them.
    reading : dict, optional
        Options of ``shuffledp.collection.open_column`` for the values, such as ``missing``.
    **options
        Of ``shuffledp.estimate``: ``confidence``, ``strict`` and the like.

    Returns
    -------
    Result
        As of ``shuffledp.run``; that all reports count only once rests on ids which are one a
        person, and its assumptions say so.

    Raises
    ------
    DataError
        As for `randomize`, or if another number of reports arrived than there are users.
    """
    reports, num_users, cautions = prepared(frame, column, plan, id_column, seed, reading or {})
    found = counted(reports, plan)
    if found.num_reports != num_users:
        raise DataError(
            f"{found.num_reports:,} reports were counted, not {num_users:,}: the frame changed "
            "while it was read; store it first"
        )
    if sink is not None:
        sink(shuffle(reports))
    by = "table" if seed is None else "simulation"
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
    """Run as `run` does on the rows of Parquet files, and store shuffled reports in a folder."""

    def save(frame: "DataFrame") -> None:
        frame.write.parquet(Path(str(save_to)).resolve().as_uri())

    return run(_read(path), column, plan, sink=None if save_to is None else save, **how)


def _read(path: str | PathLike[str]) -> "DataFrame":
    """Return the rows of a Parquet file, or of a folder of them."""
    reader = session().read.option("recursiveFileLookup", "true")
    if Path(path).is_dir():
        reader = reader.option("pathGlobFilter", "*.parquet")
    else:
        require_file(Path(path))
    return reader.parquet(Path(path).resolve().as_uri())  # Java may be in another folder


def shuffle(frame: "DataFrame", *, num_files: SupportsIndex | None = None) -> "DataFrame":
    """Return the reports of a frame in an arrangement that follows from their multiset alone.

    Parameters
    ----------
    frame : DataFrame
        With a column ``report``; others are left out.
    num_files : int, optional
        Number of partitions; by default one for each four million reports.

    Returns
    -------
    DataFrame
        A column ``report``. In which partition a report lies is a hash of the report, and of its
        number among a million equal ones; there they are sorted. So neither order, nor partitions,
        files and row groups tell where a report came from, however often tasks run again.

    Notes
    -----
    For an adversary this is a uniform shuffle: both show the multiset of reports, and no more, for
    a uniform order is this one after a permutation that depends on nobody. Equal reports stand
    together, so draw samples at random, not from the first rows.
    """
    from pyspark.sql import functions as F  # noqa: N812  # as Spark's own pages call it

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
