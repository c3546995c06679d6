"""Rows of Apache Spark in blocks by id, each randomized identically whenever it is read.

Spark runs tasks again: after a lost executor, a failed fetch, or to be quicker. Draws by place or
partition would then give a person a second report. Here no task draws: rows belong to blocks by a
hash of an id column named by the caller, and the words of a block are the AES-256 keystream of its
own key, derived from a key that the driver asks the operating system for. Before anything is
randomized, one job records a keyed digest of each block, its ids and values; a block that is not
identical when read again ends the job. So a row has the same report in each attempt.

The key travels in the serialized function of the tasks, as the true answers do in their rows: in
no column, literal, plan, property or broadcast variable of this program, which are written to disk.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.plan import Plan, require_plan
from shuffledp.collection.questions.question import require_column
from shuffledp.collection.report_files import (
    COLUMN,
    METADATA_KEY,
    answers_of,
    facts_of,
    to_frame,
)
from shuffledp.collection.shuffling import UNIFORM
from shuffledp.collection.source.columns import Column, cautions_of_missing
from shuffledp.collection.source.tables import Reading, Source, require_users
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy, derived_key
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.lazy import pl
from shuffledp.core.reports import Reports

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Number of rows of a block of ids, and largest number of blocks.
_ROWS_A_BLOCK: Final = 1 << 16
_MOST_BLOCKS: Final = 1 << 17
_DIGEST_BYTES: Final = 16

# Share of different ids, estimated within 2 %, below which ids are refused at once.
_FEW_IDS: Final = 0.8

# Columns of blocks; values follow as "0", "1", ..., whatever their names are.
_ID: Final = "id"
_BLOCK: Final = "block"

_WIDER: Final = {"UInt8": "Int16", "UInt16": "Int32", "UInt32": "Int64"}


@dataclass(frozen=True, slots=True)
class _Terms:
    """Parameters of a collection for its tasks; not secret, and possibly large."""

    question: Any
    randomizer: Any
    names: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    digests: dict[int, bytes] = field(default_factory=dict)


def prepared(  # noqa: PLR0917  # as its two callers
    frame: "DataFrame",
    column: str | None,
    plan: Plan[Any],
    id_column: str | None,
    seed: SupportsIndex | None,
    reading: dict[str, Any],
) -> "tuple[DataFrame, int, tuple[str, ...]]":
    """Return the frame of reports, the number of users, and cautions, once all rows are checked."""
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
    check = _with_key(_check, key, context.broadcast(terms))
    checked = blocks.applyInArrow(check, _CHECKED).toArrow().to_pydict()
    if repeated := sum(checked["repeated"]):
        raise DataError(
            f"column {id_column!r} has {repeated:,} ids that were there before: name a column with "
            "an id of each row, and one row a person"
        )
    num_users = sum(checked["num_users"])
    require_users(num_users, f"the frame has {num_users} rows with a value")
    has_category = "other" in plan.question.reads
    cautions = cautions_of_missing(
        sum(checked["num_missing"]), num_users, has_category=has_category
    )
    said = (each for block in checked["cautions"] for each in block)
    cautions = (*dict.fromkeys(said), *cautions)
    digests = dict(zip(checked["block"], checked["digest"], strict=True))
    terms = replace(terms, digests=digests)
    nobody = plan.randomizer.randomize(plan.question.no_values, Entropy.from_seed(0)).data
    kind = as_column(nobody, plan.randomizer, plan.question.labels).type
    schema = StructType([StructField(COLUMN, from_arrow_type(kind))])
    drawn = blocks.applyInArrow(_with_key(_report, key, context.broadcast(terms)), schema)
    facts = facts_of(plan.randomizer, answers_of(plan), "table" if seed is None else "simulation")
    # Shuffled and stored with the column; `open_reports` reads it.
    told = {METADATA_KEY: {**facts, "stored_by": "spark"}}
    return drawn.withMetadata(COLUMN, told), num_users, cautions


def session_of(frame: Any) -> "SparkSession":
    """Return the session of a frame; raise unless its driver is this process."""
    from pyspark.sql.classic.dataframe import DataFrame

    if not isinstance(frame, DataFrame):
        raise ParameterError(
            f"frame is a {type(frame).__module__}.{type(frame).__name__}: give a DataFrame of a "
            "classic session of Spark, whose driver is this process, not of Spark Connect"
        )
    return frame.sparkSession


def _names(
    frame: "DataFrame", column: str | None, plan: Plan[Any], id_column: str | None, reading: Any
) -> tuple[str, ...]:
    """Return the columns of the values; raise unless values and ids can be read."""
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
        raise ParameterError("column is missing: name the column with the values, column=...")
    require_columns(frame, id_column, *names)
    dtype = frame.schema[id_column].dataType
    if not isinstance(dtype, IntegralType | StringType):
        raise ParameterError(
            f"id_column = {id_column!r} is of type {dtype.simpleString()}: give whole numbers or "
            "text, such as CAST(... AS STRING)"
        )
    return tuple(names)


def require_columns(frame: "DataFrame", *names: str) -> None:
    """Raise unless the frame has exactly one column of each name, as Spark compares names."""
    from pyspark.errors import AnalysisException

    shown = ", ".join(frame.columns)
    for name in names:
        if name not in frame.columns:
            raise DataError(
                f"the frame has no column {name!r} (its columns: {shown}): name or rename one"
            )
        try:
            frame.select(_named(name))
        except AnalysisException:
            raise DataError(
                f"Spark cannot tell column {name!r} from another one (columns: {shown}): rename one"
            ) from None


def _named(name: str) -> Any:
    """Return the column of this name, whatever characters are in it."""
    from pyspark.sql import functions as F  # noqa: N812  # its usual name

    return F.col("`" + name.replace("`", "``") + "`")


def _in_blocks(frame: "DataFrame", id_column: Any, names: tuple[str, ...], key: bytes) -> Any:
    """Return the rows grouped into blocks by a hash of their ids; raise for unusable ids."""
    from pyspark.sql import functions as F  # noqa: N812  # its usual name

    ids = _named(id_column)
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
    # The rows of a block are no secret, but nobody who chose ids could predict them.
    salt = int.from_bytes(derived_key(key, b"blocks", 0)[:WORD_BYTES], "big", signed=True)
    block = F.pmod(F.xxhash64(ids, F.lit(salt)), F.lit(number)).cast("bigint")
    columns = (_named(name).alias(str(place)) for place, name in enumerate(names))
    return frame.select(ids.alias(_ID), *columns, block.alias(_BLOCK)).groupBy(_BLOCK)


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A secret for tasks, which is never printed, and terms, which are not secret."""

    key: bytes = field(repr=False)
    terms: Any


