"""One release that is no shuffled batch: anything else with a known (epsilon, delta) guarantee.

One shuffled release: what was published once, and all that composition needs to know about it.

`ShuffledRelease` is one uniformly shuffled batch of randomized reports; `StatedRelease`, in a file
of its own, is anything else with a known guarantee. Both compose by ``+`` and ``*``, see
`Composition`.
"""

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, SupportsFloat

import numpy as np

from shuffledp.accounting.amplification.atom_law import AtomLaw, atom_delta, mirrored
from shuffledp.accounting.amplification.families import attack_atoms
from shuffledp.accounting.amplification.local import (
    LOCAL,
    single_report_delta,
    single_report_epsilon,
)
from shuffledp.accounting.amplification.lower_bounds import attack_curves, dominated_law
from shuffledp.accounting.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.accounting.amplification.sampling import (
    amplified_epsilon,
    inner_epsilon,
    participating,
    sampling_fraction,
    subsampled_curve,
)
from shuffledp.accounting.composed import Composable, NamedCurve
from shuffledp.accounting.privacy_loss import HockeyStickCurve
from shuffledp.core.bound import Bound
from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_non_negative,
    require_positive,
)
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

if TYPE_CHECKING:
    from shuffledp.accounting.privacy_loss import PrivacyLoss

# Of the few roundings of a closed form.
_ROUNDING = 64.0 * math.ulp(1.0)

