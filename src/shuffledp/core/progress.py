"""Progress of long work: reported to the caller's listener, or else to the log.

The logger is silent until a program sets logging up. It receives numbers of users, parameters of
laws, names of methods and guarantees; never a value, a label, an estimate, a path, a seed or a key.
"""

import logging
from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the stage, the rows done and the rows in total (None while unknown).

A stage may end with a quicker alternative in brackets, written as a Python argument.
"""

logger = logging.getLogger("shuffledp")
logger.addHandler(logging.NullHandler())


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Write progress to the log, where no other listener is given."""
    logger.debug("%s: %s of %s", stage, done, "an unknown number" if total is None else total)


# Called once when loops are compiled, which takes seconds. Only an application sets it, before
# numba is loaded; `shuffledp.core.compiled` reads it.
compiling: list[Callable[[], None]] = []
