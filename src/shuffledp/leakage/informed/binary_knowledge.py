"""Two values: which knowledge of the others helps most, and which least.

N others, c of whom report a one with probability p and N - c with 1 - p, p > 1/2. What is guessed
right depends on the mode of their number of ones alone
(`shuffledp.leakage.informed.strong`). Since

    abs(1 - p + p e^(it)) = abs(p + (1 - p) e^(it)),

the modulus m(t) of the characteristic function is the same for every c: only its phase differs.

*Most.* Pr[S = s] <= (1 / 2 pi) integral of m(t)^N dt for every c and s, and for even N both are
equal at c = N/2, s = N/2, where the phase is 0. So **to know that exactly half of the others have
each value is the worst case for the target, if their number is even**. One more coin cannot raise
the mode of a sum, so for odd N that of N - 1 balanced others is above all.

*Least.* With z(t) what is left of the phase of a coin of chance 1 - p once its mean is taken out,
and s the whole number next to the mean, the phase of every c is at most t / 2 + N abs(z(t)) in
absolute value; and cos x >= 1 - x^2 / 2.

The two ends are within a relative 1 / (N p (1 - p)) or so of one another.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.informed.report_sums import (
    NEGLIGIBLE,
    SERIES_ANGLE,
    TAIL,
    Coins,
    Nodes,
    bernstein_window,
    mode_mass,
    phase_remainder,
    sum_nodes,
)

_ULP = math.ulp(1.0)

# Numbers of ones looked at in one go.
_BLOCK = 4096


def _common_nodes(num_others: int, truth: Fraction) -> Nodes:
    """Return nodes with a period that is long enough for every c."""
    variance = num_others * float(truth) * float(1 - truth)
    # Around any other mean the window is as long, but for rounding and for the ends of 0 ... N.
    first, last = bernstein_window(Fraction(num_others, 2), variance, num_others)
    length = min(last - first + 4, num_others + 1)
    nodes, _ = sum_nodes([Coins(num_others, truth)], period=length + 1 - length % 2)
    return nodes


def balanced_mode(num_others: int, truth: Fraction) -> Enclosure:
    """Return the largest mode there is for even N; for odd N, that of N - 1, above all.

    Examples
    --------
    >>> found = balanced_mode(2, Fraction(3, 4))  # 3/4 3/4 + 1/4 1/4
    >>> found.lower <= 0.625 <= found.upper <= 0.625 + 1e-12
    True
    """
    half = num_others // 2
    return mode_mass([Coins(half, truth), Coins(half, 1 - truth)])


def least_mode_lower(num_others: int, truth: Fraction) -> float:
    """Return a lower bound of the mode for every c, at least 0; for N >= 1 and 1/2 < p < 1.

    Examples
    --------
    >>> 0.0 <= least_mode_lower(100, Fraction(3, 4)) <= 0.1
    True
    """
    nodes = _common_nodes(num_others, truth)
    chance = float(1 - truth)
    phase = 0.5 * nodes.angles + num_others * np.abs(phase_remainder(chance, nodes.angles))
    terms = nodes.moduli * (1.0 - 0.5 * phase * phase)
    size = nodes.moduli * (1.0 + 0.5 * phase * phase)
    value = (1.0 + 2.0 * float(terms.sum())) / nodes.period
    error = 2.0 * float((size * 1e-12 + nodes.errors * (1.0 + phase)).sum()) + 4.0 * _ULP
    return max(value - 1.01 * (error / nodes.period + TAIL + NEGLIGIBLE), 0.0)


def modes(
    num_others: int, truth: Fraction, counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """Return the mode for each c in ``counts``, and a bound on the error of each.

    Notes
    -----
    Some sixty nodes each: 10 microseconds. See `report_sums.mode_mass`.

    Examples
    --------
    >>> found, error = modes(2, Fraction(3, 4), np.array([0, 1]))
    >>> found.round(12).tolist(), error < 1e-12
    ([0.5625, 0.625], True)
    """
    nodes = _common_nodes(num_others, truth)
    chance = float(1 - truth)
    skew = phase_remainder(chance, nodes.angles)
    means = counts * float(truth) + (num_others - counts) * chance
    centers = np.rint(means)
    order = np.where(nodes.angles <= SERIES_ANGLE, nodes.angles**3, nodes.angles)
    doubt = 16.0 * _ULP * (num_others * chance * order + nodes.angles)
    doubt += 4.0 * _ULP * num_others * nodes.angles  # of the means
    found = np.empty(counts.size)
    for first in range(0, counts.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        phases = np.outer(num_others - 2 * counts[block], skew)
        phases += np.outer(means[block] - centers[block], nodes.angles)
        waves = nodes.moduli * np.exp(1j * phases)
        turns = np.exp(-1j * np.outer([-1.0, 0.0, 1.0], nodes.angles))
        found[block] = (1.0 + 2.0 * (waves @ turns.T).real.max(axis=1)) / nodes.period
    error = 2.0 * float((nodes.errors + nodes.moduli * (doubt + 400.0 * _ULP)).sum()) + 4.0 * _ULP
    return found, 1.01 * (error / nodes.period + TAIL + NEGLIGIBLE)
