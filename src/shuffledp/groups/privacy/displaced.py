"""Randomize, then release each report at its user's public place plus noise: the central guarantee.

All n users run one randomizer; what is seen is the multiset of (noisy place, report). For the
victim v let kappa_i be e^(-theta d(c_i, c_v)) and N a sum of independent coins with these chances,
i != v. With D(m) for a uniform shuffle of m users, delta(epsilon) <= E[D(N + 1)].

All that is asked for is a number M that no victim's sum of kappa_i is below: N has at most k with a
probability no larger than under Poisson(M), for k <= M - 1, which is bounded by Chernoff and
Stirling. What no analysis of a uniform shuffle of all n can go below is unavoidable here too.

Source: ours; docs/results/grouped.md, "Displacement", has the proofs.
"""

import math
from functools import partial

from shuffledp.amplification.random_crowd import CrowdLaw, crowd_delta, crowd_epsilon, tail_targets
from shuffledp.amplification.registry import (
    account_delta,
    account_epsilon,
    carried_over,
    least_over,
)
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_non_negative
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile

# What the numbers rest on; a Bound repeats it because it is part of the claim.
DISPLACEMENT_ASSUMPTIONS = (
    "The adversary sees the reports with their noisy places, in no order that tells whose they "
    "are, and knows the public places and theta: none of them depends on the private values.",
    "Each report's noise is drawn from the stated law, secretly and independently of all reports.",
    "All n users are honest: each applies this randomizer once to one value, with fresh secret "
    "randomness.",
    "Neighbouring datasets differ in one user's value; who takes part is public.",
)
_SOURCE = "derived in the shuffledp documentation, results/grouped"

# Levels of the crowd near its mean, in standard deviations below; the others are `tail_targets`.
_NEAR = (0.4, 0.9)

# Largest share of the requested delta spent on crowds smaller than all levels.
_LOST = 1e-4
_SMALLEST_MISS = 1e-290

_ULP = math.ulp(1.0)


def crowd_with_mean(mean: float, *, delta: float) -> CrowdLaw | None:
    """Return the law of 1 + N for any independent coins whose chances add up to ``mean`` or more.

    Sizes err downwards, misses upwards; None where the mean is below 1. ``delta`` is about what the
    central delta will be: sizes are chosen so that little of it is lost. Any value is safe.
    """
    most = require_non_negative("mean", mean)
    smallest = min(max(_LOST * delta, _SMALLEST_MISS), 0.1)
    normal = [math.sqrt(-2.0 * math.log(each)) for each in tail_targets(smallest)[2:]]
    counts = {math.floor(most - each * math.sqrt(most)) for each in (*_NEAR, *normal)}
    levels = [(1 + count, _poisson_tail(count - 1, most)) for count in counts if count >= 1]
    if most >= 1.0:
        levels.append((2, _poisson_tail(0, most)))
    best = dict(sorted(levels, reverse=True))
    if not best:
        return None
    return CrowdLaw(sizes=tuple(best), misses=tuple(best.values()))


def _poisson_tail(count: int, mean: float) -> float:
    """Return a bound of Pr[Poisson(mean) <= count] for 0 <= count <= mean - 1, rounded up."""
    if count == 0:
        return min(math.exp(-min(mean, 700.0)) * (1.0 + 1e-12), 1.0)
    share = (count - mean) / mean
    height = mean * ((1.0 + share) * math.log1p(share) - share)
    # Differences are good to a few ulps of the numbers before them.
    height -= 8.0 * _ULP * (mean - count + 1.0)
    exponential = math.exp(-min(max(height, 0.0), 700.0))
    factor = 1.0 / (math.sqrt(2.0 * math.pi * count) * -share)
    return min(exponential * min(factor, 1.0) * (1.0 + 1e-12), 1.0)


_renamed = partial(carried_over, source=_SOURCE, assumptions=DISPLACEMENT_ASSUMPTIONS)


def displaced_epsilon(
    profile: LocalProfile,
    *,
    num_users: int,
    expected_crowd: float,
    delta: float,
    with_lower: bool = True,
) -> Bound:
    """Bound the central epsilon of a collection whose reports are released at noisy places.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    num_users : int
        Number n of honest users, 1 to 1e15. All of them are rows of the release.
    expected_crowd : float
        M in [0, n - 1], rounded down: for every victim v the sum over the others i of
        exp(-theta d(c_i, c_v)) is at least M. See `DisplacementShuffler.crowds_lower`.
    delta : float
        Central failure probability, in [0, 1).
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Bound
        On epsilon in nats, for every user. ``upper`` errs upwards and is proved;
        ``lower`` errs downwards. Groups and alpha do not enter.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If delta is below the randomizer's delta0, and its channel is not known.

    Notes
    -----
    Some twelve sizes of the crowd in each of some ten evaluations of delta: tenths of a second.

    Source: ours; docs/results/grouped.md has the proof.

    Examples
    --------
    >>> one = LocalProfile(epsilon0=1.0)
    >>> asked = {"num_users": 10_000, "delta": 1e-6}
    >>> round(displaced_epsilon(one, expected_crowd=9_999, **asked).upper, 8)  # uniform
    0.04320616
    >>> displaced_epsilon(one, expected_crowd=470.0, **asked).method
    'displaced/clones'
    >>> displaced_epsilon(one, expected_crowd=0.0, **asked).method
    'local'
    """
    delta = require_delta(delta)
    n = require_at_least("num_users", num_users, 1)
    mean = require_non_negative("expected_crowd", expected_crowd)
    if mean > n - 1:
        raise ParameterError(
            f"expected_crowd = {mean:g} is above {n - 1:,}, the number of other users"
        )
    uniform = account_epsilon(profile, num_users=n, delta=delta, with_lower=with_lower)
    single = account_epsilon(profile, num_users=1, delta=delta, with_lower=False)
    found = [_renamed(single, method="local", upper=single.upper)]
    if mean == n - 1:  # every chance is 1
        method = f"displaced/{uniform.method}"
        found = [_renamed(uniform, method=method, upper=uniform.upper)]
    elif delta > 0.0 and (law := crowd_with_mean(mean, delta=delta)) is not None:
        guess = account_epsilon(profile, num_users=law.sizes[0], delta=delta, with_lower=False)

        def delta_at(epsilon: float) -> float:
            def conditional(size: int) -> float:
                bound = account_delta(profile, num_users=size, epsilon=epsilon, with_lower=False)
                return bound.upper

            return crowd_delta(law, conditional, conditional(1))

        epsilon = crowd_epsilon(delta_at, delta, highest=single.upper, guess=guess.upper)
        found.append(_renamed(guess, method=f"displaced/{guess.method}", upper=epsilon))
    return least_over(found, uniform.lower)
