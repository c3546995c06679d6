"""What all of papers/ keeps to: public names of the package, and examples that are true."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).parents[2] / "papers").glob("*.py"))

PUBLIC = {"accounting", "collection", "estimation", "groups", "leakage", "network", "randomizers"}

# What has no public name yet; nothing is to be added.
NOT_PUBLIC = {
    "core.errors",
    "groups.attacks.survey",
    "groups.attacks.adversaries",
    "groups.reference_orders",
}


def test_no_further_inner_modules_are_imported():
    found = {
        name
        for path in MODULES
        for name in re.findall(r"(?:from|import) shuffledp\.([\w.]+)", path.read_text())
    }
    assert found - PUBLIC == NOT_PUBLIC


@pytest.mark.parametrize("name", [path.stem for path in MODULES])
def test_examples(name):
    for package in ("matplotlib", "sklearn"):
        pytest.importorskip(package)
    assert doctest.testmod(import_module(name)).failed == 0
