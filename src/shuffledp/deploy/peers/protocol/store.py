"""What a relay keeps, and a store of it in memory."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from shuffledp.deploy.peers.protocol.envelopes import Letter


class Store(Protocol):
    """What a relay keeps. Each ``put`` and ``set`` is whole and lasting before it returns.

    The relay checks before it writes: a store only keeps. A ``put`` of what is there already is
    never called.
    """

    def registration(self, node: int) -> bytes | None:
        """Return a user's registration."""
        ...

    def put_registration(self, node: int, data: bytes) -> None:
        """Keep a user's registration."""
        ...

    def registrations(self) -> Sequence[tuple[int, bytes]]:
        """Return all registrations, users ascending."""
        ...

    def round_number(self) -> int:
        """Return what was set last; 0 at first."""
        ...

    def set_round_number(self, round_number: int) -> None:
        """Keep the number of the present round."""
        ...

    def batch(self, round_number: int, sender: int) -> bytes | None:
        """Return the digest of a sender's batch."""
        ...

    def put_batch(
        self,
        data: bytes,
        *,
        round_number: int,
        sender: int,
        letters: Sequence[Letter],
        codes: Mapping[int, bytes],
    ) -> None:
        """Keep the digest of a batch, its letters, and codes by recipient: all or nothing.

        And forget the sender's mail of all rounds before, which he has taken.
        """
        ...

    def senders(self, round_number: int) -> frozenset[int]:
        """Return who sent a batch in a round."""
        ...

    def mail(self, round_number: int, recipient: int) -> Sequence[Letter]:
        """Return the letters of a round to a recipient, ordered by sender and index."""
        ...

    def codes(self, round_number: int, recipient: int) -> Mapping[int, bytes]:
        """Return the codes of a round to a recipient by sender, ascending."""
        ...

    def hand_in(self, holder: int) -> bytes | None:
        """Return what a holder handed in."""
        ...

    def put_hand_in(self, holder: int, data: bytes) -> None:
        """Keep what a holder hands in, and forget all his mail."""
        ...

    def hand_ins(self) -> Sequence[tuple[int, bytes]]:
        """Return all that was handed in, holders ascending; nothing of each once forgotten."""
        ...

    def forget_hand_ins(self) -> None:
        """Forget what was handed in, but not by whom."""
        ...


class MemoryStore:
    """A `Store` in memory, for simulations and tests."""

    __slots__ = ("_batches", "_codes", "_hand_ins", "_mail", "_registrations", "_round_number")

    def __init__(self) -> None:
        self._round_number = 0
        self._registrations: dict[int, bytes] = {}
        self._batches: dict[int, dict[int, bytes]] = defaultdict(dict)
        self._mail: dict[tuple[int, int], list[Letter]] = defaultdict(list)
        self._codes: dict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
        self._hand_ins: dict[int, bytes] = {}

    def registration(self, node: int) -> bytes | None:
        """Return a user's registration."""
        return self._registrations.get(node)

    def put_registration(self, node: int, data: bytes) -> None:
        """Keep a user's registration."""
        self._registrations[node] = data

    def registrations(self) -> Sequence[tuple[int, bytes]]:
        """Return all registrations, users ascending."""
        return sorted(self._registrations.items())

    def round_number(self) -> int:
        """Return what was set last; 0 at first."""
        return self._round_number

    def set_round_number(self, round_number: int) -> None:
        """Keep the number of the present round."""
        self._round_number = round_number

    def batch(self, round_number: int, sender: int) -> bytes | None:
        """Return the digest of a sender's batch."""
        return self._batches[round_number].get(sender)

    def put_batch(
        self,
        data: bytes,
        *,
        round_number: int,
        sender: int,
        letters: Sequence[Letter],
        codes: Mapping[int, bytes],
    ) -> None:
        """Keep the digest of a batch, its letters and codes, and forget the sender's mail."""
        self._forget_mail(sender, before=round_number)
        self._batches[round_number][sender] = data
        for letter in letters:
            self._mail[round_number, letter.recipient].append(letter)
        for recipient, code in codes.items():
            self._codes[round_number, recipient][sender] = code

    def _forget_mail(self, recipient: int, *, before: int) -> None:
        """Forget the mail of a user of all rounds before one."""
        for earlier in range(1, before):
            self._mail.pop((earlier, recipient), None)
            self._codes.pop((earlier, recipient), None)

    def senders(self, round_number: int) -> frozenset[int]:
        """Return who sent a batch in a round."""
        return frozenset(self._batches[round_number])

    def mail(self, round_number: int, recipient: int) -> Sequence[Letter]:
        """Return the letters of a round to a recipient, ordered by sender and index."""
        letters = self._mail.get((round_number, recipient), [])
        return sorted(letters, key=lambda letter: (letter.sender, letter.index))

    def codes(self, round_number: int, recipient: int) -> Mapping[int, bytes]:
        """Return the codes of a round to a recipient by sender, ascending."""
        return dict(sorted(self._codes[round_number, recipient].items()))

    def hand_in(self, holder: int) -> bytes | None:
        """Return what a holder handed in."""
        return self._hand_ins.get(holder)

    def put_hand_in(self, holder: int, data: bytes) -> None:
        """Keep what a holder hands in, and forget all his mail."""
        self._forget_mail(holder, before=self._round_number)
        self._hand_ins[holder] = data

    def hand_ins(self) -> Sequence[tuple[int, bytes]]:
        """Return all that was handed in, holders ascending."""
        return sorted(self._hand_ins.items())

    def forget_hand_ins(self) -> None:
        """Forget what was handed in, but not by whom."""
        self._hand_ins = dict.fromkeys(self._hand_ins, b"")
