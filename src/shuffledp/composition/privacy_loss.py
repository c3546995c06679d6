"""``PrivacyLoss``: the law of L = ln(P / Q) under P on a lattice.

It determines the hockey-stick divergence at every epsilon,

    H(P, Q; e^epsilon) = Pr[L = inf] + E[(1 - e^(epsilon - L))_+],

and the loss of a product of pairs is the sum of their losses, so composition is convolution. It can
be handed on as a privacy loss of Google's dp-accounting.

*Discretization*: a hockey-stick curve becomes a loss on a lattice that provably dominates it, or is
dominated. Write x = e^epsilon and h(x) = H(P, Q; x). Then h is convex, does not increase, h(0) = 1
and h(x) >= (1 - x)_+. Conversely each such function belongs to a pair (Zhu, Dong, Wang 2022,
arXiv:2106.08567v4, Lemma 9 with Proposition 8), and if it is piecewise linear with knots x_i, the
loss is ln x_i with probability x_i times the jump of slope there; its last value is the probability
of an infinite loss. A pair dominates another if its function is nowhere below the other's.

*Above.* Let v_i >= h(x_i) at the knots, v(0) = 1, and v constant after the last knot. On the pieces
between knots the chord of v is above the chord of h, which is above h since h is convex; after the
last knot v = v_b >= h(x_b) >= h(x). So v >= h. Its greatest convex minorant v* has its own knots
among those of v and between them is again a chord of points above h, so v* >= h. It is convex, does
not increase, v*(0) = 1, and v* >= h >= (1 - x)_+: it belongs to a pair that dominates. This is the
"connect the dots" of Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022 (arXiv:2207.04380v3), for
values that are known only up to an enclosure.

*Below.* Let l_i <= h(x_i) <= u_i. On the piece from x_j to x_(j+1) the line through
(x_(j-1), u_(j-1)) and (x_j, l_j) is below h: raising l_j to h(x_j) and lowering u_(j-1) to
h(x_(j-1)) raises the line at x >= x_j, and then it is the extension of a chord of a convex
function. So is, likewise, the line through (x_(j+1), l_(j+1)) and (x_(j+2), u_(j+2)). The chord of
l minus the first line is 0 at x_j and grows to some g1 at x_(j+1), minus the second it falls from
some g2 to 0, so the chord exceeds the larger of the two lines by at most G_j = g1 g2 / (g1 + g2).
With w_j = l_j - max(G_(j-1), G_j) each chord of w is at most the chord of l minus G_j, hence below
h. Where w falls to (1 - x)_+ or less, w_j and all values further out are replaced by it: the piece
that ends there is only lowered, and further out w is (1 - x)_+ <= h itself. The greatest convex
minorant of w is below w, above (1 - x)_+, and so belongs to a pair that is dominated.

Both errors are of second order: with mu the deviation of the loss and knots h apart, the variance
is h^2 / 6 too large above and at most 5 h^2 / 6 too small below.

To keep relative accuracy at both ends, values at x < 1 are kept as h(x) - (1 - x) = x H(Q, P; 1/x)
and slopes there as 1 + h'(x).
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_delta, require_positive
from shuffledp.core.errors import ParameterError, PrecisionError, needing
from shuffledp.core.numerics.enclosure import Enclosure
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
        float64, read-only. In an upper law none is smaller than the probability of its loss under P
        for a pair that dominates; in a lower one none is larger than that for a pair that is
        dominated. So the sum may differ from one a little, on the safe side.
    infinite_mass : float
        Probability under P of outcomes that Q never has, bounded in the same direction.
    error : float
        Part of ``infinite_mass`` that only stands for tails that were cut off; 0 in a lower law.
    is_upper : bool
        True if all numbers read off err upwards, False if downwards.

    Examples
    --------
    Randomized response that tells the truth three times in four has loss ln 3 or -ln 3:

    >>> loss = PrivacyLoss(
    ...     interval=math.log(3.0),
    ...     first=-1,
    ...     masses=np.array([0.25, 0.0, 0.75]),
    ...     infinite_mass=0.0,
    ...     error=0.0,
    ...     is_upper=True,
    ... )
    >>> round(loss.delta(0.0), 12), round(loss.epsilon(0.25), 8), round(math.log(2.0), 8)
    (0.5, 0.69314718, 0.69314718)
    """

    interval: float
    first: int
    masses: Floats
    infinite_mass: float = 0.0
    error: float = 0.0
    is_upper: bool

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
    def last_loss(self) -> float:
        """The largest finite loss that has positive mass, in nats; the first if none has."""
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


