import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from shuffledp.accounting import ledger_files
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger, spend
from shuffledp.composition.release import StatedRelease
from shuffledp.core.errors import BudgetError, DataError, OutputError

SMALL = StatedRelease(epsilon=0.001)


@pytest.fixture
def path(tmp_path) -> Path:
    """Return the path of a new ledger for a thousand small releases."""
    path = tmp_path / "budget.json"
    save_ledger(Ledger(epsilon=1.0, delta=0.0), path)
    return path


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_what_was_spent_is_in_the_file(path):
    spent = spend(path, SMALL * 3, "spring survey")
    assert open_ledger(path) == spent
    assert spent.total == SMALL * 3
    assert spent.entries[0].note == "spring survey"
    assert names(path.parent) == ["budget.json", "budget.json.lock"]


def test_a_refusal_changes_nothing(path):
    before = path.read_bytes()
    with pytest.raises(BudgetError, match="1000 such releases would fit"):
        spend(path, SMALL * 1001)
    assert path.read_bytes() == before


def test_a_key_is_spent_once(path):
    spend(path, SMALL, key="monday")
    before = path.stat().st_ino
    assert spend(path, SMALL, key="monday").total == SMALL * 1
    assert path.stat().st_ino == before  # nothing was written


def test_saving_never_loses_what_was_spent(path):
    ledger = open_ledger(path)
    spend(path, SMALL)
    with pytest.raises(OutputError, match="holds another ledger, with 1 entries"):
        save_ledger(ledger, path)
    with pytest.raises(OutputError, match="holds another ledger"):
        save_ledger(Ledger(epsilon=2.0, delta=0.0), path)
    longer = open_ledger(path).spend(SMALL, note="again")
    save_ledger(longer, path)
    assert open_ledger(path) == longer


def test_a_link_leads_to_the_ledger_itself(path):
    link = path.parent / "link.json"
    link.symlink_to(path)
    spend(link, SMALL)
    assert link.is_symlink()
    assert open_ledger(path).total == SMALL * 1


def test_two_names_of_a_ledger_are_not_two_budgets(path):
    os.link(path, path.parent / "other.json")
    for each in (path, path.parent / "other.json"):
        with pytest.raises(OutputError, match=r"json has another name .*, so nothing was spent"):
            spend(each, SMALL)
    path.unlink()
    assert len(spend(path.parent / "other.json", SMALL).entries) == 1


def test_permissions_stay(path):
    path.chmod(0o640)
    spend(path, SMALL)
    assert path.stat().st_mode & 0o777 == 0o640


def test_where_there_is_no_ledger(tmp_path):
    missing = tmp_path / "no.json"
    for ask in (lambda: open_ledger(missing), lambda: spend(missing, SMALL)):
        with pytest.raises(DataError, match="no such file; save_ledger"):
            ask()
    assert names(tmp_path) == []
    with pytest.raises(DataError, match="cannot read"):
        open_ledger(tmp_path)
    with pytest.raises(OutputError, match="cannot write"):
        save_ledger(Ledger(epsilon=1.0, delta=0.0), tmp_path / "none" / "a.json")


def edited(path, change):
    written = json.loads(path.read_text(encoding="utf-8"))
    change(written)
    path.write_text(json.dumps(written), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-40]), "cut short"),
        (lambda p: p.write_bytes(b""), "cut short"),
        (lambda p: p.write_text("[]", encoding="utf-8"), "no ledger"),
        (lambda p: p.write_bytes(b"\xff\xfe\x00"), "not text in UTF-8"),
        (lambda p: p.write_text("[" * 100_000, encoding="utf-8"), "cut short"),
        (lambda p: edited(p, lambda w: w.update(version=3)), "version"),
        (lambda p: edited(p, lambda w: w.update(epsilon=2.0)), "checksum"),
        (lambda p: edited(p, lambda w: w.update(epsilon=float("nan"))), "cut short"),
        (lambda p: edited(p, lambda w: w.update(entries=[])), "checksum"),
        (lambda p: edited(p, lambda w: w["entries"][0].update(note="x")), "checksum"),
        (lambda p: edited(p, lambda w: w.pop("checksum")), "checksum"),
        (lambda p: edited(p, lambda w: w.update(checksum=None)), "checksum"),
    ],
)
def test_damage_is_refused_in_one_line(path, damage, message):
    spend(path, SMALL)
    damage(path)
    before = path.read_bytes()
    for ask in (lambda: open_ledger(path), lambda: spend(path, SMALL)):
        with pytest.raises(DataError, match=message) as caught:
            ask()
        assert "\n" not in str(caught.value)
        assert "budget.json" in str(caught.value)
    with pytest.raises(DataError, match=message):
        save_ledger(Ledger(epsilon=1.0, delta=0.0), path)
    assert path.read_bytes() == before


