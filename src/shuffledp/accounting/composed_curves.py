"""Renyi divergences and trade-off curves of a composition.

Renyi divergences of one order add up, also where releases are chosen adaptively (Mironov 2017,
arXiv:1702.07476v3, Proposition 1), so they need no convolution; trade-off curves are read off the
composed privacy loss.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.amplification.renyi_closed_forms import blanket_renyi_upper
from shuffledp.accounting.composed import Release
from shuffledp.accounting.composed_bounds import composed_loss, strongest_attack
from shuffledp.accounting.privacy_loss import HockeyStickCurve
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.core.checks import require_open_unit
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import round_up

Parts = Sequence[tuple[Release, int]]

# Which delta a curve of upper ends is chosen for, where none is asked about.
_TYPICAL_DELTA = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiCurve:
    """Renyi divergences of everything that is published.

    Parameters
    ----------
    orders : tuple of float
        Renyi orders, each > 1.
    upper : tuple of float
        Divergences in nats that no pair of neighbours exceeds, rounded up; ``inf`` where none is
        known.
    lower : tuple of float
        Divergences that explicit data reach, rounded down; 0 where none are known.
    """

    orders: tuple[float, ...]
    upper: tuple[float, ...]
    lower: tuple[float, ...]

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that the upper divergences imply at a delta, rounded up.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Usually some per cent above ``Composable.epsilon``.
        """
        from shuffledp.accounting.renyi import epsilon_from_renyi

        return epsilon_from_renyi(self.orders, self.upper, delta)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeOffCurve:
    """How well any test can tell neighbouring datasets apart (f-DP).

    Parameters
    ----------
    type_one_errors : numpy.ndarray
        Probabilities of a false alarm, read-only.
    type_two_errors : numpy.ndarray
        Probabilities of a miss that no test of that kind goes below, rounded down, read-only.
    """

    type_one_errors: NDArray[np.float64]
    type_two_errors: NDArray[np.float64]


def composed_renyi(
    parts: Parts, orders: Iterable[SupportsFloat], *, with_lower: bool = True
) -> RenyiCurve:
    """Return Renyi divergences of all parts together; see `Composable.renyi`."""
    asked = tuple(float(order) for order in orders)
    for order in asked:
        if not 1.0 < order < math.inf:
            raise ParameterError(f"order = {order} is not in (1, inf): give orders such as 2")
    upper = tuple(
        round_up(math.fsum(times * renyi_above(part, order) for part, times in parts), operations=2)
        for order in asked
    )
    lower = tuple(_renyi_below(parts, order) if with_lower else 0.0 for order in asked)
    return RenyiCurve(
        orders=asked,
        upper=upper,
        lower=tuple(min(pair) for pair in zip(lower, upper, strict=True)),
    )


def renyi_above(release: Release, order: float) -> float:
    """Return a Renyi divergence that no neighbours of one release exceed, rounded up."""
    return math.inf if release.failure > 0.0 else renyi_without_failure(release, order)


def renyi_without_failure(release: Release, order: float) -> float:
    """Return the same for what is left when no stated guarantee fails."""
    found = _divergence(release.curve(_TYPICAL_DELTA).curve, order, upper=True)
    if (
        isinstance(release, ShuffledRelease)
        and release.sampled_from is None
        and release.law.delta0 == 0.0
    ):
        # At high orders the curve's doubles end before its integral does.
        found = min(found, blanket_renyi_upper(order, release.law.epsilon0, release.num_users))
    return found


@functools.lru_cache(maxsize=4096)
def _divergence(curve: HockeyStickCurve, order: float, *, upper: bool) -> float:
    """Return the larger divergence of the two orders of the pair, at most that of its end."""
    from shuffledp.accounting.renyi import renyi_divergence

    if curve.highest == 0.0:
        return 0.0
    try:
        return renyi_divergence(curve, order, upper=upper)
    except PrecisionError:
        return curve.highest if upper else 0.0


def _renyi_below(parts: Parts, order: float) -> float:
    """Return what explicit data in all releases reach, in the order of each that is stronger."""
    total = 0.0
    for part, times in parts:
        curve = strongest_attack(part.attacks())
        if curve is not None:
            with suppress(PrecisionError):
                total += times * _divergence(curve, order, upper=False)
    return total * (1.0 - 4.0 * math.ulp(1.0))


def composed_trade_off(
    parts: Parts, type_one_errors: ArrayLike | None, *, smallest_delta: float
) -> TradeOffCurve:
    """Return the trade-off curve of all parts together; see `Composable.trade_off`.

    Errs downwards.
    """
    from shuffledp.accounting.privacy_loss import type_two_errors

    asked = np.linspace(0.0, 1.0, 101) if type_one_errors is None else type_one_errors
    alphas = np.array(np.atleast_1d(np.asarray(asked, dtype=np.float64)))
    resolved = require_open_unit("smallest_delta", smallest_delta)
    loss = composed_loss(parts, smallest_delta=resolved)
    betas = type_two_errors(loss, alphas, both_orders=True)
    for each in (alphas, betas):
        each.flags.writeable = False
    return TradeOffCurve(type_one_errors=alphas, type_two_errors=betas)
