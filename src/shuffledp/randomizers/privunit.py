"""PrivUnit: a vector, more often than not from the cap around the user's own.

*The cap.* On the unit sphere of R^d, write a = (d - 1) / 2 and t = <V, x> for a uniform
V. Then (1 + t) / 2 has the law Beta(a, a), the cap t >= gamma has measure
q = I_{(1 - gamma) / 2}(a, a), and

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
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports, Sums, read_only
from shuffledp.randomizers.base import MeanRandomizer
from shuffledp.randomizers.checks import fingerprint_of, require_reports, set_fields
from shuffledp.randomizers.two_piece import (
    LEAST_EPSILON0,
    MOST_EPSILON0,
    UNIFORM,
    Measure,
    RightAngle,
    TwoPieceLaw,
    cosine_on_grid,
    draw_tail_probabilities,
    law_for_cap,
    two_piece_attack,
    two_piece_blanket,
    weight_difference,
)
from shuffledp.randomizers.vector_reports import (
    Lengths,
    randomize_vectors,
    require_dimension,
    require_norm_bound,
    require_unit_norms,
    sum_vectors,
)

# Newton's method: each step of the slow phase adds 1 / (epsilon0 + 2) of gamma or takes
# two thirds of 1 - gamma.
_MOST_STEPS = 300
_RELATIVE_STEP = 1e-9

_NUM_NODES = 128
_BELOW_ONE = 1.0 - 2.0**-52


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnit(MeanRandomizer):
    """PrivUnit with optimal parameters: vectors of Euclidean norm at most ``norm_bound``.

    Parameters
    ----------
    dimension : int
        Number of coordinates d, in [2, 10^6].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then that of the law drawn, rounded up.
    norm_bound : float
        Radius of the ball that holds all values, in [1e-100, 1e100].

    Attributes
    ----------
    gamma : float
        Where the cap begins: reports V with <V, x> >= gamma are in the cap around x.
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

    Cost: d + 4 random words and some 20 nanoseconds a coordinate; 4 d bytes a report. Memory beyond
    the reports is that of about 2^16 coordinates.

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
        law = settle_law(require_non_negative("epsilon0", self.epsilon0), dimension)
        jump = weight_difference(law.threshold, cap_measure(law.gamma, dimension))
        fingerprint = fingerprint_of(
            self.name,
            dimension=dimension,
            norm_bound=norm_bound.hex(),
            gamma=law.gamma.hex(),
            threshold=law.threshold,
        )
        set_fields(self, dimension=dimension, norm_bound=norm_bound, epsilon0=law.loss)
        set_fields(self, gamma=law.gamma, threshold=law.threshold, fingerprint=fingerprint)
        set_fields(self, mean_along=jump * cap_moment(law.gamma, dimension))

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the loss, the blanket of opposite points, and an attack.

        Proved in docs/results/worst-pairs.md, for the law of real numbers; see the known limitation
        above.
        """
        measure = cap_measure(self.gamma, self.dimension)
        right_angle = caps_at_right_angle(self.gamma, self.dimension, measure)
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=two_piece_blanket(self.epsilon0, self.threshold, measure),
            attack=two_piece_attack(self.threshold, measure, right_angle),
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
        data = randomize_vectors(
            values,
            dimension=self.dimension,
            norm_bound=self.norm_bound,
            entropy=entropy,
            draw_lengths=self._draw_lengths,
        )
        return Reports(data=data, fingerprint=self.fingerprint)

    def scores(self, reports: Reports) -> Floats:
        """Return the vectors of the reports, shape (n, d). See `MeanRandomizer`."""
        rows = self._rows(reports)
        require_unit_norms(rows)
        return rows.astype(np.float64)

    def aggregate(self, reports: Reports) -> Sums:
        """Return the sums of the reports and of their squares. See `MeanRandomizer`."""
        return sum_vectors(self._rows(reports), fingerprint=self.fingerprint)

    def _rows(self, reports: Reports) -> NDArray[np.float32]:
        """Return the vectors of the reports if they are of this law."""
        rows: NDArray[np.float32] = require_reports(
            reports,
            fingerprint=self.fingerprint,
            dtype=np.dtype(np.float32),
            row_shape=(self.dimension,),
        )
        return rows

    def report_variance(self, value: float) -> float:
        """Return (norm_bound^2 / m^2 - value^2) / d for a vector of norm ``value``.

        The variance of the decoded report, as the mean over its coordinates; infinite for
        epsilon0 = 0. The value's point on the sphere is random too, and that is counted: the
        decoded report has the length norm_bound / m, and its mean the length of the value.
        """
        length = require_non_negative("value", value)
        if length > self.norm_bound * (1.0 + 1e-9):
            raise ParameterError(
                f"value = {value} is not in [0, norm_bound = {self.norm_bound}]: it is the norm of "
                "a vector"
            )
        if self.mean_along == 0.0:
            return math.inf
        # As a product, since both are close to 1 at large epsilon0.
        along = min(length / self.norm_bound, 1.0) * self.mean_along
        scale = self.norm_bound / self.mean_along
        return scale * scale * (1.0 - along) * (1.0 + along) / self.dimension

    def mean_report_variance(self) -> float:
        """Return the largest `report_variance`, which is that of a vector of zeros."""
        return self.report_variance(0.0)

    def _draw_lengths(self, count: int, entropy: Entropy) -> Lengths:
        """Return t = <V, x> and sqrt(1 - t^2) of a number of reports.

        From the tail measure u the report is at the distance y = (1 - t) / 2 from x inside the
        cap, or (1 + t) / 2 from -x outside, with I_y(a, a) = u. Measuring from the far end keeps
        all digits of a small y, and sqrt(1 - t^2) = 2 sqrt(y (1 - y)) either way.
        """
        from scipy.special import betaincinv

        measure = cap_measure(self.gamma, self.dimension)
        is_outside, tails = draw_tail_probabilities(count, self.threshold, measure, entropy)
        a = (self.dimension - 1) / 2
        end = np.where(is_outside, (1.0 + self.gamma) / 2, (1.0 - self.gamma) / 2)
        y = np.minimum(betaincinv(a, a, tails), end)  # round-off must not cross the cap's edge
        along = np.where(is_outside, 2.0 * y - 1.0, 1.0 - 2.0 * y)
        return along, 2.0 * np.sqrt(y * (1.0 - y))


def settle_law(epsilon0: float, dimension: int) -> TwoPieceLaw:
    """Return the law for the ``epsilon0`` asked for; it costs at most that.

    A fixed point: a law settled for its own ``loss`` is the same law. Each round asks for the loss
    of the law before, which is never larger. As a rule the second round changes nothing; where the
    cap moves to its neighbour on the grid, one more is needed.
    """

    def law_for(loss: float) -> TwoPieceLaw:
        if loss < LEAST_EPSILON0:
            return UNIFORM
        gamma = best_gamma(min(loss, MOST_EPSILON0), dimension)
        return law_for_cap(min(loss, MOST_EPSILON0), gamma, cap_measure(gamma, dimension))

    law = law_for(epsilon0)
    while (again := law_for(law.loss)) != law:
        law = again
    return law


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
    inside, below_half = measure.inside, measure.below_half
    if inside >= 0.25:
        both_below = _both_below(gamma, dimension)
        return RightAngle(
            shared=(0.25 - below_half) + both_below,
            own=0.25 - both_below,
            third=below_half - 2.0 * both_below,
            none=below_half + 2.0 * both_below,
        )
    shared = _both_above(gamma, dimension)
    return RightAngle(
        shared=shared,
        own=inside - shared,
        third=inside - 2.0 * shared,
        none=1.0 - 3.0 * inside + 2.0 * shared,
    )


def _both_below(gamma: float, dimension: int) -> float:
    """Return w, for gamma <= 1/sqrt(2)."""
    nodes, weights = _rule()
    logs = _logs(0.25 * math.pi * nodes, gamma, dimension)
    return -0.25 * float(weights @ np.expm1(logs))


def _both_above(gamma: float, dimension: int) -> float:
    """Return v."""
    reach = math.acos(gamma) - 0.25 * math.pi
    if reach <= 0.0:
        return 0.0
    nodes, weights = _rule()
    # f ends like a power (d - 2) / 2 of the distance; squares make it smooth.
    logs = _logs(0.25 * math.pi + reach * (1.0 - nodes * nodes), gamma, dimension)
    return 2.0 * reach / math.pi * float(weights @ (nodes * np.exp(logs)))


def _logs(phi: Floats, gamma: float, dimension: int) -> Floats:
    """Return ln f."""
    ratio = np.minimum(gamma / np.cos(phi), _BELOW_ONE)  # round-off must not cross the end
    logs: Floats = 0.5 * (dimension - 2) * np.log1p(-ratio * ratio)
    return logs


@lru_cache(maxsize=1)
def _rule() -> tuple[Floats, Floats]:
    """Return nodes and weights of the rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NUM_NODES)
    return read_only(0.5 + 0.5 * nodes), read_only(0.5 * weights)
