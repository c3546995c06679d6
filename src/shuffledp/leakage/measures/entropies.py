"""How uncertain the adversary is, before and after seeing the output: entropies.

They are measures of secrecy, not of threat: more is safer, and on average they do not grow when the
output is seen. Those whose names say so are in bits (logarithms to base 2); the guessing entropy is
a number of guesses. A conditional entropy is the average over outputs of the entropy that is left,
but for min-entropy, where the average is taken of the chance to guess right.

*Accuracy.* Nearest, in no direction. Sums of terms of one sign: relative errors of about
(num_inputs + num_outputs) 2^-53, with a few more ulps in the logarithms. Mutual information is of
second order in how far the joint law is from the product law, and that distance is known to some
roundings of each cell only.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "The Science of Quantitative
Information Flow", Springer 2020, chapters 2 and 5; for guessing entropy Massey, "Guessing and
Entropy", ISIT 1994; for conditional min-entropy Smith, "On the Foundations of Quantitative
Information Flow", FoSSaCS 2009.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.measures.vulnerability import (
    column_width,
    joined,
    joint_pieces,
    multiplicative_leakage,
    prior_vulnerability,
)
from shuffledp.leakage.priors import checked_prior, is_exact_prior

# Below this excess of joint over product law, a series of so many terms is exact to an ulp.
_SMALL_EXCESS, _SERIES_TERMS = 0.01, 8


def shannon_entropy_bits(prior: ArrayLike) -> float:
    """Return the Shannon entropy of a law, sum_x p_x log2(1 / p_x), in bits.

    Parameters
    ----------
    prior : (num_inputs,) array_like
        Law of the secret.

    Returns
    -------
    float
        In [0, log2 num_inputs].

    Raises
    ------
    ParameterError
        If the prior is no law.

    Examples
    --------
    >>> shannon_entropy_bits([0.5, 0.25, 0.25])
    1.5
    """
    law = checked_prior(prior, np.size(prior))
    positive = law[law > 0.0]
    return _at_least_zero(-math.fsum(positive * np.log2(positive)))


def conditional_shannon_entropy_bits(
    prior: ArrayLike | None, channel: Channel | ArrayLike
) -> float:
    """Return the Shannon entropy left on average once the output is seen, in bits.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law.
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.

    Returns
    -------
    float
        In [0, log2 num_inputs].

    Raises
    ------
    ParameterError
        If the prior is no law, the channel none, or the numbers of inputs differ.

    Examples
    --------
    >>> conditional_shannon_entropy_bits([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    1.0
    """
    law, seen = _floats(prior, channel)
    parts = []
    for joint, _, output in joint_pieces(law, seen):
        occurs = joint > 0.0
        posterior = np.divide(joint, output, out=np.ones_like(joint), where=occurs)
        parts.append(float((joint * np.log2(posterior)).sum()))
    return _at_least_zero(-math.fsum(parts))


def mutual_information_bits(prior: ArrayLike | None, channel: Channel | ArrayLike) -> float:
    """Return by how much the output lowers the Shannon entropy on average, in bits.

    Parameters and errors are those of `conditional_shannon_entropy_bits`. At least 0. A sum of
    terms that are at least 0, not a difference of entropies, so that little information keeps its
    digits (in a sparse channel, down to about 1e-15 bits).

    Examples
    --------
    >>> round(mutual_information_bits([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]), 12)
    1.0
    """
    law, seen = _floats(prior, channel)
    parts, covered = [], []
    for joint, secret, output in joint_pieces(law, seen):
        independent = np.broadcast_to(secret * output, joint.shape)
        parts.append(float(_relative_entropy_terms(joint, independent).sum()))
        covered.append(float(independent.sum()))
    # Cells that a sparse channel does not store have no joint probability.
    left_out = max(1.0 - math.fsum(covered), 0.0) if seen.is_sparse else 0.0
    return (math.fsum(parts) + left_out) / math.log(2.0)


def guessing_entropy(prior: ArrayLike) -> float | Fraction:
    """Return how many guesses the adversary needs on average, asked one value after the other.

    Parameters
    ----------
    prior : (num_inputs,) array_like
        Law of the secret.

    Returns
    -------
    float or Fraction
        sum_i i p_(i), with the probabilities in descending order: a number of guesses in
        [1, (num_inputs + 1) / 2]. A Fraction where the prior is exact.

    Raises
    ------
    ParameterError
        If the prior is no law.

    Examples
    --------
    >>> guessing_entropy([0.25, 0.5, 0.25])
    1.75
    """
    law = checked_prior(prior, np.size(prior), exact=is_exact_prior(prior))
    return _expected_guesses(law[:, None])


def conditional_guessing_entropy(
    prior: ArrayLike | None, channel: Channel | ArrayLike
) -> float | Fraction:
    """Return how many guesses the adversary needs on average once the output is seen.

    Parameters and errors are those of `conditional_shannon_entropy_bits`; a Fraction where prior
    and channel are exact. In [1, (num_inputs + 1) / 2].

    Examples
    --------
    >>> conditional_guessing_entropy([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    1.25
    """
    law, seen = joined(prior, as_channel(channel))
    if seen.is_exact:
        return _expected_guesses(law[:, None] * seen.matrix)
    return math.fsum(_guesses_by_pieces(law, seen))


def min_entropy_bits(prior: ArrayLike) -> float:
    """Return log2 of one over the largest probability, in bits.

    Parameters
    ----------
    prior : (num_inputs,) array_like
        Law of the secret.

    Raises
    ------
    ParameterError
        If the prior is no law.

    Examples
    --------
    >>> min_entropy_bits([0.5, 0.25, 0.25])
    1.0
    """
    return _at_least_zero(-math.log2(prior_vulnerability(prior)))


def min_entropy_leakage_bits(prior: ArrayLike | None, channel: Channel | ArrayLike) -> float:
    """Return by how much the output lowers the min-entropy, in bits.

    It is log2 of the multiplicative leakage. Parameters and errors are those of
    `conditional_shannon_entropy_bits`.

    Examples
    --------
    >>> min_entropy_leakage_bits([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    return math.log2(multiplicative_leakage(prior, channel))


def _relative_entropy_terms(
    joint: NDArray[np.float64], independent: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return j ln(j / i) - j + i for each cell, at least 0, accurately where j is close to i."""
    from scipy.special import kl_div

    # Rare secrets may have ratios beyond all floats; they are not small.
    with np.errstate(over="ignore"):
        ratio = np.divide(
            joint - independent, independent, out=np.zeros_like(joint), where=independent > 0.0
        )
    small = np.abs(ratio) < _SMALL_EXCESS
    excess = np.where(small, ratio, 0.0)
    # (1 + e) ln(1 + e) - e = e^2/2 - e^3/6 + e^4/12 - ...
    series = np.zeros_like(joint)
    for power in range(_SERIES_TERMS + 1, 1, -1):
        series = (-1.0) ** power / (power * (power - 1.0)) + excess * series
    terms: NDArray[np.float64] = kl_div(joint, independent)
    return np.where(small, independent * excess**2 * series, terms)


def _at_least_zero(value: float) -> float:
    """Return ``value`` without what round-off, or a sign of zero, may take it below 0."""
    return value if value > 0.0 else 0.0


def _floats(
    prior: ArrayLike | None, channel: Channel | ArrayLike
) -> tuple[NDArray[np.float64], Channel]:
    """Return prior and channel, checked, in double precision: logarithms are never exact."""
    seen = as_channel(channel).to_float()
    return checked_prior(prior, seen.num_inputs), seen


def _expected_guesses(joint: NDArray[Any]) -> float | Fraction:
    """Return the sum over columns of sum_i i v_(i), v_(i) descending."""
    ranks = np.arange(len(joint), 0, -1, dtype=joint.dtype)
    total = (ranks[:, None] * np.sort(joint, axis=0)).sum()
    return total if isinstance(total, Fraction) else float(total)


def _guesses_by_pieces(law: NDArray[np.float64], channel: Channel) -> Iterator[float]:
    """Yield the expected numbers of guesses, jointly with the outputs of a piece."""
    if not channel.is_sparse:
        for block in channel.column_blocks(column_width(channel.num_inputs)):
            yield float(_expected_guesses(law[:, None] * block))
        return
    joint = next(joint_pieces(law, channel)).joint
    columns = channel.matrix.indices
    order = np.lexsort((-joint, columns))
    starts = np.searchsorted(columns[order], columns[order])
    yield float(((np.arange(len(order)) - starts + 1.0) * joint[order]).sum())
