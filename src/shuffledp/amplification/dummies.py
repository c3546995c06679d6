"""Dummies: reports that belong to nobody hide the true ones, whatever the other users do.

Every possible report j is joined by Z_j dummies "j", independent and of one law z. Given the
reports of all others, one report that is 1 or 2 leaves P = (Z_1 + 1, Z_2) or Q = (Z_1, Z_2 + 1).
With r(a) = z(a-1)/z(a) the likelihood ratio P/Q of (a, b) is r(a)/r(b), so that

    D(epsilon) = sum_b [ z(b) S1(e r(b)) - e z(b-1) S0(e r(b)) ],   e = exp(epsilon),         (D1)

S1(x) the sum of z(a-1) over the a with r(a) > x, S0(x) that of z(a). It is attained by every pair
of neighbours whose reports are their values, is the same in both orders, and depends on nobody
else.

*Local noise.* Let L = e^epsilon0. Any two laws of an epsilon0-LDP report are R = s F + (1-s) G and
R' = (1-s) F + s G, s = L/(L+1): F = (L R - R')/(L - 1) and G = (L R' - R)/(L - 1) are laws. Draw
from F and G by their maximal coupling and reveal both; where they are equal nothing depends on the
value. They differ with probability w = TV(F, G) = TV(R, R') (L+1)/(L-1), and then the view is
s P + (1-s) Q against (1-s) P + s Q. Its likelihood ratio rises with P/Q, so

    delta(epsilon) <= w (L - e)/(L + 1) D(ln e'),   e' = (e L - 1)/(L - e),                   (D1')

and 0 from epsilon0 on. w <= 1; for k-RR w = (L+1)/(L+k-1). The right-hand side does not fall
where L grows. Reports that reveal all with probability delta0 cost D(epsilon) times that.

*Error budget.* Tables are whole numbers, sums are exact, and e has 100 digits. Only the comparison
r(a) > e r(b) is done with floats: whatever may lie on the wrong side, by 8 units in the last place,
is counted at the upper end. Tables of Poisson laws are cut off where less than 1e-38 is beyond.

*Shuffler's dummies beside k-ary randomized response: exact for one user, even if all others lie.*

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

*Its error budget.* Grids are lowered by a part in 1e12, ratios of a group stand for each other in
the safe direction, and 3e-11 of the victim's probability is added for round-off, and for epsilon0.

Source: docs/results/dummies.md.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate

import numpy as np

from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.core.arrays import Floats
from shuffledp.core.dummies import POISSON, DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.numerics.positive_part import SMALLEST_UPPER
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily

_DECIMAL = Context(prec=100, Emin=-999_999, Emax=999_999)

# Relative error of two ratios and of their comparison.
_TIE = 8.0 * math.ulp(1.0)

# Largest epsilons at which D is computed, of any law and of Poisson laws; D does not increase.
_LARGEST_EPSILON, _LARGEST_POISSON = 700.0, 40.0

# Poisson laws: numerators over 2^128, bound on the mass beyond a table's ends, and its exponent.
_POISSON_UNIT, _POISSON_TAIL, _POISSON_EXPONENT = 2**128, 1e-38, 92.0
_MOST_POISSON = 10**7


class PairOfBins:
    """(D1) for one table: the divergence of one more dummy in either of two bins.

    Parameters
    ----------
    table : sequence of int
        Numerators of the probabilities of 0, 1, 2, ...; they add up to ``unit`` or a little less.
    missing : float
        Upper bound on the probability that the table leaves out.
    """

    def __init__(self, table: Sequence[int], *, missing: float = 0.0) -> None:
        kept = [i for i, each in enumerate(table) if each > 0]
        inside = np.array(table[kept[0] : kept[-1] + 1], dtype=object)
        own, before = inside[1:], inside[:-1]  # z(a) and z(a - 1) where neither is 0
        ratios = before.astype(np.float64) / own.astype(np.float64)
        order = np.argsort(-ratios, kind="stable")
        self._ratios, self._falling = ratios, -ratios[order]
        self._sums1 = np.array([0, *accumulate(before[order])], dtype=object)
        self._sums0 = np.array([0, *accumulate(own[order])], dtype=object)
        self._own, self._before = own, before
        whole, ends = sum(inside), (inside[0], inside[-1])
        self._finite = (whole - ends[0]) * (whole - ends[1])
        #: Probability of a likelihood ratio that is infinite, and the mass left out of the table.
        self.infinite = 1 - Fraction(self._finite, whole**2)
        self._missing = missing
        #: Largest loss that is finite, rounded up.
        spread = float(ratios.max(initial=1.0) / ratios.min(initial=1.0))
        self.highest = math.log(spread) * (1.0 + _TIE) + _TIE if self._finite else 0.0

    def enclose(self, epsilon: float) -> Enclosure:
        """Enclose D at ``epsilon`` >= 0."""
        if self._missing and epsilon > _LARGEST_POISSON:
            return Enclosure(0.0, self.enclose(_LARGEST_POISSON).upper)
        rest, chance = self.enclose_finite(epsilon), float(self.infinite)
        missed = 2.0 * (1.0 + math.exp(epsilon)) * self._missing if self._missing else 0.0
        lower = round_down(chance + (1.0 - chance) * rest.lower) - missed
        upper = round_up(chance + (1.0 - chance) * rest.upper) + missed
        return Enclosure(max(lower, 0.0), min(max(upper, SMALLEST_UPPER), 1.0))

    def enclose_finite(self, epsilon: float) -> Enclosure:
        """Enclose D given that the likelihood ratio is not infinite; 0 from ``highest`` on."""
        if epsilon >= self.highest:
            return Enclosure(0.0, 0.0)
        e = _DECIMAL.exp(Decimal(epsilon))
        limits = float(e) * self._ratios
        narrow = np.searchsorted(self._falling, -limits * (1.0 + _TIE), side="left")
        wide = np.searchsorted(self._falling, -limits * (1.0 - _TIE), side="right")
        chance = self._own @ self._sums1[narrow]
        taken = _DECIMAL.multiply(e, Decimal(self._before @ self._sums0[narrow]))
        gain = _DECIMAL.subtract(Decimal(chance), taken)
        value = max(float(_DECIMAL.divide(gain, Decimal(self._finite))), 0.0)
        ties = float(Fraction(self._own @ self._sums1[wide] - chance, self._finite))
        return Enclosure(round_down(value), min(round_up(value) + 4.0 * _TIE * ties, 1.0))


@functools.lru_cache(maxsize=64)
def pair_of_bins(law: DummyLaw, num_users: int) -> PairOfBins:
    """Return (D1) of a law: of the shuffler's table, or of the sum of all users' Poisson laws."""
    if law.shape != POISSON:
        return PairOfBins(law.table)
    table = poisson_table(law.scale, num_users)
    return PairOfBins(table, missing=_POISSON_TAIL + len(table) / _POISSON_UNIT)


def poisson_table(scale: float, num_users: int) -> list[int]:
    """Return numerators, over about 2^128, of the law of all users' dummies in a bin: 0, 1, ..."""
    mean = _DECIMAL.multiply(Decimal(repr(scale)), num_users)
    if mean > _MOST_POISSON:
        raise ParameterError(
            f"dummies: {mean:.6g} in each bin are above {_MOST_POISSON:,}: account for that many, "
            "more only lower epsilon"
        )
    # Chernoff: at most e^-(x^2 / (2 mean + 2 x / 3)) is beyond x on either side.
    far = math.sqrt(2.0 * _POISSON_EXPONENT * float(mean)) + _POISSON_EXPONENT
    start = max(math.floor(float(mean) - far), 0)
    weights = [Decimal(1)]
    for i in range(start + 1, math.ceil(float(mean) + far) + 1):
        weights.append(_DECIMAL.divide(_DECIMAL.multiply(weights[-1], mean), Decimal(i)))
    total = functools.reduce(_DECIMAL.add, weights)
    unit = _DECIMAL.divide(Decimal(_POISSON_UNIT), total)
    return [0] * start + [int(_DECIMAL.multiply(each, unit)) for each in weights]


