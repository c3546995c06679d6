"""Another account of the machine against the state of a monitoring, which holds answers."""

import os
import stat
from pathlib import Path

import pytest

from shuffledp.cli.main import main

COMMAND = ["monitor", "simulate", "histories.csv", "--user", "user", "--time", "time"]
COMMAND += ["--value", "value", "--max-changes", "2", "--epsilon0", "1", "--delta", "1e-3"]


@pytest.fixture
def replaced(tmp_path, monkeypatch):
    """Return what records the files that take others' places, as they are at that moment."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"u{user},{time + 1},{(user + time // 3) % 2}" for user in range(60) for time in range(6)
    ]
    (tmp_path / "histories.csv").write_text("user,time,value\n" + "\n".join(lines) + "\n")
    found, replace = [], os.replace

    def record(source, target, **options):
        found.append((os.path.basename(source), os.path.basename(target), Path(source).lstat()))  # noqa: PTH119
        return replace(source, target, **options)

    monkeypatch.setattr(os, "replace", record)
    monkeypatch.setattr(Path, "replace", record)
    before = os.umask(0)  # the most careless one
    yield found
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_state_is_its_owners_from_the_first_byte_under_a_name_nobody_guesses(replaced):
    for number in (1, 2):
        assert main([*COMMAND, "--stop-after", "4", "--out", f"out{number}"]) == 0
        assert stat.S_IMODE(Path(f"out{number}.state").stat().st_mode) == 0o600
    states = [(name, facts) for name, target, facts in replaced if target.endswith(".state")]
    assert len(states) >= 4  # at the beginning and at the end
    assert len({name for name, _ in states}) == len(states)
    for name, facts in states:
        assert len(name) >= len("out1.state") + 8
        assert stat.S_IMODE(facts.st_mode) == 0o600
        assert stat.S_ISREG(facts.st_mode)
