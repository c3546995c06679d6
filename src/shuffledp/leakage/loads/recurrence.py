"""How often no bin has more than m balls, by the first ball that would be one too many.

Let P_j(s) be the probability that s balls in j bins leave no bin above m. The (s + 1)-th ball is
the first to overfill a bin if it falls on one of exactly m balls while no other has more: j ways
for the bin, each with probability C(s, m) j^-m (1 - 1/j)^(s - m) P_{j-1}(s - m) / j. So

    P_j(s + 1) = P_j(s) - h_j(s) P_{j-1}(s - m),   h_j(s) = Pr[Bin(s, 1/j) = m],   P_j(j m + 1) = 0.

Count from the end, by the deficit i = j m - s of balls: then s - m has the same deficit one level
below, and G_j(i) = P_j(j m - i) is a sum of positive terms:

    G_j(i) = sum over 0 <= t <= i of h_j(j m - t) G_{j-1}(t),   P_k(n) = G_k(k m - n),   (1)

with G_1 = 1. Nothing cancels. The difference of m and the binomial mean is t / j, without rounding.

*Strides.* Where sigma = sqrt(n / k) is large, h_j varies on the scale j sigma sqrt(1 - 1/j), at
least 1.4 sigma, and G_{j-1} as slowly. The sum (1) over one stride g <= sigma / 16 is then taken
from the polynomial through the 7 nearest grid points on each side: exact to degree 13, with an
error of at most 1.3e-5 g^14 f^(14) a term (the largest value of the node polynomial over 14!). For
a Gaussian of scale 1.2 sigma f^(14) is at most 14! / (7! 2^7) = 1.4e5 over scale^14, which makes
2e-18 of the largest term: below round-off. The grid goes on beyond both ends, where (1) continues
analytically, so no stride is treated otherwise. m is a whole number, and so is k m - n; g need not
be one.

*Underflow.* Relative errors travel: what G_j is where few balls are left depends on G_{j-1} where
more are. Follow the process that throws balls until a bin overflows, removes the bin, and goes on:
when a share q of the bins is left, the chance that they were spared is about q^(k q), at least
e^(-k / e). Beyond some 1900 bins that is no double any more, so more than 1000 are refused.

*Round-off.* A weight h is off by some ulps, and by the rounding of its exponent: 1e-14 for all
weights that matter (exponent at most 40; where no ball falls elsewhere it is a power, good to an
ulp). A level passes on the relative error of the one below and
adds its own: P_k is good to k 1e-14, relative.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import OutOfRegimeError

# Above it the sums are taken by strides of at most sigma / _STRIDES.
_SMALLEST_SPREAD = 64.0
_STRIDES = 16.0
_HALF_STENCIL = 7

# More bins would underflow.
MOST_BINS = 1000

# Relative error of a level.
LEVEL_ERROR = 1e-14

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)

# Seconds a term takes, about.
_SECONDS_A_TERM = 4e-8


@functools.lru_cache(maxsize=1)
def _basis() -> NDArray[np.float64]:
    """Return the coefficients of Lagrange's polynomials of the stencil, one row a point.

    The stride is [0, 1]; the points are the whole numbers from 1 - q to q.
    """
    points = range(1 - _HALF_STENCIL, _HALF_STENCIL + 1)
    rows = []
    for at in points:
        others = [p for p in points if p != at]
        scale = math.prod(at - p for p in others)
        rows.append(np.polynomial.polynomial.polyfromroots(others) / scale)
    return np.array(rows)


def stride_rule(stride: float) -> NDArray[np.float64]:
    """Return weights for the sum of f(1), ..., f(stride) from f at whole multiples of the stride.

    Exact for polynomials of degree 13 (Euler-Maclaurin, which ends for these); ``stride`` may be a
    fraction, where the polynomial in the number of terms is continued.
    """
    size = 2 * _HALF_STENCIL
    moments = np.empty(size)
    for degree in range(size):
        total = stride / (degree + 1.0) + (0.5 if degree else 0.0)
        if degree == 0:
            total = stride
        for index, bernoulli in enumerate(_BERNOULLI, start=1):
            order = 2 * index - 1
            if order > degree:
                break
            falling = math.perm(degree, order)
            at_end = falling * stride ** float(-order)
            at_start = falling * stride ** float(-degree) if order == degree else 0.0
            total += bernoulli / math.factorial(order + 1) * (at_end - at_start)
        moments[degree] = total
    rule: NDArray[np.float64] = _basis() @ moments
    return rule


def recurrence_seconds(num_balls: int, num_bins: int, loads: NDArray[np.int64]) -> float:
    """Return about how long `recurrence_tails` takes."""
    spread = math.sqrt(num_balls / num_bins)
    deficits = num_bins * loads.astype(np.float64) - num_balls
    if spread >= _SMALLEST_SPREAD:
        deficits = deficits / (spread / _STRIDES) + 2.0 * _HALF_STENCIL * num_bins
    return float(deficits.sum()) * num_bins * _SECONDS_A_TERM


def recurrence_tails(
    num_balls: int, num_bins: int, loads: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr[max > load] by the recurrence, with bounds on the absolute errors.

    Parameters
    ----------
    num_balls, num_bins : int
        n >= 1 and 2 <= k <= 1000.
    loads : (l,) array of int64
        Each at least n / k.

    Returns
    -------
    tails, errors : (l,) arrays of float64
        ``errors`` covers round-off; that of strides is below it (see the module).

    Raises
    ------
    OutOfRegimeError
        If there are above 1000 bins.

    Notes
    -----
    O(k (k m - n)) a load, or O(k (k m - n) / sigma) by strides where sigma = sqrt(n / k) >= 64.
    """
    from shuffledp.leakage.loads.recurrence_kernels import (
        confined_by_steps,
        confined_by_strides,
    )

    if num_bins > MOST_BINS:
        raise OutOfRegimeError(
            f"num_bins = {num_bins} is above {MOST_BINS}, where the recurrence underflows: "
            'use method = "characteristic-function"'
        )
    spread = math.sqrt(num_balls / num_bins)
    confined = np.empty(len(loads))
    for position, load in enumerate(loads.tolist()):
        deficit = num_bins * load - num_balls
        if spread < _SMALLEST_SPREAD or deficit == 0:
            confined[position] = confined_by_steps(load, num_bins, deficit)
        else:
            strides = math.ceil(deficit * _STRIDES / spread)
            rule = stride_rule(deficit / strides)
            confined[position] = confined_by_strides(load, num_bins, deficit, strides, rule)
    confined = np.clip(confined, 0.0, 1.0)
    return 1.0 - confined, confined * (LEVEL_ERROR * num_bins)
