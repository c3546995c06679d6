"""The step that all randomizers of numbers share: from a value to a point of a grid, unbiased.

A range [low, high] is cut into m equal steps, and a value becomes one of the two grid points
0, ..., m around it, at random, such that the point's expectation is the value's position. The
randomizer then sees that point only. Whatever the rounding does costs no privacy: the law of a
report given a value is a mixture of the laws given grid points, and the divergences between
mixtures are at most the largest between their components (joint convexity).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.randomizers.checks import plain_array

#: Values that are handled together: 256 KiB of words stay in the second-level cache.
BLOCK = 2**15

# Widths between these leave room for squares of noise in floats, at any epsilon0.
_SMALLEST_WIDTH = 1e-100
_LARGEST_WIDTH = 1e100


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers [low, high].

    Parameters
    ----------
    low, high : float
        Finite, low < high, and between 1e-100 and 1e100 apart.

    Raises
    ------
    ParameterError
        If that is not so; the message names both ends.

    Examples
    --------
    >>> Span(-1, 3).middle, Span(-1, 3).half_width
    (1.0, 2.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            # Adding zero makes -0.0 the same end as 0.0, also in fingerprints.
            object.__setattr__(self, name, _require_finite(name, getattr(self, name)) + 0.0)
        if self.low > self.high:
            raise ParameterError(
                f"low = {self.low} is above high = {self.high}: the range is the wrong way round; "
                "swap the two"
            )
        if self.low == self.high:
            raise ParameterError(
                f"low = high = {self.low}: a range needs two different ends, low < high; declare "
                "the smallest and the largest value that is possible"
            )
        if not _SMALLEST_WIDTH <= self.width <= _LARGEST_WIDTH:
            raise ParameterError(
                f"low = {self.low} and high = {self.high} are {self.width} apart, not between "
                f"{_SMALLEST_WIDTH} and {_LARGEST_WIDTH}: give the values in another unit"
            )

    @property
    def width(self) -> float:
        """Distance of the ends."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The value halfway between the ends."""
        return (self.low + self.high) / 2.0

    @property
    def half_width(self) -> float:
        """Distance of each end from the middle."""
        return self.width / 2.0

    @property
    def stated(self) -> str:
        """Exact text of both ends, for fingerprints."""
        return f"{self.low.hex()}..{self.high.hex()}"

    def position(self, value: float) -> float:
        """Return where a value lies, from -1 at the lower end to 1 at the upper one.

        Raises
        ------
        DomainError
            If the value is NaN or outside the range.
        """
        if not self.low <= value <= self.high:
            raise DomainError(
                f"value = {value} is not in [{self.low}, {self.high}]: give a value of the range"
            )
        return min(1.0, max(-1.0, (value - self.middle) / self.half_width))

    def require_inside(self, block: NDArray[np.float64], *, start: int) -> None:
        """Raise `DomainError` unless all values of a block are in the range.

        Parameters
        ----------
        block : ndarray of float64
            Some of the users' values.
        start : int
            Position of the first of them among all, for the message.
        """
        inside = (block >= self.low) & (block <= self.high)
        if inside.all():
            return
        first = int(np.argmin(inside))
        value = float(block[first])
        advice = (
            "leave out or fill in missing values first"
            if math.isnan(value)
            else "clip the values to the range first (--clip on the command line), or declare a "
            "wider one"
        )
        raise DomainError(
            f"values[{start + first}] = {value} is not in [{self.low}, {self.high}]: {advice}"
        )


def require_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``values`` as an array of real numbers, shape (n,), else raise `ParameterError`."""
    array = plain_array(values)
    if array.ndim != 1:
        raise ParameterError(f"values has shape {array.shape}: give one number a user, shape (n,)")
    if array.size == 0:
        return array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"values has dtype {array.dtype}: give integers or floats")
    return array


def blocks_of(values: NDArray[Any], span: Span) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield the values as doubles, some at a time, once checked.

    Parameters
    ----------
    values : ndarray of integers or floats, shape (n,)
        One number a user. May be empty.
    span : Span
        Range that they must lie in.

    Yields
    ------
    where : slice
        Which users.
    block : ndarray of float64, contiguous
        Their values.

    Raises
    ------
    DomainError
        If a value is NaN or outside the range; the message names the first.
    ParameterError
        If ``values`` is not a one-dimensional array of numbers.
    """
    array = require_numbers(values)
    for start in range(0, array.size, BLOCK):
        where = slice(start, min(start + BLOCK, array.size))
        # A copy, so that the loops always see the same type of array: a writable one.
        block = array[where].astype(np.float64)
        span.require_inside(block, start=start)
        yield where, block


def round_to_grid(
    block: NDArray[np.float64], span: Span, *, num_steps: int, entropy: Entropy
) -> NDArray[np.int32]:
    """Return a grid point for each value of a block, whose expectation is the value's position.

    Parameters
    ----------
    block : ndarray of float64
        Values in the range, as `blocks_of` yields them.
    span : Span
        The range.
    num_steps : int
        m, in [1, 2^20]: the grid has the points 0, ..., m.
    entropy : Entropy
        Source of randomness; one word a value.

    Returns
    -------
    ndarray of int32
        Grid points, in [0, m].

    Notes
    -----
    With position p = (value - low) / (high - low) m, the point is floor(p) + 1 with probability
    p - floor(p), to a multiple of 2^-64, and floor(p) otherwise. Three operations on floats lead
    to p, so that it is off by at most 3 * 2^-53 m, and the point's expectation by less than
    2^-51 m: a bias of at most 2^-51 (high - low) of the estimated mean, far below any standard
    error. Its variance is at most 1/4.
    """
    from shuffledp.randomizers.numbers.rounding_kernels import round_block

    points = np.empty(block.size, dtype=np.int32)
    round_block(block, entropy.words(block.size), span.low, span.width, float(num_steps), points)
    return points


def _require_finite(name: str, value: Any) -> float:
    """Return an end of a range as a float if it is a finite number, else raise."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{name} = {value!r} is not a finite number: give an end of the range")
    return number
