"""Blanket and explicit data of the discrete Laplace law, as few atoms.

Write a = s / 2^52 for the loss of one step, q = e^-a, and R_i(y) = c q^abs(y - i),
c = (1 - q) / (1 + q), for the law of a report of grid point i in 0, ..., m. Reports beyond an end
of the grid, clamped or not, have the same likelihood ratios as that end: each end stands for all of
them and has the mass q^abs(y - i) / (1 + q).

*Blanket.* The infimum over all grid points is that of the two ends, omega(y) = c q^max(y, m - y).
For the ends x1 = 0 and x1' = m the ratios are (e^(a (m - 2 y)), 1) left of the middle and mirrored
right of it.

*The ends are the worst pair.* For a pair (i, j), e > 0 and t >= 0 let

    F(i, j) = sum over y of (R_i(y) - e R_j(y) - t omega(y))_+.

If F(i, j) <= F(0, m) for all e and t, then the law of G = r0 - e r1 of the ends dominates that of
any pair in convex order: for t >= 0 this is E(G - t)_+, and for t < 0, as the means of G are equal,
it is E(t - G)_+, which is the same for 1 / e and the pair (j, i). Convex order survives sums of
independent terms, so that the ends maximise the right-hand side of the blanket's bound (B).

Let i < j; the mirror y -> m - y takes care of i > j. Let S be where h = (R_i - e R_j) / omega > t,
so that F(i, j) = (R_i - e R_j - t omega)(S). As R_i / R_j is constant up to i and falls after it, S
is empty unless R_i > e R_j on y <= i; let that be so.

- i <= m / 2. Up to i, h is constant, and after it h falls where it is positive: between i and j the
  ratio R_i / omega falls or stays and R_j / omega stays or rises, and from j on h is a constant
  times q^(y - max(y, m - y)). So S is a lower set {y <= b}. Reports rise stochastically with the
  input, hence R_i(S) <= R_0(S) and R_j(S) >= R_m(S), and F(i, j) <= F(0, m).
- i > m / 2. Up to m / 2, h is constant; from there to i it rises, and then it falls. So S is a
  lower set, as above, or lies right of the middle. Then take its mirror image S' and the pair
  (m - i, j): R_(m-i)(S') = R_i(S), omega(S') = omega(S), and R_j(S') <= R_j(S), since j is right
  of the middle. So F(i, j) <= F(m - i, j), to which the first case applies.

A value between grid points is a mixture of two of them, independent of all else; so the reports of
n users are a mixture over grid points, and divergences are jointly convex.

*Few atoms.* All points left of the middle lie on the line r1 = 1. A point between two anchors of
that line becomes a mixture of both with the same mean: a mean-preserving spread, which raises (B).
It adds about 0.5 / K^2 of the variance, K anchors a side, for losses up to 4: 6e-4 of epsilon for
K = 20. At a loss of 20 it is 5e-3.

*Digits.* Masses and ratios are computed to 60 decimal digits, of which rounding costs at most 12:
1 - q >= 1e-8 cancels eight, 512 factors three. Pairs are stated 1e-45 too large in mass and in
ratio, and shares of anchors 1e-40, which adds less than 1e-30 to the weight of all pairs; that much
is taken off the middle, of weight 1. So what is rounded to floats dominates the law, by the steps
of docs/results/stated-blanket.md, "Several pairs", and rounding follows the same steps. Where the
middle has too little to give, as with one step, the law is widened to one pair of the largest
ratio, p: that is the law of binary randomized response, which one step has itself.

*Explicit data.* All others hold x1 = 0: the ratios are 1 and e^(a (2 y - m)). Among the inputs that
they may share the ends have the largest chi^2 = sum (R_0 - R_m)^2 / R_i, as 1 / R_i is convex in i.
Neighbouring reports are merged, which is post-processing.
"""

import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from shuffledp.core.exact_atoms import outward_atoms, outward_pairs
from shuffledp.core.numerics.enclosure import float_above
from shuffledp.core.profile import BlanketAtom

# Anchors a side besides the middle, and the most atoms: both sides and the middle.
_ANCHORS = 20
MOST_ATOMS = 2 * _ANCHORS + 1

# Anchors are equally spaced in ratio^theta. theta = 1/2 adds the least variance; for losses above
# 4 it is chosen smaller, so that the moderate ratios, which then decide, keep some anchors too.
_LARGEST_EXPONENT = 0.5
_LARGEST_SCALED_LOSS = 2.0

# Digits of masses and ratios, and what they are stated too large or too small by.
_DIGITS = 60
_PAIR_ERROR, _SHARE_ERROR, _NEUTRAL_ERROR = Decimal("1e-45"), Decimal("1e-40"), Fraction("1e-30")


