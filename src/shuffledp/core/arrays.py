"""Types of arrays by what they hold; ``NDArray`` of NumPy for all others."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Waves = NDArray[np.complex128]
Booleans = NDArray[np.bool_]
