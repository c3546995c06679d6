"""One release that is no shuffled batch: anything else with a known (epsilon, delta) guarantee."""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsFloat

import numpy as np

from shuffledp.accounting.amplification.local import single_report_delta, single_report_epsilon
from shuffledp.accounting.composed import Composable, NamedCurve
from shuffledp.accounting.divergences.hockey_stick_curve import HockeyStickCurve
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_delta, require_non_negative
from shuffledp.core.errors import OutOfRegimeError
from shuffledp.core.numerics.enclosure import Enclosure

if TYPE_CHECKING:
    from shuffledp.accounting.divergences.privacy_loss import PrivacyLoss

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
        from shuffledp.accounting.divergences.privacy_loss import PrivacyLoss, no_loss

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
