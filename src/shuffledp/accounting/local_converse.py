"""What a local protocol cannot do, from what a central one cannot do.

Source: Erlingsson et al. 2019, "Amplification by Shuffling: From Local to Central Differential
Privacy via Anonymity", arXiv:1811.12469v2, Section 4.2. The paper states it with O(.) only; here it
has constants.

*The converse.* Let the quality of an answer not depend on the order of the users, as for counts,
frequencies and means. Take a local protocol for n users in which user i applies an epsilon0-LDP
randomizer once, chosen with knowledge of the reports before. Run it on the *shuffled* data. The
answers are as good as before, in the worst case over data, and by amplification the protocol is
now (epsilon, delta)-DP in the central model. So if no centrally (epsilon, delta)-DP protocol has an
error below E(epsilon), no such local protocol has an error below E(epsilon), with epsilon the
amplified one. An upper bound on epsilon may stand for it, because E falls with epsilon.

With Theorem 7's simple form, E(epsilon) = alpha/epsilon becomes alpha sqrt(n / ln(1/delta)) /
(12 epsilon0) for epsilon0 < 1/2, n >= 1000 and delta < 1/100: a penalty of sqrt(n).

The amplified epsilon is the smallest of epsilon0, of Theorem 7, of its sharper form
`erlingsson_composed`, and of Theorem 3.1 of arXiv:2012.12803, all of which hold for adaptive
sequences on shuffled data. If all users apply the same randomizer, whatever the reports before, the
clone pair holds too.
"""

import math
from collections.abc import Callable
from contextlib import suppress

from shuffledp.accounting.amplification.clones import CLONES
from shuffledp.accounting.amplification.erlingsson import ERLINGSSON
from shuffledp.accounting.amplification.erlingsson_composed import ERLINGSSON_COMPOSED
from shuffledp.accounting.amplification.feldman_2021 import FELDMAN_2021_NUMERICAL
from shuffledp.accounting.amplification.local import single_report_epsilon
from shuffledp.core.checks import (
    require_at_least,
    require_non_negative,
    require_open_unit,
    require_positive,
)
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.profile import LocalProfile

_SEQUENTIAL = (ERLINGSSON, ERLINGSSON_COMPOSED, FELDMAN_2021_NUMERICAL)

# From here on no batch of the allowed size gains anything, and exponentials overflow.
_NO_AMPLIFICATION = 200.0

_MOST_USERS = 10**15


def central_epsilon_upper(
    epsilon0: float, *, num_users: int, delta: float, identical_randomizers: bool = False
) -> float:
    """Bound the central epsilon of any local protocol on shuffled data from above.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats of every user's report.
    num_users : int
        Number n of users, 1 to 1e15, each of whom reports once.
    delta : float
        Central failure probability, in (0, 1).
    identical_randomizers : bool
        False allows randomizers that differ from user to user and depend on earlier reports.

    Returns
    -------
    float
        At most epsilon0. Errs upwards.

    Examples
    --------
    >>> 0.04 < central_epsilon_upper(1.0, num_users=10_000, delta=1e-6) < 0.06
    True
    """
    profile = LocalProfile(epsilon0=epsilon0)
    delta = require_open_unit("delta", delta)
    if require_at_least("num_users", num_users, 1) > _MOST_USERS:
        raise ParameterError(f"num_users = {num_users} is above {_MOST_USERS:.0e}: give fewer")
    best = single_report_epsilon(profile.epsilon0, delta)
    if profile.epsilon0 == 0.0 or profile.epsilon0 > _NO_AMPLIFICATION:
        return best
    for method in (CLONES,) if identical_randomizers else _SEQUENTIAL:
        if method.violated_hypothesis(profile, num_users, delta) is None:
            with suppress(PrecisionError):
                best = min(best, method.epsilon(profile, num_users, delta).upper)
    return best


