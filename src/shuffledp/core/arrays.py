"""Array types by element type, and a transform of rows; ``NDArray`` for all others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Waves = NDArray[np.complex128]
Booleans = NDArray[np.bool_]


def walsh_hadamard(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the sum over l of (-1)^(number of ones of l & b) rows[..., l], at index b."""
    size = rows.shape[-1]
    out = np.array(rows, order="C")
    half = 1
    while half < size:
        pairs = out.reshape(*rows.shape[:-1], size // (2 * half), 2, half, copy=False)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        total = first + second
        np.subtract(first, second, out=second)
        first[...] = total
        half *= 2
    return out
