"""An exchange between processes: a relay, peers and an analyzer, some of them killed on the way."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import polars as pl
import pytest

from graph_families import random_regular_graph
from shuffledp.core.entropy import Entropy

# The module's only statistical test: an interval of this confidence misses the true share.
FALSE_POSITIVE_RATE = 1e-10

PROGRAM = Path(sys.executable).with_name("shuffledp")

# Tests wait for states. This only ends what would never end, on however busy a machine, and before
# pytest does, so that the logs are shown.
PATIENCE_SECONDS = 1500.0


# The program, killed outright before or after it calls a method for the n-th time.
DYING = """
import itertools, os, signal, sys
from importlib import import_module

target, when, number, *arguments = sys.argv[1:]
module, name, method = target.split(":")
owner = getattr(import_module(f"shuffledp.peers.{module}"), name)
real, calls = getattr(owner, method), itertools.count(1)

def dying(*args, **options):
    dies = next(calls) == int(number)
    if dies and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **options)
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, method, dying)
from shuffledp.cli.main import main
sys.exit(main(arguments))
"""


# The program, whose relay looks for the time in a file.
HELD = """
import sys
from pathlib import Path
from shuffledp.cli.main import main
from shuffledp.peers.relay import RelayService

clock = Path("now")
RelayService.__init__.__kwdefaults__["now"] = lambda: float(
    clock.read_text() if clock.exists() else 0
)
sys.exit(main(sys.argv[1:]))
"""


class Processes:
    """Commands in one folder, none of which outlives the test."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.started = []
        self.http = httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.http.close()
        for process, _ in self.started:
            if process.poll() is None:
                process.kill()  # stopped ones die of it, too
            process.wait()
            process.stdin.close()

    def start(self, name, *arguments, dies=(), is_held=False):
        """Start a command of the group, perhaps one that dies; it prints into files."""
        log = self.folder / f"{len(self.started)}-{name}"
        with log.with_suffix(".out").open("w") as out, log.with_suffix(".err").open("w") as err:
            program = [sys.executable, "-c", DYING, *map(str, dies)] if dies else [PROGRAM]
            program = [sys.executable, "-c", HELD] if is_held else program
            process = subprocess.Popen(
                [*program, "network", name, *arguments],
                cwd=self.folder, stdin=subprocess.PIPE, stdout=out, stderr=err, text=True,
            )  # fmt: skip
        self.started.append((process, log))
        return process

    def log(self, process):
        (log,) = [log for each, log in self.started if each is process]
        return log

    def printed(self, process) -> str:
        return self.log(process).with_suffix(".out").read_text()

    def refusal(self, process) -> str:
        """Wait for a command that cannot do what it should, and return why."""
        assert self.end(process) == 2, self.logs()
        return self.log(process).with_suffix(".err").read_text()

    def wait(self, what, condition):
        """Return what a condition returns once it is true; show all logs where it never is."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not (found := condition()):
            assert time.monotonic() < give_up, f"{what}: never\n{self.logs()}"
            # A traceback: what is waited for will not come.
            assert all(each.poll() != 1 for each, _ in self.started), self.logs()
            time.sleep(0.02)
        return found

    def end(self, process) -> int:
        """Wait for the end of a command and return its exit code."""
        self.wait("the end of a process", lambda: process.poll() is not None)
        return process.returncode

    def finish(self, process) -> str:
        """Wait for the end of a command and return what it printed."""
        assert self.end(process) == 0, self.logs()
        return self.printed(process)

    def logs(self) -> str:
        texts = []
        for process, log in self.started:
            texts.append(f"{log.name}, exit code {process.poll()}")
            texts += [log.with_suffix(end).read_text()[-2000:] for end in (".out", ".err")]
        return "\n".join(texts)

    def killed(self, process):
        """Wait until a command that dies is dead."""
        assert self.end(process) == -signal.SIGKILL, self.logs()

    def start_relay(self, store, *options, port=0, dies=(), is_held=False):
        return self.start(
            "relay", "c/terms.json", "--graph", "edges.csv", "--store", store,
            "--listen", f"127.0.0.1:{port}", *options, dies=dies, is_held=is_held,
        )  # fmt: skip

    def relay(self, *options, port=0, dies=(), is_held=False):
        """Start a relay, wait until it listens, and return it with its URL."""
        process = self.start_relay("relay.db", *options, port=port, dies=dies, is_held=is_held)
        url = self.wait("the relay's URL", lambda: self.printed(process).strip())
        return process, url

    def peers(self, url, users, state, *options, dies=()):
        return self.start(
            "peer", "c/terms.json", "--graph", "edges.csv", "--relay", url, "--table",
            self.table_of(users), "--column", "answer", "--id", "user", "--state", state,
            *options, dies=dies,
        )  # fmt: skip

    def table_of(self, users):
        """Write the answers of some users into a table of their own; return its name."""
        first, last = (int(end) for end in users.split("-"))
        name = f"{users}.csv"
        answers = pl.read_csv(self.folder / "answers.csv")["answer"][first : last + 1]
        pl.DataFrame({"user": range(first, last + 1), "answer": answers}).write_csv(
            self.folder / name
        )
        return name

    def wait_for(self, url, **wanted):
        """Wait for a status of the relay."""

        def reached():
            status = self.http.get(f"{url}/status").json()
            return all(status[name] == value for name, value in wanted.items())

        self.wait(f"a status with {wanted}", reached)

    def start_collecting(self, url, *options, dies=()):
        return self.start(
            "collect", "c/terms.json", "--key", "c/analyzer.key", "--graph", "edges.csv",
            "--relay", url, "--delta", "1e-3", "--out", "results", "--json", *options, dies=dies,
        )  # fmt: skip


@pytest.fixture
def processes(tmp_path):
    with Processes(tmp_path) as found:
        yield found


def kill(process):
    process.kill()
    process.wait()


def prepare(processes, num_users, degree, rounds):
    """Write a graph and answers (30 % yes), and prepare the terms."""
    graph = random_regular_graph(num_users, degree, Entropy.from_seed(1))
    lines = [
        f"{user},{other}" for user in range(num_users)
        for other in graph.neighbours_of(user).tolist() if user < other
    ]  # fmt: skip
    (processes.folder / "edges.csv").write_text("\n".join(lines) + "\n")
    answers = pl.Series("answer", ["yes" if user % 10 < 3 else "no" for user in range(num_users)])
    answers.to_frame().write_csv(processes.folder / "answers.csv")
    made = processes.start(
        "prepare", "--graph", "edges.csv", "--domain", "yes,no", "--epsilon0", "3",
        "--rounds", str(rounds), "--out", "c", "--json",
    )  # fmt: skip
    processes.finish(made)
    account = processes.start(
        "account", "edges.csv", "--epsilon0", "3", "--delta", "1e-3", "--rounds", str(rounds),
        "--randomizer", "k-rr", "--k", "2", "--json",
    )  # fmt: skip
    return json.loads(processes.finish(account))["epsilon"]["upper"]


@pytest.mark.slow
def test_two_hundred_peers_and_a_relay_that_is_killed_in_the_middle(processes):
    expected = prepare(processes, 200, 10, 3)
    relay, url = processes.relay("--clock", "all", "--round-seconds", "3600")
    peers = [processes.peers(url, users, f"{users}.db") for users in ("0-99", "100-199")]
    collecting = processes.start_collecting(url, "--confidence", str(1.0 - FALSE_POSITIVE_RATE))
    processes.wait(
        "the middle of a round",
        lambda: (
            (status := processes.http.get(f"{url}/status").json())["round"] == 2
            and 0 < status["num_sent"] < 200
        ),
    )
    kill(relay)
    again, url = processes.relay(
        "--clock", "all", "--round-seconds", "3600", "--until-collected",
        port=int(url.rpartition(":")[2]),
    )  # fmt: skip
    result = json.loads(processes.finish(collecting))
    for process in peers:
        assert "100 of 100 users" in processes.finish(process)
    processes.finish(again)
    collection = result["collection"]
    # Nothing was lost, and nothing came twice.
    assert collection["num_reports"] == collection["num_handed_in"] == 200
    assert collection["rejected"] == {}
    assert collection["num_absences"] == 0
    # Somebody holds more than there is room for with a probability that is taken off delta.
    assert result["guarantee"]["epsilon"]["upper"] == pytest.approx(expected, rel=1e-6)
    (caution,) = result["warnings"]  # three rounds are too few
    assert caution.startswith("Only the local guarantee is left")
    (yes,) = [row for row in result["estimates"] if row["value"] == "yes"]
    assert yes["lower"] <= 0.3 <= yes["upper"]
    written = sorted(entry.name for entry in (processes.folder / "results").iterdir())
    assert written == [".shuffledp-results.json", "estimates.csv", "privacy.json", "report.html"]


@pytest.mark.slow
def test_processes_that_are_killed_stopped_refused_and_never_return(processes):
    expected = prepare(processes, 18, 6, 4)
    relay, url = processes.relay(is_held=True)
    port = int(url.rpartition(":")[2])
    same_store = processes.start_relay("relay.db")
    same_port = processes.start_relay("other.db", port=port)
    steady = processes.peers(url, "0-9", "steady.db")
    away = processes.peers(url, "10-13", "away.db", "--most-absences", "2")
    gone = processes.peers(url, "14-17", "gone.db")
    collecting = processes.start_collecting(url)
    processes.wait_for(url, phase="round", round=1, num_sent=18)
    assert "relay.db is in use by another program" in processes.refusal(same_store)
    assert "cannot listen at 127.0.0.1" in processes.refusal(same_port)
    away.send_signal(signal.SIGSTOP)
    os.waitpid(away.pid, os.WUNTRACED)
    kill(gone)

    times = itertools.count(700, 700)  # seconds: handing in, too, ends after ten rounds of 60

    def close_round(**wanted):
        later = processes.folder / "later"  # in one stroke: it is read at any moment
        later.write_text(str(next(times)))
        later.replace(processes.folder / "now")
        processes.wait_for(url, **wanted)

    close_round(round=2, num_sent=10)
    kill(relay)
    relay, url = processes.relay(port=port, is_held=True)
    processes.wait_for(url, round=2, num_sent=10)
    close_round(round=3)
    kill(steady)
    steady = processes.peers(url, "0-9", "steady.db")
    processes.wait_for(url, round=3, num_sent=10)
    close_round(round=4)  # who comes back could otherwise still send in round 3
    away.send_signal(signal.SIGCONT)
    processes.wait_for(url, round=4, num_sent=14)
    close_round(phase="hand-in", num_handed_in=14)
    close_round(phase="over")
    result = json.loads(processes.finish(collecting))
    assert "10 of 10 users" in processes.finish(steady)
    assert {"4 of 4 users", "rounds missed  8"} <= set(
        re.findall("4 of 4 users|rounds missed  8", processes.finish(away))
    )
    collection = result["collection"]
    assert collection["num_registered"] == 18
    assert collection["num_handed_in"] == 14
    assert collection["num_absences"] == 2 * 4 + 3 * 4
    assert collection["rejected"] == {}
    assert 0 < collection["num_reports"] < 18
    network = result["network"]
    assert (network["num_users"], network["num_absences"]) == (18, 2 * 4 + 3 * 4)
    assert result["guarantee"]["epsilon"]["upper"] > expected
    relay.send_signal(signal.SIGTERM)
    assert processes.end(relay) == 143, processes.logs()


@pytest.mark.slow
def test_processes_that_are_killed_where_something_is_deleted(processes):
    prepare(processes, 12, 4, 2)
    clock = ("--clock", "all", "--round-seconds", "3600")
    # The relay: when it has kept the first batch of round 2, deleted its sender's mail, and not
    # said so yet. A peer: when it has taken mail and not saved it; then with old keys in the log.
    relay, url = processes.relay(*clock, dies=("relay:Relay:accept_batch", "after", 13))
    port = int(url.rpartition(":")[2])
    dies = ("peer:Peer:receive", "after", 1)
    first = processes.peers(url, "0-5", "first.db", dies=dies)
    second = processes.peers(url, "6-11", "second.db")
    processes.killed(relay)
    dies = ("relay:Relay:forget_hand_ins", "after", 1)
    relay, url = processes.relay(*clock, port=port, dies=dies)
    processes.killed(first)
    dies = ("peer_runner:PeerStore:wipe_log", "before", 1)
    first = processes.peers(url, "0-5", "first.db", dies=dies)
    processes.killed(first)
    first = processes.peers(url, "0-5", "first.db")
    for process in (first, second):
        assert "6 of 6 users" in processes.finish(process)
    # The analyzer: when all is saved and the relay does not know; the relay, when it has deleted
    # it and not said so; and the analyzer, when it has heard that and not noted it.
    dies = ("relay_client:RelayClient:forget_hand_ins", "before", 1)
    processes.killed(processes.start_collecting(url, dies=dies))
    dies = ("collecting:FetchedStore:note_forgotten", "before", 1)
    collecting = processes.start_collecting(url, dies=dies)
    processes.killed(relay)
    relay, url = processes.relay(*clock, port=port)
    processes.killed(collecting)
    result = json.loads(processes.finish(processes.start_collecting(url)))
    collection = result["collection"]
    assert collection["num_reports"] == collection["num_confirmed"] == 12
    assert (collection["rejected"], collection["num_absences"]) == ({}, 0)
    (caution,) = result["warnings"]  # twelve users hide little
    assert caution.startswith("Only the local guarantee is left")
    # Once more, from the analyzer's file alone.
    kill(relay)
    again = json.loads(processes.finish(processes.start_collecting(url, "--overwrite")))
    assert (again["estimates"], again["collection"]) == (result["estimates"], collection)
