"""Privacy of an exchange: messages enough for every report, and the guarantee of how it went.

*Loads.* The number of reports that user u holds after r rounds is a sum of independent indicators,
one a report, with mean load_u(r) = sum_i P_i(u). With P(S >= k) for such a sum S of mean m:

- for k >= m + 1 it is at most the tail of a binomial count of the same mean (Hoeffding, "On the
  distribution of the number of successes in independent trials", 1956, Theorem 4), which is at most
  the tail of a Poisson one (Anderson and Samuels, "Some inequalities among binomial and Poisson
  probabilities", 1967, Theorem 2.1);
- the same holds with a Poisson number of reports more, as dummies are: the law of a sum of many
  indicators tends to it;
- for a Poisson count it is at most e^-m m^k / k! * (k + 1) / (k + 1 - m): the terms after the
  first fall at least as fast as powers of m / (k + 1).

A union bound over users and rounds gives a number of messages that no user exceeds, except with a
probability t; delta grows by (1 + e^epsilon) t at most. Cost of each bound: O(rounds (n + m)).

*Users who leave for good*, with the victim's law P'_v = P_v(. | H) on the holders H who handed in,
and kappa_i with P_i >= kappa_i Q for a law Q on H: any bound of network shuffling for these.
*Proof.* Reveal whether the victim's report ends in H; that does not depend on its value. If so its
holder has the law P'_v. Report i is drawn from Q with probability kappa_i, otherwise from the rest
of P_i, perhaps unseen, which reveals less than if it were seen.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.checks import require_at_least, require_delta, require_open_unit
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.progress import Progress
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import Hiding, NetworkMixing
from shuffledp.network.mixing import Terms as Asked
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.run import ExchangeFacts, facts_of_walk, local_cautions
from shuffledp.network.walk import LEAST_PROBABILITY, RandomWalk, move_laws
from shuffledp.peers.mail import Collected
from shuffledp.peers.terms import Terms

# Sums of n products, each with a relative error of some units in the last place, over all rounds:
# far below this for any graph in memory and fewer than 10^5 rounds.
_ROUNDING = 1e-9


def messages_for(
    graph: Graph,
    *,
    rounds: SupportsIndex,
    laziness: float = 0.0,
    even_traffic: bool = False,
    failure: float = 1e-9,
    reports_each: float = 1.0,
) -> tuple[Integers, int]:
    """Return the number of messages that each user sends a round, and to each neighbour.

    Both are at least 1; the latter is 0 unless traffic is even: then all users send each neighbour
    the same number, and the traffic that the relay sees does not depend on the paths of reports.

    No user ever holds more reports, nor has more for one neighbour, except with probability
    ``failure``, if all users register and nobody is absent; otherwise see `overload_probability`.
    Each user begins with one report, or with dummies ``reports_each`` on average.

    >>> pair = Graph.from_edges([(0, 1)])
    >>> messages_for(pair, rounds=1)  # 1 report at each, always, but the bound cannot see it
    (array([12, 12]), 0)
    """
    number = require_at_least("rounds", rounds, 1)
    allowed = require_open_unit("failure", failure) / (2 if even_traffic else 1)
    loads = mean_loads(RandomWalk(graph, laziness=laziness), number).max(axis=0)
    loads *= reports_each * (1.0 + _ROUNDING)
    slots = _smallest_slots(loads, allowed / (graph.num_users * (number + 1)))
    if not even_traffic:
        return slots, 0
    to_each = (loads / np.maximum(graph.degrees, 1)).max()
    return slots, int(_smallest_slots(to_each, allowed / (max(2 * graph.num_edges, 1) * number)))


def overload_probability(
    walk: RandomWalk,
    loads: Floats,
    slots: ArrayLike,
    *,
    per_neighbour: int,
    handed_in: NDArray[np.bool_],
) -> float:
    """Return an upper bound on the probability that dropped reports affect the privacy guarantee.

    1 + e^epsilon times it must be added to delta: surplus reports are dropped, and their
    destinations are then no longer drawn independently. A user drops them when drawing a batch,
    from the reports held after the round before, or a hand-in. A batch that the relay refused was
    drawn as well, so rounds that a user missed count, too; but reports that users drop after their
    last accepted batch are lost with them, unless they hand in.

    ``walk`` has the absences of each round, ``loads`` are its `mean_loads`, and ``handed_in`` marks
    the users whose hand-ins came.
    """
    sent_later = np.vstack([~np.array(walk.absences), handed_in])[::-1]
    draws = np.maximum.accumulate(sent_later)[::-1]
    tails = np.exp(_log_tails(loads, np.add(slots, 1.0)))
    total = math.fsum(tails[draws])
    if per_neighbour:
        degrees = walk.graph.degrees
        to_each = np.exp(_log_tails(loads[:-1] / np.maximum(degrees, 1), per_neighbour + 1.0))
        total += math.fsum((to_each * degrees)[draws[:-1]])
    return min(total * (1.0 + _ROUNDING), 1.0)


def loss_probability(load: Floats, missing: int) -> float:
    """Return an upper bound on the probability that users of these loads hold ``missing`` reports.

    Each report is at one of them or not, independently of the others, so that the tail bound of
    this module applies to their number.
    """
    return float(np.exp(_log_tails(load.sum() * (1.0 + _ROUNDING), float(missing))))


def mean_loads(walk: RandomWalk, rounds: int) -> Floats:
    """Return upper bounds on the mean number of reports at each user after 0, ..., rounds rounds.

    Each user begins with one report.
    """
    loads, flushed = np.ones((rounds + 1, walk.num_users)), 0
    for number in range(rounds):
        loads[number + 1] = loads[number]
        flushed += move_laws(walk, loads[number + 1], number, number + 1)
    return loads * (1.0 + _ROUNDING) + flushed * LEAST_PROBABILITY


def _log_tails(means: Any, least: Any) -> Floats:
    """Return logs of upper bounds on P(sum of independent indicators of a mean >= least)."""
    from scipy.special import gammaln

    means = np.asarray(means, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # there the bound is 1
        logs = least * np.log(means) - means - gammaln(least + 1.0)
        logs += np.log((least + 1.0) / (least + 1.0 - means))
    rounded = np.minimum(logs * (1.0 - _ROUNDING) + _ROUNDING, 0.0)
    return np.where(least < means + 1.0, 0.0, rounded)


def _smallest_slots(means: Any, allowed: float) -> Integers:
    """Return the smallest number of slots, >= 1, that suffices for these means."""
    slots = np.ones(np.shape(means), dtype=np.int64)
    while (lacks := _log_tails(means, slots + 1.0) > math.log(allowed)).any():
        slots += lacks
    return slots


# --------------------------------------------------------------------- account
# Overloads are charged for at an epsilon this much above the one found with a smaller charge.
_CHARGED = 1.01

# Losses less likely than this are not explained by the holders who handed in nothing.
_UNLIKELY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """Reports that came to the analyzer, and the holders' confirmations of their deliveries."""

    # Reports that opened and are valid, each counted once.
    num_reports: int
    # Nodes whose hand-ins opened, ascending.
    handed_in: NDArray[np.int64]
    # By holder with losses: the round in which they were noticed.
    short_since: tuple[int, ...] = ()
    # Number of holders to whom the relay showed another record of absences than to the analyzer.
    num_contradicting: int = 0

    @property
    def num_confirmed(self) -> int:
        """Number of holders who confirm complete deliveries, and the relay's record."""
        return self.handed_in.size - len(self.short_since) - self.num_contradicting

    def doubts(self, terms: Terms, num_registered: int, kept: Floats) -> tuple[str, ...]:
        """Return reasons why losses may depend on owners of reports (docs/results/honest-users.md).

        ``kept`` is the mean number of reports at each user who handed in nothing.
        """
        usual = num_registered * terms.dummies_each
        stray = 7.0 * math.sqrt(usual) + 14.0 if usual else 0.0  # exceeded less often than 1e-9
        missing = num_registered + max(math.floor(usual - stray), 0) - self.num_reports
        surplus = self.num_reports - num_registered - math.ceil(usual + stray)
        senders = "users and their dummies" if usual else "users"
        is_loss = terms.protocol == "all" and missing > 0
        chance = loss_probability(kept, missing) if is_loss else 1.0
        found = {
            f"{len(self.short_since):,} users report that mail to them or to users before "
            f"them was missing, since round {min(self.short_since, default=0)}": self.short_since,
            f"the relay showed {self.num_contradicting:,} users another record of absences "
            "than the analyzer": self.num_contradicting,
            f"there are {surplus:,} reports more than {senders}, made up by somebody": surplus > 0,
            f"{missing:,} reports are missing, more than the {kept.size:,} users "
            "held who handed in nothing": chance < _UNLIKELY,
        }
        return tuple(text for text, applies in found.items() if applies)


