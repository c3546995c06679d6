"""Vectors: what is checked of them, from the ball to the sphere, and normal numbers.

A user replaces their vector in the ball by a point of the sphere whose expectation is that vector
before the randomizer sees it, so it costs no privacy.
"""

import math
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Words
from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
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
    if not 2 <= dimension <= _LARGEST_DIMENSION:
        advice = "project the vectors to fewer dimensions"
        if dimension == 1:
            advice = "for one number take the randomizer of Duchi et al., best at small epsilon0"
        raise ParameterError(f"dimension = {dimension} is not in [2, 10^6]: {advice}")
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
) -> Floats:
    """Return a random unit vector for each value, whose expectation is value / norm_bound.

    Norms that exceed the bound by round-off, 1e-9 of it (1e-6 in float32), are taken for it; one
    that is too long, NaN or infinite is a `DomainError`, with ``first_row`` the number of the first
    row. With r = norm(v) / norm_bound and u = v / norm(v) the point is u with probability (1 + r) /
    2, and else -u, so that its expectation is r u. For v = 0 the direction u is itself random.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        directions: Floats = np.multiply(values, 1.0 / norm_bound, dtype=np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    tolerance = _TOLERANCE
    if np.issubdtype(values.dtype, np.floating):
        tolerance = max(tolerance, _TOLERANCE_IN_LAST_PLACES * float(np.finfo(values.dtype).eps))
    is_wrong = ~(norms <= 1.0 + tolerance)  # so that NaN is wrong too
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        if not np.isfinite(values[row]).all():
            fault = "holds NaN or infinity: drop that user, or put zeros in its place"
        else:
            fault = (
                f"has the norm {norms[row] * norm_bound:.12g}, which is not in [0, norm_bound = "
                f"{norm_bound:.12g}]: clip it to the ball, or raise norm_bound"
            )
        raise DomainError(f"values[{row + first_row}] {fault}")
    is_zero = norms < _SHORTEST
    if is_zero.any():
        shape = (int(is_zero.sum()), directions.shape[1])
        random = standard_normals(shape[0] * shape[1], entropy).reshape(shape)
        directions[is_zero] = random / np.linalg.norm(random, axis=1, keepdims=True)
    lengths = np.where(is_zero, 1.0, norms)
    is_kept = uniforms(entropy.words(norms.size)) < (1.0 + np.where(is_zero, 0.0, norms)) / 2.0
    directions *= (1.0 / np.where(is_kept, lengths, -lengths))[:, None]
    return directions


def uniforms(words: Words) -> Floats:
    """Return the upper 52 bits of each word as odd multiples of 2^-53: never 0, never 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def standard_normals(count: int, entropy: Entropy) -> Floats:
    """Return independent standard normals, one word each, at most 8.6.

    Source: Box, Muller, "A note on the generation of random normal deviates", Annals of
    Mathematical Statistics 29, 1958. Exact over real numbers up to round-off of a few units
    in 10^16.
    """
    half = -(-count // 2)
    words = entropy.words(2 * half)
    lengths = np.sqrt(-2.0 * np.log(uniforms(words[:half])))
    angles = 2.0 * math.pi * uniforms(words[half:])
    return np.concatenate([lengths * np.cos(angles), lengths * np.sin(angles)])[:count]
