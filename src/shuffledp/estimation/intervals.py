"""Standard errors and confidence intervals of a frequency seen through a randomizer.

One report supports a category with probability p if it is its user's true value and q if not, and
users randomize independently. Among n users of whom a share f has the value, the support c then
has mean n (q + f (p - q)) and variance n V(f), V(f) = f p (1 - p) + (1 - f) q (1 - q), *given who
the users are*. This conditional variance is exact, and is the relevant one if the question is
about the people who answered. If they are themselves a random sample and the question is about the
population, sampling adds f (1 - f) / n to the variance of the estimate, so that
V(f) / (n (p - q)^2) becomes s (1 - s) / (n (p - q)^2), s = q + f (p - q).

Dummies add to the support, independently: `KnownTotal` is the law of their number in a category,
given their total number, which is public. It need not look normal however many reports there are.

`SupportLaw`'s intervals are about the people who answered; `with_sampling` widens them.
"""

import math
from dataclasses import fields
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_open_unit, set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import read_only
from shuffledp.core.shown import Frames

# A support's law counts as normal at the quantile z if a tail differs by less than a twentieth of
# itself, skewness / 6 times z^3 and excess kurtosis / 24 times z^4 together (Edgeworth). For coins,
# whose skewness is at most one over the deviation, the deviation has to be this times z^3.
_NORMAL_FROM = 3.3

# A support is a whole number: below this deviation, times exp(-z^2 / 2), a step of it changes a
# tail by more than 0.003. This decides for confidences below 0.94.
_FINE_FROM = 1.0 / (0.003 * math.sqrt(2.0 * math.pi))

# Binomial laws are cut this many deviations, plus this many outcomes, from the mode: below 1e-20.
_REACH = 10.0
_LEAST_REACH = 50

# A number of dummies whose probability times its deviation is below this counts as an error.
_LEAST_LIKELY = 1e-12

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


class Arrays(Frames):
    """Estimates with array fields, which it makes read-only, and properties of all estimates."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    num_users: int

    def __post_init__(self) -> None:
        lower, upper = self._population_interval()
        set_fields(self, population_lower=lower, population_upper=upper)
        for name, values in Arrays.columns(self).items():
            set_fields(self, **{name: read_only(values)})

    def _population_interval(self) -> Interval:
        """Return intervals for a population that the users are a random sample of."""
        raise NotImplementedError

    def for_all_users(self, num_users: int) -> Self:
        """Return estimates about all users, made from the reports of a random sample of them.

        If holders hand in one report each, m of the n users' reports are seen, and the selection
        is independent of the values. A share among the m is unbiased for the share f among all n,
        and has the sampling variance f (1 - f) / m * (n - m) / (n - 1), for m drawn without
        replacement. The randomizers' own errors are added, and are independent of it. For means,
        values with the variance S^2 (divisor n - 1) have the sampling variance
        S^2 (1 / m - 1 / n). If all n are themselves a random sample of a population, so are the m:
        the standard errors for the population do not change. See `with_sampling`, too.
        """
        number = require_at_least("num_users", num_users, 1)
        if number < self.num_users:
            raise ParameterError(
                f"num_users = {number} is below the number of reports, {self.num_users}: count "
                "everybody"
            )
        return self if number == self.num_users else self._among(number)

    def _among(self, num_users: int) -> Self:
        """Return the estimates about more users than were seen."""
        raise NotImplementedError

    @property
    def quantile(self: Any) -> float:
        """Half width of a normal interval in standard errors."""
        size = self.standard_error.size if self.is_simultaneous else 1
        return normal_quantile(simultaneous_confidence(self.confidence, size))

    @property
    def root_mean_square_error(self: Any) -> float:
        """Root mean square of the standard errors about these users."""
        squares = self.standard_error**2
        return float(squares.mean() ** 0.5) if squares.size else 0.0

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays by name, in the order of a table."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: each for name, each in values.items() if isinstance(each, np.ndarray)}

    def given(self) -> dict[str, NDArray[np.float64]]:
        """Return by name the arrays from which the other arrays follow."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return {name: each for name, each in values.items() if isinstance(each, np.ndarray)}


