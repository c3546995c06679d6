"""PrivUnit: a vector, more often than not from the cap around the user's own.

*The law.* The report V is drawn from a fixed spherical law of base measure, reweighted: with
probability P from the part where <V, x> >= gamma, of base measure q, else from the rest. The
densities for two inputs differ by at most the factor (P / q) / ((1 - P) / (1 - q)), and reach it
where one input's part is met and the other's is not; so the exact local loss is

    epsilon0 = ln(P / (1 - P)) + ln((1 - q) / q).

P = 1 - T / 2^64 is exact. q depends on gamma through a special function in floating point, whose
error is covered by a stated margin.

Blanket and explicit data, as atoms: docs/results/worst-pairs.md proves that opposite points are the
worst pair. p = e^epsilon0 and b = (1 - 2 q) (1 - P) / (1 - q), the mass of ratios (1, 1), depend on
q, a floating-point number with a relative error of at most 3e-10; the stated atoms have b smaller
by 1e-9 of itself and p rounded up, and dominate the true law.

*The cap.* On the unit sphere of R^d, write a = (d - 1) / 2 and t = <V, x> for a uniform V. Then (1
+ t) / 2 has the law Beta(a, a), the cap t >= gamma has measure q = I_{(1 - gamma) / 2}(a, a), and

    J = E[t; t >= gamma] = (1 - gamma^2)^a / ((d - 1) B(1/2, a)).

*The best cap (ours).* For given epsilon0 put A = e^epsilon0 - 1. The loss is spent in full, P =
q e^epsilon0 / (1 + A q), and the report's mean along the input is m = A J / (1 + A q). Let
h(gamma) = gamma (1 + A q) - A J. As J' = -gamma f and q' = -f with f the density of t, m' =
(A f / (1 + A q)) (m - gamma) has the sign of -h, and h' = 1 + A q > 0 while h(0) < 0 < h(1). So m
has exactly one maximum, where gamma = m: *the cap begins at the report's own mean*. h is concave,
so Newton's method from gamma = 0 rises to it without overshooting, and its step is gamma <- m.
For d = 3 this gives gamma = tanh(epsilon0 / 4).

*Two caps at a right angle* share the measure v of t1, t2 >= gamma, two coordinates of a uniform
point. In polar coordinates their density is (d - 2) / (2 pi) (1 - r^2)^((d - 4) / 2) r dr dtheta,
and both are at least gamma on an arc of length pi/2 - 2 arcsin(gamma / r). Integrate by parts and
put r = gamma / cos(phi):

    v = (1 / pi) integral from pi/4 to arccos(gamma) of f,   f = (1 - gamma^2 / cos(phi)^2)^b,

b = (d - 2) / 2; this also holds on the circle, where v = q - 1/4. From 0 on instead of pi/4 the
same integral is q, so that with 1/2 - q = D

    w = v - 1/4 + D = (1 / pi) integral from 0 to pi/4 of 1 - f,

which is the measure of 0 <= t1, t2 < gamma. All that is wanted follows from either,

    q - v = 1/4 - w,   q - 2 v = D - 2 w,   1 - 3 q + 2 v = D + 2 w.

For q >= 1/4 w is integrated, else v: then nothing cancels.

*From the ball to the sphere.* A user replaces their vector in the ball by a point of the sphere
whose expectation is that vector before the randomizer sees it, so it costs no privacy.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Words
from shuffledp.core.checks import (
    require_at_least,
    require_non_negative,
    require_positive,
    set_fields,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.numerics.enclosure import float_above, float_below, round_down, round_up
from shuffledp.core.profile import LocalProfile, RandomizerFamily, rounded_atoms
from shuffledp.core.reports import Reports, read_only
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import MeanRandomizer
from shuffledp.randomizers.thresholds import WORD_VALUES, response_law, settle

# Newton's method: each step of the slow phase adds 1 / (epsilon0 + 2) of gamma or takes
# two thirds of 1 - gamma.
_MOST_STEPS = 300
_RELATIVE_STEP = 1e-9

_NUM_NODES = 128
_BELOW_ONE = 1.0 - 2.0**-52

# Losses below this show in no float of a report: the law is then uniform, and its loss is 0.
_LEAST_EPSILON0 = 1e-12
# Any larger loss gives the same law. There are no more than 44.4 nats in P anyway.
_MOST_EPSILON0 = 100.0
# gamma is kept to this many significant bits, and so is 1 - gamma where gamma > 1/2. The variance
# is flat at its minimum, so that this costs less than 1e-8 of it; and libraries that differ in the
# last bits of a special function still give the same law and the same fingerprint.
_GAMMA_BITS = 16
_LARGEST_GAMMA = 1.0 - 2.0**-37
# ln((1 - q) / q) is computed from q or 1/2 - q: relative errors of at most 3e-10 become at most 4/3
# of that. (They are far less: the tests compare with 50 digits.) Rounding up to 32 bits then adds
# at most 4.7e-10, so the margin is 1e-9 of that term in all.
_RELATIVE_MARGIN = 5e-10
_LOG_ODDS_BITS = 32

# b takes the errors of 1/2 - q and 1 - q: less than twice 3e-10. e^epsilon0 has its own margin.
_THINNER = 1.0 - 1e-9
# Coordinates drawn or checked together: half a megabyte in each of the two arrays at work.
_CELLS_AT_A_TIME = 2**16
# Norms of float32 unit vectors are off by 1e-7 at most.
_UNIT_TOLERANCE = 1e-3


class TwoPieceLaw(NamedTuple):
    """Start gamma of the cap; the report lies outside with probability exactly T / 2^64 <= 1/2."""

    gamma: float
    threshold: int


# The uniform law, and its loss.
UNIFORM = TwoPieceLaw(gamma=0.0, threshold=WORD_VALUES // 2), 0.0


class Measure(NamedTuple):
    """The base measure q of the part inside, in (0, 1/2], and 1/2 - q, computed on its own.

    Each is good where it is small.
    """

    inside: float
    below_half: float

    @property
    def outside(self) -> float:
        """1 - q."""
        return 0.5 + self.below_half


class RightAngle(NamedTuple):
    """Base measures around the caps of x, -x and z, z at a right angle to both.

    ``shared``, v, is in the caps of x and z, and as much in those of -x and z; ``own``, q - v, in
    the cap of x only, and as much in that of -x; ``third``, q - 2 v, in the cap of z only;
    ``none``, 1 - 3 q + 2 v, in none of them: 2 shared + 2 own + third + none = 1.
    """

    shared: float
    own: float
    third: float
    none: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnit(MeanRandomizer):
    """PrivUnit with optimal parameters: vectors of Euclidean norm at most ``norm_bound``.

    Parameters
    ----------
    dimension : int
        Number of coordinates d, in [2, 10^6].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.
    norm_bound : float
        Radius of the ball that holds all values, in [1e-100, 1e100].

    Attributes
    ----------
    gamma : float
        Start of the cap: reports V with <V, x> >= gamma are in the cap around x.
    threshold : int
        T: a report lies outside the cap with probability exactly T / 2^64.
    mean_along : float
        m = E<V, x>, rounded to nearest.

    Notes
    -----
    Source: Bhowmick, Duchi, Freudiger, Kapoor, Rogers, arXiv:1812.00984, Algorithm 1; Asi, Feldman,
    Talwar, arXiv:2205.02466, who show that it is optimal with the best parameters. The value is
    first replaced by a point x of the unit sphere, at random, with the value as its expectation
    (`to_sphere`). With probability P = 1 - T / 2^64 the report V is uniform on the cap, else on
    the rest of the sphere. q being the cap's share of the sphere,

        epsilon0 = ln(P / (1 - P)) + ln((1 - q) / q),

    and V / m is unbiased with variance 1 / m^2 - 1 in all for a value on the sphere. P and gamma
    make m the largest for this epsilon0: then gamma = m.

    The loss is rounded up. It contains a margin of 1e-9 of its second term for the floating-point
    value of q. Below 1e-12 the law is uniform and epsilon0 exactly 0. Above 58 (d = 2),
    71 (d = 3) or 100 nothing more is spent.

    **Known limitation.** The law is continuous, and it is accounted as a law of real numbers.
    Whether the report lies in the cap is decided by an integer threshold. Its coordinates are
    computed in float64 and published in float32; that rounding is post-processing and drops the
    low bits, in which traces of the computation would be. But there is no proof that the float32
    vectors themselves have the stated loss.

    Cost: d + 2 random words and some 20 nanoseconds a coordinate; 4 d bytes a report. Memory beyond
    the reports matches about 2^16 coordinates.

    Examples
    --------
    >>> import math
    >>> randomizer = PrivUnit(dimension=3, epsilon0=2.0)
    >>> abs(randomizer.gamma - math.tanh(2.0 / 4)) < 1e-5  # closed form for d = 3
    True
    >>> values = np.array([[0.6, 0.0, 0.8], [0.0, 0.0, 0.0]])
    >>> reports = randomizer.randomize(values, Entropy.from_seed(7))
    >>> reports.data.shape, str(reports.data.dtype)
    ((2, 3), 'float32')
    """

    name: ClassVar[str] = "privunit"
    # A default of `field()`, or else the dataclass takes the base class's property for one.
    dimension: int = field()
    epsilon0: float
    norm_bound: float = 1.0
    gamma: float = field(init=False, repr=False)
    threshold: int = field(init=False, repr=False)
    mean_along: float = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dimension = require_dimension(self.dimension)
        norm_bound = require_norm_bound(self.norm_bound)
        asked = require_non_negative("epsilon0", self.epsilon0)
        (gamma, threshold), loss = settle(asked, partial(law_for, dimension=dimension))
        fingerprint = checks.fingerprint_of(
            self.name,
            dimension=dimension,
            norm_bound=norm_bound.hex(),
            gamma=gamma.hex(),
            threshold=threshold,
        )
        jump = weight_difference(threshold, cap_measure(gamma, dimension))
        set_fields(self, dimension=dimension, norm_bound=norm_bound, epsilon0=loss)
        set_fields(self, gamma=gamma, threshold=threshold, fingerprint=fingerprint)
        set_fields(self, mean_along=jump * cap_moment(gamma, dimension))

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: loss, blanket of opposite points, and an attack.

        Proved in docs/results/worst-pairs.md, for the law of real numbers; see the known limitation
        above. The measure q of a part is a float with a relative error of at most 3e-10. Stated are
        p' >= e^epsilon0, b' = (1 - 1e-9) b and a' = (1 - b')/(p' + 1): mass of (1, 1) is spread
        onto the pair and outside the blanket with means kept, the pair is widened, and a', p' are
        rounded as in `exact_atoms`.
        """
        measure = cap_measure(self.gamma, self.dimension)
        ratio = math.exp(self.epsilon0)
        outside = self.threshold / WORD_VALUES / measure.outside
        neither = _THINNER * 2.0 * measure.below_half * outside
        one = round_down((1.0 - neither) / (ratio + 1.0))
        ratio = round_up(ratio, operations=16) if self.epsilon0 > 0.0 else 1.0
        # Right to ten digits for measures with relative errors below 1e-10.
        shared, own, third, none = caps_at_right_angle(self.gamma, self.dimension, measure)
        inside = (WORD_VALUES - self.threshold) / WORD_VALUES / measure.inside
        high, low = inside / outside, outside / inside
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=rounded_atoms([(one, ratio, 1.0), (one, 1.0, ratio), (neither, 1.0, 1.0)]),
            attack=rounded_atoms(
                [
                    (outside * own, high, 1.0),
                    (outside * own, 1.0, high),
                    (outside * none, 1.0, 1.0),
                    (inside * third, low, low),
                    (inside * shared, 1.0, low),
                    (inside * shared, low, 1.0),
                ]
            ),
        )

    @property
    def score_scale(self) -> tuple[float, float]:
        """Offset 0 and factor norm_bound / m. See `MeanRandomizer`."""
        if self.mean_along == 0.0:
            raise ParameterError(
                "epsilon0 = 0: reports do not depend on the values, so there is nothing to "
                "estimate; give epsilon0 >= 1e-9"
            )
        return 0.0, self.norm_bound / self.mean_along

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one vector of float32 for each value. See `MeanRandomizer`."""
        vectors = require_vectors(values, self.dimension)
        out = np.empty(vectors.shape, dtype=np.float32)
        step = max(1, _CELLS_AT_A_TIME // self.dimension)
        for start in range(0, len(out), step):
            block = vectors[start : start + step]
            directions = to_sphere(
                block, norm_bound=self.norm_bound, entropy=entropy, first_row=start
            )
            along, across = self._draw_lengths(len(block), entropy)
            normals = standard_normals(len(block) * (self.dimension - 1), entropy)
            # Computed in float64 and rounded once.
            out[start : start + step] = _turned(
                directions, along, across, normals.reshape(len(block), -1)
            )
        return Reports(data=out, fingerprint=self.fingerprint)

    @property
    def score_limits(self) -> tuple[float, float]:
        """Limits of a coordinate of a vector whose norm is 1 up to the tolerance."""
        return -1.0 - _UNIT_TOLERANCE, 1.0 + _UNIT_TOLERANCE

    def report_for(self, coordinate: int) -> NDArray[Any]:
        """Return the longest vector along a coordinate, up to the last digits of a float."""
        along = np.arange(self.dimension) == coordinate
        longest = np.float32(1.0 + 0.9999 * _UNIT_TOLERANCE)
        return np.where(along, longest, np.float32(0.0))[None]

    def scores(self, reports: Reports) -> Floats:
        """Return the vectors of the reports, shape (n, d). See `MeanRandomizer`."""
        return np.concatenate([np.empty((0, self.dimension)), *self._score_blocks(reports)])

    def _score_blocks(self, reports: Reports) -> Iterator[Floats]:
        """Yield the vectors of the reports, once checked, without a copy of them all."""
        of_law = self.fingerprint, np.dtype(np.float32), (self.dimension,)
        rows = checks.require_reports(reports, *of_law)
        step = max(1, _CELLS_AT_A_TIME // self.dimension)
        for start in range(0, len(rows), step):
            with np.errstate(invalid="ignore"):  # a signalling NaN is refused below
                block = rows[start : start + step].astype(np.float64)
            norms = np.sqrt(np.einsum("ij,ij->i", block, block))
            checks.require_possible(
                np.abs(norms - 1.0) <= _UNIT_TOLERANCE,  # so that NaN is refused
                "has the norm {:.6g}, not 1",
                norms,
                first=start,
            )
            yield block

    def mean_report_variance(self) -> float:
        """Return norm_bound^2 / (m^2 d), the variance for a vector of zeros, which is the largest.

        Infinite for epsilon0 = 0. The value's point on the sphere is random too, and that is
        counted: the decoded report has the length norm_bound / m, and its mean that of the value.
        """
        if self.mean_along == 0.0:
            return math.inf
        scale = self.norm_bound / self.mean_along
        return scale * scale / self.dimension

    def _draw_lengths(self, count: int, entropy: Entropy) -> tuple[Floats, Floats]:
        """Return t = <V, x> and sqrt(1 - t^2) of a number of reports.

        From the tail measure u the report is at the distance y = (1 - t) / 2 from x inside the
        cap, or (1 + t) / 2 from -x outside, with I_y(a, a) = u. Measuring from the far end keeps
        all digits of a small y, and sqrt(1 - t^2) = 2 sqrt(y (1 - y)) either way.
        """
        from scipy.special import betaincinv

        measure = cap_measure(self.gamma, self.dimension)
        is_outside = entropy.words(count) < np.uint64(self.threshold)
        tails = uniforms(entropy.words(count)) * np.where(
            is_outside, measure.outside, measure.inside
        )
        a = (self.dimension - 1) / 2
        end = np.where(is_outside, (1.0 + self.gamma) / 2, (1.0 - self.gamma) / 2)
        y = np.minimum(betaincinv(a, a, tails), end)  # round-off must not cross the cap's edge
        along = np.where(is_outside, 2.0 * y - 1.0, 1.0 - 2.0 * y)
        return along, 2.0 * np.sqrt(y * (1.0 - y))


def _turned(directions: Floats, along: Floats, across: Floats, normals: Floats) -> Floats:
    """Return along x + across g for each direction x, with g from normals, orthogonal to x.

    g is a row of ``normals``, shape (n, d - 1), scaled to length 1 and turned into the space
    orthogonal to x. The turn is the reflection I - 2 u u^T / |u|^2 with u = e1 + s x, s the sign of
    the first coordinate of x. It takes e1 to -s x, and |u| >= sqrt(2), so nothing cancels; where
    projecting g would lose digits in few dimensions.
    """
    firsts, rests = directions[:, 0], directions[:, 1:]
    signs = np.where(firsts >= 0.0, 1.0, -1.0)
    lengths = 1.0 + np.abs(firsts)  # |u|^2 / 2, and the first coordinate of u
    scales = across / np.sqrt(np.einsum("ij,ij->i", normals, normals))
    heads = -signs * along
    factors = heads + scales * signs * np.einsum("ij,ij->i", normals, rests) / lengths
    turned = np.empty_like(directions)
    turned[:, 0] = heads - factors * lengths
    turned[:, 1:] = scales[:, None] * normals - (signs * factors)[:, None] * rests
    return turned


def log_odds_upper(measure: Measure) -> float:
    """Return ln((1 - q) / q) rounded up by at most 1e-9 of it; exactly 0 for q = 1/2."""
    if measure.below_half < 0.25:
        log_odds = 2.0 * math.atanh(2.0 * measure.below_half)
    else:
        log_odds = math.log1p(-measure.inside) - math.log(measure.inside)
    mantissa, exponent = math.frexp(log_odds * (1.0 + _RELATIVE_MARGIN))
    return math.ldexp(math.ceil(math.ldexp(mantissa, _LOG_ODDS_BITS)), exponent - _LOG_ODDS_BITS)


def _on_grid(cosine: float) -> float:
    """Return the nearest float with 16 significant bits."""
    mantissa, exponent = math.frexp(cosine)
    return math.ldexp(round(math.ldexp(mantissa, _GAMMA_BITS)), exponent - _GAMMA_BITS)


def cosine_on_grid(gamma: float) -> float:
    """Return the nearest cosine on a grid that is fine towards 0 and towards 1.

    Up to 1/2 gamma has 16 significant bits, and above 1 - gamma has; at most 1 - 2^-37.
    """
    if gamma <= 0.5:
        return _on_grid(max(gamma, 0.0))
    return min(1.0 - _on_grid(1.0 - gamma), _LARGEST_GAMMA)


def law_for(epsilon0: float, dimension: int) -> tuple[TwoPieceLaw, float]:
    """Return the best cap's law, P spending the rest of the loss, and its loss, rounded up."""
    limit = min(epsilon0, _MOST_EPSILON0)
    if limit < _LEAST_EPSILON0:
        return UNIFORM
    gamma = best_gamma(limit, dimension)
    log_odds = log_odds_upper(cap_measure(gamma, dimension))
    budget = Fraction(limit) - Fraction(log_odds)
    if budget < 0:
        return UNIFORM  # P would be below 1/2: the best cap leaves more, and nothing costs less
    threshold, loss = response_law(float_below(budget))
    return TwoPieceLaw(gamma, threshold), float_above(Fraction(loss) + Fraction(log_odds))


