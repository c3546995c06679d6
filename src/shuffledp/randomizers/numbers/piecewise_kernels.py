"""Compiled loop of the piecewise mechanism."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit


@njit(cache=True, nogil=True)
def randomize_block(
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
