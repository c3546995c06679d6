"""Shuffled divergences by listing everything: all data, all outcomes, both directions.

A channel is a sequence of rows, ``channel[x][y] = Pr[report y | value x]``, of floats or Fractions.
The adversary sees how many reports of each kind there are. Nothing here shares code or formulas
with the package.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import Any

import numpy as np

Channel = Sequence[Sequence[Any]]


def randomized_response(k: int, p: Any) -> Channel:
    """k-RR with probability ratio p: exact where p is a Fraction."""
    return [[(p if y == x else 1) / (p + k - 1) for y in range(k)] for x in range(k)]


def unary_encoding(k: int, keep: Any, set_other: Any) -> Channel:
    """k bits, the own one set with probability ``keep``, every other one with ``set_other``."""
    rows = []
    for x in range(k):
        row = []
        for bits in itertools.product((0, 1), repeat=k):
            mass = Fraction(1) if isinstance(keep, Fraction) else 1.0
            for i, bit in enumerate(bits):
                chance = keep if i == x else set_other
                mass *= chance if bit else 1 - chance
            row.append(mass)
        rows.append(row)
    return rows


def symmetric_unary(k: int, root: Any) -> Channel:
    """Basic RAPPOR, ``root`` the square root of e^epsilon0."""
    return unary_encoding(k, root / (root + 1), 1 / (root + 1))


def optimized_unary(k: int, p: Any) -> Channel:
    """OUE, ``p`` = e^epsilon0."""
    half = Fraction(1, 2) if isinstance(p, Fraction) else 0.5
    return unary_encoding(k, half, 1 / (p + 1))


@lru_cache(maxsize=256)
def _one_more(num_outputs: int, num_reports: int) -> np.ndarray:
    """Where each histogram of ``num_reports`` goes when a report of each kind is added."""
    index = {h: i for i, h in enumerate(_histograms(num_outputs, num_reports + 1))}
    table = [
        [index[(*h[:y], h[y] + 1, *h[y + 1 :])] for y in range(num_outputs)]
        for h in _histograms(num_outputs, num_reports)
    ]
    return np.array(table)


@lru_cache(maxsize=256)
def _histograms(num_outputs: int, num_reports: int) -> list[tuple[int, ...]]:
    if num_outputs == 1:
        return [(num_reports,)]
    return [
        (first, *rest)
        for first in range(num_reports + 1)
        for rest in _histograms(num_outputs - 1, num_reports - first)
    ]


def _add_report(law: np.ndarray, row: Sequence[Any], num_reports: int) -> np.ndarray:
    """Law of the histogram after one more user, whose report has law ``row``."""
    targets = _one_more(len(row), num_reports)
    size = len(_histograms(len(row), num_reports + 1))
    grown = np.zeros(size, dtype=law.dtype)
    for y, chance in enumerate(row):
        grown[targets[:, y]] += law * chance  # different histograms stay different
    return grown


def neighbouring_laws(
    channel: Channel, num_users: int
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[int, int], tuple[int, ...]]]:
    """Yield the laws P, Q of the histogram for every ordered pair (x, x') and data of the others.

    Each item also has the pair and the values of the others, in ascending order.
    """
    is_exact = isinstance(channel[0][0], Fraction)
    start = np.array([Fraction(1) if is_exact else 1.0], dtype=object if is_exact else float)
    values = range(len(channel))
    laws: dict[tuple[int, ...], np.ndarray] = {(): start}
    for count in range(num_users - 1):
        laws = {
            (*others, x): _add_report(law, channel[x], count)
            for others, law in laws.items()
            for x in values
            if not others or x >= others[-1]
        }
    for others, law in laws.items():
        full = [_add_report(law, channel[x], num_users - 1) for x in values]
        for x, other in itertools.permutations(values, 2):
            yield full[x], full[other], (x, other), others


def hockey_stick(p: np.ndarray, q: np.ndarray, e: Any) -> Any:
    """sum max(P - e Q, 0)."""
    excess = p - e * q
    return np.where(excess > 0, excess, 0 * excess).sum()


class ShuffledDivergence:
    """delta(epsilon) of a shuffled channel, the largest over all neighbouring data."""

    def __init__(self, channel: Channel, num_users: int) -> None:
        # Laws as two matrices, one row a pair: a divergence is then one vectorised step.
        pairs = list(neighbouring_laws(channel, num_users))
        self._p = np.array([pair[0] for pair in pairs])
        self._q = np.array([pair[1] for pair in pairs])

    def delta(self, epsilon: float) -> float:
        """Largest hockey-stick divergence at ``epsilon``."""
        return float(np.maximum(self._p - exp(epsilon) * self._q, 0.0).sum(axis=1).max())

    def epsilon(self, delta: float, highest: float) -> float:
        """Least epsilon whose delta is at most ``delta``, by bisection."""
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, highest
        for _ in range(45):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high
