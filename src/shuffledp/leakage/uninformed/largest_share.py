"""The fullest of weighted bins, and what k-ary randomized response with very many values leaks.

With r = (1 - p)/(k - 1), t = p - r and s = r + t q the law of a report, h ~ Multinomial(n, s) and
H = sum over y of h_y / s_y, the best guess is right with probability (see `multinomial_form`)

    V = (1/n) E max_x q_x (t h_x / s_x + r H),   E H = n k.

*Upper end.* The maximum of a sum is at most the sum of the maxima:

    V <= (t/n) E[max_x (q_x / s_x) h_x] + k r max q.

*Lower end.* Guess the value of a set S for which (q_x / s_x) h_x is largest: with H >= 0,

    V >= (t/n) E[max over S of (q_x / s_x) h_x] + k r min over S of q.

Without noise both are E[max_x h_x] / n, what a shuffler alone gives away.
Proof: docs/results/leakage-uninformed.md.
"""

import math
from typing import SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.rounding import round_up
from shuffledp.leakage.loads.weighted import weighted_maximum
from shuffledp.leakage.priors import checked_prior

_ULP = math.ulp(1.0)

# The moments tried: every parameter gives a bound, so a grid loses a little and risks nothing.
_PARAMETERS = np.geomspace(1e-10, 40.0, 160)

# Values up to which the likelier half is a set S too, for some tenths of a second.
_MOST_HALVED = 2_000


def largest_share_upper(
    num_balls: SupportsIndex, law: ArrayLike, weights: ArrayLike | None = None
) -> float:
    r"""Bound E[max_x w_x h_x] / n, where n independent balls fall into bins with the given law.

    Parameters
    ----------
    num_balls : int
        n >= 1.
    law : array_like of float, shape (k,)
        Probabilities q of the bins, adding up to 1.
    weights : array_like of float, shape (k,), optional
        w, in [0, 1]; all 1 if not given.

    Returns
    -------
    float
        At most 1; errs upwards.

    Raises
    ------
    ParameterError
        If ``num_balls`` is below 1, or the law is none.

    Notes
    -----
    For t > 0, by Jensen and as the largest term is below the sum,

    .. math:: E \max_x w_x h_x \le \frac1t \ln E \sum_x e^{t w_x h_x}
              = \frac1t \ln \sum_x (1 + q_x (e^{t w_x} - 1))^n.

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
    values = np.ones(chances.size) if weights is None else np.asarray(weights, dtype=np.float64)
    best = 1.0
    for parameter in _PARAMETERS.tolist():
        powers = balls * np.log1p(chances * np.expm1(parameter * values))
        most = float(powers.max())
        total = most + math.log(float(np.exp(powers - most).sum()))
        best = min(best, round_up(total / (balls * parameter), operations=64))
    return best


def response_ends(num_users: SupportsIndex, truth: SupportsFloat, prior: ArrayLike) -> Enclosure:
    """Enclose how often one of n values is guessed right from all reports of k-RR, shuffled.

    Parameters
    ----------
    num_users : int
        n >= 1; all values are independent with the law ``prior``, and none is known.
    truth : float
        p in [1/k, 1]; 1 for a shuffler alone, whose ends agree up to round-off.
    prior : array_like of float, shape (k,)
        q.

    Returns
    -------
    Enclosure
        Ends k r (max q - min q) apart, or less; by moments above where the load takes long.

    Raises
    ------
    ParameterError
        If a number is out of range, or the law is none.

    Notes
    -----
    Tens of milliseconds at n = 1e9 and k = 257, a second or two at k = 1e4; seconds at the most.
    Source: ours; the module.

    Examples
    --------
    >>> found = response_ends(2, 1.0, [0.5, 0.5])  # two of one value, half of the time
    >>> round(found.lower, 9), round(found.upper, 9)
    (0.75, 0.75)
    """
    users = require_at_least("num_users", num_users, 1)
    law = checked_prior(prior, np.size(np.asarray(prior)))
    law = law / math.fsum(law)
    chance = float(truth)
    answer = (1.0 - chance) / (law.size - 1)
    kept = max(chance - answer, 0.0)
    reports = answer + kept * law
    weights = np.divide(law, reports, out=np.zeros(law.size), where=reports > 0.0)
    spare = law.size * answer
    load = _weighted_share(users, reports, weights)
    lower = kept * load.lower + spare * float(law.min())
    if answer > 0.0 and law.size <= _MOST_HALVED:
        likely = law >= np.median(law)
        half = _weighted_share(users, reports, np.where(likely, weights, 0.0))
        lower = max(lower, kept * half.lower + spare * float(law[likely].min()))
    upper = round_up(kept * load.upper + spare * float(law.max()), operations=8)
    # As in `multinomial_form`: each entry of the laws comes from at most eight roundings.
    slack = 8.0 * _ULP * (4.0 + math.sqrt(0.5 * users))
    return Enclosure(max(lower - slack, float(law.max()) - slack), min(upper + slack, 1.0))


def _weighted_share(
    num_balls: int, law: NDArray[np.float64], weights: NDArray[np.float64]
) -> Enclosure:
    """Enclose E[max_x w_x h_x] / n."""
    law = law / math.fsum(law)
    unit = float(weights.max())
    try:
        found = weighted_maximum(num_balls, law, weights / unit)
        lower, upper = found.lower / num_balls, found.upper / num_balls
    except OutOfRegimeError:
        lower = float((law * weights).max()) / unit
        upper = largest_share_upper(num_balls, law, weights / unit)
    return Enclosure(unit * lower * (1.0 - 4.0 * _ULP), unit * upper * (1.0 + 4.0 * _ULP))
