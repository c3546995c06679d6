"""A user's device, which reports on a changing value for months.

A ``MonitorClient`` is a `ClientFleet` of one, whose arrays are the state and the draws of clients.
A report is a sign about an increment of the value that is followed. Algorithm 1 of Erlingsson et
al., arXiv:1811.12469v2, for the sampled change, with the probability of keeping a sign accounted
exactly; pre-drawn signs are ours.

``MemoisedReports`` hold one report for each value, which a device sends in all periods: for a
question that is asked again every period with a shuffler's dummies. The releases compose as
releases of the reports themselves, and an adversary who sees all reports of a user sees one draw a
value, not one a period. See docs/results/dummies.md.
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.display import value_note
from shuffledp.core.entropy import KEY_BYTES, WORD_BYTES, Entropy, derived_key, draw_below
from shuffledp.core.errors import (
    DataError,
    FingerprintError,
    ParameterError,
    ShuffledpError,
    telling,
)
from shuffledp.core.files import hidden_beside, sync_folder, write_new
from shuffledp.core.reports import Reports
from shuffledp.monitoring.design import NOTHING, MonitorDesign, SampledChange
from shuffledp.randomizers.base import CategoryRandomizer

_WORD_BITS = 64


@dataclass(slots=True, kw_only=True, eq=False)
class ClientFleet:
    """Clients of one design; a slot is a client's place, and the slots of a level are contiguous.

    Draws of a period depend on the key and the period only, so that clients who are given the same
    values again repeat their reports, bit for bit. Nearly every report is a coin, drawn 64 at a
    time; only clients whose node holds a change are examined. 27 bytes a user for booleans.
    """

    design: MonitorDesign
    key: bytes  # 32 bytes: any party that has it can undo the randomization of the reports
    slots: NDArray[np.int32]  # shape (n,): the slot of each user; all further arrays are by slot
    ends: list[int]  # for each level: the slot after its last
    # Sampled change: kappa*, the number of the change that counts. Pre-drawn signs: bit j - 1 is
    # set if the j-th increment that is not 0 is reported with the opposite sign.
    keys: NDArray[np.uint64]
    num_changes: NDArray[np.int32]  # kappa, the changes followed so far, at most ``max_changes``
    num_increments: NDArray[np.int32]  # number of reported increments that are not 0
    num_ignored: NDArray[np.int32]  # changes given beyond ``max_changes``, which were not followed
    told: NDArray[Any]  # codes given last
    value: NDArray[Any]  # codes followed: ``told`` unless changes have been ignored
    # Contents of the node in progress: its report is on B(column, after) - B(column, before).
    # Pre-drawn signs: the values before the node's start and now, the same array as ``value``.
    # Sampled change: the values before and after change number kappa* if it happened in this node,
    # otherwise two equal ones (c = 0).
    before: NDArray[Any]
    after: NDArray[Any]

    @classmethod
    def made(
        cls,
        design: MonitorDesign,
        key: bytes,
        levels: NDArray[Any],
        keys: NDArray[np.uint64],
        *,
        counters: NDArray[np.int32],
        codes: NDArray[Any],
    ) -> Self:
        """Return clients who report at these levels; rows of counters and codes in their order."""
        order = np.argsort(levels, kind="stable")
        slots = np.empty(order.size, dtype=np.int32)
        slots[order] = np.arange(order.size, dtype=np.int32)
        sizes = np.bincount(levels.astype(np.int64), minlength=design.num_levels + 1)[1:]
        return cls(
            design=design,
            key=key,
            slots=slots,
            ends=np.cumsum(sizes).tolist(),
            keys=keys[order],
            num_changes=counters[0],
            num_increments=counters[1],
            num_ignored=counters[2],
            told=codes[0],
            value=codes[1],
            before=codes[2],
            after=codes[3] if isinstance(design.law, SampledChange) else codes[1],
        )

    @classmethod
    def drawn(cls, design: MonitorDesign, num_users: int, key: bytes) -> Self:
        """Return new clients without a value: h* and keys are drawn once each."""
        stream = Entropy.from_key(derived_key(key, b"group", 0))
        levels = draw_below(stream, num_users, design.num_levels) + np.uint64(1)
        keys = design.law.draw_keys(stream, num_users)
        counters = np.zeros((3, num_users), dtype=np.int32)
        codes = np.full((4, num_users), NOTHING, dtype=code_type(design))
        return cls.made(design, key, levels, keys, counters=counters, codes=codes)

    def follow(self, users: NDArray[np.integer[Any]], codes: NDArray[np.integer[Any]]) -> None:
        """Set the new values of different users, before `draw_level` of that period."""
        slots = self.slots[users]
        is_new = codes != self.told[slots]
        slots, codes = slots[is_new], codes[is_new]
        self.told[slots] = codes
        is_back = codes == self.value[slots]  # back to the value that is still followed
        slots, codes = slots[~is_back], codes[~is_back]
        is_followed = self.num_changes[slots] < self.design.max_changes
        self.num_ignored[slots[~is_followed]] += 1
        slots, codes = slots[is_followed], codes[is_followed]
        self.num_changes[slots] += 1  # kappa
        if isinstance(self.design.law, SampledChange):
            is_sampled = self.num_changes[slots] == self.keys[slots]  # kappa = kappa*
            sampled = slots[is_sampled]
            self.before[sampled] = self.value[sampled]
            self.after[sampled] = codes[is_sampled]
        self.value[slots] = codes

    def period_sums(self, period: int) -> NDArray[np.int64]:
        """Return sums of the signs reported in a period, for each level that ends, and column."""
        stream, sums = self.stream(period), list[Any]()
        for level in self.design.tree.levels_ending_at(period):
            signs, columns = self.draw_level(level, stream)
            if columns is None:
                sums.append([signs.sum(dtype=np.int64)])
            else:
                size = 2 * self.design.encoding.num_columns
                cells = np.bincount(2 * columns + (signs > 0), minlength=size)
                sums.append(cells[1::2] - cells[::2])
        return np.array(sums, dtype=np.int64)

    def stream(self, period: int) -> Entropy:
        """Return the coins of a period."""
        return Entropy.from_key(derived_key(self.key, b"period", period))

    def draw_level(
        self, level: int, stream: Entropy
    ) -> tuple[NDArray[np.int8], NDArray[np.int64] | None]:
        """Return signs and columns (None: one) of the reports at a level's nodes that end now."""
        here = slice(self.ends[level - 2] if level > 1 else 0, self.ends[level - 1])
        encoding = self.design.encoding
        before, after = self.before[here], self.after[here]
        signs = coin_signs(stream, before.size)
        columns = None
        if encoding.num_columns > 1:
            columns = draw_below(stream, before.size, encoding.num_columns).view(np.int64)
        changed = np.flatnonzero(before != after)
        asked = np.zeros(1, dtype=np.int64) if columns is None else columns[changed]
        increments = encoding.bits(asked, after[changed]) - encoding.bits(asked, before[changed])
        told, increments = changed[increments != 0], increments[increments != 0]
        law = self.design.law
        if isinstance(law, SampledChange):
            is_opposite = stream.words(told.size) < np.uint64(law.flip_threshold)
        else:
            used = self.num_increments[here][told].astype(np.uint64)
            is_opposite = (self.keys[here][told] >> used & np.uint64(1)) == 1
        signs[told] = np.where(is_opposite, -increments, increments)
        self.num_increments[here][told] += 1
        self.before[here] = self.after[here] = self.value[here]  # c <- 0
        return signs, columns


