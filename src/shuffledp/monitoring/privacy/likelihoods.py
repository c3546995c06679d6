"""Distance between two histories of one user among the reports of all users.

Given that all reports are uniform, a user at level h adds g times the sum of u_j (x_j - e x'_j)
over the nodes j of that level: x and x' are the increments of the two histories compared, u_j
independent fair signs, e = e^epsilon. Only the law matters, and only up to convex order:
`worst_law` errs upwards in it, `mixed_law` downwards. The mean positive part over M users, M - 1 ~
Bin(n - 1, q), is one sum of n i.i.d. terms,

    A(epsilon) = E[(1 - e + r + (g/M) sum_{i <= M} Y_i)_+] = (1 / (n q)) E[(G_1 + ... + G_n)_+],
    G = 0 with probability 1 - q,  otherwise 1 - e + r + g Y,

as for the privacy blanket (Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3).
Products of two and more pre-drawn signs shift it by s_2 + s_3 and add parts of mean at most tau:
order two by a Gaussian moment generating function, later ones by hypercontractivity, at low
quantiles of the numbers of users. The lower end comes from an explicit pair of histories among
users who never change: M = n, and nothing is lost to the blanket.

Proofs: docs/results/monitoring.md.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.numerics.poisson_binomial import binomial_level
from shuffledp.core.numerics.positive_part import mean_positive_part
from shuffledp.core.profile import MonitoringProfile
from shuffledp.core.reports import read_only

# Number of values that the law of a pair may have before close ones are merged.
_MOST_VALUES = 128

# Up to this number the two changes that cannot overlap are kept apart; beyond, it gains below 1 %.
_MOST_ALTERNATING = 32

_UNIT_ROUND_OFF = 2.0**-53

# Smaller masses are left out: they have lost their relative accuracy, and all of them together
# cannot matter (`linear_delta` adds `_LEFT_OUT` for them).
_SMALLEST_MASS = 1e-290


class ChangeLaw(NamedTuple):
    """A law with finitely many values: shape (m,) each; masses accurate to ``relative_error``."""

    values: Floats
    masses: Floats
    relative_error: float


def worst_law(profile: MonitoringProfile, *, epsilon: float) -> ChangeLaw:
    """Return the largest law, in convex order, over all pairs of histories; without the factor g.

    It has mean 0, and errs upwards. Increments of a bit are alternating and begin with +; for other
    values at most ``changing_share`` of a node's public columns show a change.
    """
    growth, max_changes = math.exp(epsilon), profile.max_changes
    if profile.alternating and max_changes <= _MOST_ALTERNATING:
        walk = _walk(max_changes - 1, 1.0)
        singles = np.array([-1.0 - growth, 1.0 - growth, growth - 1.0, 1.0 + growth])
        values = np.add.outer((1.0 + growth) * walk.values, singles).ravel()
        return ChangeLaw(values, np.repeat(0.25 * walk.masses, 4), walk.relative_error)
    walk = _walk(max_changes, 1.0 if profile.alternating else profile.changing_share)
    return ChangeLaw((1.0 + growth) * walk.values, walk.masses, walk.relative_error)


class Overlap(NamedTuple):
    """Overlap of two histories at a level: numbers of nodes by their increments."""

    opposite: int
    first_only: int
    second_only: int
    same: int


def pair_law(overlap: Overlap, *, epsilon: float) -> ChangeLaw:
    """Return the exact law of one level of a given pair of histories; without the factor g."""
    growth = math.exp(epsilon)
    values, masses, error = np.zeros(1), np.ones(1), 0.0
    weights = (1.0 + growth, 1.0, growth, math.expm1(epsilon))
    for count, weight in zip(overlap, weights, strict=True):
        walk = _walk(count, 1.0)
        values = np.add.outer(values, weight * walk.values).ravel()
        masses = np.multiply.outer(masses, walk.masses).ravel()
        error += walk.relative_error + (masses.size + 2.0) * _UNIT_ROUND_OFF
        values, masses = _merged(values, masses)
    return ChangeLaw(values, masses, error)


def mixed_law(laws: list[ChangeLaw], weights: list[float]) -> ChangeLaw:
    """Return the mixture of several laws, merged downwards if it has too many values."""
    values = np.concatenate([law.values for law in laws])
    parts = [weight * law.masses for law, weight in zip(laws, weights, strict=True)]
    error = max(law.relative_error for law in laws) + (values.size + 2.0) * _UNIT_ROUND_OFF
    values, masses = _merged(values, np.concatenate(parts))
    return ChangeLaw(values, masses, error)


def _merged(values: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Merge close or equal values into their conditional means."""
    order = np.argsort(values, kind="stable")
    values, masses = values[order], masses[order]
    width = (values[-1] - values[0]) / _MOST_VALUES
    cell = np.floor((values - values[0]) / width) if width > 0.0 else np.zeros(values.size)
    if np.unique(values).size <= _MOST_VALUES:
        cell = values
    starts = np.flatnonzero(np.concatenate(([True], np.diff(cell) != 0.0)))
    total = np.add.reduceat(masses, starts)
    moment = np.add.reduceat(masses * (values - values[0]), starts)
    lone = np.diff(np.append(starts, values.size)) == 1
    means = values[0] + np.divide(moment, total, out=np.zeros(total.size), where=total > 0.0)
    return np.where(lone, values[starts], means), total


