"""Ledgers in files: reading, spending and writing are one step, also with concurrent programs.

A spender holds a lock on a file of its own beside the ledger, so that nobody else spends between
reading and writing; the operating system releases it if the program is killed. The new ledger is
written under another name, forced to disk, and renamed over the old one. So the file is complete at
every moment, and a spending is on disk before `spend` returns. Publish after that, never before.

A checksum finds damage, such as a file cut short or edited by hand. It is no signature: a program
that may write the file may also write a new checksum.
"""

import contextlib
import errno
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shuffledp.accounting.ledger import Ledger
from shuffledp.composition.composition import Composable
from shuffledp.core.errors import DataError, OutputError, ParameterError
from shuffledp.core.files import replace_file, text_file

# A ledger of a million entries stays below; a larger file is no ledger.
_MOST_BYTES = 1_000_000_000

_LOCK_SECONDS, _POLL_SECONDS = 60.0, 0.01
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag


def save_ledger(ledger: Ledger, path: str | os.PathLike[str]) -> None:
    """Write a ledger; never lose the spendings of an earlier one in that file.

    Parameters
    ----------
    ledger : Ledger
        Ledger to write.
    path : str or path-like
        A new file, or one with a ledger of the same budget whose entries are the first entries of
        this one.

    Raises
    ------
    OutputError
        If the file holds anything else, or cannot be written.
    DataError
        If the file holds a damaged ledger.
    """
    target = _real(path)
    with _locked(target):
        if target.exists():
            _require_continuation(_read(target), ledger, target)
        _replace(target, ledger)


def open_ledger(path: str | os.PathLike[str]) -> Ledger:
    """Read a ledger from a file.

    Parameters
    ----------
    path : str or path-like
        A file that `save_ledger` wrote.

    Returns
    -------
    Ledger
        As it was saved.

    Raises
    ------
    DataError
        If there is no ledger, or it is damaged, changed by hand, or of another version.

    Examples
    --------
    >>> import tempfile
    >>> from shuffledp.accounting import Ledger, StatedRelease
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_ledger(Ledger(epsilon=1.0, delta=1e-6), f"{folder}/ledger.json")
    ...     _ = spend(f"{folder}/ledger.json", StatedRelease(epsilon=0.5), note="in May")
    ...     len(open_ledger(f"{folder}/ledger.json").entries)
    1
    """
    return _read(_real(path))


def spend(
    path: str | os.PathLike[str], releases: Composable, note: str = "", *, key: str = ""
) -> Ledger:
    """Spend from the ledger in a file; the spending is on disk when this returns.

    Parameters
    ----------
    path : str or path-like
        A file that `save_ledger` wrote.
    releases : release or composition
        Releases about to be published.
    note : str
        A remark for people.
    key : str
        Unique name, such as a date: a spending that is repeated under the same key, by a program
        that was stopped and started anew, counts once.

    Returns
    -------
    Ledger
        With the new entry.

    Raises
    ------
    BudgetError
        If the budget does not cover it; the file stays as it was.
    DataError
        If the file holds no sound ledger.
    OutputError
        If the file cannot be written; then nothing was spent.
    """
    target = _real(path)
    if not target.exists():
        raise _no_file(target)
    with _locked(target):
        before = _read(target)
        if target.stat().st_nlink > 1:  # who spends under another name would not see it
            what = f"{target} has another name (a hard link), which would keep the old ledger"
            raise OutputError(f"{what}, so nothing was spent: remove one, or make a symbolic link")
        after = before.spend(releases, note=note, key=key)
        if after is not before:
            _replace(target, after)
    return after


def _real(path: str | os.PathLike[str]) -> Path:
    """Return the file behind any links, which is the one to be replaced and locked."""
    return Path(os.path.realpath(path))


def _no_file(target: Path) -> DataError:
    return DataError(
        f"cannot read {target}: there is no such file; save_ledger(Ledger(...), path) makes one"
    )


def _read(target: Path) -> Ledger:
    """Read and check a ledger."""
    if not target.exists():
        raise _no_file(target)
    with text_file(target) as file:
        if target.stat().st_size > _MOST_BYTES:
            raise DataError(f"{target} is no ledger: it is larger than 1 GB")
        text = file.read()
    try:
        written = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise DataError(
            f"{target} is no ledger, or was cut short: restore it from a backup"
        ) from None
    checksum = written.pop("checksum", None) if isinstance(written, dict) else None
    try:
        ledger = Ledger.from_json_dict(written)
    except ParameterError as error:
        raise DataError(f"cannot use {target}: {error}") from None
    if checksum != _checksum(written):
        raise DataError(
            f"{target} was changed by something else than shuffledp (its checksum does not match): "
            "restore it from a backup"
        )
    return ledger


def _refused(constant: str) -> float:
    """Refuse NaN and infinities, which are no JSON."""
    raise ValueError(constant)


def _checksum(written: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON object, whatever its layout."""
    text = json.dumps(written, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _require_continuation(old: Ledger, new: Ledger, target: Path) -> None:
    """Raise unless ``new`` is ``old`` with further entries."""
    # Until the first spending nothing has been seen, and any order will do.
    budget_of = [
        (each.epsilon, each.delta, each.adaptive, old.entries and each.order) for each in (old, new)
    ]
    if budget_of[0] != budget_of[1] or new.entries[: len(old.entries)] != old.entries:
        raise OutputError(
            f"{target} holds another ledger, with {len(old.entries)} entries, and is not "
            "overwritten: choose another file, or spend from the one that is there"
        )


def _replace(target: Path, ledger: Ledger) -> None:
    """Put a ledger in the place of the file, all or nothing, and on disk before this returns."""
    written = ledger.to_json_dict()
    text = json.dumps({**written, "checksum": _checksum(written)}, indent=1, allow_nan=False)
    try:
        replace_file(target, f"{text}\n".encode(), mode=0o666)
    except OSError as error:
        raise _cannot_write(target, error) from error


def _cannot_write(target: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        reason += "; free some space"
    return OutputError(f"cannot write {target}: {reason}")


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the ledger's lock; give up after a while, for its holder may have been stopped.

    The lock is on a file beside the ledger that is never replaced or removed: a lock on the ledger
    itself would stay with the old file when the new one is renamed over it.
    """
    try:
        handle = os.open(f"{target}.lock", os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
    except OSError as error:
        raise _cannot_write(target, error) from error
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _took(handle, target):
            if time.monotonic() > deadline:
                raise OutputError(
                    f"{target} is being spent from by another program for over {_LOCK_SECONDS:g} "
                    f"seconds, so nothing was spent: see who holds {target}.lock, and try again"
                )
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            _lock(handle, hold=False)
    finally:
        os.close(handle)


def _took(handle: int, target: Path) -> bool:
    """Lock the open file of a ledger's lock; return False if another program holds it."""
    try:
        _lock(handle, hold=True)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise _cannot_write(target, error) from error  # some network file systems have no locks
        return False
    return True


def _lock(handle: int, *, hold: bool) -> None:
    """Lock or unlock an open file, at once or not at all, on this system."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK if hold else msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if hold else fcntl.LOCK_UN)
