"""Upper bounds on lower tails of a sum N of independent coins with different probabilities.

*Chernoff.* For every s > 0, Pr[N <= c] <= e^(s c) E[e^(-s N)], and E[e^(-s N)] is at most the
product of 1 - p_i + p_i e^(-s): equal for independent coins, at most that for negatively associated
ones, such as the indicators of empty places (or of occupied ones) when balls fall independently
(Joag-Dev and Proschan 1983, "Negative association of random variables, with applications",
Sections 2 and 3; Dubhashi and Ranjan 1998, "Balls and bins: a study in negative dependence",
Section 2). Any s is safe, so s need not be found exactly: a few Newton steps suffice.

*The law itself*, for independent coins only. Up to 2048 coins it is added up coin by coin: nothing
cancels, so all of it is good to a relative error. More coins are cut into blocks of 64, and the
laws of the blocks are convolved in pairs by FFT. With u the unit round-off, a transform of M points
is off by at most theta = 8 u log2(M) of its l2 norm (Higham 2002, "Accuracy and Stability of
Numerical Algorithms", Theorem 24.2, has less than 7). Let a and b be laws. Transforms have l2 norm
sqrt(M) times that of the law, and no entry above 1, so the product of the two is off by at most
sqrt(M) theta (||a|| + ||b||) and the result, after the inverse transform, by theta (||a|| + ||b|| +
||a * b||) in the l2 norm, up to terms of a smaller order. ||a * b|| is at most the larger of the
other two. The l1 norm is at most sqrt(M) times that: 4 sqrt(M) theta max(||a||, ||b||), with room,
is charged for each pair, and the errors of the parts are added. It bounds the error of every tail.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.arrays import Floats
from shuffledp.core.errors import ParameterError

_ULP = math.ulp(1.0)

# Relative error of a sum of logarithms, each good to some ulps and all of one sign.
_LOG_ERROR = 64.0 * _ULP

# Coins whose law is added up one by one, and per block where there are more.
_MOST_ONE_BY_ONE = 2048
_BLOCK = 64

# More coins than this are grouped for Chernoff's bound, those whose chances of the rarer side agree
# to one part in a thousand: the least chance of a group stands for all, which errs upwards.
_MOST_APART = 1 << 14
_GROUPS_PER_FACTOR_OF_TWO = 1024.0

# Beyond this the law costs more than it gains on Chernoff's bound.
_MOST_BY_LAW = 1 << 16

# Round-off of a transform of M points relative to the l2 norm: this times log2(M).
_TRANSFORM_ERROR = 4.0 * _ULP

# Masses below it lose digits.
_SMALLEST = 1e-300

# Where N spreads wider, the tail at a whole number is close to the target that chose it.
_WIDE = 30.0

# A tilt need not be found exactly; a part in a thousand costs a part in a million of the exponent.
_LARGEST_TILT = 700.0
_STEEPEST_START = 30.0
_TILT_ACCURACY = 1e-3
_MOST_STEPS = 60


def _split(probabilities: ArrayLike) -> tuple[int, Floats]:
    """Return the number of coins with probability 1, and the other probabilities."""
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 1:
        raise ParameterError(f"probabilities have {values.ndim} dimensions: give a flat list")
    if not np.all((values >= 0.0) & (values <= 1.0)):  # NaN fails
        raise ParameterError("probabilities have an entry outside [0, 1]: clip or correct them")
    sure = int(np.count_nonzero(values == 1.0))
    return sure, values[(values > 0.0) & (values < 1.0)]


class _Coins(NamedTuple):
    """Chances in (0, 1), and the number of coins with each."""

    chances: Floats
    counts: Floats

    def total(self, values: Floats) -> float:
        """Return the sum over all coins of a value for each chance."""
        return float((self.counts * values).sum())

    @property
    def variance(self) -> float:
        """Variance of the number of coins that show one."""
        return self.total(self.chances * (1.0 - self.chances))


def _coins(doubtful: Floats) -> _Coins:
    """Return the coins, grouped if they are many."""
    if len(doubtful) <= _MOST_APART:
        return _Coins(doubtful, np.ones(len(doubtful)))
    chances = np.sort(doubtful)
    low = chances < 0.5
    scale = np.where(low, np.log2(chances), -np.log2(1.0 - chances))
    keys = np.floor(_GROUPS_PER_FACTOR_OF_TWO * scale)
    firsts = np.flatnonzero(np.diff(keys, prepend=-np.inf))
    return _Coins(chances[firsts], np.diff(firsts, append=len(chances)).astype(np.float64))


def _log_moment(coins: _Coins, tilt: float) -> tuple[float, float, float]:
    """Return ln E[e^(-s N)], rounded up, with mean and variance of the tilted law."""
    gone = -math.expm1(-tilt) * coins.chances
    # Near 1 the logarithm of the remainder needs 1 - p itself, near 0 log1p.
    left = (1.0 - coins.chances) + coins.chances * math.exp(-tilt)
    logs = np.where(gone < 0.5, np.log1p(-np.minimum(gone, 0.5)), np.log(left))
    tilted = coins.chances * math.exp(-tilt) / left
    value = coins.total(logs) * (1.0 - _LOG_ERROR)
    return value, coins.total(tilted), coins.total(tilted * (1.0 - tilted))


def _find_tilt(
    coins: _Coins,
    start: float,
    residual: Callable[..., tuple[float, float]],
) -> float:
    """Return the approximate zero of an increasing function of the tilt, by Newton's method.

    ``residual`` takes the tilt and the three numbers of `_log_moment` to the value and its slope.
    """
    low, high, tilt = 0.0, _LARGEST_TILT, start
    for _ in range(_MOST_STEPS):
        value, slope = residual(tilt, *_log_moment(coins, tilt))
        low, high = (low, tilt) if value > 0.0 else (tilt, high)
        step = tilt - value / max(slope, _SMALLEST)
        if not low < step < high:
            step = min(2.0 * low + start, 0.5 * (low + high))
        if abs(step - tilt) <= _TILT_ACCURACY * tilt:
            break
        tilt = step
    return tilt


def lower_tail(coins: _Coins, count: int) -> float:
    """Return Chernoff's bound on Pr[N <= count] for coins with probabilities in (0, 1)."""
    if count < 0:
        return 0.0
    mean = coins.total(coins.chances)
    if count >= mean * (1.0 - _LOG_ERROR):
        return 1.0
    if count == 0:
        return _exponential(coins.total(np.log1p(-coins.chances)) * (1.0 - _LOG_ERROR))
    start = min((mean - count) / coins.variance, _STEEPEST_START)
    tilt = _find_tilt(coins, start, lambda _, __, tilted, variance: (count - tilted, variance))
    return _exponential(tilt * count * (1.0 + 4.0 * _ULP) + _log_moment(coins, tilt)[0])


