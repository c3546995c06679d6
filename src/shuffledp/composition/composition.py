"""Several releases about the same people: what they reveal together.

Releases are data, and so are their compositions:

>>> from shuffledp.composition.release import StatedRelease
>>> daily, weekly = StatedRelease(epsilon=0.1), StatedRelease(epsilon=0.2)
>>> year = daily * 365 + weekly * 52
>>> year
Composition(365 x StatedRelease(epsilon=0.1, delta=0) + 52 x StatedRelease(epsilon=0.2, delta=0))
>>> year == weekly * 52 + daily * 365
True

The user whose value differs is the same in every release: the worst case, which a promise to each
user must cover. Each release may be chosen in the light of what earlier ones showed as long as its
guarantee is as planned: the product of dominating pairs dominates adaptive compositions (Zhu, Dong,
Wang 2022, arXiv:2106.08567v4, Theorem 10).

*Above.* Each release has a curve that dominates all neighbours in either order, and
`compose_curves` encloses their product. Two simpler bounds cap it: the sum of the losses that hold
with delta = 0, and basic composition, the sum of epsilons at an even share of delta.

*Below.* Explicit data, the same pair of values held in every release: the release of all of them is
itself one of the products, so its lower ends are unavoidable. Any choice of data for each release
is allowed; a poor one only leaves a wider gap. A release without known data is left out, which is
post-processing.

*Failures* are kept apart. With probability F = 1 - prod (1 - f_i) some stated guarantee fails and
everything is revealed; otherwise the rest composes: delta = F + (1 - F) delta_rest.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from shuffledp.amplification.atom_law import SMALLEST_DELTA
from shuffledp.amplification.local import single_report_epsilon
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.amplification.registry import SHUFFLE_ASSUMPTIONS
from shuffledp.composition import compose_losses as composition
from shuffledp.composition import privacy_loss
from shuffledp.composition.privacy_loss import PrivacyLoss
from shuffledp.core import checks
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import float_above, round_up
from shuffledp.core.progress import logger

# Two rounds a minute for a year, and all periods of monitoring; sums stay exact.
MOST_ROUNDS = 2**20

SAME_USERS = (
    "The same user's data may be in all releases, and neighbouring datasets differ in all that one "
    "user contributes to any of them.",
    "Each release uses fresh randomness; what it asks, and of whom, may depend on what earlier "
    "ones showed, but not its parameters (its local epsilon, its number of users).",
)

_PRODUCT = "product of dominating pairs: Zhu, Dong, Wang 2022, arXiv:2106.08567v4, Theorem 10"
_BASIC = "Dwork, Roth 2014, The Algorithmic Foundations of Differential Privacy, Theorem 3.16"

# A curve that extends beyond this belongs to reports that hide nothing: its epsilon is added, so
# that no lattice has to span it.
_LOUD = 200.0

# Deltas that are resolved: first this one, then smaller ones until the answer is above.
_FIRST_RESOLVED, _LAST_RESOLVED = 1e-10, 1e-290

_TYPICAL_DELTA = 1e-6
_ROUNDING = 16.0 * math.ulp(1.0)

# Largest relative crossing of ends that meet; more would mean that one of them is wrong.
_MEETING = 1e-6


@runtime_checkable
class Release(Protocol):
    """Interface of a release, as composition needs it."""

    @property
    def highest(self) -> float:
        """An epsilon from which on the curve is 0; ``inf`` where there is none."""

    @property
    def failure(self) -> float:
        """Probability of revealing everything, which the curve leaves out."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions beyond the ones common to all compositions."""

    def epsilon_alone(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound epsilon of the release on its own."""

    def delta_alone(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound delta of the release on its own."""

    def curve(self, delta: float) -> HockeyStickCurve:
        """Return the upper ends of all neighbours in either order, sharpest near ``delta``."""

    def attacks(self) -> tuple[HockeyStickCurve, ...]:
        """Return curves of explicit data, whose lower ends are unavoidable."""

    def exact_loss(self, *, upper: bool) -> PrivacyLoss | None:
        """Return the law of the loss, apart from the failure, if it has two values; else None."""


Parts = Sequence[tuple[Release, int]]


class Composable:
    """Operations common to all releases and compositions; see `Composition`."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[tuple[Release, int], ...]:
        """Each release with its number of repetitions: here this one, once."""
        if not isinstance(self, Release):
            raise TypeError(f"{type(self).__name__} is no release")
        return ((self, 1),)

    def __add__(self, other: object) -> "Composition":
        """Compose: both take place, about the same people."""
        if other == 0:  # where sum() starts
            return Composition(self.parts)
        if not isinstance(other, Composable):
            return NotImplemented
        return Composition(self.parts + other.parts)

    __radd__ = __add__

    def __mul__(self, count: int) -> "Composition":
        """Compose ``count`` copies, each with fresh randomness."""
        times = checks.require_at_least("count", count, 0)
        return Composition((each, times * number) for each, number in self.parts)

    __rmul__ = __mul__

    def epsilon(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound the central epsilon of everything that is published.

        Parameters
        ----------
        delta : float
            Delta, in [0, 1).
        with_lower : bool
            False saves the time for the lower end, which is then ``None``.

        Returns
        -------
        Bound
            In nats. ``upper`` errs upwards and is proved; ``lower`` errs downwards: explicit data,
            held throughout, make it unavoidable.

        Raises
        ------
        OutOfRegimeError
            If no epsilon is known at so small a delta.

        Notes
        -----
        A single release has the bound of `account_epsilon`. Otherwise the smallest of the composed
        privacy loss distributions, basic composition, and the sum of the local losses. Cost: some
        tenths of a second for each kind of release, up to two seconds for a million rounds at
        a tiny delta.
        """
        allowed = checks.require_delta(delta)
        parts = self.parts
        if not parts:
            return _NOTHING
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0].epsilon_alone(allowed, with_lower=with_lower)
        failure = failure_of(parts)
        if allowed < failure:
            raise OutOfRegimeError(
                f"delta = {allowed:.6g} is below {failure:.6g}, the chance that a stated guarantee "
                "fails or dummies hide nothing: no epsilon is known there; ask for a larger delta"
            )
        left = max((allowed - failure) / (1.0 - failure) * (1.0 - _ROUNDING), 0.0)
        pure = pure_epsilon_of(parts)
        found = [(pure, "pure composition", _BASIC)]
        if left > 0.0 and pure > 0.0:
            with suppress(PrecisionError):
                found.append(_product_epsilon(parts, left))
            if len(parts) > 1 or len(found) == 1:  # of one kind the product is smaller
                found.append((_basic_epsilon(parts, left), "basic composition", _BASIC))
        upper, method, source = min(found, key=lambda each: each[0])
        if math.isinf(upper):
            raise OutOfRegimeError(
                f"delta = {allowed:.6g} leaves no finite epsilon: a release here needs a larger "
                "delta"
            )
        lower = _lower_epsilon(parts, allowed, upper) if with_lower else None
        logger.debug("%d rounds, delta = %g: epsilon about %.4g", _rounds(parts), allowed, upper)
        return _bound(parts, lower, upper, method, source)

    def delta(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound the central delta of everything that is published, at a given epsilon.

        Parameters
        ----------
        epsilon : float
            In nats, >= 0.
        with_lower : bool
            False saves the time for the lower end, which is then ``None``.

        Returns
        -------
        Bound
            ``upper`` errs upwards; it is 0 only where delta is exactly 0.
        """
        asked = checks.require_non_negative("epsilon", epsilon)
        parts = self.parts
        if not parts:
            return _NOTHING
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0].delta_alone(asked, with_lower=with_lower)
        failure = failure_of(parts)
        if asked >= pure_epsilon_of(parts):
            proved = _failure_below(parts) if with_lower else None
            return _bound(parts, proved, failure, "pure composition", _BASIC)
        rest, smallest, method, source = _rest_delta(parts, asked)
        upper = min(round_up(failure + (1.0 - failure) * rest), 1.0)
        lower = None
        if with_lower:  # a delta below the resolution is not proved
            resolved = rest > _LAST_RESOLVED
            lower = _lower_delta(parts, asked, smallest) if resolved else _failure_below(parts)
        return _bound(parts, lower, max(upper, SMALLEST_DELTA), method, source)

    def to_dp_accounting(self, *, smallest_delta: float = 1e-12) -> Any:
        """Return the privacy loss as a ``PrivacyLossDistribution`` of dp-accounting.

        Parameters
        ----------
        smallest_delta : float
            The smallest delta that it will be asked about, in (0, 1).

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            A pessimistic one.

        Raises
        ------
        ModuleNotFoundError
            If dp-accounting is not installed.
        """
        return privacy_loss.to_dp_accounting(self.privacy_loss(smallest_delta=smallest_delta))

    def privacy_loss(self, *, smallest_delta: float = 1e-12) -> PrivacyLoss:
        """Return a privacy loss distribution that dominates everything that is published.

        Parameters
        ----------
        smallest_delta : float
            The smallest delta that it will be asked about, in (0, 1): its probability of an
            infinite loss may be too large by this much.

        Returns
        -------
        PrivacyLoss
            On a lattice; errs upwards.
        """
        resolved = checks.require_open_unit("smallest_delta", smallest_delta)
        parts, loss = self.parts, privacy_loss.no_loss(1.0, upper=True)
        if parts:
            loss, _, _ = _product_above(parts, resolved)
        failure = failure_of(parts)
        if failure == 0.0:
            return loss
        masses = loss.masses * ((1.0 - failure) * (1.0 + _ROUNDING))
        infinite = min(round_up(failure + (1.0 - failure) * loss.infinite_mass), 1.0)
        return replace(loss, masses=masses, infinite_mass=infinite)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Composition(Composable):
    """Releases that take place about the same people, each any number of times.

    Parameters
    ----------
    parts : iterable of (release, int)
        Counts of equal releases are added up, counts of 0 left out. Their order does not matter.

    Raises
    ------
    ParameterError
        If a count is negative, or there are more than 2^20 rounds in all.

    Examples
    --------
    >>> from shuffledp.composition.release import StatedRelease
    >>> (StatedRelease(epsilon=0.1) * 3).epsilon(delta=0.0).upper
    0.30000000000000...
    """

    _parts: tuple[tuple[Release, int], ...]

    def __init__(self, parts: Iterable[tuple[Release, int]] = ()) -> None:
        counts: dict[Release, int] = {}
        for release, number in parts:
            if not isinstance(release, Release):
                raise ParameterError(
                    f"{release!r} is no release: give ShuffledRelease or StatedRelease"
                )
            times = checks.require_at_least("count", number, 0)
            counts[release] = counts.get(release, 0) + times
        kept = tuple((release, times) for release, times in counts.items() if times > 0)
        rounds = sum(times for _, times in kept)
        if rounds > MOST_ROUNDS:
            raise ParameterError(
                f"{rounds:,} rounds are above {MOST_ROUNDS:,}: account for that many at most, "
                "and add epsilons and deltas of several compositions"
            )
        object.__setattr__(self, "_parts", kept)

    @property
    def parts(self) -> tuple[tuple[Release, int], ...]:
        """Each kind of release with its number of repetitions."""
        return self._parts

    @property
    def rounds(self) -> int:
        """Total number of releases."""
        return sum(times for _, times in self._parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Composition):
            return NotImplemented
        return dict(self._parts) == dict(other._parts)

    def __hash__(self) -> int:
        return hash(frozenset(self._parts))

    def __repr__(self) -> str:
        shown = [f"{times} x {release!r}" for release, times in self._parts[:3]]
        if len(self._parts) > len(shown):
            shown.append(f"{len(self._parts) - len(shown)} more")
        return f"Composition({' + '.join(shown)})"


_NOTHING = Bound(
    lower=0.0, upper=0.0, method="nothing", source="nothing is published", assumptions=()
)


def _bound(parts: Parts, lower: float | None, upper: float, method: str, source: str) -> Bound:
    """Return the bound with all its assumptions."""
    sentences = dict.fromkeys(sentence for release, _ in parts for sentence in release.assumptions)
    return Bound(
        lower=reconciled_lower(lower, upper, tolerance=_MEETING, claim=method),
        upper=upper,
        method=method,
        source=source,
        assumptions=(*SHUFFLE_ASSUMPTIONS, *SAME_USERS, *sentences),
    )


def _rounds(parts: Parts) -> int:
    return sum(times for _, times in parts)


def failure_of(parts: Parts) -> float:
    """Return the probability that some stated guarantee fails, rounded up."""
    if any(part.failure >= 1.0 for part, _ in parts):  # dummies of one number hide nothing
        return 1.0
    exponent = math.fsum(times * math.log1p(-part.failure) for part, times in parts)
    return min(0.0 - math.expm1(exponent) * (1.0 + _ROUNDING), 1.0)  # never -0.0


def _failure_below(parts: Parts) -> float:
    """Return the probability that some stated guarantee fails, rounded down."""
    return failure_of(parts) * (1.0 - 4.0 * _ROUNDING)


def pure_epsilon_of(parts: Parts) -> float:
    """Return the sum of the losses that hold at a delta of the failures alone, rounded up.

    Exact where the sum is a double: four quarters are 1.
    """
    if any(math.isinf(part.highest) for part, _ in parts):
        return math.inf
    return float_above(sum((times * Fraction(part.highest) for part, times in parts), Fraction()))


def _curves(parts: Parts, delta: float) -> list[tuple[HockeyStickCurve, int]]:
    """Return the upper curves at an even share of delta, or at the smallest delta told from 0."""
    level = max(delta / _rounds(parts), SMALLEST_DELTA)
    return [(part.curve(level), times) for part, times in parts]


def _basic_epsilon(parts: Parts, left: float) -> float:
    """Return the sum of the epsilons at an even share of delta, rounded up."""
    share = left / _rounds(parts) * (1.0 - _ROUNDING)
    total = 0.0
    for part, times in parts:
        if part.failure > 0.0:  # a share may be lost, or doubled, when it is added to a failure
            alone = single_report_epsilon(part.highest, share)
        else:
            try:
                alone = part.epsilon_alone(share, with_lower=False).upper
            except (OutOfRegimeError, PrecisionError):
                alone = part.highest
        total += times * min(alone, part.highest)
    return round_up(total, operations=2 * len(parts))


def _basic_delta(parts: Parts, epsilon: float) -> float:
    """Return the sum of the deltas at shares of epsilon in proportion to the pure losses."""
    pure = pure_epsilon_of(parts)
    if math.isinf(pure):
        return 1.0
    total = 0.0
    for part, times in parts:
        share = epsilon * (part.highest / pure) * (1.0 - _ROUNDING)
        total += times * part.curve(_TYPICAL_DELTA).forward(share).upper
    return min(round_up(total, operations=2 * len(parts)), 1.0)


def _split(parts: Parts) -> tuple[list[tuple[Release, int]], float]:
    """Return the parts whose curves fit a lattice, and the pure epsilon of all others."""
    quiet = [(part, times) for part, times in parts if 0.0 < part.highest <= _LOUD]
    quiet += [(part, times) for part, times in parts if math.isinf(part.highest)]
    return quiet, pure_epsilon_of([each for each in parts if _LOUD < each[0].highest < math.inf])


def _stated_loss(parts: Parts, *, upper: bool) -> tuple[PrivacyLoss, int] | None:
    """Return one loss of stated guarantees with one epsilon, and their number; else None.

    Their losses are on a lattice already. Their failures, which may differ, are counted apart.
    """
    losses = [part.exact_loss(upper=upper) for part, _ in parts]
    alike = len({part.highest for part, _ in parts}) == 1 and None not in losses
    return (losses[0], _rounds(parts)) if alike and losses[0] is not None else None


def _product_above(parts: Parts, smallest_delta: float) -> tuple[PrivacyLoss, str, str]:
    """Return the product of all upper curves, with its name and source."""
    if (stated := _stated_loss(parts, upper=True)) is not None:
        return composition.compose([stated], smallest_delta), "composed stated", _PRODUCT
    curves = _curves(parts, smallest_delta)
    loss = composition.compose_curves(curves, smallest_delta=smallest_delta, upper=True)
    methods = dict.fromkeys(curve.method for curve, _ in curves)
    sources = dict.fromkeys(curve.source for curve, _ in curves)
    return loss, f"composed {', '.join(methods)}", "; ".join((*sources, _PRODUCT))


def _product_epsilon(parts: Parts, left: float) -> tuple[float, str, str]:
    """Return epsilon of the product of the curves, with its name and source."""
    quiet, added = _split(parts)
    if not quiet:
        return added, "pure composition", _BASIC
    loss, method, source = _product_above(quiet, left)
    return round_up(max(loss.epsilon(left), 0.0) + added, operations=2), method, source


def _rest_delta(parts: Parts, epsilon: float) -> tuple[float, float, str, str]:
    """Return delta without failures, the delta resolved, and the name and source.

    Every attempt is an upper bound. A finer one is made while the answer may be truncation alone.
    """
    best, method, source = _basic_delta(parts, epsilon), "basic composition", _BASIC
    smallest = resolved = _FIRST_RESOLVED
    quiet, added = _split(parts)
    if epsilon < added or not quiet or best <= _LAST_RESOLVED:
        return best, smallest, method, source
    with suppress(PrecisionError):
        while True:
            loss, *named = _product_above(quiet, resolved)
            found, smallest = loss.delta(epsilon - added), resolved
            if found <= best:
                best, (method, source) = found, named
            if found >= resolved or resolved <= _LAST_RESOLVED:
                break
            # Below the delta of a Gaussian loss of the same mean and variance.
            losses = (loss.first + np.arange(loss.masses.size)) * loss.interval
            mean = float((loss.masses * losses).sum())
            variance = float((loss.masses * (losses - mean) ** 2).sum())
            exponent = 0.7 * (epsilon - added - mean) ** 2 / max(variance, 1e-30) + 10.0
            expected = min(math.exp(-min(exponent, 700.0)), 1e-10 * resolved)
            resolved = max(expected, _LAST_RESOLVED)
    return best, smallest, method, source


def _lower_epsilon(parts: Parts, delta: float, upper: float) -> float | None:
    """Return an epsilon that explicit data prove unavoidable, rounded down; None if none is."""
    failure = _failure_below(parts)
    left = (delta - failure) / (1.0 - failure) * (1.0 + _ROUNDING)
    if upper == 0.0 or left >= 1.0:
        return 0.0
    if delta == 0.0:
        alone = [(part.epsilon_alone(0.0).lower, times) for part, times in parts]
        proved = [lower * times for lower, times in alone if lower is not None]
        return math.fsum(proved) * (1.0 - _ROUNDING) if proved else None
    return _below(
        parts, left, lambda loss: loss.epsilon(left), lambda part: part.epsilon_alone(delta)
    )


def _lower_delta(parts: Parts, epsilon: float, smallest: float) -> float | None:
    """Return a delta that explicit data prove unavoidable, rounded down; None if none is."""
    failure = _failure_below(parts)
    return _below(
        parts,
        smallest,
        lambda loss: (failure + (1.0 - failure) * loss.delta(epsilon)) * (1.0 - _ROUNDING),
        lambda part: part.delta_alone(epsilon),
    )


def _below(
    parts: Parts,
    smallest_delta: float,
    composed: Callable[[PrivacyLoss], float],
    alone: Callable[[Release], Bound],
) -> float | None:
    """Return the lower bound of the product of the strongest data; else of one release."""
    with suppress(PrecisionError):
        loss = None
        if (stated := _stated_loss(parts, upper=False)) is not None:
            loss = composition.compose([stated], smallest_delta)
        elif known := _attacks_on(_split(parts)[0]):
            loss = composition.compose_curves(known, smallest_delta=smallest_delta, upper=False)
        if loss is not None and (proved := composed(loss)) > 0.0:
            return proved
    found = []
    for part, _ in parts:
        with suppress(OutOfRegimeError, PrecisionError):
            found.append(alone(part).lower)
    return max((lower for lower in found if lower is not None), default=None)


def _attacks_on(parts: Parts) -> list[tuple[HockeyStickCurve, int]]:
    """Return the strongest explicit data of each part that has any.

    They are compared at an epsilon of two deviations of a Gaussian loss, half the highest at most.
    """
    strongest = []
    for part, times in parts:
        best, strength = None, -1.0
        for curve in part.attacks():
            with suppress(PrecisionError):
                point = 2.0 * math.sqrt(2.0 * math.pi) * curve.forward(0.0).lower
                point = min(point, 0.5 * curve.highest)
                for order in (curve, curve.reversed):
                    if (found := order.forward(point).lower) > strength:
                        best, strength = order, found
        if best is not None:
            strongest.append((best, times))
    return strongest
