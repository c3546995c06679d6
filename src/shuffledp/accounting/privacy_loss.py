"""``HockeyStickCurve``: all that composition needs to know of one release.

For a pair of laws P, Q the hockey-stick divergence H(P, Q; e^epsilon) = sum max(P - e^epsilon Q, 0)
at every epsilon determines the distribution of the privacy loss ln(P / Q), hence how the pair
composes (Zhu, Dong, Wang 2022, arXiv:2106.08567v4, Theorem 10 and Lemma 9).

``PrivacyLoss``: the law of ln(P / Q) under P on a lattice, from which everything is read off.

The privacy loss L = ln(P / Q) under P determines the hockey-stick divergence at every epsilon,

    H(P, Q; e^epsilon) = Pr[L = inf] + E[(1 - e^(epsilon - L))_+],

and the loss of a product of pairs is the sum of their losses. So composition is convolution.

Trade-off curves: how well any test can tell P from Q (f-DP).

For a test of Q against P with type I error a, at least some type II error f(a) is unavoidable. A
test that rejects on S has a = Q(S) and type II error 1 - P(S), and P(S) <= delta(epsilon) +
e^epsilon Q(S) with equality for the best S, hence (Dong, Roth, Su 2022, "Gaussian Differential
Privacy", arXiv:1905.02383v3, Section 2.3)

    f(a) = sup over real epsilon of 1 - delta(epsilon) - e^epsilon a.

Any delta that is too large, and any set of epsilons, gives less: a curve that is safe to publish.

A privacy loss as an object of Google's dp-accounting, for who composes with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_delta
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below


@dataclass(frozen=True, slots=True, kw_only=True)
class HockeyStickCurve:
    """The hockey-stick divergences of one pair of laws, or bounds on those of many pairs.

    Parameters
    ----------
    forward, backward : callable
        Map epsilon >= 0 (nats) to an enclosure of H(P, Q; e^epsilon) and of H(Q, P; e^epsilon).
        The upper ends of a guarantee dominate every pair of neighbours in either order, so there
        both are the same; those of explicit data may differ.
    highest : float
        An epsilon from which on both are 0; ``inf`` where there is none.

    Notes
    -----
    Negative epsilon needs no values of its own: H(P, Q; 1/e) = 1 - 1/e + H(Q, P; e) / e.
    """

    forward: Callable[[float], Enclosure]
    backward: Callable[[float], Enclosure]
    highest: float

    def __post_init__(self) -> None:
        if not self.highest >= 0.0:
            raise ParameterError(f"highest = {self.highest} is not in [0, inf]")

    @property
    def reversed(self) -> "HockeyStickCurve":
        """The curve of the pair in the other order."""
        return HockeyStickCurve(forward=self.backward, backward=self.forward, highest=self.highest)


# Relative round-off of a sum of positive terms, each good to a few units in the last place.
_SUM_ERROR = 1e-14

# Blocks of a long law that lead to the neighbourhood of an epsilon, and how far off that is.
_BLOCKS, _GUESS_SPREAD = 8192, 1e-5

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
    masses: NDArray[np.float64]
    infinite_mass: float
    error: float
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
        guess = self._guessed_epsilon(allowed, end)
        above, below = last_above_first_below(
            self.delta, allowed, 0.0, end, guess=guess, spread=_GUESS_SPREAD
        )
        return below if self.is_upper else above

    def _guessed_epsilon(self, delta: float, highest: float) -> float | None:
        """Return about the epsilon of a delta, from blocks of a long law; None for a short one."""
        length = self.masses.size // _BLOCKS
        if length < 2:
            return None
        starts = np.arange(0, self.masses.size, length)
        masses = np.add.reduceat(self.masses, starts)
        losses = (self.first + starts + 0.5 * (length - 1)) * self.interval

        def rough_delta(epsilon: float) -> float:
            gains = -np.expm1(np.minimum(epsilon - losses, 0.0))
            return float((masses * gains).sum()) + self.infinite_mass

        above, below = last_above_first_below(
            rough_delta, delta, 0.0, highest, relative_tolerance=_GUESS_SPREAD
        )
        return 0.5 * (above + below)


def no_loss(interval: float, direction: Literal["upper", "lower"]) -> PrivacyLoss:
    """Return the law of two equal laws: no loss at all, exactly."""
    return PrivacyLoss(
        interval=interval,
        first=0,
        masses=np.ones(1),
        infinite_mass=0.0,
        error=0.0,
        direction=direction,
    )


# e^epsilon stays in range.
_LARGEST_LOSS = 700.0

# Losses of a block differ by at most this, so that their exponentials do not overflow.
_BLOCK_WIDTH = 30.0


def _survivals(loss: PrivacyLoss) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all losses of the lattice and delta there, rounded in the direction of the law.

    delta = A - B with A the probability of a larger loss and B the sum of its terms times
    e^(epsilon - loss), summed from the largest loss down, block by block. Absolute error at most
    8 u N for N losses.
    """
    masses = loss.masses
    losses = loss.interval * (loss.first + np.arange(masses.size, dtype=np.float64))
    length = max(int(_BLOCK_WIDTH / loss.interval), 1)
    deltas = np.empty(masses.size)
    above, weighted = loss.infinite_mass, 0.0  # weighted: at the first loss of the block above
    for stop in range(masses.size, 0, -length):
        start = max(stop - length, 0)
        offsets = losses[start:stop] - losses[start]
        gap = loss.interval if stop < masses.size else 0.0
        weighted *= math.exp(-(float(offsets[-1]) + gap))  # now at the block's first loss
        own = masses[start:stop] * np.exp(-offsets)
        tails = above + np.append(np.cumsum(masses[start:stop][:0:-1])[::-1], 0.0)
        sums = weighted + np.append(np.cumsum(own[:0:-1])[::-1], 0.0)
        deltas[start:stop] = tails - np.exp(offsets) * sums
        above += float(masses[start:stop].sum())
        weighted += float(own.sum())
    doubt = 4.0 * math.ulp(1.0) * (masses.size + 4.0 * _BLOCK_WIDTH)
    return losses, np.clip(deltas + (doubt if loss.is_upper else -doubt), 0.0, 1.0)


