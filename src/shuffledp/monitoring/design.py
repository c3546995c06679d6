"""What clients and server agree on: the tree over the periods, the encoding, the signs' law."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.numerics.walsh_hadamard import walsh_hadamard
from shuffledp.core.profile import MonitoringProfile
from shuffledp.monitoring.signs import SignLaw, sign_law

_LARGEST_PERIODS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodTree:
    """Dyadic intervals of the periods 1 ... d, for any d in [1, 2^40].

    Node j of level h, both from 1, is the interval of periods (j - 1) 2^(h-1) + 1 ... j 2^(h-1), if
    it ends at d or before; level 1 has the single periods. Levels without a complete node are left
    out: floor(log2 d) + 1 remain. Source: arXiv:1811.12469v2, section 3, where d is a power of two.
    """

    periods: int  # d, in [1, 2^40]; any number, not only powers of two
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        periods = require_at_least("periods", self.periods, 1)
        if periods > _LARGEST_PERIODS:
            raise ParameterError(
                f"periods = {periods} is above 2^40: no table has so many; take longer periods"
            )
        sizes = (periods >> height for height in range(periods.bit_length() - 1))
        object.__setattr__(self, "periods", periods)
        object.__setattr__(self, "offsets", tuple(accumulate(sizes, initial=0)))

    @property
    def num_levels(self) -> int:
        """L = floor(log2 d) + 1."""
        return len(self.offsets)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all levels, below 2 d."""
        return self.offsets[-1] + 1  # the last level has one node

    def nodes_at(self, level: SupportsIndex) -> int:
        """Return how many nodes a level has: floor(d / 2^(level-1))."""
        return self.periods >> (self._level(level) - 1)

    def length(self, level: SupportsIndex) -> int:
        """Return how many periods a node of a level has: 2^(level-1)."""
        return 1 << (self._level(level) - 1)

    def offset(self, level: SupportsIndex) -> int:
        """Return the flat index of the first node of a level."""
        return self.offsets[self._level(level) - 1]

    def index(self, level: SupportsIndex, position: SupportsIndex) -> int:
        """Return the flat index of a node, from 0: the levels one after the other, leaves first."""
        offset = self.offset(level)
        number = require_at_least("position", position, 1)
        if number > self.nodes_at(level):
            raise ParameterError(
                f"position = {number} is not in [1, {self.nodes_at(level)}]: level {level} of "
                f"{self.periods} periods has no more nodes"
            )
        return offset + number - 1

    def levels_ending_at(self, t: SupportsIndex) -> range:
        """Return the levels with a node that ends at period t: 1 up to some level."""
        number = self._period(t, 1)
        return range(1, (number & -number).bit_length() + 1)

    def position_ending_at(self, level: SupportsIndex, t: SupportsIndex) -> int:
        """Return j of the node of a level that ends at period t."""
        number = self._period(t, 1)
        length = self.length(level)
        if number % length:
            raise ParameterError(
                f"t = {number} is not a multiple of {length}: no node of level {level} ends there"
            )
        return number // length

    def cover(self, t: SupportsIndex) -> tuple[tuple[int, int], ...]:
        """Return the nodes (level, position) that partition the periods 1 ... t, the largest first.

        One for each one-bit of t (Algorithm 2, lines 7 to 10, of arXiv:1811.12469v2).
        """
        number = self._period(t, 0)
        heights = (h for h in range(number.bit_length() - 1, -1, -1) if number >> h & 1)
        return tuple((height + 1, number >> height) for height in heights)

    def _level(self, level: SupportsIndex) -> int:
        """Return a level as an int, else raise."""
        number = require_at_least("level", level, 1)
        if number > self.num_levels:
            raise ParameterError(
                f"level = {number} is not in [1, {self.num_levels}]: {self.periods} periods have "
                "no more levels"
            )
        return number

    def _period(self, t: SupportsIndex, first: int) -> int:
        """Return a period as an int, else raise."""
        number = require_at_least("t", t, first)
        if number > self.periods:
            raise ParameterError(
                f"t = {number} is not in [{first}, {self.periods}]: the tree has "
                f"{self.periods} periods; plan more of them from the start"
            )
        return number


#: Code of a value that is not there: before the first one, or after a user has left.
NOTHING = -1

_ENCODING_DIGITS = 32  # 128 bits

# Labels named in a message.
_MOST_NAMED = 8

# One-hot columns multiply the variance by K, Hadamard columns by 4: equal at K = 4, where the
# estimates of the latter share all reports.
_FEWEST_FOR_HADAMARD = 4


