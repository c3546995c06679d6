"""Least dummies that meet a target: for one batch, and for several about the same people.

Several batches are needed for numbers that are reported bit by bit, one batch per level, or a
question that is repeated. From four batches on, discrete Gaussian tables have the least variance.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from statistics import NormalDist

from shuffledp.accounting.guarantees import guarantee_of
from shuffledp.amplification.dummies import hidden_epsilon, hidden_share, noisy_curve
from shuffledp.amplification.dummy_crowds import dummy_ends
from shuffledp.amplification.local import LOCAL
from shuffledp.amplification.registry import DUMMY_ASSUMPTIONS, account_delta
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Guarantee
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.dummies import LARGEST_HALF_WIDTH, TABLES, DummyLaw
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile

_SHORT = Context(prec=5, rounding=ROUND_CEILING)

# A table's ends have at most this share of delta where narrower ends would cost variance.
_END_SHARE = 0.05

# Most steps of the half width, or of the scale, that correct a rough answer; and the least share of
# its scale that is tried where k-RR hides values, too.
_MOST_STEPS, _LEAST_SHARE = 40, 0.02

# Least probability of a table's end, which proves the victim's value; and one with room for both
# ends and for what their masses lose by rounding.
_LEAST_END, _SAFE_END = 2.0**-64 * (1.0 - 1e-9), 2.0**-60

# The law that is returned where none is needed.
_NARROWEST = DummyLaw(shape="laplace", scale=0.1, half_width=1)

# Rates per bin, of all users together.
_LEAST_RATE, _LARGEST_RATE = 1e-3, 1e7


def least_dummies(
    profile: LocalProfile,
    *,
    epsilon: float,
    delta: float,
    sender: str = "shuffler",
    num_users: int = 1,
    shapes: Sequence[str] = TABLES,
    most_half_width: int = LARGEST_HALF_WIDTH,
) -> DummyLaw:
    """Return the least costly dummies with which one shuffled batch meets a target.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; with ``epsilon0 = inf`` reports are the values.
    epsilon, delta : float
        Central target, epsilon > 0 in nats, delta in (0, 1).
    sender : {"shuffler", "users"}
        A shuffler draws from a table, of least variance, and the target holds whatever the other
        users do. Users each send Poisson numbers, of least mean.
    num_users : int
        Honest users, who send dummies; makes no difference to a shuffler's.
    shapes : sequence of str
        Shapes of tables to choose from.
    most_half_width : int
        Largest half width of a table: the mean number of dummies per bin.

    Returns
    -------
    DummyLaw
        With a scale of five digits. The accountant confirms that it meets the target.

    Raises
    ------
    InfeasibleTargetError
        If no law meets the target; the message states a remedy.

    Notes
    -----
    Cost: about ten milliseconds for tables of half width up to a few hundred.

    Examples
    --------
    >>> str(least_dummies(LocalProfile(epsilon0=math.inf), epsilon=1.0, delta=1e-6))
    'laplace:2.0:27'
    """
    asked = require_positive("epsilon", epsilon), require_open_unit("delta", delta)
    users = require_at_least("num_users", num_users, 1)
    widest = require_at_least("most_half_width", most_half_width, 1, LARGEST_HALF_WIDTH)
    if sender not in ("shuffler", "users"):
        raise ParameterError(f"sender = {sender!r} is not one of shuffler, users")
    if not set(shapes) <= set(TABLES) or not shapes:
        raise ParameterError(f"shapes = {shapes!r} are not some of {', '.join(TABLES)}")
    if sender == "users":
        return _least_rate(profile, users, *asked)
    if LOCAL.delta(profile, 1, asked[0]).upper <= asked[1]:
        return _NARROWEST
    hidden = _target(profile, *asked)
    if hidden[1] < _LEAST_END and profile.delta0 == 0.0 and profile.participation == 1.0:
        raise InfeasibleTargetError(_too_wide(profile, *asked, widest))
    found: DummyLaw | None = None
    for shape, scale in _rough_scales(*hidden).items():
        # A Gaussian law on a lattice has about the variance of the continuous one.
        if shape in shapes and (found is None or scale * scale < found.variance):
            law = _least_table(profile, asked, shape, scale, widest)
            if found is None or (law is not None and law.variance < found.variance):
                found = law
    if found is None:
        raise InfeasibleTargetError(_too_wide(profile, *asked, widest))
    return found


def _delta(law: DummyLaw, profile: LocalProfile, epsilon: float, num_users: int = 1) -> float:
    """Return the upper bound on delta with dummies."""
    uppers, _ = dummy_ends(profile, num_users, law, epsilon=epsilon, with_lower=False)
    return min(uppers.values())


def _target(profile: LocalProfile, epsilon: float, delta: float) -> tuple[float, float]:
    """Return roughly the epsilon and delta that a pair of bins must meet; exact without delta0."""
    if epsilon >= profile.epsilon0 or profile.delta0 > 0.0:
        return epsilon, delta
    return hidden_epsilon(profile.epsilon0, epsilon), delta / hidden_share(profile, epsilon)


def _rough_scales(epsilon: float, delta: float) -> dict[str, float]:
    """Return the scales of a Laplace table of finite loss epsilon, and of a Gaussian law."""
    laplace = 2.0 / min(epsilon, 1000.0)
    return {"laplace": laplace, "gaussian": math.sqrt(2.0) / gaussian_parameter(epsilon, delta)}


def _width(shape: str, scale: float, delta: float) -> int:
    """Return approximately the least half width whose infinite loss has probability ``delta``."""
    end = min(max(0.5 * delta, 1e-300), 0.5)
    if shape == "laplace":
        return max(math.ceil(scale * math.log(math.tanh(0.5 / scale) / end)), 1)
    return max(math.ceil(scale * math.sqrt(max(-2.0 * math.log(2.5 * end * scale), 1.0))), 1)


def _least_table(
    profile: LocalProfile, target: tuple[float, float], shape: str, scale: float, widest: int
) -> DummyLaw | None:
    """Return the narrowest table of about this scale that meets the target; None if too wide."""
    epsilon, delta = target
    ends = _target(profile, epsilon, delta)[1] * (1.0 if shape == "laplace" else _END_SHARE)

    def law(scale: float) -> DummyLaw:
        short = _short(scale)
        width = min(_width(shape, short, ends), widest)
        return DummyLaw(shape=shape, scale=short, half_width=width)

    asked = profile, epsilon

    for _ in range(_MOST_STEPS):
        if _width(shape, scale, ends) > widest or (found := _delta(law(scale), *asked)) <= delta:
            break
        if shape == "laplace":
            ends *= 0.98
        else:  # ln delta is about in proportion to the square of the scale
            scale *= max(math.sqrt(math.log(delta) / math.log(min(found, 0.99))), 1.0 + 2e-4)
    if noisy_curve(law(scale), profile) is not None:  # then a smaller scale may be enough
        _, scale = last_above_first_below(
            lambda scale: _delta(law(scale), *asked),
            delta,
            _LEAST_SHARE * scale,
            scale,
            relative_tolerance=2e-4,
        )
    made = law(scale)
    return made if _delta(made, *asked) <= delta else None


def _poisson(rate: float, num_users: int) -> DummyLaw:
    """Return the law of one user, from the mean number of all users in a bin."""
    return DummyLaw(shape="poisson", scale=_short(rate / num_users))


def _least_rate(profile: LocalProfile, num_users: int, epsilon: float, delta: float) -> DummyLaw:
    """Return the Poisson law of least mean, for one user."""

    def delta_at(rate: float) -> float:
        return _delta(_poisson(rate, num_users), profile, epsilon, num_users)

    plain = account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False)
    if plain.upper <= delta:
        return _poisson(_LEAST_RATE, num_users)
    guess = 2.0 / gaussian_parameter(*_target(profile, epsilon, delta)) ** 2
    most = min(_LARGEST_RATE * (1.0 - 1e-4), 4.0 * guess + 100.0)
    if delta_at(most) > delta:
        raise InfeasibleTargetError(
            f"epsilon = {epsilon:.6g}, delta = {delta:.3g} needs more than {most:.3g} dummies in "
            "each bin: raise epsilon, or let the shuffler add them"
        )
    _, rate = last_above_first_below(
        delta_at,
        delta,
        _LEAST_RATE,
        most,
        guess=1.1 * guess,
        spread=0.05,
        relative_tolerance=1e-4,
    )
    return _poisson(rate, num_users)


def gaussian_parameter(epsilon: float, delta: float) -> float:
    """Return mu such that normal laws mu apart have H(P, Q; e^epsilon) = delta, roughly."""
    normal, low, high = NormalDist(), 1e-9, 1e3
    for _ in range(100):
        mu = math.sqrt(low * high)
        above = normal.cdf(-epsilon / mu + 0.5 * mu)
        below = normal.cdf(-epsilon / mu - 0.5 * mu)
        value = above - (math.exp(epsilon) * below if below > 0.0 else 0.0)
        low, high = (mu, high) if value < min(delta, 0.999) else (low, mu)
    return low


def _short(number: float) -> float:
    """Round up to five digits."""
    return float(_SHORT.create_decimal(Decimal(number)))


def _too_wide(profile: LocalProfile, epsilon: float, delta: float, widest: int) -> str:
    """Return the message for a target that no table reaches, with a target that one does."""
    hidden, allowed = _target(profile, epsilon, delta)
    width = _width("laplace", 2.0 / hidden, allowed)
    if allowed < (_SAFE_END if width <= widest else _LEAST_END):
        return (
            f"delta = {delta:.3g} is too small for tables of dummies, whose probabilities are "
            f"multiples of 2^-64: raise delta to {delta / allowed * _SAFE_END:.2g}"
        )
    enough = 1.2 * epsilon * width / widest  # the width falls a little slower than 1 / epsilon
    return (
        f"epsilon = {epsilon:.6g} at delta = {delta:.3g} needs dummies of half width {width:,}, "
        f"above {widest:,}: raise epsilon to {enough:.3g}, or delta"
    )


# All ends of the tables together have this share of delta, which costs next to no variance.
_LEVEL_END_SHARE = 0.01

# Assumptions about all levels together; each level has its own besides.
_APART = (
    "The reports of each level and round are shuffled apart, or all of them as reports of their "
    "own: nothing links those of a user."
)
_ADDED = (
    "Before it releases a batch the shuffler adds a fresh and secret number of dummies to every "
    "possible report of each level, of the laws {}; a batch that is released again has the same "
    "dummies."
)

_LEVEL_TOLERANCE = 5e-4  # relative, of the variance


def level_guarantee(
    profiles: Sequence[LocalProfile],
    dummies: Sequence[DummyLaw],
    *,
    delta: float,
    rounds: int = 1,
) -> Guarantee:
    """Return the guarantee of one batch per level, each under a shuffler's dummies of its own.

    It holds for one user even if all others are dishonest. All batches take place ``rounds`` times
    about the same people, which is the guarantee's ``rounds``.
    """
    found = guarantee_of(_releases(profiles, dummies, rounds), delta=delta)
    added = _ADDED.format(", ".join(map(str, dict.fromkeys(dummies))))
    bound = replace(found.bound, assumptions=(*DUMMY_ASSUMPTIONS, added, _APART))
    return replace(found, epsilon=bound, rounds=rounds)


def _releases(
    profiles: Sequence[LocalProfile], dummies: Sequence[DummyLaw], rounds: int
) -> Composition:
    """Return one release per level and round, of one user."""
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
        Ratios of the variances of the dummies per bin, > 0.
    epsilon, delta : float
        Central target of all levels and rounds together, epsilon > 0 in nats, delta in (0, 1).
    rounds : int
        Number of times that each level takes place about the same people.

    Returns
    -------
    tuple of DummyLaw
        A shuffler's, one per level, with scales of five digits: the accountant confirms that they
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
    share = _LEVEL_END_SHARE * asked[1] / (times * len(profiles))

    def laws(factor: float) -> tuple[DummyLaw, ...]:
        return tuple(_gaussian(factor * each, share) for each in variances)

    def epsilon_at(factor: float) -> float:
        releases = _releases(profiles, laws(factor), times)
        return releases.epsilon(asked[1], with_lower=False).upper

    # Variance that continuous normal laws would need; local noise and whole numbers change it.
    guess = shift / gaussian_parameter(*asked) ** 2
    _, factor = last_above_first_below(
        epsilon_at,
        asked[0],
        1e-3 * guess,
        8.0 * guess,
        guess=1.001 * guess,
        spread=4e-3,
        relative_tolerance=_LEVEL_TOLERANCE,
    )
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
