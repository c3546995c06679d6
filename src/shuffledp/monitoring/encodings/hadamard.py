"""One value out of many: columns of a Walsh-Hadamard matrix, each of which halves the domain."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.numerics.walsh_hadamard import walsh_hadamard
from shuffledp.monitoring.encodings.codes import per_column, require_column
from shuffledp.monitoring.encodings.encoding import NOTHING
from shuffledp.monitoring.encodings.single_value import SingleValueEncoding


@dataclass(frozen=True, slots=True)
class HadamardEncoding(SingleValueEncoding):
    """B(column, value) = 1 if the entry of the Walsh-Hadamard matrix there is +1.

    Parameters
    ----------
    labels : tuple
        The K >= 2 values of the domain; a value's code v is its place, and its row v + 1.

    Raises
    ------
    DomainError
        If there are fewer than two values, or one comes twice.

    Notes
    -----
    The matrix has C columns, the least power of two above K; its entry H at (row, column) is
    (-1)^(number of ones of row & column). Row 0 is left out, all of whose entries are +1. With a
    uniform column, B(column, v) = (1 + H[v + 1, column]) / 2 for a value and 0 for nothing, so
    that the average over columns of H[w + 1, column] B(column, v) is 1/2 if v = w and 0 otherwise,
    for the rows of the matrix are orthogonal and row 0 is no value's. Estimates of count w are
    therefore 2 sum over columns of H[w + 1, column] S[column]. Their variance is 4 times that of a
    count of one bit, whatever K: from K = 5 on less than that of one-hot columns, and the same at
    K = 4. Decoding costs C log2 C additions.

    Source: the columns are those of Acharya, Sun, Zhang, "Hadamard response", AISTATS 2019
    (arXiv:1802.04705); tracking their bits over time is ours. See `Encoding` for the attributes.

    Examples
    --------
    >>> encoding = HadamardEncoding(("bus", "car", "none"))
    >>> encoding.num_columns
    4
    >>> [[encoding.bit(column, code) for column in range(4)] for code in (0, 1, 2, None)]
    [[1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]
    >>> encoding.decode([0.25, 0.25, 0.0, 0.0]).tolist()  # one more car
    [0.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "hadamard"
    changing_share: ClassVar[float] = 0.5  # in so many columns do two rows differ
    variance_factor: ClassVar[float] = 4.0

    @property
    def num_columns(self) -> int:
        """The least power of two above the number of values."""
        return 1 << len(self.labels).bit_length()

    def bit(self, column: int, code: int | None) -> int:
        """Return whether the entry of the matrix is +1. See `Encoding`."""
        require_column(column, self.num_columns)
        if code is None or code == NOTHING:
            return 0
        return 1 - ((code + 1) & column).bit_count() % 2

    def bits(self, columns: ArrayLike, codes: ArrayLike) -> NDArray[np.int8]:
        """Return which entries of the matrix are +1. See `Encoding`."""
        rows = np.asarray(codes).astype(np.int64) + 1
        odd = np.bitwise_count(rows & np.asarray(columns).astype(np.int64)) & 1
        ones: NDArray[np.int8] = ((odd == 0) & (rows != 0)).astype(np.int8)
        return ones

    def decode(self, sums: ArrayLike) -> NDArray[Any]:
        """Return the transform of the sums, twice. See `Encoding`."""
        transformed = walsh_hadamard(per_column(sums, self.num_columns, "sums"))
        return 2 * transformed[..., 1 : self.num_values + 1]

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return 4 times the number of all reports, for each value. See `Encoding`."""
        total = per_column(counts, self.num_columns, "counts").sum(axis=-1, keepdims=True)
        return np.repeat(4 * total, self.num_values, axis=-1)
