"""``Encoding``: how the value of a user becomes the single bit that a node of the tree tracks."""

from collections.abc import Hashable
from typing import Any, Protocol

from numpy.typing import ArrayLike, NDArray

#: Code of a value that is not there: before the first one, or after a user has left.
NOTHING = -1


class Encoding(Protocol):
    """Values as codes, codes as bits of columns, and back from sums of reports to counts.

    A client draws a column for each node of its level, publicly, uniformly and afresh, and reports
    on one bit only: B(column, value at the node's end) - B(column, value before its start).
    B(column, nothing) = 0. The column does not depend on the value, so that it may as well be
    drawn when the node ends.
    """

    @property
    def name(self) -> str:
        """Such as ``"hadamard"``."""
        ...

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """What is counted, one entry an estimate: values, or attributes."""
        ...

    @property
    def num_columns(self) -> int:
        """Number of columns, C >= 1."""
        ...

    @property
    def num_values(self) -> int:
        """Number of estimates, the length of ``labels``."""
        ...

    @property
    def alternating(self) -> bool:
        """Whether increments alternate +1, -1, +1, ..., whatever the user does.

        The central guarantee is sharper then.
        """
        ...

    @property
    def nothing(self) -> int:
        """The code of no value."""
        ...

    @property
    def largest_code(self) -> int:
        """Codes lie in [-1, largest_code], and -1 is another name of ``nothing``."""
        ...

    @property
    def variance_factor(self) -> float:
        """Variance of an estimate over that of a count of one bit from as many reports.

        For columns that are met equally often; `decode_counts` is exact.
        """
        ...

    @property
    def fingerprint(self) -> str:
        """Names the encoding, labels included: client and server must agree on it."""
        ...

    @property
    def changing_share(self) -> float:
        """At most this share of the columns shows a given change of the value, in (0, 1].

        Rounded up. The smaller, the sharper the central guarantee.
        """
        ...

    def code(self, value: Any) -> int:
        """Return the code of a value as a user states it; ``None`` is nothing.

        Raises
        ------
        DomainError
            If it is no value of the domain; the message says what to do.
        """
        ...

    def bit(self, column: int, code: int | None) -> int:
        """Return B(column, value) in {0, 1} for the value of that code; ``None`` is nothing."""
        ...

    def bits(self, columns: ArrayLike, codes: ArrayLike) -> NDArray[Any]:
        """Return B for arrays of columns and codes of one shape, as int8."""
        ...

    def decode(self, sums: ArrayLike) -> NDArray[Any]:
        """Return estimates of counts from scaled sums of reports.

        Parameters
        ----------
        sums : array-like, shape (..., num_columns)
            (number of levels / gap) * sum of the signs reported, for each column.

        Returns
        -------
        ndarray of float64, shape (..., num_values)
            Unbiased: the expected sum over users of each value's increment. Fractions stay
            fractions.
        """
        ...

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return what multiplies (number of levels / gap)^2 in the variance of each estimate.

        Parameters
        ----------
        counts : array-like, shape (..., num_columns)
            How many reports came of each column.

        Returns
        -------
        ndarray of float64, shape (..., num_values)
            An upper bound given the columns: a report of +1 or -1 has variance at most 1, and
            different users' reports are independent.
        """
        ...