def type_two_errors(
    loss: PrivacyLoss, type_one_errors: ArrayLike, *, both_orders: bool = False
) -> NDArray[np.float64]:
    """Return the least type II error of any test at given type I errors.

    From an upper law rounded down: every test of every neighbouring pair errs at least so often.
    From a lower law rounded up: some test errs at most so often.
    """
    alphas = np.atleast_1d(np.asarray(type_one_errors, dtype=np.float64))
    if not np.all((alphas >= 0.0) & (alphas <= 1.0)):
        raise ParameterError("type_one_errors are not all in [0, 1]")
    if both_orders and not loss.is_upper:
        raise ParameterError("both_orders: a lower law is about one order of one pair")
    losses, deltas = _survivals(loss)
    keep = losses <= _LARGEST_LOSS
    if not keep.any() or (not loss.is_upper and not keep.all()):
        # Beyond e^700 nothing is told from 0; a lower law needs all its losses.
        return np.zeros_like(alphas) if loss.is_upper else 1.0 - alphas
    factors, heights = np.exp(losses[keep]), 1.0 - deltas[keep]
    slack = 8.0 * math.ulp(1.0)
    if loss.is_upper:
        best: NDArray[np.float64] = np.array(
            [float((heights - factors * a * (1 + slack)).max()) for a in alphas]
        )
        if both_orders:
            inverse = [float(((heights - a) / factors).max()) for a in alphas]
            best = np.maximum(best, np.array(inverse))
        return np.clip(best - slack, 0.0, 1.0 - alphas)
    lines = np.array([float((heights - factors * a * (1 - slack)).max()) for a in alphas])
    best = np.maximum(lines, _below_the_first(loss) * (1.0 - alphas)) + slack
    return np.clip(best, 0.0, 1.0 - alphas)


def _below_the_first(loss: PrivacyLoss) -> float:
    """Return the x at which 1 - x meets the law's own line left of its first loss, rounded up.

    Left of it 1 - delta - x a <= x (1 - a); between it and the first loss the bound is linear.
    """
    first = math.exp(loss.first * loss.interval)
    offsets = np.arange(loss.masses.size) * loss.interval
    lacking = 1.0 - float(loss.masses.sum()) - loss.infinite_mass
    slope = float(loss.masses @ np.exp(-offsets)) / first
    doubt = 1e-15 * (loss.masses.size + 10)
    if slope >= 1.0 - doubt:
        return first
    return min(first, max(lacking + doubt, 0.0) / (1.0 - slope - doubt) if slope < 1.0 else first)


def to_dp_accounting(loss: PrivacyLoss, backward: PrivacyLoss | None = None) -> Any:
    """Return an upper privacy loss as dp-accounting's ``PrivacyLossDistribution``."""
    for law in (loss, backward or loss):
        if not law.is_upper:
            raise ParameterError("a lower law is no guarantee: export the upper one")
        if law.interval != loss.interval:
            raise ParameterError("the two laws have different intervals: compose them alike")
    try:
        probabilities = import_module("dp_accounting.pld.pld_pmf")
        distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "dp-accounting is not installed: pip install dp-accounting"
        ) from error

    def converted(law: PrivacyLoss) -> Any:
        return probabilities.DensePLDPmf(
            law.interval, law.first, law.masses.copy(), law.infinite_mass, True
        )

    if backward is None:
        return distributions.PrivacyLossDistribution(converted(loss))
    return distributions.PrivacyLossDistribution(converted(loss), converted(backward))
