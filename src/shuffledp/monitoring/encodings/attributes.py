"""Sets of attributes: a column for each attribute, which asks "is it in the set?"."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.monitoring.encodings.codes import (
    code_of_label,
    fingerprint_of,
    per_column,
    require_column,
    require_labels,
)
from shuffledp.monitoring.encodings.encoding import NOTHING

#: A set is one signed machine word, and -1 is no set.
MOST_ATTRIBUTES = 62


@dataclass(frozen=True, slots=True)
class AttributesEncoding:
    """B(column, set) = 1 if the attribute of the column is in the set.

    Parameters
    ----------
    labels : tuple
        The m attributes, in [1, 62]. The code of a set has bit j set if attribute j is in it.

    Raises
    ------
    DomainError
        If there are none or too many, or one comes twice.

    Notes
    -----
    A set that changes in several attributes at once has changed once. A column is met by one
    report in m, so that estimates have m times the variance of a count of one bit. See `Encoding`
    for the attributes.

    Examples
    --------
    >>> encoding = AttributesEncoding.numbered(3)
    >>> encoding.code({0, 2}), encoding.code(None), encoding.bit(2, 5), encoding.bit(1, 5)
    (5, 0, 1, 0)
    >>> encoding.masks([[True, False, True], [False, False, False]]).tolist()
    [5, 0]
    """

    name: ClassVar[str] = "attributes"
    alternating: ClassVar[bool] = False
    changing_share: ClassVar[float] = 1.0  # two sets may differ in every attribute
    nothing: ClassVar[int] = 0

    labels: tuple[Hashable, ...]
    fingerprint: str = field(init=False, repr=False, compare=False)
    _numbers: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = require_labels(self.labels, what="attributes", fewest=1)
        if len(numbers) > MOST_ATTRIBUTES:
            raise DomainError(
                f"attributes holds {len(numbers)} names, above {MOST_ATTRIBUTES}: give fewer, or "
                "collect them in several collections, each with a budget of its own"
            )
        object.__setattr__(self, "labels", tuple(numbers))
        object.__setattr__(self, "fingerprint", fingerprint_of(self.name, self.labels))
        object.__setattr__(self, "_numbers", numbers)

    @classmethod
    def of(cls, labels: Iterable[Hashable]) -> Self:
        """Return the encoding of any iterable of attributes."""
        return cls(tuple(labels))

    @classmethod
    def numbered(cls, num_attributes: SupportsIndex) -> Self:
        """Return the encoding of the attributes 0 ... m - 1."""
        return cls(tuple(range(require_at_least("num_attributes", num_attributes, 1))))

    @property
    def num_columns(self) -> int:
        """A column for each attribute."""
        return len(self.labels)

    @property
    def num_values(self) -> int:
        """Number of attributes."""
        return len(self.labels)

    @property
    def largest_code(self) -> int:
        """All attributes."""
        return (1 << len(self.labels)) - 1

    @property
    def variance_factor(self) -> float:
        """The number of attributes."""
        return float(len(self.labels))

    def code(self, value: Any) -> int:
        """Return the code of a set of attributes, 0 for None. See `Encoding`."""
        if value is None:
            return 0
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise DomainError(
                f"value = {value!r} is not a set of attributes: give a set, such as "
                f"{{{self.labels[0]!r}}}"
            )
        mask = 0
        for attribute in value:
            place = code_of_label(attribute, self._numbers)
            if place == NOTHING:
                raise DomainError("value holds None: give the attributes that the user has only")
            mask |= 1 << place
        return mask

    def masks(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Return the codes of sets given as rows of booleans.

        Parameters
        ----------
        rows : array-like of bool, shape (n, num_columns)
            Which attributes each user has.

        Returns
        -------
        ndarray of int64, shape (n,)

        Raises
        ------
        ParameterError
            If this is no such array.
        """
        array = np.asarray(rows)
        if array.ndim != 2 or array.shape[1] != self.num_columns or array.dtype != np.bool_:
            raise ParameterError(
                f"rows has shape {array.shape} and dtype {array.dtype}: give a row of "
                f"{self.num_columns} booleans a user"
            )
        powers = np.int64(1) << np.arange(self.num_columns, dtype=np.int64)
        return array.astype(np.int64) @ powers

    def bit(self, column: int, code: int | None) -> int:
        """Return whether the attribute is in the set. See `Encoding`."""
        require_column(column, self.num_columns)
        return 0 if code is None or code == NOTHING else (code >> column) & 1

    def bits(self, columns: ArrayLike, codes: ArrayLike) -> NDArray[np.int8]:
        """Return which attributes are in their sets. See `Encoding`."""
        masks = np.asarray(codes).astype(np.int64)
        masks = np.where(masks == NOTHING, 0, masks)
        ones: NDArray[np.int8] = (masks >> np.asarray(columns).astype(np.int64) & 1).astype(np.int8)
        return ones

    def decode(self, sums: ArrayLike) -> NDArray[Any]:
        """Return m times the sums. See `Encoding`."""
        return per_column(sums, self.num_columns, "sums") * self.num_columns

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return m^2 times the numbers of reports. See `Encoding`."""
        return per_column(counts, self.num_columns, "counts") * self.num_columns**2
