"""What a user agrees to, whatever the terms, the relay and the analyzer say."""

import math
from dataclasses import dataclass
from typing import Final, Self

from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.peers.protocol.delivery import CODE_BYTES
from shuffledp.deploy.peers.protocol.errors import Fault, ProtocolError, Reason
from shuffledp.deploy.peers.protocol.keys import Roster, registration_bytes
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.network.graph import Graph

# Hand in nothing after more absences than this share of the rounds.
_SHARE_OF_ABSENCES = 4

_BYTES_OF_A_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a user agrees to; a `Peer` keeps to it.

    Parameters
    ----------
    most_epsilon0 : float
        Largest epsilon0 in nats, of all reports about one question together; > 0.
    least_users : int
        Fewest registered users to take part with, >= 1.
    most_megabytes : float
        Most traffic of a whole collection, sent and received, in 10^6 bytes; > 0.
    most_unmoved : float
        Largest probability that the report stays with its user in all rounds, in [0, 1].
    terms_digest : bytes, optional
        Take part by no other terms than those with this digest.
    most_absences : int, optional
        Hand in nothing after more rounds than this in which the relay took no batch of the user;
        by default a quarter of the rounds, rounded down. The relay decides who is absent: one that
        refuses all batches of a user would otherwise be handed his own report, which never moved.
    roster_digest : bytes, optional
        Take no other roster than the one with this digest.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    most_epsilon0: float = 4.0
    least_users: int = 10
    most_megabytes: float = 100.0
    most_unmoved: float = 0.1
    terms_digest: bytes | None = None
    most_absences: int | None = None
    roster_digest: bytes | None = None

    def __post_init__(self) -> None:
        if self.most_epsilon0 != math.inf:
            require_positive("most_epsilon0", self.most_epsilon0)
        if self.most_megabytes != math.inf:
            require_positive("most_megabytes", self.most_megabytes)
        require_at_least("least_users", self.least_users, 1)
        if self.most_absences is not None:
            require_at_least("most_absences", self.most_absences, 0)

    @classmethod
    def none(cls, terms: Terms) -> Self:
        """Return the limits of who agrees to everything; for simulations."""
        return cls(
            most_epsilon0=math.inf,
            least_users=1,
            most_megabytes=math.inf,
            most_unmoved=1.0,
            most_absences=terms.rounds,
        )

    def require_terms(self, terms: Terms, graph: Graph, node: int) -> None:
        """Raise `ProtocolError` unless a user agrees to the terms.

        Parameters
        ----------
        terms : Terms
            Of the collection.
        graph : Graph
            Of the terms.
        node : int
            The user, in [0, num_users).

        Raises
        ------
        ParameterError
            If the user is not in the graph.
        ProtocolError
            With `Reason.LIMIT`, or `Reason.MISMATCH` if the terms are not those required.
        """
        if not 0 <= node < terms.num_users:
            raise ParameterError(f"node = {node} is not in [0, {terms.num_users})")
        if self.terms_digest not in (None, terms.digest()):
            raise _terms_error(
                f"the terms have the digest {terms.digest().hex()}, not the one that is required",
                Reason.MISMATCH,
            )
        self.require_epsilon0(terms.stated_epsilon0)
        if terms.num_users < self.least_users:
            raise _terms_error(
                f"the terms are for {terms.num_users} users, fewer than least_users = "
                f"{self.least_users}"
            )
        unmoved = terms.laziness**terms.rounds
        if unmoved > self.most_unmoved:
            raise _terms_error(
                f"by the terms a report stays with its user with probability {unmoved:.6g}, more "
                f"than most_unmoved = {self.most_unmoved:g}"
            )
        megabytes = traffic_bytes(terms, graph, node) / _BYTES_OF_A_MEGABYTE
        if megabytes > self.most_megabytes:
            raise _terms_error(
                f"the terms ask for about {megabytes:.6g} MB of traffic, more than max_megabytes = "
                f"{self.most_megabytes:g}"
            )

    def require_epsilon0(self, epsilon0: float | None, *, spent: float = 0.0) -> None:
        """Raise `ProtocolError` unless a user agrees to a report, after others about the question.

        Parameters
        ----------
        epsilon0 : float or None
            Of the report, in nats; None if the terms do not say.
        spent : float
            Sum of those before.
        """
        if self.most_epsilon0 == math.inf:
            return
        if epsilon0 is None:
            raise _terms_error("the terms do not state their epsilon0")
        if not epsilon0 + spent <= self.most_epsilon0:
            earlier = f" after {spent:.6g} spent on this question before" if spent else ""
            raise _terms_error(
                f"the terms ask for a report with epsilon0 = {epsilon0:.6g}{earlier}, more than "
                f"max_epsilon0 = {self.most_epsilon0:g}"
            )

    def allowed_absences(self, terms: Terms) -> int:
        """Return after how many absences the user still hands in."""
        if self.most_absences is None:
            return terms.rounds // _SHARE_OF_ABSENCES
        return self.most_absences

    def require_roster(self, roster: Roster) -> None:
        """Raise `ProtocolError` unless the user agrees to a roster."""
        if roster.num_registered < self.least_users:
            raise ProtocolError(
                f"{roster.num_registered} users have registered, fewer than least_users = "
                f"{self.least_users}",
                fault=Fault.RELAY,
                reason=Reason.LIMIT,
            )
        if self.roster_digest not in (None, roster.digest()):
            raise ProtocolError(
                f"the relay shows a roster with the digest {roster.digest().hex()}, not the one "
                "that is required: do not trust the relay",
                fault=Fault.RELAY,
                reason=Reason.MISMATCH,
            )


def traffic_bytes(terms: Terms, graph: Graph, node: int) -> float:
    """Return the expected bytes that a user sends and receives if all are there in all rounds.

    Parameters
    ----------
    terms, graph, node
        See `Limits.require_terms`.

    Notes
    -----
    Envelopes, their codes and the roster; heads and tokens, some 100 bytes a message, are not
    counted.
    """
    # Sizes of envelopes fall linearly from round to round, or stay.
    sizes = (terms.envelope_bytes_in(1) + terms.envelope_bytes_in(terms.rounds)) / 2
    row = graph.neighbours[graph.starts[node] : graph.starts[node + 1]].tolist()
    degrees = graph.degrees
    if terms.per_neighbour:
        envelopes = 2.0 * terms.per_neighbour * len(row)
    else:
        came = sum(terms.slots[other] / int(degrees[other]) for other in row)
        envelopes = terms.slots[node] + came
    of_rounds = terms.rounds * (envelopes * sizes + 2 * CODE_BYTES * len(row))
    return of_rounds + terms.num_users * registration_bytes(terms)


def _terms_error(message: str, reason: Reason = Reason.LIMIT) -> ProtocolError:
    """Return an error about terms that a user does not agree to."""
    return ProtocolError(message, fault=Fault.ANALYZER, reason=reason)


#: Those of a user who says nothing else.
DEFAULT_LIMITS: Final = Limits()
