"""No file names a package registry, a machine's folder or a private key, or praises a bound."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Each is written so that it does not match itself.
FORBIDDEN = {
    "a package registry": r"py[p]i\.org|python[h]osted\.org|registry\.np[m]js|anacond[a]\.org",
    "an installer's source": r"--(extra-)?index[-]url|--find[-]links",
    "a machine's folder": r"(?<![\w.~-])/(tm[p]|wor[k]|roo[t]|hom[e]|User[s])/",
    "a promise for an upper bound": r"(?i)saf[e] to publish",
    "a private key": r"BEGIN [A-Z ]*PRIVATE[ ]KEY",
}


def findings(text: str) -> list[str]:
    """Return what is forbidden in ``text``, described with the matching string."""
    return [
        f"{description}: {match.group()}"
        for description, pattern in FORBIDDEN.items()
        for match in re.finditer(pattern, text)
    ]


def project_files() -> list[Path]:
    """Return the files that are tracked, or would be by the next `git add`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = (REPOSITORY / name for name in listing.split("\0") if name)
    return [path for path in paths if path.is_file()]


def test_no_file_has_a_forbidden_string():
    files = project_files()
    assert REPOSITORY / "pyproject.toml" in files
    found = {
        str(path.relative_to(REPOSITORY)): hits
        for path in files
        if (hits := findings(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "planted",
    [
        "see https://py" + "pi.org/project/x",
        "pip install --index" + "-url elsewhere x",
        'open("/tm' + 'p/answers.csv")',
        "cd /hom" + "e/someone/project",
        "the epsilon that is safe" + " to publish",
        "-----BEGIN RSA PRIVATE" + " KEY-----",
    ],
)
def test_a_planted_string_is_found(planted):
    assert len(findings(planted)) == 1
