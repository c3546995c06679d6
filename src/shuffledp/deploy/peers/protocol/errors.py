"""What a message can be refused for, and whose fault that is."""

from enum import StrEnum

from shuffledp.core.errors import ShuffledpError


class Fault(StrEnum):
    """Who made the mistake."""

    PEER = "peer"
    RELAY = "relay"
    ANALYZER = "analyzer"
    CALLER = "caller"  # the program that calls this library, in the wrong order


class Reason(StrEnum):
    """What is wrong."""

    MALFORMED = "malformed"  # bytes that no honest program writes
    FORGED = "forged"  # a signature, or a token, that does not fit
    MISMATCH = "mismatch"  # made for other terms, another roster or another graph
    UNKNOWN = "unknown"  # somebody who is not in the roster
    CONFLICT = "conflict"  # something else has been accepted in its place
    EARLY = "early"  # what must come first has not come
    LATE = "late"  # the round, or the registration, is closed
    LIMIT = "limit"  # more than the user agrees to


class ProtocolError(ShuffledpError, ValueError):
    """A message, or a call, breaks the protocol; nothing has been changed by it.

    Parameters
    ----------
    message : str
        One line.
    fault : Fault
        Who made the mistake.
    reason : Reason
        What is wrong.
    """

    def __init__(self, message: str, *, fault: Fault, reason: Reason) -> None:
        super().__init__(message)
        self.fault = fault
        self.reason = reason
