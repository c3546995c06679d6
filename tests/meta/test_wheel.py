"""The wheel is complete and works where only run-time dependencies are installed."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "src" / "shuffledp"

pytestmark = pytest.mark.slow


def run(*command: str | Path, **options) -> str:
    """Run a command outside the repository and return what it prints; fail with its errors."""
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, REPOSITORY)
    (path,) = folder.glob("shuffledp-*.whl")
    return path


def environment(folder: Path, *installed: tuple[str | Path, ...]) -> Path:
    """Return the folder of programs of a fresh virtual environment, after calls of pip install."""
    run(sys.executable, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    # Versions without hashes, which a wheel made here has none of.
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split()[0] for line in lines if "==" in line]
    constraints = folder / "pins.txt"
    constraints.write_text("\n".join(pins))
    for each in installed:
        run(programs / "python", "-m", "pip", "install", "--constraint", constraints, *each)
    return programs


def packages(programs: Path) -> set[str]:
    """Return the names of what is installed."""
    listing = json.loads(run(programs / "python", "-m", "pip", "list", "--format", "json"))
    return {entry["name"].lower() for entry in listing}


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory) -> Path:
    """Return the folder of programs of a fresh virtual environment with the wheel in it."""
    return environment(tmp_path_factory.mktemp("fresh"), (wheel,))


@pytest.fixture
def shuffledp(programs, tmp_path):
    """Return a function that runs the installed command in an empty folder."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "NUMBA", "COV"))
    }

    def command(*arguments: str) -> str:
        return run(programs / "shuffledp", *arguments, cwd=tmp_path, env=inherited)

    return command


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    expected = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    contents = set(zipfile.ZipFile(wheel).namelist())
    assert expected - contents == set()
    assert "shuffledp/py.typed" in contents
    assert any(name.endswith("licenses/LICENSE") for name in contents)
    assert not any(name.startswith("tests/") or "__pycache__" in name for name in contents)


def test_no_development_tool_comes_along(programs):
    installed = packages(programs)
    assert "shuffledp" in installed
    assert not installed & {"pytest", "hypothesis", "ruff", "mypy", "sphinx", "statsmodels"}


def test_help(shuffledp):
    text = shuffledp("--help")
    assert all(command in text for command in ("plan", "run", "account", "demo"))


def test_account(shuffledp):
    printed = shuffledp(
        "account", "--epsilon0", "1", "--num-users", "1000", "--delta", "1e-6", "--json"
    )
    # theory: the stronger-clone bound for any randomizer of this epsilon0.
    assert json.loads(printed)["epsilon"]["upper"] == pytest.approx(0.14867062, rel=1e-6)


def test_run_writes_its_report(shuffledp, tmp_path):
    rows = ["yes", "no", "no", "no"] * 500
    (tmp_path / "answers.csv").write_text("\n".join(["answer", *rows]) + "\n", encoding="utf-8")
    shuffledp(
        *("run", "answers.csv", "--column", "answer", "--epsilon", "1", "--delta", "1e-6"),
        *("--out", "results"),
    )
    written = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"estimates.csv", "privacy.json", "report.html"} <= written


def test_a_device_as_the_guide_sets_it_up(wheel, tmp_path):
    needed = ("numpy", "cryptography")
    programs = environment(tmp_path / "device", ("--no-deps", wheel), needed)
    assert not packages(programs) & {"numba", "llvmlite", "polars", "scipy", "click", "rich"}
    guide = (REPOSITORY / "docs" / "guides" / "deploying.md").read_text(encoding="utf-8")
    assert "pip install --no-deps" in guide
    program = re.search(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)[1]
    said = run(programs / "python", "-c", f"{program}\nprint(len(kept.report))", cwd=tmp_path)
    assert said == "1\n"
