"""Sampled change: only one change, drawn at the start, counts (Algorithm 1, corrected)."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.monitoring_profile import MonitoringProfile
from shuffledp.monitoring.sign_laws.exact_integers import draw_below
from shuffledp.monitoring.sign_laws.law import LawKind
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    log_ratio_upper,
    optimized_unary_threshold,
    settle,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledChange:
    """The client of Erlingsson et al.: one change out of k is reported, by randomized response.

    Parameters
    ----------
    max_changes : int
        k, at least 1.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.

    Attributes
    ----------
    flip_threshold : int
        T: the change that counts is reported with its sign turned with probability T / 2^64.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Notes
    -----
    Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
    Shuffling", SODA 2019, arXiv:1811.12469v2, Algorithm 1. There the sign is kept with probability
    e^(eps/2) / (1 + e^(eps/2)), and Theorem 5 states eps; the loss is exactly eps/2, so here it is
    kept with probability b = e0 / (1 + e0), e0 = e^epsilon0, for a loss of exactly epsilon0.

    A change counts with probability 1/k, so the gap is (2b - 1) / k. At most one sign of a client
    says anything, so products of two or more signs have mean 0.

    Examples
    --------
    >>> law = SampledChange(max_changes=2, epsilon0=1.0986122886681098)  # just above ln 3
    >>> round(law.gap, 12)  # (3/4 - 1/4) / 2
    0.25
    """

    name: ClassVar[str] = "sampled-change"
    kind: ClassVar[LawKind] = "sampled-change"

    max_changes: int
    epsilon0: float
    flip_threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        max_changes = require_at_least("max_changes", self.max_changes, 1)
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = settle(asked, threshold_for=optimized_unary_threshold, loss_of=_loss)
        set_field = partial(object.__setattr__, self)
        set_field("max_changes", max_changes)
        set_field("epsilon0", epsilon0)
        set_field("flip_threshold", threshold)

    @property
    def exact_gap(self) -> Fraction:
        """(2b - 1) / k, exactly."""
        return Fraction(WORD_VALUES - 2 * self.flip_threshold, WORD_VALUES * self.max_changes)

    @property
    def gap(self) -> float:
        """(2b - 1) / k, to the nearest float."""
        return float(self.exact_gap)

    @property
    def pair_correlation(self) -> float:
        """Zero: at most one sign of a client says anything."""
        return 0.0

    @property
    def identity(self) -> str:
        """Names the exact law."""
        return f"{self.name}/{self.max_changes}/{self.flip_threshold}"

    def profile(self, *, num_levels: int, alternating: bool) -> MonitoringProfile:
        """Return what the accountant needs. See `SignLaw`."""
        return MonitoringProfile(
            protocol=self.name,
            epsilon0=self.epsilon0,
            max_changes=self.max_changes,
            num_levels=num_levels,
            sign_correlations=(Fraction(1), self.exact_gap),
            uniform_share=Fraction(2 * self.flip_threshold, WORD_VALUES),
            alternating=alternating,
        )

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the number of the change that counts for each client, uniform on 1 ... k."""
        return draw_below(entropy, size, self.max_changes) + np.uint64(1)


def _loss(threshold: int) -> float:
    """Return the exact loss of a threshold, rounded up."""
    return log_ratio_upper(Fraction(WORD_VALUES - threshold, threshold))
