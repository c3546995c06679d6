"""Shuffles: exactly uniform permutations of rows, in memory and beyond it.

Every permutation of n rows has probability exactly 1/n!, given uniform words: no floating-point
number and no modulo enters. Two steps (Rao, 1961; Sandelius, 1962):

1. each row falls into one of B buckets, independently and uniformly;
2. the rows of each bucket are permuted uniformly, and the buckets are put one after the other.

Why this is uniform: fix a permutation and the buckets' sizes m_1, ..., m_B. Exactly one assignment
of rows to buckets puts every row into the bucket where the permutation wants it, and it has
probability B^-n; then each bucket must be permuted in one particular way, with probability
1/m_b!. The product B^-n / (m_1! ... m_B!) does not depend on the permutation. So the permutation
is uniform even given the sizes, and step 2 may use this very method again.

Why two steps: Fisher-Yates touches a random place each time, which costs a cache miss a row once
the array outgrows the cache. The first step writes to B places in order instead, and leaves
buckets that fit the cache.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError

#: Number of buckets that one byte of the keystream can index.
MAX_BUCKETS = 256

# Number of 32-bit draws at a time, 64 Ki; they stay in the cache, beside the bucket.
_DRAW_WORDS = 1 << 15

_MAX_BUCKET_BYTES = 1 << 31

# Number of rows that are counted, or yielded, at a time.
_BLOCK_ROWS = 1 << 18


def assign_buckets(count: int, num_buckets: int, entropy: Entropy) -> NDArray[np.uint8]:
    """Return exactly uniform bucket indices, one byte each; ``num_buckets`` is a power of two."""
    indices = entropy.words((count + 7) // 8).view(np.uint8)[:count]
    if num_buckets < MAX_BUCKETS:
        indices &= np.uint8(num_buckets - 1)
    return indices


def split_into_buckets(
    rows: NDArray[Any], out: NDArray[Any], num_buckets: int, entropy: Entropy
) -> NDArray[np.int64]:
    """Copy each row into a random bucket of ``out``; bucket b is out[offsets[b]:offsets[b + 1]].

    Within a bucket rows keep their order, so that each bucket must still be permuted.
    """
    from shuffledp.core.numerics import uniform_kernels as kernels

    buckets = assign_buckets(rows.shape[0], num_buckets, entropy)
    offsets = np.zeros(MAX_BUCKETS + 1, dtype=np.int64)
    for start in range(0, buckets.size, _BLOCK_ROWS):
        block = buckets[start : start + _BLOCK_ROWS]
        offsets[1:] += np.bincount(block, minlength=MAX_BUCKETS)
    np.cumsum(offsets, out=offsets)
    if buckets.size:
        kernels.scatter_rows(_as_words(rows), buckets, offsets[:-1].copy(), _as_words(out))
    return offsets[: num_buckets + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformShuffler:
    """Permutes the rows of an array, every permutation being exactly equally likely.

    Parameters
    ----------
    bucket_bytes : int
        Batches up to this size are permuted directly, larger ones go through buckets. In
        [1, 2^31]; the default of 1 MiB suits second-level caches. It changes the speed, and
        which permutation a seed gives, but not the law.

    Raises
    ------
    ParameterError
        If ``bucket_bytes`` is out of range.

    Notes
    -----
    Source: this module's docstring; Fisher-Yates with Lemire's exact bounded integers (ACM
    Transactions on Modeling and Computer Simulation 29(1), 2019, arXiv:1805.10941v4, Algorithm
    5). Cost: 5 to 10 ns a row; memory: the result, and a byte a row for the bucket indices.

    References
    ----------
    Rao, "Generation of random permutation of given number of elements using random sampling
    numbers", Sankhya A 23, 1961. Sandelius, "A simple randomization procedure", Journal of the
    Royal Statistical Society B 24, 1962. Bacher, Bodini, Hollender, Lumbroso, "MergeShuffle",
    arXiv:1508.03167 (compares them).

    Examples
    --------
    >>> shuffled = UniformShuffler().shuffle(np.arange(1000), Entropy.from_operating_system())
    >>> bool((np.sort(shuffled) == np.arange(1000)).all())
    True
    """

    bucket_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        require_at_least(
            "bucket_bytes", self.bucket_bytes, 1, _MAX_BUCKET_BYTES, "give a cache's size"
        )

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the rows in uniformly random order.

        Parameters
        ----------
        reports : ndarray
            Rows along axis 0, followed by any number of axes. Not changed.
        entropy : Entropy
            Source of the permutation: the operating system, except in a simulation.

        Returns
        -------
        ndarray
            A new C-contiguous array of the same shape and type.

        Raises
        ------
        ParameterError
            If ``reports`` is a single number, or holds Python objects.
        """
        require_plain_rows(reports)
        source = np.ascontiguousarray(reports)
        out = np.empty(source.shape, dtype=source.dtype)
        if source.nbytes:
            _shuffle_words(_as_words(source), _as_words(out), entropy, self.bucket_bytes)
        return out


