"""The Mallows model of Kendall's distance: inversions, drawn exactly through the Lehmer code.

The Lehmer code of pi counts, for each place i, the later places with smaller items: v_i in
{0, ..., n - 1 - i}. Permutations and codes are in bijection, and the inversions are the sum of the
v_i. So under P(pi) proportional to q^inversions, q = e^-theta, the v_i are independent, and v_i is
a truncated geometric variate: P(v_i = j) is proportional to q^j.

Two exact ways to draw it, m = n - i being the number of values (U uniform in [0, 1)):

- theta m > 1: G = floor(-ln U / theta) is geometric, P(G >= j) = q^j, and G mod m has the law
  (1 - q) q^j (1 + q^m + q^2m + ...), which is the truncated one.
- theta m <= 1: a uniform j below m is accepted with probability q^j >= 1/e; nothing is lost
  however small theta is.

*How far items move.* Write q = e^-theta, [m] = (1 - q^m) / (1 - q), [m]! = [1] [2] ... [m], and [a,
b] for the Gaussian binomial [a]! / ([b]! [a - b]!), which is the sum of q^inversions over words of
b and a - b equal letters.

Let l of the i earlier places hold larger items than place i, and r of the
n - 1 - i later places smaller ones; then pi[i] = i - l + r =: a, so that the displacement is r - l.
The inversions are: r + l with place i; l r between the l and the r places; those of the word that
says which places hold small items, before i (weight [i, l]) and after it ([n - 1 - i, r]); and
those among the a small items and among the n - 1 - a large ones ([a]! and [n - 1 - a]!). So

    P(r, l) = q^(r + l + r l) [i, l] [n - 1 - i, r] [a]! [n - 1 - a]! / [n]!.
"""

import math
from fractions import Fraction

import numpy as np

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.exact_draws import (
    WORD_BITS,
    LazyUniform,
    draw_exponential_above,
    draw_geometric,
)
from shuffledp.groups.permutations import LIBRARY_MARGIN, require_num_items, require_theta

#: Terms that `displacement_law` adds up at most: a few seconds' work.
MAX_TERMS = 5 * 10**8
# A truncated geometric variate exceeds 50 / theta with probability below e^-50 = 2e-22.
_TAIL_EXPONENT = 50.0
_MAX_RANGE = 2**32


def displacement_law(num_items: int, theta: float, place: int) -> tuple[Integers, Floats]:
    """Return consecutive displacements pi[place] - place and their probabilities.

    What is left out has probability below 1e-21. `ParameterError` if more than 5e8 terms would be
    needed. Cost: O(n + W^2) for W = min(n, 50 / theta), about 30 ns a term; memory O(n).
    """
    n, theta = require_num_items(num_items), require_theta(theta)
    if not 0 <= place < n:
        raise ParameterError(f"place = {place} is not in [0, {n - 1}]: give a place counted from 0")
    if theta == 0.0:
        return np.arange(-place, n - place), np.full(n, 1.0 / n)
    # Later smaller items are v_i of the Lehmer code, truncated geometric; earlier larger likewise.
    width = int(min(_TAIL_EXPONENT / theta, _MAX_RANGE)) + 1
    most_left, most_right = min(place, width), min(n - 1 - place, width)
    terms = (most_left + 1) * (most_right + 1)
    if terms > MAX_TERMS:
        raise ParameterError(
            f"num_items = {n} and theta = {theta} need {terms:.1e} terms, above {MAX_TERMS:.0e}: "
            "draw permutations and count instead, or raise theta"
        )
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


def _log_q_factorials(num_items: int, theta: float) -> Floats:
    """Return ln [m]! for m = 0, ..., n, theta > 0."""
    m = np.arange(1, num_items + 1, dtype=np.float64)
    shares = np.expm1(-_times(theta, m - 1.0)) / math.expm1(-theta)
    logs = np.zeros(num_items + 1)
    np.cumsum(np.log1p(math.exp(-theta) * shares), out=logs[1:])
    return logs


def _times(theta: float, counts: Floats | Integers) -> Floats:
    """Return theta times each count, without 0 inf, nor what is too large for a float."""
    return min(theta, 1e6) * counts.astype(np.float64)


_WORDS_AT_A_TIME = 1 << 15
_HALF_BITS = 32


def draw_lehmer_code(
    num_items: int, theta: float, entropy: Entropy, *, margin: float = LIBRARY_MARGIN
) -> Integers:
    """Draw the Lehmer code of a permutation, exactly, for theta in (0, inf).

    ``margin`` is the error that floats may have; larger is slower and gives the same code, with
    ``inf`` every entry is settled with decimals. Cost: 30 to 60 ns an entry.
    """
    from shuffledp.groups import shuffler_kernels as kernels

    code = np.empty(num_items, dtype=np.int64)
    place = 0
    while place < num_items:
        words = entropy.words(min(_WORDS_AT_A_TIME, num_items - place))
        while words.size and place < num_items:
            place, used, is_undecided = kernels.draw_code(code, place, theta, margin, words)
            if is_undecided:
                value = settle_entry(int(words[used - 1]), num_items - place, theta, entropy)
                if value is not None:
                    code[place] = value
                    place += 1
            words = words[used:]
    return code


def settle_entry(word: int, bound: int, theta: float, entropy: Entropy) -> int | None:
    """Return the entry below ``bound`` of an undecided word, exactly; None if it is refused."""
    if theta * bound > 1.0:  # as the compiled loop asks
        uniform = LazyUniform(prefix=word, num_bits=WORD_BITS, entropy=entropy)
        return draw_geometric(uniform, theta) % bound
    value, remainder = divmod((word >> _HALF_BITS) * bound, 1 << _HALF_BITS)
    if remainder < (1 << _HALF_BITS) % bound:
        return None
    uniform = LazyUniform(
        prefix=word & ((1 << _HALF_BITS) - 1), num_bits=_HALF_BITS, entropy=entropy
    )
    return value if draw_exponential_above(uniform, Fraction(theta) * value) else None


def permutation_of_code(code: Integers) -> Integers:
    """Return the permutation: ``pi[i]`` has ``code[i]`` smaller items among those left.

    Cost: O(n log n), about 0.1 microseconds an item; memory: 6 bytes an item beside the result.
    """
    from shuffledp.groups import shuffler_kernels as kernels

    pi = np.empty_like(code)
    kernels.decode(code, pi)
    return pi
