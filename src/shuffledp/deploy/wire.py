"""Strict reading of bytes: nothing missing, nothing left over, one encoding for each message.

Whole numbers are unsigned, four bytes, most significant first. A message begins with four bytes
that identify its kind and version. A refusal states its reason, and the party at fault.
"""

import hashlib
import struct
from enum import StrEnum

from shuffledp.core.errors import ParameterError, ShuffledpError

DIGEST_BYTES = 32
KEY_BYTES = 32
SIGNATURE_BYTES = 64
NUMBER_BYTES = 4


class Reason(StrEnum):
    """Reason of a refusal."""

    MALFORMED = "malformed"  # bytes that no honest program writes
    FORGED = "forged"  # a signature, or a token, that does not verify
    MISMATCH = "mismatch"  # made for other terms, another roster or another graph
    UNKNOWN = "unknown"  # a party that is not in the roster
    CONFLICT = "conflict"  # another message has been accepted in its place
    EARLY = "early"  # an earlier step is missing
    LATE = "late"  # the round, or the registration, is closed
    LIMIT = "limit"  # more than the user agrees to


class Fault(StrEnum):
    """Party that made the mistake."""

    PEER = "peer"
    RELAY = "relay"
    ANALYZER = "analyzer"
    OPERATOR = "operator"
    CLIENT = "client"
    SHUFFLER = "shuffler"
    CALLER = "caller"  # the program that calls this library, in the wrong order

    def error(self, message: str, reason: Reason = Reason.MALFORMED) -> "ProtocolError":
        """Return, for raising, an error of this party."""
        return ProtocolError(message, fault=self, reason=reason)


class ProtocolError(ShuffledpError, ValueError):
    """A message, or a call, breaks the protocol; it has changed nothing."""

    def __init__(self, message: str, *, fault: Fault, reason: Reason) -> None:
        super().__init__(message)
        self.fault, self.reason = fault, reason


def require_whole(name: str, value: object, first: int, end: int) -> None:
    """Raise unless a value is a whole number in [first, end), and not a bool."""
    if not isinstance(value, int) or isinstance(value, bool) or not first <= value < end:
        raise ParameterError(f"{name} = {value!r} is not a whole number in [{first}, {end})")


def uint(value: int, size: int = NUMBER_BYTES) -> bytes:
    """Return a whole number as bytes of this length, most significant first."""
    return value.to_bytes(size, "big")


def numbers(*values: int) -> bytes:
    """Return whole numbers in [0, 2^32), four bytes each."""
    return struct.pack(f">{len(values)}I", *values)


def opaque(data: bytes, size: int = NUMBER_BYTES) -> bytes:
    """Return bytes after their length, which takes ``size`` bytes."""
    return uint(len(data), size) + data


def digest(label: bytes, *parts: bytes) -> bytes:
    """Return SHA-256 of parts, each after its length, under a label for its use."""
    sha = hashlib.sha256(opaque(b"shuffledp " + label))
    for part in parts:
        sha.update(opaque(part, 8))
    return sha.digest()


class Reader:
    """Reads a message from its front; its name and its sender go into errors."""

    def __init__(self, data: bytes, name: str, fault: Fault) -> None:
        self._data, self._at = bytes(data), 0
        self._name, self._fault = name, fault

    def error(self, what: str, reason: Reason = Reason.MALFORMED) -> ProtocolError:
        """Return, for raising, an error about this message."""
        return self._fault.error(f"{self._name}: {what}", reason)

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self._at + size
        if end > len(self._data):
            what = f"{len(self._data)} bytes end in the middle of it"
            raise self.error(f"{what}, at least {end} are needed: send it again")
        start, self._at = self._at, end
        return self._data[start:end]

    def number_below(self, end: int, what: str) -> int:
        """Return the next whole number if it is below ``end``."""
        value = self.uint()
        if value >= end:
            raise self.error(f"{what} {value} is not in [0, {end})")
        return value

    def uint(self, size: int = NUMBER_BYTES) -> int:
        """Return the next ``size`` bytes as a whole number."""
        return int.from_bytes(self.take(size), "big")

    def opaque(self, size: int = NUMBER_BYTES) -> bytes:
        """Return the next bytes, whose length precedes them in ``size`` bytes."""
        return self.take(self.uint(size))

    def text(self, size: int) -> str:
        """Return the next bytes, whose length precedes them, as UTF-8."""
        try:
            return self.opaque(size).decode()
        except UnicodeDecodeError:
            raise self.error("a text in it is not UTF-8") from None

    def expect(self, wanted: bytes, what: str, reason: Reason = Reason.MALFORMED) -> None:
        """Take the bytes ``wanted``; raise unless they are next."""
        if self.take(len(wanted)) != wanted:
            raise self.error(what, reason)

    @property
    def is_at_end(self) -> bool:
        """True if all bytes have been taken."""
        return self._at == len(self._data)

    def read_so_far(self) -> bytes:
        """Return all bytes that have been taken."""
        return self._data[: self._at]

    def finish(self) -> None:
        """Raise if any bytes are left."""
        left = len(self._data) - self._at
        if left:
            raise self.error(f"{left} bytes too many: send one message only")


def split_messages(body: bytes) -> list[bytes]:
    """Return the messages in a body of a relay, each after its length."""
    reader, messages = Reader(body, "answer", Fault.RELAY), []
    while not reader.is_at_end:
        messages.append(reader.opaque())
    return messages
