"""The decorator of compiled loops; where numba cannot be imported, they run as plain Python.

It stands in ``*_kernels.py``, which are imported inside functions: numba takes half a second to
load. That is longer than the loops of one batch's account take uncompiled, so that in the process
of ``shuffledp account`` these start as plain Python, and numba is loaded when they go on.

`one_thread` holds linear algebra and trees to one thread, so that a seed gives the same numbers on
any machine.
"""

import functools
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import numpy as np

from shuffledp.core import progress

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Seconds that patient loops run uncompiled, and the elements of an array that are too many for it.
_PATIENCE, _LARGE = 0.2, 1000


def njit(function: _Function) -> _Function:
    """Compile a function at its first call, and keep what was compiled."""
    if not _is_installed():
        return _plain(function)
    loop = _numba().njit(function, nogil=True)
    import_module("shuffledp.core.loop_cache").keep(loop, function)
    return cast(_Function, loop)


def patient_njit(function: _Function) -> _Function:
    """Compile likewise, but not at once in a program that is over soon: ``progress.is_brief``.

    Results of the uncompiled loop may differ in the last digits that round-off leaves, which every
    bound allows for.
    """
    if progress.is_brief and "numba" not in sys.modules and _is_installed():
        return cast(_Function, _Patient(function))
    return njit(function)


def _is_installed() -> bool:
    """Return True if numba can be imported, without importing it."""
    try:
        return find_spec("numba") is not None
    except ImportError:
        return False


def _plain(function: _Function) -> _Function:
    """Return a function that runs as it is: the same results, slowly.

    NumPy's integers of 64 bits wrap around as compiled ones do. They need only be kept from
    warning of it.
    """
    return np.errstate(all="ignore")(function)


class _Patient:
    """A loop that runs as plain Python until such loops have taken ``_PATIENCE`` seconds."""

    waited, is_inside = 0.0, False  # of them all: seconds so far, and whether one runs now

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._plain = _plain(function)

    @functools.cached_property
    def compiled(self) -> Any:
        """The same, compiled."""
        return njit(self.__wrapped__)  # type: ignore[attr-defined]  # by update_wrapper

    def __call__(self, *arguments: Any) -> Any:
        if _Patient.is_inside:
            return self.__wrapped__(*arguments)  # type: ignore[attr-defined]  # likewise
        if _Patient.waited > _PATIENCE or any(np.size(each) > _LARGE for each in arguments):
            return self.compiled(*arguments)
        start = time.thread_time()
        _Patient.is_inside = True
        try:
            return self._plain(*arguments)
        finally:
            _Patient.is_inside = False
            _Patient.waited += time.thread_time() - start


@functools.cache
def _numba() -> Any:
    """Load numba, and have it tell of compilations of ours; a loop in the cache is none."""
    if progress.compiling and "scipy.linalg" not in sys.modules:
        # numba looks for scipy.linalg, which takes a fifth of a second to load, for products of
        # matrices that no loop of ours has. In a process where others may use numba it may look.
        sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # "there is none"
        try:
            import_module("numba.np.arraymath")
        finally:
            del sys.modules["scipy.linalg"]
    numba = import_module("numba")
    event = import_module("numba.core.event")

    class Watch(event.Listener):  # type: ignore[misc, name-defined]
        """Tells log and program of compilations."""

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
    # What a compiled loop calls is compiled.
    numba.extending.typeof_impl.register(_Patient, lambda loop, _: numba.typeof(loop.compiled))
    return numba


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which libraries use one thread each."""
    try:
        module = import_module("threadpoolctl")
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = module.threadpool_limits(limits=1)
    return limits
