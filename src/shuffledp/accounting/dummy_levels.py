"""The least dummies with which several batches about the same people meet a target together.

For numbers that are reported bit by bit, one batch a level, and for a question that is asked again
every period. Of four batches and more discrete Gaussian tables have the least variance.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from shuffledp.accounting.dummies import gaussian_parameter
from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.amplification.registry import DUMMY_ASSUMPTIONS
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.dummies import LARGEST_HALF_WIDTH, DummyLaw
from shuffledp.core.errors import InfeasibleTargetError
from shuffledp.core.guarantee import Guarantee
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

# All ends of the tables together have this share of delta, which costs next to no variance.
_END_SHARE = 0.01

# What is assumed of each level alone is in its own sentences; of all together:
_APART = (
    "The reports of each level and round are shuffled apart, or all of them as reports of their "
    "own: nothing links those of a user."
)
_ADDED = (
    "Before it releases a batch the shuffler adds a fresh and secret number of dummies to every "
    "possible report of each level, of the laws {}; a batch that is released again has the same "
    "dummies."
)

_TOLERANCE = 5e-4  # relative, of the variance


def level_guarantee(
    profiles: Sequence[LocalProfile],
    dummies: Sequence[DummyLaw],
    *,
    delta: float,
    rounds: int = 1,
) -> Guarantee:
    """Return the guarantee of one batch a level, each under a shuffler's dummies of its own.

    For one user, whoever else lies. All batches take place ``rounds`` times about the same people,
    which is what ``rounds`` of the guarantee says.
    """
    found = guarantee_of(_releases(profiles, dummies, rounds), delta=delta)
    added = _ADDED.format(", ".join(map(str, dict.fromkeys(dummies))))
    bound = replace(found.bound, assumptions=(*DUMMY_ASSUMPTIONS, added, _APART))
    return replace(found, epsilon=bound, rounds=rounds)


def _releases(
    profiles: Sequence[LocalProfile], dummies: Sequence[DummyLaw], rounds: int
) -> Composition:
    """Return one release a level and round, of one user."""
    pairs = zip(profiles, dummies, strict=True)
    return Composition(
        (ShuffledRelease(profile=profile, num_users=1, dummies=law), rounds)
        for profile, law in pairs
    )


def least_level_dummies(
    profiles: Sequence[LocalProfile],
    variances: Sequence[float],
    *,
    epsilon: float,
    delta: float,
    rounds: int = 1,
) -> tuple[DummyLaw, ...]:
    """Return Gaussian laws of least variance, in the given proportions, that meet a target.

    Parameters
    ----------
    profiles : sequence of LocalProfile
        Law of the report of each level; in the worst case all levels' reports differ.
    variances : sequence of float
        How the variances of the dummies a bin are related, > 0.
    epsilon, delta : float
        Central target of all levels and rounds together, epsilon > 0 in nats, delta in (0, 1).
    rounds : int
        How often each level takes place about the same people.

    Returns
    -------
    tuple of DummyLaw
        A shuffler's, one a level, with scales of five digits: the accountant confirms that they
        meet the target, and nearly none of smaller variance does.

    Raises
    ------
    InfeasibleTargetError
        If no tables do.

    Examples
    --------
    >>> bare = LocalProfile(epsilon0=math.inf)
    >>> (law,) = least_level_dummies([bare], [1.0], epsilon=1.0, delta=1e-6, rounds=64)
    >>> 35.6 < law.variance / 64 < 35.9
    True
    """
    asked = require_positive("epsilon", epsilon), require_open_unit("delta", delta)
    times = require_at_least("rounds", rounds, 1)
    shift = times * sum(
        2.0 * math.tanh(0.5 * profile.epsilon0) ** 2 / each
        for profile, each in zip(profiles, variances, strict=True)
    )
    share = _END_SHARE * asked[1] / (times * len(profiles))

    def laws(factor: float) -> tuple[DummyLaw, ...]:
        return tuple(_gaussian(factor * each, share) for each in variances)

    def epsilon_at(factor: float) -> float:
        releases = _releases(profiles, laws(factor), times)
        return releases.epsilon(asked[1], with_lower=False).upper

    # What continuous normal laws would need; local noise and whole numbers make some difference.
    guess = shift / gaussian_parameter(*asked) ** 2
    how = {"guess": 1.001 * guess, "spread": 4e-3, "relative_tolerance": _TOLERANCE}
    _, factor = last_above_first_below(epsilon_at, asked[0], 1e-3 * guess, 8.0 * guess, **how)
    found = laws(factor)
    if epsilon_at(factor) > asked[0]:
        raise InfeasibleTargetError(
            f"epsilon = {asked[0]:.6g}, delta = {asked[1]:.3g} for {times * len(profiles)} batches "
            "is met by no dummies: raise epsilon or delta"
        )
    return found


def _gaussian(variance: float, share: float) -> DummyLaw:
    """Return the table of about this variance whose ends have at most this probability."""
    scale = float(f"{math.sqrt(variance):.5g}")
    ends = math.log(max(share * max(scale, 1.0), 1e-300))
    width = max(math.ceil(scale * math.sqrt(max(-2.0 * ends, 1.0))), 1)
    if width > LARGEST_HALF_WIDTH:
        raise InfeasibleTargetError(
            f"dummies of variance {variance:.6g} a bin need tables of half width {width:,}, above "
            f"{LARGEST_HALF_WIDTH:,}: raise epsilon or delta, or take fewer levels or rounds"
        )
    return DummyLaw(shape="gaussian", scale=scale, half_width=width)
