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
from shuffledp.core.numerics.enclosure import round_up


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
