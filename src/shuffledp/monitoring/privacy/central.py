"""The guarantees of longitudinal monitoring: one user's whole history, all n users' reports.

Reports of each period and level are shuffled, period by period, and carry nothing that links them.
Neighbouring datasets differ in everything that one user ever does. q is the least density of a
user's reports relative to uniform ones, g the mean of a sign, k the number of changes that a client
follows, M - 1 ~ Bin(n - 1, q), R_m the sum of m independent fair signs. If products of different
signs have mean 0 (sampled-change), then for every epsilon >= 0, with e = e^epsilon,

    delta(epsilon) <= E[ (1 - e + (g/M) (1 + e) R_(k M))_+ ],

and for a bit that starts at 0

    delta(epsilon) <= E[ (1 - e + (g/M) ((1 + e) R_((k-1) M) + R_M + e R'_M))_+ ].

With pre-drawn signs products have nonzero means; `higher_order_shift` bounds them. If levels are
seen, the crowd is one level's: q / L for q.

Locally, the density of a user's reports relative to uniform ones lies between the least and the
greatest of its random signs, over all periods together; a history of m changes in m periods has, if
i of the m reports differ from the changes, the density F_m(i) = sum_s r_s K_s(i), K_s(i) the
coefficient of z^s in (1 + z)^(m - i) (1 - z)^i.

Source: ours; docs/results/monitoring.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from shuffledp.amplification.local import single_report_delta, single_report_epsilon
from shuffledp.core import checks
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import MonitoringProfile
from shuffledp.monitoring.privacy import likelihoods
from shuffledp.monitoring.privacy.likelihoods import Crowd

SOURCE = "derived in the shuffledp documentation, results/monitoring"


def local_guarantee(profile: MonitoringProfile) -> Bound:
    """Return the local epsilon of all reports of one user.

    Parameters
    ----------
    profile : MonitoringProfile
        The protocol, for k changes and L levels.

    Returns
    -------
    Bound
        ``upper`` is ``profile.epsilon0``; ``lower`` is attained by a pair of histories of 2^(L-1)
        periods. Both are equal, up to rounding, for laws whose extreme densities are those without
        errors and with errors only, wherever k < 2^(L-1).

    Notes
    -----
    The histories change at q_1, ..., q_m and at q_2, ..., q_(m+1), in opposite directions where
    they meet, m = min(k, 2^(L-1) - 1), and the reports are the changes of the one: the largest
    ratio if densities fall with the number of errors, as in both protocols. In a single period one
    history has a change, and the other none.

    Values other than bits: if columns of a node are public, all may happen to be the same column,
    and a value that comes and goes is a bit there.

    Cost: O(k^2).

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
    # Densities of one set of reports under two histories: of no error, and of errors only.
    periods = 1 << (profile.num_levels - 1)
    none, only = Fraction(1), 1 - profile.correlation(1)
    if periods > 1:
        changes = min(profile.max_changes, periods - 1)
        terms = [r * math.comb(changes, s) for s, r in enumerate(profile.sign_correlations)]
        even, odd = sum(terms[::2], Fraction(0)), sum(terms[1::2], Fraction(0))
        none, only = even + odd, even - odd
    least, greatest, lower = min(none, only), max(none, only), 0.0
    if 0 < least < greatest:
        # Two roundings of the ratio, two of the logarithm.
        ratio = float(greatest / least)
        lower = max(math.log(ratio) - 4.0 * math.ulp(1.0) * (1.0 + math.log(ratio)), 0.0)
    if lower > profile.epsilon0:  # exact densities contradict the stated loss
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


# Largest share that higher orders add to delta: three parts of this share. Below the least, nothing
# is gained by a smaller one.
_TAIL, _LEAST_TAIL = 0.005, 1e-30
_NEAR_ENOUGH = 2.0

# Beyond these only the local guarantee is claimed: laws of more values are not listed, and so small
# a share of a crowd hides nobody.
MOST_CHANGES = 10_000
_LARGEST_EPSILON, _SMALLEST_SHARE = 200.0, 1e-12

_TOLERANCE = 1e-6

# A guarantee above this share of the local one is not searched for.
_WORTH = 0.999

# Relative distance beyond the upper end up to which the lower one is searched for.
_BEYOND = 1.01