def _exponential(log_bound: float) -> float:
    """Return e^x, rounded up, at most 1; never 0."""
    return min(math.exp(min(max(log_bound, -690.0), 0.0)) * (1.0 + 16.0 * _ULP), 1.0)


def _one_by_one(chances: Floats) -> Floats:
    """Return the laws of the rows' sums, shape (rows, coins + 1), coin by coin."""
    rows, coins = chances.shape
    laws = np.zeros((rows, coins + 1))
    laws[:, 0] = 1.0
    for i in range(coins):
        chance = chances[:, i : i + 1]
        grown = laws[:, : i + 1] * chance
        laws[:, : i + 1] *= 1.0 - chance
        laws[:, 1 : i + 2] += grown
    return laws


def poisson_binomial_law(chances: Floats) -> tuple[Floats, float]:
    """Return the law of N for independent coins, with a bound on the error of its tails.

    The bound is relative for few coins. Many are joined by FFT of pairs of blocks.
    """
    if len(chances) <= _MOST_ONE_BY_ONE:
        return _one_by_one(chances[None, :])[0], 4.0 * _ULP * (len(chances) + 1)
    num_blocks = 1 << math.ceil(math.log2(len(chances) / _BLOCK))
    padded = np.pad(chances, (0, num_blocks * _BLOCK - len(chances)))
    laws = _one_by_one(padded.reshape(num_blocks, _BLOCK))
    errors = np.full(num_blocks, 4.0 * _ULP * (_BLOCK + 1))
    while len(laws) > 1:
        width = laws.shape[1]
        points = 2 * (width - 1)  # a power of two; the last mass, of all ones, would wrap around
        norms = np.sqrt((laws**2).sum(axis=1))
        transforms = np.fft.rfft(laws, 2 * points, axis=1)
        joined = np.fft.irfft(transforms[0::2] * transforms[1::2], 2 * points, axis=1)
        laws = np.maximum(joined[:, : points + 1], 0.0)  # a negative mass is off by more than zero
        theta = _TRANSFORM_ERROR * math.log2(2 * points)
        largest = np.maximum(norms[0::2], norms[1::2])
        added = 4.0 * math.sqrt(2 * points) * theta * largest
        errors = 1.01 * (errors[0::2] + errors[1::2]) + added
    return laws[0, : len(chances) + 1], float(errors[0])


