"""One thread for linear algebra and trees, so that a seed gives the same numbers on any machine."""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which libraries use one thread each."""
    try:
        module = import_module("threadpoolctl")
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = module.threadpool_limits(limits=1)
    return limits