def central_delta_upper(
    profile: MonitoringProfile,
    *,
    num_users: int,
    epsilon: float,
    level_hidden: bool = True,
) -> float:
    """Return an upper bound on delta at ``epsilon``, for everything that is ever released.

    Parameters
    ----------
    profile : MonitoringProfile
        The protocol, for k changes and L levels.
    num_users : int
        n >= 1: users who report throughout, the target included, all honest.
    epsilon : float
        Central privacy loss in nats, at least 0.
    level_hidden : bool, optional
        Whether the level at which a user reports is known to nobody. ``False`` for late joiners.

    Returns
    -------
    float
        In [0, 1]. An upper bound; 0 exactly from ``profile.epsilon0`` on.

    Raises
    ------
    ParameterError
        If a number is NaN or out of range.

    Notes
    -----
    Theorem and proof: see the module. Higher orders may add 1.5 % of delta and a shift. Error
    budget: as for `linear_delta`. Cost: below 2 ms, up to 0.1 s for fewer than 1000 users.

    Examples
    --------
    >>> from fractions import Fraction
    >>> profile = MonitoringProfile(
    ...     protocol="sampled-change", epsilon0=math.log(3.0), max_changes=1, num_levels=9,
    ...     sign_correlations=(Fraction(1), Fraction(1, 2)), uniform_share=Fraction(1, 2),
    ...     alternating=True)
    >>> central_delta_upper(profile, num_users=10_000, epsilon=0.1) < 1e-12
    True
    >>> central_delta_upper(profile, num_users=1, epsilon=math.log(3.0))
    0.0
    """
    users = checks.require_at_least("num_users", num_users, 1)
    epsilon = checks.require_non_negative("epsilon", epsilon)
    local = single_report_delta(profile.epsilon0, epsilon)
    crowd = Crowd.of(profile, users, level_hidden=level_hidden)
    unusable = profile.max_changes > MOST_CHANGES or crowd.share < _SMALLEST_SHARE
    if local == 0.0 or unusable or epsilon > _LARGEST_EPSILON:
        return local
    law = likelihoods.worst_law(profile, epsilon=epsilon)
    part, gap = likelihoods.linear_delta, profile.gap
    linear = partial(part, law, gap=gap, share=crowd.share, num_users=users, epsilon=epsilon)
    plain = linear()
    if plain >= local or not likelihoods.has_higher_orders(profile):
        return min(plain, local)

    def total(guess: float) -> float:
        tail = _TAIL * guess
        shift, rare = likelihoods.higher_order_shift(
            profile, crowd, epsilon=epsilon, tail=tail, from_above=True
        )
        if not shift < 2.0 * math.expm1(profile.epsilon0):
            return local
        return min(linear(shift=shift) + (2.0 * tail + rare) * (1.0 + 1e-9), local)

    # The smaller the tails, the larger the shift: the search is for tails that fit the answer.
    low = max(plain, _LEAST_TAIL)
    best = high = total(low)
    while high > _NEAR_ENOUGH * low:
        middle = math.sqrt(low) * math.sqrt(high)
        found = total(middle)
        best = min(best, found)
        low, high = (middle, high) if found > middle else (low, middle)
    # The shift may grow so fast with smaller tails that larger ones cost less in all.
    guess = max(low, high)
    while (found := total(guess := 2.0 * guess)) < best:
        best = found
    return best


def central_guarantee(
    profile: MonitoringProfile,
    *,
    num_users: int,
    delta: float,
    level_hidden: bool = True,
) -> Bound:
    """Return the central epsilon of everything that is ever released, at ``delta``.

    Parameters
    ----------
    profile : MonitoringProfile
        The protocol, for k changes and L levels.
    num_users : int
        n >= 1: users who report throughout, the target included, all honest.
    delta : float
        In [0, 1).
    level_hidden : bool, optional
        Whether the level at which a user reports is known to nobody. ``False`` for late joiners.

    Returns
    -------
    Bound
        ``upper`` is at most ``profile.epsilon0``. ``lower`` is needed for an explicit pair of
        histories among idle users; ``None`` without alternating increments, if delta > 0.

    Raises
    ------
    ParameterError
        If a number is NaN or out of range.

    Notes
    -----
    Cost: ten to twenty evaluations of delta.

    Examples
    --------
    >>> from fractions import Fraction
    >>> profile = MonitoringProfile(
    ...     protocol="sampled-change", epsilon0=math.log(3.0), max_changes=1, num_levels=9,
    ...     sign_correlations=(Fraction(1), Fraction(1, 2)), uniform_share=Fraction(1, 2),
    ...     alternating=True)
    >>> bound = central_guarantee(profile, num_users=10_000, delta=1e-8)
    >>> round(bound.upper, 4), 0.6 * bound.upper < bound.lower < bound.upper
    (0.0443, True)
    """
    users = checks.require_at_least("num_users", num_users, 1)
    delta = checks.require_delta(delta)
    local = local_guarantee(profile)
    lower, upper, ceiling = local.lower, local.upper, local.upper
    asked: dict[str, Any] = {"num_users": users, "level_hidden": level_hidden}

    def upper_delta(epsilon: float) -> float:
        return central_delta_upper(profile, epsilon=epsilon, **asked)

    def lower_delta(epsilon: float) -> float:
        return likelihoods.unavoidable_delta(profile, epsilon=epsilon, **asked)

    inverse = partial(last_above_first_below, spread=0.05, relative_tolerance=_TOLERANCE)
    if delta > 0.0 and local.upper > 0.0:
        lower, upper = None, single_report_epsilon(profile.epsilon0, delta)
        ceiling = upper
        if upper_delta(_WORTH * ceiling) <= delta:
            _, upper = inverse(upper_delta, delta, 0.0, _WORTH * ceiling)
        if profile.alternating:
            # Searched beyond the upper end, too: a lower end there would show an error.
            lower, _ = inverse(lower_delta, delta, 0.0, _BEYOND * upper, guess=0.8 * upper)
    claim = "the central guarantee of monitoring"
    return Bound(
        lower=reconciled_lower(lower, upper, tolerance=1e-6, claim=claim),
        upper=upper,
        # Named after the analysis of the upper end.
        method="monitoring-crowd" if upper < ceiling else "local",
        source=SOURCE,
        assumptions=_assumptions(profile, users, level_hidden=level_hidden),
    )


