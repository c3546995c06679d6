"""Apache Spark: reports are counted, randomized and shuffled where the data already lie.

Spark runs tasks again: after a lost executor, a failed fetch, or to be quicker. Whatever is drawn
by place or partition then gives a person a second report. Here no task draws: rows belong to blocks
by a hash of an id that the caller names, and the words of a block are the AES-256 keystream of a
key of its own, derived from one that the driver asks the operating system for. Before anything is
randomized one job notes a keyed digest of each block, its ids and values; a block that is read
again, and is not the same to the byte, ends the job. So a row has the same report in each attempt.

The key travels in the serialized function of the tasks, as the true answers do in their rows: in no
column, literal, plan, property or variable broadcast by this program, which are written down.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, SupportsIndex

import numpy as np

from shuffledp.collection import dummies as added
from shuffledp.collection.counting import Batches, added_up
from shuffledp.collection.plan import Plan, require_plan
from shuffledp.collection.questions.question import require_column
from shuffledp.collection.report_files import COLUMN, open_reports
from shuffledp.collection.result import Result
from shuffledp.collection.run import Collected
from shuffledp.collection.run import estimate as estimated
from shuffledp.collection.shuffling import UNIFORM
from shuffledp.collection.source.columns import Column, cautions_of_missing
from shuffledp.collection.source.tables import Source, require_users
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy, derived_key
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.files import require_file
from shuffledp.core.lazy_polars import pl
from shuffledp.core.reports import Counts, Reports, Sums
from shuffledp.engines.spark_reports import ROWS_COUNTED, as_column, repeated
from shuffledp.engines.spark_sessions import Workers, session, session_of, told

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = [
    "Workers", "estimate", "estimate_files", "randomize", "run", "run_files", "session", "shuffle",
]  # fmt: skip

# Rows of a block of ids, and how many blocks there are at most.
_ROWS_A_BLOCK: Final = 1 << 16
_MOST_BLOCKS: Final = 1 << 17
_DIGEST_BYTES: Final = 16

# Equal reports that one row of the shuffle stands for, and rows of a file that it makes.
_EQUAL_ROWS: Final = 1 << 20
_ROWS_A_FILE: Final = 1 << 22

# Reports of at most so many bytes are 65,536 different ones or fewer.
_FEW_BYTES: Final = 2

# The share of different ids, told within 2 %, below which nothing else is looked at.
_FEW_IDS: Final = 0.8

_ID: Final = "__id"
_BLOCK: Final = "__block"


# --------------------------------------------------------------------- counting
@dataclass(frozen=True, slots=True)
class _Terms:
    """What tasks know of a collection; nothing of it is secret, and it may be large."""

    question: Any
    randomizer: Any
    names: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    digests: dict[int, bytes] = field(default_factory=dict)


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
    counted = _counted(frame, plan)
    told = added.told_users(plan.dummies, None, num_users)
    counted = added.less_dummies(counted, plan.dummies, num_users=told)
    return estimated(counted, plan, num_users=num_users, **options)


def estimate_files(
    path: str | PathLike[str], plan: Plan[Any], *, missing: str = "error", **options: Any
) -> Result[Any]:
    """Estimate as `estimate` does from Parquet files that this process sees, too."""
    require_plan(plan)
    known = open_reports(path, plan=plan)
    if known.fingerprint != plan.randomizer.fingerprint:
        raise ParameterError(
            f"another law than the plan's made these reports: {known.fingerprint!r}"
        )
    if options.get("num_users") is None:
        options["num_users"] = known.num_users
    if plan.dummies and missing == "drop":
        raise ParameterError("missing = 'drop' would leave out dummies: give every report")
    frame = _read(path)
    frame = frame.dropna(subset=[COLUMN]) if missing == "drop" else frame
    return replace(estimate(frame, plan, **options), collected_by=known.collected_by)


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


def _counted(frame: "DataFrame", plan: Plan[Any]) -> Any:
    """Return the aggregate of the reports in a frame."""
    from pyspark.sql import functions as F  # noqa: N812  # as Spark's own pages call it

    context = session_of(frame).sparkContext
    if COLUMN not in frame.columns:
        shown = ", ".join(frame.columns)
        raise DataError(f"the frame has no column {COLUMN!r} (its columns: {shown}): rename one")
    terms = context.broadcast(_Terms(plan.question, plan.randomizer))
    reports = frame.select(COLUMN)
    if plan.randomizer.num_report_bytes <= _FEW_BYTES:  # Spark counts equal ones
        reports = reports.groupBy(COLUMN).count()
    parts = reports.mapInArrow(partial(_count, terms), _COUNTS)
    sums = [F.sum(name).alias(name) for name in ("support", "total", "squares")]
    with told():
        found = parts.groupBy("place").agg(*sums).toArrow()
    place, support, total, squares = (column.to_numpy() for column in found.columns)
    law = plan.randomizer
    empty: Any = law.aggregate(law.randomize(plan.question.no_values, Entropy.from_seed(0)))
    num_reports = int(support[place < 0].sum())
    require_users(num_reports, f"there are {num_reports} reports")
    held, place = place >= 0, place[place >= 0]
    whole = Counts if isinstance(empty, Counts) else Sums

    def filled(like: Any, values: Any) -> Any:
        out = np.zeros_like(like)
        out[place] = values[held]
        return out

    how: Any = {"num_reports": num_reports, "fingerprint": law.fingerprint}
    if whole is Counts:
        slots = empty.supports_per_report
        return Counts(support=filled(empty.support, support), supports_per_report=slots, **how)
    sums_of = {"total": filled(empty.total, total)}
    return Sums(**sums_of, total_of_squares=filled(empty.total, squares), **how)


_COUNTS: Final = "place bigint, support bigint, total double, squares double"


def _count(terms: Any, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Yield the counts of a task's reports that are not 0, and in place -1 how many there are."""
    import pyarrow as pa

    question, law = terms.value.question, terms.value.randomizer

    def blocks() -> Iterator[Reports]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= ROWS_COUNTED:
                yield from repeated(pa.Table.from_batches(held), question, law)
                held = []
        if held:
            yield from repeated(pa.Table.from_batches(held), question, law)

    found = added_up(map(law.aggregate, Batches(law).of(blocks())))
    if found is None:
        return
    if isinstance(found, Counts):
        place = np.flatnonzero(found.support)
        columns = [found.support[place], np.zeros(place.size), np.zeros(place.size)]
    else:
        place = np.arange(found.total.size)
        columns = [np.zeros(place.size, np.int64), found.total, found.total_of_squares]
    number: list[Any] = [[found.num_reports], [0.0], [0.0]]
    rows = [np.append(column, extra) for column, extra in zip(columns, number, strict=True)]
    names = ["place", "support", "total", "squares"]
    yield pa.RecordBatch.from_arrays(
        [pa.array(each) for each in (np.append(place, -1), *rows)], names
    )