@lru_cache(maxsize=64)
def _walk(steps: int, moving: float) -> ChangeLaw:
    """Return the law of a sum of independent signs, each 0 with probability 1 - moving."""
    stride = 2.0 if moving == 1.0 else 1.0
    step = np.array([0.5, 0.5] if moving == 1.0 else [moving / 2.0, 1.0 - moving, moving / 2.0])
    masses = np.ones(1)
    for bit in f"{steps:b}":
        masses = np.convolve(masses, masses)
        if bit == "1":
            masses = np.convolve(masses, step)
    values = stride * np.arange(masses.size, dtype=np.float64) - steps
    kept = masses > _SMALLEST_MASS
    # Each of the steps and squarings is a sum whose rounding is below its number of terms; sums of
    # non-negative terms lose far less, but this is proved.
    error = (masses.size * (steps.bit_length() + 1.0) + 4.0 * steps + 4.0) * _UNIT_ROUND_OFF
    return ChangeLaw(read_only(values[kept]), read_only(masses[kept]), error)


# Relative width of the contour integral, and the wider one for few users, whose sums take many
# nodes: delta is at most 1e-3 too wide, far out.
_WIDTH, _WIDTH_OF_FEW = 1e-7, 1e-5
_FEW_USERS = 3_000

# More users count as this number: rounding of masses would add up, and delta falls with n.
MOST_USERS = 10**10

# Upper bound on the contribution of the masses left out of a law, below 1e-290 each.
_LEFT_OUT = 1e-270


def linear_delta(
    law: ChangeLaw,
    *,
    gap: float,
    share: float,
    num_users: int,
    epsilon: float,
    shift: float = 0.0,
    upwards: bool = True,
) -> float:
    """Bound the linear part's mean positive part A(epsilon), up to 1e-3 of it; from above or below.

    From above it does not increase with n if ``shift`` is 0; more than 1e10 users count as 1e10,
    which errs upwards. Values may be off by the law's relative error and 16 roundings of the
    largest; the masses' relative error t multiplies the mean by at most (1 + t)^n.
    """
    users = min(num_users, MOST_USERS) if upwards else num_users
    values = np.append(shift - math.expm1(epsilon) + gap * law.values, 0.0)
    masses = np.append(share * law.masses, 1.0 - share)
    heaviest = int(np.argmax(masses))
    slack = float(np.max(np.abs(values))) * (16.0 * math.ulp(1.0) + law.relative_error)
    # E[(G_1 + ... + G_n)_+] / n, with all values of G moved to the safe side.
    mean = mean_positive_part(
        users,
        float(values[heaviest]) + (slack if upwards else -slack),
        np.delete(masses, heaviest),
        np.delete(values - values[heaviest], heaviest),
        width=_WIDTH if users > _FEW_USERS else _WIDTH_OF_FEW,
    )
    # Four roundings of the masses beside their own.
    spread = users * (law.relative_error + 4.0 * math.ulp(1.0))
    if upwards:
        return mean.upper / share * math.exp(spread) + _LEFT_OUT
    return max(mean.lower / share * math.exp(-spread) - _LEFT_OUT, 0.0)


# Outward factors for the round-off of exponents of some hundreds.
_WIDER = 1.0 + 1e-9

_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Independent users who hide the target, each uniform with some probability, on some levels."""

    num_users: int  # n, the target included
    share: float  # q: probability of another user to be one of the M
    num_levels: int  # L: levels over which the M are spread, uniformly

    @classmethod
    def of(cls, profile: MonitoringProfile, num_users: int, *, level_hidden: bool) -> "Crowd":
        """Return the crowd of users with uniform reports, on all levels or the target's if seen."""
        share, levels = float(profile.uniform_share), profile.num_levels
        if level_hidden:
            return cls(num_users=num_users, share=share, num_levels=levels)
        return cls(num_users=num_users, share=share / levels, num_levels=1)

    def quantiles(self, failure: float) -> tuple[int, int]:
        """Return M and N such that fewer, in all or at a level, have chance below ``failure``."""
        others, target = self.num_users - 1, failure / (1.0 + self.num_levels) / _WIDER
        in_all = binomial_level(others, self.share, target)
        return in_all + 1, binomial_level(others, self.share / self.num_levels, target)


