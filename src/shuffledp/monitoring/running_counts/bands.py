"""Bands around running counts: for one period, or for all of them at once.

Sums of many users' signs are nearly normal, all nodes have the same variance and are uncorrelated
up to terms that are small beside it (see `variances`). So what a band for all periods has to hold
is the largest of the errors over their standard deviations,

    max over t of abs(f^_t - f_t) / sd_t,

which depends on the tree and the estimator alone. Its quantile is found by simulation, once, with a
seed of its own, and rounded up by an order statistic that is too small with probability at most
`QUANTILE_FAILURE_RATE`; where that is wider than Sidak's inequality allows, that one is taken.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_open_unit
from shuffledp.core.entropy import Entropy
from shuffledp.estimation.intervals import normal_quantile, simultaneous_confidence
from shuffledp.monitoring.running_counts.sums import (
    level_weighted_sums,
    online_running_counts,
    require_through,
    running_sums,
    smoothed_running_counts,
)
from shuffledp.monitoring.running_counts.variances import (
    require_method,
    variance_factors,
)
from shuffledp.monitoring.tree import PeriodTree

#: Probability that a simulated quantile is below the true one: over the seeds, this one is fixed.
QUANTILE_FAILURE_RATE = 1e-9

_SEED = 20_181_129
_MOST_RUNS = 20_000
_FEWEST_RUNS = 400  # with fewer the order statistic is no better than Sidak's inequality
_MOST_NORMALS = 30_000_000  # about a second
_BLOCK_NORMALS = 1 << 18  # fits the cache with what is made from them


def band_quantile(
    tree: PeriodTree,
    through: int,
    confidence: float,
    *,
    method: str = "least-squares",
    smoothed: bool = False,
    simultaneous: bool = True,
    num_values: int = 1,
) -> float:
    """Return how many standard errors a band reaches to either side.

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree.
    through : int
        Last period of the band, in [1, periods].
    confidence : float
        Nominal coverage, in (0, 1).
    method : {"least-squares", "cover"}
        Estimator.
    smoothed : bool
        Whether all nodes up to ``through`` are used for every t (least squares only).
    simultaneous : bool
        Whether the band holds for all periods 1 ... ``through`` and all values at once with that
        confidence, rather than for each alone.
    num_values : int
        How many counts run side by side; Bonferroni's inequality among them.

    Returns
    -------
    float
        Pointwise: the quantile of the normal law. Simultaneous: at least that of the maximum, but
        for the failure rate, and never above Bonferroni's.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: this module's docstring. Sidak 1967: normal variables, whatever their correlations, are
    all within a band with at least the product of the single probabilities. Cost: a second at most
    for each estimator and ``through``, nothing again later; above 37,000 periods Sidak alone.

    Examples
    --------
    >>> tree = PeriodTree(periods=32)
    >>> round(band_quantile(tree, 32, 0.95, simultaneous=False), 3)
    1.96
    >>> 2.5 < band_quantile(tree, 32, 0.95) < normal_quantile(1 - 0.05 / 32)
    True
    """
    last = require_through(tree, through)
    require_method(method, smoothed=smoothed)
    require_open_unit("confidence", confidence)
    if not simultaneous:
        return normal_quantile(confidence)
    return _simultaneous_quantile(last, confidence, method, smoothed, num_values)


def sidak_quantile(confidence: float, num_periods: int, num_values: int = 1) -> float:
    """Return q such that so many normal errors are all in [-q, q] with that confidence or more.

    Parameters
    ----------
    confidence : float
        In (0, 1).
    num_periods : int
        How many, at least 1.
    num_values : int
        How many such series side by side, at least 1; Bonferroni's inequality among them.

    Returns
    -------
    float
        Slightly below Bonferroni's.

    Examples
    --------
    >>> abs(sidak_quantile(0.95, 1) - normal_quantile(0.95)) < 1e-12
    True
    """
    from scipy.special import ndtri

    tail = (1.0 - confidence) / num_values
    # 1 - (1 - tail)^(1 / d), without cancellation; and by the lower tail of the normal law.
    each = -math.expm1(math.log1p(-tail) / num_periods)
    return math.fabs(float(ndtri(0.5 * each)))


@lru_cache(maxsize=1024)
def _simultaneous_quantile(
    through: int, confidence: float, method: str, smoothed: bool, num_values: int
) -> float:
    """Return the lesser of the simulated quantile and Sidak's."""
    each = simultaneous_confidence(confidence, num_values)
    simulated = _order_statistic(simulated_maxima(through, method, smoothed), each)
    return min(simulated, sidak_quantile(confidence, through, num_values))


@lru_cache(maxsize=64)
def simulated_maxima(through: int, method: str, smoothed: bool) -> NDArray[np.float64]:
    """Return draws of the largest error over its standard deviation, ascending.

    Parameters
    ----------
    through : int
        Last period, at least 1.
    method : {"least-squares", "cover"}
        Estimator.
    smoothed : bool
        Whether it is the smoothed one.

    Returns
    -------
    ndarray of float64, read-only
        Of independent runs: 20,000 up to 750 periods, in proportion fewer above, none from 37,500
        on. Always the same numbers: the seed is fixed.
    """
    tree = PeriodTree(periods=through)
    num_runs = min(_MOST_RUNS, _MOST_NORMALS // tree.num_nodes)
    if num_runs < _FEWEST_RUNS:
        num_runs = 0
    deviations = np.sqrt(variance_factors(tree, through, method=method, smoothed=smoothed))
    maxima = np.empty(num_runs)
    done = 0
    for noise in _noise(tree.num_nodes, num_runs):
        if method == "cover":
            errors = running_sums(tree, noise, through)
        elif smoothed:
            errors = smoothed_running_counts(tree, level_weighted_sums(tree, noise), through)
        else:
            errors = online_running_counts(tree, level_weighted_sums(tree, noise), through)
        np.abs(errors, out=errors)
        errors /= deviations[:, None]
        maxima[done : done + errors.shape[1]] = errors.max(axis=0)
        done += errors.shape[1]
    maxima.sort()
    maxima.flags.writeable = False
    return maxima


def _noise(num_nodes: int, num_runs: int) -> Iterator[NDArray[np.float64]]:
    """Yield normal noise of nodes, shape (num_nodes, some runs), until there are ``num_runs``."""
    generator = Entropy.from_seed(_SEED).generator()
    block = max(1, _BLOCK_NORMALS // num_nodes)
    for start in range(0, num_runs, block):
        yield generator.standard_normal((num_nodes, min(block, num_runs - start)))


def _order_statistic(maxima: NDArray[np.float64], confidence: float) -> float:
    """Return a draw that is at least the quantile, but for the failure rate; inf if none is.

    The r-th smallest is below it where r draws or more are, of which each is with probability
    ``confidence``: r is the least number that so many reach with that failure rate only.
    """
    from scipy.special import bdtrc

    runs = maxima.size
    ranks = np.arange(1, runs + 1)
    chances = bdtrc(ranks - 1.0, runs, confidence)
    rank = int(np.searchsorted(-chances, -QUANTILE_FAILURE_RATE)) + 1
    return float(maxima[rank - 1]) if rank <= runs else math.inf
