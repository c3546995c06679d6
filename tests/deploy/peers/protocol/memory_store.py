"""What a relay keeps, in memory."""

from collections import defaultdict


class MemoryStore:
    """A `Store` in memory, for simulations and tests."""

    __slots__ = ("_batches", "_codes", "_hand_ins", "_mail", "_registrations", "_round_number")

    def __init__(self):
        self._round_number = 0
        self._registrations: dict[int, bytes] = {}
        self._batches: dict[int, dict[int, bytes]] = defaultdict(dict)
        self._mail = defaultdict(list)
        self._codes: dict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
        self._hand_ins: dict[int, bytes] = {}

    def registration(self, node: int):
        return self._registrations.get(node)

    def put_registration(self, node: int, data: bytes):
        self._registrations[node] = data

    def registrations(self):
        return sorted(self._registrations.items())

    def round_number(self):
        return self._round_number

    def set_round_number(self, round_number: int):
        self._round_number = round_number

    def batch(self, round_number: int, sender: int):
        return self._batches[round_number].get(sender)

    def put_batch(
        self,
        data: bytes,
        *,
        round_number: int,
        sender: int,
        letters,
        codes,
    ):
        self._forget_mail(sender, before=round_number)
        self._batches[round_number][sender] = data
        for letter in letters:
            self._mail[round_number, letter.recipient].append(letter)
        for recipient, code in codes.items():
            self._codes[round_number, recipient][sender] = code

    def _forget_mail(self, recipient: int, *, before: int):
        for earlier in range(1, before):
            self._mail.pop((earlier, recipient), None)
            self._codes.pop((earlier, recipient), None)

    def senders(self, round_number: int):
        return frozenset(self._batches[round_number])

    def mail(self, round_number: int, recipient: int):
        letters = self._mail.get((round_number, recipient), [])
        return sorted(letters, key=lambda letter: (letter.sender, letter.index))

    def codes(self, round_number: int, recipient: int):
        return dict(sorted(self._codes[round_number, recipient].items()))

    def hand_in(self, holder: int):
        return self._hand_ins.get(holder)

    def put_hand_in(self, holder: int, data: bytes):
        self._forget_mail(holder, before=self._round_number)
        self._hand_ins[holder] = data

    def hand_ins(self):
        return sorted(self._hand_ins.items())

    def forget_hand_ins(self):
        self._hand_ins = dict.fromkeys(self._hand_ins, b"")
