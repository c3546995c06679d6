"""Two normal laws mu apart: the one pair whose compositions all have a closed form.

T of them are one pair sqrt(T) mu apart; delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).
"""

import math

from mpmath import mp, mpf

from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.core.numerics.enclosure import Enclosure

mp.dps = 60


def delta(mu: float | mpf, epsilon: float) -> mpf:
    distance, level = mpf(mu), mpf(epsilon)
    return mp.ncdf(distance / 2 - level / distance) - mp.exp(level) * mp.ncdf(
        -distance / 2 - level / distance
    )


def curve(mu: float, *, width: float = 1e-12) -> HockeyStickCurve:
    """Known up to a relative width, and never below 1e-300."""

    def enclosed(epsilon: float) -> Enclosure:
        value = float(delta(mu, epsilon))
        return Enclosure(value * (1.0 - width), max(value * (1.0 + width), 1e-300))

    return HockeyStickCurve(forward=enclosed, backward=enclosed, highest=math.inf)
