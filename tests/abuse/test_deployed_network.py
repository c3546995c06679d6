"""A malicious network between devices and the servers of a task, over HTTP.

It hears, loses, repeats, holds back, reorders and changes what passes. Each report counts once all
the same, or is known to be missing; what was heard opens nothing and links nobody.
"""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from abuse.network import CUT, LATER, LOSE, PASS, TWICE, Network
from deploy.steps import advance
from golden.net.exchange import free_address
from shuffledp.cli.main import main
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy import remote
from shuffledp.deploy.analyzer import Analyzer
from shuffledp.deploy.client import Client
from shuffledp.deploy.messages import Answer, report_size
from shuffledp.deploy.servers.settings import (
    HANDED_OUT,
    AnalyzerSettings,
    ShufflerSettings,
    keys_of,
    read_task,
    signing_key,
)
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.wire import ProtocolError, Reason

SHUFFLEDP = Path(sys.executable).with_name("shuffledp")
NUM_CLIENTS = 8


@pytest.fixture
def deployed(tmp_path, monkeypatch):
    """Return what starts a task whose shuffler is reached through a network of one's own."""
    monkeypatch.chdir(tmp_path)
    for name in ("_FIRST_WAIT", "_LONGEST_WAIT"):
        monkeypatch.setattr(remote, name, 0.01)
    with ExitStack() as stack:

        def start(**network):
            shuffler, analyzer = free_address(), free_address()
            between = stack.enter_context(Network(shuffler, **network))
            assert main(["task", "create", "--domain", "a,b,c,d", "--epsilon0", "1", "--epsilon",
                         "1", "--delta", "1e-6", "--min-batch", "3", "--epoch", "1d",
                         "--out", "task", "--shuffler", shuffler, "--analyzer", analyzer,
                         "--shuffler-url", f"http://{between.address}"]) == 0  # fmt: skip
            for role in ("shuffler", "analyzer"):
                process = subprocess.Popen(
                    [SHUFFLEDP, "serve", role, "--config", f"task/{role}.toml"],
                    stdout=subprocess.PIPE,
                )
                stack.callback(process.communicate)
                stack.callback(process.kill)
                assert process.stdout.readline().startswith(b"http://")
            return between

        yield start


def send_all(number=NUM_CLIENTS):
    """Answer as so many devices; return their randomized reports."""
    task, sent = read_task(Path("task/task.bin")), []
    for index in range(number):
        with Client(task, f"{index}.db") as client:
            sent.append(client.report("abcd"[index % 4]).report)
            assert client.send() in (Answer.ACCEPTED, Answer.REPLAYED)
            assert client.is_done
    return sent


def released(folder):
    """Copy the servers' stores as they are, and return what they release when the epoch is over."""
    subprocess.run(["cp", "-r", "task", folder], check=True)
    mine = ShufflerSettings.read(folder / "shuffler.toml")
    others = AnalyzerSettings.read(folder / "analyzer.toml")
    task = read_task(mine.task)
    with (
        Shuffler(
            task,
            mine.store,
            signing_key=signing_key(mine.signing_key),
            sealing_keys=keys_of(mine, task),
            handed_out=mine.sealing_keys / HANDED_OUT,
        ) as shuffler,
        Analyzer(
            task,
            others.store,
            shuffler_key=bytes.fromhex(others.shuffler),
            opening_keys=keys_of(others, task),
        ) as analyzer,
    ):
        (state,) = advance(shuffler, task.start + 2 * 86_400)
        opened = analyzer.take(shuffler.fetch(state.number))
        return opened, shuffler.counts()


def reports_in(opened):
    return sorted(bytes([each]) for each in opened.reports.data.tolist())


# ---------------------------------------------------------------- faults
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whatever_the_network_does_each_report_counts_once(deployed, tmp_path, seed):
    draw = Entropy.from_seed(seed).generator()
    fates = [str(each) for each in draw.choice([PASS, LOSE, TWICE, LATER, CUT], 200)]
    network = deployed(fate=lambda number, _: fates[number % 200])
    sent = send_all()
    opened, counts = released(tmp_path / "copy")
    assert reports_in(opened) == sorted(sent)
    assert opened.guarantee.num_users == len(sent)
    assert {LOSE, TWICE, LATER, CUT} <= set(network.fates)
    assert counts["accepted"] >= len(sent)  # a copy is answered as the first one was


