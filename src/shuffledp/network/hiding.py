"""Who hides the worst-off user's report, as bounds on positions say, and what that guarantees."""

import math
from dataclasses import dataclass, replace
from typing import Literal, Required, TypedDict, Unpack

import numpy as np

from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.core.bound import Bound
from shuffledp.core.profile import LocalProfile
from shuffledp.core.reports import Floats, Indices
from shuffledp.network.positions import FEW_ROUNDINGS, PositionBounds
from shuffledp.network.privacy import (
    WeightedWalk,
    Weights,
    network_walk_delta,
    network_walk_epsilon,
)

ReportingProtocol = Literal["all", "single"]


class Terms(TypedDict, total=False):
    """What is asked of an exchange, besides its rounds."""

    delta: Required[float]  # Central failure probability
    protocol: ReportingProtocol  # Whether holders hand in all they hold, the default, or one
    num_dishonest: int  # Users whose reports hide nobody; by default none


# Part of the claim where positions are not followed exactly.
_BY_EIGENVALUES = (
    "Positions are bounded by eigenvalues, whose certificate fails with probability 1e-12 at most "
    "over its fixed start vectors: the graph was not made with these in mind."
)

# A bound this near a trusted shuffler's, relatively, is not worth a second one.
_NEAR = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiding:
    """Who hides the worst-off user's report after some rounds."""

    # For each other user a chance, by coins of their own, with which their report hides that of
    # *any* user at least as well as one in a uniform shuffle would; rounded down.
    overlaps: Floats
    # At least the chance of each user to hold it at the end.
    position_law: Floats
    # At least the chance that two independent copies of it end at one place.
    collision: float
    # Node whose position tells most, as far as the bounds say.
    worst_user: int
    # 1 - the least of all ratios to the reference law, rounded up: 0 is perfectly mixed.
    separation: float
    # Where every report may be.
    bounds: PositionBounds

    @classmethod
    def of(cls, bounds: PositionBounds) -> "Hiding":
        """Return what holds for every user alike.

        For a victim v the overlap of user i is at least low_i / high_v (docs/results/network.md);
        the greatest high_v covers all victims. Whoever is the victim, the other users have all
        but one of the lows: leaving out the greatest covers that.
        """
        worst = int(np.argmax(bounds.high))
        highest = float(bounds.high[worst])
        overlaps = np.sort(np.clip(bounds.low * ((1.0 - FEW_ROUNDINGS) / highest), 0.0, 1.0))
        return cls(
            overlaps=overlaps[:-1],
            position_law=np.minimum(bounds.reference * highest, 1.0),
            collision=float(bounds.collision.max()),
            worst_user=worst,
            separation=min(max(1.0 - float(bounds.low.min()), 0.0), 1.0),
            bounds=bounds,
        )

    def epsilon(
        self, profile: LocalProfile, *, with_lower: bool = True, **terms: Unpack[Terms]
    ) -> Bound:
        """Bound the central epsilon for every user; see `NetworkMixing.epsilon`."""
        bound = network_walk_epsilon(
            profile,
            overlaps=self.overlaps,
            position_law=self.position_law,
            with_lower=with_lower,
            **terms,
        )
        weighed = self._weighed_epsilon(profile, 1.0, bound.upper, terms)
        if weighed < bound.upper:
            lower = bound.lower if bound.lower is None else min(bound.lower, weighed)
            bound = replace(bound, lower=lower, upper=weighed, method="network-walk/weighted")
        by_eigenvalues = () if self.bounds.method == "exact" else (_BY_EIGENVALUES,)
        return replace(bound, assumptions=bound.assumptions + by_eigenvalues)

    def epsilon_of_share(
        self,
        profile: LocalProfile,
        share: float,
        *,
        for_all: float = math.inf,
        **terms: Unpack[Terms],
    ) -> float:
        """Return an epsilon for at least this share of the users, in (0, 1]; rounded up.

        What is known to hold ``for_all`` of them is not searched for again.
        """
        users = self._hidden_best(self.bounds, profile, share, terms)
        overlaps = np.clip(_low(self.bounds) / float(self.bounds.high[users].max()), 0.0, 1.0)
        found = network_walk_epsilon(profile, overlaps=overlaps, with_lower=False, **terms)
        hidden = min(found.upper, for_all)
        return min(hidden, self._weighed_epsilon(profile, share, hidden, terms))

    def meets(
        self, profile: LocalProfile, *, epsilon: float, share: float = 1.0, **terms: Unpack[Terms]
    ) -> bool:
        """Tell whether a central target is proved to be met for this share of the users."""
        for bounds in self._choices:
            users = self._hidden_best(bounds, profile, share, terms)
            walk = _weighted(bounds, profile, terms)
            if not unmet(walk, bounds, users, epsilon=epsilon, delta=terms["delta"]).size:
                return True
        found = network_walk_delta(
            profile,
            overlaps=self.overlaps,
            epsilon=epsilon,
            position_law=self.position_law,
            protocol=terms.get("protocol", "all"),
            num_dishonest=terms.get("num_dishonest", 0),
            with_lower=False,
        )
        return found.upper <= terms["delta"]

    @property
    def _choices(self) -> tuple[PositionBounds, ...]:
        """Bounds relative to different laws Q, each of which will do."""
        lowered = self.bounds.lowered
        return (self.bounds,) if lowered is None else (self.bounds, lowered)

    def _limit(self, profile: LocalProfile, terms: Terms) -> float:
        """Return what a trusted shuffler of these users gives."""
        count = max(self.bounds.low.size - terms.get("num_dishonest", 0), 1)
        delta = terms["delta"]
        return account_epsilon(profile, num_users=count, delta=delta, with_lower=False).upper

    def _hidden_best(
        self, bounds: PositionBounds, profile: LocalProfile, share: float, terms: Terms
    ) -> Indices:
        """Return a share of the users, without those whose position tells most; these first."""
        tilt = 0.0
        if share < 1.0:
            ratio = math.tanh(0.5 * min(profile.epsilon0, 1.0)) or 1.0
            tilt = 0.65 * self._limit(profile, terms) / ratio
        kept = max(math.ceil(share * bounds.low.size), 1)
        return np.argsort(-bounds.tells(tilt), kind="stable")[bounds.low.size - kept :]

    def _weighed_epsilon(
        self, profile: LocalProfile, share: float, enough: float, terms: Terms
    ) -> float:
        """Return what the weighted blanket proves for a share of users; inf where it cannot help.

        It cannot where ``enough`` is as good as a trusted shuffler already.
        """
        delta = terms["delta"]
        if not delta > 0.0 or enough <= (1.0 + _NEAR) * self._limit(profile, terms):
            return math.inf
        least = math.inf
        for bounds in reversed(self._choices):  # the lowered law mostly proves more
            walk = _weighted(bounds, profile, terms)
            if walk.is_known:
                users = self._hidden_best(bounds, profile, share, terms)
                # A second law is looked at where it may gain a thousandth on the first.
                known = enough if least == math.inf else least * (_WORTH_A_SECOND / _WORTH)
                least = min(least, worst_epsilon(walk, bounds, users, delta=delta, enough=known))
        return least


