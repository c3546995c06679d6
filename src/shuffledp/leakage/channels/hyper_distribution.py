"""``HyperDistribution``: the law of what the adversary believes after the observation.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "The Science of Quantitative
Information Flow", Springer 2020, chapter 4.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.leakage.channels.matrices import require_dense_size
from shuffledp.leakage.channels.rationals import frozen, is_exact_array
from shuffledp.leakage.channels.reduction import REDUCTION_TOLERANCE, merged_columns
from shuffledp.leakage.priors import checked_prior, is_exact_prior

if TYPE_CHECKING:
    from shuffledp.leakage.channels.channel import Channel


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HyperDistribution:
    """Distinct posterior laws of the secret, and how probable each is.

    Made by `Channel.hyper`.

    Parameters
    ----------
    outer : numpy.ndarray, shape (num_posteriors,)
        Positive probabilities of the posteriors; read-only.
    inners : numpy.ndarray, shape (num_posteriors, num_inputs)
        Row i is the posterior law that the adversary has with probability ``outer[i]``; read-only.

    Notes
    -----
    Both are float64, or both object, of `fractions.Fraction`. Any vulnerability of the channel
    under this prior is the sum of ``outer[i]`` times the vulnerability of row i.
    """

    outer: NDArray[Any]
    inners: NDArray[Any]

    @property
    def num_posteriors(self) -> int:
        """Number of distinct posteriors."""
        return len(self.outer)

    @property
    def is_exact(self) -> bool:
        """Whether probabilities are fractions."""
        return is_exact_array(self.outer)

    @property
    def prior(self) -> NDArray[Any]:
        """The mean of the posteriors, which is the prior."""
        return frozen(self.outer @ self.inners)

    def __repr__(self) -> str:
        return f"HyperDistribution({self.num_posteriors} posteriors over {self.inners.shape[1]})"


def hyper_distribution(channel: "Channel", prior: ArrayLike | None) -> HyperDistribution:
    """Return the law of the posterior for a channel and a prior; see `Channel.hyper`.

    Parameters
    ----------
    channel : Channel
        From secrets to observations.
    prior : array_like, shape (num_inputs,), or None
        Law of the secret; None for the uniform one.

    Returns
    -------
    HyperDistribution
        Exact where both are. Posteriors in the order in which they first appear among the outputs;
        equal ones are merged (doubles: equal to a relative error of 1e-12 in each entry).

    Raises
    ------
    ParameterError
        If the prior is no law over the channel's inputs, or the posteriors have more than 2e8
        entries.

    Notes
    -----
    Where the prior is positive, posteriors are equal if and only if columns are proportional, so
    merging is that of columns of these rows. Cost linear in the matrix, but for sorting columns.

    Examples
    --------
    >>> from shuffledp.leakage.channels.channel import Channel
    >>> hyper = Channel([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]).hyper([0.5, 0.5])
    >>> hyper.outer
    array([0.5 , 0.25, 0.25])
    >>> hyper.inners
    array([[0.5, 0.5],
           [1. , 0. ],
           [0. , 1. ]])
    """
    exact = channel.is_exact and is_exact_prior(prior)
    law = checked_prior(prior, channel.num_inputs, exact=exact)
    support = np.flatnonzero(law > 0)
    matrix: Any = channel.matrix if exact or channel.is_sparse else channel.to_dense()
    if len(support) < channel.num_inputs:
        matrix = matrix[support]
    merged = merged_columns(matrix, REDUCTION_TOLERANCE)
    if merged is not None:
        matrix = merged[0]
    require_dense_size("the posteriors", matrix.shape[1], channel.num_inputs, exact=exact)
    table = matrix.toarray() if channel.is_sparse else matrix
    joint = table.T * law[support]
    outer = joint.sum(axis=1)
    seen = outer > 0  # what falls below all doubles has no posterior
    inners = np.full((np.count_nonzero(seen), channel.num_inputs), Fraction(0) if exact else 0.0)
    inners[:, support] = joint[seen] / outer[seen, np.newaxis]
    return HyperDistribution(frozen(outer[seen]), frozen(inners))