def _assumptions(
    profile: MonitoringProfile, num_users: int, *, level_hidden: bool
) -> tuple[str, ...]:
    """Assumptions of the central guarantee, one sentence each."""
    level = (
        "Nobody but the user knows which level a user reports at, so that all users hide it."
        if level_hidden
        else "The level that a user reports at may be seen by everybody."
    )
    changes = "1 change" if profile.max_changes == 1 else f"{profile.max_changes:,} changes"
    return (
        f"{num_users:,} users, the target included, follow the protocol and report throughout.",
        "The reports of each period and level are shuffled uniformly, and nothing links reports "
        "of different periods.",
        level,
        "Neighbouring datasets differ in everything that one user does in all periods.",
        f"Clients follow at most {changes} of their value and ignore the rest.",
    )


# Larger local losses are not searched for: they would be no local guarantee at all.
LARGEST_MONITORED = 12.0


def calibrate_monitoring(
    profile_for: Callable[[float], MonitoringProfile],
    *,
    num_users: int,
    epsilon: float,
    delta: float,
) -> float:
    """Return the largest epsilon0 in (0, 12] whose central guarantee is at most ``epsilon``.

    Errs downwards: the guarantee at it was found to be at most ``epsilon``. Nothing is assumed of
    how the guarantee depends on epsilon0, so a larger one may exist if it is not monotone.
    Bisection on a logarithmic scale; each step is one evaluation of delta at ``epsilon``.
    """
    target, delta = checks.require_positive("epsilon", epsilon), checks.require_delta(delta)
    aimed = target * (1.0 - _TOLERANCE)

    def meets(epsilon0: float) -> bool:
        profile = profile_for(epsilon0)
        ceiling = single_report_epsilon(profile.epsilon0, delta)
        if ceiling <= target:
            return True
        ends = (aimed, _WORTH * ceiling)  # of which the guarantee needs both
        return all(
            central_delta_upper(profile, epsilon=end, num_users=num_users) <= delta for end in ends
        )

    def verified(epsilon0: float) -> bool:
        found = central_guarantee(profile_for(epsilon0), num_users=num_users, delta=delta)
        return found.upper <= target

    # Here the local guarantee alone meets the target.
    local = min(target, LARGEST_MONITORED) * (1.0 - _TOLERANCE)
    found, step = _largest(meets, local, LARGEST_MONITORED), 10.0 * _TOLERANCE
    while not verified(found):  # the upper ends of near losses are up to some percent apart
        if found <= local:
            raise InfeasibleTargetError(
                f"no epsilon0 in (0, {LARGEST_MONITORED:g}] was found whose central guarantee is "
                f"at most epsilon = {target}: give a larger epsilon, or more users"
            )
        found, step = max(found * (1.0 - step), local), 2.0 * step
    return found


def _largest(test: Callable[[float], bool], low: float, high: float) -> float:
    """Return ``high``, or about the largest number above ``low`` that passes; otherwise ``low``."""
    if test(high):
        return high
    while high - low > _TOLERANCE * high:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if test(middle) else (low, middle)
    return low