# --------------------------------------------------------------------- randomizing
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
    return _prepared(frame, column, plan, id_column, seed, reading)[0]


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
    reports, num_users, cautions = _prepared(frame, column, plan, id_column, seed, reading or {})
    counted = _counted(reports, plan)
    if counted.num_reports != num_users:
        raise DataError(
            f"{counted.num_reports:,} reports were counted, not {num_users:,}: the frame changed "
            "while it was read; store it first"
        )
    if sink is not None:
        sink(shuffle(reports))
    by = "table" if seed is None else "simulation"
    notes = (_HELD,) if seed is None else ()
    number = None if seed is None else int(seed)
    return estimated(
        Collected(counted, by, (*notes, _ONE_ID, *cautions), cautions, number), plan, **options
    )


_HELD: Final = (
    "Whoever holds the true answers keeps them secret: each was randomized by a task of Apache "
    "Spark, whose machines, and the files that they keep meanwhile, are trusted with all of them."
)
_ONE_ID: Final = (
    "Each id is one person, and its row stays the same while Spark works: its report follows from "
    "the id, the row and a key of this job alone, so that a task that runs again sends the same."
)


def _prepared(  # noqa: PLR0917  # as its two callers
    frame: "DataFrame",
    column: str | None,
    plan: Plan[Any],
    id_column: str | None,
    seed: SupportsIndex | None,
    reading: dict[str, Any],
) -> "tuple[DataFrame, int, tuple[str, ...]]":
    """Return the frame of reports, once all rows are checked, the number of users, and cautions."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    require_plan(plan)
    context = session_of(frame).sparkContext
    names = _names(frame, column, plan, id_column, reading)
    if plan.dummies or plan.shuffling != UNIFORM or plan.question.has_rounds:
        raise ParameterError(
            f"plan of {plan.question.kind} with the {plan.shuffling.name} shuffler: on Spark "
            "reports are shuffled once, uniformly and without dummies; run it on one machine"
        )
    key = Entropy.choose(seed).words(KEY_BYTES // WORD_BYTES).tobytes()
    terms = _Terms(plan.question, plan.randomizer, names, reading)
    blocks = _in_blocks(frame, id_column, names, key)
    with told():
        checked = (
            blocks.applyInArrow(_with_key(_check, key, context.broadcast(terms)), _CHECKED)
            .toArrow()
            .to_pydict()
        )
    if repeated := sum(checked["repeated"]):
        raise DataError(
            f"column {id_column!r} has {repeated:,} ids that were there before: name a column with "
            "an id of each row, and one row a person"
        )
    num_users = sum(checked["num_users"])
    require_users(num_users, f"the frame has {num_users} rows with a value")
    has_category = "other" in plan.question.reads
    how: Any = {"has_category": has_category}
    cautions = cautions_of_missing(sum(checked["num_missing"]), num_users, **how)
    said = (each for block in checked["cautions"] for each in block)
    cautions = (*dict.fromkeys(said), *cautions)
    digests = dict(zip(checked["block"], checked["digest"], strict=True))
    terms = replace(terms, digests=digests)
    nobody = plan.randomizer.randomize(plan.question.no_values, Entropy.from_seed(0)).data
    kind = as_column(nobody, plan.randomizer, plan.question.labels).type
    schema = StructType([StructField(COLUMN, from_arrow_type(kind))])
    drawn = blocks.applyInArrow(_with_key(_report, key, context.broadcast(terms)), schema)
    return drawn, num_users, cautions


def _names(
    frame: "DataFrame", column: str | None, plan: Plan[Any], id_column: str | None, reading: Any
) -> tuple[str, ...]:
    """Return the columns of the values; raise unless they and the ids can be read."""
    from pyspark.sql.types import IntegralType, StringType

    if id_column is None:
        raise ParameterError(
            "id_column is missing: Spark may run a task again, and only a row that has an id of "
            "its own is randomized once; give id_column=..., a primary key; without one add it "
            "(monotonically_increasing_id), and store the frame before, as ids computed anew change"
        )
    if unfit := [name for name in reading if name not in plan.question.reads]:
        raise ParameterError(f"{unfit[0]}=... makes no sense for this question: leave it out")
    names = plan.question.table_columns or ((column,) if column else ())
    if not names:
        raise ParameterError("column is missing: name the column with the values")
    for name in (id_column, *names):
        if name not in frame.columns:
            shown = ", ".join(frame.columns)
            raise DataError(f"the frame has no column {name!r} (its columns: {shown})")
    dtype = frame.schema[id_column].dataType
    if not isinstance(dtype, IntegralType | StringType):
        raise ParameterError(
            f"id_column = {id_column!r} is of type {dtype.simpleString()}: give whole numbers or "
            "text, such as CAST(... AS STRING)"
        )
    return tuple(names)


def _in_blocks(frame: "DataFrame", id_column: Any, names: tuple[str, ...], key: bytes) -> Any:
    """Return the rows grouped into blocks by a hash of their ids; raise for ids that cannot be."""
    from pyspark.sql import functions as F  # noqa: N812  # as Spark's own pages call it

    def named(name: str) -> Any:
        return F.col("`" + name.replace("`", "``") + "`")

    ids = named(id_column)
    counts = (F.count(F.lit(1)), F.count(ids), F.approx_count_distinct(ids, 0.02))
    num_rows, num_ids, num_different = frame.select(*counts).collect()[0]
    where = f"column {id_column!r}"
    if num_ids < num_rows:
        missing = num_rows - num_ids
        raise DataError(f"{where} is null in {missing:,} of {num_rows:,} rows: give each an id")
    if num_different < _FEW_IDS * num_rows:
        raise DataError(
            f"{where} has about {num_different:,} different ids in {num_rows:,} rows: name a "
            "column with an id of each row, and one row a person"
        )
    number = min(-(-num_rows // _ROWS_A_BLOCK), _MOST_BLOCKS) or 1
    # Which rows meet in a block is no secret, but nobody who chose ids could foresee it.
    salt = int.from_bytes(derived_key(key, b"blocks", 0)[:WORD_BYTES], "big", signed=True)
    block = F.pmod(F.xxhash64(ids, F.lit(salt)), F.lit(number)).cast("bigint")
    columns = (named(name) for name in names)
    return frame.select(ids.alias(_ID), *columns, block.alias(_BLOCK)).groupBy(_BLOCK)


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A secret for tasks, which is printed nowhere, and terms that are none."""

    key: bytes = field(repr=False)
    terms: Any


