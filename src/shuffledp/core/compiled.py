"""The decorator of compiled loops; where numba cannot be imported, they run as plain Python.

Modules named ``*_kernels.py`` use it. They are imported inside functions: numba takes half a second
to load.

`one_thread` holds linear algebra and trees to one thread, so that a seed gives the same numbers on
any machine.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import numpy as np

from shuffledp.core import progress

_Function = TypeVar("_Function", bound=Callable[..., Any])


def njit(function: _Function) -> _Function:
    """Compile a function at its first call, and cache the machine code."""
    if not _is_installed():
        return _plain(function)
    loop = _numba().njit(function, nogil=True)
    import_module("shuffledp.core.loop_cache").keep(loop, function)
    return cast(_Function, loop)


def _is_installed() -> bool:
    """Return True if numba can be imported, without importing it."""
    try:
        return find_spec("numba") is not None
    except ImportError:
        return False


def _plain(function: _Function) -> _Function:
    """Return a function that runs as it is: the same results, slowly.

    NumPy's integers of 64 bits wrap around as compiled ones do; only their warnings must be
    silenced.
    """
    return np.errstate(all="ignore")(function)


@functools.cache
def _numba() -> Any:
    """Load numba, and have it announce compilations of this package's loops that are not cached."""
    numba = import_module("numba")
    event = import_module("numba.core.event")

    class Watch(event.Listener):  # type: ignore[misc, name-defined]
        """Reports compilations to the log and to the program."""

        def on_start(self, event: Any) -> None:
            """Announce a compilation that begins."""
            loop = event.data["dispatcher"].py_func
            if not loop.__module__.startswith("shuffledp."):
                return
            progress.logger.info("compiling %s, once", loop.__qualname__)
            while progress.compiling:
                progress.compiling.pop()()

        def on_end(self, event: Any) -> None:
            """Announce nothing."""

    event.register("numba:compile", Watch())
    return numba


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which libraries use one thread each."""
    try:
        module = import_module("threadpoolctl")
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = module.threadpool_limits(limits=1)
    return limits
