"""Compiled loops of the randomizers of numbers: rounding, drawing and summing.

Every function of the discrete Laplace law, which is exact and uses whole numbers only, takes the
words and the position of the next one, and returns its result and the position after the last word
used. Where the words run out the result is ``OUT_OF_WORDS``: the caller then draws that report
again *from its first word on*, with more words behind. So a report is a function of the stream of
words alone. Dropping the words of an unfinished report instead would favour reports that need few
words.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit


@njit(cache=True, nogil=True)
def round_block(
    values: NDArray[np.float64],
    words: NDArray[np.uint64],
    low: float,
    width: float,
    num_steps: float,
    out: NDArray[np.int32],
) -> None:
    """Write the grid point of value i: its position rounded down, or up with the chance left over.

    The caller has checked that the values lie in the range. Then the position lies in
    [0, num_steps], since each operation on floats is monotone, and the point does too: at the
    upper end nothing is left over. Distances below 2^-90 widths lead to the point 0 anyway; taken
    for 0, they do not lead to subnormal numbers, which take some processors longer than others.
    """
    least = width * 2.0**-90
    zero = np.float64(0.0)  # of the type of a distance: uncompiled, other types take other times
    for i in range(values.size):
        distance = values[i] - low
        position = (distance if distance >= least else zero) / width * num_steps
        below = np.int32(position)
        # At most 1 - 2^-53, so that the product is below 2^64; and it is exact.
        left_over = position - below
        out[i] = below + np.int32(words[i] < np.uint64(left_over * 18446744073709551616.0))


@njit(cache=True, nogil=True)
def sum_scores(codes: NDArray[Any], centre: int) -> tuple[np.int64, float]:
    """Return the sums of 2 code - centre and of its square, for at most 2^29 codes of 32 bits.

    A score is below 2^33 in size, so that the first sum is exact. The second is exact up to 2^53,
    and beyond that each addition is rounded to the nearest float.
    """
    total = np.int64(0)
    total_of_squares = 0.0
    for i in range(codes.size):
        score = 2 * np.int64(codes[i]) - centre
        total += score
        total_of_squares += np.float64(score) * np.float64(score)
    return total, total_of_squares


@njit(cache=True, nogil=True)
def randomize_piecewise(
    points: NDArray[np.int32],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    high_threshold: np.uint64,
    num_steps: np.uint64,
    window: np.uint64,
    out: NDArray[Any],
) -> None:
    """Write report i from grid point i and word i.

    A word w below m T makes the output number floor(w / T) of the m that are outside the window;
    any other word makes output number floor((w - m T) / H) of the window's W. The two cases differ
    in a divisor and in what is added, which compile to selections: no processor could predict a
    branch on the word.
    """
    border = num_steps * threshold
    low_reciprocal = 1.0 / np.float64(threshold)
    high_reciprocal = 1.0 / np.float64(high_threshold)
    zero = np.uint64(0)
    one = np.uint64(1)
    for i in range(points.size):
        word = words[i]
        is_inside = word >= border
        rest = word - (border if is_inside else zero)
        divisor = high_threshold if is_inside else threshold
        last = (window if is_inside else num_steps) - one
        reciprocal = high_reciprocal if is_inside else low_reciprocal
        # A product in place of a 64-bit division. Below 2^32 its error is under 1e-5, so that the
        # whole part is off by at most one, and the exact products below put that right.
        step = np.uint64(min(np.float64(rest) * reciprocal, np.float64(last)))
        product = step * divisor  # at most m T or W H: no overflow
        if product > rest:
            step -= one
        elif step < last and rest - product >= divisor:
            step += one
        point = np.uint64(points[i])
        shift = point if is_inside else (zero if step < point else window)
        out[i] = step + shift


OUT_OF_WORDS = -1
_UNIT_BITS = 52  # twin of laplace._UNIT_BITS
_LARGEST_NUM_UNITS = 128  # twin of laplace._LARGEST_NUM_UNITS
_UNIT = np.uint64(1 << _UNIT_BITS)
_SHIFT = np.uint64(64 - _UNIT_BITS)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True)
def _one_in(words: NDArray[np.uint64], position: int, k: int) -> tuple[int, int]:
    """Draw 1 with probability exactly 1 / k, else 0: whether a uniform number below k is 0.

    Words beyond the last whole multiple of k are rejected.
    """
    divisor = np.uint64(k)
    last = _ALL - (_ALL % divisor + np.uint64(1)) % divisor  # of the whole multiples of k
    while position < words.size:
        word = words[position]
        position += 1
        if word <= last:
            return (1 if word % divisor == np.uint64(0) else 0), position
    return OUT_OF_WORDS, position


@njit(cache=True, nogil=True)
def _exp_minus(words: NDArray[np.uint64], position: int, numerator: np.uint64) -> tuple[int, int]:
    """Draw 1 with probability exactly exp(-x), x = numerator / 2^52 in [0, 1], else 0.

    Canonne, Kamath, Steinke, Algorithm 1: the first k where a coin of probability x / k fails is
    odd with probability 1 - x + x^2 / 2! - x^3 / 3! + ... Each coin is one of probability x, then
    one of probability 1 / k.
    """
    k = 1
    while True:
        if numerator < _UNIT:  # else the coin of probability x = 1 needs no word
            if position >= words.size:
                return OUT_OF_WORDS, position
            word = words[position]
            position += 1
            if word >> _SHIFT >= numerator:
                return k & 1, position
        if k > 1:
            outcome, position = _one_in(words, position, k)
            if outcome != 1:
                return (outcome if outcome == OUT_OF_WORDS else k & 1), position
        k += 1


@njit(cache=True, nogil=True)
def _discrete_laplace(
    words: NDArray[np.uint64], position: int, rate: np.uint64
) -> tuple[int, np.int64, int]:
    """Draw z with probability proportional to exp(-abs(z) rate / 2^52); the first result is 1.

    Canonne, Kamath, Steinke, Algorithm 2, with t = 2^52, s = rate. The number of whole units v is
    cut off at 128, which the caller allows for.
    """
    while True:
        if position >= words.size:
            return OUT_OF_WORDS, np.int64(0), position
        # Its top 52 bits are the fraction u, its lowest is the sign: together uniform.
        word = words[position]
        position += 1
        fraction = word >> _SHIFT
        outcome, position = _exp_minus(words, position, fraction)
        if outcome == OUT_OF_WORDS:
            return OUT_OF_WORDS, np.int64(0), position
        if outcome == 0:
            continue
        num_units = 0
        while num_units < _LARGEST_NUM_UNITS:
            outcome, position = _exp_minus(words, position, _UNIT)
            if outcome == OUT_OF_WORDS:
                return OUT_OF_WORDS, np.int64(0), position
            if outcome == 0:
                break
            num_units += 1
        size = np.int64((fraction + _UNIT * np.uint64(num_units)) // rate)
        is_negative = (word & np.uint64(1)) == np.uint64(1)
        if is_negative and size == 0:
            continue  # zero would count twice
        return 1, (-size if is_negative else size), position


@njit(cache=True, nogil=True)
def add_noise(
    points: NDArray[np.int32],
    words: NDArray[np.uint64],
    rate: np.uint64,
    smallest: np.int64,
    largest: np.int64,
    out: NDArray[np.int32],
) -> tuple[int, int]:
    """Write grid points with noise, clamped to [smallest, largest], until the words run out.

    Returns the number of reports written, and the number of words that they used.
    """
    used = 0
    for i in range(points.size):
        outcome, noise, position = _discrete_laplace(words, used, rate)
        if outcome == OUT_OF_WORDS:
            return i, used
        used = position
        out[i] = min(max(np.int64(points[i]) + noise, smallest), largest)
    return points.size, used