def weight_difference(threshold: int, measure: Measure) -> float:
    """Return P / q - (1 - P) / (1 - q), the jump of the density at the cut; 0 if there is none."""
    # P - q from the distances to 1/2, so that nothing cancels.
    above_half = (WORD_VALUES // 2 - threshold) / WORD_VALUES
    return (above_half + measure.below_half) / (measure.inside * measure.outside)


def cap_measure(gamma: float, dimension: int) -> Measure:
    """Return the share of the sphere with <V, x> >= gamma, for gamma in [0, 1) and d >= 2.

    Each member has a relative error below 1e-11 for d up to 10^6 (the tests compare with 50
    digits); the accounting allows for 3e-10.
    """
    from scipy.special import betainc

    a = (dimension - 1) / 2
    return Measure(
        inside=float(betainc(a, a, (1.0 - gamma) / 2)),
        below_half=float(betainc(0.5, a, gamma * gamma)) / 2,
    )


def cap_moment(gamma: float, dimension: int) -> float:
    """Return J = E[<V, x>; <V, x> >= gamma] for a uniform V; relative error below 1e-9."""
    from scipy.special import betaln

    a = (dimension - 1) / 2
    log_power = a * (math.log(1.0 - gamma) + math.log1p(gamma))
    return math.exp(log_power - float(betaln(0.5, a))) / (dimension - 1)


def best_gamma(epsilon0: float, dimension: int) -> float:
    """Return the gamma of the cap that gives the least variance at a loss in (0, 100], on a grid.

    In [0, 1 - 2^-37], within 1e-5 of the optimum relative to it and to 1 - gamma.
    """
    gain = math.expm1(epsilon0)
    gamma = 0.0
    for _ in range(_MOST_STEPS):
        share = cap_measure(gamma, dimension).inside
        mean = gain * cap_moment(gamma, dimension) / (1.0 + gain * share)
        step = mean - gamma
        gamma = min(mean, cosine_on_grid(1.0))
        if step <= _RELATIVE_STEP * min(gamma, 1.0 - gamma):
            break
    return cosine_on_grid(gamma)


def caps_at_right_angle(gamma: float, dimension: int, measure: Measure) -> RightAngle:
    """Return the base measures of `PrivUnit`'s caps of x, -x and z, z at a right angle to both.

    Each member is as exact as the measure of one cap, or to 1e-12 of it (the tests compare with 30
    digits): Gauss and Legendre's rule with 128 nodes, in a variable in which the integrand is
    smooth. Cost: a tenth of a millisecond.
    """
    nodes, weights = _rule()

    def logs(phi: Floats) -> Floats:  # ln f
        ratio = np.minimum(gamma / np.cos(phi), _BELOW_ONE)  # round-off must not cross the end
        return np.asarray(0.5 * (dimension - 2) * np.log1p(-ratio * ratio))

    q, d = measure.inside, measure.below_half
    if q >= 0.25:  # and gamma <= 1/sqrt(2)
        w = -0.25 * float(weights @ np.expm1(logs(0.25 * math.pi * nodes)))
        return RightAngle((0.25 - d) + w, 0.25 - w, third=d - 2.0 * w, none=d + 2.0 * w)
    v, reach = 0.0, math.acos(gamma) - 0.25 * math.pi
    if reach > 0.0:
        # f ends like a power (d - 2) / 2 of the distance; squares make it smooth.
        ends = logs(0.25 * math.pi + reach * (1.0 - nodes * nodes))
        v = 2.0 * reach / math.pi * float(weights @ (nodes * np.exp(ends)))
    return RightAngle(v, q - v, third=q - 2.0 * v, none=1.0 - 3.0 * q + 2.0 * v)


@cache
def _rule() -> tuple[Floats, Floats]:
    """Return nodes and weights of the rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NUM_NODES)
    return read_only(0.5 + 0.5 * nodes), read_only(0.5 * weights)


# The measures of caps have been compared with many digits up to here.
_LARGEST_DIMENSION = 10**6
_NORM_BOUND_RANGE = (1e-100, 1e100)  # squares stay far from overflow and underflow
# A norm may exceed its bound by this much of it: enough for clipping in float64. Vectors that come
# in a shorter type were clipped in that type, and may exceed it by some of its last places.
_TOLERANCE = 1e-9
_TOLERANCE_IN_LAST_PLACES = 8
# Shorter vectors, relative to the bound, count as zero: their squares would underflow.
_SHORTEST = 1e-150


def require_dimension(value: SupportsIndex) -> int:
    """Return ``value`` as an int in [2, 10^6], else raise `ParameterError`."""
    dimension = require_at_least("dimension", value, 1)
    if not 2 <= dimension <= _LARGEST_DIMENSION:
        advice = "project the vectors to fewer dimensions"
        if dimension == 1:
            advice = "for one number take the randomizer of Duchi et al., best at small epsilon0"
        raise ParameterError(f"dimension = {dimension} is not in [2, 10^6]: {advice}")
    return dimension


def require_norm_bound(value: SupportsFloat) -> float:
    """Return ``value`` as a float in [1e-100, 1e100], else raise `ParameterError`."""
    norm_bound = require_positive("norm_bound", value)
    low, high = _NORM_BOUND_RANGE
    if not low <= norm_bound <= high:
        raise ParameterError(
            f"norm_bound = {norm_bound} is not in [{low:.0e}, {high:.0e}]: use another unit"
        )
    return norm_bound


def require_vectors(values: NDArray[Any], dimension: int) -> NDArray[Any]:
    """Return ``values`` as an array of numbers of shape (n, d), else raise `ParameterError`."""
    array = checks.plain_array(values)
    if array.shape == (0,):
        array = array.reshape(0, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ParameterError(
            f"values has shape {array.shape}: give one vector a user, shape (n, {dimension})"
        )
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"values has dtype {array.dtype}: give real numbers")
    return array


def to_sphere(
    values: NDArray[Any], *, norm_bound: float, entropy: Entropy, first_row: int = 0
) -> Floats:
    """Return a random unit vector for each value, whose expectation is value / norm_bound.

    Norms that exceed the bound by round-off, 1e-9 of it (1e-6 in float32), are taken for it; one
    that is too long, NaN or infinite is a `DomainError`, with ``first_row`` the number of the first
    row. With r = norm(v) / norm_bound and u = v / norm(v) the point is u with probability (1 + r) /
    2, and else -u, so that its expectation is r u. For v = 0 the direction u is itself random.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        directions: Floats = np.multiply(values, 1.0 / norm_bound, dtype=np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    tolerance = _TOLERANCE
    if np.issubdtype(values.dtype, np.floating):
        tolerance = max(tolerance, _TOLERANCE_IN_LAST_PLACES * float(np.finfo(values.dtype).eps))
    is_wrong = ~(norms <= 1.0 + tolerance)  # so that NaN is wrong too
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        if not np.isfinite(values[row]).all():
            fault = "holds NaN or infinity: drop that user, or put zeros in its place"
        else:
            fault = (
                f"has the norm {norms[row] * norm_bound:.12g}, which is not in [0, norm_bound = "
                f"{norm_bound:.12g}]: clip it to the ball, or raise norm_bound"
            )
        raise DomainError(f"values[{row + first_row}] {fault}")
    is_zero = norms < _SHORTEST
    if is_zero.any():
        shape = (int(is_zero.sum()), directions.shape[1])
        random = standard_normals(shape[0] * shape[1], entropy).reshape(shape)
        directions[is_zero] = random / np.linalg.norm(random, axis=1, keepdims=True)
    lengths = np.where(is_zero, 1.0, norms)
    is_kept = uniforms(entropy.words(norms.size)) < (1.0 + np.where(is_zero, 0.0, norms)) / 2.0
    directions *= (1.0 / np.where(is_kept, lengths, -lengths))[:, None]
    return directions


def uniforms(words: Words) -> Floats:
    """Return the upper 52 bits of each word as odd multiples of 2^-53: never 0, never 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def standard_normals(count: int, entropy: Entropy) -> Floats:
    """Return independent standard normals, one word each, at most 8.6.

    Source: Box, Muller, "A note on the generation of random normal deviates", Annals of
    Mathematical Statistics 29, 1958. Exact over real numbers up to round-off of a few units
    in 10^16.
    """
    half = -(-count // 2)
    words = entropy.words(2 * half)
    lengths = np.sqrt(-2.0 * np.log(uniforms(words[:half])))
    angles = 2.0 * math.pi * uniforms(words[half:])
    return np.concatenate([lengths * np.cos(angles), lengths * np.sin(angles)])[:count]