def _with_key(function: Callable[..., Any], key: bytes, terms: Any) -> Callable[..., Any]:
    """Return a function of tables for tasks, small enough to stay out of files.

    Spark writes a serialized function of more than a megabyte to a disk; this one has a key, and of
    all else a reference.
    """
    return partial(function, _Keyed(key, terms))


_CHECKED: Final = (
    "block bigint, num_users bigint, num_missing bigint, repeated bigint, digest binary, "
    "cautions array<string>"
)


def _check(keyed: _Keyed, table: "pa.Table") -> "pa.Table":
    """Return the number of users of a block, of repeated ids, its digest, and its cautions."""
    import pyarrow as pa

    block = _opened(keyed, table)
    num_users, num_missing = len(block.values), block.column.num_missing
    own = cautions_of_missing(num_missing, num_users, has_category="other" in block.reads)
    row = {
        "block": block.number,
        "num_users": num_users,
        "num_missing": num_missing,
        "repeated": block.repeated,
        "digest": block.digest,
        "cautions": [each for each in block.column.cautions if each not in own],
    }
    names = ("block", "num_users", "num_missing", "repeated")
    schema = [*((name, pa.int64()) for name in names), ("digest", pa.binary())]
    schema += [("cautions", pa.list_(pa.string()))]
    return pa.Table.from_pylist([row], schema=pa.schema(schema))


