"""Blanket and explicit data of a two-piece law, `PrivUnit` or `PrivUnitGaussian`, as atoms.

Relative to the base law a report of the point x has the density P / q inside x's part, of base
measure q <= 1/2, and (1 - P) / (1 - q) outside; p = e^epsilon0 is the ratio of the two.

*Blanket.* Every report lies outside the part of some input, of -V / norm(V) for instance. So the
infimum over all inputs has the density (1 - P) / (1 - q) everywhere. For x and -x, whose parts do
not overlap, it has the atoms (a; p, 1), (a; 1, p) and (b; 1, 1), with a (p + 1) + b = 1 and

    b = (1 - 2 q) (1 - P) / (1 - q).

*Opposite points are the worst pair.* For other pairs the parts overlap by a measure v: of the base
measure q - v each is in one part only, v in both and 1 - 2 q + v in none. In the terms r0 - e r1
of the blanket's bound, v at p - e and v at 1 - p e become v at p (1 - e) and v at 1 - e: the same
sum, and both lie between the two. That is smaller in convex order, and so is the bound. A vector
of the ball is a mixture of points of the sphere, which adds nothing (joint convexity).

*Rounding.* p and b depend on q, a floating-point number with a relative error of at most 3e-10 (see
`two_piece_law`). What is stated has p' = e^epsilon0 >= p, rounded up already, b' = (1 - 1e-9) b
and a' = (1 - b') / (p' + 1). It dominates the true law by steps that do not lower the bound: mass
of (1, 1) is spread onto (p, 1), (1, p) and what is outside the blanket, with the means kept; and
the pair is spread to weight (p' + 1) / 2 and outside, and then widened. Last, a' is lowered and p'
raised by some units in the last place, as in docs/results/stated-blanket.md, "Exact laws".

*Explicit data.* The pair is x and -x, and all others hold a point z at a right angle to both. Under
z the atoms are those of six kinds of reports, in the part of x, of -x or of none, and in that of z
or not. If v is the base measure of the parts of x and z together, chi^2 is 2 a (p - 1)^2 times
1 - (v / q) (1 - 1 / p), the largest where parts overlap the least.
"""

import math
from dataclasses import dataclass

from shuffledp.core.numerics.enclosure import round_down, round_up
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.randomizers.thresholds import WORD_VALUES
from shuffledp.randomizers.vectors.two_piece_law import Measure

# b takes the errors of 1/2 - q and 1 - q: less than twice 3e-10. e^epsilon0 has its own margin.
_THINNER = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RightAngle:
    """Base measures of the parts of x, -x and z at a right angle; 2 (shared + own) + ... = 1.

    Parameters
    ----------
    shared : float
        v: of what is in the parts of both x and z; as much is in those of -x and z.
    own : float
        q - v: in the part of x only, and as much in that of -x only.
    third : float
        q - 2 v: in the part of z only.
    none : float
        1 - 3 q + 2 v: in none of them.
    """

    shared: float
    own: float
    third: float
    none: float


def two_piece_profile(
    epsilon0: float, threshold: int, measure: Measure, right_angle: RightAngle
) -> LocalProfile:
    """Return what the accountant needs to know of a two-piece law.

    Parameters
    ----------
    epsilon0 : float
        Loss of the law in nats, rounded up.
    threshold : int
        T: the report lies outside with probability exactly T / 2^64 = 1 - P.
    measure : Measure
        Of the part inside.
    right_angle : RightAngle
        Measures at a right angle; relative error at most 1e-10.

    Returns
    -------
    LocalProfile
        Its blanket dominates that of every pair; its attack is right to ten digits.

    Examples
    --------
    >>> quarter = Measure(inside=0.25, below_half=0.25)
    >>> corners = RightAngle(shared=0.0, own=0.25, third=0.25, none=0.25)  # quarters of a circle
    >>> profile = two_piece_profile(math.log(9.0), 2**62, quarter, corners)  # P = 3/4
    >>> [(round(a.mass, 6), round(a.ratio0, 6), round(a.ratio1, 6)) for a in profile.blanket]
    [(0.083333, 9.0, 1.0), (0.083333, 1.0, 9.0), (0.166667, 1.0, 1.0)]
    >>> [(round(a.mass, 6), round(a.ratio0, 6), round(a.ratio1, 6)) for a in profile.attack]
    [(0.083333, 9.0, 1.0), (0.083333, 1.0, 9.0), (0.083333, 1.0, 1.0), (0.75, 0.111111, 0.111111)]
    """
    return LocalProfile(
        epsilon0=epsilon0,
        family=RandomizerFamily.OTHER,
        blanket=_blanket(epsilon0, threshold, measure),
        attack=_attack(threshold, measure, right_angle),
    )


def _blanket(epsilon0: float, threshold: int, measure: Measure) -> tuple[BlanketAtom, ...]:
    ratio = math.exp(epsilon0)
    outside = threshold / WORD_VALUES
    neither = _THINNER * 2.0 * measure.below_half * outside / measure.outside
    one = round_down((1.0 - neither) / (ratio + 1.0))
    ratio = round_up(ratio, operations=16) if epsilon0 > 0.0 else 1.0
    return _some((one, ratio, 1.0), (one, 1.0, ratio), (neither, 1.0, 1.0))


def _attack(threshold: int, measure: Measure, right_angle: RightAngle) -> tuple[BlanketAtom, ...]:
    inside = (WORD_VALUES - threshold) / WORD_VALUES / measure.inside
    outside = threshold / WORD_VALUES / measure.outside
    high, low = inside / outside, outside / inside
    shared, own = right_angle.shared, right_angle.own
    return _some(
        (outside * own, high, 1.0),
        (outside * own, 1.0, high),
        (outside * right_angle.none, 1.0, 1.0),
        (inside * right_angle.third, low, low),
        (inside * shared, 1.0, low),
        (inside * shared, low, 1.0),
    )


def _some(*atoms: tuple[float, float, float]) -> tuple[BlanketAtom, ...]:
    """Return the atoms that have a mass."""
    return tuple(
        BlanketAtom(mass=mass, ratio0=ratio0, ratio1=ratio1)
        for mass, ratio0, ratio1 in atoms
        if mass > 0.0
    )
