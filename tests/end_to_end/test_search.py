"""A search for popular texts among devices: from a plan to the texts, with processes of its own."""

import json
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.clocked import EPOCH, HALF, OVER, Clock
from golden.net.exchange import free_address
from shuffledp.cli.main import main
from shuffledp.deploy.task import Task

NUM_USERS, ROUNDS = 1500, 2
ASKED = ["--discover", "--max-bytes", "2", "--most", "5", "--bits", "8"]
#: That either of two texts of half the people is not found, or another is: below 1e-9 by the law
#: of one bin, see `test_a_search_among_devices`.
FALSE_POSITIVE_RATE = 1e-9


@pytest.fixture
def clock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    pl.DataFrame({"text": np.where(np.arange(NUM_USERS) % 2, "ab", "é")}).write_csv("texts.csv")
    return Clock(tmp_path, monkeypatch, behind=ROUNDS * (HALF + OVER))


def served(clock, folder, work):
    """Run both servers of a task while some work is done."""
    servers = []
    try:
        for role in ("shuffler", "analyzer"):
            command = [clock.shuffledp, "serve", role, "--config", f"{folder}/{role}.toml"]
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert servers[-1].stdout.readline().startswith("http://127.0.0.1:")
        work()
    finally:
        for process in servers:
            process.terminate()
            process.communicate(timeout=600)


def answered(clock, number):
    """Have all devices answer a round, and collect its result."""

    def work():
        clock.run("send", f"round{number}/task.bin", "texts.csv", "--column", "text")
        clock.move(OVER)
        clock.run("collect", f"round{number}", "--out", f"results{number}")

    clock.move(HALF)
    served(clock, f"round{number}", work)
    return json.loads(Path(f"results{number}/privacy.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_search_among_devices(clock, capfd):
    planned = ["plan", *ASKED, "--num-users", str(NUM_USERS), "--epsilon", "4", "--delta", "1e-6"]
    assert main([*planned, "--out", "plan.json"]) == 0
    addresses = ["--shuffler", free_address(), "--analyzer", free_address()]
    create = ["task", "create", "--plan", "plan.json", "--min-batch", str(NUM_USERS)]
    clock.run(*create, "--epoch", EPOCH, "--grace", "1s", "--out", "round1", *addresses)
    first = answered(clock, 1)
    said = " ".join(capfd.readouterr().out.split())
    assert "shuffledp task next" in said
    follow = ["task", "next", "round1", "results1", "--out", "round2", *addresses]
    clock.run(*follow, "--grace", "1s")
    second = answered(clock, 2)
    assert "with probability 0.95 at least" in " ".join(capfd.readouterr().out.split())
    assert sorted(each["value"] for each in second["estimates"]) == ["ab", "é"]
    assert all(abs(each["frequency"] - 0.5) < 0.2 for each in second["estimates"])
    one, other = (Task.decode(Path(f"round{i}/task.bin").read_bytes()) for i in (1, 2))
    assert one.collection_id == other.collection_id
    upper = [each["guarantee"]["epsilon"]["upper"] for each in (first, second)]
    assert upper[0] == upper[1] <= 4.0
    assert first["num_users"] == second["num_users"] == NUM_USERS
    users = [each["num_users"] for each in second["discovery"]["rounds"]]
    assert sum(users) == NUM_USERS  # each device answered one round, and sent in both
    assert main(["task", "next", "round2", "results2", "--out", "round3"]) != 0
    assert "is over after round 2 of 2" in " ".join(capfd.readouterr().err.split())
    assert main(["task", "next", "round2", "results1", "--out", "round3"]) != 0
    assert "give the folder of the same round's result" in " ".join(capfd.readouterr().err.split())
