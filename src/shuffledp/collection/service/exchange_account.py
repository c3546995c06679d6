"""What an exchange guarantees as it went: with those who registered, and those who were away."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.datasets.column import Progress
from shuffledp.collection.network_mixing import Hiding, NetworkMixing
from shuffledp.collection.protocol.slots import overload_probability
from shuffledp.collection.protocol.terms import Terms
from shuffledp.collection.results import Guarantee
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_delta
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.mechanisms.networks.graph import Graph
from shuffledp.mechanisms.networks.random_walk import RandomWalk
from shuffledp.privacy.amplification.network_walk import network_walk_epsilon

_ASSUMPTIONS = (
    "The relay's record of who was absent in which round is right, and neither absences nor "
    "dropped messages depend on anybody's value.",
    "The relay does not play users itself, and no user tells what passed through their hands.",
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


def exchange_guarantee(
    terms: Terms,
    graph: Graph,
    record: ExchangeRecord,
    profile: LocalProfile,
    *,
    delta: float,
    on_progress: Progress | None = None,
) -> Guarantee:
    """Return the central guarantee of what was handed in.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    record : ExchangeRecord
        Who took part.
    profile : LocalProfile
        The randomizer's law.
    delta : float
        Central failure probability, in [0, 1).
    on_progress : callable, optional
        Called with the stage, the steps done and the steps in total.

    Returns
    -------
    Guarantee
        Whose epsilon is rounded up, and has no lower end: what was lost on the way may have made
        the release more private than any bound can say. It holds for every registered user,
        whoever handed in nothing at the end: the analyzer's view is made from that of all.

    Raises
    ------
    ParameterError
        If delta is out of range.

    Notes
    -----
    Given who registered and who was away when, reports move independently: the walk is that on the
    graph of the registered users, and in a round that a user misses all reports that he holds stay.
    The chance that somebody ever held more reports than messages to send (`overload_probability`)
    is taken off delta. Cost: exact laws where anybody was away or did not register, so
    O(rounds m) for each user; otherwise as `NetworkMixing`.
    """
    require_delta(delta)
    users = max(int(record.nodes.size), 1)
    registered = np.zeros(terms.num_users, dtype=bool)
    registered[record.nodes] = True
    overload = overload_probability(
        graph,
        rounds=terms.rounds,
        slots=terms.slots,
        laziness=terms.laziness,
        per_neighbour=terms.per_neighbour,
        absences=record.absences,
        registered=registered,
    )
    left = (delta - overload) * (1.0 - 1e-12)
    if users < 2 or left <= 0.0:
        return Guarantee(epsilon=_local(profile, delta, overload), delta=delta, num_users=users)
    bound = _epsilon(terms, graph, record, profile, delta=left, on_progress=on_progress)
    assumptions = (*bound.assumptions, *_ASSUMPTIONS)
    return Guarantee(
        epsilon=replace(bound, assumptions=assumptions), delta=float(delta), num_users=users
    )


def _epsilon(
    terms: Terms,
    graph: Graph,
    record: ExchangeRecord,
    profile: LocalProfile,
    *,
    delta: float,
    on_progress: Progress | None,
) -> Bound:
    """Return the central epsilon of the exchange at a delta > 0."""
    is_whole = not record.absences.any()
    if is_whole:
        try:
            mixing = NetworkMixing(graph, laziness=terms.laziness, on_progress=on_progress)
            return mixing.epsilon(
                profile,
                rounds=terms.rounds,
                delta=delta,
                protocol=terms.protocol,
                with_lower=False,
            )
        except ParameterError:
            pass  # bipartite or in pieces: exact laws say what it is worth all the same
    from shuffledp.mechanisms.networks.position_bounds import exact_position_bounds

    walk = RandomWalk.with_absences(
        graph.subgraph(record.nodes),
        record.absences[:, record.nodes],
        laziness=terms.laziness,
    )
    (bounds,) = exact_position_bounds(walk, [terms.rounds], on_progress=on_progress)
    hiding = Hiding.of(bounds)
    return network_walk_epsilon(
        profile,
        overlaps=hiding.overlaps,
        missed=hiding.missed,
        delta=delta,
        protocol=terms.protocol,
        position_law=bounds.greatest,  # at least every victim's own law
        with_lower=False,
    )


def _local(profile: LocalProfile, delta: float, overload: float) -> Bound:
    """Return what the randomizer alone guarantees."""
    upper = profile.epsilon0 if profile.delta0 <= delta else float("inf")
    return Bound(
        lower=None,
        upper=upper,
        method="local randomizer alone",
        source=f"definition; overload probability {overload:.3g}",
        assumptions=(),
    )
