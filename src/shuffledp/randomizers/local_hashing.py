"""Local hashing: each user hashes their category with a seed of their own, then randomizes it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from shuffledp.randomizers.linear_hashing import LARGEST_NUM_BUCKETS, HashedReports, settle_response
from shuffledp.randomizers.thresholds import flip_odds, flip_threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedLocalHashing(HashedReports):
    """Hash the category to g buckets with a random linear hash, then g-ary randomized response.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then that of the law drawn, rounded up.

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
    `HashedReports`), so that any two categories collide with probability exactly 1/g, and
    the estimate is exactly unbiased. Values that collide cannot be prepared: the categories are a
    closed list, and the seed is drawn by the user after the value is known. So no keyed hash
    function is needed, and nothing rests on a public one.

    The loss is ln((2^64 - (g - 1) T) / T), and cannot exceed 64 ln 2 = 44.4: there T = 1.

    Cost: 16 random bytes and some tens of nanoseconds a report; 1 to 8 bytes of memory, for a
    report is a whole number below k g^2. Counting n reports takes n k / g additions, or those of a
    transform, n + (m - 1) g^(m + 1) with m = ceil(log_g k), or fewer by mixing both.

    Examples
    --------
    >>> randomizer = OptimizedLocalHashing(domain_size=100, epsilon0=2.0)
    >>> randomizer.num_buckets, randomizer.num_report_bytes
    (7, 2)
    >>> [round(probability, 4) for probability in randomizer.support_probabilities]
    [0.5519, 0.1429]
    """

    name: ClassVar[str] = "optimized-local-hashing"

    def _settled(self, epsilon0: float) -> tuple[dict[str, int], float]:
        num_buckets, threshold, epsilon0 = _settle_with_buckets(self.domain_size, epsilon0)
        return {"num_buckets": num_buckets, "threshold": threshold}, epsilon0


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(HashedReports):
    """The sign of the category in a random row of the Walsh-Hadamard matrix, kept or flipped.

    Parameters
    ----------
    domain_size : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then that of the law drawn, rounded up.

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

    The mean of the variances over the categories is that at the frequency 1/k. With p, q as in
    `HashedReports`, P = e^epsilon0 and t = g - 1, n times it is

        B t + C / t + D,  B = (P + k - 1) / (k (P - 1)^2),  C = P ((k - 1) P + 1) / (k (P - 1)^2),

    D without t. It is convex, so the best prime is next to its minimum at t^2 = C / B. And of two
    primes g < g', g' is the better one if and only if (g - 1)(g' - 1) < C / B. For k to infinity
    this is g = P + 1, rounded to a prime, as published.

    Only whole numbers and fractions are used, so that all machines choose alike: P is that of
    binary randomized response with its threshold. C / B <= P^2 grows with P; at P = 1 it is 1,
    which gives g = 2.
    """
    largest = _next_prime(min(k, LARGEST_NUM_BUCKETS) - 1)
    odds: Fraction = flip_odds(flip_threshold(epsilon0))
    squared_optimum = odds * ((k - 1) * odds + 1) / (k - 1 + odds)
    root = math.isqrt(math.floor(squared_optimum))
    if root + 1 >= largest:
        return largest
    after = _next_prime(root + 1)
    before = next(g for g in range(root + 1, 1, -1) if _is_prime(g))
    return after if (before - 1) * (after - 1) < squared_optimum else before


def _settle_with_buckets(k: int, epsilon0: float) -> tuple[int, int, float]:
    """Return g, T and the loss, such that asking for this loss gives the same three again.

    The loss that is settled on for g may lie just below the step where g is best. Then the g that
    is best there settles within that loss, and so on: g never rises on the way, so it ends.
    """
    num_buckets = optimal_num_buckets(k, epsilon0)
    while True:
        threshold, epsilon0 = settle_response(num_buckets, epsilon0)
        best = optimal_num_buckets(k, epsilon0)
        if best == num_buckets:
            return num_buckets, threshold, epsilon0
        num_buckets = best


def _next_prime(number: int) -> int:
    """Return the smallest prime above ``number``."""
    number += 1
    while not _is_prime(number):
        number += 1
    return number


def _is_prime(number: int) -> bool:
    """Return whether ``number`` is prime, by trial division: below 2^22 at most 2^11 steps."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
