"""Means of groups whose sizes are estimated too: ratios of two totals, with Fieller's intervals.

A number at the position x of its range counts as x "ones" and 1 - x "zeros" of its group, so that
a group has the mean position r = ones / (ones + zeros). Of estimated shares T(r) = (1 - r) ones - r
zeros has mean 0 at the true r, whatever the size of the group; all r whose T(r) lies within z
standard errors of 0 form Fieller's interval (1954). For next to empty groups that is every r.

With dummies each bit of B, of weight w_b, is a message (group, bit), and totals add with these
weights. A level's dummies of variance v_b add v_b (1 - 1/k)/(n (p - q))^2 to each total and -v_b/k
over the same to their covariance: for v_b proportional to 1/w_b these weights have least error.
Rounding counts as h/(4 n (2^B - 1)^2), and h r (1 - r)/n is added for a population only.

With (group, end) sent by k-RR of 2 g answers (p, q), d = p (1 - p) - q (1 - q), t = r (1 - r) and
the share h of the group,

    n Var T(r) = (q (1 - q) - 2 t q (1 - 2 q) + h t (d + 2 q (p - q)))/(p - q)^2 + h t,
    n Var h^ = (2 q (1 - 2 q) + h (d - 2 q (p - q)))/(p - q)^2,

h t being rounding and the spread of members' values together. T(r) and T(r') of two groups have the
covariance -(1 - 2 r)(1 - 2 r') q^2/(n (p - q)^2).
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.errors import ParameterError
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import (
    Interval,
    SupportLaw,
    normal_quantile,
    simultaneous_confidence,
    steps_outwards,
)
from shuffledp.estimation.means import MeanEstimates


class GroupNoise(NamedTuple):
    """Variances of the estimates from all users, for a group with the share h of them.

    ``one`` is the variance of each total, ``both`` the covariance of two. Members add h times
    ``fixed`` and h r (1 - r) times ``mixed`` to the variance of T(r), and h times ``size`` to the
    variance of the share. ``step`` is the most that one report changes a total.
    """

    one: float
    both: float
    fixed: float
    mixed: float
    size: float
    step: float = 0.0

    def parts(self, share: Floats) -> tuple[Floats, Floats]:
        """Return the variance of T(r) at r = 0, and its coefficient of r (1 - r)."""
        share = np.clip(share, 0.0, 1.0)
        return self.one + share * self.fixed, share * self.mixed - 2.0 * (self.one + self.both)

    def variance(self, position: Floats, share: Floats) -> Floats:
        """Return the variance of T(r)."""
        fixed, mixed = self.parts(share)
        found: Floats = fixed + position * (1.0 - position) * mixed
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupMeanEstimates(MeanEstimates):
    """Estimates of the mean of each of g groups of estimated sizes; arrays (g,), read-only.

    Parameters
    ----------
    mean : ndarray of float64
        Ratio of two unbiased totals, so that it may lie outside the range. NaN for a group that is
        too small for a statement, whose interval is the whole range.
    standard_error, population_standard_error : ndarray of float64
        By linearisation; half of the range if there is no statement.
    lower, upper, population_lower, population_upper : ndarray of float64
        Fieller's intervals; not clipped. If reports cannot separate noise from the spread of the
        values, both are the intervals for a population, which are wide enough for these users too.
    groups : tuple of str
        Names of the groups.
    sizes : FrequencyEstimates
        Share and number of users in each group.
    limits : (float, float)
        Range of the values.
    noise : (GroupNoise, GroupNoise)
        Noise about these users, and about a population.
    ones : ndarray of float64
        Estimated share of users in each group times its mean position in the range.
    compare : tuple of str
        Two groups whose difference reports and JSON state; empty for none.
    """

    interval: ClassVar[str] = "fieller"

    groups: tuple[str, ...]
    sizes: FrequencyEstimates
    limits: tuple[float, float]
    noise: tuple[GroupNoise, GroupNoise]
    ones: NDArray[np.float64]
    compare: tuple[str, ...] = ()

    @property
    def root_mean_square_error(self) -> float:
        """Root mean square of the standard errors of groups with a statement; of all if none."""
        is_stated = np.logical_not(np.isnan(self.mean))
        return float((self.standard_error[is_stated | ~is_stated.any()] ** 2).mean() ** 0.5)

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays by name, in the order of a table; numbers of members last."""
        found = {name: each for name, each in MeanEstimates.columns(self).items() if name != "ones"}
        sizes, number = self.sizes, self.num_users
        ends = {"members_lower": number * sizes.lower, "members_upper": number * sizes.upper}
        return found | {"members": sizes.count} | ends

    def _population_interval(self) -> Interval:
        ends = _fieller(self.ones, self.sizes.frequency, self.noise[1], self.quantile)
        return _in_range(ends, self.limits)

    def _among(self, num_users: int) -> Self:  # the errors are for a population already
        return replace(self, num_users=num_users, sizes=self.sizes.for_all_users(num_users))

    @property
    def findings(self) -> dict[str, object]:
        """Return the difference of the compared groups, if any."""
        if not self.compare:
            return {}
        value, *own = self.difference(*self.compare)
        _, *population = self.difference(*self.compare, about="population")
        ends = {"difference": value, "respondents": own, "population": population}
        return {"compare": {"groups": list(self.compare), **ends}}

    def difference(
        self, first: str, second: str, *, about: str = "respondents"
    ) -> tuple[float, float, float]:
        """Return the difference of two groups' means, and an interval of the same confidence.

        Parameters
        ----------
        first, second : str
            Two different groups.
        about : {"respondents", "population"}
            Target of the means: the users, or their population.

        Returns
        -------
        (float, float, float)
            Mean of the first less the mean of the second, lower and upper end: the interval of Zou
            and Donner (Statistics in Medicine 2008, "MOVER") from both groups' own intervals and
            their correlation. NaN and the widest interval if a group is too small for a statement.

        Raises
        ------
        ParameterError
            If these are not two different groups.
        """
        pair = list(require_pair((first, second), self.groups))
        low, high = self.limits
        if np.isnan(self.mean[pair]).any():
            return np.nan, low - high, high - low
        noise = self.noise[about == "population"]
        ones, share = self.ones[pair], self.sizes.frequency[pair]
        position = ones / share
        lower, upper = _fieller(ones, share, noise, normal_quantile(self.confidence))
        middle = np.clip(position, 0.0, 1.0)
        deviations = np.sqrt(noise.variance(middle, share))
        correlation = noise.both * np.prod((1.0 - 2.0 * middle) / deviations)

        def reach(one: Floats, other: Floats) -> Floats:
            found: Floats = np.sqrt(one**2 + other**2 - 2.0 * correlation * one * other)
            return found

        (a, b), (c, d), found = position - lower, upper - position, position[0] - position[1]
        ends = found, found - reach(a, d), found + reach(c, b)
        value, *rest = ((high - low) * float(each) for each in ends)
        return value, rest[0], rest[1]


