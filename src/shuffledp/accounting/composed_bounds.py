"""Epsilon and delta of a composition, from both sides.

*Above.* Each release has a curve that dominates all neighbours in either order. The product of
dominating pairs dominates the composition, adaptive or not (Zhu, Dong, Wang 2022,
arXiv:2106.08567v4, Theorem 10), and `compose_curves` encloses the product. Two simpler bounds cap
it: the sum of the losses that hold with delta = 0, and basic composition, the sum of epsilons at an
even share of delta.

*Below.* Explicit data, the same pair of values held in every release: the release of all of them is
itself one of the products, so its lower ends are unavoidable. Any choice of data for each release
is allowed; a poor one only leaves a wider gap. A release without known data is left out, which is
post-processing.

*Failures* are kept apart. With probability F = 1 - prod (1 - f_i) some stated guarantee fails and
everything is revealed; otherwise what is left composes: delta = F + (1 - F) delta_rest.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from shuffledp.accounting import composition
from shuffledp.accounting.amplification.local import single_report_epsilon
from shuffledp.accounting.amplification.registry import SHUFFLE_ASSUMPTIONS
from shuffledp.accounting.composed import Release
from shuffledp.accounting.discretization import value_at
from shuffledp.accounting.privacy_loss import HockeyStickCurve, PrivacyLoss, no_loss
from shuffledp.accounting.release import StatedRelease
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.checks import require_delta, require_non_negative, require_open_unit
from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.numerics.enclosure import float_above, round_up
from shuffledp.core.progress import logger

Parts = Sequence[tuple[Release, int]]

SAME_USERS = (
    "The same user's data may be in all releases, and neighbouring datasets differ in all that one "
    "user contributes to any of them.",
    "Each release uses fresh randomness; what it asks, and of whom, may depend on what earlier "
    "ones showed, but not its parameters (its local epsilon, its number of users).",
)

_PRODUCT = "product of dominating pairs: Zhu, Dong, Wang 2022, arXiv:2106.08567v4, Theorem 10"
_BASIC = "Dwork, Roth 2014, The Algorithmic Foundations of Differential Privacy, Theorem 3.16"

# A curve that reaches further than this is that of reports which hide nothing: its epsilon is
# added, so that no lattice has to span it.
_LOUD = 200.0

# Deltas that are resolved: first this one, then smaller ones until the answer is above.
_FIRST_RESOLVED, _LAST_RESOLVED = 1e-10, 1e-290

_SMALLEST_DELTA = 1e-300
_TYPICAL_DELTA = 1e-6
_ROUNDING = 16.0 * math.ulp(1.0)

# What is closer to another end than this, relatively, is not composed for: lattices are no finer.
_CLOSE, _VERY_CLOSE = 1.0 - 1e-3, 1.0 - 1e-5

# By how much ends that meet may cross; more would mean that one of them is wrong.
_MEETING = 1e-6


def composed_epsilon(parts: Parts, delta: float, *, with_lower: bool = True) -> Bound:
    """Bound epsilon of all parts together; see `Composable.epsilon`.

    ``upper`` errs upwards, ``lower`` downwards.
    """
    allowed = require_delta(delta)
    if not parts:
        return _NOTHING
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].epsilon_alone(allowed, with_lower=with_lower)
    failure = failure_of(parts)
    if allowed < failure:
        raise OutOfRegimeError(
            f"delta = {allowed:.6g} is below {failure:.6g}, the chance that a stated guarantee "
            "fails: no epsilon is known there; ask for a larger delta"
        )
    left = max((allowed - failure) / (1.0 - failure) * (1.0 - _ROUNDING), 0.0)
    pure = pure_epsilon_of(parts)
    found = [(pure, "pure composition", _BASIC)]
    if left > 0.0 and pure > 0.0 and not _pure_is_close(parts, left, pure):
        with suppress(PrecisionError):
            found.append(_product_epsilon(parts, left))
        least = min(each[0] for each in found)
        if least > 0.0 and not _basic_is_above(parts, left, least):
            found.append((_basic_epsilon(parts, left), "basic composition", _BASIC))
    upper, method, source = min(found, key=lambda each: each[0])
    if math.isinf(upper):
        raise OutOfRegimeError(
            f"delta = {allowed:.6g} leaves no finite epsilon: a release here needs a larger delta"
        )
    lower = _lower_epsilon(parts, allowed, upper) if with_lower else None
    logger.debug("%d rounds, delta = %g: epsilon about %.4g", _rounds(parts), allowed, upper)
    return _bound(parts, lower, upper, method, source)


def composed_delta(parts: Parts, epsilon: float, *, with_lower: bool = True) -> Bound:
    """Bound delta of all parts together; see `Composable.delta`.

    ``upper`` errs upwards and is at least 1e-300 unless delta is exactly 0.
    """
    asked = require_non_negative("epsilon", epsilon)
    if not parts:
        return _NOTHING
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].delta_alone(asked, with_lower=with_lower)
    failure = failure_of(parts)
    if asked >= pure_epsilon_of(parts):
        proved = _failure_below(parts) if with_lower else None
        return _bound(parts, proved, failure, "pure composition", _BASIC)
    if (certain := composition.certain_delta(_attacks_on(parts), asked)) > 0.0:
        return _bound(parts, certain if with_lower else None, 1.0, "basic composition", _BASIC)
    rest, smallest, method, source = _rest_delta(parts, asked)
    upper = min(round_up(failure + (1.0 - failure) * rest), 1.0)
    lower = None
    if with_lower:  # what no composition resolves none proves
        resolved = rest > _LAST_RESOLVED
        lower = _lower_delta(parts, asked, smallest) if resolved else _failure_below(parts)
    return _bound(parts, lower, max(upper, _SMALLEST_DELTA), method, source)


def composed_loss(parts: Parts, *, smallest_delta: float) -> PrivacyLoss:
    """Return a privacy loss distribution that dominates all parts together.

    Errs upwards; failures of stated guarantees are in its infinite mass.
    """
    resolved = require_open_unit("smallest_delta", smallest_delta)
    loss, _, _ = _product_above(parts, resolved) if parts else (no_loss(1.0, "upper"), "", "")
    failure = failure_of(parts)
    if failure == 0.0:
        return loss
    masses = loss.masses * ((1.0 - failure) * (1.0 + _ROUNDING))
    infinite = min(round_up(failure + (1.0 - failure) * loss.infinite_mass), 1.0)
    return replace(loss, masses=masses, infinite_mass=infinite)


_NOTHING = Bound(
    lower=0.0, upper=0.0, method="nothing", source="nothing is published", assumptions=()
)


def _bound(parts: Parts, lower: float | None, upper: float, method: str, source: str) -> Bound:
    """Return the bound with all that it assumes."""
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
    exponent = math.fsum(times * math.log1p(-part.failure) for part, times in parts)
    return min(0.0 - math.expm1(exponent) * (1.0 + _ROUNDING), 1.0)  # never -0.0


def _failure_below(parts: Parts) -> float:
    """Return the same, rounded down."""
    return failure_of(parts) * (1.0 - 4.0 * _ROUNDING)


def pure_epsilon_of(parts: Parts) -> float:
    """Return the sum of the losses that hold with no delta but the failures, rounded up.

    Exact where the sum is a double: four quarters are 1.
    """
    if any(math.isinf(part.highest) for part, _ in parts):
        return math.inf
    return float_above(sum((times * Fraction(part.highest) for part, times in parts), Fraction()))


def _curves(parts: Parts, delta: float) -> list[tuple[HockeyStickCurve, int]]:
    """Return the upper curves at an even share of delta, but none below what is told from 0."""
    level = max(delta / _rounds(parts), _SMALLEST_DELTA)
    return [(part.curve(level), times) for part, times in parts]


def _pure_is_close(parts: Parts, left: float, pure: float) -> bool:
    """Tell whether the product of the curves cannot give clearly less than all losses added up."""
    if any(part.failure > 0.0 or not part.highest < math.inf for part, _ in parts):
        return False
    curves = [each for each in _curves(parts, left) if each[0].highest > 0.0]
    return composition.certain_epsilon(curves, left, upper=True) >= pure * _CLOSE


def _basic_is_above(parts: Parts, left: float, least: float) -> bool:
    """Tell whether basic composition cannot give less than ``least``, save for the curves' widths.

    It cannot where each part alone has more than its share of delta at epsilons that add up to
    that: one value of each curve, for an inversion that takes dozens.
    """
    if any(part.failure > 0.0 or math.isinf(part.highest) for part, _ in parts):
        return False
    level = max(left / _rounds(parts), _SMALLEST_DELTA) * (1.0 + _ROUNDING)
    curves = _curves(parts, left)
    strengths = [value_at(curve.forward, 0.0).upper for curve, _ in curves]
    total = math.fsum(times * each for (_, times), each in zip(curves, strengths, strict=True))
    return total > 0.0 and all(
        value_at(curve.forward, least * each / total).upper > level
        for (curve, _), each in zip(curves, strengths, strict=True)
    )


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
    stated = [part for part, _ in parts if isinstance(part, StatedRelease)]
    if len(stated) < len(parts) or len({part.stated_epsilon for part in stated}) > 1:
        return None
    return stated[0].exact_loss(upper=upper), _rounds(parts)


def _product_above(
    parts: Parts, smallest_delta: float, *, aimed: bool = False
) -> tuple[PrivacyLoss, str, str]:
    """Return the product of all upper curves, with its name and source."""
    if (stated := _stated_loss(parts, upper=True)) is not None:
        loss = composition.compose([stated], smallest_delta, aimed=aimed)
        return loss, "composed stated", _PRODUCT
    curves = _curves(parts, smallest_delta)
    loss = composition.compose_curves(
        curves, smallest_delta=smallest_delta, upper=True, aimed=aimed
    )
    methods = dict.fromkeys(curve.method for curve, _ in curves)
    sources = dict.fromkeys(curve.source for curve, _ in curves)
    return loss, f"composed {', '.join(methods)}", "; ".join((*sources, _PRODUCT))


def _product_epsilon(parts: Parts, left: float) -> tuple[float, str, str]:
    """Return epsilon of the product of the curves, with its name and source."""
    quiet, added = _split(parts)
    if not quiet:
        return added, "pure composition", _BASIC
    loss, method, source = _product_above(quiet, left, aimed=True)
    return round_up(max(loss.epsilon(left), 0.0) + added, operations=2), method, source


def _rest_delta(parts: Parts, epsilon: float) -> tuple[float, float, str, str]:
    """Return delta without failures, the delta resolved, and the name and source.

    Every attempt is an upper bound. A finer one is made while the answer may be all truncation.
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
            # Below what a bell-shaped loss of the same mean and variance would have.
            losses = (loss.first + np.arange(loss.masses.size)) * loss.interval
            mean = float((loss.masses * losses).sum())
            variance = float((loss.masses * (losses - mean) ** 2).sum())
            exponent = 0.7 * (epsilon - added - mean) ** 2 / max(variance, 1e-30) + 10.0
            expected = min(math.exp(-min(exponent, 700.0)), 1e-10 * resolved)
            resolved = max(expected, _LAST_RESOLVED)
    return best, smallest, method, source


