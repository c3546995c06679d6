"""PrivUnitG: PrivUnit with normal vectors in place of points of the sphere."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers.checks import fingerprint_of
from shuffledp.randomizers.mean_randomizer import MeanRandomizer
from shuffledp.randomizers.vectors.decoding import decoded_variance
from shuffledp.randomizers.vectors.gaussian_parameters import (
    best_cut,
    half_space_measure,
    normal_density,
)
from shuffledp.randomizers.vectors.summed_vectors import SummedVectors
from shuffledp.randomizers.vectors.two_piece_atoms import (
    RightAngle,
    two_piece_profile,
)
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
class PrivUnitGaussian(SummedVectors, MeanRandomizer):
    """PrivUnitG with optimal parameters: vectors of Euclidean norm at most ``norm_bound``.

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
    cut : float
        z: the half-space of an input x holds the reports V with <V, x> >= z / sqrt(d).
    threshold : int
        T: a report lies outside the half-space with probability exactly T / 2^64.
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
    Source: Asi, Feldman, Talwar, arXiv:2205.02466, PrivUnitG. The value is first replaced by a
    point x of the unit sphere, at random, with the value as its expectation (`to_sphere`). The
    report is V = a x + G, G normal with variance 1 / d in each direction orthogonal to x, and a
    normal with variance 1 / d too, but conditioned: with probability P = 1 - T / 2^64 on a >= z /
    sqrt(d), else on the contrary. With q = Phi(-z)

        epsilon0 = ln(P / (1 - P)) + ln((1 - q) / q),

    and V / m is unbiased. E[norm(V)^2] = 1 + z m / sqrt(d), so the variance is
    (1 + z m / sqrt(d)) / m^2 - 1 in all for a value on the sphere; P and z make it the smallest for
    this epsilon0 (see `gaussian_parameters`). It tends to that of `PrivUnit` as d grows, which is
    never worse.

    The loss is rounded up. It contains a margin of 1e-9 of its second term for the floating-point
    value of q. Below 1e-12 the law does not depend on the value and epsilon0 is exactly 0. Above
    100 nothing more is spent.

    **Known limitation.** The law is continuous, and it is accounted as a law of real numbers.
    Which side of the cut the report lies on is decided by an integer threshold. Its coordinates
    are computed in float64 and published in float32; that rounding is post-processing and drops
    the low bits, in which traces of the computation would be. But there is no proof that the
    float32 vectors themselves have the stated loss.

    Cost: d + 4 random words and a few nanoseconds a coordinate; 4 d bytes a report. Memory beyond
    the reports is that of about 2^16 coordinates.

    Examples
    --------
    >>> randomizer = PrivUnitGaussian(dimension=1000, epsilon0=2.0)
    >>> abs(randomizer.mean_along * 1000**0.5 - randomizer.cut) < 1e-3  # nearly the best m
    True
    >>> values = np.zeros((2, 1000))
    >>> randomizer.randomize(values, Entropy.from_seed(7)).data.shape
    (2, 1000)
    """

    name: ClassVar[str] = "privunit-gaussian"
    # No normal that is drawn exceeds 13, nor does the component along the input exceed 14; across
    # it there are d - 1 normals of variance 1/d. A forged report can be no longer than that either.
    norm_range: ClassVar[tuple[float, float]] = (0.0, 20.0)
    is_on_sphere: ClassVar[bool] = False

    # A default of `field()`, or else the dataclass takes the base class's property for one.
    dimension: int = field()
    epsilon0: float
    norm_bound: float = 1.0
    cut: float = field(init=False, repr=False)
    threshold: int = field(init=False, repr=False)
    mean_along: float = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dimension = require_dimension(self.dimension)
        norm_bound = require_norm_bound(self.norm_bound)
        law = settle_law(
            require_non_negative("epsilon0", self.epsilon0),
            best_cut=lambda loss: best_cut(loss, dimension),
            measure_of=half_space_measure,
        )
        jump = weight_difference(law.threshold, half_space_measure(law.cut))
        facts = {
            "dimension": dimension,
            "epsilon0": law.loss,
            "norm_bound": norm_bound,
            "cut": law.cut,
            "threshold": law.threshold,
            "mean_along": jump * normal_density(law.cut) / math.sqrt(dimension),
            "fingerprint": fingerprint_of(
                self.name,
                dimension=dimension,
                norm_bound=norm_bound.hex(),
                cut=law.cut.hex(),
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
        Proved in `shuffledp.randomizers.vectors.two_piece_atoms`. Under the base law
        components at a right angle are independent, so that half-spaces share q^2. All is that of
        the law of real numbers; see the known limitation above.
        """
        measure = half_space_measure(self.cut)
        inside, outside, middle = measure.inside, measure.outside, 2.0 * measure.below_half
        right_angle = RightAngle(
            shared=inside * inside,
            own=inside * outside,
            third=inside * middle,
            none=outside * middle,
        )
        return two_piece_profile(self.epsilon0, self.threshold, measure, right_angle)

    def _draw_lengths(self, count: int, entropy: Entropy) -> Lengths:
        """Return a = <V, x> of a number of reports, and the deviation 1 / sqrt(d) across."""
        from scipy.special import ndtri

        measure = half_space_measure(self.cut)
        is_outside, tails = draw_tail_probabilities(count, self.threshold, measure, entropy)
        z = ndtri(tails)
        # Round-off must not cross the cut.
        scaled = np.where(is_outside, np.minimum(z, self.cut), np.maximum(-z, self.cut))
        deviation = 1.0 / math.sqrt(self.dimension)
        return scaled * deviation, np.full(count, deviation)

    def report_variance(self, value: float) -> float:
        """Return (norm_bound^2 E[norm(V)^2] / m^2 - value^2) / d for a vector of norm ``value``.

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
            mean_square=1.0 + self.cut * self.mean_along / math.sqrt(self.dimension),
            norm_bound=self.norm_bound,
            dimension=self.dimension,
        )

    def mean_report_variance(self) -> float:
        """Return the largest `report_variance`, which is that of a vector of zeros."""
        return self.report_variance(0.0)
