"""Dummies and honest users together: k-ary randomized response of n users.

Each of the others draws, with probability gamma = k/(p+k-1), uniformly from the k answers; reveal
the users who do not, and their reports.

*Dummies of the shuffler.* Of the other users' uniform answers N ~ Bin(n-1, 2q), q = 1/(p+k-1), fall
on the pair of bins in question, A ~ Bin(N, 1/2) on the first. Reveal N, too. As for (D1'),

    delta(epsilon) <= w (L - e)/(L + 1) E_N H((Z_1 + A + 1, Z_2 + N - A),
                                              (Z_1 + A, Z_2 + N - A + 1); e').

Given Z_1 + Z_2 the total is known, and the rest is Z_1 + A + 1 against Z_1 + A. The divergence
falls with N: one more answer on either bin is post-processing. So lower quantiles of N with their
tails are enough (`random_crowd`), Pr[N <= m - x] <= e^(-x^2 / 2m) for its mean m.

*Dummies of the users.* Poisson(Lambda) dummies in all, uniform on the answers, are stochastically
more than Bin(M, gamma), M = floor(Lambda / -ln(1 - gamma)), since Poisson(-ln(1 - gamma)) is more
than a coin of chance gamma. (B) given the number of uniform answers falls with that number, so
(B) for n + M users holds.

*Below.* All others hold a third answer (for k = 2: the second), and the adversary looks at the
difference of the two bins only: Z_1 - Z_2 plus n - 1 independent steps and the victim's own.

Source: docs/results/dummies.md.
"""

import functools
import math

import numpy as np

from shuffledp.amplification.clones_and_families import K_RR_BLANKET
from shuffledp.amplification.dummies import (
    curve_epsilon,
    dummy_curve,
    has_noise,
    hidden_epsilon,
    hidden_share,
    is_bare,
    noisy_curve,
    pair_of_bins,
    poisson_table,
)
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.amplification.random_crowd import CrowdLaw, crowd_delta
from shuffledp.core.arrays import Floats
from shuffledp.core.dummies import POISSON, DummyLaw
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.numerics.poisson_binomial import binomial_level
from shuffledp.core.numerics.positive_part import LARGEST_NUM_TERMS
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile

# Chances of fewer answers on the pair than each level.
_TAILS = (0.1, 1e-4, 1e-8, 1e-13)

# More answers on the pair than this many variances of a bin are counted as that many; and the most
# cells of a table of both bins, and points of a law on a line.
_MOST_VARIANCES, _MOST_CELLS, _MOST_POINTS = 20.0, 6e5, 6000

# Mass left out of a binomial law, the chance of a number that is too rare to count, and the
# relative round-off of sums of positive terms.
_LEFT_OUT, _RARE, _ROUND_OFF = 1e-20, 1e-30, 1e-11


def crowd_curve(law: DummyLaw, profile: LocalProfile, num_users: int) -> HockeyStickCurve | None:
    """Return the bound by dummies and honest users together, where it is affordable."""
    if num_users == 1 or not has_noise(profile):
        return None
    size = profile.domain_size or 2
    growth = math.expm1(profile.epsilon0)
    if law.shape == POISSON:
        further = size * law.scale * num_users / math.log1p(size / growth)
        users = num_users + math.floor(further * (1.0 - 1e-12))
        users = min(users, LARGEST_NUM_TERMS)  # fewer hide less
        raised = functools.partial(K_RR_BLANKET.delta, profile, users)
        return HockeyStickCurve(
            raised, raised, profile.epsilon0, "raised-blanket", K_RR_BLANKET.source
        )
    crowd = _crowd_on_pair(num_users - 1, 2.0 / (growth + size) * (1.0 - 1e-12), law)
    if crowd is None:
        return None
    at = functools.partial(_joint, law, profile, crowd)
    return HockeyStickCurve(
        at, at, profile.epsilon0, "joint-dummies", "derived in the shuffledp documentation"
    )


def _joint(law: DummyLaw, profile: LocalProfile, crowd: CrowdLaw, epsilon: float) -> Enclosure:
    """Return the bound of the module by the shuffler's dummies and the other users."""
    if epsilon >= profile.epsilon0:
        return Enclosure(0.0, 0.0)
    moved = min(hidden_epsilon(profile.epsilon0, epsilon), LARGEST_EPSILON0)
    alone = pair_of_bins(law, 1).enclose(moved).upper
    found = crowd_delta(crowd, lambda size: _both_bins(law, size - 1, moved), alone)
    return Enclosure(0.0, round_up(hidden_share(profile, epsilon) * found))


def _crowd_on_pair(others: int, chance: float, law: DummyLaw) -> CrowdLaw | None:
    """Return quantiles of one more than the others' uniform answers on the pair."""
    most = math.ceil(_MOST_VARIANCES * law.variance)
    found: dict[int, float] = {}
    for tail in _TAILS:
        level = min(binomial_level(others, chance, tail), most)
        if level >= 1:
            found[1 + level] = tail  # of equal levels the last has the smallest tail
    width = 2 * law.half_width + 1
    if not found or width * (width + 2.0 * _reach(max(found))) > _MOST_CELLS:
        return None
    return CrowdLaw(sizes=tuple(found), misses=tuple(found.values()))