def _lower_epsilon(parts: Parts, delta: float, upper: float) -> float | None:
    """Return an epsilon that explicit data prove unavoidable, rounded down; None if none is."""
    if upper == 0.0:
        return 0.0
    if delta == 0.0:
        alone = [(part.epsilon_alone(0.0).lower, times) for part, times in parts]
        proved = [lower * times for lower, times in alone if lower is not None]
        return math.fsum(proved) * (1.0 - _ROUNDING) if proved else None
    failure = _failure_below(parts)
    left = (delta - failure) / (1.0 - failure) * (1.0 + _ROUNDING)
    if _stated_loss(parts, upper=False) is None:  # those are composed in no time
        certain = composition.certain_epsilon(_attacks_on(parts), left, upper=False)
        if certain >= upper * _VERY_CLOSE:
            return certain
    return _below(
        parts,
        left,
        lambda loss: loss.epsilon(left),
        lambda part: part.epsilon_alone(delta),
        aimed=True,
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
    *,
    aimed: bool = False,
) -> float | None:
    """Return what the product of the strongest data proves; if nothing, what one release does."""
    with suppress(PrecisionError):
        loss = None
        if (stated := _stated_loss(parts, upper=False)) is not None:
            loss = composition.compose([stated], smallest_delta, aimed=aimed)
        elif known := _attacks_on(_split(parts)[0]):
            loss = composition.compose_curves(
                known, smallest_delta=smallest_delta, upper=False, aimed=aimed
            )
        if loss is not None and (proved := composed(loss)) > 0.0:
            return proved
    found = []
    for part, _ in parts:
        with suppress(OutOfRegimeError, PrecisionError):
            found.append(alone(part).lower)
    return max((lower for lower in found if lower is not None), default=None)


def _attacks_on(parts: Parts) -> list[tuple[HockeyStickCurve, int]]:
    """Return the strongest explicit data of each part of which any are known.

    That is the attack, and its order, that tells neighbours apart best.
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
