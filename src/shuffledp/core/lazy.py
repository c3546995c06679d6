"""Names that are loaded when they are first used, so that importing them stays quick.

Names of polars, and public names: each face of the package is a stub, ``__init__.pyi``,
which type checkers read and which is the one list of its names (SPEC 1 of Scientific Python). Here
it is read once more, to load them.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["lazy_names", "pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        """Looks up names in polars."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("polars"), name)

    pl = _Polars()


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its stub.

    The stub holds ``from module import name as name`` only; one from the package itself
    makes a folder reachable, which ``__all__`` leaves out.
    """
    spec: Any = sys.modules[package].__spec__
    stub = spec.loader.get_data(f"{spec.origin}i")  # __init__.pyi beside __init__.py
    homes: dict[str, str] = {}
    folders = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                if node.module == package:
                    folders.add(each.name)
                else:
                    homes[each.name] = node.module

    def find(name: str) -> Any:
        """Load a public name from its home, and keep it."""
        if name in folders:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*homes, *folders}), sorted(homes)
