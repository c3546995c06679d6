"""The count-mean sketch: a random hash function, and a one-hot row of flipped bits."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.categories.packed_bits import bytes_per_row, randomize_rows
from shuffledp.randomizers.categories.symmetric_unary import SymmetricUnaryEncoding
from shuffledp.randomizers.checks import fingerprint_of, require_reports
from shuffledp.randomizers.strings.keyed_hash import (
    bucket_words,
    buckets_of,
    digests_of,
    require_key,
)
from shuffledp.randomizers.strings.sketch import StringSketch, require_sizes
from shuffledp.randomizers.strings.texts import Texts
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    log_ratio_upper,
    settle,
    symmetric_unary_threshold,
)

# A report begins with the number of its hash function, little-endian.
_HEADER_BYTES = 2

# Rows are drawn for about this many bytes at a time, and stay in the cache while they are copied.
_BLOCK_BYTES = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeanSketch(StringSketch):
    """Count-mean sketch: one-hot bits of the bucket under a random hash function, each flipped.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.
    key : bytes
        The task's public key, 16 bytes; see `new_key`.
    num_hashes : int
        Number m of hash functions, a power of two in [1, 65536].
    num_buckets : int
        Number w of buckets, a power of two in [2, 2^20]; num_hashes * num_buckets <= 2^26.

    Attributes
    ----------
    threshold : int
        T: each bit is flipped with probability exactly T / 2^64.
    fingerprint : str
        Name of the exact law and of the key, carried by its reports.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Notes
    -----
    Source: Apple Differential Privacy Team, "Learning with privacy at scale", 2017, algorithm CMS;
    the loss is that of symmetric unary encoding, 2 ln((2^64 - T) / T), since the number of the hash
    function tells nothing of the string.

    A report is 2 + ceil(w / 8) bytes: the hash function j, and w packed bits. The aggregate counts
    in cell j w + l the reports of hash function j with bit l set, and after these m w cells, for
    each j, its reports.

    Cost: about w random bytes and w / 8 bytes of memory a report; 8 m w bytes on the server.

    Examples
    --------
    >>> sketch = CountMeanSketch(epsilon0=8.0, key=bytes(16), num_hashes=16, num_buckets=64)
    >>> reports = sketch.randomize(["yes"] * 700 + ["no"] * 300, Entropy.from_seed(1))
    >>> estimates = sketch.estimate(reports, dictionary=["yes", "no", "who?"])
    >>> bool((abs(estimates.frequency - [0.7, 0.3, 0.0]) < 0.1).all())
    True
    """

    name: ClassVar[str] = "count-mean-sketch"

    epsilon0: float
    key: bytes
    num_hashes: int = 1024
    num_buckets: int = 1024
    threshold: int = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = require_key(self.key)
        num_hashes, num_buckets = require_sizes(self.num_hashes, self.num_buckets)
        threshold, epsilon0 = settle(
            require_non_negative("epsilon0", self.epsilon0),
            threshold_for=symmetric_unary_threshold,
            loss_of=lambda threshold: log_ratio_upper(
                Fraction(WORD_VALUES - threshold, threshold) ** 2
            ),
        )
        fingerprint = fingerprint_of(
            self.name,
            key=key.hex(),
            num_hashes=num_hashes,
            num_buckets=num_buckets,
            threshold=threshold,
        )
        object.__setattr__(self, "num_hashes", num_hashes)
        object.__setattr__(self, "num_buckets", num_buckets)
        object.__setattr__(self, "epsilon0", epsilon0)
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "fingerprint", fingerprint)

    @property
    def num_report_bytes(self) -> int:
        """Bytes a report: 2 + ceil(num_buckets / 8)."""
        return _HEADER_BYTES + bytes_per_row(self.num_buckets)

    @property
    def num_counts(self) -> int:
        """Number of counts of an aggregate: one a cell, and one a hash function."""
        return self.num_hashes * self.num_buckets + self.num_hashes

    @property
    def bit_probabilities(self) -> tuple[float, float]:
        """Chance p that a bit is set, given it is the user's, and q0, given it is not."""
        return (WORD_VALUES - self.threshold) / WORD_VALUES, self.threshold / WORD_VALUES

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket.

        Notes
        -----
        Given the hash function the law is symmetric unary encoding of num_buckets categories. The
        blanket is its blanket, for two strings that no hash function puts into one bucket. Where
        one does, both ratios are one and the same variable; that is the coupling of the two which
        is smallest in convex order, so such pairs are dominated.
        """
        unary = SymmetricUnaryEncoding(k=self.num_buckets, epsilon0=self.epsilon0)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=unary.profile.blanket,
        )

    def randomize(self, values: Texts, entropy: Entropy) -> Reports:
        """Return the hash function and the bits of each string. See `StringSketch`."""
        from shuffledp.randomizers.categories.packed_bits_kernels import flip_true_bits

        digests = digests_of(values, self.key)
        out = np.empty((digests.size, self.num_report_bytes), dtype=np.uint8)
        step = max(1, _BLOCK_BYTES // self.num_report_bytes)
        for start in range(0, digests.size, step):
            block = slice(start, start + step)
            hashes = entropy.words(digests[block].size) & np.uint64(self.num_hashes - 1)
            buckets = buckets_of(digests[block], hashes, key=self.key, num_buckets=self.num_buckets)
            rows = randomize_rows(
                buckets,
                k=self.num_buckets,
                threshold=self.threshold,
                entropy=entropy,
                write_true_bits=flip_true_bits,
            )
            out[block, 0] = hashes & np.uint64(0xFF)
            out[block, 1] = hashes >> np.uint64(8)
            out[block, _HEADER_BYTES:] = rows
        return Reports(data=out, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return how often each bit of each hash function is set. See `StringSketch`."""
        from shuffledp.randomizers.strings.sketch_kernels import add_bits_by_hash

        rows, hashes = self._rows(reports)
        row_bytes = bytes_per_row(self.num_buckets)
        cells = np.zeros((self.num_hashes, row_bytes, 8), dtype=np.int64)
        num_reports = np.zeros(self.num_hashes, dtype=np.int64)
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        spread = bits.view(np.dtype("<u8"))[:, 0].astype(np.uint64)
        packed = np.zeros((self.num_hashes, row_bytes), dtype=np.uint64)
        add_bits_by_hash(hashes, rows, _HEADER_BYTES, spread, packed, cells, num_reports)
        bits_set = cells.reshape(self.num_hashes, -1)[:, : self.num_buckets]
        return Counts(
            support=np.concatenate([bits_set.reshape(-1), num_reports]),
            num_reports=hashes.size,
            fingerprint=self.fingerprint,
        )

    def _rows(self, reports: Reports) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the rows and their hash functions, if this law could have made them."""
        rows: NDArray[np.uint8] = require_reports(
            reports,
            fingerprint=self.fingerprint,
            dtype=np.dtype(np.uint8),
            row_shape=(self.num_report_bytes,),
        )
        hashes = rows[:, 0] + 256 * rows[:, 1].astype(np.int64)
        is_wrong = hashes >= self.num_hashes
        if self.num_buckets < 8:
            is_wrong |= rows[:, -1] >> np.uint8(self.num_buckets) != 0
        if is_wrong.any():
            raise DomainError(
                f"report {int(np.argmax(is_wrong))} has a hash function or a bucket that does not "
                f"exist (num_hashes = {self.num_hashes}, num_buckets = {self.num_buckets}), so it "
                "is corrupt or forged; drop it and count again"
            )
        return rows, hashes

    def _support(self, counts: Counts, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how often the bits of each string's buckets are set."""
        from shuffledp.randomizers.strings.sketch_kernels import sum_cells

        out = np.zeros(digests.size, dtype=np.int64)
        sum_cells(self._cells(counts), digests, *bucket_words(self.key), out)
        return out

    def _colliding_pairs(self, counts: Counts) -> float:
        """Return an unbiased number of ordered pairs of users with the same hash and bucket.

        With y = bit - q0, the sum over l of y_il y_i'l has the mean (p - q0)^2 if users i and i'
        have the same bucket of the same hash function, and 0 if another bucket. The squared sums
        of a cell over its users hold these products, and the squares y_il^2, which are known.
        """
        keep, other = self.bit_probabilities
        cells = self._cells(counts)
        num_reports = counts.support[cells.size :]
        deviations = cells - other * num_reports[:, None]
        bits_set = float(cells.sum())
        squares = (1.0 - 2.0 * other) * bits_set
        squares += counts.num_reports * self.num_buckets * other**2
        return (float(np.vdot(deviations, deviations)) - squares) / (keep - other) ** 2

    def _cells(self, counts: Counts) -> NDArray[np.int64]:
        """Return how often each bit is set: hash functions by buckets."""
        cells = counts.support[: self.num_hashes * self.num_buckets]
        return cells.reshape(self.num_hashes, self.num_buckets)