def _low(bounds: PositionBounds) -> Floats:
    """Return overlaps of all users but one with the reference law, rising, rounded down."""
    return np.sort(np.clip(bounds.low * (1.0 - FEW_ROUNDINGS), 0.0, 1.0))[:-1]


def _weighted(bounds: PositionBounds, profile: LocalProfile, terms: Terms) -> WeightedWalk:
    """Return the weighted blanket over the reference law."""
    dishonest = terms.get("num_dishonest", 0)
    return WeightedWalk(profile, _low(bounds), delta=terms["delta"], num_dishonest=dishonest)


# The worst of many users is found to within this, relatively.
_SLACK = 1e-5

# What gains less than half a percent is not worth the search, a tenth of a second an evaluation.
_WORTH, _WORTH_A_SECOND = 0.995, 0.999

# So many evaluations of delta, and those left are accounted for together.
_MOST_EVALUATIONS = 40

# Of a group that does not meet a target, this part is looked at apart.
_PART = 4


def weights_of(bounds: PositionBounds, users: Indices) -> Weights:
    """Return weights that dominate those of some users."""
    values, masses, missed = bounds.weights(users)
    return Weights(values, masses, bounds.error, missed)


def worst_epsilon(
    walk: WeightedWalk, bounds: PositionBounds, users: Indices, *, delta: float, enough: float
) -> float:
    """Return an epsilon that holds for each of some users, most telling first; ``enough`` at most.

    The most telling user is accounted for alone, and then whoever needs more.
    """
    if walk.delta(weights_of(bounds, users[:1]), _WORTH * enough) > delta:
        return enough
    worst, group = 0.0, users[:1]
    while group.size and worst < _WORTH * enough:
        worst = max(worst, walk.epsilon(weights_of(bounds, group), delta))
        group = unmet(walk, bounds, users[1:], epsilon=(1.0 + _SLACK) * worst, delta=delta)
    return enough if group.size else min((1.0 + _SLACK) * worst, enough)


def unmet(
    walk: WeightedWalk, bounds: PositionBounds, users: Indices, *, epsilon: float, delta: float
) -> Indices:
    """Return some of the users, most telling first, for whom a target is not proved to be met.

    Whatever holds for weights that dominate those of a group holds for each of it; groups whose
    common weights do worse are split, until there is one user, or that was done often enough.
    """
    pending, left = [users[1:], users[:1]], _MOST_EVALUATIONS
    while pending:
        group = pending.pop()
        left -= 1
        if not group.size or walk.delta(weights_of(bounds, group), epsilon) <= delta:
            continue
        if group.size == 1:
            return group
        if left <= 0:
            return np.concatenate([group, *pending])
        part = max(group.size // _PART, 1)
        pending += [group[part:], group[:part]]
    return np.empty(0, np.int64)
