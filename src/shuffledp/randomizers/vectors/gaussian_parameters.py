"""PrivUnitG's half-space: its measure, the best place for it, and the mean along the input.

For z = gamma sqrt(d), with phi and Phi of the standard normal law and A = e^epsilon0 - 1, the
half-space <V, x> >= z / sqrt(d) has measure q = Phi(-z), and with the loss spent in full the mean
of <V, x> sqrt(d) is mu = A phi(z) / (1 + A q), with mu' = mu (mu - z). As for PrivUnit, mu is
largest where mu = z. But norm(V) is random: E[norm(V)^2] = 1 + z mu / d, so the variance to be made
small is d / mu^2 + z / mu - 1, whose derivative has the sign of

    g(z) = mu - (mu - z) (2 d + z mu).

g(0) < 0, and g > 0 where mu = z; the best z lies between, closer to the latter by about 1 / (2 d).
"""

import math

from shuffledp.randomizers.vectors.two_piece_law import Measure, on_grid

_MOST_STEPS = 200
_RELATIVE_STEP = 1e-9


def half_space_measure(z: float) -> Measure:
    """Return the probability that a standard normal variable is at least z >= 0.

    Each member has a relative error of a few units in 10^16.

    Examples
    --------
    >>> round(half_space_measure(1.959963984540054).inside, 12)
    0.025
    """
    scaled = z / math.sqrt(2.0)
    return Measure(inside=math.erfc(scaled) / 2, below_half=math.erf(scaled) / 2)


def normal_density(z: float) -> float:
    """Return phi(z), which is also E[Z; Z >= z]."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def best_cut(epsilon0: float, dimension: int) -> float:
    """Return the z of the half-space that gives the least variance at a loss, on a grid.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, in (0, 100].
    dimension : int
        d, at least 2.

    Returns
    -------
    float
        At least 0, within 1e-5 of the optimum relative to it.

    Examples
    --------
    >>> best_cut(1e-9, 10**6) > 0.0
    True
    """
    gain = math.expm1(epsilon0)
    # Where mu = z: Newton's method rises to it from 0, as for PrivUnit.
    high = 0.0
    for _ in range(_MOST_STEPS):
        mean = _scaled_mean(gain, high)
        is_there = mean - high <= _RELATIVE_STEP * mean
        high = mean
        if is_there:
            break
    low = 0.0
    while high - low > _RELATIVE_STEP * high:
        middle = (low + high) / 2
        mean = _scaled_mean(gain, middle)
        if mean - (mean - middle) * (2 * dimension + middle * mean) < 0.0:
            low = middle
        else:
            high = middle
    return on_grid(high)


def _scaled_mean(gain: float, z: float) -> float:
    """Return mu = A phi(z) / (1 + A q)."""
    return gain * normal_density(z) / (1.0 + gain * half_space_measure(z).inside)