def _report(keyed: _Keyed, table: "pa.Table") -> "pa.Table":
    """Return the reports of a block, which is the one that was checked."""
    import pyarrow as pa

    terms, block = keyed.terms.value, _opened(keyed, table)
    if terms.digests.get(block.number) != block.digest:
        raise DataError(
            "rows are not those that were checked before: the frame changes when it is computed "
            "again; store it first, and randomize what is stored"
        )
    law = terms.randomizer
    entropy = Entropy.from_key(derived_key(keyed.key, b"rows", block.number))
    data = law.randomize(block.values, entropy).data
    return pa.table({COLUMN: as_column(data, law, terms.question.labels)})


class _Block(NamedTuple):
    """A block's values in the order of its ids, how many ids repeat, and a keyed digest."""

    number: int
    values: Any
    repeated: int
    digest: bytes
    column: Column
    reads: tuple[str, ...]


def _opened(keyed: _Keyed, table: "pa.Table") -> _Block:
    """Return a block of rows, its values checked."""
    terms, number = keyed.terms.value, table[_BLOCK][0].as_py()
    frame: Any = pl.from_arrow(table)
    frame = frame.sort(_ID)
    source = Source(frame.lazy().select(terms.names), terms.names, "the frame")
    column = terms.question.read(source, **terms.reading)
    require_column(terms.question, column)
    blocks = list(column.blocks())
    is_array = isinstance(blocks[0], np.ndarray)
    values = np.concatenate(blocks) if is_array else pl.concat(blocks)
    key = derived_key(keyed.key, b"digest", number)
    digest = hashlib.blake2b(key=key, digest_size=_DIGEST_BYTES)
    for each in (frame[_ID], values):
        digest.update(_content(each))
    repeated = frame.height - frame[_ID].n_unique()
    return _Block(number, values, repeated, digest.digest(), column, terms.question.reads)


def _content(values: Any) -> bytes:
    """Return bytes that tell values from all others: numbers, or texts after their lengths."""
    if isinstance(values, np.ndarray):
        return repr((values.dtype, values.shape)).encode() + values.tobytes()
    if values.dtype == pl.String:
        return _content(values.str.len_bytes().to_numpy()) + "".join(values).encode()
    return _content(values.to_numpy())


# --------------------------------------------------------------------- shuffling
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
    For an adversary this is a uniform shuffle: both show the multiset of reports, and no more.
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