_ASSUMPTIONS = (
    "All who handed in confirmed the relay's record of who was absent in which round, and that "
    "nothing sent to them was missing. So reports are missing with holders who handed in nothing, "
    "and with nobody else; this rests on the confirmations being honest.",
    "Whether a user is absent from a round, or hands in, depends neither on anybody's value nor on "
    "which reports, from whom, the user holds.",
    "The relay does not play users itself, and no user tells what passed through their hands.",
)

# A report went along one of the sent envelopes, so their destinations reveal something.
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
    """Users who took part in an exchange, and their absences."""

    # Nodes that registered, ascending.
    nodes: NDArray[np.int64]
    # Users who sent nothing, a row a round; users who never registered are absent in all rounds.
    absences: NDArray[np.bool_]

    @classmethod
    def of(cls, terms: Terms, nodes: Iterable[int], absent: Any) -> "ExchangeRecord":
        """Return the record from the roster's nodes and the relay's lists of absent ones."""
        registered = np.asarray(sorted(nodes), dtype=np.int64)
        absences = np.zeros((terms.rounds, terms.num_users), dtype=bool)
        try:
            for row, away in zip(absences, absent, strict=True):
                numbers = np.asarray(away, dtype=np.int64)
                row[np.where(numbers < 0, row.size, numbers)] = True  # IndexError if below 0
        except (TypeError, ValueError, OverflowError, IndexError):
            raise DataError("the relay's record of absences cannot be read: ask it again") from None
        if not np.delete(absences, registered, axis=1).all():
            raise DataError("the relay's record does not fit its roster: it cannot be trusted")
        return cls(nodes=registered, absences=absences)

    @property
    def num_absences(self) -> int:
        """Number of rounds in which a registered user sent nothing, over all users."""
        return int(np.count_nonzero(self.absences[:, self.nodes]))


