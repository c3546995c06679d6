"""PrivUnit: a unit vector, more often than not from the cap around the user's own."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers.checks import fingerprint_of
from shuffledp.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.randomizers.vectors.cap_overlap import caps_at_right_angle
from shuffledp.randomizers.vectors.decoding import decoded_variance
from shuffledp.randomizers.vectors.privunit_parameters import (
    best_gamma,
    cap_measure,
    cap_moment,
)
from shuffledp.randomizers.vectors.summed_vectors import SummedVectors
from shuffledp.randomizers.vectors.two_piece_atoms import two_piece_profile
from shuffledp.randomizers.vectors.two_piece_law import (
    draw_tail_probabilities,
    settle_law,
    weight_difference,
)
from shuffledp.randomizers.vectors.unit_ball import require_dimension, require_norm_bound
from shuffledp.randomizers.vectors.vector_reports import (
    Lengths,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnit(SummedVectors, MeanRandomizer):
    """PrivUnit with optimal parameters: vectors of Euclidean norm at most ``norm_bound``.

    Parameters
    ----------
    dimension : int
        Number of coordinates d, in [2, 10^6].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.
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
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Notes
    -----
    Source: Bhowmick, Duchi, Freudiger, Kapoor, Rogers, arXiv:1812.00984, Algorithm 1; Asi, Feldman,
    Talwar, arXiv:2205.02466, who show that it is optimal with the best parameters. The value is
    first replaced by a point x of the unit sphere, at random, with the value as its expectation
    (`to_sphere`). With probability P = 1 - T / 2^64 the report V is uniform on the cap, else on
    the rest of the sphere. q being the cap's share of the sphere,

        epsilon0 = ln(P / (1 - P)) + ln((1 - q) / q),

    and V / m is unbiased with variance 1 / m^2 - 1 in all for a value on the sphere. P and gamma
    make m the largest for this epsilon0: then gamma = m; see `privunit_parameters`.

    The loss is rounded up. It contains a margin of 1e-9 of its second term for the floating-point
    value of q. Below 1e-12 the law is uniform and epsilon0 exactly 0. Above 58 (d = 2),
    71 (d = 3) or 100 nothing more is spent.

    **Known limitation.** The law is continuous, and it is accounted as a law of real numbers.
    Whether the report lies in the cap is decided by an integer threshold. Its coordinates are
    computed in float64 and published in float32; that rounding is post-processing and drops the
    low bits, in which traces of the computation would be. But there is no proof that the float32
    vectors themselves have the stated loss.

    Cost: d + 4 random words and a few nanoseconds a coordinate; 4 d bytes a report. Memory beyond
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
    >>> PrivUnit(dimension=3, epsilon0=0.0).epsilon0
    0.0
    """

    name: ClassVar[str] = "privunit"
    # Reports are unit vectors, rounded to float32: their norms are off by 1e-7 at most.
    norm_range: ClassVar[tuple[float, float]] = (0.999, 1.001)
    is_on_sphere: ClassVar[bool] = True

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
        law = settle_law(
            require_non_negative("epsilon0", self.epsilon0),
            best_cut=lambda loss: best_gamma(loss, dimension),
            measure_of=lambda gamma: cap_measure(gamma, dimension),
        )
        jump = weight_difference(law.threshold, cap_measure(law.cut, dimension))
        facts = {
            "dimension": dimension,
            "epsilon0": law.loss,
            "norm_bound": norm_bound,
            "gamma": law.cut,
            "threshold": law.threshold,
            "mean_along": jump * cap_moment(law.cut, dimension),
            "fingerprint": fingerprint_of(
                self.name,
                dimension=dimension,
                norm_bound=norm_bound.hex(),
                gamma=law.cut.hex(),
                threshold=law.threshold,
            ),
        }
        for attribute, fact in facts.items():
            object.__setattr__(self, attribute, fact)

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the loss, the blanket of opposite points, and an attack.

        Notes
        -----
        Proved in `shuffledp.randomizers.vectors.two_piece_atoms`: k-RR's blanket with
        1/q in place of k. It is that of the law of real numbers; see the known limitation above.
        """
        measure = cap_measure(self.gamma, self.dimension)
        right_angle = caps_at_right_angle(self.gamma, self.dimension, measure)
        return two_piece_profile(self.epsilon0, self.threshold, measure, right_angle)

    def _draw_lengths(self, count: int, entropy: Entropy) -> Lengths:
        """Return t = <V, x> and sqrt(1 - t^2) of a number of reports.

        From the tail measure u the report is at the distance y = (1 - t) / 2 from x inside the
        cap, or (1 + t) / 2 from -x outside, with I_y(a, a) = u. Measuring from the far end keeps
        all digits of a small y, and sqrt(1 - t^2) = 2 sqrt(y (1 - y)) either way.
        """
        from scipy.special import betaincinv

        a = (self.dimension - 1) / 2
        measure = cap_measure(self.gamma, self.dimension)
        is_outside, tails = draw_tail_probabilities(count, self.threshold, measure, entropy)
        end = np.where(is_outside, (1.0 + self.gamma) / 2, (1.0 - self.gamma) / 2)
        y = np.minimum(betaincinv(a, a, tails), end)  # round-off must not cross the cap's edge
        along = np.where(is_outside, 2.0 * y - 1.0, 1.0 - 2.0 * y)
        return along, 2.0 * np.sqrt(y * (1.0 - y))

    def report_variance(self, value: float) -> float:
        """Return (norm_bound^2 / m^2 - value^2) / d for a vector of norm ``value``.

        Parameters
        ----------
        value : float
            Euclidean norm of the user's vector, in [0, norm_bound].

        Returns
        -------
        float
            Variance of the decoded report, as the mean over its coordinates; infinite for
            epsilon0 = 0.
        """
        return decoded_variance(
            value,
            mean_along=self.mean_along,
            mean_square=1.0,
            norm_bound=self.norm_bound,
            dimension=self.dimension,
        )

    def mean_report_variance(self) -> float:
        """Return the largest `report_variance`, which is that of a vector of zeros."""
        return self.report_variance(0.0)