def no_loss(interval: float, *, upper: bool) -> PrivacyLoss:
    """Return the law of two equal laws: no loss at all, exactly."""
    return PrivacyLoss(interval=interval, first=0, masses=np.ones(1), is_upper=upper)


def to_dp_accounting(loss: PrivacyLoss) -> Any:
    """Return an upper privacy loss as dp-accounting's ``PrivacyLossDistribution``."""
    with needing("dp_accounting", "this export", "dp-accounting"):
        probabilities = import_module("dp_accounting.pld.pld_pmf")
        distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    return distributions.PrivacyLossDistribution(
        probabilities.DensePLDPmf(
            loss.interval, loss.first, loss.masses.copy(), loss.infinite_mass, True
        )
    )


# No loss above this is told from an infinite one, so that e^epsilon stays in range.
_LARGEST_LOSS = 600.0

# Knots on a side before their distance doubles; fewer where the curve no longer matters.
_KNOTS_PER_OCTAVE, _FAR_KNOTS_PER_OCTAVE = 1024, 64

# A curve that falls by less than this from knot to knot has reached its limit.
_FLAT = 1e-7

# Relative round-off of a slope: a rise and a run of few terms, without cancellation.
_SLOPE_ERROR = 64.0 * math.ulp(1.0)

# Points of a lattice at most: 128 MB.
_MOST_POINTS = 1 << 24

# Values of curves kept for the next composition of the same releases.
_CACHED_VALUES = 16_384


@functools.lru_cache(maxsize=_CACHED_VALUES)
def value_at(divergence: Callable[[float], Enclosure], epsilon: float) -> Enclosure:
    """Return a divergence at an epsilon; values asked for before are remembered."""
    return divergence(epsilon)


@dataclass(frozen=True, slots=True)
class CurveValues:
    """Bounds on a hockey-stick curve at knots e^epsilons, as an excess over (1 - x)_+.

    ``epsilons`` are increasing and contain 0 at position ``zero``; ``lower`` and ``upper`` enclose
    h(x) - (1 - x)_+, which is H(P, Q; x) for x >= 1 and x H(Q, P; 1/x) for x <= 1. ``cut`` states
    whether the last upper value is a tail cut off, not the curve's limit.
    """

    epsilons: Floats
    lower: Floats
    upper: Floats
    zero: int
    cut: bool


def curve_values(
    curve: HockeyStickCurve,
    steps: Callable[[], Iterable[float]],
    *,
    tail: float,
    left_tail: float,
    upper: bool,
) -> CurveValues:
    """Evaluate a curve from epsilon = 0 outwards in both directions until its tails."""
    right, rights, cut = _one_side(curve.forward, curve.highest, steps(), tail, upper)
    left, lefts, _ = _one_side(curve.backward, curve.highest, steps(), left_tail, upper)
    middle = np.array([[max(rights[0, 0], lefts[0, 0])], [min(rights[1, 0], lefts[1, 0])]])
    rounding = np.array([[1.0 - 4.0 * math.ulp(1.0)], [1.0 + 4.0 * math.ulp(1.0)]])
    lefts = lefts * np.exp(-left) * rounding  # times x at epsilon = -left
    lower, higher = np.hstack((lefts[:, :0:-1], middle, rights[:, 1:]))
    zero = left.size - 1
    # The excess falls outwards, so upper ends may be lowered to the least on the way from 0.
    falling = [np.minimum.accumulate(each) for each in (higher[zero::-1], higher[zero:])]
    higher = np.concatenate((falling[0][:0:-1], falling[1]))
    return CurveValues(np.concatenate((-left[:0:-1], right)), lower, higher, zero, cut)


