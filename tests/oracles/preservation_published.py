"""The paper's count of permutations that do not preserve a subset, corrected; in exact integers.

Of the permutations of n items with h items out of place, so many move more than k of the l items of
a subset S out of S::

    c_h = sum over j from k + 1 to min(l, floor(h/2)) of binomial(l, j) binomial(n - l, j)
          sum over i of binomial(l - j, i) f(i, j) binomial(n - l - j, h - 2j - i) f(h - 2j - i, j),
    f(p, m) = sum over r of (-1)^r binomial(p, r) (p + m - r)!,

where f(p, m) counts the arrangements of p + m items in which none of p has its own place. *Proof.*
Choose the j items that leave S and the j that enter. Of the l - j that stay in S, let i be out of
place; they and the j that entered fill the i + j places left, the i barred from their own. Outside
likewise, with h - 2j - i. f is inclusion and exclusion. With k = floor((1 - eta) l),

    delta = sum over h of e^(-theta h) c_h / sum over h of e^(-theta h) binomial(n, h) f(h, 0).

The statement as printed has an extra binomial(i + j, j), a stray factorial sign, the larger of l
and floor(h/2) as the upper end, and (1 - eta) l rounded up; by full enumeration it is wrong, and it
is not offered. It reads the subfactorial of 0 off a rounding formula; it is 1.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Theorem A.4.
"""

import math
from fractions import Fraction
from functools import cache

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

# The number of integer operations grows like n^3.
_MOST_ITEMS = 200


def required_members(subset_size: int, eta: float) -> int:
    """Return the least number of l reports that must stay for a share: eta l, rounded up."""
    return math.ceil(Fraction(repr(float(eta))) * subset_size)


@cache
def restricted_arrangements(barred: int, free: int) -> int:
    """Return f(p, m): arrangements of p + m items in which none of the p has its own place.

    Parameters
    ----------
    barred, free : int
        p and m, each >= 0.

    Examples
    --------
    The subfactorials, and all permutations.

    >>> [restricted_arrangements(p, 0) for p in range(6)], restricted_arrangements(0, 4)
    ([1, 0, 1, 2, 9, 44], 24)
    """
    return sum(
        (-1) ** r * math.comb(barred, r) * math.factorial(barred + free - r)
        for r in range(barred + 1)
    )


def permutations_not_preserving(num_items: int, subset_size: int, most_leaving: int) -> list[int]:
    """Return c_h for h = 0 to n.

    Parameters
    ----------
    num_items : int
        n, 1 to 200.
    subset_size : int
        l, 1 to n.
    most_leaving : int
        k, at least 0.

    Returns
    -------
    list of int
        How many permutations with h items out of place move more than k items out of the subset.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Examples
    --------
    Of the permutations of 3 items, one exchange of two keeps {0, 1}, and so does the identity.

    >>> permutations_not_preserving(3, 2, 0)
    [0, 0, 2, 2]
    """
    n = require_at_least("num_items", num_items, 1)
    if n > _MOST_ITEMS:
        raise ParameterError(
            f"num_items = {n} is above {_MOST_ITEMS}: exact integers take too long there"
        )
    size = require_at_least("subset_size", subset_size, 1)
    if size > n:
        raise ParameterError(f"subset_size = {size} is above num_items = {n}: it is a part of it")
    k = require_at_least("most_leaving", most_leaving, 0)
    return [
        sum(
            math.comb(size, j) * math.comb(n - size, j) * _displaced(n, size, h, j)
            for j in range(k + 1, min(size, n - size, h // 2) + 1)
        )
        for h in range(n + 1)
    ]


def _displaced(n: int, size: int, h: int, j: int) -> int:
    """Return the inner sum: where the h - 2j others that are out of place are."""
    f = restricted_arrangements
    return sum(
        math.comb(size - j, i)
        * f(i, j)
        * math.comb(n - size - j, h - 2 * j - i)
        * f(h - 2 * j - i, j)
        for i in range(min(size - j, h - 2 * j) + 1)
    )


def published_preservation(
    num_items: int, decay: Fraction, subset_size: int, *, eta: float
) -> Fraction:
    """Return the probability that less than eta of a subset stays, as an exact fraction.

    Parameters
    ----------
    num_items : int
        n, 1 to 200.
    decay : Fraction
        e^-theta of the Hamming-Mallows model, in [0, 1].
    subset_size : int
        l, 1 to n.
    eta : float
        Share in [0, 1], read as the decimal number it prints as.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Cost: O(n^3) operations on integers of n log n digits; a second at n = 100.

    Examples
    --------
    >>> published_preservation(2, Fraction(1), 1, eta=1.0)
    Fraction(1, 2)
    """
    q = Fraction(decay)
    if not 0 <= q <= 1:
        raise ParameterError(f"decay = {decay} is not in [0, 1]: it is e^-theta")
    leaving = subset_size - required_members(subset_size, eta)
    counts = permutations_not_preserving(num_items, subset_size, leaving)
    powers = [q**h for h in range(num_items + 1)]
    lost = sum((power * count for power, count in zip(powers, counts, strict=True)), Fraction(0))
    total = sum(
        (
            power * math.comb(num_items, h) * restricted_arrangements(h, 0)
            for h, power in enumerate(powers)
        ),
        Fraction(0),
    )
    return lost / total