class Exchange:
    """An exchange as it went: the walk of the registered users, with their absences.

    Given registrations and absences, reports move independently: in a round that a user misses all
    the reports they hold stay. Reports of users who hand in nothing are not seen.
    ``num_dishonest`` users hide nobody. Cost: exact laws if a registered user was absent, so
    O(rounds m) for each user; otherwise as `NetworkMixing`.
    """

    def __init__(
        self,
        terms: Terms,
        graph: Graph,
        record: ExchangeRecord,
        arrived: Arrived,
        *,
        num_dishonest: SupportsIndex = 0,
        on_progress: Progress | None = None,
    ) -> None:
        self.terms, self.graph, self.record, self._report = terms, graph, record, on_progress
        self.num_dishonest = require_at_least("num_dishonest", num_dishonest, 0)
        # If nobody registered, one user stands for them: neither can hide anything.
        nodes = record.nodes if record.nodes.size else np.zeros(1, np.int64)
        self.users, away = graph.subgraph(nodes), record.absences[:, nodes]
        self._walk = RandomWalk(self.users, absences=list(away), laziness=terms.laziness)
        loads = mean_loads(self._walk, terms.rounds)
        loads *= (1.0 + terms.dummies_each) * (1.0 + 1e-12)
        self.most_held = float(loads[-1].max())
        seen = np.isin(nodes, arrived.handed_in)
        kept = loads[-1][~seen]
        self.mean_kept = float(kept.sum())  # with the users who handed in nothing
        self.doubts = arrived.doubts(terms, record.nodes.size, kept)
        self.overload = overload_probability(
            self._walk,
            loads,
            np.array(terms.slots)[nodes],
            per_neighbour=terms.per_neighbour,
            handed_in=seen,
        )
        self._seen = None if seen.all() or not record.num_absences else seen
        try:
            self.mixing: NetworkMixing | None = NetworkMixing(
                self.users, laziness=terms.laziness, on_progress=on_progress
            )
        except ParameterError:
            self.mixing = None  # bipartite or in pieces: exact laws give its bounds

    @property
    def can_hide(self) -> bool:
        """True if there are other users among whom a report may hide, as far as is known here.

        Reports lost with holders who handed in nothing do no harm: the analyzer's view can be
        computed from the view with them (docs/results/honest-users.md).
        """
        return self.num_honest >= 2 and not self.doubts

    @property
    def num_honest(self) -> int:
        """Number of registered users who are counted as honest; at least the victim."""
        return max(self.users.num_users - self.num_dishonest, 1)

    @cached_property
    def hiding(self) -> Hiding:
        """Crowd that hides a report: users whose reports came, or all, whichever proves more."""
        if self.mixing is not None and not self.record.num_absences:
            bounds = self.mixing.position_bounds(self.terms.rounds)
        else:
            (bounds,) = exact_position_bounds(
                self._walk, [self.terms.rounds], seen=self._seen, on_progress=self._report
            )
        compared = [each for each in (bounds, bounds.given) if each is not None]
        return max(map(Hiding, compared), key=lambda each: float(each.overlaps.sum()))

    def delta_left(self, delta: float, epsilon: float = 0.0) -> float:
        """Return delta less what an overload may add at ``epsilon``; rounded down, possibly < 0.

        Laws that differ from P and Q with probability t have a divergence of at most
        H(P, Q; e) + (1 + e) t. Whether there is an overload depends on paths, which also decide who
        is where: given that there is none, reports no longer move independently.
        """
        cost = (1.0 + math.exp(min(epsilon, 700.0))) * self.overload
        return (delta - cost) * (1.0 - 1e-12)

    def epsilon(self, profile: LocalProfile, *, delta: float, with_dummies: bool = True) -> Bound:
        """Bound the central epsilon; what an overload may add is taken off delta."""
        charged = 0.0
        while self.can_hide and (left := self.delta_left(delta, charged)) > 0.0:
            asked = self.asked(left, with_dummies=with_dummies)
            bound = self.hiding.epsilon(profile, with_lower=False, **asked)
            # Without a crowd nothing is lost by an overload: reports are dropped unseen.
            if bound.upper <= charged or bound.method == "local" or not self.overload:
                relay = _RELAY_MAY_TELL if self.terms.per_neighbour else _RELAY_KEEPS_QUIET
                return bound.assuming(relay, *_ASSUMPTIONS)
            charged = min(_CHARGED * bound.upper, max(profile.epsilon0, bound.upper))
        # The guarantee of the randomizer alone, and the reasons for it.
        return Bound(
            lower=None,
            upper=profile.epsilon0 if profile.delta0 <= delta else float("inf"),
            method="local randomizer alone",
            source="; ".join(["definition", *self._obstacles(delta)]),
            assumptions=(),
        )

    def asked(self, left: float, *, with_dummies: bool = True) -> Asked:
        """Return options of the walk's account, given the delta left.

        Dummies walk as reports do; if absent users handed in nothing the dummies are not counted.
        """
        protocol, dishonest = self.terms.protocol, self.num_dishonest
        law = self.terms.dummies if with_dummies and self._seen is None else None
        return Asked(delta=left, protocol=protocol, num_dishonest=dishonest, dummies=law)

    def _obstacles(self, delta: float) -> list[str]:
        """Return the reasons why the walk has no account."""
        found = {
            f"the chance that somebody held more reports than messages may be {self.overload:.2g}, "
            f"which leaves nothing of delta = {delta:g}": self.delta_left(delta) <= 0.0,
            "there are no two honest users": self.num_honest < 2,
        }
        return [*(text for text, applies in found.items() if applies), *self.doubts]

    def cautions(self, profile: LocalProfile, guarantee: Guarantee) -> tuple[str, ...]:
        """Return a warning, with the reasons, if no more than the local guarantee is proved."""
        found = local_cautions(profile, guarantee, self._obstacles(guarantee.delta_upper))
        depends = " What is missing may depend on who sent it." if self.doubts else ""
        return tuple(each + depends for each in found)

    def guarantee(
        self, profile: LocalProfile, *, delta: float, with_dummies: bool = True
    ) -> Guarantee:
        """Return the central guarantee of the hand-ins, its epsilon rounded up.

        It has no lower end: losses on the way may have made the release more private than any bound
        can show. It holds for every honest user who registered, whichever users handed in nothing
        at the end. It is epsilon0 if reports may be missing because of their owners.
        """
        require_delta(delta)
        epsilon = self.epsilon(profile, delta=delta, with_dummies=with_dummies)
        return Guarantee(epsilon=epsilon, delta=float(delta), num_users=self.num_honest)