class KnownTotal(NamedTuple):
    """Law of one category's dummies, given the total number over all categories.

    ``at_most`` holds Pr[Z < first], Pr[Z < first + 1], ... and 1; ``third`` and ``fourth`` bound
    the sizes of cumulants. ``mean_variance`` is the mean of ``variance`` over the total number.
    """

    mean: float = 0.0
    variance: float = 0.0
    mean_variance: float = 0.0
    third: float = 0.0
    fourth: float = 0.0
    first: int = 0
    at_most: NDArray[np.float64] = np.array([0.0, 1.0])

    @classmethod
    def of(cls, laws: tuple[DummyLaw, ...], num_dummies: int, num_bins: int) -> "KnownTotal":
        """Return the law of a sum of these laws given its total over the categories.

        For Poisson laws it is binomial, whatever their means. For tables it is proportional to
        z(i) times Pr[the other bins have the rest]; round-off is below 1e-12 of the largest.

        Raises
        ------
        DataError
            If the total number has negligible probability.
        """
        if not laws:
            return cls()
        spread = sum(law.variance for law in laws) * num_bins
        if laws[0].sender == "users":
            first, law = binomial_law(num_dummies, 1.0 / num_bins)
        else:
            first, law = 0, _given_total(laws, num_dummies, num_bins, spread)
        if not law.sum() * max(math.sqrt(spread), 1.0) >= _LEAST_LIKELY:
            raise DataError(
                f"num_dummies = {num_dummies} cannot be: the laws {', '.join(map(str, laws))} give "
                f"{num_bins} categories {num_bins * sum(each.mean for each in laws):g} -/+ "
                f"{math.sqrt(spread):.4g}; check num_users, the reports without the dummies"
            )
        law = law / law.sum()
        mean = num_dummies / num_bins
        away = first + np.arange(law.size) - mean
        variance, third, fourth = (float(law @ away**power) for power in (2, 3, 4))
        return cls(
            mean=mean,
            variance=variance,
            mean_variance=spread * (1.0 - 1.0 / num_bins) / num_bins,
            # Counts are whole: a narrower law counts as normal no sooner than a sum of coins does.
            third=max(variance, abs(third)),
            fourth=abs(fourth - 3.0 * variance**2),
            first=first,
            at_most=np.concatenate([[0.0], np.cumsum(law)]),
        )