def has_higher_orders(profile: MonitoringProfile) -> bool:
    """Return True if products of two or more signs have a mean."""
    return any(profile.sign_correlations[2:])


def higher_order_shift(
    profile: MonitoringProfile, crowd: Crowd, *, epsilon: float, tail: float, from_above: bool
) -> tuple[float, float]:
    """Return a shift of the likelihoods' difference, and the probability of too small a crowd.

    Both are rounded up. Unless the crowd is too small, the parts beyond the shift have a mean of at
    most 2 tau together, tau = ``tail``. The shift is infinite if none can be proved.

    *Order two.* Gaussians of variance 1/N_h in place of the means A_hj of signs do not lower the
    moment generating function; the symmetric polynomial e_2 has the eigenvalues (k - 1)/2, once,
    and -1/2. So for abs(t) < 1/(k - 1) ln E exp(t sum_h N_h e_2(x A_h)) <= L psi(t),
    psi(t) = -(ln(1 - (k - 1) t) + (k - 1) ln(1 + t))/2. By Hoelder with weights 1/(1 + e) and
    e/(1 + e), at l = t M/((1 + e) abs(r_2)), t > 0, and with the sign s of r_2, ln E e^(l D_2) <=
    L (psi(s t) + e psi(-s t))/(1 + e); y_+ <= exp(l y - 1)/l gives s_2.
    """
    in_all, at_level = crowd.quantiles(tail)
    second = float(profile.correlation(2)) * (1.0 if from_above else -1.0)
    factor = (1.0 + math.exp(epsilon)) / in_all
    changes, levels = profile.max_changes, crowd.num_levels
    shift = 0.0
    if second != 0.0:
        # s_2 with E(D_2 - s_2)_+ <= tail: the least over a grid of tilts.
        tilt = np.linspace(0.02, 0.98, 49) / (changes - 1.0)
        plus, minus = (
            np.log1p(-sign * (changes - 1.0) * tilt) + (changes - 1.0) * np.log1p(sign * tilt)
            for sign in (math.copysign(1.0, second), -math.copysign(1.0, second))
        )
        ratio = 1.0 / (1.0 + math.exp(-epsilon))  # e / (1 + e)
        exponent = -0.5 * levels * ((1.0 - ratio) * plus + ratio * minus)
        slope = tilt / (factor * abs(second))
        shifts = (exponent - 1.0 - np.log(slope) - math.log(tail)) / slope
        shift = max(float(np.min(shifts)), 0.0)
    return (shift + _later_shift(profile, levels, max(at_level, 1), factor, tail)) * _WIDER, tail


def _later_shift(
    profile: MonitoringProfile, levels: int, each: int, factor: float, tail: float
) -> float:
    """Return s_3 with E(D_3 - s_3)_+ <= tail: the least over a grid of orders p.

    E e_i^2 <= C(k, i)/N_h^i. By hypercontractivity (Bonami; O'Donnell, "Analysis of Boolean
    Functions", 2014, Theorem 9.21) the norm of order p >= 2 is at most (p - 1)^(i/2) times that of
    order two, so with all N_h >= N the norm of D_3 is at most nu = (1 + e)/M sum_(i >= 3) abs(r_i)
    sqrt((p - 1)^i C(k, i) L N^(2 - i)), and E(D_3 - s_3)_+ <= nu/p (nu/s_3 (p - 1)/p)^(p - 1).
    """
    changes, later = profile.max_changes, enumerate(profile.sign_correlations[3:], start=3)
    found = {order: correlation for order, correlation in later if correlation}
    if not found:
        return 0.0
    # ln of abs(r_i) sqrt(C(k, i) L N^(2 - i)), for all i >= 3 with r_i not 0.
    at_two = []
    for order, correlation in found.items():
        squared = math.lgamma(changes + 1.0) - math.lgamma(order + 1.0)
        squared += math.log(levels) - math.lgamma(changes - order + 1.0)
        squared += (2.0 - order) * math.log(each)
        log_correlation = math.log(abs(correlation.numerator)) - math.log(correlation.denominator)
        at_two.append(log_correlation + 0.5 * squared)
    best, power = math.inf, 2.0
    while power <= 4.0 - 4.0 * math.log(tail):
        logs = np.array(at_two) + 0.5 * np.array([*found]) * math.log(power - 1.0)
        log_norm = math.log(factor) + float(np.logaddexp.reduce(logs))
        log_shift = log_norm + math.log1p(-1.0 / power)
        log_shift += (log_norm - math.log(power * tail)) / (power - 1.0)
        if log_shift < _LARGEST_EXPONENT:
            best = min(best, math.exp(log_shift))
        power *= 1.1
    return best


