"""The decorator of compiled loops; where numba cannot be imported, they run as plain Python.

It stands in ``*_kernels.py`` of the randomizers and of what they share, which are imported inside
functions: numba takes a second to load.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])

try:
    from numba import njit
except ImportError:

    def njit(*, cache: bool = False, nogil: bool = False) -> Callable[[_Function], _Function]:
        """Return a decorator that keeps a function as it is: the same results, slowly.

        NumPy's integers of 64 bits wrap around as compiled ones do. They need only be kept from
        warning of it.
        """
        del cache, nogil
        return np.errstate(all="ignore")


__all__ = ["njit"]
