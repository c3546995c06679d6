"""The part of numba that shuffledp uses, typed: a compiled function keeps its signature."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import types as types

__version__: str

_Function = TypeVar("_Function", bound=Callable[..., object])

def njit(*, nogil: bool = ...) -> Callable[[_Function], _Function]: ...
def cfunc(signature: object, *, cache: bool = ...) -> Callable[[_Function], Any]: ...
def carray(pointer: object, shape: tuple[int, ...], dtype: object) -> Any: ...