def require_plain_rows(reports: NDArray[Any]) -> None:
    """Raise `ParameterError` unless the rows of an array can be moved as bytes."""
    if reports.ndim == 0:
        raise ParameterError("reports is a single number: give an array with one report a row")
    if reports.dtype.hasobject:
        raise ParameterError(
            f"reports has dtype {reports.dtype}, which holds Python objects: give codes or bytes"
        )


def as_bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """View a contiguous array as its bytes."""
    return rows.reshape(-1).view(np.uint8)


def _as_words(rows: NDArray[Any]) -> NDArray[Any]:
    """View contiguous rows as machine words, the widest that fit: shape (n,) or (n, width)."""
    num_rows = rows.shape[0]
    row_bytes = rows.nbytes // num_rows
    word_bytes = next(size for size in (8, 4, 2, 1) if row_bytes % size == 0)
    words = as_bytes(rows).view(f"u{word_bytes}")
    return words if row_bytes == word_bytes else words.reshape(num_rows, row_bytes // word_bytes)


def _shuffle_words(
    rows: NDArray[Any], out: NDArray[Any], entropy: Entropy, bucket_bytes: int
) -> None:
    """Write the rows to ``out`` in uniformly random order."""
    if rows.nbytes <= bucket_bytes or rows.shape[0] <= 1:
        out[:] = rows
        _permute(out, entropy)
        return
    # Buckets are half full on average, so that hardly any has to be split again by chance.
    wanted = -(-2 * rows.nbytes // bucket_bytes)
    num_buckets = min(MAX_BUCKETS, 1 << (wanted - 1).bit_length())
    offsets = split_into_buckets(rows, out, num_buckets, entropy)
    for start, end in pairwise(offsets.tolist()):
        bucket = out[start:end]
        if bucket.nbytes > bucket_bytes:
            _shuffle_words(bucket.copy(), bucket, entropy, bucket_bytes)
        else:
            _permute(bucket, entropy)


def _permute(rows: NDArray[Any], entropy: Entropy) -> None:
    """Permute rows in place by Fisher-Yates."""
    from shuffledp.core.numerics import uniform_kernels as kernels

    last = rows.shape[0] - 1
    while last > 0:
        words = entropy.words(min(_DRAW_WORDS, (last + 1) // 2))
        last = kernels.permute_rows(rows, last, words.view(np.uint32))


class Shuffler(Protocol):
    """Puts reports into another order."""

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the rows in a new order."""


class InMemoryShuffle(AbstractContextManager["InMemoryShuffle"]):
    """A stage like `ExternalShuffle`, for a shuffler that knows the owner of each report.

    Row i of the output lies in the place of user i; all reports are in memory, for a moment three
    times.
    """

    def __init__(self, shuffler: Shuffler, entropy: Entropy) -> None:
        self._shuffler = shuffler
        self._entropy = entropy
        self._pieces: list[NDArray[Any]] = []

    def add(self, reports: NDArray[Any]) -> None:
        """Take the reports of the next users."""
        self._pieces.append(np.array(reports))

    def __exit__(self, *error: object) -> None:
        self._pieces.clear()

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the shuffled reports, once: a second permutation would reveal more."""
        if not self._pieces:
            raise ParameterError("there are no reports to shuffle: add some, and read them once")
        reports = np.concatenate(self._pieces)
        self._pieces.clear()
        shuffled = self._shuffler.shuffle(reports, self._entropy)
        for start in range(0, len(shuffled), _BLOCK_ROWS):
            yield shuffled[start : start + _BLOCK_ROWS]