def _one_side(
    divergence: Callable[[float], Enclosure],
    highest: float,
    steps: Iterable[float],
    tail: float,
    upper: bool,
) -> tuple[Floats, Floats, bool]:
    """Return epsilons from 0 on, both ends of the divergence there, and whether a tail was cut."""
    epsilons, values, cut = [0.0], [value_at(divergence, 0.0)], True
    for epsilon in steps:
        last = values[-1]
        if (last.upper if upper else last.lower) <= tail or epsilon > _LARGEST_LOSS:
            break
        found = value_at(divergence, epsilon) if epsilon < highest else Enclosure(0.0, 0.0)
        epsilons.append(epsilon)
        values.append(found)
        if epsilon >= highest:
            break
        # A loss that ends before has no limit above 0.
        flat = highest > _LARGEST_LOSS and last.upper - found.upper <= _FLAT * found.upper
        if flat and value_at(divergence, _LARGEST_LOSS).upper >= found.upper * (1.0 - _FLAT):
            cut = False
            break
    return np.array(epsilons), np.array([(each.lower, each.upper) for each in values]).T, cut


class _Piece(NamedTuple):
    """A linear piece of a curve: its rise over a run of x.

    ``left`` pieces are at x <= 1 and hold the rise of h - (1 - x); ``mixed`` ones span x = 1 and
    hold, like those at x >= 1, the rise of h.
    """

    end: int
    rise: float
    run: float
    left: bool = False
    mixed: bool = False

    def joined(self, following: "_Piece") -> "_Piece":
        """Return one piece in place of two."""
        mixed = self.mixed or following.mixed or self.left != following.left
        rise = self.rise - (self.run if self.left != following.left else 0.0) + following.rise
        return _Piece(following.end, rise, self.run + following.run, following.left, mixed)

    def jump_to(self, following: "_Piece") -> tuple[float, float]:
        """Return the growth of the slope of h to the next piece, and a bound on its error."""
        before, after = self.rise / self.run, following.rise / following.run
        kink = 1.0 if self.left and not following.left else 0.0
        doubt = 1.0 if self.mixed else abs(before)
        doubt += 1.0 if following.mixed else abs(after)
        return after - before + kink, _SLOPE_ERROR * (doubt + kink)


def _masses(epsilons: Floats, values: Floats, zero: int, *, upper: bool) -> Floats:
    """Return the probability under P of the loss at each knot, rounded in the direction asked.

    From the greatest convex minorant, from x = 0 to the last knot: neighbouring pieces whose slopes
    do not grow are joined until all do.
    """
    points: Floats = np.exp(epsilons)
    runs, rises = (points[:-1] * np.expm1(np.diff(epsilons))).tolist(), np.diff(values).tolist()
    pieces = [_Piece(0, float(values[0]), float(points[0]), left=True)]
    for index, (rise, run) in enumerate(zip(rises, runs, strict=True)):
        piece = _Piece(index + 1, rise, run, index < zero)
        while pieces and pieces[-1].jump_to(piece)[0] <= 0.0:
            piece = pieces.pop().joined(piece)
        pieces.append(piece)
    masses: Floats = np.zeros(epsilons.size)
    for before, after in zip(pieces, [*pieces[1:], _Piece(epsilons.size, 0.0, 1.0)], strict=True):
        jump, doubt = before.jump_to(after)
        masses[before.end] = max(jump + (doubt if upper else -doubt), 0.0)
    masses *= points
    return masses


