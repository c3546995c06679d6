"""Explicit neighbours among idle users: the lower end of the central guarantee.

Everybody else never changes, so that all their reports are exactly uniform: M = n, and nothing is
lost to the blanket. The target's bit changes at q_1 < ... < q_k or at q_2 < ... < q_(k+1). At every
level the net increments of the two histories are counted node by node, and the linear part of the
difference of the two likelihoods is then a sum of n i.i.d. terms: a user's level is uniform, and
given the level the term is that of `pair_law`. Higher orders, if any, are subtracted. What remains
is a lower bound of the divergence of this pair, and so of delta.
"""

from collections import Counter
from dataclasses import replace

from shuffledp.core.monitoring_profile import MonitoringProfile
from shuffledp.monitoring.privacy.likelihoods import (
    MOST_USERS,
    ChangeLaw,
    Crowd,
    Overlap,
    has_higher_orders,
    higher_order_shift,
    linear_delta_lower,
    mixed_law,
    pair_law,
)

# Changes of the pair at most: a pair with fewer is a pair, too.
_MOST_CHANGES = 128

# e^epsilon beyond it is not worth looking at.
_LARGEST_EPSILON = 200.0

# What higher orders may cost, relative to delta, and the least that is worth computing.
_TAIL, _LEAST_TAIL = 0.01, 1e-30


def shifted_changes(max_changes: int, num_levels: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the periods of the changes of two histories of 2^(L-1) periods, spread evenly.

    Parameters
    ----------
    max_changes : int
        k >= 1.
    num_levels : int
        L >= 1.

    Returns
    -------
    first, second : tuple of int
        q_1, ..., q_k and q_2, ..., q_(k+1), from 1 on; ``(1,)`` and ``()`` in a single period. Of
        fewer changes where there are no k + 1 periods, and of at most 128.

    Examples
    --------
    >>> shifted_changes(3, 3)
    ((1, 2, 3), (2, 3, 4))
    """
    periods = 1 << (num_levels - 1)
    if periods == 1:
        return (1,), ()
    count = min(max_changes, periods - 1, _MOST_CHANGES)
    places = tuple(1 + i * periods // (count + 1) for i in range(count + 1))
    return places[:-1], places[1:]


def level_overlaps(
    first: tuple[int, ...], second: tuple[int, ...], num_levels: int
) -> list[Overlap]:
    """Return, for each level from the leaves up, how the net increments of two histories meet.

    Parameters
    ----------
    first, second : tuple of int
        Increasing periods in 1 to 2^(L-1) in which a bit changes that is 0 before.
    num_levels : int
        L >= 1.

    Returns
    -------
    list of Overlap
        Of length L.

    Examples
    --------
    >>> level_overlaps((1,), (2,), 2)
    [Overlap(opposite=0, first_only=1, second_only=1, same=0), \
Overlap(opposite=0, first_only=0, second_only=0, same=1)]
    """
    found = []
    for height in range(num_levels):
        nets = []
        for changes in (first, second):
            net: Counter[int] = Counter()
            for index, place in enumerate(changes):
                net[(place - 1) >> height] += 1 if index % 2 == 0 else -1
            nets.append(net)
        met = Counter((nets[0][node], nets[1][node]) for node in nets[0].keys() | nets[1].keys())
        found.append(
            Overlap(
                opposite=met[1, -1] + met[-1, 1],
                first_only=met[1, 0] + met[-1, 0],
                second_only=met[0, 1] + met[0, -1],
                same=met[1, 1] + met[-1, -1],
            )
        )
    return found


def unavoidable_delta(
    profile: MonitoringProfile, *, num_users: int, epsilon: float, level_hidden: bool
) -> float:
    """Return a delta that no analysis can go below, for the pair above; rounded down.

    Parameters
    ----------
    profile : MonitoringProfile
        With ``alternating`` increments, those of a bit.
    num_users : int
        n >= 1; 0 is returned above 1e10.
    epsilon : float
        At least 0; 0 is returned above 200.
    level_hidden : bool
        Whether the level of the target is hidden among all n.

    Returns
    -------
    float
        At least 0.

    Notes
    -----
    Errs downwards: terms are merged into conditional means, and the higher orders are taken at
    their worst. Cost: as `linear_delta_upper`, once for each different level if levels are seen.
    """
    if num_users > MOST_USERS or epsilon > _LARGEST_EPSILON:
        return 0.0
    levels = profile.num_levels
    changes = shifted_changes(profile.max_changes, levels)
    weights = Counter(level_overlaps(*changes, levels))
    # Products of more signs than the pair has changes do not occur.
    count = len(changes[0])
    profile = replace(
        profile, max_changes=count, sign_correlations=profile.sign_correlations[: count + 1]
    )
    laws = [pair_law(overlap, epsilon=epsilon) for overlap in weights]
    shares = [count / levels for count in weights.values()]
    if level_hidden:
        crowd = Crowd(num_users=num_users, share=1.0, num_levels=levels)
        return _part(profile, crowd, mixed_law(laws, shares), epsilon)
    crowd = Crowd(num_users=num_users, share=1.0 / levels, num_levels=1)
    total = sum(
        share * _part(profile, crowd, law, epsilon) for law, share in zip(laws, shares, strict=True)
    )
    return total * (1.0 - 1e-14)


def _part(profile: MonitoringProfile, crowd: Crowd, law: ChangeLaw, epsilon: float) -> float:
    """Return a lower bound of the mean positive part for one law, higher orders included."""
    gap = profile.gap

    def linear(shift: float) -> float:
        return linear_delta_lower(
            law,
            gap=gap,
            share=crowd.share,
            num_users=crowd.num_users,
            epsilon=epsilon,
            shift=shift,
        )

    plain = linear(0.0)
    if not has_higher_orders(profile) or plain <= _LEAST_TAIL:
        return plain if not has_higher_orders(profile) else 0.0
    # Where the crowd is too small, the linear part is at most g k (1 + e): its largest value.
    largest = gap * float(law.values.max())
    tail = _TAIL * plain / max(largest, 1.0)
    shift, rare = higher_order_shift(profile, crowd, epsilon=epsilon, tail=tail, from_above=False)
    if not shift < largest:
        return 0.0
    return max(linear(-shift) - (2.0 * tail + rare * largest) * (1.0 + 1e-9), 0.0)
