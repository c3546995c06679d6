"""Public data sets: found in a folder of the user's, or downloaded into it and checked.

Nothing is downloaded unless the user asks for it. What arrives is checked against a SHA-256 that is
written in this package before it gets its name, so that a folder never holds half a file or another
edition of the data.
"""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from shuffledp.collection.output import whole_file
from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress

_TIMEOUT_SECONDS = 30.0
_BLOCK_BYTES = 1 << 16


def unchanged(content: bytes) -> bytes:
    """Return a file's bytes as they came."""
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFile:
    """A file that is public elsewhere, and what it must be.

    Parameters
    ----------
    name : str
        What it is called in the user's folder.
    other_names : sequence of str
        Further names under which people have the same data.
    url : str
        Where it is public, best at an address whose content never changes.
    num_bytes : int
        Its size there.
    sha256 : str
        Digest of what is kept, in hexadecimal.
    licence : str
        Under which terms, and whose it is.
    kept_form : callable
        What is kept of the bytes that arrive; the digest is of the result.
    """

    name: str
    other_names: tuple[str, ...] = ()
    url: str
    num_bytes: int
    sha256: str
    licence: str
    kept_form: Callable[[bytes], bytes] = unchanged


def find_public_file(wanted: PublicFile, folder: str | os.PathLike[str]) -> Path:
    """Return where a data set's file lies in a folder.

    Parameters
    ----------
    wanted : PublicFile
        What to look for.
    folder : str or path-like
        Where.

    Returns
    -------
    Path
        The first of its names that exists. The content is not compared with the digest, so that
        other editions can be used, too.

    Raises
    ------
    DataError
        If there is none; the message says from where it can be had.
    """
    names = (wanted.name, *wanted.other_names)
    for name in names:
        if (path := Path(folder) / name).is_file():
            return path
    raise DataError(
        f"{folder} has no {' or '.join(names)}: download it with --fetch, or from {wanted.url} "
        f"({wanted.licence})"
    )


def fetch_public_file(
    wanted: PublicFile, folder: str | os.PathLike[str], *, on_progress: Progress | None = None
) -> Path:
    """Return where a data set's file lies in a folder; download it if it is not there.

    Parameters
    ----------
    wanted : PublicFile
        What to get.
    folder : str or path-like
        Where to keep it; made if need be.
    on_progress : callable, optional
        Called with the file's name, the bytes so far and the bytes in total.

    Returns
    -------
    Path
        One of its names in the folder. A file that was there before is taken as it is.

    Raises
    ------
    DataError
        If it cannot be downloaded, or is not what it should be; then nothing is left behind.
    OutputError
        If the folder cannot be written to.
    """
    try:
        return find_public_file(wanted, folder)
    except DataError:
        pass
    kept = _checked(wanted, _download(wanted, on_progress))
    target = Path(folder) / wanted.name
    with whole_file(target) as partial:
        partial.write_bytes(kept)
    return target


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def first_line(path: Path) -> str:
    """Return the first line of a text file, without its end."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.readline().strip()


def require_header(path: Path, columns: Sequence[str]) -> None:
    """Raise `DataError` unless the first line of a CSV file names these columns, among others."""
    found = [name.strip() for name in first_line(path).split(",")]
    missing = [name for name in columns if name not in found]
    if missing:
        raise DataError(
            f"{path.name} has no column {missing[0]!r} (its columns: {', '.join(found)[:200]}): "
            "is it another file?"
        )


def _download(wanted: PublicFile, on_progress: Progress | None) -> bytes:
    """Return the bytes at the file's address."""
    if not wanted.url.startswith(("https://", "http://127.0.0.1")):
        raise DataError(
            f"will not download {wanted.name} from {wanted.url}: it is no https address"
        )
    try:
        # The address is a constant of this package, checked above.
        with urllib.request.urlopen(  # noqa: S310
            wanted.url, timeout=_TIMEOUT_SECONDS
        ) as response:
            return _read(response, wanted, on_progress)
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answers {error.code} {error.reason}"
    except urllib.error.URLError as error:
        reason = str(error.reason)
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
    raise DataError(
        f"cannot download {wanted.name} from {wanted.url}: {reason}; without a network, put the "
        "file into the folder yourself"
    )


def _read(response: IO[bytes], wanted: PublicFile, on_progress: Progress | None) -> bytes:
    """Read at most one byte more than there should be, so that no server fills the memory."""
    content = bytearray()
    while len(content) <= wanted.num_bytes:
        block = response.read(min(_BLOCK_BYTES, wanted.num_bytes + 1 - len(content)))
        if not block:
            break
        content += block
        if on_progress is not None:
            on_progress(f"downloading {wanted.name}", len(content), wanted.num_bytes)
    return bytes(content)


def _checked(wanted: PublicFile, content: bytes) -> bytes:
    """Return what is kept of the bytes that arrived, or raise."""
    if len(content) < wanted.num_bytes:
        raise DataError(
            f"{wanted.url} gave {len(content):,} bytes of {wanted.num_bytes:,}: the download was "
            "cut short; try again"
        )
    try:
        kept = wanted.kept_form(content)
    except ValueError:
        kept = b""
    found = hashlib.sha256(kept).hexdigest()
    if len(content) > wanted.num_bytes or found != wanted.sha256:
        raise DataError(
            f"{wanted.url} gives another file than the one expected (SHA-256 {found[:12]}... "
            f"instead of {wanted.sha256[:12]}...): nothing was kept"
        )
    return kept
