"""The linear part of the likelihoods: a mean positive part of a sum of i.i.d. terms.

Among n users, the target and others, each other one answers uniformly with probability q; M counts
these and the target. With Y_i i.i.d. of a `ChangeLaw`, and a shift r,

    A(epsilon) = E[ (1 - e^epsilon + r + (g/M) sum_{i <= M} Y_i)_+ ],   M - 1 ~ Bin(n - 1, q).

Pr[Bin(n, q) = m] m = n q Pr[M = m], so that the mixture over M is one sum of n i.i.d. terms:

    A(epsilon) = (1 / (n q)) E[ (G_1 + ... + G_n)_+ ],
    G = 0 with probability 1 - q,  else 1 - e^epsilon + r + g Y,

as for the privacy blanket (Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3).
"""

import math

import numpy as np

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.positive_part import mean_positive_part
from shuffledp.monitoring.privacy.change_laws import ChangeLaw

# Relative width that the contour integral aims at, and the wider one for few users, whose sums take
# many nodes: delta is at most 1e-3 too wide, far out.
_WIDTH, _WIDTH_OF_FEW = 1e-7, 1e-5
_FEW_USERS = 3_000

# More users are taken to be so many: rounding of masses would add up, and delta falls with n.
MOST_USERS = 10**10

# What the masses left out of a law, below 1e-290 each, may add.
_LEFT_OUT = 1e-270


def linear_delta_upper(
    law: ChangeLaw, *, gap: float, share: float, num_users: int, epsilon: float, shift: float = 0.0
) -> float:
    """Return an upper bound of the mean positive part A(epsilon) of the linear part.

    Parameters
    ----------
    law : ChangeLaw
        Law of Y.
    gap : float
        g, in [0, 1]; the nearest float to it.
    share : float
        q in (0, 1]; the nearest float to it.
    num_users : int
        n >= 1; more than 1e10 are taken to be 1e10, which errs upwards.
    epsilon : float
        At least 0, at most 200.
    shift : float
        r, finite.

    Returns
    -------
    float
        Errs upwards, by up to 1e-3 of A. A does not increase with n where ``shift`` is 0.

    Notes
    -----
    Error budget: values may be off by the law's relative error and 16 roundings of the largest;
    the masses' relative error t multiplies the mean by at most (1 + t)^n. Cost: below 1 ms, up to
    50 ms for fewer than 1000 users.

    Examples
    --------
    One user, whose two histories differ in the sign of one report kept with probability 3/4:

    >>> from shuffledp.monitoring.privacy.change_laws import worst_law
    >>> law = worst_law(1, epsilon=0.0, alternating=False)
    >>> 0.5 <= linear_delta_upper(law, gap=0.5, share=1.0, num_users=1, epsilon=0.0) <= 0.5001
    True
    """
    users = min(num_users, MOST_USERS)
    mean = _mean(law, (gap, share, epsilon, shift), users, upwards=True).upper
    return mean / share * math.exp(_spread(law, users)) + _LEFT_OUT


def linear_delta_lower(
    law: ChangeLaw, *, gap: float, share: float, num_users: int, epsilon: float, shift: float = 0.0
) -> float:
    """Return a lower bound of A(epsilon), at most 1e10 users; otherwise as `linear_delta_upper`.

    Examples
    --------
    >>> from shuffledp.monitoring.privacy.change_laws import worst_law
    >>> law = worst_law(1, epsilon=0.0, alternating=False)
    >>> 0.4999 <= linear_delta_lower(law, gap=0.5, share=1.0, num_users=1, epsilon=0.0) <= 0.5
    True
    """
    mean = _mean(law, (gap, share, epsilon, shift), num_users, upwards=False).lower
    return max(mean / share * math.exp(-_spread(law, num_users)) - _LEFT_OUT, 0.0)


def _mean(
    law: ChangeLaw, parameters: tuple[float, float, float, float], num_users: int, *, upwards: bool
) -> Enclosure:
    """Enclose E[(G_1 + ... + G_n)_+] / n, with all values of G moved to the safe side."""
    gap, share, epsilon, shift = parameters
    values = np.append(shift - math.expm1(epsilon) + gap * law.values, 0.0)
    masses = np.append(share * law.masses, 1.0 - share)
    heaviest = int(np.argmax(masses))
    slack = float(np.max(np.abs(values))) * (16.0 * math.ulp(1.0) + law.relative_error)
    return mean_positive_part(
        num_users,
        float(values[heaviest]) + (slack if upwards else -slack),
        np.delete(masses, heaviest),
        np.delete(values - values[heaviest], heaviest),
        width=_WIDTH if num_users > _FEW_USERS else _WIDTH_OF_FEW,
    )


def _spread(law: ChangeLaw, num_users: int) -> float:
    """Return the exponent that the masses' errors may cost: four roundings beside their own."""
    return num_users * (law.relative_error + 4.0 * math.ulp(1.0))