@pytest.mark.slow
def test_what_the_network_loses_for_good_is_not_counted_as_there(deployed, tmp_path):
    """It says in the shuffler's name that it has the report: nobody can tell, and n is smaller."""
    is_lying = [False]

    def fate(_, path):
        return b"\0" if is_lying[0] and path.endswith(b"/reports") else PASS

    deployed(fate=fate)
    sent = send_all(4)
    is_lying[0] = True
    with Client(read_task(Path("task/task.bin")), "lost.db") as client:
        client.report("a")
        assert client.send() is Answer.ACCEPTED
    opened, _ = released(tmp_path / "copy")
    assert opened.guarantee.num_users == len(sent) == 4


# ---------------------------------------------------------------- who listens
def test_what_was_heard_opens_nothing_and_repeated_or_changed_counts_nothing(deployed, tmp_path):
    network = deployed()
    sent = send_all()
    task = read_task(Path("task/task.bin"))
    size = report_size(task.asked.codec.num_report_bytes)
    uploads = [request for request, _ in network.heard if b"/reports " in request]
    bodies = [request.partition(b"\r\n\r\n")[2] for request in uploads]
    assert {len(body) for body in bodies} == {size}  # whatever the answer
    assert len({body[:16] for body in bodies}) == len({body[21:] for body in bodies}) == 8
    for place, (request, body) in enumerate(zip(uploads, bodies, strict=True)):
        assert network.replay(request) == bytes([Answer.ACCEPTED])
        other_id = request.replace(body, bytes([place]) * 16 + body[16:])
        assert network.replay(other_id) == bytes([Answer.ACCEPTED])  # yet it does not open
        same_id = request.replace(body, body[:-1] + bytes([body[-1] ^ 1]))
        assert network.replay(same_id) == bytes([Answer.REPLAYED])
        other_epoch = request.replace(body, body[:19] + b"\1" + body[20:])
        assert network.replay(other_epoch) == bytes([Answer.EARLY])
    opened, counts = released(tmp_path / "copy")
    assert reports_in(opened) == sorted(sent)
    assert counts["unopened"] == len(sent)


CHANGES = [
    ("keys", lambda body: body[:-1] + bytes([body[-1] ^ 1]), Reason.FORGED),
    ("keys", lambda body: body[:30] + bytes([body[30] ^ 1]) + body[31:], Reason.FORGED),
    ("keys", lambda body: b"", Reason.MALFORMED),
    ("reports", lambda body: b"", Reason.MALFORMED),
    ("reports", lambda body: body * 2, Reason.MALFORMED),
    ("reports", lambda body: b"\xff", Reason.MISMATCH),
]


@pytest.mark.slow
def test_changed_answers_are_refused_and_the_report_is_sent_again(deployed):
    changes = {}

    def alter(path, body):
        return changes.get(path.rpartition(b"/")[2].decode(), lambda same: same)(body)

    deployed(alter=alter)
    for index, (what, change, reason) in enumerate(CHANGES):
        with Client(read_task(Path("task/task.bin")), f"{index}.db") as client:
            kept = client.report("a")
            changes[what] = change
            with pytest.raises(ProtocolError) as caught:
                client.send()
            assert caught.value.reason is reason
            assert not client.is_done
            changes.clear()
            assert client.send() in (Answer.ACCEPTED, Answer.REPLAYED)
            assert client.kept() == kept


@pytest.mark.slow
def test_a_network_that_loses_everything_costs_patience_only(deployed):
    deployed(fate=lambda _number, _path: LOSE)
    with Client(read_task(Path("task/task.bin")), "a.db") as client:
        kept = client.report("a")
        with pytest.raises(ShuffledpError, match="nothing is lost"):
            client.send(patience_seconds=0.3)
        assert client.kept() == kept
