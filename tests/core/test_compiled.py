"""A program of its own hears once of compilations, and numba looks for no BLAS then."""

import sys

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
    yield told
    for kind, listeners in event._registered.items():
        listeners[:] = before.get(kind, [])


def kernel(source):
    """Return a function as if it stood in a module of ours."""
    return eval(source, {"__name__": "shuffledp.some_kernels"})  # noqa: S307  # our own text


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_program_hears_of_the_first_compilation_only(heard, monkeypatch, is_loaded):
    if is_loaded:
        monkeypatch.setitem(sys.modules, "scipy.linalg", sys)
    else:
        monkeypatch.delitem(sys.modules, "scipy.linalg", raising=False)
    compiled._watch()
    assert ("scipy.linalg" in sys.modules) == is_loaded
    for number in (1, 2):
        assert numba.njit(kernel(f"lambda x: x + {number}"))(1) == 1 + number
    assert heard == ["compiling"]


def test_other_programs_hear_it_in_the_log_alone(heard, caplog):
    progress.compiling.clear()
    compiled._watch()
    with caplog.at_level("INFO", "shuffledp"):
        numba.njit(kernel("lambda x: x + 3"))(1)
    assert heard == []
    assert "compiling <lambda>, once" in caplog.messages


def test_compilations_of_others_are_nothing_to_tell(heard, caplog):
    compiled._watch()
    with caplog.at_level("INFO", "shuffledp"):
        numba.njit(lambda x: x + 4)(1)
    assert heard == []
    assert caplog.messages == []
