"""Shannon capacity of a channel: the most information the output can hold, certified.

Let q = sum_x p_x C_x be the law of the output under a prior p, and D_x = KL(C_x; q) in bits. For
every p

    sum_x p_x D_x  <=  capacity  <=  max_x D_x:                                                  (1)

the left-hand side is the mutual information under p, and for any prior r that mutual information is
sum_x r_x KL(C_x; q_r) <= sum_x r_x KL(C_x; q). So each step gives both ends, and any prior is good
enough: how it was found need not be trusted. Blahut and Arimoto take p_x proportional to
p_x 2^(s D_x) with s = 1. Where the channel tells little the D_x are small, and so are these steps,
so s doubles as long as that helps, and starts again from 1 where it does not: the information must
grow, or, where it is at its largest up to round-off, the two ends must come closer.

*Accuracy.* Each D_x is h_x - sum_y C_xy log2 q_y, with h_x = sum_y C_xy log2 C_xy, and (1) is
widened by 2 (num_inputs + num_outputs + 32) u log2(e) (1 + abs(h_x) + abs(h_x - D_x)), u = 2^-53,
the largest over x: the sums have that many terms, each of one sign, and q and p are known to a
relative (num_inputs + 8) u, which moves a logarithm by as much. Rows that sum to one only within
1e-9 add as much.

Source: Blahut, "Computation of Channel Capacity and Rate-Distortion Functions", IEEE Transactions
on Information Theory 18, 1972; Arimoto, "An Algorithm for Computing the Capacity of Arbitrary
Discrete Memoryless Channels", ibid.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.leakage.channels.channel import Channel, as_channel

_UNIT_ROUND_OFF = 2.0**-53

# Of the most likely input; less is kept from vanishing, so that an input may come back.
_SMALLEST_CHANCE = 1e-200

# Longest step, in bits of the difference between likeliest and least likely input.
_LONGEST_STEP = 512.0


def shannon_capacity_bits(
    channel: Channel | ArrayLike, *, tolerance: float = 1e-9, max_iterations: int = 20_000
) -> Bound:
    """Enclose the largest mutual information of secret and output over all priors, in bits.

    Parameters
    ----------
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.
    tolerance : float
        Width aimed at, relative to the upper end. The width reached is that of the result: it is
        wider where round-off or ``max_iterations`` stops the iteration first.
    max_iterations : int
        Steps at most, at least 1.

    Returns
    -------
    Bound
        In bits. ``upper`` errs upwards and ``lower`` downwards, round-off included.

    Raises
    ------
    ParameterError
        If the matrix is no channel, or a number is out of range.

    Notes
    -----
    Two products of the matrix with a vector a step.

    Source: (1) of the module.

    Examples
    --------
    >>> shannon_capacity_bits([[1.0, 0.0], [0.0, 1.0]])
    Bound(upper=1, lower=1, method='Blahut-Arimoto')
    """
    width = require_positive("tolerance", tolerance)
    steps = require_at_least("max_iterations", max_iterations, 1)
    seen = as_channel(channel).to_float()
    lower, upper = _iterated(_positive_columns(seen), width, steps)
    return Bound(
        lower=lower,
        upper=upper,
        method="Blahut-Arimoto",
        source="Blahut 1972; Arimoto 1972; both ends by equation (1) of the module",
        assumptions=("The rows of the channel are the laws of the output.",),
    )


def _positive_columns(channel: Channel) -> Any:
    """Return the matrix without the outputs that never occur, whose logarithms are infinite."""
    occurs = np.asarray(channel.matrix.max(axis=0) > 0.0)
    if channel.is_sparse:
        occurs = channel.matrix.max(axis=0).toarray().ravel() > 0.0
        return channel.matrix if occurs.all() else channel.matrix[:, np.flatnonzero(occurs)]
    return channel.matrix if occurs.all() else channel.matrix[:, occurs]


def _negative_entropies(matrix: Any) -> NDArray[np.float64]:
    """Return sum_y C_xy log2 C_xy for each x."""
    entries = matrix.data if hasattr(matrix, "tocsr") else matrix
    terms = entries * np.log2(entries, out=np.zeros_like(entries), where=entries > 0.0)
    if hasattr(matrix, "tocsr"):
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return np.bincount(rows, weights=terms, minlength=matrix.shape[0]).astype(np.float64)
    return np.asarray(terms.sum(axis=1))


def _iterated(matrix: Any, width: float, max_iterations: int) -> tuple[float, float]:
    """Return both ends of (1), the best of all steps, widened by round-off."""
    num_inputs, num_outputs = matrix.shape
    entropies = _negative_entropies(matrix)
    unit = 2.0 * (num_inputs + num_outputs + 32) * _UNIT_ROUND_OFF / math.log(2.0)
    prior = np.full(num_inputs, 1.0 / num_inputs)
    low, high, step = 0.0, math.inf, 1.0
    held = _Point(prior, entropies, -math.inf, math.inf)
    for _ in range(max_iterations):
        crossed = matrix @ np.log2(matrix.T @ prior)
        divergences = entropies - crossed
        most = float(np.max(divergences))
        point = _Point(prior, divergences, float(prior @ divergences), most)
        slack = unit * float(np.max(1.0 + np.abs(entropies) + np.abs(crossed)))
        low = max(low, point.information - slack)
        high = min(high, most + slack)
        if high - low <= width * high + 4.0 * slack:
            break
        # A plain step never loses information, so it is taken whatever round-off says.
        if step == 1.0 or _is_better(point, held, slack):
            held, step = point, 2.0 * step
        else:
            step = 1.0
        prior = _stepped(held.prior, held.divergences, step)
    return low, max(high, 0.0)


class _Point(NamedTuple):
    """A prior, with the divergences D_x, their mean and the largest of them."""

    prior: NDArray[np.float64]
    divergences: NDArray[np.float64]
    information: float
    most: float


def _is_better(point: _Point, held: _Point, slack: float) -> bool:
    """Say whether a step has helped: more information, or as much with ends that are closer."""
    gained = point.information - held.information
    closer = point.most - point.information < held.most - held.information
    return gained > slack or (gained >= -slack and closer)


def _stepped(
    prior: NDArray[np.float64], divergences: NDArray[np.float64], step: float
) -> NDArray[np.float64]:
    """Return the law proportional to prior_x 2^(step D_x)."""
    exponents = step * (divergences - np.max(divergences))
    moved = prior * np.exp2(np.maximum(exponents, -_LONGEST_STEP))
    moved = np.maximum(moved, _SMALLEST_CHANCE * np.max(moved))
    return np.asarray(moved / np.sum(moved))
