"""The public face: which names there are, that importing them is quick, and that they are typed."""

import ast
import doctest
import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import shuffledp

FOLDERS = (
    "accounting", "collection", "deploy", "engines", "estimation", "groups", "leakage",
    "monitoring", "network", "randomizers",
)  # fmt: skip
EACH = pytest.mark.parametrize(
    "face", [shuffledp, *(getattr(shuffledp, name) for name in FOLDERS)], ids=lambda m: m.__name__
)
HEAVY = {"cryptography", "numba", "polars", "scipy"}
HOMES = ["shuffledp", *(f"shuffledp.{name}" for name in (*FOLDERS, "report", "testing"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
USER_CODE = Path(__file__).parent / "typed" / "user_code.py"

TOP = """
plan run estimate Plan Result
Categories Mean VectorMean AnswerSets Columns Distribution HeavyHitters
MeanByGroup Weights spark
account calibrate compare_bounds
ShuffledRelease StatedRelease Ledger
Guarantee Bound LocalProfile Entropy ShuffledpError __version__
"""


def test_the_names_at_the_top():
    assert set(shuffledp.__all__) == set(TOP.split())
    assert set(dir(shuffledp)) == {*shuffledp.__all__, *FOLDERS}


@EACH
def test_every_public_name_is_there(face):
    for name in face.__all__:
        assert getattr(face, name) is getattr(import_module(face.__name__), name)
        assert name.isupper() or getattr(face, name).__doc__  # but for tables
    with pytest.raises(AttributeError, match="magic"):
        face.magic  # noqa: B018


# Names of types that only annotate.
ALIASES = {"Check", "Make"}


def examples() -> str:
    """Return the Python that runs as an example: in docstrings, the README and the pages."""
    root = Path(__file__).parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    blocks = [each for page in pages for each in re.findall(BLOCK, page.read_text("utf-8"))]
    sources = (root / "src").rglob("*.py")
    parse = doctest.DocTestParser().get_examples
    return "\n".join(
        [*blocks, *(each.source for path in sources for each in parse(path.read_text("utf-8")))]
    )


def test_every_public_name_has_an_example_that_runs():
    shown = set(re.findall(r"\w+", examples()))
    assert "account" in shown
    assert "RunnerUp" not in shown
    for face in map(import_module, HOMES):
        for name in set(face.__all__) - shown - ALIASES:
            found = getattr(face, name)
            if not callable(found) or (inspect.isclass(found) and issubclass(found, Exception)):
                continue
            members = [found, *(getattr(found, each) for each in dir(found) if each[0] != "_")]
            assert ">>> " in "".join(each.__doc__ or "" for each in members), name


LAZY = pytest.mark.parametrize(
    "face",
    [shuffledp, *(getattr(shuffledp, name) for name in FOLDERS)],
    ids=lambda module: module.__name__,
)


@LAZY
def test_no_public_name_is_a_file_or_folder_too(face):
    """Importing anything from it would hide the name."""
    children = {path.stem for path in Path(face.__file__).parent.iterdir()}
    assert not children & set(face.__all__)


@LAZY
def test_a_stub_holds_imports_alone(face):
    stub = Path(face.__file__).with_suffix(".pyi")
    for node in ast.parse(stub.read_text("utf-8")).body:
        assert isinstance(node, ast.ImportFrom)
        assert node.level == 0
        assert all(each.name == each.asname for each in node.names)


def loaded_by(program: str) -> set[str]:
    """Return the packages that a program loads."""
    program += "\nimport sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@EACH
def test_importing_it_loads_nothing_heavy(face):
    assert not loaded_by(f"import {face.__name__}") & HEAVY


def test_releases_are_made_without_scipy():
    program = "import shuffledp as sdp\nsdp.ShuffledRelease(epsilon0=1.0, num_users=9) * 3"
    assert not loaded_by(program) & {"numba", "polars", "scipy"}


def typed(path: Path) -> subprocess.CompletedProcess[str]:
    """Check a user's program by mypy --strict, with none of this project's settings."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(path)]
    cache = Path(__file__).parents[1] / ".cache" / "mypy_user"
    environment = {**os.environ, "MYPY_CACHE_DIR": str(cache)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_user_code_is_typed(tmp_path):
    assert typed(USER_CODE).returncode == 0
    wrong = tmp_path / "wrong.py"
    wrong.write_text(USER_CODE.read_text("utf-8") + "result.estimates.mean\nmean.estimates.count\n")
    found = typed(wrong).stdout
    assert '"FrequencyEstimates" has no attribute "mean"' in found
    assert '"MeanEstimates" has no attribute "count"' in found
    assert "Found 2 errors" in found