def code_type(design: MonitorDesign) -> np.dtype[Any]:
    """Return the narrowest signed type that holds -1 and all codes."""
    return np.min_scalar_type(-design.encoding.domain_size)


def coin_signs(stream: Entropy, size: int) -> NDArray[np.int8]:
    """Return independent uniform signs: bit i mod 64 of word i div 64, 1 for +1."""
    words = stream.words(-(-size // _WORD_BITS)).astype("<u8", copy=False)
    bits = np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
    signs = bits.view(np.int8)
    signs *= 2
    signs -= 1
    return signs


class MonitorReport(NamedTuple):
    """One report of one client; or several, whose fields are arrays of whole numbers.

    It names no user. Reports of one client are linked by nothing but its fields: make sure that the
    transport adds nothing, and shuffle the reports of each period and level.

    Parameters
    ----------
    level : int
        Level h of the node, from 1.
    period : int
        Last period of the node, when the report falls due.
    sign : int
        -1 or +1.
    column : int
        Column of the encoding that the client tracked during the node; 0 for booleans.
    """

    level: Any
    period: Any
    sign: Any
    column: Any = 0


def require_reports(
    design: MonitorDesign, reports: MonitorReport | Iterable[MonitorReport]
) -> MonitorReport:
    """Return the reports as arrays if a client of this design can have made each; else raise."""
    tree, agree = design.tree, "check that client and server have the same design"
    fields = _arrays_of(reports)
    ranges = (
        (1, tree.num_levels),
        (1, tree.periods),
        (-1, 1),
        (0, design.encoding.num_columns - 1),
    )
    for (name, values), (low, high) in zip(fields._asdict().items(), ranges, strict=True):
        wrong = (values < low) | (values > high)
        _refuse_first(wrong, name, values, f"this design has {name}s {low} to {high}", agree)
    _refuse_first(fields.sign == 0, "sign", fields.sign, "a sign is -1 or +1", "drop it")
    # NumPy does not shift or index by uint64 together with int64.
    whole = (each.astype(np.int64) if each.dtype == np.uint64 else each for each in fields)
    fields = MonitorReport(*whole)
    # Shifted as int64, for uint8 would overflow.
    rest = (np.int64(1) << (fields.level.astype(np.int64) - 1)) - 1
    wrong, ends = (fields.period & rest) != 0, "no node of its level ends there"
    _refuse_first(wrong, "period", fields.period, ends, agree)
    return fields


def _arrays_of(reports: MonitorReport | Iterable[MonitorReport]) -> MonitorReport:
    """Return the fields of reports as arrays of whole numbers, one report an index."""
    try:
        given: Any = reports
        if not isinstance(reports, MonitorReport):
            given = [*zip(*reports, strict=True)] or np.empty((4, 0), dtype=np.int64)
        fields = MonitorReport(*np.broadcast_arrays(*map(np.atleast_1d, given)))
        is_whole = all(each.dtype.kind in "iu" and each.ndim == 1 for each in fields)
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise DataError(
            "reports has an entry that is not (level, period, sign, column) in whole numbers: drop "
            "what is no MonitorReport"
        )
    return fields


def _refuse_first(
    wrong: NDArray[np.bool_], name: str, values: NDArray[Any], why: str, way_out: str
) -> None:
    """Raise for the first wrong report, if there is one."""
    if wrong.any():
        position = int(np.argmax(wrong))
        raise DataError(
            f"report {position} has {name} = {values[position]}: {why}, so no client of it made "
            f"this report; {way_out}"
        )


_MAGIC: Final = b"SMC"
_VERSION: Final = 3
_CHECKSUM_BYTES: Final = 8

# Codes of few values fit a byte; all others get a machine word.
_LARGEST_BYTE = 127


class ClientState(NamedTuple):
    """A key and a few integers: all that a client must keep. Secret. See `ClientFleet`."""

    coins: bytes  # the fleet's key
    level: int  # h*, the level whose nodes it reports, from 1
    key: int
    last_period: int  # the last period given; 0 before the first
    num_changes: int
    num_increments: int
    num_ignored: int
    told: int
    value: int
    before: int
    after: int

    def fleet(self, design: MonitorDesign) -> ClientFleet:
        """Return the fleet of this client alone."""
        levels, keys = np.array([self.level]), np.array([self.key], dtype=np.uint64)
        counters = np.array(self[4:7], dtype=np.int32)[:, None]
        codes = np.array(self[-4:], dtype=code_type(design))[:, None]
        return ClientFleet.made(design, self.coins, levels, keys, counters=counters, codes=codes)

    @classmethod
    def of(cls, fleet: ClientFleet, last_period: int) -> Self:
        """Return the state that a fleet's only client must keep."""
        level, key = fleet.ends.index(1) + 1, int(fleet.keys[0])
        numbers = (int(getattr(fleet, name)[0]) for name in cls._fields[4:])
        return cls(fleet.key, level, key, last_period, *numbers)

    def to_bytes(self, design: MonitorDesign) -> bytes:
        """Return the state as bytes: version, design, numbers, checksum."""
        header, numbers = _layout(design)
        body = header + numbers.pack(*self)
        return body + _checksum(body)

    @classmethod
    def from_bytes(cls, data: bytes, design: MonitorDesign) -> Self:
        """Return the state that `to_bytes` wrote."""
        header, numbers = _layout(design)
        if not data.startswith(_MAGIC) or len(data) <= len(_MAGIC):
            raise DataError(
                f"data ({len(data)} bytes) is no state of a monitoring client: give the bytes that "
                "MonitorClient.to_bytes() returned"
            )
        if data[len(_MAGIC)] != _VERSION:
            raise DataError(
                f"data is a client's state of version {data[len(_MAGIC)]}, and this program reads "
                f"version {_VERSION}: restore it with the version of shuffledp that saved it"
            )
        if len(data) >= len(header) and not data.startswith(header):
            raise FingerprintError(
                "data is the state of a client of another collection, or damaged: give the "
                "periods, max_changes, epsilon0, protocol and domain that the client began with"
            )
        size = len(header) + numbers.size + _CHECKSUM_BYTES
        if len(data) != size:
            raise DataError(
                f"data has {len(data)} bytes, and a client's state of this collection {size}: it "
                "was cut short or padded; restore an earlier copy"
            )
        body = data[:-_CHECKSUM_BYTES]
        if data[-_CHECKSUM_BYTES:] != _checksum(body):
            raise DataError("data is damaged, its checksum does not fit: restore an earlier copy")
        return cls(*numbers.unpack(body[len(header) :]))


def _layout(design: MonitorDesign) -> tuple[bytes, struct.Struct]:
    """Return version and design of a state, and the form of its numbers, lowest byte first."""
    code = "b" if design.encoding.domain_size <= _LARGEST_BYTE else "q"
    header = _MAGIC + bytes([_VERSION]) + bytes.fromhex(design.fingerprint())
    return header, struct.Struct(f"<{KEY_BYTES}sB5Q4{code}")


def _checksum(body: bytes) -> bytes:
    """Return a checksum against accidents; a party that can write the bytes can forge it."""
    return hashlib.sha256(b"shuffledp client state" + body).digest()[:_CHECKSUM_BYTES]


class MonitorClient:
    """One user's side of a longitudinal collection, with one privacy budget for all periods.

    Parameters
    ----------
    design : MonitorDesign
        The design that clients and server share.
    entropy : Entropy, optional
        Source of the level and of the keys, drawn once; by default the operating system's
        generator.

    Notes
    -----
    *Reports.* The client draws one level of the tree over the periods, once, and reports a sign
    at the end of each node of that level: every 1, 2, 4, 8, ... periods. Whether a report
    falls due depends on the level and the period only, never on the value.

    *Changes beyond max_changes* are not followed: the client goes on as if the value had not
    changed after change number ``max_changes``. The guarantee holds for any sequence of values;
    only the estimate suffers, which counts this user with the value followed. If the value
    comes back to the followed one, nothing is wrong any more. `ignored_changes` is the number of
    changes that were not followed; it is secret, and never reported.

    *Late joiners.* A client first used in period t > 1 counts as having had no value before (0
    for booleans). It returns no report for nodes that ended before t; the node in progress
    counts from no value. Estimates stay unbiased, for the omitted reports would have been about
    no change. But the level and period of a client's first report show that it joined late: the
    central guarantee must then assume that levels are not hidden.

    *Early leavers.* Give None (0 for booleans) from the period of leaving on, which is one change,
    and continue to the end: then leaving is like any other change. A client that merely stops
    sends no report for the nodes that are unfinished then. An estimate that uses such a node misses
    all increments of this user; the user's last value counts where the nodes used are finished
    ones, and less or not at all elsewhere. An adversary who counts reports sees at which levels
    users stopped: again the central guarantee must assume that levels are not hidden. The local
    guarantee holds either way.

    *Saving.* Save `to_bytes` after `update` and **before** the report is sent. A client restored
    from these bytes never returns a report for that period again; if the report was not sent
    before a crash, it is lost, which costs accuracy only. The coins of a report are a keyed
    function of its period, with a key that is drawn once and saved: a client restored from an
    older copy and given the same values repeats its earlier reports, bit for bit, so that no
    average over replays reveals more than one report. Given *other* values for periods on which
    it has reported, it would report on both with the same coins: do not.

    Cost: some 0.2 ms a report; the state has 97 bytes for booleans, at most 125.

    Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
    Shuffling", SODA 2019, arXiv:1811.12469v2, Algorithm 1, corrected and with other laws of the
    signs; see `MonitorDesign`.

    Examples
    --------
    >>> client = MonitorClient(MonitorDesign(periods=4, max_changes=1, epsilon0=1.0))
    >>> reports = [client.update(t, value=t >= 3) for t in (1, 2, 3, 4)]
    >>> all(report.level == client.level for report in reports if report is not None)
    True
    >>> client.update(4, True) is None  # told before: the report was handed out already
    True
    """

    __slots__ = ("_state", "design")

    def __init__(self, design: MonitorDesign, *, entropy: Entropy | None = None) -> None:
        self.design = design
        source = Entropy.from_operating_system() if entropy is None else entropy
        key = source.words(KEY_BYTES // WORD_BYTES).tobytes()
        self._state = ClientState.of(ClientFleet.drawn(self.design, 1, key), last_period=0)

    @classmethod
    def from_bytes(cls, data: bytes, design: MonitorDesign) -> Self:
        """Return the client that `to_bytes` saved.

        Parameters
        ----------
        data : bytes
            As `to_bytes` returned it.
        design : MonitorDesign
            The design of the client's collection.

        Raises
        ------
        DataError
            If the bytes are no state, of another version, cut short, or damaged.
        FingerprintError
            If they are of another design.
        """
        client = cls.__new__(cls)
        client.design = design
        client._state = ClientState.from_bytes(data, design)
        return client

    @property
    def level(self) -> int:
        """The level of the tree whose nodes this client reports; named in each report."""
        return self._state.level

    @property
    def last_period(self) -> int:
        """The last period given; 0 before the first."""
        return self._state.last_period

    @property
    def ignored_changes(self) -> int:
        """Number of changes given that were not followed; secret."""
        return self._state.num_ignored

    def to_bytes(self) -> bytes:
        """Return the state: versioned, with a checksum and the fingerprint of the design.

        Returns
        -------
        bytes
            Of one size for a design: 97 for booleans. Secret: it holds the value, and the keys that
            undo the randomization of past and future reports.
        """
        return self._state.to_bytes(self.design)

    def update(self, t: SupportsIndex, value: Any) -> MonitorReport | None:
        """Set the value of a period, and return the report that falls due.

        Parameters
        ----------
        t : int
            The period after the last one given; at first any in [1, d]. The last one again is
            allowed with the same value, and does nothing.
        value : object
            A value of the domain; True or False for booleans. None: no value.

        Returns
        -------
        MonitorReport or None
            None if no node of the client's level ends at t, or its report was returned before.

        Raises
        ------
        ParameterError
            If t is not a period, lies before the last one, leaves one out (use `advance`), or is
            the last one with another value. The state is as before.
        DomainError
            If the value is not in the domain. The state is as before.
        """
        period, last = require_at_least("t", t, 1), self.last_period
        if last and last + 1 < period <= self.design.periods:
            raise ParameterError(
                f"t = {period} leaves out the periods after {last}: call "
                f"advance({period}, value) to hold the last value through the gap, which also "
                "returns the reports that fell due in it"
            )
        reports = self.advance(period, value)
        return reports[0] if reports else None

    def advance(self, t: SupportsIndex, value: Any) -> tuple[MonitorReport, ...]:
        """Set the value of a period after a gap, and return all reports that fell due.

        Parameters
        ----------
        t : int
            In [1, d], not before the last period given. In the periods between, the value is
            assumed to be the one given last. For a client without a value yet this is `update`.
        value : object
            As for `update`.

        Returns
        -------
        tuple of MonitorReport
            In order of periods.

        Raises
        ------
        ParameterError, DomainError
            As `update` does, but not for a gap. The state is as before.
        """
        period, code = self._checked(t, value)
        level, last = self.level, self.last_period
        if period == last:
            return ()
        fleet, length = self._state.fleet(self.design), 1 << (level - 1)
        missed = range(last - last % length + length, period, length) if last else range(0)
        reports = [_only_report(fleet, level, each) for each in missed]
        fleet.follow(np.zeros(1, dtype=np.int64), np.array([code]))
        if period % length == 0:
            reports.append(_only_report(fleet, level, period))
        self._state = ClientState.of(fleet, period)
        return tuple(reports)

    def _checked(self, t: SupportsIndex, value: Any) -> tuple[int, int]:
        """Return a valid period, and the code of its value; raise otherwise."""
        period = require_at_least("t", t, 1)
        last, end = self._state.last_period, self.design.tree.periods
        if period > end:
            raise ParameterError(
                f"t = {period} is not in [1, {end}]: the collection ended with period {end}; set "
                "up a new one, with a budget of its own"
            )
        code = self.design.encoding.code(value)
        if period < last:
            raise ParameterError(
                f"t = {period} is before {last}, the last period told: time goes forward; tell "
                f"period {last + 1} next"
            )
        if period == last and code != self._state.told:
            raise ParameterError(
                f"t = {period} was told before with another value{value_note(value)}: what was "
                f"reported cannot be taken back; tell the new value as period {last + 1}"
            )
        return period, code

    def __repr__(self) -> str:
        # The state stays out, since logs have many readers.
        return f"MonitorClient({self.design!r}, last_period={self._state.last_period})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ParameterError(
            "a MonitorClient cannot be pickled or copied, for the copy could report on another "
            "value with the same coins: save to_bytes() where only the user can read it"
        )


def _only_report(fleet: ClientFleet, level: int, period: int) -> MonitorReport:
    """Return the report of the only client of a fleet at the end of a node of its level."""
    signs, columns = fleet.draw_level(level, fleet.stream(period))
    column = 0 if columns is None else int(columns[0])
    return MonitorReport(level=level, period=period, sign=int(signs[0]), column=column)


class MemoisedReports:
    """Reports of one user, drawn once for every possible value and kept in a file.

    Parameters
    ----------
    path : str or path-like
        State of this device for one question, secret; made if there is none. If it is removed, the
        next reports are new draws, which cost epsilon0 each once more.
    randomizer : CategoryRandomizer
        Law of the reports; a file of another law is refused.
    entropy : Entropy, optional
        Source of the draws, by default the operating system's generator.

    Raises
    ------
    DataError
        If the file is damaged: it is never replaced.
    FingerprintError
        If it is of another law.
    OutputError
        If it cannot be written, as where there is no such folder, or are no hard links.

    Notes
    -----
    All draws are on disk before the first report is returned, and nothing is written later, so
    that a device that is stopped at any moment goes on with the same reports or has sent none.
    Processes that start at once share the draws of the first.

    An adversary who links a user's reports learns *when* a report changed or came back, hence that
    the value did: epsilon0 for each distinct value is between histories in which the same periods
    share a value. Between others, such as a, b, a and a, b, c, there is no limit.

    Examples
    --------
    >>> import tempfile
    >>> from shuffledp.randomizers import KRandomizedResponse
    >>> law = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = MemoisedReports(f"{folder}/state", law).report(2)
    ...     again = MemoisedReports(f"{folder}/state", law).report(2)
    >>> bool(first.data[0] == again.data[0])
    True
    """

    __slots__ = ("_reports",)

    def __init__(
        self,
        path: str | os.PathLike[str],
        randomizer: CategoryRandomizer,
        *,
        entropy: Entropy | None = None,
    ) -> None:
        location = Path(path)
        if not location.exists():
            source = Entropy.from_operating_system() if entropy is None else entropy
            _write(location, randomizer.randomize(np.arange(randomizer.domain_size), source))
        self._reports = _read(location, randomizer)

    def report(self, code: SupportsIndex) -> Reports:
        """Return the report of a value, given as its position in the domain: always the same."""
        place = require_at_least("code", code, 0, self._reports.num_reports - 1)
        kept = self._reports
        return Reports(data=kept.data[place : place + 1], fingerprint=kept.fingerprint)


def _write(path: Path, reports: Reports) -> None:
    """Make the file of these reports, on disk on return, unless it exists by now."""
    partial = hidden_beside(path)
    with telling(f"write {path}"):
        try:
            write_new(partial, _text(reports).encode("ascii"), mode=0o600)
            with suppress(FileExistsError):  # another process was first: its draws count
                os.link(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        sync_folder(path.parent)


def _text(reports: Reports) -> str:
    """Return the text of a file; its checksum is against accidents, and anybody can forge it."""
    state = {"fingerprint": reports.fingerprint, "reports": reports.data.tolist()}
    digest = hashlib.sha256(json.dumps(state).encode("ascii")).hexdigest()
    return json.dumps(state | {"checksum": digest[:16]})


def _read(path: Path, randomizer: CategoryRandomizer) -> Reports:
    """Return the checked reports of a file."""
    empty = randomizer.randomize(np.arange(0), Entropy.from_seed(0)).data
    shape = randomizer.domain_size, *empty.shape[1:]
    try:
        state = json.loads(text := path.read_text(encoding="ascii"))
        data = np.array(state["reports"], dtype=empty.dtype).reshape(shape)
        reports = Reports(data=data, fingerprint=str(state["fingerprint"]))
        randomizer.aggregate(reports)
        is_whole = text == _text(reports)
    except FingerprintError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        ShuffledpError,
    ):
        is_whole = False
    if not is_whole:
        raise DataError(
            f"{path.name} is no state of memoised reports, or damaged: restore a copy, since new "
            "draws would cost epsilon0 once more"
        )
    return reports
