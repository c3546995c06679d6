"""Files that are on disk when a function returns, not on their way there."""

import csv
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from shuffledp.core.errors import DataError, telling


def sync_folder(folder: Path) -> None:
    """Force a renaming in a folder, or what a file holds, to disk, where that can be opened."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes, *, mode: int) -> None:
    """Write a new file, which must not exist; on disk when this returns, removed if it fails."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file, or replace one and keep its mode: all or nothing, on disk when this returns.

    One process at a time may write it: the file of a killed one is removed.
    """
    partial = path.with_name(f".{path.name}.new")
    partial.unlink(missing_ok=True)
    kept = path.stat().st_mode & 0o777 if path.exists() else None
    try:
        # Never readable by more people than the old file, not even for a moment.
        write_new(partial, data, mode=mode if kept is None else kept)
        if kept is not None:
            partial.chmod(kept)
        partial.replace(path)
    finally:  # no temporary file is left, whatever happened
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def hidden_beside(path: Path) -> Path:
    """Return a fresh hidden name in the folder of ``path``, for what is not whole yet."""
    return path.with_name(f".{path.name}.partial-{uuid.uuid4().hex[:12]}")


@contextmanager
def whole_folder(
    target: Path, *, move: Callable[[Path, Path], Any] = Path.rename
) -> Iterator[Path]:
    """Yield a hidden folder, which becomes ``target``, on disk, unless the block fails."""
    partial = hidden_beside(target)
    try:
        partial.mkdir(parents=True)  # inside `try`: Ctrl-C may come at once
        yield partial
        for entry in (*partial.rglob("*"), partial):
            sync_folder(entry)
        move(partial, target)
        with suppress(PermissionError):  # of a folder that one may write into, and not read
            sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def text_file(path: Path, *, newline: str | None = None) -> Iterator[TextIO]:
    """Open a text in UTF-8, with or without its mark; raise `DataError` if it cannot be read."""
    try:
        with (
            telling(f"read {path}", (OSError, csv.Error), kind=DataError),
            path.open(encoding="utf-8-sig", newline=newline) as file,
        ):
            yield file
    except UnicodeDecodeError:
        raise DataError(f"cannot read {path}: it is not text in UTF-8") from None


def require_file(path: Path) -> None:
    """Raise `DataError` unless there is a file of that name."""
    if not path.is_file():
        what = "folder" if path.is_dir() else "pipe or a device: copy what it holds to a file"
        reason = f"it is a {what}" if path.exists() else "there is no such file"
        raise DataError(f"cannot read {path}: {reason}")