def _with_key(function: Callable[..., Any], key: bytes, terms: Any) -> Callable[..., Any]:
    """Return a function of tables for tasks, small enough to stay out of files.

    Spark writes a serialized function of more than a megabyte to disk; this one holds a key, and
    only a reference to everything else.
    """
    return partial(function, _Keyed(key, terms))


_CHECKED: Final = (
    "block bigint, num_users bigint, num_missing bigint, repeated bigint, digest binary, "
    "cautions array<string>"
)


def _check(keyed: _Keyed, table: "pa.Table") -> "pa.Table":
    """Return number of users, repeated ids, digest, and cautions of a block, as one row."""
    import pyarrow as pa

    block = _opened(keyed, table)
    num_users, num_missing = len(block.values), block.column.num_missing
    own = cautions_of_missing(num_missing, num_users, has_category="other" in block.reads)
    cautions = [each for each in block.column.cautions if each not in own]
    return pa.table(
        {
            "block": [block.number],
            "num_users": [num_users],
            "num_missing": [num_missing],
            "repeated": [block.repeated],
            "digest": [block.digest],
            "cautions": pa.array([cautions], pa.list_(pa.string())),
        }
    )


def _report(keyed: _Keyed, table: "pa.Table") -> "pa.Table":
    """Return the reports of a block; raise unless it is the block that was checked."""
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
    """Return a block of rows, with its values checked."""
    terms, number = keyed.terms.value, table[_BLOCK][0].as_py()
    frame: Any = pl.from_arrow(table)
    frame = frame.sort(_ID)
    own = frame.lazy().select(
        pl.col(str(place)).alias(name) for place, name in enumerate(terms.names)
    )
    column = terms.question.read(
        Source(own, terms.names, "the frame", is_part=True, reading=Reading(**terms.reading))
    )
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
    """Return bytes that determine the values: numbers, or texts after their lengths."""
    if isinstance(values, np.ndarray):
        return repr((values.dtype, values.shape)).encode() + values.tobytes()
    if values.dtype == pl.String:
        return _content(values.str.len_bytes().to_numpy()) + "".join(values).encode()
    return _content(values.to_numpy())


def as_column(data: NDArray[Any], law: Any, labels: tuple[str, ...]) -> "pa.Array":
    """Return reports as a column of a type that Spark has: packed bits become bytes."""
    import pyarrow as pa

    if data.ndim == 2 and data.dtype == np.uint8:
        width = pa.binary(data.shape[1])
        packed = [None, pa.py_buffer(np.ascontiguousarray(data))]
        return pa.FixedSizeBinaryArray.from_buffers(width, len(data), packed).cast(pa.binary())
    reports = Reports(data=data, fingerprint=law.fingerprint)
    series = to_frame(reports, labels=labels if law.name == "k-rr" else None)[COLUMN]
    if isinstance(series.dtype, pl.Enum):
        series = series.cast(pl.String)
    elif series.dtype == pl.UInt64:
        series = series.cast(pl.Decimal(20, 0))
    elif name := _WIDER.get(str(series.dtype)):
        series = series.cast(getattr(pl, name))
    found = series.to_arrow()
    if isinstance(series.dtype, pl.Array):
        return found.cast(pa.list_(found.type.value_type))
    return found.cast(pa.string()) if series.dtype == pl.String else found