def test_a_huge_file_is_not_read(path, monkeypatch):
    monkeypatch.setattr(ledger_files, "_MOST_BYTES", 10)
    with pytest.raises(DataError, match="larger than 1 GB"):
        open_ledger(path)


def test_layout_does_not_matter(path):
    edited(path, lambda written: None)
    assert open_ledger(path) == Ledger(epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_ledger(path, monkeypatch, call):
    before = path.read_bytes()

    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(ledger_files.os, call, full)
        with pytest.raises(OutputError, match="free some space"):
            spend(path, SMALL)
    assert path.read_bytes() == before
    assert names(path.parent) == ["budget.json", "budget.json.lock"]
    spend(path, SMALL)


def test_a_lock_that_cannot_be_made(path, monkeypatch):
    def denied(*_arguments):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(ledger_files.os, "open", denied)
        with pytest.raises(OutputError, match="Permission denied"):
            spend(path, SMALL)


SPENDER = """
import sys
from shuffledp.accounting.ledger_files import spend
from shuffledp.composition.release import StatedRelease
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    spend(sys.argv[1], StatedRelease(epsilon=0.001), sys.argv[2], key=f"{sys.argv[2]}-{number}")
    print(number, flush=True)
"""


def spender(path, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", SPENDER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_programs_at_once_lose_nothing(path):
    programs = [spender(path, name, 40) for name in ("left", "right")]
    for program in programs:
        program.communicate()
        assert program.returncode == 0
    ledger = open_ledger(path)
    keys = [entry.key for entry in ledger.entries]
    assert sorted(keys) == sorted(f"{name}-{i}" for name in ("left", "right") for i in range(40))
    assert ledger.total == SMALL * 80


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_killed_at_any_moment_the_file_is_whole_and_nothing_is_lost_or_spent_twice(path):
    confirmed = -1
    for attempt in range(8):
        program = spender(path, "worker", 300)
        assert program.stdout.readline() == "ready\n"
        goal = min(confirmed + 1 + attempt, 299)
        while int(program.stdout.readline()) < goal:
            pass
        time.sleep(0.0013 * attempt)  # another moment each time; none decides the outcome
        program.send_signal(signal.SIGKILL)
        with program.stdout as pipe:
            output = pipe.read()
        program.wait()
        confirmed = max([goal, *(int(line) for line in output.split())])
        keys = [entry.key for entry in open_ledger(path).entries]
        # Each once, in order; all that was confirmed, and at most the one after it.
        assert keys == [f"worker-{i}" for i in range(len(keys))]
        assert confirmed + 1 <= len(keys) <= confirmed + 2
    assert spend(path, SMALL).total.rounds == len(keys) + 1  # no lock was left behind
    assert names(path.parent) == ["budget.json", "budget.json.lock"]


@pytest.mark.parametrize("is_free", [True, False])
def test_on_windows_one_byte_is_locked(path, monkeypatch, is_free):
    asked = []

    def locking(_handle, mode, size):
        asked.append((mode, size))
        if not is_free:
            raise OSError(errno.EDEADLK, os.strerror(errno.EDEADLK))

    msvcrt = SimpleNamespace(locking=locking, LK_NBLCK="hold", LK_UNLCK="let go")
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setattr(ledger_files.sys, "platform", "win32")
    monkeypatch.setattr(ledger_files, "_LOCK_SECONDS", 0.0)
    if is_free:
        spend(path, SMALL)
        assert asked == [("hold", 1), ("let go", 1)]
    else:
        with pytest.raises(OutputError, match="nothing was spent"):
            spend(path, SMALL)
        assert set(asked) == {("hold", 1)}


def test_a_lock_that_the_system_does_not_know(path, monkeypatch):
    def unsupported(*_arguments, **_options):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(ledger_files, "_lock", unsupported)
    with pytest.raises(OutputError, match=os.strerror(errno.ENOLCK)):
        spend(path, SMALL)
