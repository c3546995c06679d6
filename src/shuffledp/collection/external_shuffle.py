"""An exactly uniform permutation of more rows than fit in memory, through one scratch file.

The bucket method, with its proof in `shuffledp.collection.uniform_shuffler`: the bucket of each
row is independent and uniform, whatever its batch, and the sizes of the blocks are independent of
the permutation.
"""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from os import PathLike
from typing import IO, Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shuffledp.collection.uniform_shuffler import (
    MAX_BUCKETS,
    UniformShuffler,
    as_bytes,
    split_into_buckets,
)
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutputError, ShuffledpError

# The process then stays below 250 MB in all, with the interpreter and compiled code.
DEFAULT_MEMORY_LIMIT_BYTES = 48 << 20


class ExternalShuffle(AbstractContextManager["ExternalShuffle"]):
    """Takes rows in pieces, then gives them back in uniformly random order, in blocks.

    Up to ``memory_limit_bytes`` (rows and bucket indices; 48 MiB) no file is made. Beyond, each
    batch is split into 256 buckets, which are appended to a scratch file; in the end each bucket is
    collected from all batches and permuted in memory, twice a 256th of all rows. The scratch file
    in ``directory`` has no name, so that a killed process leaves no file that could be opened; the
    blocks of the disk are not erased: any party that can read the raw disk belongs to the trusted
    shuffler. Not thread-safe.
    """

    def __init__(
        self,
        *,
        dtype: DTypeLike,
        row_shape: tuple[int, ...] = (),
        entropy: Entropy,
        directory: str | PathLike[str] | None = None,
        memory_limit_bytes: SupportsIndex = DEFAULT_MEMORY_LIMIT_BYTES,
    ) -> None:
        one_row = np.empty((1, *row_shape), dtype=dtype)
        self._row_bytes = one_row.nbytes
        # Bytes of memory a row: two copies and one byte of bucket index.
        held_bytes = 2 * self._row_bytes + 1
        limit = require_at_least("memory_limit_bytes", memory_limit_bytes, 2 * held_bytes)
        self._entropy = entropy
        self._directory = directory
        # Memory is used only as rows come in.
        self._batch: NDArray[Any] = np.empty((limit // held_bytes, *row_shape), dtype=dtype)
        self._split: NDArray[Any] = np.empty_like(self._batch)
        self._num_held = 0
        self._num_rows = 0
        self._file: IO[bytes] | None = None
        #: Size of the scratch file; 0 while all rows are in memory.
        self.scratch_bytes = 0
        # For each batch, the rows of the file at which its buckets start, and the last one ends.
        self._batch_offsets: list[NDArray[np.int64]] = []
        self._is_taking_rows = True

    def add(self, rows: NDArray[Any]) -> None:
        """Take a copy of rows of the declared type and shape; `OutputError` if the disk is full."""
        if not self._is_taking_rows:
            raise ShuffledpError(
                "rows were added after the shuffled blocks were asked for: add all rows first"
            )
        taken = 0
        while taken < len(rows):
            if self._num_held == len(self._batch):
                self._spill()
            piece = rows[taken : taken + len(self._batch) - self._num_held]
            self._batch[self._num_held : self._num_held + len(piece)] = piece
            self._num_held += len(piece)
            self._num_rows += len(piece)
            taken += len(piece)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Return the shuffled rows in blocks; only once, since twice would be two releases."""
        if not self._is_taking_rows:
            raise ShuffledpError(
                "the shuffled blocks were asked for twice, which is a second release: keep them"
            )
        self._is_taking_rows = False
        return self._blocks()

    def __exit__(self, *error: object) -> None:
        """Free the memory and the scratch file, and lose their contents."""
        self._is_taking_rows = False
        self._batch = self._split = self._batch[:0].copy()
        self._num_held = 0
        if self._file is not None:
            with suppress(OSError):  # of a write that failed before, and says so itself
                self._file.close()

    def _spill(self) -> None:
        """Split the batch into buckets and append them to the scratch file, made if needed."""
        batch, split = self._batch[: self._num_held], self._split[: self._num_held]
        offsets = split_into_buckets(batch, split, MAX_BUCKETS, self._entropy)
        self._batch_offsets.append(offsets + self.scratch_bytes // self._row_bytes)
        needed = self.scratch_bytes + split.nbytes
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115  # see `__exit__`
            self._file.write(as_bytes(split).data)
            self._file.flush()
        except OSError as error:
            folder = tempfile.gettempdir() if self._directory is None else self._directory
            raise OutputError(
                f"the scratch file of the shuffle in {folder} needs {needed} bytes for the first "
                f"{self._num_rows} rows, but {error.strerror or error}: make room there, or give "
                "another folder as directory"
            ) from error
        self.scratch_bytes = needed
        self._num_held = 0

    def _blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the shuffled blocks."""
        if self._file is None:
            rows = self._batch[: self._num_held]
            if rows.size:
                yield UniformShuffler().shuffle(rows, self._entropy)
            return
        self._spill()
        self._batch = self._split = self._batch[:0].copy()
        offsets = np.stack(self._batch_offsets)
        for bucket in np.flatnonzero(np.diff(offsets).sum(axis=0)):
            extents = offsets[:, bucket : bucket + 2].tolist()
            rows = self._read(self._file, extents)
            yield UniformShuffler().shuffle(rows, self._entropy)

    def _read(self, file: Any, extents: list[list[int]]) -> NDArray[Any]:
        """Return the rows of the scratch file between the given row numbers."""
        size = sum(end - start for start, end in extents)
        rows = np.empty((size, *self._batch.shape[1:]), dtype=self._batch.dtype)
        done = 0
        for start, end in extents:
            part = as_bytes(rows[done : done + end - start])
            file.seek(start * self._row_bytes)
            if file.readinto(part.data) < part.size:
                raise OutputError(
                    f"the scratch file ends before row {end}, though it was written: check the disk"
                )
            done += end - start
        return rows
