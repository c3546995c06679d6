"""The worst of some users of a network, without accounting for each of them."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.network.privacy.weighted_walk import WeightedWalk, Weights

if TYPE_CHECKING:
    from shuffledp.network.positions.position_bounds import PositionBounds

# The worst of many users is found to within this, relatively.
_SLACK = 1e-5

# What gains less than a thousandth is not worth the search.
_WORTH = 0.999

# So many evaluations of delta, and those left are accounted for together.
_MOST_EVALUATIONS = 40

# Of a group that does not meet a target, this part is looked at apart.
_PART = 4


def weights_of(bounds: "PositionBounds", users: NDArray[np.int64]) -> Weights:
    """Return weights that dominate those of some users."""
    values, masses, missed = bounds.weights(users)
    return Weights(values=values, masses=masses, accuracy=bounds.error, missed=missed)


def worst_epsilon(
    walk: WeightedWalk,
    bounds: "PositionBounds",
    users: NDArray[np.int64],
    *,
    delta: float,
    enough: float,
) -> float:
    """Return an epsilon that holds for each of some users; ``enough`` at most.

    Parameters
    ----------
    walk : WeightedWalk
        The crowd.
    bounds : PositionBounds
        Where reports may be.
    users : ndarray of int64
        At least one, most telling first.
    delta : float
        In (0, 1).
    enough : float
        An epsilon known to hold: the search ends there.

    Notes
    -----
    Whatever holds for weights that dominate those of a group holds for each of it. The most
    telling user is accounted for alone; groups whose common weights do worse are split.
    """
    if walk.delta(weights_of(bounds, users[:1]), _WORTH * enough) > delta:
        return enough
    worst = walk.epsilon(weights_of(bounds, users[:1]), delta)
    pending, left = [users[1:]], _MOST_EVALUATIONS
    while pending and worst < _WORTH * enough:
        group = pending.pop()
        left -= 1
        wide = (1.0 + _SLACK) * worst
        if not group.size or walk.delta(weights_of(bounds, group), wide) <= delta:
            continue
        if left <= 0:
            group = np.concatenate([group, *pending])
            pending = []
        if left <= 0 or group.size == 1:
            worst = max(worst, walk.epsilon(weights_of(bounds, group), delta))
            continue
        part = max(group.size // _PART, 1)
        pending += [group[part:], group[:part]]
    return enough if pending else min((1.0 + _SLACK) * worst, enough)


def meets_epsilon(
    walk: WeightedWalk,
    bounds: "PositionBounds",
    users: NDArray[np.int64],
    *,
    epsilon: float,
    delta: float,
) -> bool:
    """Tell whether a target is proved to be met for each of some users, most telling first."""
    pending, left = [users[1:], users[:1]], _MOST_EVALUATIONS
    while pending:
        group = pending.pop()
        left -= 1
        if not group.size or walk.delta(weights_of(bounds, group), epsilon) <= delta:
            continue
        if group.size == 1 or left <= 0:
            return False
        part = max(group.size // _PART, 1)
        pending += [group[part:], group[:part]]
    return True
