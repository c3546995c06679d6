"""How far long work has come, told to whoever waits for it."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the stage, the rows done and the rows in total (None while unknown)."""


def no_progress(_stage: str, _done: int, _total: int | None) -> None:
    """Report nothing."""


# Called once when loops are compiled, which takes seconds. Only a program of its own sets it,
# before numba is loaded; `shuffledp.core.compiled` reads it.
compiling: list[Callable[[], None]] = []
