"""Anonymity of the worst-off user's report, from bounds on positions, and its guarantee."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Required, TypedDict, Unpack

import numpy as np

from shuffledp.amplification.registry import account_epsilon, least_over
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.bound import Bound
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.profile import LocalProfile
from shuffledp.network.positions.bounds import FEW_ROUNDINGS, PositionBounds
from shuffledp.network.privacy import (
    WeightedWalk,
    Weights,
    network_walk_delta,
    network_walk_epsilon,
)

ReportingProtocol = Literal["all", "single"]


class Terms(TypedDict, total=False):
    """Parameters of an account of an exchange, besides its rounds."""

    delta: Required[float]  # Central delta
    protocol: ReportingProtocol  # Whether holders hand in all reports, the default, or one
    num_dishonest: int  # Users whose reports hide nobody; by default none
    dummies: DummyLaw | None  # Dummies of each honest user; by default none


# Part of the claim if positions are not followed exactly.
_BY_EIGENVALUES = (
    "Positions are bounded by eigenvalues, whose certificate fails with probability 1e-12 at most "
    "over its fixed start vectors: the graph was not made with these in mind."
)

# A bound this near to a trusted shuffler's, relatively, is not worth a second one.
_NEAR = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiding:
    """Anonymity of the worst-off user's report after some rounds."""

    # For each other user the probability, by independent coins, with which their report hides the
    # report of *any* user at least as well as one in a uniform shuffle would; rounded down.
    overlaps: Floats
    # Upper bound on the probability of each user to hold the report at the end.
    position_law: Floats
    # Node whose position reveals most, as far as the bounds show.
    worst_user: int
    # 1 - the least of all ratios to the reference law, rounded up: 0 is perfectly mixed.
    separation: float
    # Bounds on the position of every report.
    bounds: PositionBounds

    @classmethod
    def of(cls, bounds: PositionBounds) -> "Hiding":
        """Return the anonymity that bounds imply for every user alike.

        For a victim v the overlap of user i is at least low_i / high_v (docs/results/network.md);
        the greatest high_v covers all victims. For any victim, the other users have all but one of
        the lows: leaving out the greatest covers that.
        """
        worst = int(np.argmax(bounds.high))
        highest = float(bounds.high[worst])
        overlaps = np.sort(np.clip(bounds.low * ((1.0 - FEW_ROUNDINGS) / highest), 0.0, 1.0))
        return cls(
            overlaps=overlaps[:-1],
            position_law=np.minimum(bounds.reference * highest, 1.0),
            worst_user=worst,
            separation=min(max(1.0 - float(bounds.low.min()), 0.0), 1.0),
            bounds=bounds,
        )

    def epsilon(
        self,
        profile: LocalProfile,
        *,
        known: float = math.inf,
        with_lower: bool = True,
        **terms: Unpack[Terms],
    ) -> Bound:
        """Bound the central epsilon for every user; see `NetworkMixing.epsilon`.

        An epsilon that is ``known`` to hold is not searched for again.
        """
        by_eigenvalues = () if self.bounds.method == "exact" else (_BY_EIGENVALUES,)
        bound = network_walk_epsilon(
            profile,
            overlaps=self.overlaps,
            position_law=self.position_law,
            with_lower=with_lower,
            **terms,
        ).assuming(*by_eigenvalues)
        if terms.get("dummies") is not None:
            # Dummies ignore the values: what holds without them holds with them.
            without = self.epsilon(profile, known=known, with_lower=False, **_bare(terms))
            return least_over([bound, without], bound.lower)
        enough = min(bound.upper, known)
        weighed = min(self._weighed_epsilon(profile, 1.0, enough, terms), enough)
        return bound.at_most(weighed, method="network-walk/weighted")

    def epsilon_of_share(
        self, profile: LocalProfile, share: float, **terms: Unpack[Terms]
    ) -> float:
        """Return an upper bound on epsilon for at least this share of the users, in (0, 1]."""
        users = Weighing(self.bounds, profile, terms).hidden_best(share)
        overlaps = np.clip(_low(self.bounds) / float(self.bounds.high[users].max()), 0.0, 1.0)
        found = network_walk_epsilon(profile, overlaps=overlaps, with_lower=False, **terms)
        if terms.get("dummies") is not None:
            return min(found.upper, self.epsilon_of_share(profile, share, **_bare(terms)))
        return min(found.upper, self._weighed_epsilon(profile, share, found.upper, terms))

    def meets(self, profile: LocalProfile, *, epsilon: float, **terms: Unpack[Terms]) -> bool:
        """Return True if a central target is proved for every user."""
        weighing = Weighing(self.bounds, profile, terms)
        if not weighing.unmet(weighing.hidden_best(1.0), epsilon).size:
            return True
        asked: dict[str, Any] = {**terms}
        delta: float = asked.pop("delta")
        asked |= {"overlaps": self.overlaps, "position_law": self.position_law}
        return network_walk_delta(profile, epsilon=epsilon, scale=delta, **asked) <= delta

    def _weighed_epsilon(
        self, profile: LocalProfile, share: float, enough: float, terms: Terms
    ) -> float:
        """Return epsilon by the weighted blanket for a share of users; inf if it does not apply.

        It does not if ``enough`` is as good as a trusted shuffler already.
        """
        weighing = Weighing(self.bounds, profile, terms)
        if not terms["delta"] > 0.0 or enough <= (1.0 + _NEAR) * weighing.limit():
            return math.inf
        return weighing.worst_epsilon(weighing.hidden_best(share), enough)


