"""Laws of the random signs that hide a client's changes, each accounted exactly.

Exchangeable laws of k signs: what they cost, and what they tell, exactly.

A law is exchangeable if the probability of a pattern of signs depends only on its number of minus
signs. Two lines say all that matters about it: the local privacy loss of everything a client ever
reports is ln(max w / min w), and the gap is the mean of a sign.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import comb, floor
from types import MappingProxyType
from typing import ClassVar, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import MonitoringProfile
from shuffledp.randomizers.thresholds import (
    WORD_VALUES,
    exp_lower,
    flip_threshold,
    log_ratio_upper,
    settle,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeableSigns:
    """A law of k signs: weights, all at least 1, of *each* pattern with i = 0 ... k minus signs.

    A pattern that never occurs would cost an infinite loss.
    """

    # For i = 0 ... k, proportional to the probability w(i) of *each* pattern with i minus signs.
    weights: tuple[int, ...]

    @property
    def num_signs(self) -> int:
        """Number of signs, k."""
        return len(self.weights) - 1

    @property
    def total(self) -> int:
        """Sum of the weights of all 2^k patterns."""
        k = self.num_signs
        return sum(comb(k, i) * weight for i, weight in enumerate(self.weights))

    @property
    def loss_ratio(self) -> Fraction:
        """e^epsilon0 of everything that a client ever reports: max w / min w.

        Densities relative to uniform reports lie between 2^k min w and 2^k max w, and reach them
        for k increments that are not 0.
        """
        return Fraction(max(self.weights), min(self.weights))

    @property
    def least_density(self) -> Fraction:
        """2^k min w: the least density of a client's reports relative to uniform reports."""
        return Fraction(min(self.weights) << self.num_signs, self.total)

    @property
    def correlations(self) -> tuple[Fraction, ...]:
        """r_0 ... r_k, exactly; see `correlation`."""
        return tuple(self.correlation(order) for order in range(self.num_signs + 1))

    def correlation(self, order: int) -> Fraction:
        """Return r_i, the mean of the product of i different signs, exactly.

        The sum over m of w(m) times the coefficient of z^m in (1 - z)^i (1 + z)^(k - i).
        """
        row = _coefficients(order, self.num_signs - order)
        signed = sum(weight * count for weight, count in zip(self.weights, row, strict=True))
        return Fraction(signed, self.total)