@lru_cache(maxsize=64)
def laplace_blanket(num_steps: int, step: float) -> tuple[BlanketAtom, ...]:
    """Return at most 41 atoms that dominate the blanket of every pair of values.

    Parameters
    ----------
    num_steps : int
        Steps m of the grid, a power of two.
    step : float
        Loss a of one step in nats, >= 0; m a at most 64.

    Returns
    -------
    tuple of BlanketAtom
        Ratios in [1, e^(m a)]; both have mean 1 to a few units in the last place. Exact up to 32
        steps but for rounding, else spread. No bound of these floats is below that of the law.

    Notes
    -----
    Proved in the module docstring. Cost O(m), a few milliseconds, once for each law.

    Examples
    --------
    >>> atoms = laplace_blanket(1, math.log(3.0))  # one step: binary randomized response
    >>> [(round(a.mass, 12), round(a.ratio0, 12), a.ratio1) for a in atoms]
    [(0.25, 3.0, 1.0), (0.25, 1.0, 3.0)]
    """
    if step == 0.0:
        return (BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),)
    with localcontext(prec=_DIGITS):
        pairs, middle = _half_law(num_steps, Decimal(step))
        top = Fraction(pairs[0][1])
        if num_steps >= MOST_ATOMS:
            pairs, added = _spread(pairs, step * num_steps)
            middle += 2 * added
    listed = [(Fraction(mass), Fraction(ratio)) for mass, ratio in pairs]
    found = outward_pairs(
        [
            *((mass, ratio, 1) for mass, ratio in listed),
            *((mass, 1, ratio) for mass, ratio in listed),
            (Fraction(middle) - _NEUTRAL_ERROR, 1, 1),
        ]
    )
    one = 1 / (top + 1)
    return found or outward_atoms([(one, top, 1), (one, 1, top)])


def laplace_attack(num_steps: int, step: float) -> tuple[BlanketAtom, ...]:
    """Return the law of the ends' ratios where all others hold the lower end.

    Parameters
    ----------
    num_steps, step
        As for `laplace_blanket`.

    Returns
    -------
    tuple of BlanketAtom
        At most 41, those of neighbouring reports merged; masses and ratios right to 1e-13.

    Examples
    --------
    >>> atoms = laplace_attack(1, math.log(3.0))
    >>> [(round(a.mass, 12), a.ratio0, round(a.ratio1, 12)) for a in atoms]
    [(0.75, 1.0, 0.333333333333), (0.25, 1.0, 3.0)]
    """
    if step == 0.0:
        return (BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),)
    places = np.arange(num_steps + 1)
    masses = math.tanh(0.5 * step) * np.exp(-step * places)
    masses[0] = 1.0 / (1.0 + math.exp(-step))
    masses[-1] = math.exp(-step * num_steps) / (1.0 + math.exp(-step))
    if num_steps < MOST_ATOMS:
        cells = places
    else:
        exponent = _exponent(step * num_steps)
        scaled = np.exp(exponent * step * (2 * places - num_steps))
        share = (scaled - scaled[0]) / (scaled[-1] - scaled[0])
        # The ends, which have masses of their own, stay apart.
        cells = 1 + np.minimum((share * (MOST_ATOMS - 2)).astype(np.int64), MOST_ATOMS - 3)
        cells[0], cells[-1] = 0, MOST_ATOMS - 1
    own = np.bincount(cells, masses)
    other = np.bincount(cells, masses[::-1])
    return tuple(
        BlanketAtom(mass=mass, ratio0=1.0, ratio1=share / mass)
        for mass, share in zip(own.tolist(), other.tolist(), strict=True)
        if mass > 0.0
    )


def _half_law(num_steps: int, step: Decimal) -> tuple[list[tuple[Decimal, Decimal]], Decimal]:
    """Return masses and ratios r0 left of the middle, 1e-45 too large, and the mass there."""
    fall, above = (-step).exp(), 1 + _PAIR_ERROR
    share, middle = (1 - fall) / (1 + fall), Decimal(0)
    mass, ratio = (-step * num_steps).exp(), (step * num_steps).exp()
    pairs = [(mass / (1 + fall) * above, ratio * above)]
    for _ in range((num_steps - 1) // 2):
        mass, ratio = mass / fall, ratio * fall * fall
        pairs.append((share * mass * above, ratio * above))
    if num_steps % 2 == 0:
        middle = share * (-step * num_steps / 2).exp()
    return pairs, middle


def _spread(
    pairs: list[tuple[Decimal, Decimal]], loss: float
) -> tuple[list[tuple[Decimal, Decimal]], Decimal]:
    """Return masses and ratios of the anchors that pairs are spread onto, and the mass at 1."""
    exponent = _exponent(loss)
    powers = math.expm1(exponent * loss) * (np.arange(1, _ANCHORS) / _ANCHORS)
    inner = (1.0 + np.expm1(np.log1p(powers) / exponent)).tolist()
    anchors = [Decimal(each) for each in (1.0, *inner, float_above(Fraction(pairs[0][1])))]
    spread = [Decimal(0)] * (_ANCHORS + 1)
    for mass, ratio in pairs:
        cell = min(bisect_right(anchors, ratio), _ANCHORS) - 1
        share = (ratio - anchors[cell]) / (anchors[cell + 1] - anchors[cell])
        spread[cell] += mass * (1 - share + _SHARE_ERROR)
        spread[cell + 1] += mass * (share + _SHARE_ERROR)
    return list(zip(spread, anchors, strict=True))[1:], spread[0]


def _exponent(loss: float) -> float:
    """Return theta."""
    return min(_LARGEST_EXPONENT, _LARGEST_SCALED_LOSS / loss)
