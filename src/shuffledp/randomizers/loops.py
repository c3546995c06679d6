"""Where randomizers find their loops: compiled, or in NumPy on a machine without numba."""

from functools import cache
from importlib import import_module
from types import ModuleType

from shuffledp.core.errors import ParameterError

_PACKAGE = "shuffledp.randomizers"


def loops(name: str) -> ModuleType:
    """Return the module of a randomizer's inner loops.

    Parameters
    ----------
    name : str
        Such as ``"categories.packed_bits"``, for the modules ``packed_bits_kernels`` and
        ``packed_bits_numpy`` of the package ``categories``.

    Returns
    -------
    module
        The compiled loops; where numba cannot be imported, their twins in NumPy: the same
        functions with the same signatures, and the same law.

    Raises
    ------
    ParameterError
        If numba cannot be imported and there is no twin.

    Examples
    --------
    >>> loops("categories.packed_bits").flip_true_bits.__name__
    'flip_true_bits'
    """
    if _has_numba():
        return import_module(f"{_PACKAGE}.{name}_kernels")
    twin = f"{_PACKAGE}.{name}_numpy"
    try:
        return import_module(twin)
    except ModuleNotFoundError as error:
        if error.name != twin:
            raise  # the twin is there, and what it imports is not
        raise ParameterError(
            f"the loops {name!r} need numba, which cannot be imported: run pip install numba, or "
            "use a randomizer whose loops exist in NumPy, too"
        ) from None


@cache
def _has_numba() -> bool:
    """Return whether numba is there and works; asked once, since a failed import is slow."""
    try:
        import_module("numba")
    except ImportError:
        return False
    return True