def _coefficients(minus: int, plus: int) -> list[int]:
    """Return the coefficients of (1 - z)^minus (1 + z)^plus, the constant first."""
    row = [1]
    for sign in [-1] * minus + [1] * plus:
        row = [a + sign * b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return row


#: Most signs of a pattern: it is a 64-bit word, and the number of patterns must fit one, too.
LARGEST_NUM_SIGNS = 62

# Patterns are unranked this many at a time: their arrays stay in the second-level cache.
_BLOCK = 2**14


def ball_patterns(ranks: NDArray[np.uint64], num_signs: int, radius: int) -> NDArray[np.uint64]:
    """Return the patterns of given numbers, of k signs of which at most ``radius`` are minus.

    A bijection from [0, B), in lexicographic order. Bit j - 1 is set if sign j is minus.
    """
    # How many ways there are to go on, by signs still to come and minus signs so far.
    ways = np.zeros((num_signs + 1, num_signs + 2), dtype=np.uint64)
    ways[0, : radius + 1] = 1
    for row in range(1, num_signs + 1):
        ways[row, :-1] = ways[row - 1, :-1] + ways[row - 1, 1:]
    patterns = np.zeros(ranks.size, dtype=np.uint64)
    for start in range(0, ranks.size, _BLOCK):
        rest = ranks[start : start + _BLOCK].copy()
        minus_signs = np.zeros(rest.size, dtype=np.intp)
        for place in range(num_signs):
            # How many patterns go on with a plus: those come first.
            with_plus = ways[num_signs - 1 - place].take(minus_signs)
            is_minus = rest >= with_plus
            rest -= with_plus * is_minus
            minus_signs += is_minus
            patterns[start : start + _BLOCK] |= is_minus.astype(np.uint64) << np.uint64(place)
    return patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class PredrawnSigns:
    """k signs drawn once: with probability p = T / 2^64 few of them minus, else uniform.

    The j-th increment that is not 0 is reported times sign j. T is ``coin_threshold``; the likely
    patterns have at most ``radius`` minus signs. With B of these the loss of everything that a
    client ever reports is exactly ln(1 + p 2^k / ((1 - p) B)), and the gap p C(k-1, radius) / B;
    the radius maximises it, and no exchangeable law of the same loss has a larger gap. Where
    epsilon0 is above 44.4 + k ln 2 the law no longer changes. Ours,
    docs/results/monitoring-laws.md, after the idea of FutureRand (Ohrimenko, Wirth, Wu,
    arXiv:2112.12279).
    """

    name: ClassVar[str] = "predrawn-signs"

    max_changes: int  # k, in [1, 62]
    # Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
    # loss of the law that is drawn, rounded up, which is at most that.
    epsilon0: float
    radius: int = field(init=False, repr=False)
    coin_threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = require_at_least("max_changes", self.max_changes, 1)
        if k > LARGEST_NUM_SIGNS:
            raise ParameterError(
                f"max_changes = {k} is above {LARGEST_NUM_SIGNS}, the most signs that a client can "
                'draw at once: follow fewer changes, or use protocol = "sampled-change"'
            )
        asked = require_non_negative("epsilon0", self.epsilon0)
        extra = max(exp_lower(asked) - 1, Fraction(0))  # of the densities' ratio, above 1
        coins = [_coin_threshold(k, radius, extra) for radius in range(k)]
        gaps = [_gap(k, radius, coin) for radius, coin in enumerate(coins)]
        radius = gaps.index(max(gaps))
        set_field = partial(object.__setattr__, self)
        set_field("max_changes", k)
        set_field("radius", radius)
        set_field("coin_threshold", coins[radius])
        set_field("epsilon0", log_ratio_upper(self.signs.loss_ratio))

    @property
    def signs(self) -> ExchangeableSigns:
        """The exact law of the pattern of signs."""
        numbers = self.max_changes, self.radius, self.coin_threshold
        return ExchangeableSigns(weights=_weights(*numbers))

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
        """Return what the accountant needs."""
        signs = self.signs
        return MonitoringProfile(
            protocol=self.name, epsilon0=self.epsilon0, max_changes=self.max_changes,
            num_levels=num_levels, sign_correlations=signs.correlations,
            uniform_share=signs.least_density, alternating=alternating,
        )  # fmt: skip

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the pattern of each client: bit j - 1 is set if sign j is minus."""
        k = self.max_changes
        likely = np.flatnonzero(entropy.words(size) < np.uint64(self.coin_threshold))
        patterns = entropy.words(size) >> np.uint64(64 - k)
        ranks = draw_below(entropy, likely.size, _ball_size(k, self.radius))
        patterns[likely] = ball_patterns(ranks, k, self.radius)
        return patterns


def _ball_size(k: int, radius: int) -> int:
    """Return B, the number of patterns with at most ``radius`` minus signs."""
    return sum(comb(k, i) for i in range(radius + 1))


def _coin_threshold(k: int, radius: int, extra: Fraction) -> int:
    """Return the largest T below 2^64 with p 2^k / ((1 - p) B) <= extra, p = T / 2^64."""
    odds = extra * _ball_size(k, radius) / (1 << k)
    return floor(WORD_VALUES * odds / (1 + odds))


def _gap(k: int, radius: int, coin_threshold: int) -> Fraction:
    """Return the mean of a sign: in the ball it is C(k-1, tau) / B, among all patterns 0."""
    share = Fraction(comb(k - 1, radius), _ball_size(k, radius))
    return Fraction(coin_threshold, WORD_VALUES) * share


def _weights(k: int, radius: int, coin_threshold: int) -> tuple[int, ...]:
    """Return whole numbers proportional to the probability of a pattern with i minus signs."""
    other = (WORD_VALUES - coin_threshold) * _ball_size(k, radius)
    likely = other + (coin_threshold << k)
    return tuple(likely if i <= radius else other for i in range(k + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledChange:
    """The client of Erlingsson et al.: one change out of k is reported, by randomized response."""

    name: ClassVar[str] = "sampled-change"

    max_changes: int  # k, at least 1
    # Local privacy loss asked for, in nats, in [0, inf). The attribute of the same name is the
    # loss of the law that is drawn, rounded up, which is at most that.
    epsilon0: float
    flip_threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        max_changes = require_at_least("max_changes", self.max_changes, 1)
        asked = require_non_negative("epsilon0", self.epsilon0)
        threshold, epsilon0 = settle(asked, threshold_for=flip_threshold, loss_of=_loss)
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
        """Return what the accountant needs."""
        return MonitoringProfile(
            protocol=self.name, epsilon0=self.epsilon0, max_changes=self.max_changes,
            num_levels=num_levels, sign_correlations=(Fraction(1), self.exact_gap),
            uniform_share=Fraction(2 * self.flip_threshold, WORD_VALUES), alternating=alternating,
        )  # fmt: skip

    def draw_keys(self, entropy: Entropy, size: int) -> NDArray[np.uint64]:
        """Return the number of the change that counts for each client, uniform on 1 ... k."""
        return draw_below(entropy, size, self.max_changes) + np.uint64(1)


def _loss(threshold: int) -> float:
    """Return the exact loss of a threshold, rounded up."""
    return log_ratio_upper(Fraction(WORD_VALUES - threshold, threshold))


#: How a client hides its changes at the level that it drew.
SignLaw: TypeAlias = PredrawnSigns | SampledChange

#: Laws of the signs by name, the default first; each takes ``max_changes`` and ``epsilon0``.
SIGN_LAWS: Mapping[str, Callable[..., SignLaw]] = MappingProxyType(
    {each.name: each for each in (PredrawnSigns, SampledChange)}
)


def sign_law(name: str, *, max_changes: SupportsIndex, epsilon0: float) -> SignLaw:
    """Return the law of the signs of that name."""
    if name not in SIGN_LAWS:
        raise ParameterError(f"protocol = {name!r} is not one of {', '.join(SIGN_LAWS)}")
    return SIGN_LAWS[name](max_changes=max_changes, epsilon0=epsilon0)
