"""Libraries are held to one thread where that is possible, and work where it is not."""

import sys

from threadpoolctl import threadpool_info

from shuffledp.core.compiled import one_thread


def num_threads():
    return {library["num_threads"] for library in threadpool_info()}


def test_one_thread_inside_and_as_before_outside():
    before = num_threads()
    with one_thread():
        assert num_threads() <= {1}
    assert num_threads() == before


def test_without_threadpoolctl_nothing_happens(monkeypatch):
    before = num_threads()
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_thread():
        assert num_threads() == before
