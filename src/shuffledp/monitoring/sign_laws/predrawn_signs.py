"""Pre-drawn signs with the largest gap that any exchangeable law has: a threshold law."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import comb, floor
from typing import ClassVar, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.monitoring_profile import MonitoringProfile
from shuffledp.monitoring.sign_laws.exchangeable import ExchangeableSigns
from shuffledp.monitoring.sign_laws.law import LawKind
from shuffledp.monitoring.sign_laws.patterns import LARGEST_NUM_SIGNS, PatternSet
from shuffledp.randomizers.thresholds import WORD_VALUES, exp_lower, log_ratio_upper


class _Choice(NamedTuple):
    """A law of the family, and what it costs and tells."""

    radius: int
    coin_threshold: int
    epsilon0: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredrawnSigns:
    """k signs drawn once: with some probability few of them minus, else uniform.

    A client draws a pattern of k signs when it starts. The j-th nonzero increment at its level is
    reported times sign j.

    Parameters
    ----------
    max_changes : int
        k, in [1, 62].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
        loss of the law that is drawn, rounded up, which is at most that.

    Attributes
    ----------
    radius : int
        tau: patterns with at most tau minus signs are the likely ones.
    coin_threshold : int
        T: with probability T / 2^64 the pattern is uniform among the likely ones, else among all.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Notes
    -----
    Source: this project; proofs in docs/results/monitoring-laws.md. The idea of correlated noise
    that is drawn before the data come is that of FutureRand (Ohrimenko, Wirth, Wu,
    arXiv:2112.12279).

    Let B = C(k, 0) + ... + C(k, tau) and p = T / 2^64. Relative to uniform, a likely pattern has
    the density (1 - p) + p 2^k / B, every other 1 - p. So the loss of everything that a client
    ever reports is exactly ln(1 + p 2^k / ((1 - p) B)), whatever the number of periods, and the
    gap is p C(k-1, tau) / B. With e0 = e^epsilon0 the best p gives the gap
    (e0 - 1) C(k-1, tau) / (2^k + (e0 - 1) B); tau maximises it, and no exchangeable law at the
    same loss has a larger gap. It is about tanh(epsilon0 / 2) sqrt(2 / (pi k)) where epsilon0 is
    small, against tanh(epsilon0 / 2) / k of `SampledChange`.

    Where epsilon0 is above 44.4 + k ln 2 the law no longer changes (T = 2^64 - 1).

    Examples
    --------
    >>> law = PredrawnSigns(max_changes=1, epsilon0=1.0986122886681098)  # just above ln 3
    >>> law.radius, round(law.gap, 12)  # 3/4 - 1/4, as by randomized response
    (0, 0.5)
    >>> PredrawnSigns(max_changes=16, epsilon0=1.0).radius
    7
    """

    name: ClassVar[str] = "predrawn-signs"
    kind: ClassVar[LawKind] = "predrawn"
    flip_threshold: ClassVar[int] = 0

    max_changes: int
    epsilon0: float
    radius: int = field(init=False, repr=False)
    coin_threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = _require_num_signs(self.max_changes)
        asked = require_non_negative("epsilon0", self.epsilon0)
        choice = _best(k, asked)
        set_field = partial(object.__setattr__, self)
        set_field("max_changes", k)
        set_field("epsilon0", choice.epsilon0)
        set_field("radius", choice.radius)
        set_field("coin_threshold", choice.coin_threshold)

    @property
    def signs(self) -> ExchangeableSigns:
        """The exact law of the pattern of signs."""
        return ExchangeableSigns(
            weights=_weights(self.max_changes, self.radius, self.coin_threshold)
        )

    @property
    def exact_gap(self) -> Fraction:
        """Mean of a sign, exactly."""
        return _gap(self.max_changes, self.radius, self.coin_threshold)

    @property
    def gap(self) -> float:
        """Mean of a sign, to the nearest float."""
        return float(self.exact_gap)

    @property
    def pair_correlation(self) -> float:
        """Mean of the product of two signs, to the nearest float; 0 where there is one sign."""
        return float(self.signs.correlation(2)) if self.max_changes > 1 else 0.0

    @property
    def identity(self) -> str:
        """Names the exact law."""
        return f"{self.name}/{self.max_changes}/{self.radius}/{self.coin_threshold}"

    def profile(self, *, num_levels: int, alternating: bool) -> MonitoringProfile:
        """Return what the accountant needs. See `SignLaw`."""
        signs = self.signs
        return MonitoringProfile(
            protocol=self.name,
            epsilon0=self.epsilon0,
            max_changes=self.max_changes,
            num_levels=num_levels,
            sign_correlations=signs.correlations,
            uniform_share=signs.least_density,
            alternating=alternating,
        )

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the pattern of each client: bit j - 1 is set if sign j is minus."""
        k = self.max_changes
        likely = np.flatnonzero(entropy.words(size) < np.uint64(self.coin_threshold))
        patterns = entropy.words(size) >> np.uint64(64 - k)
        ball = PatternSet(num_signs=k, allowed=range(self.radius + 1))
        patterns[likely] = ball.draw(entropy, likely.size)
        return patterns