_STATED_SOURCE = (
    "Kairouz, Oh, Viswanath 2017, arXiv:1311.0776v4: every mechanism with a guarantee is "
    "post-processing of randomized response that reveals all with probability delta"
)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class StatedRelease(Composable):
    """Anything else with a known (epsilon, delta) guarantee for the same neighbours.

    Parameters
    ----------
    epsilon : float
        Central epsilon in nats, >= 0; kept as ``stated_epsilon``.
    delta : float
        Failure probability, in [0, 1); kept as ``stated_delta``.

    Notes
    -----
    Composed as the mechanism that is worst among all with this guarantee: with probability delta
    it reveals everything, otherwise it is binary randomized response (Kairouz, Oh, Viswanath 2017,
    arXiv:1311.0776v4, the proof of Theorem 3.3). Lower ends are those of this mechanism.

    Examples
    --------
    >>> StatedRelease(epsilon=0.5, delta=1e-9)
    StatedRelease(epsilon=0.5, delta=1e-09)
    """

    stated_epsilon: float
    stated_delta: float

    def __init__(self, *, epsilon: SupportsFloat, delta: SupportsFloat = 0.0) -> None:
        # `epsilon` and `delta` are questions that every release answers, so the fields differ.
        object.__setattr__(self, "stated_epsilon", require_non_negative("epsilon", epsilon))
        object.__setattr__(self, "stated_delta", require_delta(delta))

    def __repr__(self) -> str:
        return f"StatedRelease(epsilon={self.stated_epsilon:.6g}, delta={self.stated_delta:.6g})"

    @property
    def highest(self) -> float:
        """An epsilon from which on only ``failure`` is left."""
        return self.stated_epsilon

    @property
    def failure(self) -> float:
        """Probability of revealing everything, apart from the curve."""
        return self.stated_delta

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed of a guarantee that was not computed here."""
        return (
            "Stated guarantees hold, for the same neighbours: datasets that differ in all that one "
            "user contributes.",
        )

    def epsilon_alone(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Return the epsilon that the guarantee leaves at another delta."""
        allowed = require_delta(delta)
        if allowed < self.stated_delta:
            raise OutOfRegimeError(
                f"delta = {allowed:.6g} is below the stated delta = {self.stated_delta:.6g}: no "
                "epsilon is known there; ask for a larger delta"
            )
        left = (allowed - self.stated_delta) / (1.0 - self.stated_delta)
        upper = single_report_epsilon(self.stated_epsilon, max(left * (1.0 - _ROUNDING), 0.0))
        lower = single_report_epsilon(self.stated_epsilon, min(left * (1.0 + _ROUNDING), 1.0))
        lower = max(lower - 2.0 * _ROUNDING * max(self.stated_epsilon, 1.0), 0.0)
        return self._bound(lower if with_lower else None, upper)

    def delta_alone(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Return the delta that the guarantee leaves at another epsilon."""
        rest = single_report_delta(self.stated_epsilon, require_non_negative("epsilon", epsilon))
        exact = self.stated_delta + (1.0 - self.stated_delta) * rest
        upper = min(exact * (1.0 + (_ROUNDING if rest else 0.0)), 1.0)
        return self._bound(exact * (1.0 - 2.0 * _ROUNDING) if with_lower else None, upper)

    def curve(self, delta: float) -> NamedCurve:  # noqa: ARG002 - one curve at every delta
        """Return the curve of binary randomized response: all but the failure."""
        return NamedCurve(
            curve=_binary_curve(self.stated_epsilon), method="stated", source=_STATED_SOURCE
        )

    def attacks(self) -> tuple[HockeyStickCurve, ...]:
        """Return the same curve: a mechanism with this guarantee attains it."""
        return (_binary_curve(self.stated_epsilon),)

    def exact_loss(self, *, upper: bool) -> "PrivacyLoss":
        """Return the law of the privacy loss, apart from the failure, on a lattice of its own.

        Parameters
        ----------
        upper : bool
            Whether to round up or down.

        Returns
        -------
        PrivacyLoss
            Two losses, epsilon with probability e^epsilon / (1 + e^epsilon), and -epsilon. With
            ``upper`` those of a slightly larger epsilon.
        """
        from shuffledp.accounting.privacy_loss import PrivacyLoss, no_loss

        direction: Literal["upper", "lower"] = "upper" if upper else "lower"
        if self.stated_epsilon == 0.0:
            return no_loss(1.0, direction)
        interval = math.nextafter(self.stated_epsilon, math.inf if upper else 0.0)
        slack = 1.0 + (_ROUNDING if upper else -_ROUNDING)
        shrink = math.exp(-interval)
        masses = np.array([shrink / (1.0 + shrink), 0.0, 1.0 / (1.0 + shrink)]) * slack
        return PrivacyLoss(
            interval=interval,
            first=-1,
            masses=masses,
            infinite_mass=0.0,
            error=0.0,
            direction=direction,
        )

    def _bound(self, lower: float | None, upper: float) -> Bound:
        return Bound(
            lower=None if lower is None else min(lower, upper),
            upper=upper,
            method="stated",
            source=_STATED_SOURCE,
            assumptions=self.assumptions,
        )


@functools.lru_cache(maxsize=64)
def _binary_curve(epsilon0: float) -> HockeyStickCurve:
    """Return the exact curve of binary randomized response."""

    def both(epsilon: float) -> Enclosure:
        upper = single_report_delta(epsilon0, epsilon)
        return Enclosure(upper * (1.0 - _ROUNDING), upper)

    return HockeyStickCurve(forward=both, backward=both, highest=epsilon0)


# Losses of this probability decide over the sum of many.
_FREQUENT = 0.01

# An upper end of a divergence that is possible is never reported below this.
_SMALLEST = 1e-300

# Beyond this no data are evaluated, as in the registry.
_NO_AMPLIFICATION = 200.0

# Narrow enough that composing, at 1e-3, is not held up; ten times as narrow costs twice the time.
_ATOM_WIDTH = 1e-6

# The same for whole curves; and where the data of the others are settled in stretches, whose number
# is the inverse.
_CURVE_WIDTH, _STRETCH_WIDTH = 1e-4, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledRelease(Composable):
    """One batch of randomized reports, shuffled uniformly and published.

    Parameters
    ----------
    num_users : int
        Honest users whose reports are in the batch; with ``participation``, all honest users who
        toss a coin about it.
    epsilon0 : float, optional
        Local privacy loss in nats, for any epsilon0-LDP randomizer. Give this or ``profile``.
    profile : LocalProfile, optional
        The randomizer's law, ``randomizer.profile``: usually gives a smaller epsilon. It is there,
        as ``law``, whichever was given.
    sampled_from : int, optional
        Where the ``num_users`` were drawn uniformly, anew for this release and in secret, from
        this many users.
    participation : float
        Chance that each user takes part, by an independent secret coin; 1 where all do.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or both ways to draw users are given.

    Examples
    --------
    >>> daily = ShuffledRelease(epsilon0=1.0, num_users=10_000)
    >>> daily
    ShuffledRelease(epsilon0=1, num_users=10000)
    >>> round(daily.epsilon(delta=1e-6).upper, 6)
    0.043206
    """

    num_users: int
    epsilon0: float | None = None
    profile: LocalProfile | None = None
    sampled_from: int | None = None
    participation: float = 1.0
    law: LocalProfile = field(init=False, repr=False, compare=False)
    # Profiles compare equal whatever their channels; releases that are counted together must not.
    _channel: Callable[[], object] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        set_field = functools.partial(object.__setattr__, self)
        set_field("num_users", require_at_least("num_users", self.num_users, 1))
        if (self.epsilon0 is None) == (self.profile is None):
            raise ParameterError(
                "give exactly one of epsilon0 (any randomizer) and profile (a particular one)"
            )
        law = self.profile or LocalProfile(epsilon0=self.epsilon0 or 0.0)
        set_field("profile", law)
        set_field("law", law)
        set_field("epsilon0", law.epsilon0)
        set_field("_channel", _channel_that_counts(self.law))
        chance = require_positive("participation", self.participation)
        if chance > 1.0:
            raise ParameterError(f"participation = {chance} is above 1: it is a probability")
        set_field("participation", chance)
        if self.sampled_from is not None:
            if chance < 1.0:
                raise ParameterError(
                    "sampled_from and participation exclude each other: give the one that "
                    "describes how users are drawn"
                )
            sampling_fraction(self.num_users, self.sampled_from)  # raises where out of range
            set_field("sampled_from", int(self.sampled_from))

    def __repr__(self) -> str:
        what = f"epsilon0={self.law.epsilon0:.6g}"
        if self.law.delta0 > 0.0:
            what += f", delta0={self.law.delta0:.6g}"
        if self.law.family is not RandomizerFamily.ANY:
            what += f", family={self.law.family.value!r}"
        drawn = "" if self.sampled_from is None else f", sampled_from={self.sampled_from}"
        if self.participation < 1.0:
            drawn = f", participation={self.participation:.6g}"
        return f"ShuffledRelease({what}, num_users={self.num_users}{drawn})"

    @property
    def fraction(self) -> float:
        """Share of the users who are drawn, rounded up; 1 unless ``sampled_from`` is given."""
        if self.sampled_from is None:
            return 1.0
        return sampling_fraction(self.num_users, self.sampled_from)

    @property
    def highest(self) -> float:
        """An epsilon at which delta is 0, rounded up; ``inf`` where there is none."""
        if self.law.delta0 > 0.0:
            return math.inf
        return amplified_epsilon(self.law.epsilon0, self.fraction)

    @property
    def failure(self) -> float:
        """Probability that is counted apart, as that of revealing everything: none."""
        return 0.0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed beyond the assumptions of every shuffled release."""
        if self.sampled_from is not None:
            return (
                f"The {self.num_users} users of a release are drawn uniformly from "
                f"{self.sampled_from}, anew for each release, and who was drawn stays secret.",
            )
        if self.participation < 1.0:
            return (
                f"Each of the {self.num_users} honest users takes part with probability "
                f"{self.participation:g}, by a fresh coin that nobody else sees.",
            )
        return ()

    def epsilon_alone(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound the central epsilon of this release on its own; see `account_epsilon`."""
        if self.sampled_from is None:
            bound = account_epsilon(
                _effective(self), num_users=self.num_users, delta=delta, with_lower=with_lower
            )
            return _assuming(bound, self.assumptions)
        inner = require_delta(delta) / self.fraction
        if inner >= 1.0:  # nobody is drawn often enough to matter at this delta
            return Bound(
                lower=0.0,
                upper=0.0,
                method="subsampled",
                source="delta is at least the probability of being drawn",
                assumptions=self.assumptions,
            )
        bound = account_epsilon(
            self.law, num_users=self.num_users, delta=inner * (1.0 - _ROUNDING), with_lower=False
        )
        upper = amplified_epsilon(bound.upper, self.fraction)
        lower = self._attacked_epsilon(delta, upper) if with_lower else None
        return _subsampled(_assuming(bound, self.assumptions), lower, upper)

    def delta_alone(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound the central delta of this release on its own; see `account_delta`."""
        if self.sampled_from is None:
            bound = account_delta(
                _effective(self), num_users=self.num_users, epsilon=epsilon, with_lower=with_lower
            )
            return _assuming(bound, self.assumptions)
        asked = require_non_negative("epsilon", epsilon)
        bound = account_delta(
            self.law,
            num_users=self.num_users,
            epsilon=min(inner_epsilon(asked, self.fraction), self.law.epsilon0),
            with_lower=False,
        )
        upper = bound.upper
        if upper > 0.0:
            upper = min(max(upper * self.fraction * (1.0 + _ROUNDING), _SMALLEST), 1.0)
        lower = None
        if with_lower and asked < self.highest:
            attacked = [_strength(curve, asked) for curve in self.attacks()]
            lower = max(attacked, default=None)
        elif with_lower:
            lower = 0.0
        return _subsampled(_assuming(bound, self.assumptions), lower, upper)

    def curve(self, delta: float) -> NamedCurve:
        """Return upper ends: of the method that is best near ``delta``, and of the one for 0.01.

        Where these are two methods, the smaller at each epsilon: in many rounds each matters, the
        one for the rare large losses, the other for the frequent small ones.
        """
        profile = _effective(self)
        channel = _channel_that_counts(profile)
        levels = (min(delta / self.fraction, 0.5), _FREQUENT)
        found = []
        for level in levels:
            # Reports that may reveal all have an epsilon from some delta on only.
            with suppress(OutOfRegimeError):
                found.append(_best_method(profile, channel, self.num_users, level))
        if not found:
            found.append(_best_method(profile, channel, self.num_users, 0.5))
        names = tuple(dict.fromkeys(found))
        curve = _method_curve(profile, channel, self.num_users, names)
        if self.sampled_from is not None:
            curve = _subsampled_method_curve(curve, self.fraction)
        sources = "; ".join(METHODS[name].source for name in names)
        return NamedCurve(curve=curve, method=", ".join(names), source=sources)

    def attacks(self) -> tuple[HockeyStickCurve, ...]:
        """Return the curves of explicit data, whose lower ends no analysis can go below."""
        if self.law.delta0 > 0.0 or not 0.0 < self.law.epsilon0 <= _NO_AMPLIFICATION:
            return ()
        if self.sampled_from is not None:
            return _sampled_attacks(self.law, self.num_users, self.sampled_from)
        profile = _effective(self)
        return _attacks(profile, _channel_that_counts(profile), self.num_users)

    def _attacked_epsilon(self, delta: float, highest: float) -> float | None:
        """Return an epsilon that explicit data prove unavoidable, rounded down."""
        if delta == 0.0 or highest == 0.0:
            return 0.0
        found = []
        for curve in self.attacks():
            above, _ = last_above_first_below(
                functools.partial(_strength, curve), delta, 0.0, highest, relative_tolerance=1e-7
            )
            found.append(above)
        return max(found, default=None)


def honest_users(num_users: int, fraction: float) -> int:
    """Return how many users to account for where only a fraction is taken to be honest.

    Users who collude with the adversary, or send made-up reports, hide nobody: the adversary takes
    their reports away. So a guarantee counts the honest ones only.

    Parameters
    ----------
    num_users : int
        Users in the batch, at least 1.
    fraction : float
        Share of them that is honest for certain, in (0, 1].

    Returns
    -------
    int
        Rounded down. The fraction is read as the decimal number that it prints as.

    Raises
    ------
    ParameterError
        If the fraction is out of range or leaves nobody.

    Examples
    --------
    >>> honest_users(100, 0.29)
    29
    """
    users = require_at_least("num_users", num_users, 1)
    share = require_positive("fraction", fraction)
    if share > 1.0:
        raise ParameterError(f"fraction = {share} is above 1: give the honest share, as in 0.9")
    honest = math.floor(users * Fraction(repr(share)))
    if honest < 1:
        raise ParameterError(
            f"fraction = {share} of num_users = {users} leaves no honest user, and nothing hides "
            "the victim: account for num_users = 1"
        )
    return honest


def _channel_that_counts(profile: LocalProfile) -> Callable[[], object] | None:
    """Return the channel where the accountant may look at it; a family's follows from its name."""
    return profile.channel if profile.family is RandomizerFamily.OTHER else None


def _effective(release: ShuffledRelease) -> LocalProfile:
    """Return the law of what each counted user does, staying away included."""
    return _participating(release.law, release.participation, release._channel)


@functools.lru_cache(maxsize=64)
def _participating(profile: LocalProfile, chance: float, _channel: object) -> LocalProfile:
    return participating(profile, chance)


@functools.lru_cache(maxsize=256)
def _best_method(profile: LocalProfile, _channel: object, num_users: int, delta: float) -> str:
    """Return the name of a method that is smallest at this delta, but for the widths of curves."""
    return account_epsilon(profile, num_users=num_users, delta=delta, with_lower=False).method


@functools.lru_cache(maxsize=64)
def _method_curve(
    profile: LocalProfile, _channel: object, num_users: int, names: tuple[str, ...]
) -> HockeyStickCurve:
    """Return the smaller upper ends of some methods; the same object again, to keep its values.

    Each bounds every divergence at every epsilon, and so does the smaller of them.
    """
    highest = profile.epsilon0 if profile.delta0 == 0.0 else math.inf

    def both(epsilon: float) -> Enclosure:
        if epsilon >= highest:
            return Enclosure(0.0, 0.0)
        found = [LOCAL.delta(profile, num_users, epsilon).upper]
        for name in names:
            with suppress(PrecisionError):
                method = METHODS[name]
                width = _STRETCH_WIDTH if method.is_exact else _CURVE_WIDTH
                ends = method.delta_ends(profile, num_users, epsilon, with_lower=False, width=width)
                found.append(ends.upper)
        return Enclosure(0.0, max(min(found), _SMALLEST))

    return HockeyStickCurve(forward=both, backward=both, highest=highest)


@functools.lru_cache(maxsize=64)
def _subsampled_method_curve(curve: HockeyStickCurve, fraction: float) -> HockeyStickCurve:
    return subsampled_curve(curve, fraction)


@functools.lru_cache(maxsize=64)
def _attacks(
    profile: LocalProfile, _channel: object, num_users: int
) -> tuple[HockeyStickCurve, ...]:
    """Return the curves of explicit data; the same objects again, whose values may be kept."""
    return tuple(attack_curves(profile, num_users, width=_CURVE_WIDTH))


@functools.lru_cache(maxsize=64)
def _sampled_attacks(
    profile: LocalProfile, num_users: int, sampled_from: int
) -> tuple[HockeyStickCurve, ...]:
    """Return the exact curve of explicit data where m of n users are drawn.

    All others hold one value, of law omega. If the victim is not drawn, all m reports come from
    omega; otherwise the likelihood ratio to that is the mean of the ratios r0 of the reports. So
    the output has the ratio mean(q r0 + 1 - q), which is (B) for the ratios q r0 + 1 - q.
    """
    fraction = num_users / sampled_from
    away = (sampled_from - num_users) / sampled_from
    atoms = [
        BlanketAtom(
            mass=atom.mass,
            ratio0=fraction * atom.ratio0 + away,
            ratio1=fraction * atom.ratio1 + away,
        )
        for atom in attack_atoms(profile)
    ]
    if not atoms:
        return ()
    highest = amplified_epsilon(profile.epsilon0, sampling_fraction(num_users, sampled_from))

    def curve_of(law: AtomLaw) -> Callable[[float], Enclosure]:
        def enclose(epsilon: float) -> Enclosure:
            if epsilon >= highest:
                return Enclosure(0.0, 0.0)
            return atom_delta(law, num_users, epsilon, width=_ATOM_WIDTH)

        return enclose

    forward, backward = (curve_of(dominated_law(each)) for each in (atoms, mirrored(atoms)))
    return (HockeyStickCurve(forward=forward, backward=backward, highest=highest),)


def _strength(curve: HockeyStickCurve, epsilon: float) -> float:
    """Return what the better of the two orders proves at one epsilon, rounded down."""
    return max(curve.forward(epsilon).lower, curve.backward(epsilon).lower)


def _assuming(bound: Bound, assumptions: tuple[str, ...]) -> Bound:
    """Return the bound with further assumptions; the same object where there are none."""
    if not assumptions:
        return bound
    return replace(bound, assumptions=bound.assumptions + assumptions)


def _subsampled(bound: Bound, lower: float | None, upper: float) -> Bound:
    """Return the bound of a release whose users are drawn from all."""
    return replace(
        bound,
        lower=None if lower is None else min(lower, upper),
        upper=upper,
        method=f"{bound.method}, subsampled",
        source=f"{bound.source}; drawing users: Balle, Barthe, Gaboardi 2018, arXiv:1807.01647v2",
    )