def _given_total(
    laws: tuple[DummyLaw, ...], num_dummies: int, num_bins: int, spread: float
) -> NDArray[np.float64]:
    """Return the joint probabilities of 0, 1, ... dummies in a bin and of ``num_dummies`` in all.

    The tables are symmetric, so that their transforms are real. Probabilities farther out than the
    length of the circle, at least ten deviations, come back as round-off.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    half = sum(law.half_width for law in laws)
    reach = math.ceil(_REACH * math.sqrt(spread)) + _LEAST_REACH
    size = next_fast_len(min(2 * half * num_bins, 2 * (half + reach)) + 1, real=True)
    transform = np.ones(size // 2 + 1)
    for law in laws:
        table = np.zeros(size)
        table[: 2 * law.half_width + 1] = np.array(law.table, dtype=np.float64) / 2.0**64
        transform = transform * rfft(np.roll(table, -law.half_width)).real
    away = np.arange(-half, half + 1)
    rest = num_dummies - num_bins * half - away
    is_far = np.abs(rest) > size // 2
    own, others = irfft(transform, size), irfft(transform ** (num_bins - 1), size)
    joint = np.where(is_far, 0.0, own[away] * others[np.where(is_far, 0, rest)])
    return np.maximum(joint, 0.0)


class SupportLaw(NamedTuple):
    """Law of a support, Bin(h, p) + Bin(n m - h, q) for h holders among n users, m slots each.

    Each of the ``num_slots`` slots of a report may support the category; the true value is in at
    most one of them, and the others add noise alone. Dummies are added to that.
    """

    p: float
    q: float
    num_users: int
    num_slots: int = 1
    dummies: KnownTotal = KnownTotal()

    def standard_error(self, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard error sqrt(V(f) / n) / (p - q) of the unbiased frequency.

        Dummies of variance v a bin add v (1 - 1 / k) / n to V(f): their total number is known, and
        is averaged over here.

        Frequencies are clipped to [0, 1] here, and only here: V(f) of an impossible f could be
        negative. Source: Wang, Blocki, Li, Jha, USENIX Security 2017, Eq. (2), for fixed users.
        """
        variance = self._variance(np.clip(frequency, 0.0, 1.0), self.num_slots)
        variance = variance + self.dummies.mean_variance / self.num_users
        result: NDArray[np.float64] = np.sqrt(variance / self.num_users) / (self.p - self.q)
        return result

    def wilson_interval(self, frequency: NDArray[np.float64], confidence: float) -> Interval:
        """Return every f that the support does not contradict, by its variance or its exact law.

        The two roots f of abs(estimate - f) (p - q) = z sqrt(V(f) / n), each moved outwards where
        the exact law of the support does not exclude the shares beyond. They are not clipped to
        [0, 1], so that the interval keeps its width as a measure of noise, also around an estimate
        below zero.

        Source: Wilson 1927, for V(f) in place of the binomial variance. V is linear in f,
        V(f) = V(0) + g f, so that with a = z^2 / (n (p - q)^2) the condition is the quadratic
        f^2 - (2 e + a g) f + e^2 - a V(0) <= 0 for the estimate e. A quarter of its discriminant is
        a V(e) + (a g / 2)^2, with V continued linearly; it is not negative, since V(e) >= 0 at the
        ends c = 0, where it is p q, and c = n, where it is (1 - p) (1 - q).

        The support's law is skewed where its standard deviation at a root is below 3.3 z^3: there
        its tails can differ from the normal law's by a twentieth and more. (For k-ary randomized
        response with k = 1000, epsilon0 = 2 and 100 users, roots alone hold the share of a category
        that nobody has with probability 0.905 for a nominal 0.95.) Then the exact law decides, and
        so it does where single counts matter to a tail: a sum of two binomials, which rises with h.
        So if the first count beyond a root is excluded by its tail, (1 - confidence) / 2, all
        beyond are; if not, the end moves to the last count that is not. No end ever moves inwards.
        With dummies V(0) rises by the variance of `KnownTotal` over n, and the exact law is the sum
        of all three.
        """
        p, q = self.p, self.q
        slope = p * (1.0 - p) - q * (1.0 - q)
        scale = normal_quantile(confidence) ** 2 / (self.num_users * (p - q) ** 2)
        centre = frequency + 0.5 * scale * slope
        # Round-off alone can take the variance below zero, by 1e-17 where p is 1 to all digits.
        variance = np.maximum(self.num_slots * (q * (1.0 - q)) + slope * frequency, 0.0)
        variance = variance + self.dummies.variance / self.num_users
        margin = np.sqrt(scale * variance + (0.5 * scale * slope) ** 2)
        support = self._support(frequency)
        return (
            self._moved_out(centre - margin, support, confidence, -1),
            self._moved_out(centre + margin, support, confidence, 1),
        )

    def _support(self, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the supports, whole numbers, from which unbiased frequencies were computed."""
        mean = self.num_users * (self.num_slots * self.q + frequency * (self.p - self.q))
        most = self.dummies.first + self.dummies.at_most.size - 2
        return np.clip(
            np.rint(mean + self.dummies.mean), 0.0, float(self.num_users) * self.num_slots + most
        )

    def _variance(self, holders: NDArray[np.float64], trials: int) -> NDArray[np.float64]:
        """Return the variance of a support, or its n-th part if both numbers are divided by n."""
        of_holders, of_others = self.p * (1.0 - self.p), self.q * (1.0 - self.q)
        variance: NDArray[np.float64] = holders * of_holders + (trials - holders) * of_others
        return variance

    def _moved_out(
        self, end: NDArray[np.float64], support: NDArray[np.float64], confidence: float, way: int
    ) -> NDArray[np.float64]:
        """Return lower (``way`` = -1) or upper ends, moved outwards if the exact law needs it."""
        limit = self.num_users if way > 0 else 0
        # First count of holders outside the end; below 0 and above n there is none.
        beyond = way * (np.floor(way * (end * float(self.num_users))) + 1.0)
        first = np.clip(beyond, 0.0, float(self.num_users))
        z, coins = (
            normal_quantile(confidence),
            self._variance(first, self.num_users * self.num_slots),
        )
        variance = coins + self.dummies.variance
        skewed = z**3 * (coins + self.dummies.third) * np.sqrt(variance)
        is_skewed = variance**2 <= _NORMAL_FROM * (skewed + 0.25 * z**4 * self.dummies.fourth)
        is_skewed |= variance <= (_FINE_FROM * math.exp(-0.5 * z**2)) ** 2
        moved = end.copy()
        found: dict[int, float | None] = {}
        for index in np.flatnonzero((way * beyond <= way * limit) & is_skewed).tolist():
            count = int(support[index])
            if count not in found:
                found[count] = self._end(int(first[index]), count, 0.5 * (1.0 - confidence), way)
            if (share := found[count]) is not None:
                moved[index] = share
        return moved

    def _end(self, first: int, support: int, tail: float, way: int) -> float | None:
        """Return the farthest share that the support does not exclude, or None.

        ``first`` is the first count of holders to try; tails fall with the distance.
        """

        def is_excluded(holders: int) -> bool:
            return self.tail(holders, support, is_lower=way < 0) <= tail

        if is_excluded(first):
            return None
        kept, step = first, 1
        while 0 <= (trial := kept + way * step) <= self.num_users and not is_excluded(trial):
            kept, step = trial, 2 * step
        # One beyond the last possible count is excluded without a test.
        excluded = min(max(trial, -1), self.num_users + 1)
        while abs(excluded - kept) > 1:
            middle = (excluded + kept) // 2
            kept, excluded = (kept, middle) if is_excluded(middle) else (middle, excluded)
        return kept / self.num_users

    def tail(self, holders: int, support: int, *, is_lower: bool) -> float:
        """Return Pr[S >= support] for a lower end, Pr[S <= support] for an upper one.

        Round-off and omitted terms are below 1e-12 of the largest probability.
        """
        start, law = binomial_law(holders, self.p)
        base, other = binomial_law(self.num_users * self.num_slots - holders, self.q)
        if self.dummies.mean:
            start, law = start + base, np.convolve(law, other)
            base, at_most = self.dummies.first, self.dummies.at_most
        else:
            at_most = np.concatenate([[0.0], np.cumsum(other)])  # Pr[other < base + i]
        wanted = support - start - np.arange(law.size)  # needed from the others
        below = np.clip(wanted - base + (0 if is_lower else 1), 0, at_most.size - 1)
        chance = float(law @ at_most[below])
        return 1.0 - chance if is_lower else chance


def steps_outwards(quantile: float) -> float:
    """Return by how many steps an end moves outwards, for estimates that move in steps.

    By half a step (continuity), or if that is more by (z^2 - 1) / 6 for skewness (Cornish-Fisher):
    the third cumulant of a sum of independent steps is at most the largest one times the variance.
    A Poisson law of any mean is then missed at most 1.1 times as often as nominal, for confidences
    from 0.6 up.
    """
    return max(0.5, (quantile**2 - 1.0) / 6.0)


class ShareLaw(NamedTuple):
    """Errors of unbiased estimates of shares, whose variance at the true share is a quadratic.

    If f is the share, the variance about a population is constant + linear f + square f^2, with
    square <= 0. ``step`` is the largest change of the estimate by one report.
    """

    value: NDArray[np.float64]
    constant: NDArray[np.float64]
    linear: NDArray[np.float64]
    square: NDArray[np.float64]
    step: NDArray[np.float64]

    def among(self, num_users: int | None) -> "ShareLaw":
        """Return the law about n users, without their sampling; None is a population."""
        if num_users is None:
            return self
        less = (self.step > 0.0) / num_users  # nothing if the share is known
        return self._replace(linear=self.linear - less, square=self.square + less)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Standard errors at the estimates."""
        return np.asarray(np.sqrt(self.variance(self.value)))

    def variance(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variances if these are the shares, clipped to [0, 1] here only."""
        inside = np.clip(share, 0.0, 1.0)
        return np.maximum(self.constant + inside * (self.linear + inside * self.square), 0.0)

    def interval(self, quantile: float) -> Interval:
        """Return every f that the estimate does not contradict, by the variance at f.

        As Wilson's, but with ends moved outwards by `steps_outwards`.
        """
        shift = steps_outwards(quantile) * self.step
        curvature = 1.0 - quantile**2 * self.square
        ends = []
        for way in (-1.0, 1.0):
            centre = self.value + way * shift
            middle = centre + 0.5 * quantile**2 * self.linear
            inner = middle**2 - curvature * (centre**2 - quantile**2 * self.constant)
            root = (middle + way * np.sqrt(np.maximum(inner, 0.0))) / curvature
            end = way * np.maximum(way * root, way * centre)
            beyond = centre + way * quantile * np.sqrt(self.variance(end))  # below 0 or above 1
            ends.append(np.where((end < 0.0) | (end > 1.0), beyond, end))
        return ends[0], ends[1]


def binomial_law(count: int, p: float) -> tuple[int, NDArray[np.float64]]:
    """Return the first outcome that is not negligible, and the probabilities from there."""
    if p <= 0.0 or p >= 1.0 or count == 0:
        return (count if p >= 1.0 else 0), np.ones(1)
    mode = min(int((count + 1) * p), count)
    reach = math.ceil(_REACH * math.sqrt(count * p * (1.0 - p))) + _LEAST_REACH
    first, last = max(mode - reach, 0), min(mode + reach, count)
    odds = p / (1.0 - p)
    up = np.arange(mode, last, dtype=np.float64)
    down = np.arange(mode, first, -1, dtype=np.float64)
    above = np.cumprod((count - up) / (up + 1.0) * odds)
    below = np.cumprod(down / (count - down + 1.0) / odds)
    law = np.concatenate([below[::-1], [1.0], above])
    return first, law / law.sum()


def with_sampling(interval: Interval, scale: float) -> Interval:
    """Return intervals of shares f widened for sampling, of variance f (1 - f) times a unit.

    ``scale`` is that unit times the squared quantile. Errors are independent, so squares of half
    widths add. It errs on the wide side: f (1 - f) is the largest in the interval, or near enough
    that a sample need not show the difference, since a share below the scale may have no effect on
    it (Wilson's interval for a count of zero ends there).
    """
    lower, upper = interval
    worst = np.clip(np.clip(0.5, lower - scale, upper + scale), 0.0, 1.0)  # nearest to one half
    centre = 0.5 * (lower + upper)
    half_width = np.sqrt((0.5 * (upper - lower)) ** 2 + scale * worst * (1.0 - worst))
    return centre - half_width, centre + half_width


def normal_quantile(confidence: float) -> float:
    """Return z such that a standard normal lies in [-z, z] with probability ``confidence``."""
    require_open_unit("confidence", confidence)
    # From the lower tail, exact for confidences near 1, where 0.5 + confidence / 2 may round to 1.
    quantile = -NormalDist().inv_cdf(0.5 * (1.0 - confidence))
    return math.fabs(quantile)


def simultaneous_confidence(confidence: float, num_intervals: int) -> float:
    """Return the confidence of each interval for which all of them hold with ``confidence``.

    Bonferroni's inequality, valid for any dependence of the estimates. It uses quantiles far in the
    tail, where the law of the support of a rare category is not normal; there
    `SupportLaw.wilson_interval` uses the exact law.
    """
    alpha = 1.0 - require_open_unit("confidence", confidence)
    return confidence if num_intervals == 1 else 1.0 - alpha / num_intervals
