"""A program of its own hears once of compilations, loads no BLAS for them, and starts without."""

import itertools
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import event

from shuffledp.core import compiled, progress


@pytest.fixture
def heard(monkeypatch):
    """What a program hears; its listeners go with the test, as patience does."""
    told = []
    monkeypatch.setattr(progress, "compiling", [lambda: told.append("compiling")])
    monkeypatch.setattr(compiled._Patient, "waited", 0.0)
    before = {kind: list(listeners) for kind, listeners in event._registered.items()}
    compiled._numba.cache_clear()
    yield told
    compiled._numba.cache_clear()
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
    for number in (1, 2):
        assert compiled._numba().njit(kernel(f"lambda x: x + {number}"))(1) == 1 + number
    assert ("scipy.linalg" in sys.modules) == is_loaded
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


LOOPS = """
import numpy as np
from shuffledp.core.compiled import patient_njit

@patient_njit
def inner(x):
    return np.sqrt(x) - 1.0

@patient_njit
def outer(x):
    return inner(x) + 1.0
"""


class TestPatience:
    @pytest.fixture
    def loops(self, heard, monkeypatch, tmp_path):
        """Two patient loops, of which one calls the other, as where numba is not loaded yet.

        Each call of a loop takes 0.06 seconds of its clock.
        """
        clock = itertools.count(step=0.06)
        monkeypatch.setattr(compiled, "time", SimpleNamespace(thread_time=lambda: next(clock)))
        path = tmp_path / "some_kernels.py"
        path.write_text(LOOPS)
        spec = spec_from_file_location("some_kernels", path)
        module = module_from_spec(spec)
        with monkeypatch.context() as unloaded:
            unloaded.delitem(sys.modules, "numba")
            unloaded.setattr(progress, "is_brief", True)
            spec.loader.exec_module(module)
        assert {type(module.inner), type(module.outer)} == {compiled._Patient}
        return module.inner, module.outer

    def is_compiled(self, loop):
        return bool("compiled" in vars(loop) and loop.compiled.signatures)

    def test_a_loop_starts_uncompiled_and_without_warnings(self, loops):
        assert loops[1](4.0) == 2.0
        assert np.isnan(loops[1](np.float64(-1.0)))
        assert not self.is_compiled(loops[0])
        assert not self.is_compiled(loops[1])
        assert compiled._Patient.waited == pytest.approx(0.12)

    def test_with_patience_at_its_end_it_is_compiled_and_what_it_calls(self, loops):
        for _ in range(4):
            assert not self.is_compiled(loops[1])
            assert loops[1](4.0) == 2.0
        before = compiled._Patient.waited
        assert loops[1](4.0) == 2.0
        assert self.is_compiled(loops[0])
        assert self.is_compiled(loops[1])
        assert compiled._Patient.waited == before

    def test_long_arrays_do_not_wait(self, loops):
        assert np.all(loops[0](np.full(1001, 4.0)) == 1.0)
        assert self.is_compiled(loops[0])

    def test_one_batch_is_accounted_for_without_numba(self):
        program = (
            "import math, sys; from shuffledp.cli import start; "
            "from shuffledp.core import compiled; "
            "compiled._PATIENCE = math.inf; "  # on any machine
            "start('account --epsilon0 1 --num-users 20 --delta 1e-6'.split()); "
            "sys.exit('numba' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"epsilon  0.999474 ")


def test_where_numba_cannot_be_looked_for_there_is_none(monkeypatch):
    def refused(_name):
        raise ImportError

    monkeypatch.setattr(compiled, "find_spec", refused)
    loop = compiled.njit(kernel("lambda x: x + 5"))
    assert loop(1) == 6
    assert not hasattr(loop, "signatures")
