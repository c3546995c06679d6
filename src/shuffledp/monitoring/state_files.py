"""State files: all that a simulation needs to go on where it stopped, in one file.

Layout: a line that names the format, its version, the length of a header in JSON, the header, the
arrays one after the other, and the SHA-256 of everything before. Integers are little-endian. A new
state is written under a random name that did not exist, forced to disk, and renamed over the old
one, so the file is complete at every moment.

The checksum finds damage, not malice. The file holds the values and the secret keys of all
simulated users, as private as the table of histories itself: nobody but its owner may read it.
"""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.output import writing
from shuffledp.core.durable_files import sync_folder
from shuffledp.core.errors import DataError, OutputError

if TYPE_CHECKING:
    import polars as pl


_MAGIC: Final = b"shuffledp monitoring state\n"
_VERSION: Final = 2
_SUFFIX: Final = ".new"
_CHECKSUM_BYTES: Final = 32
_NUMBER_BYTES: Final = 8
_TYPES: Final = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f8"])
_USER_NUMBERS, _USER_TEXT, _USER_ENDS = "user/numbers", "user/text", "user/ends"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorState:
    """Where a simulation is, between two periods."""

    # What must be the same when it goes on; texts, numbers and lists.
    settings: Mapping[str, object]
    seed: int | None  # The seed of a reproducible simulation
    next_period: int  # The period that comes next, in [1, d + 1]
    digest: bytes  # Of all changes up to then; see ``histories.period_digest``
    # For users who began together, in order: the first one's number and the period in which
    # they began.
    groups: tuple[tuple[int, int], ...]
    user_ids: "pl.Series" = field(repr=False)  # Identifiers by number, whole numbers or text
    fleet: Mapping[str, NDArray[Any]] = field(repr=False)  # What clients and server remember
    server: Mapping[str, NDArray[Any]] = field(repr=False)  # What clients and server remember


def write_state(state: MonitorState, path: str | os.PathLike[str]) -> None:
    """Put a state in the place of a file, all or nothing, on disk before this returns."""
    target = Path(path)
    arrays = {
        **_id_arrays(state.user_ids),
        **{f"fleet/{name}": array for name, array in state.fleet.items()},
        **{f"server/{name}": array for name, array in state.server.items()},
    }
    kept = {name: _little_endian(array) for name, array in arrays.items()}
    header = {
        "settings": dict(state.settings),
        "seed": state.seed,
        "next_period": state.next_period,
        "digest": state.digest.hex(),
        "groups": [list(group) for group in state.groups],
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in kept.items()],
    }
    text = json.dumps(header, allow_nan=False).encode()
    start = _MAGIC + _number(_VERSION) + _number(len(text)) + text
    with _writing_state(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        checksum = hashlib.sha256(start)
        handle, name = _new_file(target)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(start)
                for array in kept.values():
                    data = array.reshape(-1).view(np.uint8).data
                    checksum.update(data)
                    file.write(data)
                file.write(checksum.digest())
                file.flush()
                os.fsync(file.fileno())
            name.replace(target)
        except BaseException:
            name.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)


def require_place(path: str | os.PathLike[str]) -> None:
    """Raise `OutputError` if no state can be written there: before a simulation, not after it."""
    target = Path(path)
    with _writing_state(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f".{escape(target.name)}.*{_SUFFIX}"):
            left.unlink(missing_ok=True)  # of a program that was killed
        handle, name = _new_file(target)
        os.close(handle)
        name.unlink()


def read_state(path: str | os.PathLike[str]) -> MonitorState:
    """Read a state that `write_state` wrote, or raise `DataError`."""
    source = Path(path)
    try:
        data = source.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"there is no state file {source}: start without resume (--resume), which writes one"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {source}: {error.strerror or error}") from None
    start = len(_MAGIC) + 2 * _NUMBER_BYTES
    if not data.startswith(_MAGIC[: max(len(data), 1)]):
        raise DataError(f"{source} is no state file of a monitoring simulation: give its name")
    if len(data) < start + _CHECKSUM_BYTES:
        raise _damaged(source, "it is cut short")
    version = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + _NUMBER_BYTES], "little")
    if version != _VERSION:
        raise DataError(
            f"{source} is a state file of version {version}, and this shuffledp reads version "
            f"{_VERSION}: go on with the shuffledp that wrote it, or start anew"
        )
    view = memoryview(data)
    if hashlib.sha256(view[:-_CHECKSUM_BYTES]).digest() != data[-_CHECKSUM_BYTES:]:
        raise _damaged(source, "it is cut short or damaged, for its checksum does not match")
    length = int.from_bytes(data[start - _NUMBER_BYTES : start], "little")
    try:
        header = json.loads(data[start : start + length])
        return _state(header, view[start + length : -_CHECKSUM_BYTES])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise _damaged(source, "its checksum matches, but not its contents") from None


def _state(header: Mapping[str, Any], data: memoryview) -> MonitorState:
    """Return the state that a header describes."""
    parts: dict[str, dict[str, NDArray[Any]]] = {"user": {}, "fleet": {}, "server": {}}
    offset = 0
    for name, dtype, shape in header["arrays"]:
        if dtype not in _TYPES:
            raise ValueError(dtype)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        array = np.frombuffer(data[offset : offset + size], dtype=dtype).reshape(shape)
        offset += size
        part, _, inner = name.partition("/")
        parts[part][inner] = array
    if offset != len(data):
        raise ValueError(offset)
    seed = header["seed"]
    return MonitorState(
        settings=dict(header["settings"]),
        seed=None if seed is None else int(seed),
        next_period=int(header["next_period"]),
        digest=bytes.fromhex(header["digest"]),
        groups=tuple((int(first), int(period)) for first, period in header["groups"]),
        user_ids=_ids(parts["user"]),
        fleet=parts["fleet"],
        server=parts["server"],
    )


def _new_file(target: Path) -> tuple[int, Path]:
    """Return a new file, for its owner only, that is renamed when a state is in it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=_SUFFIX)
    return handle, Path(name)


@contextmanager
def _writing_state(target: Path) -> Iterator[None]:
    """Name the state file where it cannot be written, also while a folder of results is made."""
    try:
        with writing(target):
            yield
    except OutputError as error:
        raise OutputError(str(error)) from None  # with a cause it would be put down to the folder


def _id_arrays(ids: "pl.Series") -> dict[str, NDArray[Any]]:
    """Return identifiers as arrays: numbers, or all text and where each one's bytes end."""
    if ids.dtype.is_integer():
        return {_USER_NUMBERS: ids.to_numpy()}
    text = "".join(ids.to_list()).encode()
    return {
        _USER_TEXT: np.frombuffer(text, dtype=np.uint8),
        _USER_ENDS: np.cumsum(ids.str.len_bytes().to_numpy().astype(np.int64)),
    }


def _ids(arrays: Mapping[str, NDArray[Any]]) -> "pl.Series":
    """Return the identifiers that `_id_arrays` wrote."""
    import polars as pl

    if "numbers" in arrays:
        return pl.Series("user", arrays["numbers"], dtype=pl.Int64)
    text, ends = arrays["text"].tobytes(), arrays["ends"].tolist()
    names = [text[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]
    return pl.Series("user", names, dtype=pl.String)


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is written."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def _number(value: int) -> bytes:
    """Return a number as eight bytes."""
    return value.to_bytes(_NUMBER_BYTES, "little")


def _damaged(source: Path, what: str) -> DataError:
    """Return the error for a file that cannot be used."""
    return DataError(
        f"cannot go on from {source}: {what}; restore a copy, or start anew without resume "
        "(--resume)"
    )