def _tails_by_law(doubtful: Floats) -> Floats:
    """Return upper bounds of Pr[N <= c] for c = 0 ... n, increasing."""
    masses, error = poisson_binomial_law(doubtful)
    adding = 1.0 + (len(masses) + 8.0) * _ULP
    tails = np.cumsum(masses) * adding
    if len(doubtful) <= _MOST_ONE_BY_ONE:
        tails = tails * (1.0 + error) + _SMALLEST
    else:
        tails += error
    return np.minimum(tails, 1.0)


def survival_levels(
    probabilities: ArrayLike, targets: Sequence[float], *, independent: bool = True
) -> list[tuple[int, float]]:
    """Return, for each target, a count that N falls short of with at most that probability.

    Errs towards smaller counts, and upwards in the bound.
    """
    sure, doubtful = _split(probabilities)
    for target in targets:
        if not 0.0 < target < 1.0:
            raise ParameterError(f"targets = {target} is not in (0, 1): give a tail probability")
    if len(doubtful) == 0:
        return [(sure, 0.0) for _ in targets]
    by_law = independent and len(doubtful) <= _MOST_BY_LAW
    tails = _tails_by_law(doubtful) if by_law else np.empty(0)
    coins = _coins(doubtful)
    if independent:
        all_show = coins.total(np.log(coins.chances)) * (1.0 + _LOG_ERROR)
        fails = min(-math.expm1(all_show) * (1.0 + 4.0 * _ULP), 1.0)
    else:
        # Union bound over the coins, whatever their dependence.
        fails = min(coins.total(1.0 - coins.chances) * (1.0 + _LOG_ERROR), 1.0)
    none_shows = coins.total(np.log1p(-coins.chances)) * (1.0 - _LOG_ERROR)
    levels = []
    for target in targets:
        count, miss = 0, 0.0
        if fails <= target:
            count, miss = len(doubtful), fails
        elif none_shows < math.log(target):
            count, miss = _chernoff_level(coins, len(doubtful), target)
        reached = int(np.searchsorted(tails, target, side="right"))
        if by_law and reached >= max(count, 1):
            count = min(reached, len(doubtful))
            miss = float(tails[count - 1])
        levels.append((sure + count, miss))
    return levels


def _chernoff_level(coins: _Coins, num_coins: int, target: float) -> tuple[int, float]:
    """Return the largest count with Pr[N < count] <= target by Chernoff's bound, and that bound."""
    log_target = math.log(target)
    spread = math.sqrt(coins.variance)
    start = min(math.sqrt(-2.0 * log_target) / max(spread, 1e-3), _STEEPEST_START)
    tilt = _find_tilt(
        coins, start, lambda s, log, mean, var: (log_target - log - s * mean, s * var)
    )
    value = _log_moment(coins, tilt)[0]
    # Both terms are known to a few ulps; their difference is rounded down.
    doubt = (abs(log_target) - value) * 8.0 * _ULP
    reached = (log_target - value - doubt) / tilt
    reached -= abs(reached) * 4.0 * _ULP
    count = min(max(math.floor(reached) + 1, 0), num_coins)
    if spread > _WIDE:
        return count, target
    return count, min(target, lower_tail(coins, count - 1))


def binomial_level(number: int, chance: float, target: float) -> int:
    """Return a count that Bin(number, chance) falls short of with at most a chance < 1; O(1)."""
    if chance == 1.0:
        return number
    coins = _Coins(np.array([chance]), np.array([float(number)]))
    none_shows = coins.total(np.log1p(-coins.chances)) * (1.0 - _LOG_ERROR)
    return _chernoff_level(coins, number, target)[0] if none_shows < math.log(target) else 0