# Relative accuracy with which the worst of many users is found.
_SLACK = 1e-5

# A smaller gain is not worth the search, a tenth of a second an evaluation.
_WORTH = 0.995

# Number of evaluations of delta after which the remaining users are accounted for together.
_MOST_EVALUATIONS = 40

# A group that misses a target is split: one part in this number is examined apart.
_PART = 4


@dataclass(eq=False)
class Weighing:
    """The weighted blanket of users' positions relative to one law Q."""

    bounds: PositionBounds
    profile: LocalProfile
    terms: Terms

    @cached_property
    def walk(self) -> WeightedWalk:
        """The blanket, with all users' overlaps."""
        delta, dishonest = self.terms["delta"], self.terms.get("num_dishonest", 0)
        return WeightedWalk(self.profile, _low(self.bounds), delta=delta, num_dishonest=dishonest)

    def limit(self) -> float:
        """Return epsilon of a trusted shuffler of these users."""
        count = max(self.bounds.low.size - self.terms.get("num_dishonest", 0), 1)
        delta = self.terms["delta"]
        return account_epsilon(self.profile, num_users=count, delta=delta, with_lower=False).upper

    def hidden_best(self, share: float) -> Integers:
        """Return a share of the users, without those whose position reveals most; worst first."""
        tilt = 0.0
        if share < 1.0:
            ratio = math.tanh(0.5 * min(self.profile.epsilon0, 1.0)) or 1.0
            tilt = 0.65 * self.limit() / ratio
        kept = max(math.ceil(share * self.bounds.low.size), 1)
        return np.argsort(-self.bounds.tells(tilt), kind="stable")[self.bounds.low.size - kept :]

    def is_met(self, users: Integers, epsilon: float) -> bool:
        """Return True if a target is proved for all these users."""
        return self.walk.delta(Weights(*self.bounds.weights(users)), epsilon) <= self.terms["delta"]

    def worst_epsilon(self, users: Integers, enough: float) -> float:
        """Return an epsilon that holds for each of some users, most exposed first; or ``enough``.

        The most exposed user is accounted for alone, and then any users who need more.
        """
        worst, group, delta = 0.0, users[:1], self.terms["delta"]
        if not self.is_met(group, _WORTH * enough):
            return enough
        while group.size and worst < _WORTH * enough:
            worst = max(worst, self.walk.epsilon(Weights(*self.bounds.weights(group)), delta))
            group = self.unmet(users[1:], (1.0 + _SLACK) * worst)
        return enough if group.size else min((1.0 + _SLACK) * worst, enough)

    def unmet(self, users: Integers, epsilon: float) -> Integers:
        """Return some of the users, most exposed first, for whom a target is not proved.

        A bound for weights that dominate a group's weights holds for each member; groups that miss
        the target are split, until there is one user, or too many evaluations were made.
        """
        pending, left = [users[1:], users[:1]], _MOST_EVALUATIONS
        while pending:
            group = pending.pop()
            left -= 1
            if not group.size or self.is_met(group, epsilon):
                continue
            if group.size == 1:
                return group
            if left <= 0:
                return np.concatenate([group, *pending])
            part = max(group.size // _PART, 1)
            pending += [group[part:], group[:part]]
        return np.empty(0, np.int64)


def _bare(terms: Terms) -> Terms:
    """Return the same terms without dummies."""
    return {**terms, "dummies": None}


def _low(bounds: PositionBounds) -> Floats:
    """Return overlaps of all users but one with the reference law, ascending, rounded down."""
    return np.sort(np.clip(bounds.low * (1.0 - FEW_ROUNDINGS), 0.0, 1.0))[:-1]
