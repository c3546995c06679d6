"""Compiled loops of `coarse_lattice`: B-splines that are halved near ties."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _neighbours(cell: int, offsets: np.ndarray, shape: np.ndarray, out: np.ndarray) -> None:
    """Write the flat places of a cell's neighbours; axes wrap around."""
    place = np.empty(shape.size, dtype=np.int64)
    for axis in range(shape.size - 1, -1, -1):
        place[axis] = cell % shape[axis]
        cell //= shape[axis]
    for i in range(offsets.shape[0]):
        flat = 0
        for axis in range(shape.size):
            flat = flat * shape[axis] + (place[axis] + offsets[i, axis]) % shape[axis]
        out[i] = flat


@njit(cache=True, nogil=True)
def _gain(found: np.ndarray, largest: np.ndarray, near: np.ndarray, weights: np.ndarray) -> float:
    """Return by how much one refined coefficient's maximum is below the mean of the maxima."""
    coarse, fine = 0.0, 0.0
    for x in range(found.shape[0]):
        value = 0.0
        for j in range(near.size):
            value += weights[j] * found[x, near[j]]
        fine = max(fine, value)
    for j in range(near.size):
        coarse += weights[j] * largest[near[j]]
    return max(coarse - fine, 0.0)


@njit(cache=True, nogil=True)
def refinement_gain(
    found: np.ndarray,
    largest: np.ndarray,
    best: np.ndarray,
    shape: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    begins: np.ndarray,
    least: float,
) -> float:
    """Return by how much the sum of the largest coefficients falls where B-splines are halved."""
    near = np.empty(weights.size, dtype=np.int64)
    around = begins[1]
    gain = 0.0
    for cell in range(largest.size):
        if np.abs(found[:, cell]).max() < least:
            continue
        _neighbours(cell, offsets[:around], shape, near)
        if np.all(best[near[:around]] == best[cell]):
            continue
        _neighbours(cell, offsets, shape, near)
        for i in range(begins.size - 1):
            part = slice(begins[i], begins[i + 1])
            gain += _gain(found, largest, near[part], weights[part])
    return gain / (begins.size - 1)
