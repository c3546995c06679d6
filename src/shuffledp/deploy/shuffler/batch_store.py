"""Where batches lie until the analyzer has them: files of a folder, or objects as S3 has them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shuffledp.core.durable_files import sync_folder
from shuffledp.core.errors import MissingPackageError, OutputError
from shuffledp.deploy.database import write_new


def open_batches(folder: Path, url: str | None, *, task_id: bytes) -> "BatchFolder | BatchObjects":
    """Return the folder's files, or a task's objects below a URL such as s3://bucket/prefix.

    Both keep batches under their numbers; complete, or not at all.
    """
    if url is None:
        return BatchFolder(folder)
    return BatchObjects(f"{url.rstrip('/')}/{task_id.hex()}")


def _name(number: int) -> str:
    """Return what a batch is called."""
    return f"batch-{number:06d}.sdp"


class BatchFolder:
    """A file a batch, readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, number: int, data: bytes) -> None:
        """Keep a batch: its file has that name once all of it is on disk."""
        target = self._folder / _name(number)
        partial = target.with_suffix(".part")
        with suppress(FileNotFoundError):
            partial.unlink()
        try:
            write_new(partial, data, mode=0o600)
            os.replace(partial, target)  # noqa: PTH105  # beside the other calls of the system
            sync_folder(self._folder)
        except OSError as error:
            raise OutputError(f"cannot write {target}: {error.strerror or error}") from None

    def read(self, number: int) -> bytes:
        """Return a batch."""
        path = self._folder / _name(number)
        try:
            return path.read_bytes()
        except OSError as error:
            raise OutputError(f"cannot read {path}: {error.strerror or error}") from None

    def delete(self, number: int) -> None:
        """Delete a batch; nothing happens if there is none."""
        (self._folder / _name(number)).unlink(missing_ok=True)
        sync_folder(self._folder)


class BatchObjects:
    """An object a batch; credentials come from the environment, as S3's own tools take them."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                "batches as objects need obstore: run pip install 'shuffledp[s3]'", name=error.name
            ) from None
        self._api = obstore
        with _told("open"):
            self._store = obstore.store.from_url(url)

    def write(self, number: int, data: bytes) -> None:
        """Keep a batch; two that write it write the same bytes."""
        with _told("write"):
            self._api.put(self._store, _name(number), data)

    def read(self, number: int) -> bytes:
        """Return a batch."""
        with _told("read"):
            return bytes(self._api.get(self._store, _name(number)).bytes())

    def delete(self, number: int) -> None:
        """Delete a batch; nothing happens if there is none."""
        with _told("delete"), suppress(FileNotFoundError):
            self._api.delete(self._store, _name(number))


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn what goes wrong with objects into one line."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:  # it raises both its own and Python's
        reason = str(error).splitlines()[0]
        raise OutputError(f"cannot {what} a batch: {reason}") from None