# Largest number of changes of the pair: fewer changes are allowed, too.
_MOST_CHANGES = 128

# A larger epsilon is not evaluated.
_LARGEST_EPSILON = 200.0

# Share of delta that higher orders may cost, and the least delta that is worth computing.
_TAIL, _LEAST_TAIL = 0.01, 1e-30


def shifted_changes(max_changes: int, num_levels: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the periods of the changes of two histories of 2^(L-1) periods, spread evenly.

    q_1, ..., q_k and q_2, ..., q_(k+1), from 1 on; ``(1,)`` and ``()`` in a single period. Fewer
    if there are no k + 1 periods, and at most 128.
    """
    periods = 1 << (num_levels - 1)
    if periods == 1:
        return (1,), ()
    count = min(max_changes, periods - 1, _MOST_CHANGES)
    places = tuple(1 + i * periods // (count + 1) for i in range(count + 1))
    return places[:-1], places[1:]


def level_overlaps(
    first: tuple[int, ...], second: tuple[int, ...], num_levels: int
) -> list[Overlap]:
    """Return, for each level from the leaves up, the overlap of two histories' net increments."""
    found = []
    for height in range(num_levels):
        nets = []
        for changes in (first, second):
            net: Counter[int] = Counter()
            for index, place in enumerate(changes):
                net[(place - 1) >> height] += 1 if index % 2 == 0 else -1
            nets.append(net)
        met = Counter((nets[0][node], nets[1][node]) for node in nets[0].keys() | nets[1].keys())
        kinds = (1, -1), (1, 0), (0, 1), (1, 1)
        found.append(Overlap(*(met[one, other] + met[-one, -other] for one, other in kinds)))
    return found


def unavoidable_delta(
    profile: MonitoringProfile, *, num_users: int, epsilon: float, level_hidden: bool
) -> float:
    """Return a lower bound on delta for any analysis, from the pair above; at least 0.

    Terms are merged into conditional means, and the higher orders are taken at their worst. 0 above
    1e10 users, or epsilon above 200.
    """
    if num_users > MOST_USERS or epsilon > _LARGEST_EPSILON:
        return 0.0
    levels = profile.num_levels
    changes = shifted_changes(profile.max_changes, levels)
    weights = Counter(level_overlaps(*changes, levels))
    # Products of more signs than the pair has changes do not occur.
    count = len(changes[0])
    profile = replace(
        profile,
        max_changes=count,
        sign_correlations=profile.sign_correlations[: count + 1],
        uniform_share=Fraction(1),  # users who never change
    )
    laws = [pair_law(overlap, epsilon=epsilon) for overlap in weights]
    shares = [count / levels for count in weights.values()]
    crowd = Crowd.of(profile, num_users, level_hidden=level_hidden)
    if level_hidden:
        return _part(profile, crowd, mixed_law(laws, shares), epsilon)
    parts = [_part(profile, crowd, law, epsilon) for law in laws]
    return float(np.dot(shares, parts)) * (1.0 - 1e-14)


def _part(profile: MonitoringProfile, crowd: Crowd, law: ChangeLaw, epsilon: float) -> float:
    """Return a lower bound on the mean positive part for one law, higher orders included."""
    linear = partial(
        linear_delta,
        law,
        epsilon=epsilon,
        upwards=False,
        gap=profile.gap,
        share=crowd.share,
        num_users=crowd.num_users,
    )
    plain = linear()
    if not has_higher_orders(profile):
        return plain
    if plain <= _LEAST_TAIL:
        return 0.0
    # If the crowd is too small, the linear part is at most g k (1 + e): its largest value.
    largest = profile.gap * float(law.values.max())
    tail = _TAIL * plain / max(largest, 1.0)
    shift, rare = higher_order_shift(profile, crowd, epsilon=epsilon, tail=tail, from_above=False)
    if not shift < largest:
        return 0.0
    return max(linear(shift=-shift) - (2.0 * tail + rare * largest) * (1.0 + 1e-9), 0.0)
