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


ACCOUNTS = (
    "account --epsilon0 1 --num-users 1000 --delta 1e-6 --json",
    "account --epsilon0 0.5 --num-users 100000 --delta 1e-6 --randomizer k-rr --k 2 --json",
    "account --epsilon0 4 --num-users 1000000 --epsilon 0.1 --randomizer hadamard-response --k 16",
    "bounds --epsilon0 1 --num-users 1000 --delta 1e-6 --json",
)
CHECKED = """
from shuffledp.accounting.calibration import least_users
from shuffledp.core.profile import LocalProfile
least_users(rounds=1, profile=LocalProfile(epsilon0=1.0), epsilon=0.5, delta=1e-6)
"""


@pytest.mark.parametrize("statement", [*ACCOUNTS, CHECKED])
def test_bounds_for_one_batch_load_no_compiler(statement):
    if statement in ACCOUNTS:
        call = f"assert main({statement.split()!r}) == 0"
        quietly = "with redirect_stdout(StringIO()): "
        statement = (
            "from contextlib import redirect_stdout\nfrom io import StringIO\n"
            f"from shuffledp.cli.main import main\n{quietly}{call}"
        )
    loaded = loaded_after(statement)
    assert "numpy" in loaded
    assert "numba" not in loaded


def test_a_heavy_import_is_seen():
    assert "scipy" in loaded_after("import scipy.special")