def _require_num_signs(max_changes: SupportsIndex) -> int:
    """Return k if so many signs fit a key, else raise with the way out."""
    k = require_at_least("max_changes", max_changes, 1)
    if k > LARGEST_NUM_SIGNS:
        raise ParameterError(
            f"max_changes = {k} is above {LARGEST_NUM_SIGNS}, the most signs that a client can "
            'draw at once: follow fewer changes, or use protocol = "sampled-change"'
        )
    return k


def _best(k: int, asked: float) -> _Choice:
    """Return the radius with the largest gap, and the largest coin that costs at most ``asked``.

    Asked for the loss that came out, the answer is the same: the coin of this radius is still the
    largest, and those of the others can only fall. So a design rebuilt from the ``epsilon0`` that
    it printed is the same design.
    """
    extra = exp_lower(asked) - 1  # of the densities' ratio, above 1
    coins = [_coin_threshold(k, radius, max(extra, Fraction(0))) for radius in range(k)]
    gaps = [_gap(k, radius, coin) for radius, coin in enumerate(coins)]
    radius = gaps.index(max(gaps))
    loss = _loss_ratio(k, radius, coins[radius])
    return _Choice(radius, coins[radius], log_ratio_upper(loss))


def _ball_size(k: int, radius: int) -> int:
    """Return B, the number of patterns with at most ``radius`` minus signs."""
    return sum(comb(k, i) for i in range(radius + 1))


def _coin_threshold(k: int, radius: int, extra: Fraction) -> int:
    """Return the largest T below 2^64 with p 2^k / ((1 - p) B) <= extra, p = T / 2^64."""
    odds = extra * _ball_size(k, radius) / (1 << k)
    return floor(WORD_VALUES * odds / (1 + odds))


def _loss_ratio(k: int, radius: int, coin_threshold: int) -> Fraction:
    """Return e^epsilon0 of a law, exactly."""
    odds = Fraction(coin_threshold, WORD_VALUES - coin_threshold)
    return 1 + odds * (1 << k) / _ball_size(k, radius)


def _gap(k: int, radius: int, coin_threshold: int) -> Fraction:
    """Return the mean of a sign: in the ball it is C(k-1, tau) / B, among all patterns 0."""
    share = Fraction(comb(k - 1, radius), _ball_size(k, radius))
    return Fraction(coin_threshold, WORD_VALUES) * share


def _weights(k: int, radius: int, coin_threshold: int) -> tuple[int, ...]:
    """Return whole numbers proportional to the probability of a pattern with i minus signs."""
    other = (WORD_VALUES - coin_threshold) * _ball_size(k, radius)
    likely = other + (coin_threshold << k)
    return tuple(likely if i <= radius else other for i in range(k + 1))
