"""Compiled sums over the nodes of the weighted maximum's contour integral."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shuffledp.leakage.loads.characteristic_function_kernels import sine_defect

# Steps by rotation between two fresh sines and cosines.
_ROTATIONS = 64


@njit(cache=True, nogil=True)
def _unit(
    units: NDArray[np.complex128],
    x: int,
    step_index: int,
    where: float,
    theta: float,
    step: complex,
) -> complex:
    """Return e^(i (where + step_index) theta) and keep it for the next, which is a rotation."""
    if step_index % _ROTATIONS == 0:
        angle = (where + step_index) * theta
        units[x] = complex(math.cos(angle), math.sin(angle))
    else:
        units[x] *= step
    return complex(units[x])


@njit(cache=True, nogil=True)
def _renew(tree: NDArray[np.complex128], leaves: int, leaf: int) -> None:
    """Renew the products above one leaf, above all (negative), or above none (0)."""
    if leaf > 0:
        inner = leaf // 2
        while inner >= 1:
            tree[inner] = tree[2 * inner] * tree[2 * inner + 1]
            inner //= 2
    elif leaf < 0:
        for inner in range(leaves - 1, 0, -1):
            tree[inner] = tree[2 * inner] * tree[2 * inner + 1]


@njit(cache=True, nogil=True)
def add_weighted_nodes(
    means: NDArray[np.float64],
    rest: float,
    shift: float,
    angle: float,
    num_nodes: int,
    masses: NDArray[np.float64],
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    starts: NDArray[np.int64],
    events: NDArray[np.int64],
    outputs: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Add the nodes' parts of Pr[all loads allowed, sum = n] times the period to ``sums``.

    Bin x has Poisson masses ``masses[offsets[x]:offsets[x + 1]]`` from the load ``firsts[x]`` up,
    of which the first ``starts[x]`` are allowed at the outset; each event allows one more load of
    the bin that it names (-1: of none). After event e the chance is added to ``sums[outputs[e]]``,
    unless that is negative. ``rest`` is the mean of the balls in no bin. A binary tree holds the
    products.
    """
    bins = means.size
    leaves = 1
    while leaves < bins:
        leaves *= 2
    tree = np.empty(2 * leaves, np.complex128)
    units = np.empty(bins, np.complex128)
    at = np.empty(bins, np.int64)
    for node in range(num_nodes):
        theta = node * angle
        share = 1.0 if node == 0 else 2.0
        size = share * math.exp(-2.0 * rest * math.sin(0.5 * theta) ** 2)
        phase = rest * sine_defect(theta) - shift * theta
        factor = complex(size * math.cos(phase), size * math.sin(phase))
        step = complex(math.cos(theta), math.sin(theta))
        for leaf in range(leaves):
            tree[leaves + leaf] = 1.0
        for x in range(bins):
            at[x] = 0
            tree[leaves + x] = 0.0
            while at[x] < starts[x]:
                tree[leaves + x] += masses[offsets[x] + at[x]] * _unit(
                    units, x, at[x], firsts[x] - means[x], theta, step
                )
                at[x] += 1
        _renew(tree, leaves, -1)
        pending = 0
        for e in range(events.size):
            x = events[e]
            if x >= 0:
                tree[leaves + x] += masses[offsets[x] + at[x]] * _unit(
                    units, x, at[x], firsts[x] - means[x], theta, step
                )
                at[x] += 1
                pending += 1
            if outputs[e] < 0:
                continue
            _renew(tree, leaves, leaves + x if pending == 1 else -pending)
            pending = 0
            sums[outputs[e]] += (factor * tree[1]).real
