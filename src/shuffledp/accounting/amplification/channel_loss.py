"""The local loss of a channel matrix: which output tells which two inputs apart best."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A logarithm of a quotient of two entries, each within 8 roundings: 17, and its own.
_LOG_ERROR = 32.0 * 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRatio:
    """The largest ratio of two entries of a column.

    Parameters
    ----------
    likely, unlikely, output : int
        Numbers of the two inputs and of the output, from 0.
    ratio : float
        Pr[output | likely] / Pr[output | unlikely], to the nearest; may be ``inf``.
    finite_log_ratio : float
        Logarithm of the largest *finite* ratio of any two entries of a column, in nats, rounded
        up; 0 where there is none above 1.
    """

    likely: int
    unlikely: int
    output: int
    ratio: float
    finite_log_ratio: float


def worst_ratio(rows: NDArray[np.float64]) -> WorstRatio:
    """Find the output with the largest ratio of probabilities between two inputs.

    Parameters
    ----------
    rows : (k, m) array
        Probabilities, each within 8 roundings of the exact ones.

    Notes
    -----
    Among outputs of infinite ratio, it is the likeliest. Cost: O(k m).

    Examples
    --------
    >>> worst_ratio(np.array([[0.25, 0.75], [0.5, 0.5]])).ratio
    2.0
    """
    highest, lowest = rows.max(axis=0), rows.min(axis=0)
    positive = np.where(rows > 0.0, rows, np.inf).min(axis=0)
    occurs = highest > 0.0
    ratios = np.ones_like(highest)
    np.divide(highest, positive, out=ratios, where=occurs)
    largest = float(ratios.max())
    revealing = np.where(lowest == 0.0, highest, 0.0)
    output = int(np.argmax(revealing if revealing.max() > 0.0 else ratios))
    column = rows[:, output]
    return WorstRatio(
        likely=int(np.argmax(column)),
        unlikely=int(np.argmin(column)),
        output=output,
        ratio=math.inf if lowest[output] == 0.0 else float(ratios[output]),
        finite_log_ratio=0.0 if largest == 1.0 else math.log(largest) * (1.0 + 1e-15) + _LOG_ERROR,
    )
