"""Compiled Fourier sums of masses, in groups of consecutive numbers."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Steps by rotation between two fresh sines and cosines.
_ROTATIONS = 64


@njit(cache=True, nogil=True)
def group_waves(
    masses: NDArray[np.float64],
    origin: float,
    angles: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> NDArray[np.complex128]:
    """Return the sum of masses[j] e^(i angle (origin + j)) over start <= j < stop.

    Shape (groups, angles). A term is off by 1e-14 of its mass: roundings of the phase, and of up
    to 64 rotations. The angles are in the innermost loop, whose steps do not wait for one another.
    """
    found = np.empty((starts.size, angles.size), dtype=np.complex128)
    turn_real, turn_imag = np.cos(angles), np.sin(angles)
    unit_real, unit_imag = np.empty(angles.size), np.empty(angles.size)
    real, imag = np.empty(angles.size), np.empty(angles.size)
    for group in range(starts.size):
        real[:] = 0.0
        imag[:] = 0.0
        left = 0
        for j in range(starts[group], stops[group]):
            mass = masses[j]
            if left == 0:
                left = _ROTATIONS
                for node in range(angles.size):
                    where = (origin + j) * angles[node]
                    unit_real[node], unit_imag[node] = np.cos(where), np.sin(where)
            left -= 1
            for node in range(angles.size):
                x, y = unit_real[node], unit_imag[node]
                real[node] += mass * x
                imag[node] += mass * y
                unit_real[node] = x * turn_real[node] - y * turn_imag[node]
                unit_imag[node] = x * turn_imag[node] + y * turn_real[node]
        for node in range(angles.size):
            found[group, node] = complex(real[node], imag[node])
    return found
