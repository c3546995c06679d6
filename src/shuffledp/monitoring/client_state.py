"""What a monitoring client remembers, how it changes, and its bytes; nothing random in here."""

import hashlib
import struct
from dataclasses import astuple, dataclass, replace
from typing import Final, Self

from shuffledp.core.entropy import KEY_BYTES
from shuffledp.core.errors import DataError, FingerprintError
from shuffledp.monitoring.design import MonitorDesign

_MAGIC: Final = b"SMC"
_VERSION: Final = 2
_CHECKSUM_BYTES: Final = 8

# A boolean state fits a byte; codes of other encodings get a machine word.
_LARGEST_BYTE = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientState:
    """A key and a few integers: all that a client must not forget. Secret.

    Parameters
    ----------
    coins : bytes
        32 bytes, drawn once: the key of the coins of each report, of which the period is the rest.
    level : int
        h*, the level whose nodes it reports, from 1.
    key : int
        Drawn once. Sampled change: kappa*, the number of the change that counts. Pre-drawn signs:
        bit j - 1 is set if the j-th increment that is not 0 is reported with the opposite sign.
    last_period : int
        The last period told; 0 before the first.
    num_changes : int
        kappa, the changes followed so far, at most ``max_changes``.
    num_increments : int
        How many increments that are not 0 have been reported.
    num_ignored : int
        Changes told beyond ``max_changes``, which were not followed.
    told : int
        Code of the value told last.
    value : int
        Code of the value followed: ``told`` unless changes have been ignored.
    before, after : int
        What the node in progress is about: its report is on B(column, after) - B(column, before).
        Pre-drawn signs: the values before the node's start and now. Sampled change: those before
        and after change number kappa* if it happened in this node, else two equal ones (c = 0).
    """

    coins: bytes
    level: int
    key: int
    last_period: int = 0
    num_changes: int = 0
    num_increments: int = 0
    num_ignored: int = 0
    told: int
    value: int
    before: int
    after: int

    @classmethod
    def fresh(cls, *, coins: bytes, level: int, key: int, nothing: int) -> Self:
        """Return the state of a client that has been told nothing yet."""
        codes = dict.fromkeys(("told", "value", "before", "after"), nothing)
        return cls(coins=coins, level=level, key=key, **codes)

    def after_telling(self, period: int, code: int, design: MonitorDesign) -> Self:
        """Return the state in a period in which the user's value has this code.

        Parameters
        ----------
        period : int
            After ``last_period``; that no node in between was missed is the caller's business.
        code : int
            Of the value told.
        design : MonitorDesign
            The collection.

        Returns
        -------
        ClientState
            With the change followed, or ignored if ``max_changes`` are used up.
        """
        state = replace(self, last_period=period, told=code)
        if code in (self.told, self.value):
            return state
        if self.num_changes == design.max_changes:
            return replace(state, num_ignored=self.num_ignored + 1)
        kappa = self.num_changes + 1
        state = replace(state, num_changes=kappa, value=code)
        if design.law.kind == "predrawn":
            return replace(state, after=code)
        if kappa == self.key:  # kappa = kappa*: c <- x_t
            return replace(state, before=self.value, after=code)
        return state

    def increment_under(self, column: int, design: MonitorDesign) -> int:
        """Return what the node in progress would report on if it ended now, in {-1, 0, 1}."""
        bit = design.encoding.bit
        return bit(column, self.after) - bit(column, self.before)

    def after_node(
        self, column: int, coin: int, word: int, design: MonitorDesign
    ) -> tuple[int, Self]:
        """Return the sign to report at a node's end, and the state for the next node.

        Parameters
        ----------
        column : int
            Of the node.
        coin : int
            0 or 1, uniform: the sign of a report on nothing.
        word : int
            Uniform on [0, 2^64); used by the law of the sampled change only.
        design : MonitorDesign
            The collection.

        Returns
        -------
        sign : int
            -1 or 1.
        state : ClientState
            After the node.

        Notes
        -----
        Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
        Shuffling", SODA 2019, arXiv:1811.12469v2, Algorithm 1, lines 13 to 20 for the sampled
        change, with the probability of keeping a sign accounted exactly; pre-drawn signs are ours.
        """
        increment = self.increment_under(column, design)
        state = replace(self, before=self.value, after=self.value)  # c <- 0
        if increment == 0:
            return 2 * coin - 1, state
        state = replace(state, num_increments=self.num_increments + 1)
        if design.law.kind == "predrawn":
            is_opposite = (self.key >> self.num_increments) & 1
        else:
            is_opposite = int(word < design.law.flip_threshold)
        return (-increment if is_opposite else increment), state

    def to_bytes(self, design: MonitorDesign) -> bytes:
        """Return the state as bytes: version, design, numbers, checksum."""
        body = _header(design) + struct.pack(_format_of(design), *astuple(self))
        return body + _checksum(body)

    @classmethod
    def from_bytes(cls, data: bytes, design: MonitorDesign) -> Self:
        """Return the state that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            As `to_bytes` made it.
        design : MonitorDesign
            The collection.

        Returns
        -------
        ClientState

        Raises
        ------
        DataError
            If the bytes are no state, of another version, cut short, or damaged.
        FingerprintError
            If they are of another design.
        """
        header, layout = _header(design), _format_of(design)
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
                "periods, max_changes, epsilon0, protocol and encoding that the client began with"
            )
        size = len(header) + struct.calcsize(layout) + _CHECKSUM_BYTES
        if len(data) != size:
            raise DataError(
                f"data has {len(data)} bytes, and a client's state of this collection {size}: it "
                "was cut short or padded; restore an earlier copy"
            )
        body = data[:-_CHECKSUM_BYTES]
        if data[-_CHECKSUM_BYTES:] != _checksum(body):
            raise DataError("data is damaged, its checksum does not fit: restore an earlier copy")
        return cls(**dict(zip(_FIELDS, struct.unpack(layout, body[len(header) :]), strict=True)))


_FIELDS: Final = tuple(ClientState.__dataclass_fields__)
_NUM_CODES: Final = 4  # told, value, before, after


def _format_of(design: MonitorDesign) -> str:
    """Return how the numbers are laid out, least significant byte first."""
    code = "b" if design.encoding.largest_code <= _LARGEST_BYTE else "q"
    return f"<{KEY_BYTES}sB{len(_FIELDS) - _NUM_CODES - 2}Q{_NUM_CODES}{code}"


def _header(design: MonitorDesign) -> bytes:
    """Return what says which version and which design a state is of."""
    return _MAGIC + bytes([_VERSION]) + bytes.fromhex(design.fingerprint())


def _checksum(body: bytes) -> bytes:
    """Return a checksum against accidents; who can write the bytes can also make it fit."""
    return hashlib.sha256(b"shuffledp client state" + body).digest()[:_CHECKSUM_BYTES]
