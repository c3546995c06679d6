"""Local hashing: a random linear hash of the category, then randomized response on the bucket.

Each user draws the hash function. With two buckets it is the Hadamard response.

*Counting.* A report (a, y) supports category v if <a, v> = sum a_i v_i = y mod g. Let w be a g-th
root of unity, and A_j the sum over all reports of w^(-j y) at the place a of a table over the
seeds. The supports of v are the sum over j of hat A_j(j v) / g, where hat is the Fourier transform
with w^<a, .> over the digits: g - 1 fast transforms, whatever the number of reports, in conjugate
pairs j and g - j. Sums of so few terms of size n are right to far less than one half, and rounded
to whole numbers.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans, Integers, Words, walsh_hadamard
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.profile import (
    BlanketAtom,
    ExactAtom,
    LocalProfile,
    mirrored,
    outward_atoms,
    rounded_atoms,
)
from shuffledp.core.reports import Reports
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import CategoryRandomizer, Channel, SettledRandomizer
from shuffledp.randomizers.k_randomized_response import histogram, moved_on
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    response_law,
    response_ratio,
    response_threshold,
)

#: Largest prime below 2^21. Up to this number of buckets every report fits 64 bits; see
#: `HashedReports`.
LARGEST_NUM_BUCKETS = 2_097_143
# Two words a report are drawn for this many reports at a time, so that they, the seeds and the
# hashes stay in the second-level cache between the generator and the loops.
_BLOCK = 2**14
# Cells of a matrix of reports and categories for which hashes are held at once.
_CELLS_AT_A_TIME = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedReports(SettledRandomizer):
    """A `CategoryRandomizer` that hashes k categories to g buckets, then randomizes the bucket.

    A report is one whole number a g + y: the user's own seed a, and the bucket y to which their
    category is hashed, randomized. g = 2 unless overridden.

    g is a prime, at most the smallest prime >= k, and at most 2097143. Each bucket but the true one
    is reported with probability exactly T / 2^64, T = ``threshold`` in [1, 2^64 / g].

    The code x has m digits x_i in base g, m the least with g^m >= k. The user draws a seed a,
    uniform among the A = g^m vectors over the field Z_g, and hashes to h_a(x) = sum a_i x_i mod g.
    For x != x' some digit differs, so that the sum of a_i (x_i - x'_i) is uniform on Z_g: the two
    hash to the same bucket with probability exactly 1/g (Carter, Wegman, "Universal classes of
    hash functions", 1979). The bucket goes through g-ary randomized response.

    A report fits 64 bits, for g^(m-1) < k < 2^32: if m <= 2, g^(m+1) <= 2^63 by the limit on g;
    if m = 3, g < 2^16; if m >= 4, g^(m+1) < 2^32 g^2 < 2^54.

    Every pair of categories has the same joint law of hashes, so they all are the worst pair. Not
    so for triples if g > 2: those on a line, such as 0, 1 and 2, hash all alike or all differently.
    """

    num_buckets: int = field(default=2, init=False, repr=False)

    def _law_for(self, epsilon0: float) -> tuple[dict[str, int], float]:
        """Return T, for two buckets, and the loss."""
        threshold, loss = response_law(epsilon0)
        return {"threshold": threshold}, loss

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, the blanket, and the attack."""
        return self._profile(*self._blanket(), attack=self._attack())

    @property
    def num_digits(self) -> int:
        """m: digits of a category, and of a seed, in base g."""
        digits = 1
        while self.num_buckets**digits < self.domain_size:
            digits += 1
        return digits

    @property
    def num_seeds(self) -> int:
        """A = g^m."""
        return int(self.num_buckets**self.num_digits)

    @property
    def num_possible_reports(self) -> int:
        """Number of possible reports, which are the whole numbers in [0, g^(m+1))."""
        return self.num_seeds * self.num_buckets

    @property
    def report_type(self) -> np.dtype[Any]:
        """The narrowest unsigned type that holds every report."""
        return checks.code_type(self.num_possible_reports)

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a report supports the user's category, and any other one (exactly 1/g)."""
        keep = WORD_VALUES - (self.num_buckets - 1) * self.threshold
        return keep / WORD_VALUES, 1.0 / self.num_buckets

    def _blanket(self) -> tuple[BlanketAtom, ...]:
        """Return the largest blanket, the infimum over all k inputs, for any pair of them.

        Each power of g up to g^(m-1) is a category, and seed a hashes it to a digit of a, while it
        hashes category 0 to 0. So only the seed 0 hashes all categories alike: there the infimum
        is the law itself, of mass 1/A and ratios (1, 1). For any other seed and every bucket some
        input hashes elsewhere, and the infimum is s/A, s = T / 2^64. Of these seeds A (1 - 1/g)
        distinguish the pair: one bucket has ratios (P, 1), one (1, P), and g - 2 have (1, 1), where
        P = e^epsilon0. The other A/g - 1 do not: one bucket has (P, P), and g - 1 have (1, 1).
        Rounded so that no bound falls; see `outward_atoms`.
        """
        g = self.num_buckets
        other = Fraction(self.threshold, WORD_VALUES)
        ratio = response_ratio(self.threshold, g)
        apart = Fraction(g - 1, g)
        alike = Fraction(1, g) - Fraction(1, self.num_seeds)
        neither = other * ((g - 2) * apart + (g - 1) * alike) + Fraction(1, self.num_seeds)
        return outward_atoms(
            [*mirrored(other * apart, ratio, 1), (neither, 1, 1), (other * alike, ratio, ratio)]
        )

    def _attack(self) -> tuple[BlanketAtom, ...]:
        """Return the likelihood ratios of a pair to a third category, under the latter's law.

        The third category hides the pair the least, by chi^2, if it collides with neither wherever
        they differ. For g > 2 and k > 2 the categories 0, 1 and 2 do so: seed a hashes them to
        0, a_0 and 2 a_0, all alike with probability 1/g and all different else. For g = 2 any
        three categories are 0, u, v up to a shift with u and v linearly independent: each pattern
        of collisions with the third one has probability 1/4. For k = 2 the others hold the second
        of the pair.
        """
        g = self.num_buckets
        lie = Fraction(self.threshold, WORD_VALUES)
        ratio = response_ratio(self.threshold, g)
        keep = lie * ratio
        atoms: list[ExactAtom]
        if self.domain_size == 2:  # and then g = 2
            atoms = [(lie / 2, ratio, 1), (keep / 2, 1 / ratio, 1), (Fraction(1, 2), 1, 1)]
        elif g == 2:
            atoms = [
                *mirrored(lie / 4, ratio, 1),
                (lie / 4, ratio, ratio),
                *mirrored(keep / 4, 1 / ratio, 1),
                (keep / 4, 1 / ratio, 1 / ratio),
                (Fraction(1, 4), 1, 1),
            ]
        else:
            apart = Fraction(g - 1, g)
            atoms = [
                *mirrored(apart * lie, ratio, 1),
                (apart * keep, 1 / ratio, 1 / ratio),
                (apart * (g - 3) * lie + 1 - apart, 1, 1),
            ]
        return rounded_atoms(atoms)

    def channel(self) -> Channel:
        """Return the exact probability of each report (column) given each truth (row).

        k by g^(m + 1), for k up to 8; column a g + y is seed a and bucket y.
        """
        other = Fraction(self.threshold, WORD_VALUES * self.num_seeds)
        keep = Fraction(1, self.num_seeds) - (self.num_buckets - 1) * other
        return self._two_valued(keep, other)

    def _columns(self) -> NDArray[Any]:
        """Return all whole numbers that are reports."""
        return np.arange(self.num_possible_reports, dtype=self.report_type)

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one number a g + y for each code. See `CategoryRandomizer`."""
        truth = checks.require_codes(values, self.domain_size)
        out, g = np.empty(truth.size, dtype=self.report_type), self.num_buckets
        for start in range(0, truth.size, _BLOCK):
            codes = truth[start : start + _BLOCK].astype(np.uint64)
            seeds = draw_below(entropy, codes.size, self.num_seeds)
            # The draw of k-RR itself, on buckets in place of categories.
            hashed, words = self._hashed(seeds, codes), entropy.words(codes.size)
            reported = moved_on(hashed, words, self.threshold, g)
            out[start : start + _BLOCK] = seeds * np.uint64(g) + reported
        return Reports(data=out, fingerprint=self.fingerprint)

    def _hashed(self, seeds: Words, codes: Words) -> Words:
        """Return the bucket to which each code is hashed by its seed."""
        if self.num_buckets == 2:  # the parity of seed & code
            totals = np.bitwise_count(seeds & codes).astype(np.int64)
        else:
            totals = (self._digits(seeds) * self._digits(codes)).sum(axis=1)
        return _modulo(totals, self.num_buckets).astype(np.uint64)

    def _codes(self, reports: Reports) -> NDArray[Any]:
        """Return the whole numbers that ``reports`` hold, once checked."""
        law = self.fingerprint, self.report_type, self.num_possible_reports
        return checks.require_whole_reports(reports, *law)

    def supports(self, reports: Reports) -> Booleans:
        """Categories that hash to each report's bucket. See `CategoryRandomizer`."""
        data = self._codes(reports)
        seeds, buckets = np.divmod(data, self.num_buckets)
        categories = self._digits(np.arange(self.domain_size)).T
        supported = np.empty((data.size, self.domain_size), dtype=np.bool_)
        step = max(1, _CELLS_AT_A_TIME // self.domain_size)
        for start in range(0, data.size, step):
            part = slice(start, start + step)
            hashes = self._digits(seeds[part]) @ categories % self.num_buckets
            supported[part] = hashes == buckets[part, None]
        return supported

    def _support(self, reports: Reports) -> Integers:
        """Return the number of reports that support each category."""
        return count_supports(self, self._codes(reports))

    def _digits(self, numbers: NDArray[Any]) -> Integers:
        """Return the digits in base g of whole numbers, the least significant first: (n, m)."""
        digits = np.empty((numbers.size, self.num_digits), dtype=np.int64)
        for place in range(self.num_digits):
            digits[:, place] = _modulo(numbers, self.num_buckets)
            numbers = numbers // self.num_buckets
        return digits


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedLocalHashing(HashedReports):
    """Hash the category to g buckets with a random linear hash, then g-ary randomized response.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    num_buckets : int
        g, a prime; see `optimal_num_buckets`.
    threshold : int
        T: each bucket but the true one is reported with probability exactly T / 2^64.

    Notes
    -----
    Source: optimal local hashing, Wang, Blocki, Li, Jha, USENIX Security 2017, with two changes.
    Their g = round(e^epsilon0) + 1 has the least variance for a rare category; here g has the
    least mean variance over all k, among primes. And the hash is linear over the field Z_g (see
    `HashedReports`), so that any two categories collide with probability exactly 1/g, and the
    estimate is exactly unbiased. Values that collide cannot be prepared: the categories are a
    closed list, and the seed is drawn by the user after the value is known. So no keyed hash
    function is needed, and nothing rests on a public one.

    The loss is ln((2^64 - (g - 1) T) / T), and cannot exceed 64 ln 2 = 44.4: there T = 1.

    Cost: 16 random bytes and some tens of nanoseconds a report; 1 to 8 bytes of memory, for a
    report is a whole number below k g^2. Counting n reports takes n k hashes, or n steps and about
    g / 2 Fourier transforms of g^m points, m = ceil(log_g k).

    Examples
    --------
    >>> randomizer = OptimizedLocalHashing(domain_size=100, epsilon0=2.0)
    >>> randomizer.num_buckets, randomizer.num_report_bytes
    (7, 2)
    >>> [round(probability, 4) for probability in randomizer.support_probabilities]
    [0.5519, 0.1429]
    """

    name: ClassVar[str] = "optimized-local-hashing"

    def _law_for(self, epsilon0: float) -> tuple[dict[str, int], float]:
        """Return g and T, and the loss. It may lie just below the step where g is best."""
        num_buckets = optimal_num_buckets(self.domain_size, epsilon0)
        threshold, loss = response_law(epsilon0, num_buckets)
        return {"num_buckets": num_buckets, "threshold": threshold}, loss


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(HashedReports):
    """The sign of the category in a random row of the Walsh-Hadamard matrix, kept or flipped.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    num_buckets : int
        g = 2.
    threshold : int
        T: the sign is flipped with probability exactly T / 2^64.

    Notes
    -----
    Source: Acharya, Sun, Zhang, "Hadamard response", AISTATS 2019 (arXiv:1802.04705), in the form
    where the user draws the row and names it in the report. K = 2^m is the least power of two
    >= k. The user draws a row j, uniform in [0, K), from m random bits. The entry of row j at
    category x is (-1)^b, b the parity of the bits of j & x; the report is 2 j + b, with b flipped
    with probability 1 / (e^epsilon0 + 1). It supports the categories with the sign that it names:
    the user's own one unless b was flipped, and any other one with probability exactly 1/2.

    This is a linear hash over GF(2), see `HashedReports`: in other words, the binary local hashing
    of Bassily, Smith, STOC 2015, as simplified by Wang, Blocki, Li, Jha, USENIX Security 2017.
    `OptimizedLocalHashing` has the same law while epsilon0 is below ln(2) / 2 = 0.35; beyond that
    the error of the latter is never larger. The loss cannot exceed 64 ln 2 = 44.4: there T = 1.

    Cost: 16 random bytes and a few nanoseconds a report; 1, 2, 4 or 8 bytes of memory. Counting
    takes n steps and a fast Walsh-Hadamard transform, K log2 K additions.

    Examples
    --------
    >>> randomizer = HadamardResponse(domain_size=2, epsilon0=1.0986122886681100)
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['3/8', '1/8', '3/8', '1/8']
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[1]]
    ['3/8', '1/8', '1/8', '3/8']
    """

    name: ClassVar[str] = "hadamard-response"


def optimal_num_buckets(k: int, epsilon0: float) -> int:
    """Return the prime number of buckets with the least mean variance over k categories.

    At most the smallest prime >= k, and at most 2097143; it never falls as epsilon0 grows.

    The mean variance over the categories is the variance at the frequency 1/k. With p, q as in
    `HashedReports`, P = e^epsilon0 and t = g - 1, n times it is

        B t + C / t + D,  B = (P + k - 1) / (k (P - 1)^2),  C = P ((k - 1) P + 1) / (k (P - 1)^2),

    D without t. It is convex, so the best prime is next to its minimum at t^2 = C / B. And of two
    primes g < g', g' is the better one if and only if (g - 1)(g' - 1) < C / B. For k to infinity
    this is g = P + 1, rounded to a prime, as published.

    Only whole numbers and fractions are used, so that all machines choose alike: P comes from
    binary randomized response with its threshold. C / B <= P^2 grows with P; at P = 1 it is 1,
    which gives g = 2.
    """
    largest = _next_prime(min(k, LARGEST_NUM_BUCKETS) - 1)
    odds: Fraction = response_ratio(response_threshold(epsilon0))
    squared_optimum = odds * ((k - 1) * odds + 1) / (k - 1 + odds)
    root = math.isqrt(math.floor(squared_optimum))
    if root + 1 >= largest:
        return largest
    after = _next_prime(root + 1)
    before = next(g for g in range(root + 1, 1, -1) if _is_prime(g))
    return after if (before - 1) * (after - 1) < squared_optimum else before


def _next_prime(number: int) -> int:
    """Return the smallest prime above ``number``."""
    number += 1
    while not _is_prime(number):
        number += 1
    return number


def _is_prime(number: int) -> bool:
    """Primality of ``number`` by trial division: below 2^22 at most 2^11 steps."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _modulo(numbers: NDArray[Any], divisor: int) -> NDArray[Any]:
    """Return remainders by a constant, as products, in a time that is independent of numbers."""
    rests: NDArray[Any] = numbers - numbers // divisor * divisor
    return rests


# Most seeds of a table, a gigabyte; and a transform's cost per seed, in looks at one report.
_LARGEST_TABLE, _TRANSFORM_COST = 2**26, 20


def count_supports(law: HashedReports, data: NDArray[np.unsignedinteger]) -> Integers:
    """Return the exact number of reports, checked and contiguous, that support each category."""
    if law.num_buckets == 2:  # by the Walsh-Hadamard transform
        counts = histogram(data, law.num_possible_reports)
        differences = walsh_hadamard(counts[::2] - counts[1::2])[: law.domain_size]
        return (differences + data.size) >> 1
    looks = data.size * law.domain_size
    cost = _TRANSFORM_COST * law.num_buckets * law.num_seeds
    if law.num_seeds > _LARGEST_TABLE or looks <= cost:
        reports = Reports(data=data, fingerprint=law.fingerprint)
        return CategoryRandomizer.aggregate(law, reports).support.copy()
    return count_by_transform(law, data)


def count_by_transform(law: HashedReports, data: NDArray[np.unsignedinteger]) -> Integers:
    """Return the number of reports that support each category by FFT, for a prime g > 2."""
    g, shape = law.num_buckets, (law.num_buckets,) * law.num_digits
    if law.num_possible_reports <= data.size:
        counts = histogram(data, law.num_possible_reports)
        codes = np.arange(law.num_possible_reports)
    else:
        codes, counts = data.astype(np.int64), np.ones(data.size, dtype=np.int64)
    seeds, buckets = np.divmod(codes, g)
    digits, powers = law._digits(np.arange(law.domain_size)), g ** np.arange(law.num_digits)
    total = np.full(law.domain_size, float(counts.sum()))
    for j in range(1, g // 2 + 1):
        turned = counts * np.exp(-2j * np.pi * (j * buckets % g) / g)
        table = np.bincount(seeds, turned.real, law.num_seeds) + 1j * np.bincount(
            seeds, turned.imag, law.num_seeds
        )
        transform = np.fft.fftn(table.reshape(shape)).reshape(-1)
        total += 2.0 * transform[(-j * digits % g) @ powers].real
    return np.rint(total / g).astype(np.int64)