def require_pair(pair: tuple[str, ...], groups: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of two different groups, else raise `ParameterError`."""
    if not len(pair) == len(set(pair) & set(groups)) == 2:
        raise ParameterError(
            f"compare = {','.join(pair)} are not two different groups: give two of "
            f"{', '.join(groups)}"
        )
    return tuple(map(groups.index, pair))


def estimate_group_means(
    totals: Floats,
    *,
    groups: tuple[str, ...],
    limits: tuple[float, float],
    noise: tuple[GroupNoise, GroupNoise],
    num_users: int,
    confidence: float = 0.95,
    simultaneous: bool = False,
    support: SupportLaw | None = None,
) -> GroupMeanEstimates:
    """Return the mean and the size of each group, with their errors.

    Parameters
    ----------
    totals : ndarray of float64, shape (2, g)
        Unbiased estimates: the share h of each group times 1 - r, r being its mean position in
        the range; and h times r.
    groups : tuple of str
        Names of the g groups.
    limits : (float, float)
        Range of the values, low < high.
    noise : (GroupNoise, GroupNoise)
        Noise about these users, and about a population.
    num_users : int
        Number of users, at least one.
    confidence : float
        Nominal coverage of each interval, in (0, 1).
    simultaneous : bool
        True if the intervals of all g means, and of all sizes, must hold at once with that
        confidence (Bonferroni), rather than each alone.
    support : SupportLaw, optional
        Law of the number of reports of a group, whose tails the intervals of sizes then heed.

    Returns
    -------
    GroupMeanEstimates
        Values are not clipped. A group whose interval is unbounded, or holds the whole range, is
        too small for a statement.

    Examples
    --------
    >>> coins = GroupNoise(one=0.0, both=0.0, fixed=0.0, mixed=0.01, size=0.0)
    >>> found = estimate_group_means(
    ...     np.array([[0.5, 0.0], [0.5, 0.0]]), groups=("a", "b"), limits=(0.0, 10.0),
    ...     noise=(coins, coins), num_users=100,
    ... )
    >>> found.mean.tolist(), found.standard_error.tolist()  # 100 coins of one group
    ([5.0, nan], [0.5, 5.0])
    """
    ones, share = totals[1], totals.sum(axis=0)
    each = simultaneous_confidence(confidence, ones.size) if simultaneous else confidence
    quantile, width = normal_quantile(each), limits[1] - limits[0]
    ends = _fieller(ones, share, noise[0], quantile)
    is_stated = (ends[0] != 0.0) | (ends[1] != 1.0)
    safe = np.where(is_stated, share, 1.0)
    inside = np.clip(ones / safe, 0.0, 1.0)
    own, population = (
        width * np.where(is_stated, np.sqrt(law.variance(inside, share)) / safe, 0.5)
        for law in noise
    )
    lower, upper = _in_range(ends, limits)
    how: Any = {"confidence": confidence, "is_simultaneous": simultaneous}
    sizes = replace(_sizes(share, noise[0], quantile, num_users), **how)
    if support is not None:
        ends = support.wilson_interval(share, each)
        sizes = replace(sizes, lower=ends[0], upper=ends[1])
    return GroupMeanEstimates(
        mean=np.where(is_stated, limits[0] + width * ones / safe, np.nan),
        standard_error=own,
        population_standard_error=population,
        lower=lower,
        upper=upper,
        groups=groups,
        sizes=sizes,
        limits=limits,
        noise=noise,
        ones=ones,
        num_users=num_users,
        **how,
    )


def largest_shift(number: int, *, totals: Floats, each: float, width: float) -> Floats:
    """Return the largest change of each group's mean if some users send other reports.

    Parameters
    ----------
    number : int
        Number m of these users.
    totals : ndarray of float64, shape (2, g)
        As for `estimate_group_means`, with or before their reports.
    each : float
        Largest change of each total by one user, whose report adds to one total of a group or none.
    width : float
        Width of the range of the values.

    Returns
    -------
    ndarray of float64
        Infinite if they can make a group seem empty.

    Notes
    -----
    Moving from one total to the other, they move the mean by m ``each`` over the size. A ratio is
    monotone in each of its totals, so that extremes are at corners of the reachable totals.

    Examples
    --------
    >>> largest_shift(1, totals=np.array([[0.1], [0.1]]), each=0.01, width=10.0).round(6).tolist()
    [0.5]
    """
    ones, share, reach = totals[1], totals.sum(axis=0), number * each
    found: Floats = np.zeros_like(ones)
    for up, down in product((-1.0, 0.0, 1.0), repeat=2):
        if abs(up + down) <= 1.0:
            size = share + (up + down) * reach
            is_there = (size > 0.0) & (share > 0.0)
            safe, whole = (np.where(is_there, each, 1.0) for each in (size, share))
            moved = np.abs((ones + up * reach) / safe - ones / whole)
            found = np.maximum(found, np.where(is_there, width * moved, np.inf))
    return found


def _fieller(ones: Floats, share: Floats, noise: GroupNoise, quantile: float) -> Interval:
    """Return the ends of all positions compatible with the totals; 0 and 1 if all are.

    T(r)^2 <= z^2 Var T(r) is a quadratic inequality in r, because r (1 - r) is one: a r^2 - 2 b r +
    c <= 0. Where a <= 0 the solutions are unbounded. A report moves T(r) by at most a step, and
    each end outwards by `steps_outwards`.
    """
    fixed, mixed = (quantile**2 * each for each in noise.parts(share))
    a, ends, is_bounded = share**2 + mixed, [], (share > 0.0)
    for way in (-1.0, 1.0):
        moved = ones + way * steps_outwards(quantile) * noise.step
        b, c = moved * share + 0.5 * mixed, moved**2 - fixed
        is_bounded = is_bounded & (a > 0.0) & (b * b >= a * c)
        root = (b + way * np.sqrt(np.maximum(b * b - a * c, 0.0))) / np.where(a > 0.0, a, 1.0)
        centre = moved / np.where(share > 0.0, share, 1.0)
        ends.append(way * np.maximum(way * root, way * centre))
    is_useful = is_bounded & ((ends[0] > 0.0) | (ends[1] < 1.0))
    return np.where(is_useful, ends[0], 0.0), np.where(is_useful, ends[1], 1.0)


def _in_range(ends: Interval, limits: tuple[float, float]) -> Interval:
    """Return positions in the range as values."""
    low, high = limits
    return low + (high - low) * ends[0], low + (high - low) * ends[1]


def _sizes(share: Floats, noise: GroupNoise, quantile: float, num_users: int) -> FrequencyEstimates:
    """Return the sizes of groups, with Wilson's intervals: their variance is linear in the size."""
    inside, fixed = np.clip(share, 0.0, 1.0), 2.0 * (noise.one + noise.both)
    variance, slope = fixed + noise.size * inside, 0.5 * quantile**2 * noise.size
    reach = np.sqrt(quantile**2 * np.maximum(fixed + noise.size * share, 0.0) + slope**2)
    return FrequencyEstimates(
        count=num_users * share,
        frequency=share,
        standard_error=np.sqrt(variance),
        population_standard_error=np.sqrt(variance + inside * (1.0 - inside) / num_users),
        lower=share + slope - reach,
        upper=share + slope + reach,
        num_users=num_users,
        confidence=0.95,
        interval="wilson",
    )
