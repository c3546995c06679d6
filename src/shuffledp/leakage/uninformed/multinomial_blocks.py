"""All histograms of a multinomial law with their probabilities, in blocks.

*Probabilities.* With independent Poisson counts of means n s_y,

    Mult_n(h; s) = prod_y Po(h_y; n s_y) / Po(n; n),

and a Poisson mass in Loader's form loses a few roundings, besides abs(h_y - n s_y) times the
relative rounding of its mean. No logarithm of a factorial of n is ever taken.

*Windows.* By Bernstein's inequality a count is further from its mean n s_y than
t = L/3 + sqrt(L^2/9 + 2 L n s_y (1 - s_y)) with probability at most e^-L on either side. Histograms
with a count further out than t + c are left out. They have probability at most p = 2 m e^-L, and so
they have if n - c reports are drawn and any c are added: that moves counts against their means by
at most c. Hence a sum of weights a_y >= 0 of the reports loses at most p of its mean, with c = 1,

    E[sum_y a_y h_y; left out] = n sum_y s_y a_y Pr_{n-1}[h + e_y left out] <= p E[sum_y a_y h_y],

and likewise a sum over sets of c reports.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ULP = math.ulp(1.0)

#: Probability of all histograms that are left out, at most, also with reports added.
LEFT_OUT = 1e-18

# Histograms in a block: counts and what is computed from them stay in the second-level cache.
_BLOCK = 1 << 13

# Wider windows are not counted: there would be too many histograms in any case.
_WIDEST = 1 << 24

# Beyond this nobody asks how many.
_COUNTLESS = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramWindows:
    """Which histograms are listed.

    Parameters
    ----------
    num_users : int
        n.
    law : ndarray of float64, shape (m,)
        s, positive.
    low, high : ndarray of int64, shape (m,)
        Each count's window, both ends included.
    num_histograms : float
        How many there are within; inf where they are too many to be counted.
    left_out : float
        Upper bound of the share of a mean that all others may have; see the module.
    """

    num_users: int
    law: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    num_histograms: float
    left_out: float

    @property
    def relative_error(self) -> float:
        """Of the probability of every histogram that is listed."""
        widest = self.num_users * self.law
        widest = np.maximum(np.abs(self.low - widest), np.abs(self.high - widest))
        # A deviance is at most about 100 in a window, and good to some roundings of itself.
        return _ULP * (400.0 * len(self.law) + 4.0 * float(widest.sum()))


def histogram_windows(
    num_users: int, law: NDArray[np.float64], *, num_targets: int = 1
) -> HistogramWindows:
    """Return windows that hold all histograms, but for a probability of at most 1e-18.

    Parameters
    ----------
    num_users : int
        n >= 1.
    law : ndarray of float64, shape (m,)
        s, positive, with a sum of 1.
    num_targets : int, optional
        c: weights of so many reports at a time may be averaged.

    Notes
    -----
    O(sqrt(n) m).

    Examples
    --------
    >>> histogram_windows(10, np.array([0.5, 0.25, 0.25])).num_histograms
    66.0
    """
    exponent = math.log(2.0 * len(law) / LEFT_OUT)
    means = num_users * law
    reach = exponent / 3.0 + np.sqrt(exponent**2 / 9.0 + 2.0 * exponent * means * (1.0 - law))
    reach += num_targets
    low = np.maximum(np.floor(means - reach), 0.0).astype(np.int64)
    high = np.minimum(np.ceil(means + reach), num_users).astype(np.int64)
    complete = not low.any() and bool((high == num_users).all())
    return HistogramWindows(
        num_users=num_users,
        law=law,
        low=low,
        high=high,
        num_histograms=_num_histograms(num_users, low, high),
        left_out=0.0 if complete else LEFT_OUT,
    )


def _num_histograms(num_users: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> float:
    """Return how many histograms lie within windows; inf where there are too many."""
    widths = np.sort(high - low)
    if widths[-1] > _WIDEST:
        return math.inf
    # ways[i]: to write i as a sum of what the counts seen so far are above their low ends.
    rest = num_users - int(low.sum())
    ways = np.ones(1)
    for width in widths[:-1].tolist():
        if float(ways.max()) > _COUNTLESS:
            return math.inf
        sums = np.cumsum(ways)
        ways = np.concatenate([sums, np.full(width, sums[-1])])
        ways[width + 1 :] -= sums[: len(ways) - width - 1]
        ways = ways[: rest + 1]
    # The last count takes what is left, if its window holds that.
    return float(ways[max(rest - int(widths[-1]), 0) :].sum())


def histogram_blocks(
    windows: HistogramWindows,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield all histograms within the windows, with their probabilities.

    Yields
    ------
    counts : ndarray of float64, shape (b, m)
        Overwritten by the next block.
    masses : ndarray of float64, shape (b,)
        Probabilities, right to ``windows.relative_error``; overwritten likewise.

    Notes
    -----
    O(m) a histogram, some 10 ns times m.

    Examples
    --------
    >>> blocks = histogram_blocks(histogram_windows(2, np.array([0.5, 0.5])))
    >>> [(counts.tolist(), masses.round(12).tolist()) for counts, masses in blocks]
    [([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]], [0.25, 0.5, 0.25])]
    """
    from shuffledp.core.numerics.binomial_kernels import stirling_error
    from shuffledp.leakage.uninformed.multinomial_kernels import (
        next_histograms,
        poisson_masses,
    )

    n, size = windows.num_users, len(windows.law)
    # The widest window last: its count follows from the others.
    order = np.argsort(windows.high - windows.low, kind="stable")
    low, high = windows.low[order], windows.high[order]
    least_after = np.append(np.cumsum(low[::-1])[::-1][1:], 0)
    most_after = np.append(np.cumsum(high[::-1])[::-1][1:], 0)
    tables = [
        poisson_masses(n * float(windows.law[y]), int(windows.low[y]), int(windows.high[y]))
        for y in order
    ]
    starts = np.cumsum([0] + [len(table) for table in tables[:-1]])
    # 1 / Po(n; n)
    masses = np.full(size, math.sqrt(2.0 * math.pi * n) * math.exp(stirling_error(float(n))))
    counts, ends, rests = (np.zeros(size, dtype=np.int64) for _ in range(3))
    rests[0] = n
    block, block_masses = np.empty((_BLOCK, size)), np.empty(_BLOCK)
    inverse = np.argsort(order)
    is_first, filled = True, _BLOCK
    flat = np.concatenate(tables)
    while filled == _BLOCK:
        filled = next_histograms(
            low,
            high,
            least_after,
            most_after,
            flat,
            starts,
            counts,
            ends,
            rests,
            masses,
            is_first,
            block,
            block_masses,
        )
        is_first = False
        if filled:
            yield block[:filled, inverse], block_masses[:filled]