def hidden_epsilon(epsilon0: float, epsilon: float) -> float:
    """Return ln e' of (D1'), rounded down, for epsilon < epsilon0."""
    if math.isinf(epsilon0):
        return epsilon
    logs = [math.log(-math.expm1(-(epsilon + epsilon0))), math.log(-math.expm1(epsilon - epsilon0))]
    slack = _TIE * (1.0 + epsilon + abs(logs[0]) + abs(logs[1]))
    return max(epsilon + logs[0] - logs[1] - slack, epsilon)


def hidden_share(profile: LocalProfile, epsilon: float) -> float:
    """Return w (L - e)/(L + 1) of (D1'), rounded up."""
    shrink = math.exp(-profile.epsilon0)
    share = -math.expm1(epsilon - profile.epsilon0) / (1.0 + shrink)
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and profile.delta0 == 0.0:
        size = profile.domain_size or 2
        share *= (1.0 + shrink) / (1.0 + (size - 1) * shrink)
    return min(round_up(share, operations=16), 1.0)


@functools.lru_cache(maxsize=64)
def dummy_curve(law: DummyLaw, profile: LocalProfile, num_users: int) -> HockeyStickCurve:
    """Return (D1') for all epsilon; both ends are attained where reports are the values."""
    if law.shape == POISSON and profile.participation < 1.0:
        raise ParameterError(
            f"participation = {profile.participation:.6g} does not go with users' dummies, since "
            "users who stay away send none: account for the number who take part"
        )
    at = partial(_delta, law, profile, num_users)
    return HockeyStickCurve(
        at,
        at,
        profile.epsilon0 if profile.delta0 == 0.0 else math.inf,
        method=f"{law.sender}-dummies",
        source="exact divergence of one more dummy in either of two bins; derived in the "
        "shuffledp documentation",
    )


