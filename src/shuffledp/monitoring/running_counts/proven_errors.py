"""Errors that no running count exceeds but with a stated probability: proved, for every n.

Theorem 6 of the source, with constants. The estimate at t is a sum over users, who randomize
independently. One user's part is c times a weighted sum of the signs that he sends at one level; so
it is at most c A in absolute value, A the largest sum of weights of one level. Its mean is his
state at t, 0 or 1, and the variances of all parts add up to at most n c^2 V / L, V the sum of all
squared weights. By Bernstein's inequality the error is above x with probability at most

    2 exp(-x^2 / (2 (n c^2 V / L + (c A + 1) x / 3))),

which is set to a d-th of the failure probability. For the cover V is the number of nodes of the
cover of t, at most log2 d + 1, and A = 1. For online least squares both V and A are the sum of
2^m / (2^(m+1) - 1) over the one-bits 2^m of t: A belongs to the level of single periods.

So the error is at most of order c sqrt(n log(d / beta)) for c = L / gap, L = log2 d + 1, and
sampled changes have 1 / gap = k (e0 + 1) / (e0 - 1): of order (e0 + 1) / (e0 - 1) k log2(d)
sqrt(n log(d / beta)), a factor sqrt(log2 d) less than in the printed proof, which adds up
the largest errors of all nodes of a cover instead of their variances.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.numerics.rounding import round_up
from shuffledp.monitoring.running_counts.variances import (
    require_method,
    require_pair_correlation,
    variance_factors,
    with_pairs,
)
from shuffledp.monitoring.tree import PeriodTree


def proven_errors(
    tree: PeriodTree,
    *,
    num_users: int,
    scale: float,
    confidence: float,
    method: str = "cover",
    pair_correlation: float = 0.0,
    variance_factor: float = 1.0,
    num_values: int = 1,
) -> NDArray[np.float64]:
    """Return errors that all running counts keep at once, proved by Bernstein's inequality.

    Parameters
    ----------
    tree : PeriodTree
        The dyadic tree, of d periods.
    num_users : int
        n, at least 1; or an upper bound of it.
    scale : float
        c = L / gap, positive.
    confidence : float
        1 - beta, in (0, 1): with this probability or more, over the users' randomness, no error at
        any period, of any value, is above what is returned.
    method : {"cover", "least-squares"}
        Online estimator.
    pair_correlation : float
        r_2, in [-1, 1].
    variance_factor : float
        Of the encoding, at least 1. It is also at least the largest factor that the encoding puts
        on one report: that is 1 for booleans, K of K for one-hot columns, 2 of 4 for Hadamard.
    num_values : int
        How many counts run side by side, at least 1.

    Returns
    -------
    ndarray of float64, shape (periods,)
        In users, rounded up. Holds whatever the histories, for estimates that are not clipped.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: this module's docstring; Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta,
    "Amplification by Shuffling", SODA 2019, arXiv:1811.12469v2, Theorem 6, whose constant is not
    stated. Cost: O(d).

    Examples
    --------
    >>> tree = PeriodTree(periods=1)  # one node: V = 1
    >>> x = proven_errors(tree, num_users=100, scale=2.0, confidence=0.95)[0]
    >>> round(2 * math.exp(-(x**2) / (2 * (400 + 3 * x / 3))), 9)
    0.05
    """
    users = require_at_least("num_users", num_users, 1)
    values = require_at_least("num_values", num_values, 1)
    c = require_positive("scale", scale)
    factor = require_positive("variance_factor", variance_factor)
    beta = 1.0 - require_open_unit("confidence", confidence)
    squares = variance_factors(tree, tree.periods, method=require_method(method))
    largest: NDArray[np.float64] | float = 1.0
    if method != "cover":
        largest = squares
        squares = with_pairs(squares, squares, min(require_pair_correlation(pair_correlation), 0.0))
    variance = users * c**2 * factor * squares / tree.num_levels
    step = c * factor * largest + 1.0
    exponent = math.log(2.0 * tree.periods * values) - math.log(beta)
    # The root of x^2 - 2 exponent step x / 3 - 2 exponent variance.
    linear = exponent * step / 3.0
    errors: NDArray[np.float64] = linear + np.sqrt(linear**2 + 2.0 * exponent * variance)
    return errors * round_up(1.0, operations=64)
