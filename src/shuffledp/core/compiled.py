"""The decorator of compiled loops; where numba cannot be imported, they run as plain Python.

It stands in ``*_kernels.py`` of the randomizers, of the accounting for one batch and of what they
share, which are imported inside functions: numba takes a second to load.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from shuffledp.core import progress

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

else:
    from numba.core import event

    class _Watch(event.Listener):
        """Tells log and program of compilations of ours; a loop in the cache is none."""

        def on_start(self, event: event.Event) -> None:
            """Tell of one that begins."""
            loop = event.data["dispatcher"].py_func
            if not loop.__module__.startswith("shuffledp."):
                return
            progress.logger.info("compiling %s, once", loop.__qualname__)
            while progress.compiling:
                progress.compiling.pop()()

        def on_end(self, event: event.Event) -> None:
            """Tell nothing."""

    def _watch() -> None:
        """Listen to compilations, and set numba up if this is a program of its own.

        numba looks for scipy.linalg, which takes a fifth of a second to load, for products of
        matrices that no loop of ours has. In a process where others may use numba it may look.
        """
        event.register("numba:compile", _Watch())
        if not progress.compiling:
            return
        if "scipy.linalg" not in sys.modules:
            sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # "there is none"
            try:
                import_module("numba.np.arraymath")
            finally:
                del sys.modules["scipy.linalg"]

    _watch()


__all__ = ["njit"]
