"""How the value of a user becomes the single bit that a node of the tree tracks, and back."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.numerics.walsh_hadamard import walsh_hadamard

#: Code of a value that is not there: before the first one, or after a user has left.
NOTHING = -1

_FINGERPRINT_DIGITS = 32  # 128 bits

# Labels named in a message.
_MOST_NAMED = 8

# One-hot columns multiply the variance by K, Hadamard columns by 4: equal at K = 4, where the
# estimates of the latter share all reports.
_FEWEST_FOR_HADAMARD = 4


@dataclass(frozen=True, slots=True)
class Encoding(ABC):
    """Values as codes, codes as bits of columns, and back from sums of reports to counts.

    A client draws a column for each node of its level, publicly, uniformly and afresh, and reports
    on one bit only: B(column, value at the node's end) - B(column, value before its start).
    B(column, nothing) = 0. The column does not depend on the value, so that it may as well be
    drawn when the node ends.

    Parameters
    ----------
    labels : tuple
        What is counted, one entry an estimate: the K >= 2 values of the domain. A value's code is
        its place.

    Attributes
    ----------
    name : str
        Such as ``"hadamard"``.
    alternating : bool
        Whether increments alternate +1, -1, +1, ..., whatever the user does. The central guarantee
        is sharper then.
    nothing : int
        The code of no value; -1 is another name of it.
    fingerprint : str
        Names the encoding, labels included: client and server must agree on it.

    Raises
    ------
    DomainError
        If there are fewer than two values, or one comes twice.
    """

    name: ClassVar[str]
    alternating: ClassVar[bool] = False
    nothing: ClassVar[int] = NOTHING
    _fewest: ClassVar[int] = 2

    labels: tuple[Hashable, ...]
    fingerprint: str = field(init=False, repr=False, compare=False)
    _numbers: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = _numbered(self.labels, fewest=self._fewest)
        labels = tuple(numbers)
        stated = "/".join([self.name, *(f"{type(each).__name__}={each!r}" for each in labels)])
        digest = hashlib.sha256(f"shuffledp monitoring encoding/{stated}".encode()).hexdigest()
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "fingerprint", digest[:_FINGERPRINT_DIGITS])
        object.__setattr__(self, "_numbers", numbers)

    @property
    def num_columns(self) -> int:
        """Number of columns, C >= 1."""
        return len(self.labels)

    @property
    def num_values(self) -> int:
        """Number of estimates, the length of ``labels``."""
        return len(self.labels)

    @property
    def largest_code(self) -> int:
        """Codes lie in [-1, largest_code]."""
        return len(self.labels) - 1

    @property
    def variance_factor(self) -> float:
        """Variance of an estimate over that of a count of one bit from as many reports.

        For columns that are met equally often; `decode_counts` is exact.
        """
        return float(self.num_columns)

    @property
    def changing_share(self) -> float:
        """At most this share of the columns shows a given change of the value, in (0, 1].

        Rounded up. The smaller, the sharper the central guarantee.
        """
        return 1.0

    def code(self, value: Any) -> int:
        """Return the code of a value as a user states it; ``None`` is nothing.

        Raises
        ------
        DomainError
            If it is no value of the domain; the message says what to do.
        """
        if value is None:
            return self.nothing
        if isinstance(value, Hashable) and value in self._numbers:
            return self._numbers[value]
        named = ", ".join(map(repr, self.labels[:_MOST_NAMED]))
        more = ", ..." if len(self.labels) > _MOST_NAMED else ""
        raise DomainError(
            f"value = {value!r} is not among the {len(self.labels)} values of the domain "
            f"({named}{more}): declare it when the collection is set up, map it to one of these, "
            "or give None for none"
        )

    def bit(self, column: int, code: int | None) -> int:
        """Return B(column, value) in {0, 1} for the value of that code; ``None`` is nothing."""
        if not 0 <= column < self.num_columns:
            raise ParameterError(
                f"column = {column} is not in [0, {self.num_columns}): give a column of this "
                "encoding"
            )
        return int(self._shows(column, NOTHING if code is None else code))

    def bits(self, columns: ArrayLike, codes: ArrayLike) -> NDArray[np.int8]:
        """Return B for arrays of columns and codes of one shape, as int8."""
        shown = self._shows(
            np.asarray(columns).astype(np.int64), np.asarray(codes).astype(np.int64)
        )
        ones: NDArray[np.int8] = shown.astype(np.int8)
        return ones

    @abstractmethod
    def _shows(self, columns: Any, codes: Any) -> Any:
        """Return whether B = 1, for numbers or arrays of them."""

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
        return self._per_column(sums, "sums") * self.num_columns

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
        return self._per_column(counts, "counts") * self.num_columns**2

    def _per_column(self, array: ArrayLike, name: str) -> NDArray[Any]:
        """Return an array whose last axis is the columns: float64, or objects as fractions."""
        numbers = np.asarray(array)
        if numbers.ndim == 0 or numbers.shape[-1] != self.num_columns:
            raise ParameterError(
                f"{name} has shape {numbers.shape}: its last axis has to be the "
                f"{self.num_columns} columns"
            )
        return numbers if numbers.dtype == object else numbers.astype(np.float64)


@dataclass(frozen=True, slots=True)
class BooleanEncoding(Encoding):
    """A state is 0 or 1, and nothing is 0: one column, the state itself.

    Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
    Shuffling", SODA 2019, arXiv:1811.12469v2, Section 3. See `Encoding` for the attributes.

    Examples
    --------
    >>> encoding = BooleanEncoding()
    >>> [encoding.code(value) for value in (None, False, True, 1)]
    [0, 0, 1, 1]
    >>> encoding.decode([[5.0], [-2.0]]).tolist()
    [[5.0], [-2.0]]
    """

    name: ClassVar[str] = "boolean"
    alternating: ClassVar[bool] = True
    nothing: ClassVar[int] = 0
    largest_code: ClassVar[int] = 1
    _fewest: ClassVar[int] = 1

    labels: tuple[Hashable, ...] = field(default=(True,), init=False, repr=False)

    def code(self, value: Any) -> int:
        """Return 0 for False, 0 and None, 1 for True and 1. See `Encoding`."""
        if value is None:
            return 0
        if isinstance(value, (bool, np.bool_, int, np.integer)) and 0 <= int(value) <= 1:
            return int(value)
        raise DomainError(
            f"value = {value!r} is not a state: give True, False, 1, 0, or None for a user without "
            "one; other values need a domain"
        )

    def _shows(self, columns: Any, codes: Any) -> Any:  # noqa: ARG002  # one column
        return codes == 1


@dataclass(frozen=True, slots=True)
class OneHotEncoding(Encoding):
    """B(column, value) = 1 if the value is that of the column.

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
    def changing_share(self) -> float:
        """Two columns differ between two values; rounded up."""
        return min(2.0 / len(self.labels) * (1.0 + math.ulp(1.0)), 1.0)

    def _shows(self, columns: Any, codes: Any) -> Any:
        return columns == codes


@dataclass(frozen=True, slots=True)
class HadamardEncoding(Encoding):
    """B(column, value) = 1 if the entry of the Walsh-Hadamard matrix there is +1.

    Notes
    -----
    The matrix has C columns, the least power of two above K; its entry H at (row, column) is
    (-1)^(number of ones of row & column), and the row of a value is its code + 1. Row 0 is left
    out, all of whose entries are +1. With a uniform column, B(column, v) = (1 + H[v + 1, column]) /
    2 for a value and 0 for nothing, so that the average over columns of H[w + 1, column] B(column,
    v) is 1/2 if v = w and 0 otherwise, for the rows of the matrix are orthogonal and row 0 is no
    value's. Estimates of count w are therefore 2 sum over columns of H[w + 1, column] S[column].
    Their variance is 4 times that of a count of one bit, whatever K: from K = 5 on less than that
    of one-hot columns, and the same at K = 4. Decoding costs C log2 C additions.

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

    def _shows(self, columns: Any, codes: Any) -> Any:
        rows = codes + 1
        return (np.bitwise_count(rows & columns) % 2 == 0) & (rows != 0)

    def decode(self, sums: ArrayLike) -> NDArray[Any]:
        """Return the transform of the sums, twice. See `Encoding`."""
        transformed = walsh_hadamard(self._per_column(sums, "sums"))
        return 2 * transformed[..., 1 : self.num_values + 1]

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return 4 times the number of all reports, for each value. See `Encoding`."""
        total = self._per_column(counts, "counts").sum(axis=-1, keepdims=True)
        return np.repeat(4 * total, self.num_values, axis=-1)


_OF_DOMAIN: dict[str, type[Encoding]] = {
    each.name: each for each in (OneHotEncoding, HadamardEncoding)
}


def encoding_for(domain: Iterable[Hashable] | None = None, *, name: str | None = None) -> Encoding:
    """Return the encoding for a kind of value.

    Parameters
    ----------
    domain : iterable or None
        ``None``: a state that is on or off. The values, in order: each user has one of them, or
        none.
    name : str or None
        ``"one-hot"`` or ``"hadamard"`` for values; ``None`` takes one-hot columns below four values
        and Hadamard columns from there on, whichever has the smaller error.

    Returns
    -------
    Encoding
        Frozen.

    Raises
    ------
    DomainError
        If the domain has fewer than two values, repeats one, or is a text.
    ParameterError
        If ``name`` is unknown.

    Examples
    --------
    >>> encoding_for().name, encoding_for(["yes", "no"]).name, encoding_for(range(100)).name
    ('boolean', 'one-hot', 'hadamard')
    """
    if isinstance(domain, str):
        raise DomainError(f"domain = {domain!r} is a text: give a list of values")
    if domain is None:
        if name not in (None, BooleanEncoding.name):
            raise ParameterError(f"encoding = {name!r} needs a domain: give the values to count")
        return BooleanEncoding()
    labels = tuple(domain)
    if name is None:
        name = OneHotEncoding.name if len(labels) < _FEWEST_FOR_HADAMARD else HadamardEncoding.name
    if name not in _OF_DOMAIN:
        raise ParameterError(
            f"encoding = {name!r} is not one of {', '.join(_OF_DOMAIN)} for values of a domain: "
            "leave it out for the one with the smallest error"
        )
    return _OF_DOMAIN[name](labels)


def require_codes(codes: ArrayLike, encoding: Encoding) -> NDArray[np.int64]:
    """Return codes as int64, with ``encoding.nothing`` in place of -1, or raise."""
    array = np.asarray(codes)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise ParameterError(
            f"values has shape {array.shape} and dtype {array.dtype}: give one integer code a "
            "user, in the order of users"
        )
    if array.size and not NOTHING <= int(array.min()) <= int(array.max()) <= encoding.largest_code:
        outside = (array < NOTHING) | (array > encoding.largest_code)
        place = int(np.argmax(outside))
        raise DomainError(
            f"values[{place}] = {array[place]} is not in [-1, {encoding.largest_code}]: give codes "
            f"of the encoding {encoding.name!r}, -1 for a user without a value"
        )
    # Never a view: the caller may write to his array afterwards.
    integers: NDArray[np.int64] = array.astype(np.int64)
    if encoding.nothing != NOTHING:
        integers[integers == NOTHING] = encoding.nothing
    return integers


def _numbered(labels: Iterable[Any], *, fewest: int) -> dict[Hashable, int]:
    """Return the number of each label, from 0, or raise `DomainError`."""
    numbers: dict[Hashable, int] = {}
    for label in labels:
        # Only NaN differs from itself: it would be found among the labels or not, by chance.
        if label is None or not isinstance(label, Hashable) or label != label:  # noqa: PLR0124
            raise DomainError(
                f"domain holds {label!r}: give texts, numbers or other constants; None stands for "
                "a user without a value, and needs no label"
            )
        if label in numbers:
            raise DomainError(f"domain holds {label!r} twice: give each value once")
        numbers[label] = len(numbers)
    if len(numbers) < fewest:
        raise DomainError(
            f"domain holds {len(numbers)} values, fewer than {fewest}: for states that are on or "
            "off leave the domain out"
        )
    return numbers
