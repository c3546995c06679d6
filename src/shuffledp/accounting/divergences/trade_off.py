"""Trade-off curves: how well any test can tell P from Q (f-DP).

For a test of Q against P with type I error a, at least some type II error f(a) is unavoidable. A
test that rejects on S has a = Q(S) and type II error 1 - P(S), and P(S) <= delta(epsilon) +
e^epsilon Q(S) with equality for the best S, hence (Dong, Roth, Su 2022, "Gaussian Differential
Privacy", arXiv:1905.02383v3, Section 2.3)

    f(a) = sup over real epsilon of 1 - delta(epsilon) - e^epsilon a.

Any delta that is too large, and any set of epsilons, gives less: a curve that is safe to publish.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.divergences.privacy_loss import PrivacyLoss
from shuffledp.core.errors import ParameterError

# e^epsilon stays in range.
_LARGEST_LOSS = 700.0

# Losses of a block differ by at most this, so that their exponentials do not overflow.
_BLOCK_WIDTH = 30.0


def _survivals(loss: PrivacyLoss) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all losses of the lattice and delta there, rounded in the direction of the law.

    delta = A - B with A the probability of a larger loss and B the sum of its terms times
    e^(epsilon - loss), summed from the largest loss down, block by block. Absolute error at most
    8 u N for N losses.
    """
    masses = loss.masses
    losses = loss.interval * (loss.first + np.arange(masses.size, dtype=np.float64))
    length = max(int(_BLOCK_WIDTH / loss.interval), 1)
    deltas = np.empty(masses.size)
    above, weighted = loss.infinite_mass, 0.0  # weighted: at the first loss of the block above
    for stop in range(masses.size, 0, -length):
        start = max(stop - length, 0)
        offsets = losses[start:stop] - losses[start]
        gap = loss.interval if stop < masses.size else 0.0
        weighted *= math.exp(-(float(offsets[-1]) + gap))  # now at the block's first loss
        own = masses[start:stop] * np.exp(-offsets)
        tails = above + np.append(np.cumsum(masses[start:stop][:0:-1])[::-1], 0.0)
        sums = weighted + np.append(np.cumsum(own[:0:-1])[::-1], 0.0)
        deltas[start:stop] = tails - np.exp(offsets) * sums
        above += float(masses[start:stop].sum())
        weighted += float(own.sum())
    doubt = 4.0 * math.ulp(1.0) * (masses.size + 4.0 * _BLOCK_WIDTH)
    return losses, np.clip(deltas + (doubt if loss.is_upper else -doubt), 0.0, 1.0)


def type_two_errors(
    loss: PrivacyLoss, type_one_errors: ArrayLike, *, both_orders: bool = False
) -> NDArray[np.float64]:
    """Return the least type II error of any test at given type I errors.

    Parameters
    ----------
    loss : PrivacyLoss
        The privacy loss of P against Q.
    type_one_errors : array_like
        Numbers in [0, 1].
    both_orders : bool
        For an upper law that dominates (P, Q) and (Q, P), as every guarantee about neighbours
        does: then also the inverse of the curve is valid, and the larger is returned.

    Returns
    -------
    numpy.ndarray
        float64, in [0, 1]. From an upper law rounded down: every test of every neighbouring pair
        errs at least so often. From a lower law rounded up: some test errs at most so often.

    Raises
    ------
    ParameterError
        If a type I error is outside [0, 1], or both orders are asked of a lower law.

    Notes
    -----
    O(N) for N losses and each type I error.
    """
    alphas = np.atleast_1d(np.asarray(type_one_errors, dtype=np.float64))
    if not np.all((alphas >= 0.0) & (alphas <= 1.0)):
        raise ParameterError("type_one_errors are not all in [0, 1]")
    if both_orders and not loss.is_upper:
        raise ParameterError("both_orders: a lower law is about one order of one pair")
    losses, deltas = _survivals(loss)
    keep = losses <= _LARGEST_LOSS
    if not keep.any() or (not loss.is_upper and not keep.all()):
        # Beyond e^700 nothing is told from 0; a lower law needs all its losses.
        return np.zeros_like(alphas) if loss.is_upper else 1.0 - alphas
    factors, heights = np.exp(losses[keep]), 1.0 - deltas[keep]
    slack = 8.0 * math.ulp(1.0)
    if loss.is_upper:
        best: NDArray[np.float64] = np.array(
            [float((heights - factors * a * (1 + slack)).max()) for a in alphas]
        )
        if both_orders:
            inverse = [float(((heights - a) / factors).max()) for a in alphas]
            best = np.maximum(best, np.array(inverse))
        return np.clip(best - slack, 0.0, 1.0 - alphas)
    lines = np.array([float((heights - factors * a * (1 - slack)).max()) for a in alphas])
    best = np.maximum(lines, _below_the_first(loss) * (1.0 - alphas)) + slack
    return np.clip(best, 0.0, 1.0 - alphas)


def _below_the_first(loss: PrivacyLoss) -> float:
    """Return the x at which 1 - x meets the law's own line left of its first loss, rounded up.

    Left of it 1 - delta - x a <= x (1 - a); between it and the first loss the bound is linear.
    """
    first = math.exp(loss.first * loss.interval)
    offsets = np.arange(loss.masses.size) * loss.interval
    lacking = 1.0 - float(loss.masses.sum()) - loss.infinite_mass
    slope = float(loss.masses @ np.exp(-offsets)) / first
    doubt = 1e-15 * (loss.masses.size + 10)
    if slope >= 1.0 - doubt:
        return first
    return min(first, max(lacking + doubt, 0.0) / (1.0 - slope - doubt) if slope < 1.0 else first)
