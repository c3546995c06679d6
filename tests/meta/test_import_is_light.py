"""Importing shuffledp, or asking the command line for help, loads nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = {"cryptography", "matplotlib", "numba", "pandas", "polars", "scipy"}


def loaded_after(statement: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter holds after ``statement``."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(outcome.stdout.split())


@pytest.mark.parametrize("module", ["shuffledp", "shuffledp.cli.main"])
def test_nothing_heavy_is_imported(module):
    loaded = loaded_after(f"import {module}")
    assert "shuffledp" in loaded
    assert not loaded & HEAVY


def test_a_heavy_import_is_seen():
    assert "scipy" in loaded_after("import scipy.special")
