"""Hashed response: a random linear hash of the category, then randomized response on the bucket.

What local hashing and Hadamard response share: the hash family, the exact law of a report, its
draw and its check. How reports are counted is in `linear_hashing_counts`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.exact_atoms import (
    ExactAtom,
    outward_atoms,
    rounded_atoms,
)
from shuffledp.core.profile import BlanketAtom
from shuffledp.core.reports import Reports
from shuffledp.randomizers.checks import (
    code_type,
    require_codes,
    require_reports,
    require_small_channel,
)
from shuffledp.randomizers.protocol import Channel
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    k_randomized_response_threshold,
    log_ratio_upper,
    settle,
)

#: Largest prime below 2^21. With at most so many buckets every report fits 64 bits; see
#: `HashedResponse`.
LARGEST_NUM_BUCKETS = 2_097_143

LARGEST_CHANNEL_K = 8

# Two words a report are drawn for this many reports at a time, so that they, the seeds and the
# hashes stay in the second-level cache between the generator and the loops.
_BLOCK = 2**14

# Cells of a matrix of reports and categories for which hashes are held at once.
_CELLS_AT_A_TIME = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedResponse:
    """The exact law of a report that hashes k categories to g buckets.

    Parameters
    ----------
    k : int
        Number of categories, in [2, 2^32 - 1].
    num_buckets : int
        g: a prime, at most the smallest prime >= k, and at most 2097143.
    threshold : int
        T: each bucket but the true one is reported with probability exactly T / 2^64; in
        [1, 2^64 / g].

    Notes
    -----
    The code x has m digits x_i in base g, m the least with g^m >= k. The user draws a seed a,
    uniform among the A = g^m vectors over the field Z_g, and hashes to h_a(x) = sum a_i x_i mod g.
    For x != x' some digit differs, so that the sum of a_i (x_i - x'_i) is uniform on Z_g: the two
    hash to the same bucket with probability exactly 1/g (Carter, Wegman, "Universal classes of
    hash functions", 1979). The bucket goes through g-ary randomized response, and the report is
    the whole number a g + y.

    A report fits 64 bits, for g^(m-1) < k < 2^32: if m <= 2, g^(m+1) <= 2^63 by the limit on g;
    if m = 3, g < 2^16; if m >= 4, g^(m+1) < 2^32 g^2 < 2^54.

    Every pair of categories has the same joint law of hashes, so they all are the worst pair. Not
    so for triples if g > 2: those on a line, such as 0, 1 and 2, hash all alike or all differently.
    """

    k: int
    num_buckets: int
    threshold: int

    @property
    def num_digits(self) -> int:
        """m: digits of a category, and of a seed, in base g."""
        digits = 1
        while self.num_buckets**digits < self.k:
            digits += 1
        return digits

    @property
    def num_seeds(self) -> int:
        """A = g^m."""
        return int(self.num_buckets**self.num_digits)

    @property
    def num_possible_reports(self) -> int:
        """Reports are whole numbers in [0, g^(m+1))."""
        return self.num_seeds * self.num_buckets

    @property
    def report_type(self) -> np.dtype[Any]:
        """The narrowest unsigned type that holds every report."""
        return code_type(self.num_possible_reports)

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a report supports the user's category, and any other one (exactly 1/g).

        Rounded to the nearest floats.
        """
        keep = WORD_VALUES - (self.num_buckets - 1) * self.threshold
        return keep / WORD_VALUES, 1.0 / self.num_buckets

    def blanket(self) -> tuple[BlanketAtom, ...]:
        """Return the largest blanket, the infimum over all k inputs, for any pair of them.

        Notes
        -----
        Each power of g up to g^(m-1) is a category, and seed a hashes it to a digit of a, while it
        hashes category 0 to 0. So only the seed 0 hashes all categories alike: there the infimum
        is the law itself, of mass 1/A and ratios (1, 1). For any other seed and every bucket some
        input hashes elsewhere, and the infimum is s/A, s = T / 2^64. Of these seeds A (1 - 1/g)
        tell the pair apart: one bucket has ratios (P, 1), one (1, P), and g - 2 have (1, 1), where
        P = e^epsilon0. The other A/g - 1 do not: one bucket has (P, P), and g - 1 have (1, 1).
        Rounded so that no bound falls; see `outward_atoms`.
        """
        g = self.num_buckets
        other = Fraction(self.threshold, WORD_VALUES)
        ratio = probability_ratio(g, self.threshold)
        apart = Fraction(g - 1, g)
        alike = Fraction(1, g) - Fraction(1, self.num_seeds)
        neither = other * ((g - 2) * apart + (g - 1) * alike) + Fraction(1, self.num_seeds)
        return outward_atoms(
            [
                (other * apart, ratio, 1),
                (other * apart, 1, ratio),
                (neither, 1, 1),
                (other * alike, ratio, ratio),
            ]
        )

    def attack(self) -> tuple[BlanketAtom, ...]:
        """Return the likelihood ratios of a pair to a third category, under the latter's law.

        Returns
        -------
        tuple of BlanketAtom
            Masses sum to 1. Reports of equal ratios are merged.

        Notes
        -----
        The third category hides the pair the least, by chi^2, if it collides with neither wherever
        they differ. For g > 2 and k > 2 the categories 0, 1 and 2 do so: seed a hashes them to
        0, a_0 and 2 a_0, all alike with probability 1/g and all different else. For g = 2 any
        three categories are 0, u, v up to a shift with u and v linearly independent: each pattern
        of who collides with the third one has probability 1/4. For k = 2 the second of the pair
        is what the others hold.
        """
        g = self.num_buckets
        lie = Fraction(self.threshold, WORD_VALUES)
        ratio = probability_ratio(g, self.threshold)
        keep = lie * ratio
        atoms: list[ExactAtom]
        if self.k == 2:  # and then g = 2
            atoms = [(lie / 2, ratio, 1), (keep / 2, 1 / ratio, 1), (Fraction(1, 2), 1, 1)]
        elif g == 2:
            atoms = [
                (lie / 4, ratio, 1),
                (lie / 4, 1, ratio),
                (lie / 4, ratio, ratio),
                (keep / 4, 1 / ratio, 1),
                (keep / 4, 1, 1 / ratio),
                (keep / 4, 1 / ratio, 1 / ratio),
                (Fraction(1, 4), 1, 1),
            ]
        else:
            apart = Fraction(g - 1, g)
            atoms = [
                (apart * lie, ratio, 1),
                (apart * lie, 1, ratio),
                (apart * keep, 1 / ratio, 1 / ratio),
                (apart * (g - 3) * lie + 1 - apart, 1, 1),
            ]
        return rounded_atoms(atoms)

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        Raises `ParameterError` if k is above 8.
        """
        reports = self.all_reports()
        other = Fraction(self.threshold, WORD_VALUES * self.num_seeds)
        keep = Fraction(1, self.num_seeds) - (self.num_buckets - 1) * other
        return tuple(
            tuple(keep if is_supported else other for is_supported in row)
            for row in self.supports(reports).T.tolist()
        )

    def all_reports(self) -> NDArray[np.unsignedinteger[Any]]:
        """Return every possible report, in ascending order.

        Raises `ParameterError` if k is above 8.
        """
        require_small_channel(self.k, LARGEST_CHANNEL_K)
        return np.arange(self.num_possible_reports, dtype=self.report_type)

    def randomize(
        self, values: NDArray[np.integer[Any]], entropy: Entropy
    ) -> NDArray[np.unsignedinteger[Any]]:
        """Return one report for each code, from two words each.

        Raises
        ------
        DomainError
            If a code lies outside [0, k); the message names the first.
        ParameterError
            If ``values`` is not a one-dimensional array of integers.
        """
        truth = require_codes(values, self.k)
        out = np.empty(truth.size, dtype=self.report_type)
        held = np.empty((2, min(truth.size, _BLOCK)), dtype=np.uint64)
        for start in range(0, truth.size, _BLOCK):
            codes = truth[start : start + _BLOCK].astype(np.uint32)
            seeds, coins = held[0, : codes.size], held[1, : codes.size]
            fill_acceptable(seeds, self.num_seeds, entropy)
            entropy.fill(coins)
            self._randomize_block(codes, seeds, coins, out[start : start + _BLOCK])
        return out

    def _randomize_block(
        self,
        codes: NDArray[np.uint32],
        seeds: NDArray[np.uint64],
        coins: NDArray[np.uint64],
        out: NDArray[Any],
    ) -> None:
        """Write the reports of a block; ``seeds`` are acceptable words, and are overwritten."""
        from shuffledp.randomizers.categories.hadamard_response_kernels import (
            randomize_binary_block,
        )
        from shuffledp.randomizers.categories.k_randomized_response_kernels import randomize_block
        from shuffledp.randomizers.categories.linear_hashing_kernels import hash_block

        threshold = np.uint64(self.threshold)
        if self.num_buckets == 2:
            randomize_binary_block(
                codes, seeds, coins, threshold, np.uint64(64 - self.num_digits), out
            )
            return
        buckets = np.empty(codes.size, dtype=np.uint32)
        hash_block(codes, seeds, np.uint64(self.num_buckets), self.num_digits, buckets)
        # The draw of k-RR itself, on buckets in place of categories.
        randomize_block(buckets, coins, threshold, np.uint64(self.num_buckets), buckets)
        seeds *= np.uint64(self.num_buckets)
        seeds += buckets
        out[:] = seeds

    def require(self, reports: Reports, fingerprint: str) -> NDArray[Any]:
        """Return the whole numbers that ``reports`` hold, once checked.

        Raises
        ------
        FingerprintError
            If the reports were made by another law.
        DomainError
            If a number is too large for this law.
        ParameterError
            If the reports have another type or shape.
        """
        data = require_reports(
            reports, fingerprint=fingerprint, dtype=self.report_type, row_shape=()
        )
        limit = self.num_possible_reports
        if data.size and int(data.max()) >= limit:
            position = int(np.argmax(data >= limit))
            raise DomainError(
                f"report {position} is {data[position]}, not in [0, {limit}): no randomizer with "
                f"k = {self.k} and {self.num_buckets} buckets makes such a report, so it is "
                "corrupt or forged; drop it and count again"
            )
        return data

    def supports(self, data: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which categories hash to the bucket of each report: shape (n, k)."""
        seeds, buckets = np.divmod(data, self.num_buckets)
        categories = self._digits(np.arange(self.k)).T
        supported = np.empty((data.size, self.k), dtype=np.bool_)
        step = max(1, _CELLS_AT_A_TIME // self.k)
        for start in range(0, data.size, step):
            part = slice(start, start + step)
            hashes = self._digits(seeds[part]) @ categories % self.num_buckets
            supported[part] = hashes == buckets[part, None]
        return supported

    def _digits(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """Return the digits in base g of whole numbers, the least significant first: (n, m)."""
        digits = np.empty((numbers.size, self.num_digits), dtype=np.int64)
        for place in range(self.num_digits):
            digits[:, place] = numbers % self.num_buckets
            numbers = numbers // self.num_buckets
        return digits


def probability_ratio(num_buckets: int, threshold: int) -> Fraction:
    """Return the exact e^epsilon0: probability of the true bucket over that of another."""
    return Fraction(WORD_VALUES - (num_buckets - 1) * threshold, threshold)


def settle_response(num_buckets: int, epsilon0: float) -> tuple[int, float]:
    """Return the threshold T of g-ary randomized response, and its loss rounded up.

    Parameters
    ----------
    num_buckets : int
        g, at least 2.
    epsilon0 : float
        Local privacy loss asked for, in nats, at least 0.

    Returns
    -------
    threshold : int
        In [1, floor(2^64 / g)].
    epsilon0 : float
        At most what was asked; asking for it again gives the same pair.

    Examples
    --------
    >>> settle_response(2, 0.0) == (2**63, 0.0)
    True
    """
    return settle(
        epsilon0,
        threshold_for=lambda loss: k_randomized_response_threshold(num_buckets, loss),
        loss_of=lambda threshold: log_ratio_upper(probability_ratio(num_buckets, threshold)),
    )


def fill_acceptable(words: NDArray[np.uint64], num_values: int, entropy: Entropy) -> None:
    """Fill an array with words w for which floor(w N / 2^64) is exactly uniform on [0, N).

    Parameters
    ----------
    words : ndarray of uint64
        Overwritten.
    num_values : int
        N, in [1, 2^64).
    entropy : Entropy
        Source of randomness; a word is drawn again with probability below N / 2^64.

    Notes
    -----
    Source: Lemire, "Fast random integer generation in an interval", 2019 (arXiv:1805.10941). A
    word is accepted if w N mod 2^64 is at least 2^64 mod N. Among the multiples of N that fall
    into [j 2^64, (j + 1) 2^64) exactly floor(2^64 / N) are that far above j 2^64, whatever j is.
    """
    entropy.fill(words)
    excess = np.uint64(WORD_VALUES % num_values)
    if excess == 0:
        return
    factor = np.uint64(num_values)
    # Products of arrays wrap around at 2^64, as they should here.
    rejected = np.flatnonzero(words * factor < excess)
    while rejected.size:
        again = np.empty(rejected.size, dtype=np.uint64)
        entropy.fill(again)
        words[rejected] = again
        rejected = rejected[again * factor < excess]
