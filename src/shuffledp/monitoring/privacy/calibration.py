"""The largest local loss that meets a central target, for longitudinal monitoring."""

import math
from collections.abc import Callable

from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_positive,
)
from shuffledp.core.errors import InfeasibleTargetError
from shuffledp.core.monitoring_profile import MonitoringProfile
from shuffledp.monitoring.privacy.central import central_delta_upper, central_guarantee

# Local losses beyond this are not looked for: they would be no local guarantee at all.
LARGEST_EPSILON0 = 12.0

_TOLERANCE = 1e-6


def calibrate_monitoring(
    profile_for: Callable[[float], MonitoringProfile],
    *,
    num_users: int,
    epsilon: float,
    delta: float,
    level_hidden: bool = True,
    changing_share: float = 1.0,
) -> float:
    """Return the largest epsilon0 whose central guarantee is at most ``epsilon`` at ``delta``.

    Parameters
    ----------
    profile_for : callable
        Returns the protocol's `MonitoringProfile` for a local epsilon0.
    num_users : int
        n >= 1: users who report throughout.
    epsilon : float
        Central target in nats, above 0.
    delta : float
        In [0, 1).
    level_hidden, changing_share : optional
        See `central_guarantee`.

    Returns
    -------
    float
        In (0, 12]. Errs downwards: ``central_guarantee`` at it was found to be at most ``epsilon``.
        A larger one may exist beyond a place where the guarantee is not monotone in epsilon0.

    Raises
    ------
    ParameterError
        If a number is NaN or out of range.
    InfeasibleTargetError
        If the target is so small that no epsilon0 is found.

    Notes
    -----
    Bisection on a logarithmic scale to a relative width of 1e-6; each step is one evaluation of
    delta at ``epsilon``. Nothing is taken for granted of the way the guarantee depends on epsilon0.

    Examples
    --------
    >>> from fractions import Fraction
    >>> def warner(epsilon0):
    ...     keep = Fraction(math.exp(epsilon0) / (1.0 + math.exp(epsilon0)))
    ...     return MonitoringProfile(
    ...         protocol="sampled-change", epsilon0=epsilon0 + 1e-12, max_changes=1, num_levels=9,
    ...         sign_correlations=(Fraction(1), 2 * keep - 1), uniform_share=2 - 2 * keep,
    ...         alternating=True)
    >>> round(calibrate_monitoring(warner, num_users=10_000, epsilon=0.05, delta=1e-8), 2)
    1.2
    """
    users = require_at_least("num_users", num_users, 1)
    target = require_positive("epsilon", epsilon)
    delta = require_delta(delta)

    def meets(epsilon0: float) -> bool:
        profile = profile_for(epsilon0)
        if profile.epsilon0 <= target:
            return True
        if delta == 0.0:
            return False
        reached = central_delta_upper(
            profile,
            num_users=users,
            epsilon=target * (1.0 - _TOLERANCE),
            level_hidden=level_hidden,
            changing_share=changing_share,
        )
        return reached <= delta

    def verified(epsilon0: float) -> bool:
        bound = central_guarantee(
            profile_for(epsilon0),
            num_users=users,
            delta=delta,
            level_hidden=level_hidden,
            changing_share=changing_share,
        )
        return bound.upper <= target

    low = min(target, LARGEST_EPSILON0) * (1.0 - _TOLERANCE)
    high = LARGEST_EPSILON0
    if meets(high):
        low = high
    while high - low > _TOLERANCE * high:
        middle = math.sqrt(low) * math.sqrt(high)
        if meets(middle):
            low = middle
        else:
            high = middle
    for _ in range(20):
        if verified(low):
            return low
        low *= 1.0 - 10.0 * _TOLERANCE
    raise InfeasibleTargetError(
        f"no epsilon0 in (0, {LARGEST_EPSILON0:g}] was found whose central guarantee is at most "
        f"epsilon = {target}: give a larger epsilon, or more users"
    )
