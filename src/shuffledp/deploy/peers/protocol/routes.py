"""Where reports go next: drawn hop by hop by each holder, or all at once by the user, as an onion.

Onions: a user draws the whole way of his report, and wraps it in a layer for each round. With
holders X_1, ..., X_T after rounds 1, ..., T and the report A, sealed to the analyzer:

    O_T = seal to X_T of (X_T, A)    and    O_r = seal to X_r of (X_(r+1), O_(r+1)) for r < T.

In round r the onion O_r is what travels, so all have one size in a round, and less in the next.
Its holder X_r takes off one layer, which names the next holder; his own number says that it stays
with him, or, after the last round, that he hands it in. A layer of round r is sealed to the
holder's key of round r, which he forgets once he has taken the mail of this round: it opens at its
holder and after its round only. An onion that misses a round is of no use to anybody, and lost.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from shuffledp.core.entropy import Entropy
from shuffledp.deploy import wire
from shuffledp.deploy.peers.protocol.keys import PeerKeys, Roster
from shuffledp.deploy.peers.protocol.messages import Refusal
from shuffledp.deploy.peers.protocol.terms import COIN_SIDES, Terms
from shuffledp.deploy.sealing import open_seal, seal
from shuffledp.network.graph import Graph

_Item = TypeVar("_Item")

_WORD_END = 1 << 64


class Draws:
    """Exact draws from a stream of words."""

    __slots__ = ("_entropy",)

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def below(self, bound: int) -> int:
        """Return a whole number, exactly uniform in [0, bound), for 1 <= bound <= 2^64.

        Words above the largest multiple of ``bound`` are thrown away; none is kept, where a fork
        would not be noticed.
        """
        limit = _WORD_END - _WORD_END % bound
        while (word := int(self._entropy.words(1)[0])) >= limit:
            pass
        return word % bound

    def coin(self, sides_of_heads: int) -> bool:
        """Return whether a coin shows heads: probability ``sides_of_heads`` / 65536."""
        return self.below(COIN_SIDES) < sides_of_heads

    def choice(self, items: Sequence[_Item]) -> _Item:
        """Return one of the items, of which there is at least one; each is as likely."""
        return items[self.below(len(items))]

    def permuted(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in an order drawn uniformly from all (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def registered_neighbours(graph: Graph, roster: Roster, node: int) -> tuple[int, ...]:
    """Return the neighbours of a user who have registered, ascending."""
    row = graph.neighbours[graph.starts[node] : graph.starts[node + 1]].tolist()
    return tuple(other for other in row if roster.is_registered(other))


def batch_size(terms: Terms, node: int, neighbours: tuple[int, ...]) -> int:
    """Return how many envelopes a user sends each round: none where there is nobody to send to."""
    if terms.per_neighbour:
        return terms.per_neighbour * len(neighbours)
    return terms.slots[node] if neighbours else 0


def is_even(terms: Terms, recipients: Iterable[int]) -> bool:
    """Return whether recipients are served evenly, if the terms ask for that."""
    allowed = {terms.per_neighbour}
    return not terms.per_neighbour or set(Counter(recipients).values()) <= allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of the reports of a holder in one round."""

    staying: list[bytes]
    moving: list[tuple[int, bytes]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class HopRouting:
    """Each holder draws the next step; what travels is the report, sealed to the analyzer."""

    __slots__ = ("_draws", "_neighbours", "_terms")

    def __init__(self, terms: Terms, neighbours: tuple[int, ...], draws: Draws) -> None:
        self._terms, self._neighbours, self._draws = terms, neighbours, draws

    def first(self, inner: bytes) -> bytes:
        """Return what a user keeps before round 1 of his own report, sealed to the analyzer."""
        return inner

    def step(self, held: list[bytes], round_number: int) -> Step:
        """Return which reports stay, each by a coin of its own, and uniform recipients."""
        del round_number
        if not self._neighbours:
            return Step(staying=held)
        staying: list[bytes] = []
        leaving: list[bytes] = []
        for inner in held:
            (staying if self._draws.coin(self._terms.coin) else leaving).append(inner)
        return Step(
            staying=staying,
            moving=[(self._draws.choice(self._neighbours), inner) for inner in leaving],
        )

    def missed(self, held: list[bytes], round_number: int) -> Step:
        """Return what becomes of the reports of a holder who was away: all stay."""
        del round_number
        return Step(staying=held)

    def returned(self, moving: list[bytes]) -> Step:
        """Return what becomes of the content of a batch that the relay did not take: all stays."""
        return Step(staying=moving)

    def accepted(self, content: bytes, round_number: int) -> bytes | Refusal:
        """Return what a user keeps of the content of an envelope, or why he does not."""
        del round_number
        return content

    def inner(self, kept: bytes) -> bytes:
        """Return the report, sealed to the analyzer, that is kept after the last round."""
        return kept


def draw_way(
    start: int, *, terms: Terms, graph: Graph, roster: Roster, draws: Draws
) -> tuple[int, ...]:
    """Return the holders of a report after each round, drawn as the holders would draw them.

    Each is the one before, with probability ``laziness`` or if that one has no registered
    neighbour, or else a registered neighbour of it, exactly uniform.
    """
    way: list[int] = []
    holder = start
    for _ in range(terms.rounds):
        neighbours = registered_neighbours(graph, roster, holder)
        if neighbours and not draws.coin(terms.coin):
            holder = draws.choice(neighbours)
        way.append(holder)
    return tuple(way)


def wrap(inner: bytes, way: Sequence[int], *, terms: Terms, roster: Roster) -> bytes:
    """Return what a user keeps of his own report: the first holder, and the onion for him."""
    kept = wire.number(way[-1]) + inner
    for round_number in range(terms.rounds, 0, -1):
        holder = way[round_number - 1]
        info = _info(roster, round_number, holder)
        kept = wire.number(holder) + seal(kept, roster[holder].mail_keys[round_number], info)
    return kept


def _info(roster: Roster, round_number: int, holder: int) -> bytes:
    """Return what a layer is bound to."""
    return wire.digest(b"layer", roster.context, wire.numbers(round_number, holder))


class OnionRouting:
    """The user draws the whole way; what is kept is the next holder and the onion for him."""

    __slots__ = ("_draws", "_graph", "_keys", "_next", "_node", "_roster", "_terms")

    def __init__(
        self,
        *,
        terms: Terms,
        graph: Graph,
        roster: Roster,
        keys: PeerKeys,
        node: int,
        draws: Draws,
    ) -> None:
        self._terms, self._graph, self._roster = terms, graph, roster
        self._keys, self._node, self._draws = keys, node, draws
        self._next = {node, *registered_neighbours(graph, roster, node)}

    def first(self, inner: bytes) -> bytes:
        """Return the onion of a way that is drawn here."""
        way = draw_way(
            self._node,
            terms=self._terms,
            graph=self._graph,
            roster=self._roster,
            draws=self._draws,
        )
        return wrap(inner, way, terms=self._terms, roster=self._roster)

    def step(self, held: list[bytes], round_number: int) -> Step:
        """Return which onions stay, a layer less on them, and where the others are to go."""
        staying: list[bytes] = []
        moving: list[tuple[int, bytes]] = []
        counts: Counter[str] = Counter()
        for kept in held:
            holder, onion = _parted(kept)
            if holder != self._node:
                moving.append((holder, onion))
                continue
            opened = self.accepted(onion, round_number)
            if isinstance(opened, Refusal):
                counts[opened.name] += 1
            else:
                staying.append(opened)
        return Step(staying=staying, moving=moving, counts=counts)

    def missed(self, held: list[bytes], round_number: int) -> Step:
        """Return that onions which were to stay do so, and that the others are lost."""
        step = self.step(held, round_number)
        return Step(staying=step.staying, counts=step.counts + Counter(late=len(step.moving)))

    def returned(self, moving: list[bytes]) -> Step:
        """Return that all are lost: they open after the round that was missed, and elsewhere."""
        return Step(staying=[], counts=Counter(late=len(moving)))

    def accepted(self, content: bytes, round_number: int) -> bytes | Refusal:
        """Return the next holder and the onion for him, with one layer taken off.

        That is a registered neighbour or the user himself; whoever made it may have written
        anything else: that is malformed.
        """
        info = _info(self._roster, round_number, self._node)
        key = self._keys.mail.get(round_number)  # forgotten once the mail of the round was taken
        kept = None if key is None else open_seal(content, key, info)
        if kept is None:
            return Refusal.UNOPENED
        holder, _ = _parted(kept)
        allowed = self._next if round_number < self._terms.rounds else {self._node}
        return kept if holder in allowed else Refusal.MALFORMED

    def inner(self, kept: bytes) -> bytes:
        """Return the report, of which all layers are off."""
        return _parted(kept)[1]


def _parted(kept: bytes) -> tuple[int, bytes]:
    """Return the next holder, and what is for him."""
    return int.from_bytes(kept[: wire.NUMBER_BYTES], "big"), kept[wire.NUMBER_BYTES :]


#: The two ways to route, with the same methods.
Routing: TypeAlias = HopRouting | OnionRouting
