"""A shuffler's dummies beside k-ary randomized response: exact for one user, whoever else lies.

Take away the reports of all others, whatever they are. Relative to the law of the dummies alone,
a report j multiplies the probability of the numbers c_1, ..., c_k by r(c_j), r(c) = z(c-1)/z(c),
or leads to c_j = 2t + 1, which dummies alone never reach. With p = L/(L+k-1), q = 1/(L+k-1) and
L = e^epsilon0 the victim's two laws have the densities p r(c_1) + q r(c_2) + q R and
q r(c_1) + p r(c_2) + q R, R = r(c_3) + ... + r(c_k). So

    delta(epsilon) = (p - e q) z(2t) + E[ ((p - e q) r(Z_1) - (e p - q) r(Z_2) - (e - 1) q R)_+ ]

where Z_1, ..., Z_k are the dummies, and 0 from epsilon0 on. (D1') is what is left if R is revealed
to be the victim's or not; here all bins hide together whether the report is one of the pair.

*Above.* The expectation is convex in R and falls with it. So the law of r(Z_3) is put on a grid by
a mean-preserving spread, added up k - 2 times by squaring, and spread to twice the step wherever it
has become too long; each only raises it in convex order. All terms are positive.

*Error budget.* Grids are lowered by a part in 1e12, ratios of a group stand for each other in the
safe direction, and 3e-11 of the victim's probability is added for round-off, and for epsilon0.

Source: docs/results/dummies.md.
"""

import functools
import math

import numpy as np

from shuffledp.amplification.curve import HockeyStickCurve
from shuffledp.core.arrays import Floats
from shuffledp.core.dummies import POISSON, DummyLaw
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.positive_part import SMALLEST_UPPER
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily

# Points of a grid while sums are made and when they are used; masses below are too rare to keep.
_MOST_POINTS, _FEW_POINTS, _RARE = 600, 250, 1e-24

# Ratios closer than this are one; round-off of sums; the largest k.
_ALIKE, _ROUND_OFF, _MOST_BINS = 1e-10, 3e-11, 10**8


def has_noise(profile: LocalProfile) -> bool:
    """Return True for k-RR with noise that hides something, by all users."""
    plain = profile.delta0 == 0.0 and profile.participation == 1.0
    is_k_rr = profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE
    return plain and is_k_rr and 0.0 < profile.epsilon0 <= LARGEST_EPSILON0


@functools.lru_cache(maxsize=64)
def noisy_curve(law: DummyLaw, profile: LocalProfile) -> HockeyStickCurve | None:
    """Return the bound of the module for k-RR with noise, k >= 3; None where (D1') is as good."""
    size = profile.domain_size or 2
    if law.shape == POISSON or not has_noise(profile) or not 3 <= size <= _MOST_BINS:
        return None
    at = functools.partial(_delta, law, profile)
    return HockeyStickCurve(
        at,
        at,
        profile.epsilon0,
        method="shuffler-dummies-k-rr",
        source="exact divergence of k-ary randomized response among dummies; derived in the "
        "shuffledp documentation",
    )


@functools.lru_cache(maxsize=32)
def _groups(law: DummyLaw) -> tuple[Floats, Floats, Floats, float]:
    """Return masses of Z, lower and upper ends of r(Z) in falling order, and the last mass of Z."""
    masses = np.array([float(each) for each in law.table if each]) / 2.0**64
    ratios = np.concatenate(([0.0], masses[:-1] / masses[1:]))
    last, order = float(masses[-1]), np.argsort(-ratios, kind="stable")
    masses, ratios = masses[order], ratios[order]
    starts = np.flatnonzero(np.append(True, ratios[1:] < ratios[:-1] * (1.0 - _ALIKE)))
    lows = np.append(ratios[starts[1:] - 1], ratios[-1])
    return np.add.reduceat(masses, starts), lows, ratios[starts], last


@functools.lru_cache(maxsize=32)
def _others(law: DummyLaw, number: int) -> tuple[Floats, Floats, float]:
    """Return values and masses of R, spread on a grid and lowered, and the mass left out."""
    masses, lows, _, _ = _groups(law)
    step = float(lows[0]) / (_MOST_POINTS // 2) or 1.0
    places = np.floor(lows / step).astype(np.int64)
    shares = np.clip(lows / step - places, 0.0, 1.0)
    base: Floats = np.zeros(_MOST_POINTS // 2 + 2)
    np.add.at(base, places, masses * (1.0 - shares))
    np.add.at(base, places + 1, masses * shares)
    found, first, lost = base, 0, 0.0
    for bit in f"{number:b}"[1:]:
        found, first, lost = np.convolve(found, found), 2 * first, 2.0 * lost
        if bit == "1":
            found = np.convolve(found, base)
        rare = int(np.searchsorted(np.cumsum(found), _RARE))  # the least values weigh most
        lost += float(found[:rare].sum())
        end = found.size - int(np.searchsorted(np.cumsum(found[::-1]), _RARE))
        found[end - 1] += found[end:].sum()
        found, first = found[rare:end], first + rare
        while found.size > _MOST_POINTS:
            found, first, base, step = *_coarser(found, first), _coarser(base, 0)[0], 2.0 * step
    while found.size > _FEW_POINTS:
        found, first, step = *_coarser(found, first), 2.0 * step
    values: Floats = (first + np.arange(found.size, dtype=np.float64)) * step * (1.0 - 1e-12)
    return values, found, lost


def _coarser(masses: Floats, first: int) -> tuple[Floats, int]:
    """Return a law on every other point of its grid, each point in between shared by two."""
    padded = np.pad(masses, (1 + first % 2, 2))
    padded = np.append(padded, np.zeros((padded.size + 1) % 2))
    return padded[1:-1:2] + 0.5 * (padded[:-2:2] + padded[2::2]), first // 2


def _delta(law: DummyLaw, profile: LocalProfile, epsilon: float) -> Enclosure:
    """Return the upper end of the module's formula."""
    if epsilon >= profile.epsilon0:
        return Enclosure(0.0, 0.0)
    size, shrink = profile.domain_size or 2, math.exp(-profile.epsilon0)
    whole, e = 1.0 + (size - 1) * shrink, math.exp(min(epsilon, 700.0))
    gain = -math.expm1(epsilon - profile.epsilon0) / whole  # p - e q
    taken, rest = (e - shrink) / whole, math.expm1(min(epsilon, 700.0)) * shrink / whole
    masses, lows, highs, last = _groups(law)
    values, weights, lost = _others(law, size - 2)
    chances = np.concatenate(([0.0], np.cumsum(masses)))
    sums = gain * np.concatenate(([0.0], np.cumsum(masses * highs)))
    limits = taken * lows[:, None] + rest * values[None, :]
    kept = np.searchsorted(-gain * highs, -limits * (1.0 - 1e-12), side="right")
    mass = masses[:, None] * weights[None, :]
    won = float((mass * sums[kept]).sum())
    left = float((mass * limits * chances[kept]).sum())
    upper = (won - left) * (1.0 + 1e-12 * size) + gain * (last + lost)
    return Enclosure(0.0, min(max(upper + _ROUND_OFF * won, SMALLEST_UPPER), 1.0))
