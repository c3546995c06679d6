"""``ClientFleet``: all clients of a simulated collection at once, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy, derived_key
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.reports import read_only
from shuffledp.monitoring.client import MonitorReports
from shuffledp.monitoring.design import MonitorDesign, require_codes
from shuffledp.monitoring.signs import draw_below

_COUNTERS: Final = ("num_changes", "num_increments", "num_ignored")
_CODES: Final = ("told", "value", "before", "after")


@dataclass(slots=True, kw_only=True, eq=False)
class FleetState:
    """Mutable arrays; a slot is a client's place, and the slots of a level are neighbours.

    ``slots`` has the slot of each user; all that follows ``level_sizes`` is by slot, as in
    `ClientState`. With pre-drawn signs ``after`` is the same array as ``value``.
    """

    design: MonitorDesign  # The collection
    slots: NDArray[np.int32]  # shape (n,); The slot of each user
    level_sizes: NDArray[np.int64]  # shape (num_levels,); How many clients report at each level
    keys: NDArray[np.uint64]  # shape (n,); By slot, like all that follow; see `ClientState`
    num_changes: NDArray[np.int32]  # shape (n,); Counters
    num_increments: NDArray[np.int32]  # shape (n,); Counters
    num_ignored: NDArray[np.int32]  # shape (n,); Counters
    # Shape (n,); Codes of values. With pre-drawn signs, ``after`` is the same array as
    # ``value``.
    told: NDArray[Any]
    # Shape (n,); Codes of values. With pre-drawn signs, ``after`` is the same array as
    # ``value``.
    value: NDArray[Any]
    # Shape (n,); Codes of values. With pre-drawn signs, ``after`` is the same array as
    # ``value``.
    before: NDArray[Any]
    # Shape (n,); Codes of values. With pre-drawn signs, ``after`` is the same array as
    # ``value``.
    after: NDArray[Any]
    ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.ends = np.cumsum(self.level_sizes).tolist()
        if self.design.law.kind == "predrawn":
            self.after = self.value

    @classmethod
    def fresh(
        cls, design: MonitorDesign, levels: NDArray[np.uint64], keys: NDArray[np.uint64]
    ) -> Self:
        """Return the state of clients that have been told nothing yet."""
        num_users = levels.size
        order = np.argsort(levels, kind="stable")
        codes = np.full(num_users, design.encoding.nothing, dtype=_code_type(design))
        return cls(
            design=design,
            slots=_inverse(order),
            level_sizes=np.bincount(levels.astype(np.int64) - 1, minlength=design.num_levels),
            keys=keys[order],
            **{name: np.zeros(num_users, dtype=np.int32) for name in _COUNTERS},
            **{name: codes.copy() for name in _CODES},
        )

    @property
    def num_users(self) -> int:
        """Number of users."""
        return int(self.slots.size)

    def slots_of_level(self, level: int) -> slice:
        """Return the slots of the clients that report at a level."""
        return slice(self.ends[level - 2] if level > 1 else 0, self.ends[level - 1])

    def levels(self) -> NDArray[np.uint8]:
        """Return the level of each user."""
        sorted_levels = np.arange(1, self.level_sizes.size + 1, dtype=np.uint8)
        by_user: NDArray[np.uint8] = np.repeat(sorted_levels, self.level_sizes)[self.slots]
        return by_user

    def joined_by(self, other: "FleetState") -> "FleetState":
        """Return the state of these users and, after them, those of another of the same design."""
        levels = np.concatenate([self.levels(), other.levels()])
        order = np.argsort(levels, kind="stable")
        by_user = {
            name: np.concatenate([getattr(part, name)[part.slots] for part in (self, other)])
            for name in ("keys", *_COUNTERS, *_CODES)
        }
        return FleetState(
            design=self.design,
            slots=_inverse(order),
            level_sizes=self.level_sizes + other.level_sizes,
            **{name: array[order] for name, array in by_user.items()},
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays, and the name of the design."""
        names = ["slots", "level_sizes", "keys", *_COUNTERS, *_code_names(self.design)]
        arrays = {name: np.copy(getattr(self, name)) for name in names}
        return {"design": _digest(self.design), **arrays}

    @classmethod
    def from_arrays(cls, design: MonitorDesign, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the state that `to_arrays` wrote, from copies of the arrays."""
        digest = required(arrays, "design")
        if not np.array_equal(digest, _digest(design)):
            raise FingerprintError(
                "arrays are the state of a fleet of another design: give the periods, "
                "max_changes, epsilon0, protocol and encoding that the fleet began with"
            )
        num_users = required(arrays, "slots").size
        kept: dict[str, NDArray[Any]] = {}
        for name, (dtype, low, high) in _layout(design, num_users).items():
            array = required(arrays, name)
            size = design.num_levels if name == "level_sizes" else num_users
            if array.dtype != dtype or array.shape != (size,):
                raise DataError(
                    f"arrays[{name!r}] has dtype {array.dtype} and shape {array.shape}, not "
                    f"{dtype} and {(size,)}: it is damaged; restore an earlier copy"
                )
            if size and not low <= int(array.min()) <= int(array.max()) <= high:
                raise DataError(
                    f"arrays[{name!r}] is not within [{low}, {high}]: it is damaged; restore an "
                    "earlier copy"
                )
            kept[name] = array.copy()
        _require_places(kept["slots"], kept["level_sizes"])
        kept.setdefault("after", kept["value"])
        return cls(design=design, **kept)


def required(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return an array of that name, or raise `DataError`."""
    if name not in arrays:
        raise DataError(
            f"arrays has no {name!r}: give all that state_arrays() returned, or restore an earlier "
            "copy"
        )
    return np.asarray(arrays[name])


def _code_names(design: MonitorDesign) -> tuple[str, ...]:
    """Return which arrays of codes there are: ``after`` only where it is not ``value``."""
    return _CODES[:-1] if design.law.kind == "predrawn" else _CODES


def _code_type(design: MonitorDesign) -> np.dtype[Any]:
    """Return the narrowest signed type that holds -1 and all codes."""
    return np.min_scalar_type(-design.encoding.largest_code - 1)


def _layout(design: MonitorDesign, num_users: int) -> dict[str, tuple[np.dtype[Any], int, int]]:
    """Return type, least and largest value of each array."""
    is_predrawn = design.law.kind == "predrawn"
    k, int32 = design.max_changes, np.dtype(np.int32)
    code = (_code_type(design), design.encoding.nothing, design.encoding.largest_code)
    return {
        "slots": (int32, 0, num_users - 1),
        "level_sizes": (np.dtype(np.int64), 0, num_users),
        "keys": (np.dtype(np.uint64), int(not is_predrawn), 2**k - 1 if is_predrawn else k),
        "num_changes": (int32, 0, k),
        "num_increments": (int32, 0, k),
        "num_ignored": (int32, 0, design.periods),
        **dict.fromkeys(_code_names(design), code),
    }


def _require_places(slots: NDArray[np.int32], level_sizes: NDArray[np.int64]) -> None:
    """Raise unless every slot has one user, and the levels have all slots."""
    once = np.zeros(slots.size, dtype=np.bool_)
    once[slots] = True
    if not once.all() or int(level_sizes.sum()) != slots.size:
        raise DataError(
            "arrays['slots'] and arrays['level_sizes'] do not give each user a place: they are "
            "damaged; restore an earlier copy"
        )


def _inverse(order: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return where each user is in an order."""
    slots = np.empty(order.size, dtype=np.int32)
    slots[order] = np.arange(order.size, dtype=np.int32)
    return slots


def _digest(design: MonitorDesign) -> NDArray[np.uint8]:
    """Return the fingerprint of a design as an array of its 8 bytes."""
    return np.frombuffer(bytes.fromhex(design.fingerprint()), dtype=np.uint8)


_WORD_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeriodSums:
    """What the clients of a fleet report in one period, summed."""

    period: int  # When the reports fall due
    levels: range  # The levels with a node that ends then: 1 up to some level
    # Shape (len(levels); Sum of the signs, and number of the reports, for each level and
    # column. Read-only.
    sums: NDArray[np.int64]
    # Shape (len(levels); Sum of the signs, and number of the reports, for each level and
    # column. Read-only.
    counts: NDArray[np.int64]
    # The reports, if asked for: level by level, and within a level always in the same order of
    # clients, so that they can be linked over time until they are shuffled.
    reports: MonitorReports | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", read_only(self.sums))
        object.__setattr__(self, "counts", read_only(self.counts))


def coin_signs(stream: Entropy, size: int) -> NDArray[np.int8]:
    """Return independent uniform signs: bit i mod 64 of word i div 64, 1 for +1."""
    words = stream.words(-(-size // _WORD_BITS)).astype("<u8", copy=False)
    bits = np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
    signs = bits.view(np.int8)
    signs *= 2
    signs -= 1
    return signs


def sums_and_counts(
    signs: NDArray[np.int8], columns: NDArray[np.int64] | None, num_columns: int
) -> NDArray[np.int64]:
    """Return sum of the signs and number of reports for each column, shape (2, num_columns)."""
    if columns is None:
        return np.array([[signs.sum(dtype=np.int64)], [signs.size]], dtype=np.int64)
    cells = 2 * columns + (signs > 0)
    minus, plus = np.bincount(cells, minlength=2 * num_columns).reshape(num_columns, 2).T
    return np.stack((plus - minus, plus + minus))


def as_reports(
    level: int, period: int, signs: NDArray[np.int8], columns: NDArray[np.int64] | None
) -> MonitorReports:
    """Return the reports of one level."""
    size = signs.size
    return MonitorReports(
        levels=np.full(size, level, dtype=np.uint8),
        periods=np.full(size, period, dtype=np.int64),
        signs=signs,
        columns=np.zeros(size, dtype=np.int64) if columns is None else columns,
    )


def concatenated(parts: list[MonitorReports]) -> MonitorReports:
    """Return reports of several levels, level by level."""
    names = ("levels", "periods", "signs", "columns")
    return MonitorReports(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    )


_LARGEST = 2**31 - 1  # counters and slots are int32


class ClientFleet:
    """Simulated clients, with the law and the semantics of `MonitorClient` each.

    Every report is drawn for itself, from its own bits of the keystream.

    Parameters
    ----------
    design : MonitorDesign
        The collection; at most 2^31 - 1 periods.
    num_users : int
        n, in [1, 2^31 - 1]. Users are numbered from 0.
    entropy : Entropy, optional
        Source of the fleet's key; the operating system's generator where none is given. What is
        drawn in a period depends on the key and the period only, so that a fleet restored by
        `from_state_arrays` goes on as if it had not been interrupted, and repeats the reports of
        periods that it is told again.

    Raises
    ------
    ParameterError
        If there are too few or too many users or periods.

    Notes
    -----
    Cost: 27 bytes a user for booleans; 2 ns a report for booleans and some 8 ns for other
    encodings, where a user makes about 2 d / (log2 d + 1) reports in d periods; 0.15 microseconds
    a change. NumPy does it all: nearly every report is a coin, drawn 64 at a time, and only clients
    whose node holds a change are looked at.

    Examples
    --------
    >>> design = MonitorDesign(periods=4, max_changes=2, epsilon0=1.0)
    >>> fleet = ClientFleet(design, 1000, Entropy.from_seed(1))
    >>> sums = fleet.update(1, users=[0, 5], values=[1, 1])
    >>> list(sums.levels), int(sums.counts.sum()) < 1000
    ([1], True)
    >>> list(fleet.update(2, users=[], values=[]).levels)
    [1, 2]
    """

    __slots__ = ("_design", "_is_interrupted", "_key", "_next_period", "_num_groups", "_state")

    def __init__(
        self, design: MonitorDesign, num_users: SupportsIndex, entropy: Entropy | None = None
    ) -> None:
        source = Entropy.from_operating_system() if entropy is None else entropy
        self._begin(design, source.words(KEY_BYTES // WORD_BYTES).tobytes())
        self._state = self._new_group(_at_most("num_users", num_users))

    def _begin(self, design: MonitorDesign, key: bytes) -> None:
        """Set all but the clients."""
        _at_most("periods", design.periods)
        self._design = design
        self._key = key
        self._next_period = 1
        self._num_groups = 0
        self._is_interrupted = False

    def _stream(self, label: bytes, number: int) -> Entropy:
        """Return the stream of a group of users that join, or of the reports of a period."""
        return Entropy.from_key(derived_key(self._key, label, number))

    def _new_group(self, num_users: int) -> FleetState:
        """Return new clients: h* and kappa*, or signs, drawn once each."""
        stream = self._stream(b"group", self._num_groups)
        self._num_groups += 1
        levels = draw_below(stream, num_users, self._design.num_levels) + np.uint64(1)
        keys = self._design.law.draw_keys(stream, num_users)
        return FleetState.fresh(self._design, levels, keys)

    @property
    def design(self) -> MonitorDesign:
        """The collection."""
        return self._design

    @property
    def num_users(self) -> int:
        """Number of users."""
        return self._state.num_users

    @property
    def next_period(self) -> int:
        """The period that `update` takes next, in [1, d + 1]."""
        return self._next_period

    @property
    def ignored_changes(self) -> NDArray[np.int32]:
        """For each user, how many changes were told that were not followed."""
        ignored: NDArray[np.int32] = self._state.num_ignored[self._state.slots]
        return ignored

    @property
    def levels(self) -> NDArray[np.uint8]:
        """The level of each user, known to nobody but the user and whoever gets his reports."""
        return self._state.levels()

    def join(self, num_users: SupportsIndex) -> range:
        """Add users who join late, from the next period on.

        Parameters
        ----------
        num_users : int
            How many, at least 1.

        Returns
        -------
        range
            Their numbers. As for a late `MonitorClient`: they have had no value so far, and hand
            out reports for nodes that end from now on.

        Raises
        ------
        ParameterError
            If the fleet gets too large.
        """
        self._require_whole()
        first = self.num_users
        count = require_at_least("num_users", num_users, 1)
        _at_most("num_users", first + count)
        self._is_interrupted = True
        self._state = self._state.joined_by(self._new_group(count))
        self._is_interrupted = False
        return range(first, first + count)

    def update(
        self,
        period: SupportsIndex,
        users: ArrayLike,
        values: ArrayLike,
        *,
        keep_reports: bool = False,
    ) -> PeriodSums:
        """Tell the values of a period, and return what is reported in it.

        Parameters
        ----------
        period : int
            The next one: 1 at first.
        users : array-like of int, shape (m,)
            Whose value changes in this period, each at most once; telling a value again that has
            not changed does no harm. All others keep theirs.
        values : array-like of int, shape (m,)
            Codes of their new values; see `Encoding.code`. -1: none.
        keep_reports : bool
            Whether to return the reports themselves too, 18 bytes each.

        Returns
        -------
        PeriodSums

        Raises
        ------
        ParameterError
            If it is not the next period, the arrays do not fit together, or a user comes twice.
        DomainError
            If there is no such user or value. The state is as before, as for all errors above.
        DataError
            If an earlier call was interrupted half-way: restore the fleet.
        """
        self._require_whole()
        period = self._require_next(period)
        codes = require_codes(_integers(values), self._design.encoding)
        slots = self._state.slots[self._require_users(users, codes.size)]
        self._is_interrupted = True
        self._follow(slots, codes)
        sums = self._report(period, keep_reports)
        self._next_period = period + 1
        self._is_interrupted = False
        return sums

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that the fleet must not forget, as copies of plain arrays. Secret.

        Raises
        ------
        DataError
            If a call was interrupted half-way.
        """
        self._require_whole()
        return {
            "next_period": np.array(self._next_period, dtype=np.int64),
            "num_groups": np.array(self._num_groups, dtype=np.int64),
            "key": np.frombuffer(self._key, dtype=np.uint8),
            **self._state.to_arrays(),
        }

    @classmethod
    def from_state_arrays(cls, design: MonitorDesign, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fleet that `state_arrays` described.

        Parameters
        ----------
        design : MonitorDesign
            The collection.
        arrays : mapping of ndarray
            As `state_arrays` returned them; they are copied.

        Raises
        ------
        DataError
            If an array is missing or damaged.
        FingerprintError
            If they are of another design.
        """
        fleet = cls.__new__(cls)
        fleet._begin(design, _key(arrays))
        fleet._state = FleetState.from_arrays(design, arrays)
        fleet._next_period = _counter(arrays, "next_period", 1, design.periods + 1)
        fleet._num_groups = _counter(arrays, "num_groups", 1, fleet.num_users)
        return fleet

    def _follow(self, slots: NDArray[np.int32], codes: NDArray[np.int64]) -> None:
        """Let clients follow, or ignore, their changes: `ClientState.after_telling` for many."""
        state = self._state
        is_new = codes != state.told[slots]
        slots, codes = slots[is_new], codes[is_new]
        state.told[slots] = codes
        is_back = codes == state.value[slots]  # to the value that is followed still
        slots, codes = slots[~is_back], codes[~is_back]
        is_followed = state.num_changes[slots] < self._design.max_changes
        state.num_ignored[slots[~is_followed]] += 1
        slots, codes = slots[is_followed], codes[is_followed]
        state.num_changes[slots] += 1  # kappa
        if self._design.law.kind == "sampled-change":
            is_sampled = state.num_changes[slots] == state.keys[slots]  # kappa = kappa*
            sampled = slots[is_sampled]
            state.before[sampled] = state.value[sampled]
            state.after[sampled] = codes[is_sampled]
        state.value[slots] = codes

    def _report(self, period: int, keep_reports: bool) -> PeriodSums:
        """Draw the reports of all clients whose nodes end."""
        levels = self._design.tree.levels_ending_at(period)
        stream = self._stream(b"period", period)
        num_columns = self._design.encoding.num_columns
        totals = np.zeros((2, len(levels), num_columns), dtype=np.int64)
        kept: list[MonitorReports] = []
        for row, level in enumerate(levels):
            signs, columns = self._draw_level(level, stream)
            totals[:, row] = sums_and_counts(signs, columns, num_columns)
            if keep_reports:
                kept.append(as_reports(level, period, signs, columns))
        return PeriodSums(
            period=period,
            levels=levels,
            sums=totals[0],
            counts=totals[1],
            reports=concatenated(kept) if keep_reports else None,
        )

    def _draw_level(
        self, level: int, stream: Entropy
    ) -> tuple[NDArray[np.int8], NDArray[np.int64] | None]:
        """Return signs and columns of a level's reports: `ClientState.after_node` for many."""
        state, encoding = self._state, self._design.encoding
        here = state.slots_of_level(level)
        before, after = state.before[here], state.after[here]
        signs = coin_signs(stream, before.size)
        columns = None
        if encoding.num_columns > 1:
            columns = draw_below(stream, before.size, encoding.num_columns).view(np.int64)
        changed = np.flatnonzero(before != after)
        asked = np.zeros(1, dtype=np.int64) if columns is None else columns[changed]
        increments = encoding.bits(asked, after[changed]) - encoding.bits(asked, before[changed])
        told = changed[increments != 0]
        increments = increments[increments != 0]
        is_opposite = self._opposite(here, told, stream)
        signs[told] = np.where(is_opposite, -increments, increments)
        state.num_increments[here][told] += 1
        state.before[here] = state.value[here]  # c <- 0
        state.after[here] = state.value[here]
        return signs, columns

    def _opposite(self, here: slice, told: NDArray[np.intp], stream: Entropy) -> NDArray[np.bool_]:
        """Return which increments are reported with the opposite sign."""
        state, law = self._state, self._design.law
        if law.kind == "sampled-change":
            return stream.words(told.size) < np.uint64(law.flip_threshold)
        used = state.num_increments[here][told].astype(np.uint64)
        minus: NDArray[np.bool_] = (state.keys[here][told] >> used & np.uint64(1)) == 1
        return minus

    def _require_whole(self) -> None:
        """Raise if a call was interrupted half-way."""
        if self._is_interrupted:
            raise DataError(
                f"the fleet was interrupted in period {self._next_period}, whose reports may or "
                "may not have been drawn: restore it with ClientFleet.from_state_arrays"
            )

    def _require_next(self, period: SupportsIndex) -> int:
        """Return a period if it is the next one, else raise."""
        number = require_at_least("period", period, 1)
        expected, end = self._next_period, self._design.periods
        if number > end:
            raise ParameterError(
                f"period = {number} is not in [1, {end}]: the collection ended with period {end}; "
                "set up a new one, with a budget of its own"
            )
        if number < expected:
            raise ParameterError(
                f"period = {number} is before {expected}, the next one: time goes forward; what "
                "was reported cannot be taken back"
            )
        if number > expected:
            raise ParameterError(
                f"period = {number} leaves out period {expected}: call "
                f"update({expected}, [], []) for a period in which no value changes"
            )
        return number

    def _require_users(self, users: ArrayLike, domain_size: int) -> NDArray[np.int64]:
        """Return users as an array without repetitions, else raise."""
        array = _integers(users)
        if array.ndim != 1 or array.dtype.kind not in "iu" or array.size != domain_size:
            raise ParameterError(
                f"users has shape {array.shape} and dtype {array.dtype}: give one whole number for "
                f"each of the {domain_size} values"
            )
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < self.num_users:
            place = int(np.argmax((array < 0) | (array >= self.num_users)))
            raise DomainError(
                f"users[{place}] = {array[place]} is not in [0, {self.num_users}): give numbers of "
                "users of this fleet; join() adds users"
            )
        if not (array[1:] > array[:-1]).all():
            ordered = np.sort(array)
            again = np.flatnonzero(ordered[1:] == ordered[:-1])
            if again.size:
                raise ParameterError(
                    f"users holds {ordered[again[0]]} twice: a user has one value a period, so "
                    "give the last one"
                )
        return array.astype(np.int64)


def _at_most(name: str, value: SupportsIndex) -> int:
    """Return a number in [1, 2^31 - 1], else raise `ParameterError`."""
    number = require_at_least(name, value, 1)
    if number > _LARGEST:
        raise ParameterError(
            f"{name} = {number} is above 2^31 - 1: simulate fewer, or several fleets one by one"
        )
    return number


def _integers(array: ArrayLike) -> NDArray[Any]:
    """Return an array; one that is empty holds integers, whatever NumPy takes it for."""
    found = np.asarray(array)
    return found.astype(np.int64) if found.size == 0 else found


def _key(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the key from the arrays of a state, else raise `DataError`."""
    array = required(arrays, "key")
    if array.dtype != np.uint8 or array.shape != (KEY_BYTES,):
        raise DataError(
            f"arrays['key'] has dtype {array.dtype} and shape {array.shape}, not uint8 and "
            f"{(KEY_BYTES,)}: it is damaged; restore an earlier copy"
        )
    return array.tobytes()


def _counter(arrays: Mapping[str, NDArray[Any]], name: str, low: int, high: int) -> int:
    """Return a whole number from the arrays of a state, else raise `DataError`."""
    array = required(arrays, name)
    if array.dtype.kind not in "iu" or array.ndim != 0 or not low <= int(array) <= high:
        raise DataError(
            f"arrays[{name!r}] is not a whole number in [{low}, {high}]: it is damaged; restore an "
            "earlier copy"
        )
    return int(array)
