"""Longitudinal collection exactly as printed, for comparison; `MonitorServer` is the corrected one.

Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by Shuffling",
SODA 2019, arXiv:1811.12469v2, Algorithms 1 and 2. Two things differ from what is used elsewhere:

- line 11 of Algorithm 2 multiplies by log2(d), but clients draw one of log2(d) + 1 levels: every
  estimate is too small by the factor log2(d) / (log2(d) + 1);
- a sign is kept with probability e^(epsilon/2) / (1 + e^(epsilon/2)), which makes all that a client
  ever reports exactly epsilon/2-locally private, where Theorem 5 claims epsilon.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from oracles.period_trees import index
from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.client import MonitorReport
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import running_sums
from shuffledp.randomizers.thresholds import response_threshold


class PublishedClient:
    """Algorithm 1: reports of one user, as printed.

    Parameters
    ----------
    periods : int
        d, a power of two.
    max_changes : int
        k, at least 1.
    epsilon : float
        As printed, positive; the local loss is half of it.
    entropy : Entropy
        Source of all draws.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> client = PublishedClient(1, 1, 2.0, Entropy.from_seed(1))
    >>> client.update(1, 1).period
    1
    """

    __slots__ = ("_chosen_change", "_entropy", "_flip_threshold", "_level", "_num_changes", "_told")

    def __init__(self, periods: int, max_changes: int, epsilon: float, entropy: Entropy) -> None:
        num_levels = _log2(periods) + 1
        k = require_at_least("max_changes", max_changes, 1)
        # The letters of the algorithm: kappa*, h*, kappa, c.
        generator = entropy.generator()
        self._chosen_change = int(generator.integers(1, k + 1))
        self._level = int(generator.integers(1, num_levels + 1))
        self._num_changes = 0
        self._told = 0
        self._entropy = entropy
        self._flip_threshold = response_threshold(require_positive("epsilon", epsilon) / 2)

    def update(self, t: int, change: int) -> MonitorReport | None:
        """Tell a period's change and get the report that falls due, if any.

        Parameters
        ----------
        t : int
            Period, from 1; one call for each, in order.
        change : int
            x_t: state at t minus state at t - 1, so -1, 0 or +1.

        Returns
        -------
        MonitorReport or None
            None unless 2^(h* - 1) divides t.

        Raises
        ------
        ParameterError
            If ``change`` is not -1, 0 or 1.
        """
        if change not in (-1, 0, 1):
            raise ParameterError(f"change = {change} is not -1, 0 or 1: give st[t] - st[t - 1]")
        if change:
            self._num_changes += 1
            if self._num_changes == self._chosen_change:
                self._told = change
        if t % (1 << (self._level - 1)):
            return None
        word = int(self._entropy.words(1)[0])
        if self._told == 0:
            sign = 1 if word & 1 else -1
        else:
            sign = -self._told if word < self._flip_threshold else self._told
            self._told = 0
        return MonitorReport(level=self._level, period=t, sign=sign)


def published_scale(periods: int, max_changes: int, epsilon: float) -> float:
    """Return the factor of line 11 of Algorithm 2, as printed.

    Parameters
    ----------
    periods : int
        d, a power of two.
    max_changes : int
        k, at least 1.
    epsilon : float
        As printed, positive.

    Returns
    -------
    float
        (e^(epsilon/2) + 1) / (e^(epsilon/2) - 1) k log2(d); 0 for d = 1. Unbiased is log2(d) + 1.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> round(published_scale(8, 2, 2 * math.log(3)), 9)  # 2 * 2 * 3
    12.0
    """
    k = require_at_least("max_changes", max_changes, 1)
    half = require_positive("epsilon", epsilon) / 2.0
    return k * _log2(periods) / math.tanh(half / 2.0)


def published_running_counts(
    periods: int,
    max_changes: int,
    epsilon: float,
    reports: Iterable[MonitorReport],
) -> NDArray[np.float64]:
    """Return the running counts of Algorithm 2, as printed: too small by log2(d) / (log2(d) + 1).

    Parameters
    ----------
    periods : int
        d, a power of two.
    max_changes : int
        k, at least 1.
    epsilon : float
        As printed, positive.
    reports : iterable of MonitorReport
        Of all clients and periods.

    Returns
    -------
    ndarray of float64, shape (periods,)
        Index 0 is period 1.

    Raises
    ------
    ParameterError
        If an argument is out of range, or a report is of no node.

    Examples
    --------
    >>> report = MonitorReport(level=2, period=2, sign=1)
    >>> published_running_counts(2, 1, 2 * math.log(3), [report]).round(9).tolist()
    [0.0, 2.0]
    """
    tree = PeriodTree(periods=periods)
    scale = published_scale(periods, max_changes, epsilon)
    sums = np.zeros(tree.num_nodes)
    for report in reports:
        sums[index(tree, report.level, report.period >> (report.level - 1))] += report.sign
    estimates: NDArray[np.float64] = scale * running_sums(tree, sums, tree.periods)
    return estimates


def _log2(periods: int) -> int:
    """Return log2 of a power of two, else raise."""
    d = require_at_least("periods", periods, 1)
    if d & (d - 1):
        raise ParameterError(
            f"periods = {d} is not a power of two, as the paper supposes: take "
            f"{1 << d.bit_length()}, or MonitorServer"
        )
    return d.bit_length() - 1
