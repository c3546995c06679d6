"""Reports that are vectors: from the ball to the sphere, normal numbers, draws, checks and sums.

A user replaces their vector in the ball by a point of the sphere whose expectation is that vector
before the randomizer sees it, so it costs no privacy.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.reports import Sums, read_only
from shuffledp.randomizers.checks import plain_array

# The measures of caps have been compared with many digits up to here.
_LARGEST_DIMENSION = 10**6
_NORM_BOUND_RANGE = (1e-100, 1e100)  # squares stay far from overflow and underflow
# A norm may exceed its bound by this much of it: enough for clipping in float64. Vectors that come
# in a shorter type were clipped in that type, and may exceed it by some of its last places.
_TOLERANCE = 1e-9
_TOLERANCE_IN_LAST_PLACES = 8
# Shorter vectors, relative to the bound, count as zero: their squares would underflow.
_SHORTEST = 1e-150


def require_dimension(value: SupportsIndex) -> int:
    """Return ``value`` as an int in [2, 10^6], else raise `ParameterError`."""
    dimension = require_at_least("dimension", value, 1)
    if dimension == 1:
        raise ParameterError(
            "dimension = 1 is not in [2, 10^6]: for single numbers use the randomizer of Duchi et "
            "al., which is the best at small epsilon0"
        )
    if dimension > _LARGEST_DIMENSION:
        raise ParameterError(
            f"dimension = {dimension} is not in [2, 10^6]: project the vectors to fewer dimensions"
        )
    return dimension


def require_norm_bound(value: SupportsFloat) -> float:
    """Return ``value`` as a float in [1e-100, 1e100], else raise `ParameterError`."""
    norm_bound = require_positive("norm_bound", value)
    low, high = _NORM_BOUND_RANGE
    if not low <= norm_bound <= high:
        raise ParameterError(
            f"norm_bound = {norm_bound} is not in [{low:.0e}, {high:.0e}]: use another unit"
        )
    return norm_bound


def require_vectors(values: NDArray[Any], dimension: int) -> NDArray[Any]:
    """Return ``values`` as an array of numbers of shape (n, d), else raise `ParameterError`."""
    array = plain_array(values)
    if array.shape == (0,):
        array = array.reshape(0, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ParameterError(
            f"values has shape {array.shape}: give one vector a user, shape (n, {dimension})"
        )
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"values has dtype {array.dtype}: give real numbers")
    return array


def to_sphere(
    values: NDArray[Any], *, norm_bound: float, entropy: Entropy, first_row: int = 0
) -> NDArray[np.float64]:
    """Return a random unit vector for each value, whose expectation is value / norm_bound.

    Norms that exceed the bound by round-off, 1e-9 of it (1e-6 in float32), are taken for it; one
    that is too long, NaN or infinite is a `DomainError`, with ``first_row`` the number of the first
    row. With r = norm(v) / norm_bound and u = v / norm(v) the point is u with probability (1 + r) /
    2, and else -u, so that its expectation is r u. For v = 0 the direction u is itself random.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        directions: NDArray[np.float64] = np.multiply(values, 1.0 / norm_bound, dtype=np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    is_wrong = ~(norms <= 1.0 + _tolerance(values.dtype))  # so that NaN is wrong too
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        _refuse(values[row], row + first_row, float(norms[row]) * norm_bound, norm_bound)
    is_zero = norms < _SHORTEST
    if is_zero.any():
        shape = (int(is_zero.sum()), directions.shape[1])
        random = standard_normals(shape[0] * shape[1], entropy).reshape(shape)
        directions[is_zero] = random / np.linalg.norm(random, axis=1, keepdims=True)
    lengths = np.where(is_zero, 1.0, norms)
    is_kept = uniforms(entropy.words(norms.size)) < (1.0 + np.where(is_zero, 0.0, norms)) / 2.0
    directions *= (1.0 / np.where(is_kept, lengths, -lengths))[:, None]
    return directions


def _tolerance(dtype: np.dtype[Any]) -> float:
    """Return by how much of the bound a norm may exceed it."""
    if not np.issubdtype(dtype, np.floating):
        return _TOLERANCE
    return max(_TOLERANCE, _TOLERANCE_IN_LAST_PLACES * float(np.finfo(dtype).eps))


def _refuse(value: NDArray[Any], row: int, norm: float, norm_bound: float) -> None:
    """Raise `DomainError` for a vector outside the ball."""
    if not np.isfinite(value).all():
        raise DomainError(
            f"values[{row}] holds NaN or infinity: drop that user, or put zeros in its place"
        )
    raise DomainError(
        f"values[{row}] has the norm {norm:.12g}, which is not in [0, norm_bound = "
        f"{norm_bound:.12g}]: clip it to the ball, or raise norm_bound"
    )


_NUM_LAYERS = 256
# 256 KiB of words at a time stay in the second-level cache, with room for what is made of them.
_WORD_BUFFER = 2**15


def uniforms(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the upper 52 bits of each word as odd multiples of 2^-53: never 0, never 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def standard_normals(count: int, entropy: Entropy) -> NDArray[np.float64]:
    """Return independent standard normals: a random sign, layer and 52 more bits each, at most 13.

    Source: the ziggurat of Marsaglia, Tsang, Journal of Statistical Software 5(8), 2000, with an
    exponential majorant of the tail as a part of the lowest layer. That makes every attempt the
    same trial of at most three words; about 1.02 are taken for each. The law is that of real
    numbers up to round-off of a few units in 10^16. Cost: 3 to 4 ns a number.
    """
    from shuffledp.randomizers import vector_kernels as kernels

    widths, heights = layers()
    out = np.empty(count, dtype=np.float64)
    words = np.empty(min(_WORD_BUFFER, 2 * count + kernels.WORDS_PER_ATTEMPT), dtype=np.uint64)
    filled = 0
    while filled < count:
        left = count - filled
        # A little above the mean number, so that most calls need one round at their end.
        drawn = words[: min(words.size, left + left // 32 + 4 * kernels.WORDS_PER_ATTEMPT)]
        entropy.fill(drawn)
        filled += kernels.fill_normals(drawn, widths, heights, out[filled:])
    return out


@lru_cache(maxsize=1)
def layers() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return widths and heights of 256 layers of equal area that cover exp(-x^2 / 2) = f(x).

    Layer i >= 1 is the rectangle of width ``widths[i]`` between heights f(widths[i]) and
    f(widths[i + 1]). Layer 0, below f(r) with r = ``widths[1]``, is a rectangle of width r
    and the tail majorant f(r) exp(-r (x - r)), whose area f(r) / r makes it as large as a
    rectangle of width ``widths[0]`` = r + 1 / r. Heights are f(widths), with 1 at the top.
    """
    low, high = 3.0, 4.0
    while (middle := (low + high) / 2) not in (low, high):
        # With too small an r the layers are too large, and reach the top too early.
        if _stack(middle)[-1] > 0.0:
            high = middle
        else:
            low = middle
    widths = np.array([*_stack(high)[:-1], 0.0])
    heights = np.exp(-0.5 * widths**2)
    return read_only(widths), read_only(heights)


def _stack(r: float) -> list[float]:
    """Return the widths of layers of the area of layer 0; 0 where they would pass the top."""
    base = math.exp(-0.5 * r * r)
    area = base * (r + 1.0 / r)
    widths = [r + 1.0 / r, r]
    while len(widths) <= _NUM_LAYERS:
        height = math.exp(-0.5 * widths[-1] ** 2) + area / widths[-1] if widths[-1] > 0.0 else 1.0
        widths.append(math.sqrt(-2.0 * math.log(height)) if height < 1.0 else 0.0)
    return widths


# Coordinates drawn or checked together: half a megabyte in each of the two arrays at work.
_CELLS_AT_A_TIME = 2**16
# Norms of float32 unit vectors are off by 1e-7 at most.
_UNIT_TOLERANCE = 1e-3
Lengths = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Of each report: its component along the input, and its size across it."""


def randomize_vectors(
    values: NDArray[Any],
    *,
    dimension: int,
    norm_bound: float,
    entropy: Entropy,
    draw_lengths: Callable[[int, Entropy], Lengths],
) -> NDArray[np.float32]:
    """Return along x + across g for each value, with x on the sphere standing for the value.

    g is a uniform direction orthogonal to x; ``draw_lengths`` draws "along" and "across" for a
    number of reports. Computed in float64 and rounded once, to float32.
    """
    from shuffledp.randomizers.vector_kernels import turn_to_directions

    vectors = require_vectors(values, dimension)
    num_users = vectors.shape[0]
    out = np.empty((num_users, dimension), dtype=np.float32)
    step = _rows_at_a_time(dimension)
    for start in range(0, num_users, step):
        directions = to_sphere(
            vectors[start : start + step], norm_bound=norm_bound, entropy=entropy, first_row=start
        )
        num_rows = directions.shape[0]
        along, across = draw_lengths(num_rows, entropy)
        normals = standard_normals(num_rows * (dimension - 1), entropy)
        turn_to_directions(
            directions,
            along,
            across,
            normals.reshape(num_rows, dimension - 1),
            out[start : start + step],
        )
    return out


def require_unit_norms(rows: NDArray[np.float32], *, first_row: int = 0) -> None:
    """Raise `DomainError` unless all rows are unit vectors, rounded to float32."""
    from shuffledp.randomizers.vector_kernels import squared_norms

    squares = np.empty(rows.shape[0])
    squared_norms(rows, squares)
    norms = np.sqrt(squares)
    is_wrong = ~(np.abs(norms - 1.0) <= _UNIT_TOLERANCE)  # NaN is, too
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise DomainError(
            f"report {row + first_row} has the norm {norms[row]:.6g}, which this law never gives: "
            "it is corrupt or forged; drop it and sum again"
        )


def sum_vectors(rows: NDArray[np.float32], *, fingerprint: str) -> Sums:
    """Return the sums of the rows and of their squares, without a copy of them all.

    In double precision: relative round-off at most n 2^-53 of the sum of magnitudes.
    """
    from shuffledp.randomizers.vector_kernels import add_rows

    num_reports, dimension = rows.shape
    total = np.zeros(dimension)
    total_of_squares = np.zeros(dimension)
    step = _rows_at_a_time(dimension)
    for start in range(0, num_reports, step):
        block = rows[start : start + step]
        require_unit_norms(block, first_row=start)
        add_rows(block, total, total_of_squares)
    return Sums(
        total=total,
        total_of_squares=total_of_squares,
        num_reports=num_reports,
        fingerprint=fingerprint,
    )


def _rows_at_a_time(dimension: int) -> int:
    """Return the number of rows of a block."""
    return max(1, _CELLS_AT_A_TIME // dimension)
