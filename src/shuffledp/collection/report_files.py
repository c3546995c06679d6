"""Reports as tables: Parquet files, and frames that any reader of Arrow can read.

A table has one column ``report``. Reports of k-RR are labels of the domain; other integers and
vectors are unchanged, and packed bits are lists of bytes, bit ``i`` (little-endian within a byte)
standing for answer ``i``. The file names the law of its reports, and the answers that they are
about, so that counting them under others is refused.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp._version import __version__
from shuffledp.collection.output import whole_file
from shuffledp.collection.plan import Plan
from shuffledp.collection.source import tables
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.core.labels import present
from shuffledp.core.lazy import pl
from shuffledp.core.reports import Reports
from shuffledp.randomizers.base import LocalRandomizer

COLUMN = "report"
METADATA_KEY = "shuffledp"
_OF_SPARK = "org.apache.spark.sql.parquet.row.metadata"  # its schema, with facts about columns
_ROWS_A_BLOCK = 1 << 18

#: Rows of a Parquet file that are counted together: pieces do not depend on which worker counts.
ROWS_A_PIECE = 1 << 22

# Small files of a folder are read together, up to these numbers of bytes and files.
_BYTES_A_GROUP = 1 << 25
_FILES = 256


def to_frame(reports: Reports, *, labels: tuple[str, ...] | None = None) -> "pl.DataFrame":
    """Return reports as a frame with one column, ``report``; codes by their ``labels`` if given."""
    data = np.asarray(reports.data)
    if labels is not None and data.ndim == 1:
        names = pl.Series(COLUMN, list(labels), dtype=pl.Enum(list(labels)))
        return names.gather(data).to_frame()
    if data.ndim == 1:
        return pl.Series(COLUMN, data).to_frame()
    inner = pl.Series(data[:0].reshape(-1)).dtype
    return pl.Series(COLUMN, data, dtype=pl.Array(inner, data.shape[1])).to_frame()


def from_frame(frame: Any, *, fingerprint: str) -> Reports:
    """Return the reports in a frame that `to_frame` made, or in any Arrow table like it."""
    table = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    if COLUMN not in table.columns:
        raise DataError(
            f"the table has no column {COLUMN!r} (its columns: {', '.join(table.columns)}): "
            "rename the one with the reports"
        )
    column = table.get_column(COLUMN)
    if count := column.null_count():
        raise DataError(
            f"column {COLUMN!r} has {count} rows without a report, or with one that the plan's "
            "randomizer never makes: pass missing='drop' to leave empty rows out"
        )
    if column.dtype == pl.Binary:  # packed bits as Apache Spark stores them
        data = np.frombuffer(b"".join(column), dtype=np.uint8)
        return Reports(data=data.reshape(len(column), -1), fingerprint=fingerprint)
    if isinstance(column.dtype, pl.Enum):
        codes = column.to_physical().to_numpy()
        smallest = np.min_scalar_type(max(len(column.dtype.categories) - 1, 0))
        return Reports(data=codes.astype(smallest, copy=False), fingerprint=fingerprint)
    return Reports(data=np.ascontiguousarray(column.to_numpy()), fingerprint=fingerprint)


def write_reports(
    path: str | PathLike[str],
    stream: Iterable[Reports],
    randomizer: LocalRandomizer,
    *,
    labels: tuple[str, ...] | None = None,
    collected_by: str = "devices",
    num_users: int | None = None,
) -> None:
    """Write a stream of reports to a Parquet file, in memory bounded by a block.

    Parameters
    ----------
    path : path
        The file; replaced in one step if it exists, once all reports are written.
    stream : iterable of Reports
        At least one block.
    randomizer : LocalRandomizer
        Randomizer of the reports; its fingerprint is written, too.
    labels : tuple of str, optional
        Possible answers, of which the reports of k-RR are one each.
    collected_by : {"devices", "table", "simulation"}
        Place where true answers were randomized, for readers of the file.
    num_users : int, optional
        Number of users' reports, if there are dummies among the reports.

    Raises
    ------
    DataError
        If there is no block.
    OutputError
        If the file cannot be written; then, and after an interruption, an older one stays.

    Examples
    --------
    >>> import tempfile
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> reports = plan.randomizer.randomize([0, 1] * 50, sdp.Entropy.from_seed(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_reports(f"{folder}/reports.parquet", [reports], plan.randomizer)
    ...     sum(each.num_reports for each in open_reports(f"{folder}/reports.parquet").blocks())
    100
    """
    from polars.io.plugins import register_io_source

    codes = labels if randomizer.name == "k-rr" else None
    made = (to_frame(reports, labels=codes) for reports in stream)
    first = next(made, None)
    if first is None:
        raise DataError("there are no reports to write: randomize at least one value")
    facts = facts_of(randomizer, labels, collected_by)
    facts |= {} if num_users is None else {"num_users": num_users}
    with whole_file(path) as partial:
        source = register_io_source(lambda *_: chain([first], made), schema=first.schema)
        source.sink_parquet(partial, metadata={METADATA_KEY: json.dumps(facts)})


def facts_of(
    randomizer: LocalRandomizer, labels: tuple[str, ...] | None, collected_by: str
) -> dict[str, Any]:
    """Return the facts that are stored with reports: their law, answers and origin."""
    return {
        "fingerprint": randomizer.fingerprint,
        "randomizer": randomizer.name,
        "law": repr(randomizer),
        "collected_by": collected_by,
        "shuffledp_version": __version__,
        **({} if labels is None else {"answers": _digest(labels)}),
    }


def reports_writer(path: Path, plan: Plan, **how: Any) -> Callable[[Iterator[Reports]], None]:
    """Return a sink of shuffled reports that writes them to a Parquet file."""
    randomizer, labels = plan.randomizer, answers_of(plan)
    return lambda stream: write_reports(path, stream, randomizer, labels=labels, **how)


@dataclass(frozen=True, slots=True)
class ReportPiece:
    """Some rows of files of reports, which the process that counts them also reads."""

    name: str
    fingerprint: str
    frame: "pl.LazyFrame" = field(repr=False)

    def blocks(self) -> Iterator[Reports]:
        """Yield the reports in the files' order, block by block."""
        with tables.reading(self.name):
            for batch in self.frame.collect_batches(chunk_size=_ROWS_A_BLOCK):
                yield from_frame(batch, fingerprint=self.fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFile:
    """File of reports, or a folder, and the law of the reports. Made by `open_reports`."""

    fingerprint: str
    collected_by: str
    #: Number of users' reports, if the file states it because there are dummies.
    num_users: int | None
    #: Yields the rows in pieces: large Parquet files in several, small ones together.
    pieces: Callable[[], Iterator[ReportPiece]] = field(repr=False)

    def blocks(self) -> Iterator[Reports]:
        """Yield the reports in the file's order, block by block."""
        for piece in self.pieces():
            yield from piece.blocks()


def open_reports(
    path: str | PathLike[str], *, plan: Plan | None = None, missing: str = "error", **ways: Any
) -> ReportFile:
    """Open a file of reports, or a folder of such files, to be aggregated block by block.

    Parameters
    ----------
    path : path
        A Parquet file of `write_reports` or ``shuffledp run --save-reports``. With a plan also a
        file from elsewhere, or text (``.csv``, ``.tsv``), with a column ``report``: labels of the
        domain for k-RR, otherwise numbers as the randomizer encodes them; packed bits and vectors
        are lists, in Parquet only. Or a folder of Parquet files, whose names end in ``.parquet``;
        other names, and names that begin with a dot or an underscore, are ignored.
    plan : Plan, optional
        Plan of the reports, if the file does not name their law.
    missing : {"error", "drop"}
        Treatment of rows without a report.
    csv_separator, header, missing_texts : optional
        Ways of reading text, as for `open_column`.

    Returns
    -------
    ReportFile
        Its ``blocks()`` yield the reports.

    Raises
    ------
    DataError
        If it is not a file of reports.
    """
    tables.require_missing(missing, unless="reports")
    location = Path(path)
    files = parquet_files(location) if location.is_dir() else [location]
    if not files:
        raise DataError(
            f"{location} holds no file whose name ends in .parquet: give another folder"
        )
    source = tables.open_source(files[0], COLUMN, **ways)
    facts = _facts(files[0])
    is_ours = "fingerprint" in facts and "stored_by" not in facts
    if plan is not None:
        fingerprint = str(facts.get("fingerprint", plan.randomizer.fingerprint))
    elif is_ours:
        fingerprint = str(facts["fingerprint"])
    else:
        raise DataError(
            f"{files[0].name} does not say which law made its reports: it was not written by "
            "shuffledp run --save-reports or write_reports; pass the plan"
        )
    prepare = _preparing(source, missing, plan, is_ours=is_ours)
    asked = None if plan is None or (labels := answers_of(plan)) is None else _digest(labels)

    def pieces() -> Iterator[ReportPiece]:
        for group in _grouped(files):
            for file in group:
                _require_alike(file, files[0], facts, asked)
            for frame in _frames(group, source):
                yield ReportPiece(group[0].name, fingerprint, prepare(frame))

    return ReportFile(
        fingerprint=fingerprint,
        collected_by=str(facts.get("collected_by", "devices")),
        num_users=facts.get("num_users") if len(files) == 1 else None,
        pieces=pieces,
    )


def _require_alike(file: Path, first: Path, facts: dict[str, Any], asked: str | None) -> None:
    """Raise unless a file is of the law and origin of the first, and on the answers asked for."""
    own = _facts(file)
    if any(own.get(name) != facts.get(name) for name in ("fingerprint", "stored_by")):
        raise DataError(
            f"{file.name} says another law made its reports than {first.name} does: "
            "estimate from each apart"
        )
    if own and asked is not None and _answers_in(file, own) not in (None, asked):
        raise DataError(
            f"{file.name} holds reports on other answers than the plan asks for, or on "
            "the same in another order: give the plan that they were made under"
        )
    if (by := own.get("collected_by")) != (known := facts.get("collected_by")):
        raise DataError(
            f"{file.name} holds reports collected by {by or 'another program'}, {first.name} "
            f"reports collected by {known or 'another program'}: estimate from each apart"
        )


def _preparing(
    source: tables.Source, missing: str, plan: Plan | None, *, is_ours: bool
) -> "Callable[[pl.LazyFrame], pl.LazyFrame]":
    """Return the step from rows of a file to reports in this program's encoding."""
    made = None if is_ours or plan is None else as_encoded(source, plan.question, plan.randomizer)
    kept = None
    if missing == "drop":
        kept = pl.col(COLUMN)
        if source.dtypes[0] == pl.String:
            labels = () if plan is None else plan.question.labels
            kept = present(source.label(), source.missing_texts(labels))

    def prepare(frame: "pl.LazyFrame") -> "pl.LazyFrame":
        frame = frame if kept is None else frame.filter(kept.is_not_null())
        return frame if made is None else frame.with_columns(made)

    return prepare


def _frames(files: list[Path], source: tables.Source) -> "Iterator[pl.LazyFrame]":
    """Yield the rows of files of one kind; large Parquet files in pieces."""
    if len(files) > 1:
        yield pl.scan_parquet(files, glob=False)
    elif tables.is_text_table(files[0]):
        yield source.frame  # standard input is read once
    else:
        frame = tables.scan(files[0])
        with tables.reading(files[0].name):
            num_rows = frame.select(pl.len()).collect().item()
        for start in range(0, max(num_rows, 1), ROWS_A_PIECE):
            yield frame.slice(start, ROWS_A_PIECE)


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a folder, in the order of their names."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in tables.PARQUET)
    below = ((path, path.relative_to(folder).parts) for path in found)
    return sorted(path for path, parts in below if not any(each[0] in "._" for each in parts))


def _grouped(files: list[Path]) -> Iterator[list[Path]]:
    """Yield files in groups that are large enough for a process of their own."""
    held: list[Path] = []
    num_bytes = 0
    for file in files:
        held.append(file)
        num_bytes += file.stat().st_size if len(files) > 1 else 0
        if num_bytes >= _BYTES_A_GROUP or len(held) == _FILES:
            yield held
            held, num_bytes = [], 0
    if held:
        yield held


def _facts(path: Path) -> dict[str, Any]:
    """Return the facts in a Parquet file of `write_reports` or of Spark; {} for other files."""
    if tables.is_text_table(path):
        return {}
    with tables.reading(path.name), suppress(ValueError, TypeError, KeyError):
        held = pl.read_parquet_metadata(path)
        if _OF_SPARK in held:
            columns = {each["name"]: each for each in json.loads(held[_OF_SPARK])["fields"]}
            return dict(columns[COLUMN]["metadata"][METADATA_KEY])
        found = json.loads(held.get(METADATA_KEY, ""))
        return dict(found) if "fingerprint" in found else {}
    return {}


def answers_of(plan: Plan) -> tuple[str, ...] | None:
    """Return the answers that reports are about by place, or None for numbers and for texts."""
    labels = plan.question.labels
    return None if plan.question.has_rounds or len(labels) < 2 else labels


def _answers_in(path: Path, facts: dict[str, Any]) -> Any:
    """Return a digest of the answers that a Parquet file names, or None."""
    dtype = tables.scan(path).collect_schema().get(COLUMN)
    return _digest(dtype.categories) if isinstance(dtype, pl.Enum) else facts.get("answers")


def _digest(labels: Iterable[str]) -> str:
    """Return a digest of texts in their order."""
    return hashlib.sha256(json.dumps(list(labels)).encode()).hexdigest()[:32]


def as_encoded(source: tables.Source, question: Any, randomizer: Any) -> "pl.Expr":
    """Return another program's reports in this program's encoding; invalid ones become null."""
    if randomizer.name == "k-rr":
        return source.label().cast(pl.Enum(list(question.labels)), strict=False)
    drawn = to_frame(randomizer.randomize(question.no_values, Entropy.from_seed(0)))
    dtype, held = drawn.schema[COLUMN], source.dtypes[0]
    column = source.label() if held == pl.String else pl.col(COLUMN)
    if held == pl.Binary and isinstance(dtype, pl.Array):
        return pl.when(column.bin.size() == randomizer.num_report_bytes).then(column)
    whole = column.cast(dtype, strict=False)
    if dtype.is_integer() and (held.is_float() or held.is_decimal()):
        return pl.when(whole.cast(held, strict=False) == column).then(whole)  # no fractions
    return whole