def local_error_lower(
    central_error: Callable[[float], float],
    *,
    epsilon0: float,
    num_users: int,
    delta: float,
    identical_randomizers: bool = False,
) -> float:
    """Return an error below which no epsilon0-local protocol can be, from a central lower bound.

    Parameters
    ----------
    central_error : callable
        Maps epsilon (nats) to a proved lower bound on the worst-case error of every centrally
        (epsilon, delta)-DP protocol with n users, at the same ``delta``. Must not increase.
    epsilon0, num_users, delta, identical_randomizers
        As for `central_epsilon_upper`.

    Returns
    -------
    float
        Errs downwards as far as ``central_error`` does. For problems whose error does not depend on
        the order of the users, and protocols in which each of them reports once.

    Raises
    ------
    ParameterError
        If ``central_error`` gives what is no error, NaN or negative.

    Examples
    --------
    >>> local_error_lower(lambda epsilon: 1 / epsilon, epsilon0=1.0, num_users=1, delta=1e-9) > 0.99
    True
    >>> inverse = lambda epsilon: 1 / epsilon
    >>> local_error_lower(inverse, epsilon0=1.0, num_users=10**6, delta=1e-9) > 100
    True
    """
    epsilon = central_epsilon_upper(
        epsilon0,
        num_users=num_users,
        delta=delta,
        identical_randomizers=identical_randomizers,
    )
    error = central_error(epsilon)
    if not error >= 0.0:
        raise ParameterError(
            f"central_error({epsilon}) = {error} is not a number >= 0: bound an error"
        )
    return error


def local_epsilon0_lower(
    central_epsilon: float,
    *,
    num_users: int,
    delta: float,
    identical_randomizers: bool = False,
) -> float:
    """Return a local epsilon0 that every local protocol must exceed to solve a problem.

    Parameters
    ----------
    central_epsilon : float
        An epsilon (nats, > 0) for which *no* centrally (epsilon, delta)-DP protocol with n users
        reaches the accuracy that is asked for.
    num_users, delta, identical_randomizers
        As for `central_epsilon_upper`.

    Returns
    -------
    float
        At least ``central_epsilon``: a protocol with this epsilon0 would be (epsilon, delta)-DP on
        shuffled data. Errs downwards, by about one part in a million of what is known.

    Examples
    --------
    >>> local_epsilon0_lower(0.5, num_users=1, delta=1e-9) >= 0.5
    True
    >>> local_epsilon0_lower(0.1, num_users=10**6, delta=1e-9) > 2.0
    True
    """
    target = require_positive("central_epsilon", central_epsilon)

    def is_within(epsilon0: float) -> bool:
        amplified = central_epsilon_upper(
            epsilon0,
            num_users=num_users,
            delta=delta,
            identical_randomizers=identical_randomizers,
        )
        return amplified <= target

    if target >= _NO_AMPLIFICATION:
        require_open_unit("delta", delta)
        require_at_least("num_users", num_users, 1)
        return target
    within, beyond = target, max(2.0 * target, 1.0)
    while is_within(beyond):  # above 240 nothing amplifies to a target below 200
        within, beyond = beyond, 2.0 * beyond
    while beyond - within > 1e-6 * within:
        middle = 0.5 * (within + beyond)
        if is_within(middle):
            within = middle
        else:
            beyond = middle
    return within


def shuffling_penalty_lower(
    epsilon0: float, *, num_users: int, delta: float, identical_randomizers: bool = False
) -> float:
    """Return epsilon0 over the central epsilon: by what a local 1/epsilon error must be larger.

    If every centrally (epsilon, delta)-DP protocol has an error of at least alpha/epsilon, then
    every epsilon0-local one has at least this times alpha/epsilon0.

    Returns
    -------
    float
        At least 1, ``inf`` where the central epsilon is 0. Errs downwards. For epsilon0 < 1/2,
        n >= 1000 and delta < 1/100 it is at least sqrt(n / ln(1/delta)) / 12.

    Examples
    --------
    >>> shuffling_penalty_lower(0.1, num_users=10**6, delta=1e-6) > 1000 / 12 / 13.8155**0.5
    True
    """
    epsilon0 = require_non_negative("epsilon0", epsilon0)
    if epsilon0 == 0.0:
        return 1.0
    central = central_epsilon_upper(
        epsilon0,
        num_users=num_users,
        delta=delta,
        identical_randomizers=identical_randomizers,
    )
    return max(epsilon0 / central * (1.0 - math.ulp(1.0)), 1.0) if central > 0.0 else math.inf
