"""The Laplace mechanism on a grid as the accountant sees it: at most 41 atoms a side.

a = ``step`` is the loss of one step, q = e^-a. Each end of the grid stands for all reports beyond
it. The ends are the worst pair. Pairs are spread onto anchors, which raises every bound by less
than a part in a hundred, and rounded outwards.
"""

import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from shuffledp.core.numerics.enclosure import float_above
from shuffledp.core.profile import (
    BlanketAtom,
    LocalProfile,
    RandomizerFamily,
    outward_atoms,
    outward_pairs,
)


def laplace_profile(epsilon0, num_steps=1024):
    """Return the profile of discrete Laplace noise of this loss, a multiple of num_steps / 2^52."""
    step = math.ldexp(math.floor(epsilon0 / num_steps * 2**52), -52)
    return LocalProfile(
        epsilon0=step * num_steps,
        family=RandomizerFamily.OTHER,
        blanket=laplace_blanket(num_steps, step),
        attack=laplace_attack(num_steps, step),
    )


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
def laplace_blanket(num_steps, step):
    """Return at most 41 atoms that dominate the blanket of every pair of values.

    ``step`` is the loss a of one step in nats, m a <= 64. Both ratios have mean 1 to a few units in
    the last place. Exact up to 32 steps but for rounding, else spread. No bound of these floats is
    below that of the law. Cost O(m), a few milliseconds, once for each law.
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


def laplace_attack(num_steps, step):
    """Return the law of the ends' ratios where all others hold the lower end.

    At most 41 atoms, those of neighbouring reports merged; masses and ratios right to 1e-13.
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


def _half_law(num_steps, step):
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


def _spread(pairs, loss: float):
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


def _exponent(loss):
    """Return theta."""
    return min(_LARGEST_EXPONENT, _LARGEST_SCALED_LOSS / loss)