def lowered_values(values: CurveValues) -> Floats:
    """Return w at the knots, whose chords are all below the curve; see the module's proof.

    All zeros where the knots are too far apart to prove anything.
    """
    epsilons, zero = values.epsilons, values.zero
    lower, upper = values.lower.copy(), values.upper
    lower[0] = lower[-1] = 0.0  # further out the lines are those of (1 - x)_+
    runs = np.exp(epsilons[:-1]) * np.expm1(np.diff(epsilons))
    chords = np.diff(lower) / runs
    # slopes of the lines extended to the right and to the left; outside they are flat
    rightwards = np.concatenate(([0.0], (lower[1:] - upper[:-1]) / runs))
    leftwards = np.concatenate(((upper[1:] - lower[:-1]) / runs, [0.0]))
    kink = np.zeros(epsilons.size)
    kink[zero] = 1.0  # slopes change their meaning at x = 1
    first = np.maximum(runs * (chords - rightwards[:-1] + kink[:-1]), 0.0)
    second = np.maximum(runs * (leftwards[1:] - chords + kink[1:]), 0.0)
    total = first + second
    gaps = np.divide(first * second, total, out=np.zeros_like(total), where=total > 0.0)
    steepest = np.abs(chords) + np.abs(rightwards[:-1]) + np.abs(leftwards[1:])
    gaps += _SLOPE_ERROR * runs * (steepest + kink[:-1] + kink[1:])
    nearest = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    lowered: Floats = lower - nearest - _SLOPE_ERROR * lower
    # Positive values around x = 1 stay; from the outermost one on, each side is 0. The first
    # value is never positive, nor the last, so there is one to fail on either side.
    failing = np.flatnonzero(lowered <= 0.0)
    start, stop = failing[failing <= zero][-1] + 2, failing[failing >= zero][0] - 1
    kept = np.zeros_like(lowered)
    if start <= zero < stop:
        kept[start:stop] = lowered[start:stop]
    return kept


def _lattice_steps(interval: float, stride: int, dense: float) -> Iterable[float]:
    """Yield multiples of the interval, farther apart beyond ``dense`` and if they are many."""
    index, passed = 0, 0
    while True:
        index += stride
        yield index * interval
        passed += 1
        far = index * interval > dense
        if passed >= (_FAR_KNOTS_PER_OCTAVE if far else _KNOTS_PER_OCTAVE):
            stride, passed = 2 * stride, 0


def loss_on_lattice(
    curve: HockeyStickCurve,
    interval: float,
    tail: float,
    *,
    upper: bool,
    left_tail: float | None = None,
    stride: int = 1,
    dense: float = math.inf,
) -> PrivacyLoss:
    """Return a privacy loss on a lattice that dominates a curve's upper ends, and errs upwards.

    With ``upper`` False, one that its lower ends dominate, and that errs downwards: tails are
    dropped, infinite losses count as the largest finite one. Both ends of the curve's
    enclosures are used then, so they must enclose one pair of laws.
    """
    step = require_positive("interval", interval)
    values = curve_values(
        curve,
        lambda: _lattice_steps(step, stride, dense),
        tail=tail,
        left_tail=tail if left_tail is None else left_tail,
        upper=upper,
    )
    kept = values.upper if upper else lowered_values(values)
    if not upper and not kept.any():
        return no_loss(step, upper=False)
    infinite = min(float(values.upper[-1]), 1.0) if upper else 0.0
    masses = _masses(values.epsilons, kept, values.zero, upper=upper)
    # With no finite loss at all, keep one of probability 0.
    positive = np.flatnonzero(masses) if masses.any() else np.array([values.zero])
    # The masses of the knots are spread over all points of the lattice between them.
    places = np.rint(values.epsilons[positive] / step)
    if (span := float(places[-1] - places[0])) >= _MOST_POINTS:  # checked before it is an integer
        raise PrecisionError(
            f"the loss is spread over {span:.3g} points of the lattice, more than {_MOST_POINTS}: "
            "use a larger interval or accuracy"
        )
    indices = places.astype(np.int64)
    spread = np.zeros(int(span) + 1)
    spread[indices - indices[0]] = masses[positive]
    return PrivacyLoss(
        interval=step,
        first=int(indices[0]),
        masses=spread,
        infinite_mass=infinite,
        error=infinite if values.cut else 0.0,
        is_upper=upper,
    )
