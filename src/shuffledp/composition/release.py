"""Releases: shuffled batches and stated guarantees, with all that composition needs of them.

`ShuffledRelease` is one uniformly shuffled batch of randomized reports; `StatedRelease` is anything
else with a known (epsilon, delta) guarantee. Both compose by ``+`` and ``*``, see `Composition`.
"""

import functools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, SupportsFloat

import numpy as np

from shuffledp.amplification import local, sampling
from shuffledp.amplification.atom_law import SMALLEST_DELTA, atom_delta, mirrored
from shuffledp.amplification.dummies import (
    added_sentence,
    dummy_curve,
    finite_curve,
    is_bare,
    noisy_curve,
    pair_of_bins,
)
from shuffledp.amplification.lower_bounds import attack_atoms, attack_curves, dominated_law
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.amplification.registry import (
    DUMMY_ASSUMPTIONS,
    METHODS,
    SHUFFLE_ASSUMPTIONS,
    account_delta,
    account_epsilon,
)
from shuffledp.composition.composition import Composable
from shuffledp.composition.privacy_loss import PrivacyLoss, no_loss
from shuffledp.core import checks
from shuffledp.core.bound import Bound
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure, float_above
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LARGEST_EPSILON0, BlanketAtom, LocalProfile, RandomizerFamily

