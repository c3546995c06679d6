"""The import contracts hold, and a planted forbidden import breaks them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

PLANTED = {
    "core reads the operating system": ("core/checks.py", "import os"),
    "the accountant logs": ("accounting/planted.py", "import logging"),
    "randomizers talk to the terminal, late": (
        "randomizers/planted.py",
        "def say() -> None:\n    import click\n",
    ),
    "core looks up": ("core/planted.py", "import shuffledp.collection"),
    "randomizers see the accountant": ("randomizers/planted.py", "import shuffledp.accounting"),
    "guarantees see randomizers": ("composition/planted.py", "import shuffledp.randomizers"),
    "guarantees see randomizers' types": (
        "amplification/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import shuffledp.randomizers",
    ),
    "groups see the network": ("groups/planted.py", "import shuffledp.network"),
    "a walk sees guarantees": ("network/walk.py", "import shuffledp.network.privacy"),
    "guarantees see a walk": ("network/privacy.py", "import shuffledp.network.walk"),
    "collection looks up": ("collection/planted.py", "import shuffledp.cli"),
    "a shuffler sees the analyzer": (
        "deploy/shuffler.py",
        "import shuffledp.deploy.analyzer",
    ),
    "a device sees servers": ("deploy/client.py", "import shuffledp.deploy.servers.watch"),
    "the protocol keeps time": ("peers/mail.py", "import time"),
    "what protocols share opens sockets": ("deploy/wire.py", "import socket"),
    "Spark beside its engine": ("collection/planted.py", "import pyspark"),
    "a new folder nobody placed": ("planted/__init__.py", "import shuffledp.core"),
}


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of ``tree/pyproject.toml`` on ``tree/src``."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the package and its configuration."""
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    shutil.copytree(
        REPOSITORY / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def test_contracts_hold(tree):
    outcome = lint_imports(tree)
    assert outcome.returncode == 0, outcome.stdout
    assert "9 kept, 0 broken" in outcome.stdout


@pytest.mark.parametrize(("module", "line"), PLANTED.values(), ids=PLANTED)
def test_planted_import_is_found(tree, module, line):
    path = tree / "src" / "shuffledp" / module
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    outcome = lint_imports(tree)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert "BROKEN" in outcome.stdout