def _reach(number: int) -> int:
    """Return a distance from its mean that a fair binomial number hardly ever exceeds."""
    return math.ceil(math.sqrt(0.5 * number * math.log(2.0 / _LEFT_OUT)))


@functools.lru_cache(maxsize=8)
def _rows(law: DummyLaw, number: int) -> Floats:
    """Return the law of Z_1 + A jointly with Z_1 + Z_2 = 0, ..., 2t, one row each; ends are zeros.

    By symmetry larger totals are like smaller ones, which are counted twice.
    """
    table = np.array([float(each) for each in law.table]) / 2.0**64
    size, reach, half = table.size, _reach(number), number / 2.0
    first, last = max(math.floor(half - reach), 0), min(math.ceil(half + reach), number)
    steps = np.arange(first, last)
    logs = np.concatenate(([0.0], np.cumsum(np.log((number - steps) / (steps + 1.0)))))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    spread = np.zeros((size, size + weights.size + 1))
    joint = np.zeros((size, size))
    for i in range(size):
        spread[i, i + 1 : i + 1 + weights.size] = weights
        joint[i, : i + 1] = table[: i + 1] * table[i::-1] * (2.0 if i < size - 1 else 1.0)
    return joint @ spread


def _both_bins(law: DummyLaw, number: int, epsilon: float) -> float:
    """Return H of the two bins with ``number`` fair answers on them, rounded up."""
    rows, e = _rows(law, number), math.exp(epsilon)
    before, own = rows[:, :-1], rows[:, 1:]
    gains = before - e * own
    kept = gains > -_ROUND_OFF * before
    errors = _ROUND_OFF * float(before[kept].sum()) + (1.0 + e) * _LEFT_OUT
    return min(float(np.maximum(gains[kept], 0.0).sum()) + errors, 1.0)


def attack_delta(law: DummyLaw, profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return a delta that explicit data make unavoidable, where their law is not too wide."""
    noise, lost = _difference(law, profile, num_users)
    if epsilon >= profile.epsilon0:
        return 0.0
    size, growth, e = profile.domain_size or 2, math.expm1(profile.epsilon0), math.exp(epsilon)
    padded = np.pad(noise, 2) / (growth + size)
    up, same, down = padded[:-2], (size - 2.0) * padded[1:-1], padded[2:]
    before, after = (growth + 1.0) * up + down + same, up + (growth + 1.0) * down + same
    gains = before - e * after
    kept = gains > 0.0
    errors = num_users * _ROUND_OFF * float(before[kept].sum()) + (1.0 + e) * lost
    return max(float(gains[kept].sum()) - 2.0 * errors, 0.0)


@functools.lru_cache(maxsize=16)
def _difference(law: DummyLaw, profile: LocalProfile, num_users: int) -> tuple[Floats, float]:
    """Return the law of the difference of the bins without the victim, and the mass left out.

    Empty where it is too wide.
    """
    size, growth = profile.domain_size or 2, math.expm1(profile.epsilon0)
    table = law.table or poisson_table(law.scale, num_users)
    numbers = np.array([float(each) for each in table]) / float(sum(table))
    numbers = numbers[numbers > _RARE]  # those in the middle
    if 2 * numbers.size > _MOST_POINTS or num_users > _MOST_POINTS**2:
        return np.empty(0), 0.0
    step = np.array([1.0, growth + size - 2.0, 1.0]) / (growth + size)
    if size == 2:
        step = np.array([growth + 1.0, 0.0, 1.0]) / (growth + 2.0)
    found, lost, left = np.convolve(numbers, numbers[::-1]), 1e6 * _RARE, num_users - 1
    part, part_lost = step, 0.0
    while left and found.size + part.size <= _MOST_POINTS:
        if left % 2:
            found, lost = np.convolve(found, part), lost + part_lost
        left //= 2
        if left:
            part = np.convolve(part, part)
            ends = np.cumsum(part) > _LEFT_OUT, np.cumsum(part[::-1]) > _LEFT_OUT
            part = part[int(np.argmax(ends[0])) : part.size - int(np.argmax(ends[1]))]
            part_lost = 2.0 * part_lost + 2.0 * _LEFT_OUT
    return (np.empty(0), 0.0) if left else (found, lost)


def dummy_ends(
    profile: LocalProfile,
    num_users: int,
    law: DummyLaw,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    with_lower: bool = True,
) -> tuple[dict[HockeyStickCurve, float], float | None]:
    """Return upper ends with dummies, on delta at ``epsilon`` or on epsilon, and a lower end."""
    uppers, lower = {}, None
    alone = dummy_curve(law, profile, num_users), noisy_curve(law, profile)
    for curve in (*alone, crowd_curve(law, profile, num_users)):
        if curve is not None:
            found = curve_epsilon(curve, delta) if epsilon is None else curve.forward(epsilon)
            uppers[curve] = found.upper
            if is_bare(profile) and (delta > 0.0 or epsilon is not None):
                lower = found.lower
    if with_lower and has_noise(profile) and _difference(law, profile, num_users)[0].size:
        attack = functools.partial(attack_delta, law, profile, num_users)
        if epsilon is not None:
            lower = attack(epsilon)
        elif delta > 0.0:
            lower, _ = last_above_first_below(attack, delta, 0.0, profile.epsilon0)
    return uppers, lower
