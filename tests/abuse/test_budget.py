"""An operator against a budget: too many runs, and a lock that nobody lets go."""

import fcntl

import pytest

from shuffledp import accounting
from shuffledp.accounting import ledger_files
from shuffledp.cli.main import main
from shuffledp.core.errors import OutputError

RUN = ["run", "answers.csv", "--column", "x", "--domain", "yes,no", "--delta", "1e-4"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text("x\n" + "yes\nno\n" * 100)
    accounting.save_ledger(accounting.Ledger(epsilon=0.5, delta=1e-2), "budget.json")
    return tmp_path


def test_a_run_that_the_budget_does_not_cover_publishes_nothing(folder, capsys):
    command = [*RUN, "--epsilon0", "0.9", "--ledger", "budget.json"]
    assert main([*command, "--out", "first"]) == 0
    assert "is left of the budget" in capsys.readouterr().out
    spent = accounting.open_ledger("budget.json")
    assert len(spent.entries) == 1
    assert 0.0 < spent.remaining < 0.5
    runs = 1
    while main([*command, "--out", f"run-{runs}"]) == 0:
        runs += 1
        assert runs < 30
    assert "budget" in capsys.readouterr().err
    ledger = accounting.open_ledger("budget.json")
    assert len(ledger.entries) == runs
    assert ledger.spent.upper <= 0.5
    assert not (folder / f"run-{runs}").exists()


def test_other_shuffles_spend_their_stated_guarantee(folder):
    (folder / "answers.csv").write_text("x,place\n" + "".join(f"yes,{i}\n" for i in range(60)))
    groups = ["--shuffler", "mallows", "--groups-by", "place", "--metric", "absolute"]
    groups += ["--radius", "3", "--alpha", "1"]
    command = [*RUN, "--epsilon0", "0.2", "--ledger", "budget.json", *groups]
    assert main([*command, "--out", "first"]) == 0
    (entry,) = accounting.open_ledger("budget.json").entries
    assert "StatedRelease" in repr(entry.releases)


def test_a_simulation_spends_nothing(folder, capsys):
    command = [*RUN, "--epsilon0", "0.9", "--ledger", "budget.json", "--seed", "1"]
    assert main([*command, "--out", "first"]) == 2
    assert "a simulation spends nothing" in capsys.readouterr().err
    assert accounting.open_ledger("budget.json").entries == ()


def test_a_lock_that_is_held_for_ever_is_given_up(folder, monkeypatch):
    monkeypatch.setattr(ledger_files, "_LOCK_SECONDS", 0.05)
    before = (folder / "budget.json").read_bytes()
    release = accounting.ShuffledRelease(epsilon0=0.1, num_users=100)
    with (folder / "budget.json.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="so nothing was spent"):
            accounting.spend("budget.json", release)
    assert (folder / "budget.json").read_bytes() == before
    accounting.spend("budget.json", release)


def test_a_lock_is_not_taken_through_a_link(folder):
    (folder / "budget.json.lock").unlink(missing_ok=True)
    (folder / "budget.json.lock").symlink_to(folder / "elsewhere")
    with pytest.raises(OutputError, match="cannot write"):
        accounting.spend("budget.json", accounting.ShuffledRelease(epsilon0=0.1, num_users=100))
    assert not (folder / "elsewhere").exists()
