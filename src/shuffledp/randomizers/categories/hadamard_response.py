"""Hadamard response: one random row of the Walsh-Hadamard matrix, and its sign, flipped or not."""

from dataclasses import dataclass, field
from typing import ClassVar

from shuffledp.core.checks import require_non_negative
from shuffledp.randomizers.categories.hashed_reports import HashedReports
from shuffledp.randomizers.categories.linear_hashing import (
    settle_response,
)
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.checks import fingerprint_of, require_num_categories


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(HashedReports, CategoryRandomizer):
    """The sign of the category in a random row of the Walsh-Hadamard matrix, kept or flipped.

    Parameters
    ----------
    k : int
        Number of categories, in [2, 2^32 - 1].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.

    Attributes
    ----------
    num_buckets : int
        g = 2.
    threshold : int
        T: the sign is flipped with probability exactly T / 2^64.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If k or epsilon0 is out of range.

    Notes
    -----
    Source: Acharya, Sun, Zhang, "Hadamard response", AISTATS 2019 (arXiv:1802.04705), in the form
    where the user draws the row and names it in the report. K = 2^m is the least power of two
    >= k. The user draws a row j, uniform in [0, K), from m random bits. The entry of row j at
    category x is (-1)^b, b the parity of the bits of j & x; the report is 2 j + b, with b flipped
    with probability 1 / (e^epsilon0 + 1). It supports the categories with the sign that it names:
    the user's own one unless b was flipped, and any other one with probability exactly 1/2.

    This is a linear hash over GF(2), see `HashedResponse`, so that `BinaryLocalHashing` has the
    same law, and `OptimizedLocalHashing` too while epsilon0 is below ln(2) / 2 = 0.35; beyond that
    the error of the latter is never larger. The loss cannot exceed 64 ln 2 = 44.4: there T = 1.

    Cost: 16 random bytes and a few nanoseconds a report; 1, 2, 4 or 8 bytes of memory. Counting
    takes n steps and a fast Walsh-Hadamard transform, K log2 K additions.

    Examples
    --------
    >>> randomizer = HadamardResponse(k=2, epsilon0=1.0986122886681100)  # just above ln 3
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[0]]
    ['3/8', '1/8', '3/8', '1/8']
    >>> [str(probability.limit_denominator(100)) for probability in randomizer.channel()[1]]
    ['3/8', '1/8', '1/8', '3/8']
    """

    name: ClassVar[str] = "hadamard-response"

    k: int
    epsilon0: float
    num_buckets: int = field(default=2, init=False, repr=False)
    threshold: int = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = require_num_categories(self.k)
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = settle_response(2, asked)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "epsilon0", epsilon0)
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "fingerprint", fingerprint_of(self.name, k=k, threshold=threshold))
