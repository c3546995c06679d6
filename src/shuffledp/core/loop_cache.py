"""Cache of compiled loops: in numba's folders, under names with the state of all loops.

numba recompiles a loop when its own file has changed, but not when a loop of another file that it
calls has. Under numba's own names a package that is upgraded in place would run old code.
"""

import contextlib
import functools
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from shuffledp._version import __version__
from shuffledp.core.errors import NotKeptWarning

# Sources of compiled code: loops, and the types and options of their compilation.
SOURCES = ("*_kernels.py", "compiled.py")


def keep(loop: Any, function: Callable[..., Any]) -> None:
    """Have a loop load and save its compiled code, if a folder is writable."""
    try:
        loop._cache = _LoopCache(function)  # as numba's own `enable_caching` does
    except (RuntimeError, OSError):  # "no locator available"
        _warn_once("no folder may be written to")


@functools.cache
def state() -> str:
    """Return a hash of the sources of all loops and of the versions of the package and numba."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256(f"{__version__} {numba.__version__}".encode())
    for source in sorted(each for pattern in SOURCES for each in package.rglob(pattern)):
        found.update(hashlib.sha256(source.read_bytes()).digest())
    return found.hexdigest()[:16]


@functools.cache
def _warn_once(reason: str) -> None:
    """Warn that the next process has to compile again."""
    message = (
        f"compiled code cannot be kept ({reason}), so that each process compiles anew, "
        "for some seconds; set NUMBA_CACHE_DIR to a folder that may be written to"
    )
    warnings.warn(message, NotKeptWarning, stacklevel=2)


class _Names(caching.CompileResultCacheImpl):
    """The names of a loop's files."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Return numba's name, which ends in the place in the file, and the state."""
        return f"{super().get_filename_base(fullname, abiflags)}-{state()}"


class _LoopCache(caching.FunctionCache):
    """The compiled code of one loop in files."""

    _impl_class = _Names

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code of a signature; None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle may raise anything
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled code, and remove this loop's code of other states."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk, most likely
            _warn_once(str(error))
        name = self._impl.filename_base.partition("-")[0]
        for kept in Path(self.cache_path).glob(f"{name}-*.nb[ci]"):
            if f"-{state()}." not in kept.name:
                with contextlib.suppress(OSError):  # another process has it open, or was quicker
                    kept.unlink()