def exchange_facts(
    exchange: Exchange,
    profile: LocalProfile,
    guarantee: Guarantee,
    *,
    graph_name: str,
    collected: Collected,
) -> ExchangeFacts | None:
    """Return the facts of a report on an exchange; None if fewer than two users registered.

    Epsilons are proved upper bounds, the gap is rounded down (0 if reports never mix) and the
    separation up.
    """
    if not exchange.can_hide:
        return None
    terms, graph, users = exchange.terms, exchange.graph, exchange.users
    hiding = exchange.hiding
    num_empty = collected.num_hand_ins - len(collected.reports)
    return ExchangeFacts(
        graph=graph_name,
        rounds=terms.rounds,
        protocol=terms.protocol,
        laziness=terms.laziness,
        num_self_loops=graph.num_self_loops,
        num_duplicates=graph.num_duplicates,
        are_rounds_chosen=False,
        spectral_gap=0.0 if exchange.mixing is None else exchange.mixing.spectrum.spectral_gap,
        worst_user=graph.name_of(int(exchange.record.nodes[hiding.worst_user])),
        most_held=exchange.most_held,
        num_released=len(collected.reports),
        num_dummies=max(num_empty, 0) if terms.protocol == "single" else 0,
        num_invited=terms.num_users,
        num_handed_in=collected.num_hand_ins,
        num_absences=exchange.record.num_absences,
        num_dishonest=exchange.num_dishonest,
        is_traffic_even=terms.per_neighbour > 0,
        overload=exchange.overload,
        **facts_of_walk(users, hiding, profile, guarantee),
    )
