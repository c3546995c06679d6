"""What alpha means for a Bayesian adversary: the odds move by at most e^alpha.

Let a release be (alpha, G)-d_sigma-private. Take a person with the group G_i and an adversary with
any prior, however correlated, who knows every report outside G_i, who sent each of those, and the
bag of reports of G_i, but not who in G_i sent which. For any two values a and b of the person,

    e^-alpha <= odds(a : b | release) / odds(a : b) <= e^alpha.                              (4.1)

*Proof.* Given what the adversary knows, y is one of the arrangements s(y*) of one sequence y* that
agree outside G_i. So Pr[z | x_i = a] and Pr[z | x_i = b] are averages of Pr[z | s(y*)] over s,
with different weights; any two of its values are within e^alpha, and so are any two averages. By
Bayes' rule their ratio is the factor by which the odds move. The same holds for a against "anything
but a", whose likelihood is one more average. ∎

The comparison is with what this adversary knew already. What the bag of reports of the group tells
is not bounded by alpha; that is what epsilon0 is for.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Theorem 4.1.
"""

import math
from typing import SupportsFloat

from shuffledp.core.checks import require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.rounding import round_up

# Relative error of the few operations below, with room.
_ROUNDING = 16.0 * math.ulp(1.0)

# Smaller numbers lose their relative accuracy to underflow.
_SMALLEST = 1e-300


def require_alpha(value: SupportsFloat) -> float:
    """Return ``value`` as a float if it is a number in [0, inf], else raise `ParameterError`.

    Examples
    --------
    >>> require_alpha(4)
    4.0
    """
    return require_extended("alpha", value, "give a number >= 0, such as 4")


def odds_factor(alpha: float) -> float:
    """Return e^alpha, the largest factor by which the odds of two values move.

    Parameters
    ----------
    alpha : float
        In nats, in [0, inf].

    Returns
    -------
    float
        At least 1; rounded up, ``inf`` where it overflows.

    Raises
    ------
    ParameterError
        If alpha is negative or no number.

    Examples
    --------
    >>> odds_factor(0.0)
    1.0
    >>> round(odds_factor(math.log(3.0)), 12)
    3.0
    """
    exponent = require_alpha(alpha)
    if exponent == 0.0:
        return 1.0
    try:
        return round_up(math.exp(exponent), operations=4)
    except OverflowError:
        return math.inf


def posterior_interval(prior: float, alpha: float) -> Enclosure:
    """Return where the adversary's belief in a value may be after the release.

    Parameters
    ----------
    prior : float
        Probability of the value given what the informed adversary knows before, in [0, 1].
    alpha : float
        In nats, in [0, inf].

    Returns
    -------
    Enclosure
        From p / (p + (1 - p) e^alpha) to p e^alpha / (1 - p + p e^alpha), both rounded outwards.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> found = posterior_interval(0.5, math.log(3.0))
    >>> round(found.lower, 12), round(found.upper, 12)
    (0.25, 0.75)
    """
    exponent = require_alpha(alpha)
    if not 0.0 <= prior <= 1.0:
        raise ParameterError(f"prior = {prior} is not in [0, 1]: it is a probability")
    belief = float(prior)
    if belief in (0.0, 1.0) or exponent == 0.0:
        return Enclosure(belief, belief)
    shrink = math.exp(-exponent)  # cannot overflow
    lower = belief * shrink / (belief * shrink + (1.0 - belief))
    upper = belief / (belief + (1.0 - belief) * shrink)
    lower = lower * (1.0 - _ROUNDING) if lower > _SMALLEST else 0.0
    upper = max(upper * (1.0 + _ROUNDING), belief, _SMALLEST)
    return Enclosure(min(lower, belief), min(upper, 1.0))


def odds_sentence(alpha: float) -> str:
    """Return Theorem 4.1 in plain words.

    Parameters
    ----------
    alpha : float
        In nats, in [0, inf].

    Returns
    -------
    str
        One or two sentences for a report; numbers are rounded up.

    Examples
    --------
    >>> print(odds_sentence(math.inf))
    Nothing is claimed about who in a group sent what.
    """
    factor = odds_factor(alpha)
    if math.isinf(factor):
        return "Nothing is claimed about who in a group sent what."
    knows = (
        "Take somebody who knows every report from outside a person's group, and which reports the "
        "group sent, but not who in it sent which."
    )
    if factor == 1.0:
        return f"{knows} The release tells them nothing more about the person."
    return (
        f"{knows} Whatever they believed before, the release changes the odds between any two "
        f"values of the person by a factor of at most {_rounded_up(factor)}."
    )


def _rounded_up(number: float) -> str:
    """Return a number >= 1 in three digits, never below it.

    Examples
    --------
    >>> _rounded_up(54.5981), _rounded_up(1.0001)
    ('54.6', '1.01')
    """
    step = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.ceil(number / step * (1.0 - 1e-12)) * step:.3g}"
