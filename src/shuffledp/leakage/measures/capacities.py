"""The most that a channel can leak, over gain functions and over priors.

*Multiplicative.* For a fixed prior pi and all non-negative gains,

    sup_g V_g[pi > C] / V_g(pi) = sum_y max over x in the support of pi of C_xy.                 (1)

*Proof.* The joint law of secret and y is at most max_x C_xy times pi, entry by entry, so the best
guess for y is worth at most max_x C_xy V_g(pi); sum over y. It is attained by the gain that pays
1 / pi_x for guessing x right: before, each guess is worth 1; after, a right guess of x is worth
C_xy jointly with y. ∎ Over all priors too it is sum_y max_x C_xy, attained by the uniform prior and
guessing the secret; its logarithm is the min-capacity (the "Miracle" theorem).

*Additive.* Consider gains that are 1-spanning: for each guess, what it is worth for two secrets
differs by at most 1. With p_y = sum_x pi_x C_xy,

    sup_g (V_g[pi > C] - V_g(pi)) = sum_y p_y tv(posterior_y, pi).                               (2)

*Proof.* For laws d and pi, V_g(d) - V_g(pi) <= max_w sum_x (d_x - pi_x) g(w, x), and adding a
constant to g(w, .) changes nothing there, so let it lie in [0, 1]: the sum is at most tv(d, pi).
Average over the posteriors. For equality take a guess w_y for each y, worth 1 - pi(A_y) on
A_y = {x: C_xy > p_y} and -pi(A_y) elsewhere, and one worth 0. Under pi each is worth 0. Under the
posterior of y, w_y is worth posterior_y(A_y) - pi(A_y), which is the total variation. ∎

*Accuracy.* With fractions exact, otherwise nearest: sums of terms of one sign, with a relative
error of about (num_inputs + 50) 2^-53; in (2) each term is a difference, with an error of
(num_inputs + 50) 2^-53 of the sum.

Source: Alvim, Chatzikokolakis, Palamidessi, Smith, "Measuring Information Leakage Using Generalized
Gain Functions", CSF 2012 (the "Miracle" theorem); Alvim, Chatzikokolakis, McIver, Morgan,
Palamidessi, Smith, "Additive and Multiplicative Notions of Leakage, and Their Capacities", CSF
2014. The proofs above are complete.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.measures.vulnerability import joined, joint_pieces, right_in_one_dense


def multiplicative_bayes_capacity(channel: Channel | ArrayLike) -> float | Fraction:
    """Return the largest factor by which the output can raise any vulnerability, over all priors.

    Parameters
    ----------
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.

    Returns
    -------
    float or Fraction
        sum_y max_x C_xy, in [1, min(num_inputs, num_outputs)]: over all priors and all gain
        functions that are not negative. Attained by guessing the secret under the uniform prior.
        Exact where the channel is, else nearest.

    Raises
    ------
    ParameterError
        If the matrix is no channel.

    Examples
    --------
    >>> multiplicative_bayes_capacity([[0.75, 0.25], [0.25, 0.75]])
    1.5
    """
    seen = as_channel(channel)
    return _sum_of_column_maxima(seen, np.ones(seen.num_inputs, dtype=np.bool_))


def min_capacity_bits(channel: Channel | ArrayLike) -> float:
    """Return log2 of the multiplicative Bayes capacity, in bits.

    Parameters and errors are those of `multiplicative_bayes_capacity`. No prior and no gain that is
    not negative leaks more, in bits.

    Notes
    -----
    Source: Alvim et al. 2012, the "Miracle" theorem; equation (1) of the module.

    Examples
    --------
    >>> min_capacity_bits([[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    return max(math.log2(multiplicative_bayes_capacity(channel)), 0.0)


def multiplicative_capacity(
    prior: ArrayLike | None, channel: Channel | ArrayLike
) -> float | Fraction:
    """Return the largest factor by which the output raises a vulnerability under this prior.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law. Only its support matters.
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.

    Returns
    -------
    float or Fraction
        Over all gain functions that are not negative: equation (1) of the module. Attained by
        `multiplicative_capacity_gain`. Exact where prior and channel are, else nearest.

    Raises
    ------
    ParameterError
        If the prior is no law, the channel none, or the numbers of inputs differ.

    Examples
    --------
    >>> multiplicative_capacity([1.0, 0.0], [[0.75, 0.25], [0.25, 0.75]])
    1.0
    """
    law, seen = joined(prior, as_channel(channel))
    return _sum_of_column_maxima(seen, np.asarray(law > 0, dtype=np.bool_))


def additive_capacity(prior: ArrayLike | None, channel: Channel | ArrayLike) -> float | Fraction:
    """Return the most that the output adds to a 1-spanning vulnerability under this prior.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law.
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.

    Returns
    -------
    float or Fraction
        In [0, 1]: the mean total variation between posterior and prior, equation (2) of the module.
        Exact where prior and channel are, else nearest.

    Raises
    ------
    ParameterError
        If the prior is no law, the channel none, or the numbers of inputs differ.

    Examples
    --------
    >>> additive_capacity([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.25
    """
    law, seen = joined(prior, as_channel(channel))
    if seen.is_exact:
        joint = law[:, None] * seen.matrix
        difference = joint - law[:, None] * joint.sum(axis=0)
        return Fraction(difference[difference > 0].sum())
    return math.fsum(
        float(np.maximum(joint - secret * output, 0.0).sum())
        for joint, secret, output in joint_pieces(law, seen)
    )


def _sum_of_column_maxima(channel: Channel, rows: NDArray[np.bool_]) -> float | Fraction:
    """Return sum_y max over the given rows of C_xy."""
    if channel.is_exact:
        return Fraction(channel.matrix[rows].max(axis=0).sum())
    if channel.is_sparse:
        kept: Any = channel.matrix if rows.all() else channel.matrix[rows]
        return float(kept.max(axis=0).sum())
    # The indicator of the rows in place of a prior.
    return math.fsum(right_in_one_dense(rows.astype(np.float64), channel.matrix))
