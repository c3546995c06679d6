"""``PrivacyLoss``: the law of L = ln(P / Q) under P on a lattice.

It determines the hockey-stick divergence at every epsilon,

    H(P, Q; e^epsilon) = Pr[L = inf] + E[(1 - e^(epsilon - L))_+],

and the loss of a product of pairs is the sum of their losses, so composition is convolution. It can
be handed on as a privacy loss of Google's dp-accounting.
"""

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_delta
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.inversion import last_above_first_below

# Relative round-off of a sum of positive terms, each good to a few units in the last place.
_SUM_ERROR = 1e-14

# A loss, an epsilon and their difference are each rounded once.
_GAP_ERROR = 4.0 * math.ulp(1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyLoss:
    """A bound on the privacy loss of one pair of laws or, composed, of many.

    Parameters
    ----------
    interval : float
        Distance h > 0 between neighbouring losses, in nats.
    first : int
        The losses are (first + i) h, i = 0, 1, ..., len(masses) - 1.
    masses : numpy.ndarray
        float64, read-only. Where ``direction`` is "upper", none is smaller than the probability of
        its loss under P for a pair that dominates; where it is "lower", none is larger than that
        for a pair that is dominated. So the sum may miss one a little, on the safe side.
    infinite_mass : float
        Probability under P of what Q never does, bounded in the same direction.
    error : float
        How much of ``infinite_mass`` only pays for tails that were cut off; 0 for "lower".
    direction : {"upper", "lower"}
        Which way all that is read off errs.

    Examples
    --------
    Randomized response that tells the truth three times in four has loss ln 3 or -ln 3:

    >>> loss = PrivacyLoss(
    ...     interval=math.log(3.0),
    ...     first=-1,
    ...     masses=np.array([0.25, 0.0, 0.75]),
    ...     infinite_mass=0.0,
    ...     error=0.0,
    ...     direction="upper",
    ... )
    >>> round(loss.delta(0.0), 12), round(loss.epsilon(0.25), 8), round(math.log(2.0), 8)
    (0.5, 0.69314718, 0.69314718)
    """

    interval: float
    first: int
    masses: Floats
    infinite_mass: float = 0.0
    error: float = 0.0
    direction: Literal["upper", "lower"]

    def __post_init__(self) -> None:
        if not 0.0 < self.interval < math.inf:
            raise ParameterError(f"interval = {self.interval} is not in (0, inf)")
        if self.masses.ndim != 1 or self.masses.size == 0 or not np.all(self.masses >= 0.0):
            raise ParameterError("masses are not a row of at least one probability")
        if not 0.0 <= self.error <= self.infinite_mass <= 1.0:
            raise ParameterError(
                f"infinite_mass = {self.infinite_mass}, error = {self.error}: "
                "0 <= error <= infinite_mass <= 1 must hold"
            )
        self.masses.setflags(write=False)

    @property
    def is_upper(self) -> bool:
        """Whether all that is read off errs upwards."""
        return self.direction == "upper"

    @property
    def last_loss(self) -> float:
        """The largest finite loss that has positive mass, in nats; ``first`` if none has."""
        positive = np.flatnonzero(self.masses)
        last = int(positive[-1]) if positive.size else 0
        return (self.first + last) * self.interval

    def delta(self, epsilon: float) -> float:
        """Return H(P, Q; e^epsilon) for any real epsilon in nats, in [0, 1].

        Errs in the direction of the law. An upper law never gives less than ``infinite_mass``; a
        lower law may give 0, which claims nothing.

        Raises
        ------
        ParameterError
            If epsilon is NaN.
        """
        if math.isnan(epsilon):
            raise ParameterError("epsilon = nan is not a number: give a number of nats")
        if math.isinf(epsilon):
            return self.infinite_mass if epsilon > 0.0 else 1.0
        # One index more than needed, so that no rounding of the quotient leaves a loss out.
        position = min(max(epsilon / self.interval - self.first, 0.0), float(self.masses.size))
        start = int(position)
        masses = self.masses[start:]
        losses = (self.first + np.arange(start, self.masses.size)) * self.interval
        doubt = _GAP_ERROR * (abs(epsilon) + (np.abs(losses[[0, -1]]).max() if masses.size else 0))
        doubt = doubt if self.is_upper else -doubt
        gains = -np.expm1(np.minimum(epsilon - losses - doubt, 0.0))
        total = float((masses * gains).sum())  # in pairs: the error grows with the logarithm
        if self.is_upper:
            total = total * (1.0 + _SUM_ERROR) + self.infinite_mass
            # That sum is rounded to nearest: one step up covers it, where anything was added.
            return min(math.nextafter(total, 1.0) if gains.any() else total, 1.0)
        total = total * (1.0 - _SUM_ERROR) + self.infinite_mass
        # 1 - e^epsilon is a lower bound for any pair whatsoever.
        trivial = -math.expm1(min(epsilon, 0.0)) * (1.0 - _SUM_ERROR)
        return min(max(math.nextafter(total, 0.0) if gains.any() else total, trivial), 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 with H(P, Q; e^epsilon) <= delta, in nats.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Errs in the direction of the law, by one part in 1e9 beyond the law's own error;
            ``inf`` where the infinite loss alone has more than ``delta``.

        Raises
        ------
        PrecisionError
            If an upper law has more than ``delta`` of infinite loss, but only because tails were
            cut off: the law was made for a larger delta.
        """
        allowed = require_delta(delta)
        if self.infinite_mass > allowed:
            if self.infinite_mass - self.error <= allowed:
                raise PrecisionError(
                    f"delta = {delta} is below the {self.infinite_mass:.3g} that was cut off: "
                    "compose with a smaller smallest_delta"
                )
            return math.inf
        highest = self.last_loss
        if highest <= 0.0:
            return 0.0
        if allowed == 0.0:
            return math.nextafter(highest, math.inf if self.is_upper else 0.0)
        end = math.nextafter(highest, math.inf)
        above, below = last_above_first_below(self.delta, allowed, 0.0, end)
        return below if self.is_upper else above


def no_loss(interval: float, direction: Literal["upper", "lower"]) -> PrivacyLoss:
    """Return the law of two equal laws: no loss at all, exactly."""
    return PrivacyLoss(interval=interval, first=0, masses=np.ones(1), direction=direction)


def to_dp_accounting(loss: PrivacyLoss) -> Any:
    """Return an upper privacy loss as dp-accounting's ``PrivacyLossDistribution``."""
    try:
        probabilities = import_module("dp_accounting.pld.pld_pmf")
        distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "dp-accounting is not installed: pip install dp-accounting"
        ) from error
    return distributions.PrivacyLossDistribution(
        probabilities.DensePLDPmf(
            loss.interval, loss.first, loss.masses.copy(), loss.infinite_mass, True
        )
    )
