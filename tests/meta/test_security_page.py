"""Promises of SECURITY.md and roles of the threat model name tests that exist; links lead on."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def missing_tests(text):
    """Files and functions that a text names and that do not exist."""
    for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text):
        if not (ROOT / file).is_file():
            yield file
        elif name:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            if name not in {
                each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)
            }:
                yield f"{file}::{name}"


def test_every_promise_names_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
    table = PAGE.partition("| promise | test |\n|---|---|\n")[2].partition("\n\n")[0]
    assert rows == table.splitlines()
    assert len(rows) >= 15
    assert list(missing_tests(PAGE)) == []


def test_every_role_of_a_deployed_collection_names_a_test():
    page = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
    section = page.partition("\n## A deployed collection\n")[2].partition("\n## ")[0]
    header, _, *roles = [line for line in section.splitlines() if line.startswith("|")]
    assert header.endswith("| test |")
    assert len(roles) == 6
    assert all("| `tests/" in each for each in roles)
    assert list(missing_tests(section)) == []


@pytest.mark.parametrize("text", ["`tests/no.py`", "`tests/meta/test_security_page.py::test_no`"])
def test_a_test_that_does_not_exist_is_noticed(text):
    assert list(missing_tests(text)) == [text.strip("`")]


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) >= 4
    assert [link for link in links if not (ROOT / link).exists()] == []
