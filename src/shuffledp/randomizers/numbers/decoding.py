"""From integer reports to numbers: scores, their sums, and the scale that undoes the noise.

The score of a report is 2 code - centre, an integer around 0 whose expectation is proportional to
the distance of the user's value from the middle of the range. So the estimated mean is the middle
plus a factor times the mean score, without cancellation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Reports, Sums
from shuffledp.estimation.means import NoiseLaw
from shuffledp.randomizers.checks import require_reports
from shuffledp.randomizers.numbers.rounding import Span

# Far below the 2^29 reports whose sum is proved to be exact.
_BLOCK = 2**20


def require_integer_reports(
    reports: Reports, *, fingerprint: str, dtype: np.dtype[Any], smallest: int, largest: int
) -> NDArray[Any]:
    """Return the codes of the reports if this law could have made them.

    Parameters
    ----------
    reports : Reports
        One integer a user.
    fingerprint : str
        Law that must have made them.
    dtype : dtype
        Type of integer that it makes.
    smallest, largest : int
        Ends of what it makes.

    Returns
    -------
    ndarray of ``dtype``, shape (n,)
        Contiguous and read-only.

    Raises
    ------
    FingerprintError
        If the reports were made by another law.
    DomainError
        If this law makes no such report; the message names the first.
    ParameterError
        If the reports have another type or shape.
    """
    codes = require_reports(reports, fingerprint=fingerprint, dtype=dtype, row_shape=())
    if codes.size and not smallest <= int(codes.min()) <= int(codes.max()) <= largest:
        position = int(np.argmax((codes < smallest) | (codes > largest)))
        raise DomainError(
            f"report {position} is {codes[position]}, not in [{smallest}, {largest}]: this "
            "randomizer makes no such report, so it is corrupt or forged; drop it and sum again"
        )
    return codes


def scores_of(codes: NDArray[Any], *, centre: int) -> NDArray[np.float64]:
    """Return 2 code - centre for each report, shape (n, 1); exact."""
    scores: NDArray[np.float64] = 2.0 * codes.astype(np.float64)[:, None] - centre
    return scores


def sums_of(codes: NDArray[Any], *, centre: int, fingerprint: str) -> Sums:
    """Return the sums of the scores and of their squares.

    Parameters
    ----------
    codes : ndarray of integers, shape (n,)
        Checked reports.
    centre : int
        Twice the code of a report that speaks for the middle of the range.
    fingerprint : str
        Law of the reports.

    Returns
    -------
    Sums
        The first sum is exact up to 2^53, whatever the order; so is the second one up to there,
        and beyond it has relative errors of the order of 2^-53.

    Notes
    -----
    Cost: about a nanosecond a report; no memory.
    """
    from shuffledp.randomizers.numbers.decoding_kernels import sum_scores

    total, total_of_squares = 0, 0.0
    for start in range(0, codes.size, _BLOCK):
        partial, partial_of_squares = sum_scores(codes[start : start + _BLOCK], centre)
        total += int(partial)
        total_of_squares += partial_of_squares
    return Sums(
        total=np.array([float(total)]),
        total_of_squares=np.array([total_of_squares]),
        num_reports=codes.size,
        fingerprint=fingerprint,
    )


def scale_of(span: Span, *, slope: float) -> tuple[float, float]:
    """Return the offset and the factor that take a score to the user's units.

    Parameters
    ----------
    span : Span
        Range of the values.
    slope : float
        Expected score of a user at the upper end, at least 0.

    Returns
    -------
    offset, factor : float
        The middle of the range, and its half width over the slope.

    Raises
    ------
    ParameterError
        If the slope is zero: the reports say nothing.
    """
    if not slope > 0.0:
        raise ParameterError(
            "epsilon0 of this law is 0, so that its reports say nothing about the values: use a "
            "randomizer with a larger epsilon0"
        )
    return span.middle, span.half_width / slope


def noise_law_of(variance_at: Callable[..., float], *, growth: float, factor: float) -> NoiseLaw:
    """Return how the noise of reports on a number follows from their squares.

    Parameters
    ----------
    variance_at : callable
        Variance of a decoded report for a value at the squared position ``square`` and with a
        given ``rounding``, as `Piecewise.variance_at`: linear in both.
    growth : float
        By how much the expected squared distance of a decoded report from the middle grows from a
        value in the middle of the range to one at its end, in squared half widths; >= 0. Where it
        is 0 the squares say nothing about the values.
    factor : float
        Of the scale of scores.

    Returns
    -------
    NoiseLaw
        With rounding counted as if each value lay halfway between two points of the grid, which
        is the worst. Proved in docs/results/standard-errors.md.
    """
    unit = factor**2
    ends = [variance_at(square, rounding=0.0) for square in (0.0, 1.0)]
    least = min(ends) / unit
    if growth == 0.0:
        return NoiseLaw(least=least)
    constant = variance_at(0.0, rounding=1.0) / unit
    return NoiseLaw(share=1.0 - 1.0 / growth, constant=constant / growth, least=least)
