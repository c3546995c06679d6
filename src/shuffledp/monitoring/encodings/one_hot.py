"""One value out of a few: a column for each, which asks "is it this one?"."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.monitoring.encodings.codes import per_column, require_column
from shuffledp.monitoring.encodings.single_value import SingleValueEncoding


@dataclass(frozen=True, slots=True)
class OneHotEncoding(SingleValueEncoding):
    """B(column, value) = 1 if the value is that of the column.

    Parameters
    ----------
    labels : tuple
        The K >= 2 values of the domain; a value's code is its place.

    Raises
    ------
    DomainError
        If there are fewer than two values, or one comes twice.

    Notes
    -----
    A column is met by one report in K, so that its scaled sum is an estimate of 1/K of the count:
    times K, with K times the variance of a count of one bit. See `Encoding` for the attributes.

    Examples
    --------
    >>> encoding = OneHotEncoding(("bus", "car", "none"))
    >>> encoding.code("car"), encoding.bit(1, 1), encoding.bit(0, 1), encoding.bit(0, None)
    (1, 1, 0, 0)
    >>> encoding.decode([4.0, -1.0, 0.0]).tolist()
    [12.0, -3.0, 0.0]
    """

    name: ClassVar[str] = "one-hot"

    @property
    def num_columns(self) -> int:
        """A column for each value."""
        return len(self.labels)

    @property
    def variance_factor(self) -> float:
        """K."""
        return float(len(self.labels))

    @property
    def changing_share(self) -> float:
        """Two columns differ between two values; rounded up."""
        return min(2.0 / len(self.labels) * (1.0 + math.ulp(1.0)), 1.0)

    def bit(self, column: int, code: int | None) -> int:
        """Return whether the value is that of the column. See `Encoding`."""
        return int(require_column(column, self.num_columns) == code)

    def bits(self, columns: ArrayLike, codes: ArrayLike) -> NDArray[np.int8]:
        """Return which values are those of their columns. See `Encoding`."""
        equal = np.asarray(columns).astype(np.int64) == np.asarray(codes).astype(np.int64)
        ones: NDArray[np.int8] = equal.astype(np.int8)
        return ones

    def decode(self, sums: ArrayLike) -> NDArray[Any]:
        """Return K times the sums. See `Encoding`."""
        return per_column(sums, self.num_columns, "sums") * self.num_columns

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return K^2 times the numbers of reports. See `Encoding`."""
        return per_column(counts, self.num_columns, "counts") * self.num_columns**2
