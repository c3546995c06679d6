"""The share of the fullest of very many bins, bounded by moments in time linear in the bins."""

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.checks import require_at_least
from shuffledp.core.numerics.rounding import round_up
from shuffledp.privacy.leakage.priors import checked_prior

# The moments tried: every parameter gives a bound, so a grid loses a little and risks nothing.
_PARAMETERS = np.geomspace(1e-10, 40.0, 160)


def largest_share_upper(num_balls: SupportsIndex, law: ArrayLike) -> float:
    r"""Bound E[max_x h_x] / n, where n independent balls fall into bins with the given law.

    Parameters
    ----------
    num_balls : int
        n >= 1.
    law : array_like of float, shape (k,)
        Probabilities q of the bins, adding up to 1.

    Returns
    -------
    float
        At most 1; errs upwards. It is V_S of a shuffler alone, for a prior q.

    Raises
    ------
    ParameterError
        If ``num_balls`` is below 1, or the law is none.

    Notes
    -----
    For t > 0, by Jensen and as the largest term is below the sum,

    .. math:: E \max_x h_x \le \frac1t \ln E \sum_x e^{t h_x}
              = \frac1t \ln \sum_x (1 + q_x (e^t - 1))^n.

    The least of 160 values of t is returned. Cost: O(160 k) at any n. `weighted_maximum` is sharp,
    at a cost that grows with n. Source: standard; Boucheron, Lugosi, Massart, "Concentration
    Inequalities", 2013, Theorem 2.5.

    Examples
    --------
    >>> 0.5 <= largest_share_upper(10**9, [0.5, 0.5]) <= 0.50004
    True
    """
    balls = require_at_least("num_balls", num_balls, 1)
    chances = checked_prior(law, np.size(np.asarray(law)))
    chances = chances / chances.sum()
    best = 1.0
    for parameter in _PARAMETERS.tolist():
        powers = balls * np.log1p(chances * math.expm1(parameter))
        most = float(powers.max())
        total = most + math.log(float(np.exp(powers - most).sum()))
        best = min(best, round_up(total / (balls * parameter), operations=64))
    return best
