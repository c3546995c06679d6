"""The local guarantee of longitudinal monitoring: everything that one user ever reports.

The level is drawn whatever the value does, and given the level the density of a user's reports,
relative to uniform ones, lies between the least and the greatest density of his random signs: the
loss is at most epsilon0, over all periods together. It is attained by a pair of histories whose
changes fall into different periods, at the leaf level. With pre-drawn signs a history of m changes
in m periods has there, where i of the m reports differ from the changes, the density

    F_m(i) = sum_s r_s K_s(i),   K_s(i) the coefficient of z^s in (1 + z)^(m - i) (1 - z)^i.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

from shuffledp.core.bound import Bound
from shuffledp.core.errors import ParameterError
from shuffledp.core.monitoring_profile import MonitoringProfile

SOURCE = "derived in the shuffledp documentation, results/monitoring-central"

# With more changes only reports that agree, or differ, throughout are tried.
_MOST_LISTED = 64


def local_guarantee(profile: MonitoringProfile) -> Bound:
    """Return the local epsilon of everything that one user ever reports.

    Parameters
    ----------
    profile : MonitoringProfile
        The protocol, for k changes and L levels.

    Returns
    -------
    Bound
        ``upper`` is ``profile.epsilon0``; ``lower`` is what a pair of histories of 2^(L-1) periods
        attains. Both are the same, up to rounding, for the laws whose extreme densities are those
        of no error and of errors only, wherever k < 2^(L-1).

    Notes
    -----
    With 2 k <= 2^(L-1) the changes of the two histories can have different leaves, and any two
    densities can be seen at once. Otherwise the histories change at q_1, ..., q_m and at
    q_2, ..., q_(m+1), in opposite directions where they meet, m = min(k, 2^(L-1) - 1). In a single
    period one history has a change, and the other none.

    Values other than bits: where columns of a node are public, all may happen to be the same
    column, and a value that comes and goes is a bit there.

    Cost: O(k^3) for up to 64 changes, O(k^2) beyond.

    Examples
    --------
    >>> profile = MonitoringProfile(
    ...     protocol="sampled-change", epsilon0=math.nextafter(math.log(3.0), 2.0), max_changes=1,
    ...     num_levels=9, sign_correlations=(Fraction(1), Fraction(1, 2)),
    ...     uniform_share=Fraction(1, 2), alternating=True)
    >>> bound = local_guarantee(profile)
    >>> math.isclose(bound.lower, bound.upper)
    True
    """
    least, greatest = _extreme_densities(profile)
    lower = 0.0
    if 0 < least < greatest:
        # Two roundings of the ratio, two of the logarithm.
        ratio = float(greatest / least)
        lower = max(math.log(ratio) - 4.0 * math.ulp(1.0) * (1.0 + math.log(ratio)), 0.0)
    if lower > profile.epsilon0:  # exact densities against what is merely stated
        raise ParameterError(
            f"epsilon0 = {profile.epsilon0} is below the loss {lower} of the densities that the "
            "profile states, so it is wrong: state at least that"
        )
    return Bound(
        lower=lower,
        upper=profile.epsilon0,
        method="local",
        source=SOURCE,
        assumptions=(
            "Neighbouring values are everything that one user does in all periods.",
            f"The client follows at most {profile.max_changes} changes and ignores the rest.",
        ),
    )


def _extreme_densities(profile: MonitoringProfile) -> tuple[Fraction, Fraction]:
    """Return densities of one set of reports under two histories whose ratio is largest."""
    periods = 1 << (profile.num_levels - 1)
    if periods == 1:
        once = 1 - profile.correlation(1)
        return once, Fraction(1)
    changes = profile.max_changes
    apart = 2 * changes <= periods
    if not apart:
        changes = min(changes, periods - 1)
    listed = changes <= _MOST_LISTED
    wanted = range(changes + 1) if listed else (0, changes)
    density = {i: _density(profile, changes, i) for i in wanted}
    if apart or not listed:
        return density[min(density, key=density.__getitem__)], max(density.values())
    pairs = ((density[j], density[i]) for i, j in _met(changes))
    return max(pairs, key=lambda pair: pair[1] / pair[0] if pair[0] > 0 else Fraction(0))


def _met(changes: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of numbers of differing reports that shifted histories can show at once.

    Where both change, exactly one of them differs; each changes once where the other does not.
    """
    for a in range(changes):
        for i in (a, a + 1):
            for j in (changes - 1 - a, changes - a):
                yield i, j


def _density(profile: MonitoringProfile, changes: int, differing: int) -> Fraction:
    """Return F_m(i), exactly."""
    row = [1]
    for index in range(changes):
        sign = -1 if index < differing else 1
        row = [a + sign * b for a, b in zip([*row, 0], [0, *row], strict=True)]
        row = row[: len(profile.sign_correlations)]
    return sum(
        (r * c for r, c in zip(profile.sign_correlations, row, strict=False)), start=Fraction(0)
    )