def _delta(law: DummyLaw, profile: LocalProfile, num_users: int, epsilon: float) -> Enclosure:
    """Enclose (D1') at ``epsilon`` >= 0; with a lower end above 0 for bare values only."""
    pair, found = pair_of_bins(law, num_users), Enclosure(0.0, 0.0)
    if epsilon < profile.epsilon0:
        moved = pair.enclose(hidden_epsilon(profile.epsilon0, epsilon))
        if is_bare(profile):
            return moved
        share = hidden_share(profile, epsilon)
        found = Enclosure(0.0, max(round_up(share * moved.upper), SMALLEST_UPPER))
    if profile.delta0 == 0.0 and profile.participation == 1.0:
        return found
    sent = profile.participation - profile.delta0
    upper = profile.delta0 * pair.enclose(epsilon).upper + sent * found.upper
    return Enclosure(0.0, min(round_up(upper), 1.0))


@functools.lru_cache(maxsize=64)
def finite_curve(law: DummyLaw) -> HockeyStickCurve:
    """Return (D1) of a table given that the likelihood ratio is not infinite."""
    at = pair_of_bins(law, 1).enclose_finite
    return replace(
        dummy_curve(law, LocalProfile(epsilon0=math.inf), 1),
        forward=at,
        backward=at,
        highest=pair_of_bins(law, 1).highest,
    )


def is_bare(profile: LocalProfile) -> bool:
    """Return True if the reports of some pair of values never agree: (D1) is attained."""
    whole = profile.delta0 == 0.0 and profile.participation == 1.0
    return whole and math.isinf(profile.epsilon0) and profile.family is not RandomizerFamily.OTHER


def curve_epsilon(curve: HockeyStickCurve, delta: float) -> Enclosure:
    """Enclose the least epsilon at which a curve is at most ``delta``; inf if there is none."""
    highest = min(curve.highest, _LARGEST_EPSILON)
    if delta == 0.0:
        return Enclosure(0.0, curve.highest)
    at = functools.cache(curve.forward)
    if highest < curve.highest and (end := at(highest)).upper > delta:
        return Enclosure(highest if end.lower > delta else 0.0, math.inf)
    _, upper = last_above_first_below(lambda epsilon: at(epsilon).upper, delta, 0.0, highest)
    lower, _ = last_above_first_below(lambda epsilon: at(epsilon).lower, delta, 0.0, highest)
    return Enclosure(min(lower, upper), upper)


_ADDED = {
    "shuffler": "Before it releases a batch the shuffler adds to every possible report a fresh and "
    "secret number of dummies of the law {}, which look like reports; a batch that is released "
    "again has the same dummies.",
    "users": "Each counted user also sends a fresh and secret number of dummies of the law {}, "
    "which look like reports, of every possible report.",
}


def added_sentence(law: DummyLaw) -> str:
    """Return the assumption on the sender of the dummies."""
    return _ADDED[law.sender].format(law)


# Points of a grid while sums are made and when they are used; masses below are too rare to keep.
_MOST_POINTS, _FEW_POINTS, _RARE = 600, 250, 1e-24

# Ratios closer than this are one; round-off of sums; the largest k.
_ALIKE, _NOISY_ROUND_OFF, _MOST_BINS = 1e-10, 3e-11, 10**8


def has_noise(profile: LocalProfile) -> bool:
    """Return True for k-RR by all users, pure and with local noise."""
    plain = profile.delta0 == 0.0 and profile.participation == 1.0
    is_k_rr = profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE
    return plain and is_k_rr and 0.0 < profile.epsilon0 <= LARGEST_EPSILON0


@functools.lru_cache(maxsize=64)
def noisy_curve(law: DummyLaw, profile: LocalProfile) -> HockeyStickCurve | None:
    """Return the bound of the module for k-RR with noise, k >= 3; None where (D1') is as good."""
    size = profile.domain_size or 2
    if law.shape == POISSON or not has_noise(profile) or not 3 <= size <= _MOST_BINS:
        return None
    at = partial(_noisy_delta, law, profile)
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


def _noisy_delta(law: DummyLaw, profile: LocalProfile, epsilon: float) -> Enclosure:
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
    return Enclosure(0.0, min(max(upper + _NOISY_ROUND_OFF * won, SMALLEST_UPPER), 1.0))
