"""What can go wrong on the way: transports that drop, repeat, reorder, cut, forge and replay.

For tests and exercises over the link in memory. A transport takes what is sent and returns what
arrives: nothing, the same, something else, or more than one message.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from shuffledp.peers.keys import Roster
from shuffledp.peers.mail import Letter, decode_mail, encode_mail
from shuffledp.peers.terms import Terms


class Transport(Protocol):
    """The ways from peers to the relay, and back."""

    def to_relay(self, data: bytes, *, round_number: int, sender: int) -> Sequence[bytes]:
        """Return what arrives of a batch."""
        ...

    def to_peer(
        self, packet: bytes, *, round_number: int, recipient: int, roster: Roster
    ) -> Sequence[bytes]:
        """Return what arrives of a packet of mail, as the attempts to fetch it."""
        ...


class PerfectTransport:
    """Everything arrives once, unchanged."""

    __slots__ = ()

    def to_relay(self, data: bytes, *, round_number: int, sender: int) -> Sequence[bytes]:
        """Return the batch."""
        del round_number, sender
        return (data,)

    def to_peer(
        self, packet: bytes, *, round_number: int, recipient: int, roster: Roster
    ) -> Sequence[bytes]:
        """Return the packet."""
        del round_number, recipient, roster
        return (packet,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyTransport:
    """A transport that applies functions to what passes.

    Parameters
    ----------
    batch : callable, optional
        From the bytes of a batch to the messages that arrive.
    packet : callable, optional
        From the bytes of a packet to the attempts that arrive.
    letters : callable, optional
        From the letters in a packet to those that arrive in it: the relay's own tampering.
    rounds : frozenset of int, optional
        Rounds in which anything happens; in all, if left out.
    terms : Terms
        Of the collection.
    """

    terms: Terms
    batch: Callable[[bytes], Sequence[bytes]] | None = None
    packet: Callable[[bytes], Sequence[bytes]] | None = None
    letters: Callable[[list[Letter]], list[Letter]] | None = None
    rounds: frozenset[int] | None = None

    def _acts(self, round_number: int) -> bool:
        """Return whether anything happens in a round."""
        return self.rounds is None or round_number in self.rounds

    def to_relay(self, data: bytes, *, round_number: int, sender: int) -> Sequence[bytes]:
        """Return what arrives of a batch."""
        del sender
        if self.batch is None or not self._acts(round_number):
            return (data,)
        return self.batch(data)

    def to_peer(
        self, packet: bytes, *, round_number: int, recipient: int, roster: Roster
    ) -> Sequence[bytes]:
        """Return what arrives of a packet of mail."""
        if not self._acts(round_number):
            return (packet,)
        if self.letters is not None:
            mail = decode_mail(
                packet,
                roster,
                round_number=round_number,
                recipient=recipient,
            )
            packet = encode_mail(
                replace(mail, letters=tuple(self.letters(list(mail.letters)))),
                roster=roster,
                round_number=round_number,
                recipient=recipient,
            )
        return (packet,) if self.packet is None else self.packet(packet)


def nothing(data: bytes) -> Sequence[bytes]:
    """Return what arrives of a message that is lost."""
    del data
    return ()


def twice(data: bytes) -> Sequence[bytes]:
    """Return what arrives of a message that is sent again."""
    return (data, data)


def cut_first(data: bytes) -> Sequence[bytes]:
    """Return what arrives if a message is cut short, and then sent again."""
    return (data[: len(data) // 2], data)


def cut(data: bytes) -> Sequence[bytes]:
    """Return what arrives of a message that is cut short."""
    return (data[:-1],)


def flipped(data: bytes) -> bytes:
    """Return bytes with the last bit changed."""
    return data[:-1] + bytes([data[-1] ^ 1])


def changed(data: bytes) -> Sequence[bytes]:
    """Return what arrives of a message of which a bit is changed."""
    return (flipped(data),)


def reversed_order(letters: list[Letter]) -> list[Letter]:
    """Return the letters from last to first."""
    return letters[::-1]


def repeated(letters: list[Letter]) -> list[Letter]:
    """Return each letter twice."""
    return [*letters, *letters]


def flipped_letters(letters: list[Letter]) -> list[Letter]:
    """Return letters of each of which a bit is changed."""
    return [replace(letter, sealed=flipped(letter.sealed)) for letter in letters]


def renumbered(letters: list[Letter]) -> list[Letter]:
    """Return the letters, each also under another number: a copy that claims to be new."""
    return [*letters, *(replace(letter, index=letter.index + 1000) for letter in letters)]


class Replayed:
    """Adds to each packet the letters that passed before, of other rounds and recipients."""

    __slots__ = ("_past",)

    def __init__(self) -> None:
        self._past: list[Letter] = []

    def __call__(self, letters: list[Letter]) -> list[Letter]:
        """Return the letters and at most ten of those before."""
        old = self._past[-10:]
        self._past.extend(letters)
        return [*letters, *old]
