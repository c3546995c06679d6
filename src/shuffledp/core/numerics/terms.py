"""``Terms``: a law of i.i.d. terms with finitely many values, as the kernels of their sums take it.

Compiled loops read its fields; numba loads no method.
"""

import math
from typing import NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats


class Terms(NamedTuple):
    """``number`` independent terms: ``base`` plus ``differences[i]`` with chance ``masses[i]``."""

    number: float
    base: float
    base_mass: float  # the chance of the base alone
    masses: Floats
    differences: Floats

    @property
    def size(self) -> int:
        """How many values there are beside the base."""
        return self.masses.size

    @property
    def exponent(self) -> int:
        """The binary exponent of the largest value."""
        return math.frexp(max(abs(self.base), float(np.abs(self.differences).max())))[1]

    def scaled(self, exponent: int) -> "Terms":
        """Return 2^exponent times the terms."""
        base, differences = math.ldexp(self.base, exponent), np.ldexp(self.differences, exponent)
        return self._replace(base=base, differences=differences)