# Relative error of the few roundings of a closed form.
_ROUNDING = 64.0 * math.ulp(1.0)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class StatedRelease(Composable):
    """A release of any kind with a known (epsilon, delta) guarantee for the same neighbours.

    Parameters
    ----------
    epsilon : float
        Central epsilon in nats, >= 0; kept as ``stated_epsilon``.
    delta : float
        Delta, in [0, 1); kept as ``stated_delta``.

    Notes
    -----
    Composed as the worst mechanism with this guarantee: with probability delta it reveals
    everything, otherwise it is binary randomized response (Kairouz, Oh, Viswanath 2015,
    arXiv:1311.0776v4, the proof of Theorem 3.3). Lower ends hold for this mechanism.

    Examples
    --------
    >>> StatedRelease(epsilon=0.5, delta=1e-9)
    StatedRelease(epsilon=0.5, delta=1e-09)
    """

    stated_epsilon: float
    stated_delta: float
    assumptions: ClassVar[tuple[str, ...]] = (
        "Stated guarantees hold, for the same neighbours: datasets that differ in all that one "
        "user contributes.",
    )
    _source: ClassVar[str] = (
        "Kairouz, Oh, Viswanath 2015, arXiv:1311.0776v4: every mechanism with a guarantee is "
        "post-processing of randomized response that reveals all with probability delta"
    )

    def __init__(self, *, epsilon: SupportsFloat, delta: SupportsFloat = 0.0) -> None:
        # `epsilon` and `delta` are methods of every release, so the fields have other names.
        object.__setattr__(self, "stated_epsilon", checks.require_non_negative("epsilon", epsilon))
        object.__setattr__(self, "stated_delta", checks.require_delta(delta))

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

    def epsilon_alone(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound epsilon at another delta, from the stated guarantee."""
        allowed = checks.require_delta(delta)
        if allowed < self.stated_delta:
            raise OutOfRegimeError(
                f"delta = {allowed:.6g} is below the stated delta = {self.stated_delta:.6g}: no "
                "epsilon is known there; ask for a larger delta"
            )
        left = (allowed - self.stated_delta) / (1.0 - self.stated_delta)
        upper = local.single_report_epsilon(self.stated_epsilon, max(left * (1.0 - _ROUNDING), 0.0))
        lower = local.single_report_epsilon(self.stated_epsilon, min(left * (1.0 + _ROUNDING), 1.0))
        lower = max(lower - 2.0 * _ROUNDING * max(self.stated_epsilon, 1.0), 0.0)
        return self._bound(lower if with_lower else None, upper)

    def delta_alone(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound delta at another epsilon, from the stated guarantee."""
        rest = local.single_report_delta(
            self.stated_epsilon, checks.require_non_negative("epsilon", epsilon)
        )
        exact = self.stated_delta + (1.0 - self.stated_delta) * rest
        upper = min(exact * (1.0 + (_ROUNDING if rest else 0.0)), 1.0)
        return self._bound(exact * (1.0 - 2.0 * _ROUNDING) if with_lower else None, upper)

    def _bound(self, lower: float | None, upper: float) -> Bound:
        return Bound(
            lower=None if lower is None else min(lower, upper),
            upper=upper,
            method="stated",
            source=self._source,
            assumptions=self.assumptions,
        )

    def curve(self, delta: float = 0.0) -> HockeyStickCurve:  # noqa: ARG002 - one at every delta
        """Return the curve of binary randomized response, without the failure."""
        return _binary_curve(self)

    def attacks(self) -> tuple[HockeyStickCurve, ...]:
        """Return the same curve: a mechanism with this guarantee attains it."""
        return (self.curve(),)

    def exact_loss(self, *, upper: bool) -> PrivacyLoss:
        """Return the law of the privacy loss, apart from the failure, on a lattice of its own.

        Two losses, epsilon with probability e^epsilon / (1 + e^epsilon), and -epsilon; with
        ``upper`` the losses of a slightly larger epsilon.
        """
        if self.stated_epsilon == 0.0:
            return no_loss(1.0, upper=upper)
        interval = math.nextafter(self.stated_epsilon, math.inf if upper else 0.0)
        shrink = math.exp(-interval)
        masses = np.array([shrink / (1.0 + shrink), 0.0, 1.0 / (1.0 + shrink)])
        masses *= 1.0 + (_ROUNDING if upper else -_ROUNDING)
        return replace(no_loss(interval, upper=upper), first=-1, masses=masses)


@functools.lru_cache(maxsize=64)
def _binary_curve(release: StatedRelease) -> HockeyStickCurve:
    """Return the exact curve of binary randomized response; cached."""

    def both(epsilon: float) -> Enclosure:
        upper = local.single_report_delta(release.stated_epsilon, epsilon)
        return Enclosure(upper * (1.0 - _ROUNDING), upper)

    return HockeyStickCurve(
        both, both, release.stated_epsilon, method="stated", source=release._source
    )


# Losses of this probability determine the sum of many.
_FREQUENT = 0.01

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
        The randomizer's law, ``randomizer.profile``: usually gives a smaller epsilon. It is kept
        as ``law``, whichever was given.
    sampled_from : int, optional
        Number of users, all honest, from whom the ``num_users`` were drawn uniformly, anew for this
        release and in secret.
    participation : float
        Chance that each user takes part, by an independent secret coin; 1 where all do.
    dummies : DummyLaw, optional
        Law of the reports that belong to nobody and are shuffled with the others; see
        `account_epsilon`.

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
    dummies: DummyLaw | None = None
    law: LocalProfile = field(init=False, repr=False, compare=False)
    # Profiles compare equal whatever their channels; releases that are counted together must not,
    # where the accountant may use the channel: a family's follows from its name.
    _channel: Callable[[], object] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        checks.set_fields(self, num_users=checks.require_at_least("num_users", self.num_users, 1))
        if (self.epsilon0 is None) == (self.profile is None):
            raise ParameterError(
                "give exactly one of epsilon0 (any randomizer) and profile (a particular one)"
            )
        for name, kind in (("profile", LocalProfile), ("dummies", DummyLaw)):
            if not isinstance(given := getattr(self, name), kind | None):
                raise ParameterError(f"{name} is a {type(given).__name__}: give a {kind.__name__}")
        law = self.profile or LocalProfile(epsilon0=0.0 if self.epsilon0 is None else self.epsilon0)
        channel = law.channel if law.family is RandomizerFamily.OTHER else None
        checks.set_fields(self, profile=law, law=law, epsilon0=law.epsilon0, _channel=channel)
        chance = checks.require_finite("participation", self.participation)
        if not 0.0 < chance <= 1.0:
            raise ParameterError(f"participation = {chance} is not in (0, 1]: it is a probability")
        checks.set_fields(self, participation=chance)
        if self.sampled_from is not None:
            if chance < 1.0:
                raise ParameterError(
                    "sampled_from and participation exclude each other: give the one that "
                    "describes how users are drawn"
                )
            sampling.sampling_fraction(self.num_users, self.sampled_from)  # refuses too few
            checks.set_fields(self, sampled_from=int(self.sampled_from))

    def __repr__(self) -> str:
        what = f"epsilon0={self.law.epsilon0:.6g}"
        if self.law.delta0 > 0.0:
            what += f", delta0={self.law.delta0:.6g}"
        if self.law.family is not RandomizerFamily.ANY:
            what += f", family={self.law.family.value!r}"
        drawn = "" if self.sampled_from is None else f", sampled_from={self.sampled_from}"
        if self.participation < 1.0:
            drawn = f", participation={self.participation:.6g}"
        if self.dummies is not None:
            drawn += f", dummies={str(self.dummies)!r}"
        return f"ShuffledRelease({what}, num_users={self.num_users}{drawn})"

    @property
    def _table(self) -> DummyLaw | None:
        """The table whose infinite losses are counted apart; None unless reports are the values."""
        plain = self.dummies is not None and self.dummies.sender == "shuffler"
        return self.dummies if plain and self._is_bare else None

    @property
    def _is_bare(self) -> bool:
        """True if reports are the values, of all users: dummies alone hide them."""
        return self.fraction == 1.0 and is_bare(_effective(self))

    @property
    def failure(self) -> float:
        """Probability that dummies hide nothing, apart from the curve; 0 with local noise."""
        table = self._table
        return 0.0 if table is None else float_above(pair_of_bins(table, 1).infinite)

    @property
    def fraction(self) -> float:
        """Share of the users who are drawn, rounded up; 1 unless ``sampled_from`` is given."""
        return sampling.sampling_fraction(self.num_users, self.sampled_from or self.num_users)

    @property
    def highest(self) -> float:
        """An epsilon at which delta is 0, rounded up; ``inf`` where there is none."""
        if self.law.delta0 > 0.0:
            return math.inf
        if self._table is not None:
            return finite_curve(self._table).highest
        return sampling.amplified_epsilon(self.law.epsilon0, self.fraction)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions beyond the ones common to all shuffled releases."""
        told = []
        if self.sampled_from is not None:
            told.append(
                f"The {self.num_users} users of a release are drawn uniformly from "
                f"{self.sampled_from} honest ones, anew for each release, and who was drawn stays "
                "secret."
            )
        if self.participation < 1.0:
            told.append(
                f"Each of the {self.num_users} honest users takes part with probability "
                f"{self.participation:g}, by a fresh coin that nobody else sees."
            )
        if self.dummies is not None:
            told.append(added_sentence(self.dummies))
        return tuple(told)

    def epsilon_alone(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound the central epsilon of this release on its own; see `account_epsilon`."""
        if self.sampled_from is None:
            law = _effective(self)
            bound = account_epsilon(law, delta=delta, with_lower=with_lower, **self._batch)
            return bound.assuming(*self.assumptions)
        inner = checks.require_delta(delta) / self.fraction
        if inner >= 1.0:  # nobody is drawn often enough to matter at this delta
            return Bound(
                lower=0.0,
                upper=0.0,
                method="subsampled",
                source="delta is at least the probability of being drawn",
                assumptions=self.assumptions,
            )
        level = inner * (1.0 - _ROUNDING)
        bound = account_epsilon(self.law, delta=level, with_lower=False, **self._batch)
        upper = sampling.amplified_epsilon(bound.upper, self.fraction)
        lower: float | None = 0.0
        if delta > 0.0 and upper > 0.0 and with_lower:
            attacked = (
                last_above_first_below(curve.strength, delta, 0.0, upper, relative_tolerance=1e-7)
                for curve in self.attacks()
            )
            lower = max((above for above, _ in attacked), default=None)
        return self._subsampled(bound, lower if with_lower else None, upper)

    def delta_alone(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound the central delta of this release on its own; see `account_delta`."""
        if self.sampled_from is None:
            law = _effective(self)
            bound = account_delta(law, epsilon=epsilon, with_lower=with_lower, **self._batch)
            return bound.assuming(*self.assumptions)
        asked = checks.require_non_negative("epsilon", epsilon)
        inner = min(sampling.inner_epsilon(asked, self.fraction), self.law.epsilon0)
        bound = account_delta(self.law, epsilon=inner, with_lower=False, **self._batch)
        upper = bound.upper
        if upper > 0.0:
            upper = min(max(upper * self.fraction * (1.0 + _ROUNDING), SMALLEST_DELTA), 1.0)
        lower: float | None = 0.0
        if asked < self.highest and with_lower:
            lower = max((curve.strength(asked) for curve in self.attacks()), default=None)
        return self._subsampled(bound, lower if with_lower else None, upper)

    @property
    def _batch(self) -> dict[str, Any]:
        """Arguments of the accountant beside the law of a report."""
        return {"num_users": self.num_users, "dummies": self.dummies}

    def _subsampled(self, bound: Bound, lower: float | None, upper: float) -> Bound:
        """Return the bound of a release whose users are drawn from all.

        They must be honest even among dummies: others know whether they were drawn themselves.
        """
        honest = dict(zip(DUMMY_ASSUMPTIONS, SHUFFLE_ASSUMPTIONS, strict=True))
        told = bound.assuming(*self.assumptions)
        return replace(
            told,
            assumptions=tuple(honest.get(each, each) for each in told.assumptions),
            lower=None if lower is None else min(lower, upper),
            upper=upper,
            method=f"{bound.method}, subsampled",
            source=f"{bound.source}; drawing users: Balle, Barthe, Gaboardi 2018, "
            "arXiv:1807.01647v2",
        )

    def curve(self, delta: float) -> HockeyStickCurve:
        """Return the upper ends of the best methods near ``delta`` and near 0.01.

        Where these are two methods, the smaller at each epsilon: in many rounds each matters, the
        one for the rare large losses, the other for the frequent small ones. With dummies, the
        smaller of the curves with and without them.
        """
        if self.dummies is not None:
            table = self._table
            if table is None:
                return _dummy_curve(self, self.dummies, delta)
            return finite_curve(table)
        found = []
        for level in (min(delta / self.fraction, 0.5), _FREQUENT):
            # Reports that may reveal all have a finite epsilon from some delta on only.
            with suppress(OutOfRegimeError):
                found.append(_best_method(self, level))
        return _method_curve(self, tuple(dict.fromkeys(found or [_best_method(self, 0.5)])))

    def exact_loss(self, *, upper: bool) -> None:
        """Return None: the law of the loss is not known exactly."""

    def attacks(self) -> tuple[HockeyStickCurve, ...]:
        """Return the curves of explicit data, whose lower ends no analysis can go below."""
        if self.dummies is not None:
            if self._table is not None:
                return (finite_curve(self._table),)
            if not self._is_bare:
                return ()
            return (dummy_curve(self.dummies, self.law, self.num_users),)
        if self.law.delta0 > 0.0 or not 0.0 < self.law.epsilon0 <= LARGEST_EPSILON0:
            return ()
        return _attacks(self) if self.sampled_from is None else _sampled_attacks(self)


def honest_users(num_users: int, fraction: float) -> int:
    """Return the number of users to account for when only a fraction is assumed honest.

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
    users = checks.require_at_least("num_users", num_users, 1)
    share = checks.require_finite("honest_fraction", fraction)
    if not 0.0 < share <= 1.0:
        raise ParameterError(
            f"honest_fraction = {share} is not in (0, 1]: give the share of users who are honest "
            "for certain, as in 0.9"
        )
    honest = math.floor(users * Fraction(repr(share)))
    if honest < 1:
        raise ParameterError(
            f"honest_fraction = {share} leaves no honest user, and nothing hides the victim: give "
            "a larger one, or account for num_users = 1"
        )
    return honest


# Results of a release are cached: curves stay the same objects, whose values are cached, too.
@functools.lru_cache(maxsize=64)
def _effective(release: ShuffledRelease) -> LocalProfile:
    """Return the law of each counted user's report, non-participation included."""
    return sampling.participating(release.law, release.participation)


@functools.lru_cache(maxsize=256)
def _best_method(release: ShuffledRelease, delta: float) -> str:
    """Return the name of a method that is smallest at this delta, up to the widths of curves."""
    profile, num_users = _effective(release), release.num_users
    return account_epsilon(profile, num_users=num_users, delta=delta, with_lower=False).method


@functools.lru_cache(maxsize=64)
def _method_curve(release: ShuffledRelease, names: tuple[str, ...]) -> HockeyStickCurve:
    """Return the smaller upper ends of some methods.

    Each bounds every divergence at every epsilon, and so does the smaller of them.
    """
    profile = _effective(release)
    highest = profile.epsilon0 if profile.delta0 == 0.0 else math.inf

    def both(epsilon: float) -> Enclosure:
        if epsilon >= highest:
            return Enclosure(0.0, 0.0)
        found = [local.LOCAL.delta(profile, release.num_users, epsilon).upper]
        for name in names:
            with suppress(PrecisionError):
                width = _STRETCH_WIDTH if METHODS[name].is_exact else _CURVE_WIDTH
                ends = METHODS[name].delta(profile, release.num_users, epsilon, width)
                found.append(ends.upper)
        return Enclosure(0.0, max(min(found), SMALLEST_DELTA))

    sources = "; ".join(METHODS[name].source for name in names)
    curve = HockeyStickCurve(both, both, highest, method=", ".join(names), source=sources)
    return sampling.subsampled_curve(curve, release.fraction)


@functools.lru_cache(maxsize=64)
def _dummy_curve(release: ShuffledRelease, law: DummyLaw, delta: float) -> HockeyStickCurve:
    """Return the smaller of the curve with dummies and the one without, if that can be smaller."""
    profile = _effective(release)
    alone = noisy_curve(law, profile) or dummy_curve(law, profile, release.num_users)
    alone = sampling.subsampled_curve(alone, release.fraction)
    if release.num_users == 1 or math.isinf(release.law.epsilon0):
        return alone
    plain = replace(release, dummies=None, epsilon0=None).curve(delta)

    def both(epsilon: float) -> Enclosure:
        return Enclosure(0.0, min(alone.forward(epsilon).upper, plain.forward(epsilon).upper))

    names, sources = f"{alone.method}, {plain.method}", f"{alone.source}; {plain.source}"
    return HockeyStickCurve(both, both, alone.highest, method=names, source=sources)


@functools.lru_cache(maxsize=64)
def _attacks(release: ShuffledRelease) -> tuple[HockeyStickCurve, ...]:
    """Return the curves of explicit data."""
    return tuple(attack_curves(_effective(release), release.num_users, width=_CURVE_WIDTH))


@functools.lru_cache(maxsize=64)
def _sampled_attacks(release: ShuffledRelease) -> tuple[HockeyStickCurve, ...]:
    """Return the exact curve of explicit data where m of n users are drawn.

    All others hold one value, of law omega. If the victim is not drawn, all m reports come from
    omega; otherwise the likelihood ratio to that is the mean of the ratios r0 of the reports. So
    the output has the ratio mean(q r0 + 1 - q), which is (B) for the ratios q r0 + 1 - q.
    """
    num_users, population = release.num_users, release.sampled_from or release.num_users
    drawn, away = num_users / population, (population - num_users) / population
    atoms = [
        BlanketAtom(
            mass=atom.mass, ratio0=drawn * atom.ratio0 + away, ratio1=drawn * atom.ratio1 + away
        )
        for atom in attack_atoms(release.law)
    ]
    if not atoms:
        return ()
    laws = dominated_law(atoms), dominated_law(mirrored(atoms))

    def enclose(order: int, epsilon: float) -> Enclosure:
        if epsilon >= release.highest:
            return Enclosure(0.0, 0.0)
        return atom_delta(laws[order], num_users, epsilon, width=_ATOM_WIDTH)

    forward, backward = functools.partial(enclose, 0), functools.partial(enclose, 1)
    return (HockeyStickCurve(forward, backward, release.highest),)