@dataclass(frozen=True, slots=True)
class Encoding(ABC):
    """How a value becomes bits of columns, and sums of reports become estimates of counts.

    A client draws a column for each node of its level, publicly, uniformly and afresh, and reports
    on B(column, value at the node's end) - B(column, value before its start); B(column, nothing) =
    0. ``labels`` are what is counted; a value's code is its place, and -1 is another name of
    ``nothing``. ``alternating`` says whether increments alternate +1, -1, ..., whatever the user
    does: the central guarantee is sharper then.
    """

    name: ClassVar[str]
    alternating: ClassVar[bool] = False
    nothing: ClassVar[int] = NOTHING
    _fewest: ClassVar[int] = 2

    # What is counted, one entry an estimate: the K >= 2 values of the domain. A value's code is
    # its place.
    labels: tuple[Hashable, ...]
    fingerprint: str = field(init=False, repr=False, compare=False)
    _numbers: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = _numbered(self.labels, fewest=self._fewest)
        labels = tuple(numbers)
        stated = "/".join([self.name, *(f"{type(each).__name__}={each!r}" for each in labels)])
        digest = hashlib.sha256(f"shuffledp monitoring encoding/{stated}".encode()).hexdigest()
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "fingerprint", digest[:_ENCODING_DIGITS])
        object.__setattr__(self, "_numbers", numbers)

    @property
    def num_columns(self) -> int:
        """Number of columns, C >= 1."""
        return len(self.labels)

    @property
    def domain_size(self) -> int:
        """Number of estimates, the length of ``labels``."""
        return len(self.labels)

    @property
    def largest_code(self) -> int:
        """Codes lie in [-1, largest_code]."""
        return len(self.labels) - 1

    @property
    def variance_factor(self) -> float:
        """Variance of an estimate over that of a count of one bit from as many reports."""
        return float(self.num_columns)

    @property
    def changing_share(self) -> float:
        """At most this share of the columns shows a change of the value; in (0, 1], rounded up."""
        return 1.0

    def code(self, value: Any) -> int:
        """Return the code of a value as a user states it; ``None`` is nothing."""
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
        """Return unbiased estimates of counts from sums of signs a column, scaled by L / gap."""
        return self._per_column(sums, "sums") * self.num_columns

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return what multiplies (L / gap)^2 in each variance, from numbers of reports a column.

        An upper bound given the columns: a report of +1 or -1 has variance at most 1, and different
        users' reports are independent.
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
    """A state is 0 or 1, and nothing is 0: one column, the state itself (arXiv:1811.12469v2)."""

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

    A column is met by one report in K: its scaled sum estimates 1/K of the count, with K times the
    variance of a count of one bit.
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

    It has C columns, the least power of two above K, and H = (-1)^(number of ones of row & column);
    a value's row is its code + 1. The average over columns of H[w + 1, column] B(column, v) is 1/2
    if v = w and 0 otherwise, for rows are orthogonal and row 0 is no value's. So 2 sum over columns
    of H[w + 1, column] S[column] estimates count w, with 4 times the variance of a count of one
    bit, whatever K. Columns of Acharya, Sun, Zhang, "Hadamard response", AISTATS 2019
    (arXiv:1802.04705); tracking their bits over time is ours.
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
        return 2 * transformed[..., 1 : self.domain_size + 1]

    def decode_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return 4 times the number of all reports, for each value. See `Encoding`."""
        total = self._per_column(counts, "counts").sum(axis=-1, keepdims=True)
        return np.repeat(4 * total, self.domain_size, axis=-1)


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


_FINGERPRINT_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorDesign:
    """Periods, changes, privacy and encoding of a longitudinal collection.

    Parameters
    ----------
    periods : int
        d, at least 1: fixed when the collection starts.
    max_changes : int
        k, in [1, periods]: changes of a user's value that are followed. The first value counts
        as a change unless it is the value that stands for nothing (0 for booleans).
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports. The attribute of the
        same name is the loss of the law that is drawn, rounded up, which is at most that.
    protocol : str
        Law of the signs, one of ``SIGN_LAWS``.
    encoding : Encoding, optional
        How a value becomes bits; booleans where none is given.

    Attributes
    ----------
    tree : PeriodTree
        The dyadic tree over the periods.
    law : SignLaw
        The law of the signs.

    Raises
    ------
    ParameterError
        If a number is out of range, or so small an ``epsilon0`` that reports would say nothing.

    Examples
    --------
    >>> design = MonitorDesign(periods=8, max_changes=1, epsilon0=1.0986122886681098)  # ln 3
    >>> round(design.scale, 9)  # 4 levels, a sign is right with probability 3/4
    8.0
    """

    periods: int
    max_changes: int
    epsilon0: float
    protocol: str = "predrawn-signs"
    encoding: Encoding = None  # type: ignore[assignment]  # never None once made
    tree: PeriodTree = field(init=False, repr=False, compare=False)
    law: SignLaw = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        tree = PeriodTree(periods=self.periods)
        law = sign_law(self.protocol, max_changes=self.max_changes, epsilon0=self.epsilon0)
        if law.max_changes > tree.periods:
            raise ParameterError(
                f"max_changes = {law.max_changes} is above periods = {tree.periods}: a value "
                f"changes at most once a period; give max_changes = {tree.periods} or less"
            )
        if not law.gap > 0.0:
            raise ParameterError(
                f"epsilon0 = {self.epsilon0} lets reports say nothing about the values: give a "
                "larger one, for example 1"
            )
        set_field("periods", tree.periods)
        set_field("max_changes", law.max_changes)
        set_field("epsilon0", law.epsilon0)
        set_field("tree", tree)
        set_field("law", law)
        if cast("Encoding | None", self.encoding) is None:
            set_field("encoding", BooleanEncoding())

    @property
    def num_levels(self) -> int:
        """Levels of the tree, L, of which a client draws one."""
        return self.tree.num_levels

    @property
    def scale(self) -> float:
        """L / gap: a node's sum of signs times this is unbiased for the sum of the increments.

        Rounded to the nearest float.
        """
        return self.tree.num_levels / self.law.gap

    @property
    def profile(self) -> MonitoringProfile:
        """What the accountant needs."""
        return self.law.profile(
            num_levels=self.tree.num_levels, alternating=self.encoding.alternating
        )

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that name all that client and server must agree on.

        Returns
        -------
        str
            A prefix of SHA-256 of periods, exact law of the signs, and encoding, the labels of its
            values included: who numbers them otherwise would count wrong changes.
        """
        stated = (
            f"shuffledp monitoring/{self.tree.periods}/{self.law.identity}"
            f"/{self.encoding.fingerprint}"
        )
        return hashlib.sha256(stated.encode()).hexdigest()[:_FINGERPRINT_DIGITS]
