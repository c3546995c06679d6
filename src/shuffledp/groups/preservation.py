"""(eta, delta)-preservation: how much of a subset's reports stays within the subset.

A shuffle is (eta, delta)-preserving for a set S of l users if, with probability at least 1 - delta,
at least eta of the rows of S hold reports of members of S.

*Hamming, exactly.* With t = e^theta - 1 the number C of places of S whose report comes from outside
has Pr[C = c] = l! (n - l)! f(l, c) f(n - l, c) / (n! f(n, 0)),

    f(m, c) = sum over a from 0 to m - c of (t^a / a!) binomial(m - a, c).

All terms are positive, so logarithms keep relative accuracy.

*Kendall, Cayley: simulated.* From N draws of pi, order statistics give limits of eta that hold for
every law, at the stated confidence.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Definition A.4 for the notion; the law is ours: docs/results/preservation.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_delta, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.groups.permutations import require_theta

# Above this the exact law takes more than a few seconds; simulate.
MOST_ITEMS = 20_000

# From here on e^-theta is below 1e-304, and so is everything but the identity.
_LARGEST_THETA = 700.0
_SMALLEST_UPPER = 1e-300

# Roundings of a logarithm of a term, each of half an ulp of its largest part, with room.
_ROUNDINGS = 64.0


def required_members(subset_size: int, eta: float) -> int:
    """Return how many of l reports have to stay for a share: eta l, rounded up."""
    size = require_at_least("subset_size", subset_size, 1)
    if not 0.0 <= eta <= 1.0:  # written so that NaN fails
        raise ParameterError(f"eta = {eta} is not in [0, 1]: it is a share, such as 0.9")
    return math.ceil(Fraction(repr(float(eta))) * size)


def _share_of(members: int, subset_size: int) -> float:
    """Return a share that requires so many members, read as the decimal it prints as."""
    share = members / subset_size
    if required_members(subset_size, share) > members:
        share = math.nextafter(share, 0.0)
    return share


def hamming_preservation(
    num_items: int, theta: float, subset_size: int, *, eta: float
) -> Enclosure:
    """Enclose the probability that a Hamming-Mallows shuffle keeps less than eta of a subset.

    The smallest delta for which the shuffle is (eta, delta)-preserving; the upper end is safe to
    state. Which members the subset has does not matter. Relative width about 1e-9 at n = 1e4. Cost:
    O(l (n - l)) at most; a second at n = 1e4.
    """
    n, exponent, size = _checked(num_items, theta, subset_size)
    leaving = size - required_members(size, eta)  # so many may
    tails = _leaving_tails(n, exponent, size)
    if leaving + 1 >= len(tails):
        return Enclosure(0.0, 0.0)
    return tails[leaving + 1]


def largest_preserved_share(
    num_items: int, theta: float, subset_size: int, *, delta: float
) -> float:
    """Return the largest share that a Hamming-Mallows shuffle preserves but for a chance of delta.

    The largest multiple of 1/l, rounded down, for which the upper end of `hamming_preservation` is
    at most ``delta``. Errs downwards.
    """
    n, exponent, size = _checked(num_items, theta, subset_size)
    most = require_delta(delta)
    tails = _leaving_tails(n, exponent, size)
    # The first c so that more than c leave with probability at most delta; all of them may.
    leaving = next((c for c in range(len(tails) - 1) if tails[c + 1].upper <= most), len(tails) - 1)
    return _share_of(size - leaving, size)


def _checked(num_items: int, theta: float, subset_size: int) -> tuple[int, float, int]:
    n = require_at_least("num_items", num_items, 1)
    if n > MOST_ITEMS:
        raise ParameterError(
            f"num_items = {n} is above {MOST_ITEMS}: the exact law takes too long there; use "
            "simulated_preservation"
        )
    size = require_at_least("subset_size", subset_size, 1)
    if size > n:
        raise ParameterError(f"subset_size = {size} is above num_items = {n}: it is a part of it")
    return n, require_theta(theta), size


def _leaving_tails(n: int, theta: float, size: int) -> list[Enclosure]:
    """Enclose Pr[at least c reports leave] for c = 0 to min(l, n - l), and 0 beyond."""
    most = min(size, n - size)
    certain = Enclosure(1.0, 1.0)
    if most == 0 or math.isinf(theta):
        return [certain]
    if theta > _LARGEST_THETA:
        # One that leaves moves two: Pr <= sum over h >= 2 of (n e^-theta)^h.
        return [certain] + [Enclosure(0.0, _SMALLEST_UPPER)] * most
    weights, error = _log_weights(n, theta, size, most)
    shares = np.exp(weights - weights.max())
    # Summed from both ends, so that a small tail keeps its digits.
    above = np.cumsum(shares[::-1])[::-1][1:]  # at least c = 1, 2, ...
    below = np.cumsum(shares)[:-1]  # fewer than that
    error += 4.0 * (most + 2) * math.ulp(1.0)
    probabilities = above / (above + below)
    lower = np.maximum(probabilities * (1.0 - error), 0.0)
    upper = np.clip(probabilities * (1.0 + error), _SMALLEST_UPPER, 1.0)
    pairs = zip(lower.tolist(), upper.tolist(), strict=True)
    return [certain, *(Enclosure(low, high) for low, high in pairs)]


def _log_weights(n: int, theta: float, size: int, most: int) -> tuple[NDArray[np.float64], float]:
    """Return ln f(l, c) + ln f(n - l, c) for c = 0 to ``most``, and the relative error of a sum."""
    from scipy.special import gammaln

    factorials = gammaln(np.arange(n + 2, dtype=np.float64) + 1.0)
    log_t = theta + math.log(-math.expm1(-theta)) if theta > 0.0 else -math.inf
    counts = range(most + 1)
    weights = np.array(
        [
            _log_sum(size, c, log_t, factorials) + _log_sum(n - size, c, log_t, factorials)
            for c in counts
        ]
    )
    # For t <= 1 the terms with t^a, a > 0, weigh so little that their errors add up to less than 3.
    scale = float(factorials[-1]) + (n * log_t if log_t > 0.0 else 3.0) + 1.0
    return weights, math.expm1(4.0 * _ROUNDINGS * 0.5 * math.ulp(1.0) * scale)


def _log_sum(m: int, c: int, log_t: float, factorials: NDArray[np.float64]) -> float:
    """Return ln f(m, c), f(m, c) = sum over a of (t^a / a!) binomial(m - a, c)."""
    if log_t == -math.inf:
        return float(factorials[m] - factorials[c] - factorials[m - c])
    last = m - c + 1
    terms = factorials[m - last + 1 : m + 1][::-1] - factorials[:last][::-1] - factorials[:last]
    terms = terms + log_t * np.arange(last) - factorials[c]
    largest = float(terms.max())
    return largest + math.log(float(np.exp(terms - largest).sum()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedPreservation:
    """How many reports stayed within a subset of l, in independent draws of the shuffle, rising.

    A limit holds with probability ``confidence``; each limit is one statement of its own.
    """

    stayed: NDArray[np.int64]
    subset_size: int
    confidence: float

    @property
    def num_draws(self) -> int:
        """Number N of draws."""
        return int(self.stayed.size)

    def eta_for(self, delta: float) -> float:
        """Return a lower confidence limit of the largest share that stays but for delta.

        A multiple of 1/l; 0 where (1 - delta)^N, of N draws, is above one minus the confidence. Let
        xi be the largest r with Pr[stayed < r] <= delta. If the i-th smallest of N is above xi,
        fewer than i are at most xi, which has probability above delta each. The limit is the order
        statistic for which Bin(N, delta) makes that rare enough.
        """
        from scipy.stats import binom

        ranks = np.arange(self.num_draws)
        chances = binom.cdf(ranks, self.num_draws, require_open_unit("delta", delta))
        enough = np.flatnonzero(chances <= 1.0 - self.confidence)
        if not enough.size:
            return 0.0
        return _share_of(int(self.stayed[enough[-1]]), self.subset_size)


def simulated_preservation(
    draws: Iterable[NDArray[np.int64]], places: ArrayLike, *, confidence: float = 0.95
) -> SimulatedPreservation:
    """Count how many reports stay within a subset, in draws pi of a Mallows model.

    ``places`` are those of the subset along the reference order, distinct. Each draw is looked at
    once.
    """
    level = require_open_unit("confidence", confidence)
    subset = np.unique(np.asarray(places))
    if subset.size == 0 or subset.size != np.size(places) or subset.dtype.kind not in "iu":
        raise ParameterError("places is empty or has a place twice: give distinct whole numbers")
    stayed = []
    inside = np.zeros(0, bool)
    for draw in draws:
        if inside.size != draw.size:
            if int(subset[0]) < 0 or int(subset[-1]) >= draw.size:
                raise ParameterError(
                    f"places are not all in [0, {draw.size}): the draws have that many places"
                )
            inside = np.zeros(draw.size, bool)
            inside[subset] = True
        stayed.append(int(np.count_nonzero(inside[draw[subset]])))
    if not stayed:
        raise ParameterError("draws is empty: give at least one draw")
    counts = np.sort(np.array(stayed, np.int64))
    counts.flags.writeable = False
    return SimulatedPreservation(stayed=counts, subset_size=int(subset.size), confidence=level)
