"""The files that forges and tools read are well formed, and say what the project is."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import shuffledp

REPOSITORY = Path(__file__).parents[2]
HOOKS = ".pre-commit-config.yaml"
WORKFLOW = ".github/workflows/test.yml"
YAML = [
    "CITATION.cff",
    HOOKS,
    *(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / ".github").rglob("*.yml")),
]


def read(name):
    return yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))


def missing_folders(commands):
    """Folders of tests that a command names and that do not exist."""
    named = re.findall(r"\btests/\w+", commands)
    return {name for name in named if not (REPOSITORY / name).is_dir()}


@pytest.mark.parametrize("name", YAML)
def test_yaml_files_are_mappings(name):
    assert isinstance(read(name), dict)


def test_the_citation_is_of_this_version_and_names_the_four_papers():
    citation = read("CITATION.cff")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == shuffledp.__version__
    assert citation["license"] == project["license"]
    papers = {each["identifiers"][0]["value"] for each in citation["references"]}
    assert papers == {
        f"arXiv:{of}" for of in ("1811.12469", "2106.06603", "2204.03919", "2305.13075")
    }


def test_hooks_are_tools_of_the_virtual_environment():
    (source,) = read(HOOKS)["repos"]
    assert source["repo"] == "local"
    started = {hook["entry"].split()[0] for hook in source["hooks"]}
    assert started == {f".venv/bin/{tool}" for tool in ("ruff", "mypy", "lint-imports")}


def test_the_workflow_runs_make_test_and_folders_that_exist():
    jobs = read(WORKFLOW)["jobs"]
    commands = {
        name: "\n".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()
    }
    assert commands["everything"].strip() == "make test"
    assert "tests/core" in commands["library"]
    assert missing_folders(commands["library"]) == set()


def test_a_planted_folder_is_found():
    assert missing_folders("pytest tests/core tests/nowhere") == {"tests/nowhere"}
