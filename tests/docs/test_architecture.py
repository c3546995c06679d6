"""The worked diffs of docs/architecture.md fit the files of today."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
DIFF = re.findall(r"^(src/\S+) +(\w+(?: line)?) +\+ (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("path", "table", "line"), DIFF)
def test_a_worked_diff_applies(path, table, line):
    file = ROOT / path
    if table == "new":
        assert not file.exists()
        return
    start = r"\A" if table == "any line" else rf"^{table}\b.* = .*\n"
    changed, found = re.subn(
        start, rf"\g<0>{line}\n", file.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE
    )
    assert found
    ast.parse(changed)
