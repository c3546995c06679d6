"""The Hadamard count-mean sketch: a random hash function, and one flipped bit."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.exact_atoms import outward_atoms
from shuffledp.core.numerics.walsh_hadamard import walsh_hadamard
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports, read_only
from shuffledp.randomizers.checks import fingerprint_of, require_reports
from shuffledp.randomizers.strings.keyed_hash import (
    bucket_words,
    digests_of,
    require_key,
)
from shuffledp.randomizers.strings.sketch import StringSketch, require_sizes
from shuffledp.randomizers.strings.texts import Texts
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    log_ratio_upper,
    optimized_unary_threshold,
    settle,
)

# Words are drawn for this many reports at a time, two each, and stay in the cache until used.
_BLOCK = 2**14


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardCountMeanSketch(StringSketch):
    """Hadamard count-mean sketch: one random coefficient of the bucket's row, its sign flipped.

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
        T: the bit is flipped with probability exactly T / 2^64.
    fingerprint : str
        Name of the exact law and of the key, carried by its reports.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Notes
    -----
    Source: Apple Differential Privacy Team, "Learning with privacy at scale", 2017, algorithm HCMS.
    A report is 2 (j w + l) + b in the narrowest unsigned type: hash function j and coefficient l
    are uniform, and b is the parity of l & h_j(x), flipped with probability T / 2^64. The loss is
    ln((2^64 - T) / T) and cannot exceed 64 ln 2 = 44.4. The report supports every string whose
    bucket has that parity. The aggregate is the number of times that each report was made.

    Against `CountMeanSketch` a report has a few bytes instead of w / 8, and is drawn in the time
    of two words. The price, for a rare string and many buckets: n times the variance is
    coth(epsilon0 / 2)^2 in place of 1 / (4 sinh(epsilon0 / 4)^2), more by 3/4 to 1. That is
    little for epsilon0 <= 1, where both are near 4 / epsilon0^2.

    Cost: 16 random bytes a report; 16 m w bytes on the server.

    Examples
    --------
    >>> sketch = HadamardCountMeanSketch(epsilon0=8.0, key=bytes(16))
    >>> sketch.num_report_bytes
    4
    >>> reports = sketch.randomize(["yes"] * 7000 + ["no"] * 3000, Entropy.from_seed(1))
    >>> estimates = sketch.estimate(reports, dictionary=["yes", "no", "who?"])
    >>> bool((abs(estimates.frequency - [0.7, 0.3, 0.0]) < 0.1).all())
    True
    """

    name: ClassVar[str] = "hadamard-count-mean-sketch"

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
            threshold_for=optimized_unary_threshold,
            loss_of=lambda threshold: log_ratio_upper(_probability_ratio(threshold)),
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
        """Bytes a report: 1, 2 or 4."""
        return int(self._report_type.itemsize)

    @property
    def num_counts(self) -> int:
        """Number of counts of an aggregate: one for each possible report."""
        return 2 * self.num_hashes * self.num_buckets

    @property
    def _report_type(self) -> np.dtype[Any]:
        """The narrowest unsigned type that holds every report."""
        return np.min_scalar_type(self.num_counts - 1)

    @property
    def bit_probabilities(self) -> tuple[float, float]:
        """Chance p of the true parity, and q0 of that of another bucket, which is one half.

        One half exactly: two buckets have the same parity for half of the coefficients.
        """
        return (WORD_VALUES - self.threshold) / WORD_VALUES, 0.5

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the exact loss, and the blanket.

        Notes
        -----
        With t = T / 2^64 and r = (1 - t) / t, for two strings that no hash function puts into one
        bucket: l = 0 has the same parity for all buckets, so that the blanket is the law itself,
        of mass 1/w and ratios (1, 1). Every other l has both parities among the buckets, and the
        least probability of either bit is t. Of these, w/2 - 1 have equal parities for the pair,
        mass t each at (r, r) and (1, 1), and w/2 have unequal ones, mass t each at (r, 1) and
        (1, r). Pairs of strings that do meet in buckets are dominated: see `CountMeanSketch`.
        Rounded so that no bound falls; see `outward_atoms`.
        """
        flip, ratio = Fraction(self.threshold, WORD_VALUES), _probability_ratio(self.threshold)
        chance = Fraction(1, self.num_buckets)
        equal = (Fraction(1, 2) - chance) * flip
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms(
                [
                    (flip / 2, ratio, 1),
                    (flip / 2, 1, ratio),
                    (chance + equal, 1, 1),
                    (equal, ratio, ratio),
                ]
            ),
        )

    def randomize(self, values: Texts, entropy: Entropy) -> Reports:
        """Return one whole number for each string. See `StringSketch`."""
        from shuffledp.randomizers.strings.sketch_kernels import draw_signs

        digests = digests_of(values, self.key)
        out = np.empty(digests.size, dtype=self._report_type)
        words = np.empty((2, min(digests.size, _BLOCK)), dtype=np.uint64)
        for start in range(0, digests.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            size = digests[block].size
            entropy.fill(words)
            places = words[0, :size] & np.uint64(self.num_hashes * self.num_buckets - 1)
            draw_signs(
                digests[block],
                places,
                words[1, :size],
                np.uint64(self.threshold),
                np.uint64(self.num_buckets),
                *bucket_words(self.key),
                out[block],
            )
        return Reports(data=out, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return how often each report was made. See `StringSketch`."""
        from shuffledp.randomizers.categories.k_randomized_response_kernels import count_codes

        codes = require_reports(
            reports, fingerprint=self.fingerprint, dtype=self._report_type, row_shape=()
        )
        if codes.size and int(codes.max()) >= self.num_counts:
            position = int(np.argmax(codes >= self.num_counts))
            raise DomainError(
                f"report {position} = {codes[position]} is not in [0, {self.num_counts}): no such "
                "hash function exists, so it is corrupt or forged; drop it and count again"
            )
        counts = np.zeros((1, self.num_counts), dtype=np.int64)
        count_codes(codes, counts)
        return Counts(support=counts[0], num_reports=codes.size, fingerprint=self.fingerprint)

    def _support(self, counts: Counts, digests: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many reports have the parity of each string's bucket.

        Agreements less disagreements of hash function j with bucket b are the sum over l of
        (reports with bit 0 less bit 1) times (-1)^parity(l & b): a Walsh-Hadamard transform.
        """
        from shuffledp.randomizers.strings.sketch_kernels import sum_cells

        table = read_only(walsh_hadamard(self._differences(counts)))
        out = np.zeros(digests.size, dtype=np.int64)
        sum_cells(table, digests, *bucket_words(self.key), out)
        return (out + counts.num_reports) // 2

    def _colliding_pairs(self, counts: Counts) -> float:
        """Return an unbiased number of ordered pairs of users with the same hash and bucket.

        Let z = 1 - 2 b. Two users of one hash function who drew the same l have the product z z'
        of mean (2 p - 1)^2 times the product of two signs, whose mean over l is 1 if their buckets
        are the same and 0 if not. They draw the same l with probability 1/w. The squared
        differences of a cell hold these products, and a 1 for each user.
        """
        keep, _ = self.bit_probabilities
        differences = self._differences(counts).astype(np.float64)
        products = float(np.vdot(differences, differences)) - counts.num_reports
        return self.num_buckets * products / (2.0 * keep - 1.0) ** 2

    def _differences(self, counts: Counts) -> NDArray[np.int64]:
        """Return reports with bit 0 less those with bit 1: hash functions by coefficients."""
        both = counts.support.reshape(self.num_hashes, self.num_buckets, 2)
        differences: NDArray[np.int64] = both[:, :, 0] - both[:, :, 1]
        return differences


def _probability_ratio(threshold: int) -> Fraction:
    """Return the exact e^epsilon0: odds of keeping the bit."""
    return Fraction(WORD_VALUES - threshold, threshold)
