"""Compiled loops of vectors: normal numbers, turning reports to their inputs, and summing them."""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.compiled import njit

# An attempt takes at most this many words, so none begins with fewer.
WORDS_PER_ATTEMPT = 3
_LAYER_BITS = np.uint64(255)


@njit(cache=True, nogil=True)
def _uniform(word: np.uint64) -> float:
    """Return the upper 52 bits of a word as an odd multiple of 2^-53 in (0, 1)."""
    return (np.float64(np.int64(word >> np.uint64(12))) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True)
def _signed_uniform(word: np.uint64) -> float:
    """Return the upper 53 bits of a word, sign first, as an odd multiple of 2^-53 in (-1, 1)."""
    return (np.float64(np.int64(word) >> np.int64(11)) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True)
def fill_normals(
    words: NDArray[np.uint64],
    widths: NDArray[np.float64],
    heights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int:
    """Fill ``out`` with standard normals from the front, and return how many there are.

    Rejection from `vector_reports.layers`: a point uniform on a random layer is kept if it lies
    below the density. Attempts are independent of each other, and none begins unless it has
    all the words that it may need; so stopping when the words run out favours nothing.
    """
    used = 0
    filled = 0
    while filled < out.size and words.size - used >= WORDS_PER_ATTEMPT:
        word = words[used]
        used += 1
        layer = np.int64(word & _LAYER_BITS)
        # The sign comes with the fraction: a branch on a random bit would cost more than the rest.
        point = _signed_uniform(word) * widths[layer]
        x = abs(point)
        if x >= widths[layer + 1]:
            if layer == 0:
                # The tail's majorant f(r) exp(-r (x - r)); f over it is exp(-(x - r)^2 / 2).
                excess = -math.log(_uniform(words[used])) / widths[1]
                x = widths[1] + excess
                kept = _uniform(words[used + 1]) < math.exp(-0.5 * excess * excess)
                used += 2
            else:
                rise = heights[layer + 1] - heights[layer]
                kept = heights[layer] + _uniform(words[used]) * rise < math.exp(-0.5 * x * x)
                used += 1
            if not kept:
                continue
            point = math.copysign(x, point)
        out[filled] = point
        filled += 1
    return filled


@njit(cache=True, nogil=True)
def turn_to_directions(
    directions: NDArray[np.float64],
    along: NDArray[np.float64],
    across: NDArray[np.float64],
    normals: NDArray[np.float64],
    out: NDArray[np.float32],
) -> None:
    """Write along[i] x + across[i] g for each direction x, with g from normals, orthogonal to x.

    g is row i of ``normals``, shape (n, d - 1), scaled to length 1 and turned into the space
    orthogonal to x. The turn is the reflection I - 2 u u^T / |u|^2 with
    u = e1 + s x, s the sign of the first coordinate of x. It takes e1 to -s x, and |u| >= sqrt(2),
    so nothing cancels; where projecting g would lose digits in few dimensions.
    """
    for i in range(directions.shape[0]):
        first_of_x = directions[i, 0]
        rest_of_x = directions[i, 1:]
        g = normals[i]
        sign = 1.0 if first_of_x >= 0.0 else -1.0
        length = 1.0 + abs(first_of_x)  # |u|^2 / 2, and the first coordinate of u
        # Two sums of each kind, so that an addition need not wait for the one before.
        dot = other_dot = square = other_square = 0.0
        half = g.size // 2
        for j in range(half):
            a = g[j]
            b = g[half + j]
            square += a * a
            other_square += b * b
            dot += a * rest_of_x[j]
            other_dot += b * rest_of_x[half + j]
        if 2 * half < g.size:
            square += g[2 * half] * g[2 * half]
            dot += g[2 * half] * rest_of_x[2 * half]
        scale = across[i] / math.sqrt(square + other_square)
        first = -sign * along[i]
        factor = first + scale * sign * (dot + other_dot) / length
        out[i, 0] = first - factor * length
        rest_of_row = out[i, 1:]
        factor *= sign
        for j in range(g.size):
            rest_of_row[j] = scale * g[j] - factor * rest_of_x[j]


@njit(cache=True, nogil=True)
def add_rows(
    rows: NDArray[np.float32],
    total: NDArray[np.float64],
    total_of_squares: NDArray[np.float64],
) -> None:
    """Add each coordinate and its square over the rows, in double precision."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for j in range(row.size):
            value = np.float64(row[j])
            total[j] += value
            total_of_squares[j] += value * value


@njit(cache=True, nogil=True)
def squared_norms(rows: NDArray[np.float32], out: NDArray[np.float64]) -> None:
    """Write the squared norm of each row, in double precision; four sums at once."""
    quarter = rows.shape[1] // 4
    for i in range(rows.shape[0]):
        row = rows[i]
        a = b = c = d = 0.0
        for j in range(quarter):
            a += np.float64(row[j]) ** 2
            b += np.float64(row[quarter + j]) ** 2
            c += np.float64(row[2 * quarter + j]) ** 2
            d += np.float64(row[3 * quarter + j]) ** 2
        for j in range(4 * quarter, row.size):
            a += np.float64(row[j]) ** 2
        out[i] = (a + b) + (c + d)
