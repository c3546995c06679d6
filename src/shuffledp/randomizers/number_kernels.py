"""Compiled loops of the randomizers of numbers: rounding, drawing and summing."""

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
