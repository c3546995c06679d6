"""One thread for linear algebra and trees, so that a seed gives the same numbers on any machine."""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which libraries use one thread each.

    Returns
    -------
    context manager
        Sums of floating-point numbers depend on how they are cut among threads; small problems
        are also much faster so while other programs are busy. Without threadpoolctl, which comes
        with scikit-learn, it does nothing.
    """
    try:
        module = import_module("threadpoolctl")
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = module.threadpool_limits(limits=1)
    return limits
