"""The worked diffs of docs/architecture.md fit the files of today."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
DIFF = re.findall(r"^(src/\S+) +(\w+(?: line)?) +\+ (.*)$", PAGE, re.MULTILINE)
assert len(DIFF) == PAGE.count("\nsrc/shuffledp/") - 1  # one is the picture of the house


@pytest.mark.parametrize(("path", "table", "line"), DIFF)
def test_a_worked_diff_applies(path, table, line):
    file = ROOT / path
    assert file.exists() is (table != "new")
    if table != "new":
        start = r"\A" if table == "any line" else rf"^{table}\b.* = .*\n"
        text, added = file.read_text(encoding="utf-8"), rf"\g<0>{line}\n"
        changed, found = re.subn(start, added, text, count=1, flags=re.MULTILINE)
        assert found
        ast.parse(changed)
