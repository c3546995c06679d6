"""How far items move under the Mallows model of Kendall's distance: exact laws, no simulation.

Write q = e^-theta, [m] = (1 - q^m) / (1 - q), [m]! = [1] [2] ... [m], and [a, b] for the Gaussian
binomial [a]! / ([b]! [a - b]!), which is the sum of q^inversions over words of b and a - b equal
letters.

**One place.** Let l of the i earlier places hold larger items than place i, and r of the
n - 1 - i later places smaller ones; then pi[i] = i - l + r =: a, so that the displacement is r - l.
The inversions are: r + l with place i; l r between the l and the r places; those of the word that
says which places hold small items, before i (weight [i, l]) and after it ([n - 1 - i, r]); and
those among the a small items and among the n - 1 - a large ones ([a]! and [n - 1 - a]!). So

    P(r, l) = q^(r + l + r l) [i, l] [n - 1 - i, r] [a]! [n - 1 - a]! / [n]!.

**All places.** An item that moves from left to right crosses the gaps between its places, so the
sum of abs(pi[i] - i) is 2 sum over k = 1, ..., n - 1 of the number N_k of items that cross gap k
from the left: those of the first k places that hold k or more. Which items the first k places hold
has weight q^inversions between them and the others; with j crossing, these are j^2 and those of
two words, so

    P(N_k = j) = q^(j^2) [k, j] [n - k, j] / [n, k].
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.groups.permutations.model_checks import require_num_items, require_theta

#: Terms that `displacement_law` and `mean_displacement` add up at most: a few seconds' work.
MAX_TERMS = 5 * 10**8

# A truncated geometric variate exceeds 50 / theta with probability below e^-50 = 2e-22.
_TAIL_EXPONENT = 50.0
# q^m of m = 80 / theta does not change 1 - q^m, nor does it for the few / theta fewer of m - j.
_SATURATED_EXPONENT = 80.0
_MAX_RANGE = 2**32


def displacement_law(
    num_items: int, theta: float, place: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the law of pi[place] - place under the Mallows model of Kendall's distance.

    Parameters
    ----------
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf].
    place : int
        In [0, n - 1].

    Returns
    -------
    displacements : ndarray of int64
        Consecutive numbers; what is left out has probability below 1e-21.
    probabilities : ndarray of float64
        To nearest, relatively within about n 1e-15.

    Raises
    ------
    ParameterError
        If an argument is out of range, or more than 5e8 terms would be needed.

    Notes
    -----
    Source: this module's docstring. Cost: O(n + W^2) for W = min(n, 50 / theta), about 30 ns a
    term; memory O(n).

    Examples
    --------
    >>> displacement_law(2, math.log(3), 0)  # swapped with probability 1/4
    (array([0, 1]), array([0.75, 0.25]))
    """
    n, theta = require_num_items(num_items), require_theta(theta)
    if not 0 <= place < n:
        raise ParameterError(f"place = {place} is not in [0, {n - 1}]: give a place counted from 0")
    if theta == 0.0:
        return np.arange(-place, n - place), np.full(n, 1.0 / n)
    # Later smaller items are v_i of the Lehmer code, truncated geometric; earlier larger likewise.
    width = int(min(_TAIL_EXPONENT / theta, _MAX_RANGE)) + 1
    most_left, most_right = min(place, width), min(n - 1 - place, width)
    _require_feasible(n, theta, (most_left + 1) * (most_right + 1))
    factorials = _log_q_factorials(n, theta)
    before, after = place, n - 1 - place
    r = np.arange(most_right + 1)
    after_words = factorials[after] - factorials[r] - factorials[after - r]
    probabilities = np.zeros(most_left + most_right + 1)
    for left in range(most_left + 1):
        item = place - left + r
        before_words = factorials[before] - factorials[left] - factorials[before - left]
        others = factorials[item] + factorials[n - 1 - item] - factorials[n]
        # Displacement r - left is entry r - left + most_left.
        start = most_left - left
        probabilities[start : start + r.size] += np.exp(
            before_words + after_words + others - _times(theta, r + left + r * left)
        )
    return np.arange(-most_left, most_right + 1), probabilities


def mean_displacement(num_items: int, theta: float) -> float | None:
    """Return the mean of abs(pi[i] - i), over the law and over the places i.

    Parameters
    ----------
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf].

    Returns
    -------
    float or None
        To nearest, relatively within about 1e-9; None if more than 5e8 terms would be needed,
        as for n = 1e7 and theta = 1e-6.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Notes
    -----
    Source: this module's docstring, "all places". Cost: O(W^1.5) for W = min(n, 80 / theta), 2 to 4
    ns a term.

    Examples
    --------
    >>> mean_displacement(3, 0.0)  # (n^2 - 1) / (3 n)
    0.888...
    >>> mean_displacement(2, math.log(3))
    0.25
    """
    n, theta = require_num_items(num_items), require_theta(theta)
    if theta == 0.0:
        return (n - 1.0) * (n + 1.0) / (3.0 * n)
    if n == 1 or math.isinf(theta):
        return 0.0
    saturated = int(min(_SATURATED_EXPONENT / theta, _MAX_RANGE)) + 1
    last = min(n // 2, saturated)
    # Some 20 standard deviations of N_k, which are below the square root of either number.
    if last * (20.0 * math.sqrt(min(n, 1.0 / theta)) + 10.0) > MAX_TERMS:
        return None
    from shuffledp.groups.permutations import kendall_displacement_kernels as kernels

    sizes = np.arange(min(n, 2 * saturated) + 1, dtype=np.float64)
    brackets = np.expm1(-_times(theta, sizes)) / math.expm1(-theta)
    j = np.arange(1, last + 1)
    rises = np.zeros(last + 1)
    rises[1:] = np.exp(-_times(theta, 2 * j - 1)) / brackets[1 : last + 1] ** 2
    means = kernels.mean_crossings(n, last, brackets, rises)
    # Gap n - k is crossed like gap k, and those that are far from both ends like one another.
    if last == n // 2:
        total = 2.0 * math.fsum(means) - (means[-1] if n % 2 == 0 else 0.0)
    else:
        total = 2.0 * math.fsum(means) + (n - 1 - 2 * last) * means[-1]
    return float(2.0 * total / n)


def _require_feasible(num_items: int, theta: float, terms: int) -> None:
    """Raise `ParameterError` if a sum is too long."""
    if terms > MAX_TERMS:
        raise ParameterError(
            f"num_items = {num_items} and theta = {theta} need {terms:.1e} terms, above "
            f"{MAX_TERMS:.0e}: draw permutations and count instead, or raise theta"
        )


def _log_q_factorials(num_items: int, theta: float) -> NDArray[np.float64]:
    """Return ln [m]! for m = 0, ..., n, theta > 0."""
    m = np.arange(1, num_items + 1, dtype=np.float64)
    shares = np.expm1(-_times(theta, m - 1.0)) / math.expm1(-theta)
    logs = np.zeros(num_items + 1)
    np.cumsum(np.log1p(math.exp(-theta) * shares), out=logs[1:])
    return logs


def _times(theta: float, counts: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Return theta times each count, without 0 inf, nor what is too large for a float."""
    return min(theta, 1e6) * counts.astype(np.float64)
