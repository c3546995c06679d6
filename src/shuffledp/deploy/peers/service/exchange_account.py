"""What an exchange guarantees as it went: with those who registered, and those who were away."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.results import Guarantee
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_delta
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress
from shuffledp.deploy.peers.protocol.slots import overload_probability
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.arrived import Arrived
from shuffledp.network.graph import Graph
from shuffledp.network.hiding import Hiding
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.walk import RandomWalk

if TYPE_CHECKING:
    from shuffledp.network.positions import PositionBounds

_ASSUMPTIONS = (
    "All who handed in confirmed the relay's record of who was absent in which round, and that "
    "nothing sent to them was missing. So reports are missing with holders who handed in nothing, "
    "and with nobody else; this rests on the confirmations being honest.",
    "Whether a user is absent from a round, or hands in, depends neither on anybody's value nor on "
    "which reports, from whom, the user holds.",
    "The relay does not play users itself, and no user tells what passed through their hands.",
)

# A report went along one of the envelopes that were sent, so where these went says something.
_RELAY_KEEPS_QUIET = (
    "The relay keeps its record of who sent envelopes to whom from the analyzer, and does not "
    "choose by it whose batches or hand-ins it refuses: traffic is not even, so that the record "
    "narrows down which way a report may have gone."
)
_RELAY_MAY_TELL = (
    "Traffic was even: each user sent each neighbour the same number of envelopes in a round. So "
    "the relay may show the analyzer all its records, and may choose whose batches it refuses: "
    "that counts as an absence. The analyzer counts every hand-in that it has seen."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRecord:
    """Who took part in an exchange, and who was away when.

    Parameters
    ----------
    nodes : ndarray of int64, shape (m,)
        Nodes that registered, rising.
    absences : ndarray of bool, shape (rounds, num_users)
        Who sent nothing in which round; who never registered is away in all.
    """

    nodes: NDArray[np.int64]
    absences: NDArray[np.bool_]

    @classmethod
    def of(cls, terms: Terms, nodes: Iterable[int], absent: Any) -> "ExchangeRecord":
        """Return the record from the roster's nodes and the relay's JSON.

        Parameters
        ----------
        terms : Terms
            Of the collection.
        nodes : iterable of int
            Who registered.
        absent : list of list of int
            For each round, nodes that sent nothing.

        Raises
        ------
        DataError
            If the relay's record is malformed, or leaves somebody out who never registered.
        """
        registered = np.asarray(sorted(nodes), dtype=np.int64)
        absences = np.zeros((terms.rounds, terms.num_users), dtype=bool)
        never = np.ones(terms.num_users, dtype=bool)
        never[registered] = False
        try:
            for row, away in zip(absences, absent, strict=True):
                numbers = np.asarray(away, dtype=np.int64)
                row[numbers[numbers >= 0]] = True
        except (TypeError, ValueError, OverflowError, IndexError):
            raise DataError("the relay's record of absences cannot be read: ask it again") from None
        if not absences[:, never].all():
            raise DataError("the relay's record does not fit its roster: it cannot be trusted")
        return cls(nodes=registered, absences=absences)

    @property
    def num_absences(self) -> int:
        """In how many rounds a registered user sent nothing, over all of them."""
        return int(np.count_nonzero(self.absences[:, self.nodes]))


class Exchange:
    """An exchange as it went: the walk of those who registered, with those who were away.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    record : ExchangeRecord
        Who took part.
    arrived : Arrived
        What came to the analyzer.
    on_progress : callable, optional
        Called with the stage, the steps done and the steps in total.

    Attributes
    ----------
    terms, graph, record
        As given.
    doubts : tuple of str
        Why reports may be missing because of whose they are: then nothing hides anybody.
    users : Graph
        Of those who registered: its user i is node ``record.nodes[i]``.
    overload : float
        At least the chance that somebody ever held more reports than messages to send.
    mixing : NetworkMixing or None
        Of ``users`` if nobody is ever away; None where reports never mix.

    Notes
    -----
    Given who registered and who was away when, reports move independently: in a round that a user
    misses all reports that he holds stay. Cost: exact laws where a registered user was away, so
    O(rounds m) for each user; otherwise as `NetworkMixing`.
    """

    def __init__(
        self,
        terms: Terms,
        graph: Graph,
        record: ExchangeRecord,
        arrived: Arrived,
        *,
        on_progress: Progress | None = None,
    ) -> None:
        self.terms, self.graph, self.record, self._report = terms, graph, record, on_progress
        registered = np.zeros(terms.num_users, dtype=bool)
        registered[record.nodes] = True
        self.doubts = arrived.doubts(terms, graph, registered=registered, absences=record.absences)
        # Where nobody registered one user alone stands for them: as little can be hidden.
        self.users = graph.subgraph(record.nodes if record.nodes.size else [0])
        self.overload = overload_probability(
            graph,
            rounds=terms.rounds,
            slots=terms.slots,
            laziness=terms.laziness,
            per_neighbour=terms.per_neighbour,
            absences=record.absences,
            registered=registered,
        )
        try:
            self.mixing: NetworkMixing | None = NetworkMixing(
                self.users, laziness=terms.laziness, on_progress=on_progress
            )
        except ParameterError:
            self.mixing = None  # bipartite or in pieces: exact laws say what it is worth
        self._bounds: dict[int, PositionBounds] = {}

    @property
    def loses_reports(self) -> bool:
        """Whether reports may have been lost to absences, as they are with onion routing."""
        return self.terms.routing == "onion" and self.record.num_absences > 0

    @property
    def can_hide(self) -> bool:
        """Whether there are others among whom a report may hide, as far as is known here.

        Not where reports are lost: they hide nobody, and the walk in which they wait counts them.
        Reports lost with holders who handed in nothing do no harm: what is seen is made from what
        would be seen with them (docs/results/delivery.md).
        """
        return self.users.num_users >= 2 and not self.loses_reports and not self.doubts

    def position_bounds(self, rounds: Iterable[int]) -> "list[PositionBounds]":
        """Return bounds on where reports were after these rounds, from one pass over users."""
        wanted = [number for number in dict.fromkeys(rounds) if number not in self._bounds]
        if wanted and self.mixing is not None and not self.record.num_absences:
            found = self.mixing.position_bounds_at(wanted)
        elif wanted:
            from shuffledp.network.positions import exact_position_bounds

            walk = RandomWalk.with_absences(
                self.users,
                self.record.absences[:, self.record.nodes],
                laziness=self.terms.laziness,
            )
            found = exact_position_bounds(walk, wanted, on_progress=self._report)
        else:
            found = ()
        self._bounds.update({each.rounds: each for each in found})
        return [self._bounds[number] for number in rounds]

    def delta_left(self, delta: float) -> float:
        """Return what of a delta the chance of an overload leaves; rounded down, maybe below 0."""
        return (delta - self.overload) * (1.0 - 1e-12)

    def epsilon(self, profile: LocalProfile, *, delta: float, rounds: int) -> Bound:
        """Bound the central epsilon had the exchange ended after so many rounds.

        Parameters
        ----------
        profile : LocalProfile
            The randomizer's law.
        delta : float
            Central failure probability, in [0, 1); the chance of an overload is taken off.
        rounds : int
            From 1 to all.
        """
        left = self.delta_left(delta)
        if not self.can_hide or left <= 0.0:
            return self._local(profile, delta)
        (bounds,) = self.position_bounds([rounds])
        bound = Hiding.of(bounds).epsilon(
            profile, delta=left, protocol=self.terms.protocol, with_lower=False
        )
        relay = _RELAY_MAY_TELL if self.terms.per_neighbour else _RELAY_KEEPS_QUIET
        return replace(bound, assumptions=(*bound.assumptions, relay, *_ASSUMPTIONS))

    def _local(self, profile: LocalProfile, delta: float) -> Bound:
        """Return what the randomizer alone guarantees, and why no more."""
        reasons = [f"overload probability {self.overload:.3g}", *self.doubts]
        if self.loses_reports:
            reasons.append("reports lost to absences, with onion routing, are not accounted for")
        return Bound(
            lower=None,
            upper=profile.epsilon0 if profile.delta0 <= delta else float("inf"),
            method="local randomizer alone",
            source=f"definition; {'; '.join(reasons)}",
            assumptions=(),
        )

    def guarantee(self, profile: LocalProfile, *, delta: float) -> Guarantee:
        """Return the central guarantee of what was handed in; see `exchange_guarantee`."""
        require_delta(delta)
        return Guarantee(
            epsilon=self.epsilon(profile, delta=delta, rounds=self.terms.rounds),
            delta=float(delta),
            num_users=self.users.num_users,
        )


def exchange_guarantee(
    terms: Terms,
    graph: Graph,
    record: ExchangeRecord,
    arrived: Arrived,
    profile: LocalProfile,
    *,
    delta: float,
    on_progress: Progress | None = None,
) -> Guarantee:
    """Return the central guarantee of what was handed in.

    Parameters
    ----------
    terms, graph, record, arrived, on_progress
        See `Exchange`.
    profile : LocalProfile
        The randomizer's law.
    delta : float
        Central failure probability, in [0, 1). The chance that somebody ever held more reports
        than messages to send is taken off it.

    Returns
    -------
    Guarantee
        Whose epsilon is rounded up, and has no lower end: what was lost on the way may have made
        the release more private than any bound can say. It holds for every registered user,
        whoever handed in nothing at the end: the analyzer's view is made from that of all. It is
        epsilon0 where reports may be missing because of whose they are.

    Raises
    ------
    ParameterError
        If delta is out of range.
    """
    exchange = Exchange(terms, graph, record, arrived, on_progress=on_progress)
    return exchange.guarantee(profile, delta=delta)
