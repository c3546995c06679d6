"""A program of its own hears once of compilations; without numba loops run as they are."""

import numba
import pytest
from numba.core import event

from shuffledp.core import compiled, progress


@pytest.fixture
def heard(monkeypatch):
    """What a program hears; its listeners go with the test."""
    told = []
    monkeypatch.setattr(progress, "compiling", [lambda: told.append("compiling")])
    before = {kind: list(listeners) for kind, listeners in event._registered.items()}
    compiled._numba.cache_clear()
    yield told
    compiled._numba.cache_clear()
    for kind, listeners in event._registered.items():
        listeners[:] = before.get(kind, [])


def kernel(source):
    """Return a function as if it stood in a module of ours."""
    return eval(source, {"__name__": "shuffledp.some_kernels"})  # noqa: S307  # our own text


def test_a_program_hears_of_the_first_compilation_only(heard):
    for number in (1, 2):
        assert compiled._numba().njit(kernel(f"lambda x: x + {number}"))(1) == 1 + number
    assert heard == ["compiling"]


def test_other_programs_hear_it_in_the_log_alone(heard, caplog):
    progress.compiling.clear()
    with caplog.at_level("INFO", "shuffledp"):
        compiled._numba().njit(kernel("lambda x: x + 3"))(1)
    assert heard == []
    assert "compiling <lambda>, once" in caplog.messages


def test_compilations_of_others_are_nothing_to_tell(heard, caplog):
    compiled._numba()
    with caplog.at_level("INFO", "shuffledp"):
        numba.njit(lambda x: x + 4)(1)
    assert heard == []
    assert caplog.messages == []


def test_where_numba_cannot_be_looked_for_there_is_none(monkeypatch):
    def refused(_name):
        raise ImportError

    monkeypatch.setattr(compiled, "find_spec", refused)
    loop = compiled.njit(kernel("lambda x: x + 5"))
    assert loop(1) == 6
    assert not hasattr(loop, "signatures")
