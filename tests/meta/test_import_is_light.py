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


def test_a_collection_loads_its_own_question_and_randomizer_alone():
    program = """
import sys
import shuffledp as sdp
plan = sdp.plan(
    sdp.Categories(["yes", "no"]), num_users=99, epsilon0=1.0, delta=1e-3, randomizer="k-rr"
)
sdp.run(plan, ["yes"] * 99, seed=1)
loaded = [name.split(".")[-1] for name in sys.modules if name.startswith("shuffledp.")]
others = {"answer_sets", "mean", "vector_mean", "privunit", "local_hashing"}
print(sorted(others.intersection(loaded)))
"""
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert outcome.stdout == "[]\n"


def test_the_main_job_loads_few_modules_of_the_package(tmp_path):
    table = tmp_path / "answers.csv"
    table.write_text("answer\n" + "yes\n" * 300 + "no\n" * 700)
    asked = [
        "--domain",
        "yes,no",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--column",
        "answer",
        "--json",
    ]
    program = f"""
import sys
from shuffledp.cli.main import main
assert main(["run", {str(table)!r}, *{asked}, "--out", {str(tmp_path / "out")!r}]) == 0
loaded = [name for name in sys.modules if name.partition(".")[0] == "shuffledp"]
print(len(loaded), *sorted(loaded), file=sys.stderr)
"""
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    number, *names = outcome.stderr.splitlines()[-1].split()
    assert int(number) <= 125, names
