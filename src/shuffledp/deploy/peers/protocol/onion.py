"""Onions: a user draws the whole way of his report, and wraps it in a layer for each round.

With holders X_1, ..., X_T after rounds 1, ..., T and the report A, sealed to the analyzer:

    O_T = seal to X_T of (X_T, A)    and    O_r = seal to X_r of (X_(r+1), O_(r+1)) for r < T.

In round r the onion O_r is what travels, so all have one size in a round, and less in the next.
Its holder X_r takes off one layer, which names the next holder; his own number says that it stays
with him, or, after the last round, that he hands it in. A layer of round r is sealed to the
holder's key of round r, which he forgets once he has taken the mail of this round: it opens at its
holder and after its round only. An onion that misses a round is of no use to anybody, and lost.
"""

from collections import Counter
from collections.abc import Sequence

from shuffledp.deploy.peers.protocol import wire
from shuffledp.deploy.peers.protocol.draws import Draws
from shuffledp.deploy.peers.protocol.envelopes import Refusal
from shuffledp.deploy.peers.protocol.keys import PeerKeys, Roster
from shuffledp.deploy.peers.protocol.neighbourhood import registered_neighbours
from shuffledp.deploy.peers.protocol.routing import Step
from shuffledp.deploy.peers.protocol.sealing import open_seal, seal
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.network.graph import Graph


def draw_way(
    start: int, *, terms: Terms, graph: Graph, roster: Roster, draws: Draws
) -> tuple[int, ...]:
    """Return the holders of a report after each round, drawn as the holders would draw them.

    Parameters
    ----------
    start : int
        The user whose report it is.
    terms, graph, roster
        Of the collection.
    draws : Draws
        For the way.

    Returns
    -------
    tuple of int, length rounds
        Each is the one before, with probability ``laziness`` or if that one has no registered
        neighbour, or else a registered neighbour of it, exactly uniform.

    Notes
    -----
    Cost: O(rounds times the degree).
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
    """Return what a user keeps of his own report: the first holder, and the onion for him.

    Parameters
    ----------
    inner : bytes
        The report, sealed to the analyzer.
    way : sequence of int, length rounds
        From `draw_way`.
    terms, roster
        Of the collection.

    Returns
    -------
    bytes
        Four bytes more than ``terms.content_bytes(1)``.

    Notes
    -----
    Cost: a seal a round, 0.2 ms each, and O(rounds^2) bytes to encrypt.
    """
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
    """The user draws the whole way; what is kept is the next holder and the onion for him.

    Parameters
    ----------
    terms, graph, roster
        Of the collection.
    keys : PeerKeys
        Of the user.
    node : int
        The user.
    draws : Draws
        For the way of his own report.
    """

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
        """Return an onion with one layer taken off.

        Parameters
        ----------
        content : bytes
            The onion that came in a round, or that stayed in it.
        round_number : int
            That round.

        Returns
        -------
        bytes or Refusal
            The next holder, who is a registered neighbour or the user himself, and the onion for
            him. Whoever made it may have written anything else: that is malformed.
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
