"""k-ary randomized response as a channel for one user, and its truth probability, checked."""

from fractions import Fraction
from numbers import Rational

import numpy as np

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.channels.matrices import require_dense_size
from shuffledp.leakage.channels.rationals import frozen

Truth = float | int | Fraction


def checked_truth(truth: Truth, num_values: int) -> float | Fraction:
    """Return the probability of a true report, exact where it is an integer or a fraction.

    Parameters
    ----------
    truth : float, int or Fraction
        p in [1/k, 1]. Of doubles, the one nearest to 1/k counts as 1/k.
    num_values : int
        k >= 2.

    Raises
    ------
    OutOfRegimeError
        If p is in [0, 1/k): all results for randomized response assume that the true value is at
        least as probable as any other.
    ParameterError
        If p is NaN or outside [0, 1], or k < 2.

    Examples
    --------
    >>> checked_truth(1, 2), checked_truth(0.75, 2)
    (Fraction(1, 1), 0.75)
    """
    k = require_at_least("num_values", num_values, 2)
    number: float | Fraction
    if isinstance(truth, Rational):
        number = Fraction(int(truth.numerator), int(truth.denominator))
        least: float | Fraction = Fraction(1, k)
    else:
        try:
            number = float(truth)
        except (TypeError, ValueError):
            raise ParameterError(
                f"truth = {truth!r} is not a number: give one in [1/k, 1]"
            ) from None
        least = 1.0 / k
    if not 0 <= number <= 1:
        raise ParameterError(f"truth = {truth} is not in [1/k, 1]: it is a probability; try 0.75")
    if number < least:
        raise OutOfRegimeError(
            f"truth = {truth} is below 1/{k}: randomized response is taken to report the true "
            "value at least as often as any other; relabel the reports"
        )
    return number


def response_channel(num_values: int, truth: Truth) -> Channel:
    """Return k-ary randomized response of one user: truth on the diagonal, else (1 - p)/(k - 1).

    Parameters
    ----------
    num_values : int
        k >= 2, up to 14142 (exact: 2000).
    truth : float, int or Fraction
        p in [1/k, 1]; see `checked_truth`. Fractions and integers give an exact channel.

    Returns
    -------
    Channel
        Values to reports, both labelled 0, ..., k - 1.

    Raises
    ------
    OutOfRegimeError, ParameterError
        As `checked_truth`; and if the matrix is too large.

    Notes
    -----
    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Definition 10.

    Examples
    --------
    >>> response_channel(3, 0.5).matrix
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    probability = checked_truth(truth, num_values)
    exact = isinstance(probability, Fraction)
    require_dense_size("the response channel", num_values, num_values, exact=exact)
    other = (1 - probability) / (num_values - 1)
    matrix = np.full((num_values, num_values), other)  # object where it is a Fraction
    np.fill_diagonal(matrix, probability)
    labels = range(num_values)
    return Channel.from_matrix(frozen(matrix), inputs=labels, outputs=labels)
