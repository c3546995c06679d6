"""Limits within which numbers and vectors lie.

They are stated beforehand: limits that were read from the data would depend on the users that they
are to protect.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_positive
from shuffledp.randomizers.number_randomizer import Span

_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True)
class Range(Span):
    """Numbers between two limits, low < high; both belong to the range."""

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        is_inside = (values >= self.low) & (values <= self.high)
        return np.logical_not(is_inside.all(axis=1))

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each value moved to the nearest one inside."""
        return np.clip(values, self.low, self.high)

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class Ball:
    """Vectors up to a Euclidean norm, finite and positive."""

    norm_bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm_bound", require_positive("norm_bound", self.norm_bound))

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows of values, shape (m, d), lie outside."""
        largest, _, lengths = _norms(values)
        return np.logical_not(largest <= self.norm_bound * (1.0 + 1e-12) / lengths)

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row shortened to the bound where it is longer.

        An infinite coordinate counts as the largest float.
        """
        finite = np.clip(values, -_LARGEST, _LARGEST)
        largest, directions, lengths = _norms(finite)
        is_long = largest > self.norm_bound / lengths
        return np.where(is_long[:, None], directions * (self.norm_bound / lengths)[:, None], finite)

    def __str__(self) -> str:
        return f"the ball of norm {self.norm_bound:g}"


Limits: TypeAlias = Range | Ball


def _norms(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest coordinate of each row, the row divided by it, and the norm of that.

    The norm of a row is the product of the first and the last; taken apart so that no square
    overflows or vanishes. A row of zeros counts as of length 1, divided by 1.
    """
    largest = np.max(np.abs(values), axis=1, initial=0.0)
    is_usable = (largest > 0.0) & (largest < math.inf)  # dividing infinity by itself gives NaN
    directions = values / np.where(is_usable, largest, 1.0)[:, None]
    directions[~is_usable] = 0.0
    lengths = np.sqrt((directions * directions).sum(axis=1))
    return largest, directions, np.where(lengths > 0.0, lengths, 1.0)
