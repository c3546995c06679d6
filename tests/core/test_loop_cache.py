"""What is compiled is kept for one state of all loops; where it cannot be kept, that is said."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

import shuffledp
from shuffledp.core import loop_cache

PACKAGE = Path(shuffledp.__file__).parent

CALLER = """
import sys
from shuffledp.amplification.binary_randomized_response_kernels import Rates, divergence_terms
terms = getattr(divergence_terms, "py_func") if "plain" in sys.argv else divergence_terms
print(terms(50.0, 49.0, Rates(1.0, 0.1, 0.9))[0])
"""
SMALL = """
from shuffledp.amplification.binary_randomized_response_kernels import Rates, own_divergence
print(own_divergence(Rates(1.0, 0.5, 0.75)))
"""
# As the command line runs.
COMMAND = f"""
from shuffledp.cli import main
with main._warnings_printed():
{indent(SMALL, "    ")}"""
CALLED = "core/numerics/binomial_kernels.py"
TAIL, CHANGED_TAIL = "scale * tail * r - aliases", "scale * tail * r * 1.5 - aliases"


class Installed:
    """A copy of the package in a folder of its own."""

    def __init__(self, folder):
        self.package = folder / "shuffledp"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.environment = {
            name: value for name, value in os.environ.items() if "NUMBA" not in name
        }
        self.environment |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, program, *arguments):
        return subprocess.run(
            [sys.executable, "-c", program, *arguments], env=self.environment,
            cwd=self.package.parent, capture_output=True, text=True, check=True,
        )  # fmt: skip

    def kept(self):
        """What is kept of one loop: file names and times."""
        found = self.package.rglob("binary_randomized_response_kernels.divergence_terms-*")
        return {each.name: each.stat().st_mtime_ns for each in found}


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path)


@pytest.mark.slow
def test_an_upgrade_in_place_reaches_callers_whose_own_file_is_the_same(installed):
    assert installed.run(CALLER).stdout == (before := installed.run(CALLER).stdout)
    kept = installed.kept()
    assert len(kept) == 2  # index and code; the second process took them
    source = installed.package / CALLED
    assert source.read_text().count(TAIL) == 1
    source.write_text(source.read_text().replace(TAIL, CHANGED_TAIL))
    after = installed.run(CALLER).stdout
    assert float(after) == pytest.approx(float(installed.run(CALLER, "plain").stdout), rel=1e-9)
    assert float(after) < 0.99 * float(before)
    assert len(installed.kept()) == 2  # in place of what was
    assert not kept.keys() & installed.kept().keys()


def test_files_that_are_damaged_are_written_anew(installed):
    for _ in range(2):
        assert float(installed.run(SMALL).stdout) == pytest.approx(0.25, rel=1e-9)
        indices = list(installed.package.rglob("*.nbi"))
        assert all(each.stat().st_size for each in indices)
        for each in indices:
            each.write_bytes(b"")  # as after a power cut


def test_where_no_folder_may_be_written_to_it_is_compiled_and_said_once(installed):
    for folder in [each for each in installed.package.rglob("*") if each.is_dir()]:
        (folder / "__pycache__").touch()  # for root, no folder is read-only
    installed.environment |= {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull}
    outcome = installed.run(COMMAND)
    assert float(outcome.stdout) == pytest.approx(0.25, rel=1e-9)
    assert outcome.stderr.startswith("warning: compiled code cannot be kept (no folder may be ")
    assert outcome.stderr.endswith("; set NUMBA_CACHE_DIR to a folder that may be written to\n")
    assert outcome.stderr.count("\n") == 1
    assert not list(installed.package.rglob("*.nb[ci]"))


def test_all_that_loops_are_made_of_is_in_the_state():
    """Kernels take nothing from other files of the package but types of arrays."""
    covered = {each for pattern in loop_cache.SOURCES for each in PACKAGE.rglob(pattern)}
    kernels = [each for each in covered if each.name.endswith("_kernels.py")]
    assert len(kernels) >= 8
    for kernel in kernels:
        for node in ast.walk(ast.parse(kernel.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("shuffledp."):
                file = PACKAGE.parent / f"{node.module.replace('.', '/')}.py"
                assert file in covered or node.module == "shuffledp.core.arrays", (kernel, file)
