"""The kernel (B) as plain sums over all users' reports, with scipy's binomials and no windows.

(B): delta(epsilon) = (1/n) E[(G_1 + ... + G_n)_+]. Three kinds of report: a fair-coin pair report,
and two other kinds of fixed weight (see the package's symmetric laws). O(n^2) per law, O(n^2) per
epsilon: for n up to a thousand.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom


@dataclass(frozen=True)
class Weights:
    """One user's law of G: pair reports with ratios (high, low) or (low, high), others (w, w)."""

    pair_mass: float
    low: float
    high: float
    rest_mass: float = 0.0
    rest_weight: float = 1.0
    base_weight: float = 0.0


def _fair_coin_tails(num_users: int) -> tuple[np.ndarray, np.ndarray]:
    """T[b, m] = Pr[Bin(b, 1/2) >= m] and U[b, m] = sum of T[b, m'] over m' > m; positive terms."""
    heads = np.arange(num_users + 2)
    points = binom.pmf(heads[None, :], np.arange(num_users + 1)[:, None], 0.5)
    tails = np.cumsum(points[:, ::-1], axis=1)[:, ::-1]
    sums = np.cumsum(tails[:, ::-1], axis=1)[:, ::-1]
    beyond = np.concatenate([sums[:, 1:], np.zeros((num_users + 1, 1))], axis=1)
    return tails, beyond


class DirectSum:
    """delta(epsilon) of (B) for one law and number of users, without cancellation."""

    def __init__(self, law: Weights, num_users: int) -> None:
        self._law, self._num_users = law, num_users
        self._tails, self._beyond = _fair_coin_tails(num_users)
        counts = np.arange(num_users + 1)
        pairs, rests = np.meshgrid(counts, counts, indexing="ij")
        share = law.rest_mass / (1.0 - law.pair_mass) if law.rest_mass > 0.0 else 0.0
        masses = binom.pmf(pairs, num_users, law.pair_mass) * np.where(
            rests <= num_users - pairs, binom.pmf(rests, num_users - pairs, min(share, 1.0)), 0.0
        )
        keep = masses > 0.0
        self._masses, self._pairs = masses[keep], pairs[keep]
        self._weights = (
            law.base_weight * num_users
            + (0.5 * (law.high + law.low) - law.base_weight) * self._pairs
            + (law.rest_weight - law.base_weight) * rests[keep]
        )

    def delta(self, epsilon: float) -> float:
        """E[(step D - slope W)_+] / n = 2 step E[(heads - y)_+] / n, y = (B + slope W/step)/2."""
        slope = math.expm1(epsilon)
        step = (self._law.high - self._law.low) * (1.0 + 0.5 * slope)
        y = 0.5 * (self._pairs + slope * self._weights / step)
        inside = y < self._pairs
        pairs, y = self._pairs[inside], y[inside]
        heads = np.floor(y).astype(int) + 1
        # E[(X - y)_+] = (m - y) Pr[X >= m] + Pr[X >= m + 1] + Pr[X >= m + 2] + ..., m > y
        excess = (heads - y) * self._tails[pairs, heads] + self._beyond[pairs, heads]
        return float((self._masses[inside] * 2.0 * step * excess).sum()) / self._num_users

    def epsilon(self, delta: float, highest: float) -> float:
        """Least epsilon whose delta is at most ``delta``, by bisection."""
        low, high = 0.0, highest
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


def clones(epsilon0: float) -> Weights:
    """Pair {p, 1} with mass 1/(p+1) each, theory 2.2."""
    p = math.exp(epsilon0)
    return Weights(pair_mass=2.0 / (p + 1.0), low=1.0, high=p)


def k_rr(epsilon0: float, k: int) -> Weights:
    """X and Y with mass a each, weight 1 with mass (k-2) a, theory 2.3."""
    p = math.exp(epsilon0)
    a = 1.0 / (p + k - 1.0)
    return Weights(pair_mass=2.0 * a, low=1.0, high=p, rest_mass=(k - 2) * a)


def k_rr_third_answer(epsilon0: float, k: int) -> Weights:
    """All others hold one third answer: its reports have weight 1/p."""
    p = math.exp(epsilon0)
    a = 1.0 / (p + k - 1.0)
    return Weights(
        pair_mass=2.0 * a, low=1.0, high=p, rest_mass=(k - 3) * a, base_weight=math.exp(-epsilon0)
    )


class UnaryFourKinds:
    """(B) for unary encodings with all four kinds of report kept apart, theory 2.3, at small n.

    Blanket omega = l * noise: pair reports (p, 1) or (1, p), both bits set weight p, none set
    weight 1, outside weight 0.
    """

    def __init__(self, epsilon0: float, num_users: int, *, optimized: bool) -> None:
        self._p = p = math.exp(epsilon0)
        self._num_users = n = num_users
        noise = 1.0 / (p + 1.0) if optimized else 1.0 / (1.0 + math.sqrt(p))
        low = (p + 1.0) / (2.0 * p) if optimized else 1.0 / math.sqrt(p)
        half_pair = low * noise * (1.0 - noise)
        both, none = low * noise**2, low * (1.0 - noise) ** 2
        self.masses = (half_pair, half_pair, both, none, 1.0 - low)
        counts = np.array(
            [
                (x, y, b, z)
                for x in range(n + 1)
                for y in range(n + 1 - x)
                for b in range(n + 1 - x - y)
                for z in range(n + 1 - x - y - b)
            ]
        )
        rest = n - counts.sum(axis=1)
        factorial = np.array([float(math.factorial(i)) for i in range(n + 1)])
        log_mass = (
            counts @ np.log([half_pair, half_pair, both, none])
            + rest * math.log(1.0 - low)
            + math.log(factorial[n])
            - np.log(factorial[counts]).sum(axis=1)
            - np.log(factorial[rest])
        )
        self._masses, self._counts = np.exp(log_mass), counts

    def delta(self, epsilon: float) -> float:
        """Sum over all numbers of reports of each kind."""
        p, e = self._p, math.exp(epsilon)
        values = np.array([p - e, 1.0 - p * e, p * (1.0 - e), 1.0 - e])
        total = np.maximum(self._counts @ values, 0.0)
        return float((self._masses * total).sum()) / self._num_users


def sparse_delta(law: Weights, num_users: int, epsilon: float, most: int = 300) -> float:
    """(B) for any number of users where fewer than ``most`` reports of either kind ever come."""
    slope = math.expm1(epsilon)
    step = (law.high - law.low) * (1.0 + 0.5 * slope)
    rests, total = np.arange(most), 0.0
    for pairs in range(1, most):
        mass = binom.pmf(pairs, num_users, law.pair_mass)
        if mass < 1e-40:
            continue
        heads = np.arange(pairs + 1)
        weights = (
            law.base_weight * num_users
            + (0.5 * (law.high + law.low) - law.base_weight) * pairs
            + (law.rest_weight - law.base_weight) * rests
        )
        gains = np.maximum(step * (2.0 * heads - pairs) - slope * weights[:, None], 0.0)
        rest_law = binom.pmf(rests, num_users - pairs, law.rest_mass / (1.0 - law.pair_mass))
        total += mass * (rest_law @ gains @ binom.pmf(heads, pairs, 0.5))
    return total / num_users
