"""Public names that are loaded when they are first used, so that importing them stays quick."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    module: str,
    homes: Mapping[str, tuple[str, ...]],
    *,
    names_at_home: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module that only lists public names.

    Parameters
    ----------
    module : str
        Its ``__name__``.
    homes : mapping of str to tuple of str
        Module below ``shuffledp`` to the public names that it holds.
    names_at_home : mapping of str to str, optional
        Where a name differs at home, what it is there.

    Returns
    -------
    callable
        Loads a name from its home and keeps it; raises `AttributeError` for any other.

    Examples
    --------
    >>> find = lazy_names(__name__, {"core.bound": ("Bound",)})
    >>> find("Bound").__name__
    'Bound'
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    others = names_at_home or {}

    def find(name: str) -> Any:
        """Load a public name from its home."""
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(f"shuffledp.{home_of[name]}"), others.get(name, name))
        setattr(sys.modules[module], name, value)
        return value

    return find
