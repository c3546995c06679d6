"""Results on disk, all or nothing: a folder appears complete, or not at all.

All files are written into a hidden folder beside the target, which is renamed at the very end. Any
failure before that, including Ctrl-C and a full disk, removes it.
"""

import csv
import errno
import json
import math
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shuffledp._version import __version__
from shuffledp.collection.result import Result
from shuffledp.core.display import visible
from shuffledp.core.errors import OutputError
from shuffledp.core.files import hidden_beside, whole_folder
from shuffledp.core.lazy import pl

ESTIMATES_FILE = "estimates.csv"
PRIVACY_FILE = "privacy.json"
REPORT_FILE = "report.html"
REPORTS_FILE = "reports.parquet"
ROWS_STEM = "rows"

# Texts that a spreadsheet takes for a formula, and numbers, which are none.
_FORMULA_START = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?\d[\d.,]*([eE][+-]?\d+)?$"

#: Lists the files of a results folder: only listed, unchanged files are ever removed.
MARKER_FILE = ".shuffledp-results.json"


@contextmanager
def results_folder(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Iterator[Path]:
    """Yield a hidden folder, which becomes ``path`` if the block ends without an error.

    ``path`` must not exist, or be empty, or with ``overwrite`` hold only unchanged earlier results:
    the files that `MARKER_FILE` lists. None of the ``inputs``, which the block reads, may lie below
    it.
    """
    target = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow a link
    _require_free(target, overwrite=overwrite)
    if target.exists() and target.samefile("."):
        raise OutputError(
            f"{target} is the current folder, which cannot be replaced: choose a new one in it, "
            "such as results"
        )
    for each in inputs:
        if Path(each).resolve().is_relative_to(target.resolve()):
            raise OutputError(f"{each} is read and lies below {target}: choose another folder")
    # On disk before anybody relies on it: a shuffler deletes what an analyzer has counted.
    with writing(target), whole_folder(target, move=_move_into_place) as partial:
        yield partial
        _require_free(target, overwrite=overwrite)  # it may have appeared meanwhile
        marker = json_text({"files": _files(partial), "shuffledp_version": __version__})
        (partial / MARKER_FILE).write_text(marker + "\n", encoding="utf-8")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a hidden name, which becomes the file ``path`` if the block ends without an error."""
    target = Path(path)
    partial = hidden_beside(target)
    with writing(target):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn errors while writing to ``target`` into an `OutputError` of one line.

    The error names the path that the user gave, not a file inside that the user never sees.
    """
    try:
        yield
    except (OutputError, OSError, pl.exceptions.PolarsError) as error:
        cause = error.__cause__ if isinstance(error, OutputError) else error
        no_space = os.strerror(errno.ENOSPC) in str(error) or "IO error" in str(error)
        if isinstance(error, pl.exceptions.PolarsError) and no_space:
            cause = OSError(str(error).rpartition("error: ")[2].splitlines()[0])
        if not isinstance(cause, OSError):
            raise
        reason = cause.strerror or str(cause)
        if os.strerror(errno.ENOSPC) in reason:
            reason += "; free some space or choose another folder"
        raise OutputError(f"cannot write {target}: {reason}") from cause


def write_results(
    result: Result,
    folder: Path,
    *,
    parameters: Mapping[str, object] | None = None,
    findings: Mapping[str, object] | None = None,
) -> None:
    """Write ``estimates.csv``, ``privacy.json`` and ``report.html`` into a folder.

    ``parameters`` (the options of the run) and ``findings`` go into ``privacy.json``.
    """
    record: Any = {
        **result.to_json_dict(),
        **(findings or {}),
        "target": {"epsilon": result.target_epsilon, "delta": result.target_delta},
        "domain": list(result.domain),
        "about": result.about.to_json_dict(),
        "parameters": dict(parameters or {}),
        "shuffledp_version": __version__,
    }
    with writing(folder):
        write_rows(record["estimates"], folder / ESTIMATES_FILE, names=tuple(result.columns()))
        text = json_text(record, indent=2) + "\n"
        (folder / PRIVACY_FILE).write_text(text, encoding="utf-8")
        result.report(folder / REPORT_FILE)


def write_rows(
    rows: Iterable[Mapping[str, object]], path: Path, *, names: tuple[str, ...] = ()
) -> None:
    """Write rows, all with the same keys, as a CSV file; floats in full precision, None as nothing.

    The keys are ``names`` if there are no rows.

    A text that a spreadsheet would take for a formula gets an apostrophe in front, and control
    characters are escaped: labels may come from anybody.
    """
    lines = [{name: _cell(value) for name, value in row.items()} for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, fieldnames=list(lines[0] if lines else names), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(lines)


def _cell(value: object) -> object:
    """Return a value that is safe in a spreadsheet."""
    if not isinstance(value, str):
        return None if isinstance(value, float) and math.isnan(value) else value
    is_formula = re.search(_FORMULA_START, value) and not re.search(_NUMBER, value)
    return ("'" if is_formula else "") + visible(value)


def harmless_text(columns: "pl.Expr") -> "pl.Expr":
    """Return columns of text, for a table as CSV, in which no spreadsheet finds a formula."""
    text = columns.cast(pl.String)
    is_formula = text.str.contains(_FORMULA_START) & ~text.str.contains(_NUMBER)
    return pl.when(is_formula).then("'" + text).otherwise(text).name.keep()


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return valid JSON; infinities and NaN, which JSON lacks, become ``null``."""
    finite = json.loads(json.dumps(value, default=dict), parse_constant=lambda _: None)
    return json.dumps(finite, indent=indent, ensure_ascii=False, allow_nan=False)


def _require_free(target: Path, *, overwrite: bool) -> None:
    """Raise unless ``target`` is absent, an empty folder, or may be replaced."""
    if not os.path.lexists(target):
        return
    if not target.is_dir() or target.is_symlink():
        raise OutputError(f"{target} exists and is no folder: choose another name")
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise OutputError(
            f"folder {target} exists and is not empty: choose another, or pass overwrite=True"
        )
    _require_own(target, target)


def _require_own(folder: Path, named: Path) -> list[str]:
    """Return the files of earlier results, unchanged, and the marker; raise at any other file."""
    try:
        written = dict(json.loads((folder / MARKER_FILE).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise OutputError(
            f"folder {named} is not overwritten, as it has no {MARKER_FILE}: choose another"
        ) from None
    found = _files(folder)
    for name, state in sorted(found.items()):
        if name != MARKER_FILE and written.get(name) != state:
            raise OutputError(
                f"folder {named} is not overwritten: {name!r} is no result, or was changed: "
                "choose another"
            )
    return list(found)  # not all that are listed: the marker may be anybody's


def _files(folder: Path) -> dict[str, list[int]]:
    """Return size and time of last change of all entries below a folder except folders."""
    return {
        entry.relative_to(folder).as_posix(): [state.st_size, state.st_mtime_ns]
        for entry in folder.rglob("*")
        if entry.is_symlink() or not entry.is_dir()
        for state in [entry.lstat()]
    }


def _move_into_place(partial: Path, target: Path) -> None:
    """Rename ``partial`` to ``target``; an older folder is removed once the new one is there."""
    if not target.exists():
        partial.rename(target)
        return
    old = target.parent / f".{target.name}.replaced-{uuid.uuid4().hex[:12]}"
    target.rename(old)
    try:
        # No other process writes under this name: files checked here are the ones removed below.
        own = _require_own(old, target) if any(old.iterdir()) else []
        partial.rename(target)
    except BaseException:
        old.rename(target)
        raise
    _remove(old, own)


def _remove(folder: Path, files: Iterable[str]) -> None:
    """Remove files and then empty folders; files that appeared meanwhile stay."""
    with suppress(OSError):
        for name in files:
            (folder / name).unlink(missing_ok=True)
        for entry in sorted(folder.rglob("*"), reverse=True):
            entry.rmdir()
        folder.rmdir()
