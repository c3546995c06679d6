"""Both servers as processes: what they log, count and keep says nothing of a report or a client."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import httpx
import psycopg
import pytest

from deploy.databases import url_for
from deploy.roles import upload
from end_to_end.clocked import EPOCH, HALF, OVER, Clock
from end_to_end.test_deployment import inner
from golden.net.exchange import free_address
from shuffledp.cli.main import TERMINATED, main
from shuffledp.deploy.remote import servers_of
from shuffledp.deploy.servers.settings import read_task
from shuffledp.deploy.servers.watch import FIELDS, METRICS

REPOSITORY = Path(__file__).parents[2]
OPERATIONS = REPOSITORY / "docs" / "operations"
SHUFFLEDP = Path(sys.executable).with_name("shuffledp")
NUM_REPORTS = 60
# Tests wait for states; this only ends what hangs.
PATIENCE_SECONDS = 600
AGENT, CLIENT = "canary-agent/7.3", "127.0.0.77"


def started(clock, role, log, *more):
    """Start a server whose events go into a file."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [clock.shuffledp, "serve", role, "--config", f"task/{role}.toml", *more],
            stdout=subprocess.PIPE,
            stderr=file,
        )
    assert process.stdout.readline().startswith(b"http://")
    return process


def wait_for(text, ask):
    """Ask until an answer has a text; return the answer."""
    while text not in (said := ask()):
        time.sleep(0.05)
    return said


def traces(folder, marks):
    """Return which marks are in which files below a folder."""
    return {
        (mark, path.name)
        for path in folder.rglob("*")
        if path.is_file()
        for mark in marks
        if mark in path.read_bytes()
    }


@pytest.mark.slow
def test_logs_numbers_and_stores_say_nothing_of_reports_and_clients(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    addresses = shuffler, analyzer = free_address(), free_address()
    create = [
        "task", "create", "--domain", "yes,no", "--epsilon0", "2", "--epsilon", "2", "--delta",
        "1e-6", "--min-batch", "50", "--epoch", EPOCH, "--grace", "8s", "--out", "task",
    ]  # fmt: skip
    clock = Clock(tmp_path, monkeypatch, behind=HALF + OVER)
    clock.run(*create, "--shuffler", shuffler, "--analyzer", analyzer)
    clock.move(HALF)
    task = read_task(Path("task/task.bin"))
    logs = {role: tmp_path / "task" / f"{role}.log" for role in ("shuffler", "analyzer")}
    servers = [started(clock, role, log) for role, log in logs.items()]
    try:
        for address in addresses:
            wait_for("ok", lambda address=address: inner(address, "/readyz"))
        with servers_of(task) as (_, sealing, opening):
            pass
        epoch = 0
        ids = [bytes([17, 34, 51]) * 4 + number.to_bytes(4, "big") for number in range(NUM_REPORTS)]
        body = b"".join(
            upload(
                task, b"\0", number=int.from_bytes(each, "big"), epoch=epoch,
                key=sealing.key_of_epoch(epoch), analyzer=opening.key_from(epoch),
            )
            for each in ids
        )  # fmt: skip
        transport = httpx.HTTPTransport(local_address=CLIENT)
        with httpx.Client(transport=transport, headers={"user-agent": AGENT}) as device:
            path = f"{task.shuffler_url}/tasks/{task.task_id.hex()}/reports"
            assert set(device.post(path, content=body).content) == {0}
            assert device.post(path, content=body[:-1]).status_code == 400
            assert device.get(f"{task.shuffler_url}/absent").status_code == 404
        clock.move(OVER)
        marks = [AGENT.encode(), CLIENT.encode()]
        marks += [mark for each in ids for mark in (each, each.hex().encode())]
        wait_for('state="published"} 1', lambda: inner(analyzer, "/metrics"))
        said = wait_for('state="fetched"} 1', lambda: inner(shuffler, "/metrics"))
        wait_for(f'"key_destroyed", "epoch": {epoch}', logs["shuffler"].read_text)
        said += inner(analyzer, "/metrics")
        Path("metrics.txt").write_text(said)
        assert 'reports_total{outcome="accepted"} 60\n' in said
        check_alerts(said)
    finally:
        for process in servers:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_SECONDS)
    assert [process.returncode for process in servers] == [TERMINATED, TERMINATED]
    assert traces(tmp_path, marks) == set()
    Path("task/planted").write_bytes(b"from " + marks[1])  # it would be found
    assert traces(tmp_path, marks) == {(marks[1], "planted")}
    events = []
    for log in logs.values():
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert all(set(line) <= set(FIELDS) for line in lines)
        events.append([line["event"] for line in lines if line["event"] != "key_destroyed"])
    assert events[0] == ["started", "batch_closed", "batch_sealed", "batch_fetched", "stopped"]
    assert [each for each in events[1] if "shuffler" not in each] == [
        "started", "published", "stopped",
    ]  # fmt: skip


DAYS = 400 * 86_400


class Pair:
    """Two processes of a shuffler with one database, of which the first to come leads.

    The clock of that one is wrong at times.
    """

    def __init__(self, folder, monkeypatch, *, behind):
        self.wrong, self.right = (
            Clock(folder / each, monkeypatch, behind=behind) for each in ("wrong", "right")
        )
        self.address, self.database = free_address(4), url_for(folder)
        self.logs = {name: folder / f"{name}.log" for name in ("wrong", "right")}
        self.processes, self.sealed = {}, {}

    def start(self, name):
        """Start one of them."""
        more = ["--instance", "1"] if name == "wrong" else []
        log = self.logs[name]
        self.processes[name] = started(getattr(self, name), "shuffler", log, *more)

    def move(self, seconds):
        """Move both clocks on."""
        self.wrong.move(seconds)
        self.right.move(seconds)

    def count(self, event):
        """Return how often the one with the wrong clock said something."""
        return self.logs["wrong"].read_text().count(f'"event": "{event}"')

    def wait(self, event, number):
        """Wait until it has said that so often."""
        while self.count(event) < number:
            time.sleep(0.05)

    def stored(self):
        """Return the time that is stored, None if none is, and how many reports wait opened."""
        with psycopg.connect(self.database) as connection:
            path = "SELECT set_config('search_path', schemaname::text, false)"
            connection.execute(f"{path} FROM pg_tables WHERE tablename = 'held'")
            last = connection.execute("SELECT number FROM facts WHERE name = 'last_time'")
            held = connection.execute("SELECT count(*) FROM held")
            return (last.fetchone() or (None,))[0], held.fetchone()[0]

    def send(self, task, lists, numbers, name="right"):
        """Return what one answers to reports of the second epoch."""
        keys = {"key": lists[0].key_of_epoch(1), "analyzer": lists[1].key_from(1)}
        for n in numbers:
            self.sealed.setdefault(n, upload(task, b"\0", number=n, epoch=1, **keys))
        body = b"".join(self.sealed[n] for n in numbers)
        host, _, port = self.address.rpartition(":")
        url = f"http://{host}:{int(port) + 2 * (name == 'wrong')}/tasks/{task.task_id.hex()}"
        answer = httpx.post(f"{url}/reports", content=body, timeout=PATIENCE_SECONDS)
        return answer.status_code, set(answer.content[: len(numbers)])


ACCEPTED = (200, {0})


def private_keys():
    """Return the private keys that are there."""
    return {str(each) for each in Path("task").rglob("*.key")}


def a_task_with_short_batch(pair, analyzer):
    """Make a task and start its servers; return it and its lists once 40 reports are held."""
    pair.right.run(
        "task", "create", "--domain", "yes,no", "--epsilon0", "2", "--epsilon", "2", "--delta",
        "1e-6", "--min-batch", "50", "--epoch", EPOCH, "--grace", "8s", "--out", "task",
        "--shuffler", pair.address, "--analyzer", analyzer,
    )  # fmt: skip
    with Path("task/shuffler.toml").open("a") as settings:
        settings.write(f'database = "{pair.database}"\n')
    task, made = read_task(Path("task/task.bin")), private_keys()
    pair.wrong.move(0, wrong=DAYS)  # at the first start of all
    pair.start("wrong")
    pair.wait("clock_jumped", 1)
    assert pair.stored() == (None, 0)
    assert private_keys() == made
    pair.wrong.move(0, wrong=-DAYS)
    pair.wait("clock_back", 1)
    pair.move(HALF)
    pair.start("right")
    pair.processes["analyzer"] = started(pair.right, "analyzer", Path("analyzer.log"))
    with servers_of(task) as (_, *lists):
        pass
    Path("answers.csv").write_text("answer\n" + "yes\nno\n" * 20)
    pair.right.run("send", "task/task.bin", "answers.csv", "--column", "answer")
    pair.move(OVER)
    pair.wait("batch_short", 1)
    wait_for('"epoch": 0}', lambda: "".join(log.read_text() for log in pair.logs.values()))
    return task, lists


@pytest.mark.slow
def test_a_clock_that_jumps_costs_nothing_at_a_database_that_two_shufflers_share(
    tmp_path, monkeypatch
):
    """It jumps at the first start of all, while the server runs, and while it starts again."""
    monkeypatch.chdir(tmp_path)
    analyzer = free_address()
    pair = Pair(tmp_path, monkeypatch, behind=HALF + OVER + 3600)
    try:
        task, lists = a_task_with_short_batch(pair, analyzer)
        assert pair.stored()[1] == 40
        assert pair.send(task, lists, range(10), "wrong") == ACCEPTED
        left = private_keys()
        assert {"task/shuffler/keys/1.key", "task/shuffler/keys/29.key"} <= left
        pair.wrong.move(0, wrong=DAYS)
        for number in (2, 3):
            pair.wait("clock_jumped", number)
            assert pair.send(task, lists, range(10, 20), "wrong")[0] == 503
            assert pair.send(task, lists, range(5, 15)) == ACCEPTED  # by the other one
            last, num_held = pair.stored()
            assert (task.nth_epoch(last), num_held) == (1, 40)
            if number == 2:
                pair.processes["wrong"].kill()
                pair.processes["wrong"].communicate()
                pair.start("wrong")
        pair.wrong.move(0, wrong=-DAYS)
        pair.wait("clock_back", 2)
        assert private_keys() == left
        assert pair.stored()[1] == 40
        for name in ("wrong", "right"):
            assert pair.send(task, lists, range(20), name) == ACCEPTED
        pair.move(3600)
        wait_for('state="published"} 1', lambda: inner(analyzer, "/metrics"))
        assert main(["collect", "task", "--out", "results"]) == 0
        assert json.loads(Path("results/privacy.json").read_bytes())["num_users"] == 60
    finally:
        for process in pair.processes.values():
            process.terminate()
            process.communicate(timeout=PATIENCE_SECONDS)


def check_alerts(said):
    """Look each name of the alert rules up among the numbers that are served."""
    names = set(re.findall(r"shuffledp_\w+", (OPERATIONS / "alerts.yml").read_text("utf-8")))
    budget = {name for name in names if "_budget_" in name}  # of an analyzer with a ledger
    assert len(names) > len(budget) > 0
    assert budget <= set(METRICS)
    assert {name for name in names - budget if f"\n{name}" not in said} == set()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("role", ["shuffler", "analyzer"])
def test_units_are_sound_and_closed_up(tmp_path, role):
    unit = OPERATIONS / f"shuffledp-{role}.service"
    text = unit.read_text("utf-8")
    assert f"/opt/shuffledp/bin/shuffledp serve {role} --config %S/" in text
    here = tmp_path / unit.name
    here.write_text(text.replace("/opt/shuffledp/bin/shuffledp", str(SHUFFLEDP)))
    for command in (
        ["verify", "--man=no"],
        ["security", "--offline=true", "--threshold=20"],  # of 100; without any rules it is 96
    ):
        outcome = subprocess.run(
            ["systemd-analyze", *command, here], capture_output=True, text=True, check=False
        )
        assert (outcome.returncode, outcome.stderr) == (0, ""), outcome.stdout


# ---------------------------------------------------------------- the runbook
RUNBOOK = REPOSITORY / "docs" / "guides" / "runbook.md"


def runbook_commands():
    """Return the runbook's commands in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", RUNBOOK.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


class Services:
    """Stands for systemctl: runs the two servers."""

    def __init__(self, clock):
        self.clock, self.running = clock, {}

    def do(self, verb, role):
        """Start, stop, restart or reload one."""
        if verb == "reload":
            log = Path(f"{role}.log")
            number = log.read_text().count('"reloaded"')
            self.running[role].send_signal(signal.SIGHUP)
            while log.read_text().count('"reloaded"') == number:
                time.sleep(0.05)
            return
        if verb != "start":
            process = self.running.pop(role)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_SECONDS)
            assert process.returncode == TERMINATED
        if verb != "stop":
            assert role not in self.running
            self.running[role] = started(self.clock, role, Path(f"{role}.log"))


@pytest.mark.slow
def test_the_runbooks_commands_run_in_their_order_and_reports_go_on_to_a_result(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    clock = Clock(tmp_path, monkeypatch, behind=2 * (HALF + OVER) + 4 * HALF)
    Path("answers.csv").write_text("answer\n" + "yes\nno\n" * 100)
    shuffler, analyzer = free_address(), free_address()
    places = {"127.0.0.1:8411": inner_of(shuffler), "127.0.0.1:8421": inner_of(analyzer)}
    create = [
        "task", "create", "--domain", "yes,no", "--epsilon0", "2", "--epsilon", "2", "--delta",
        "1e-6", "--min-batch", "100", "--epoch", EPOCH, "--grace", "8s", "--num-epochs", "500",
        "--out", "task", "--shuffler", shuffler, "--analyzer", analyzer,
    ]  # fmt: skip
    clock.run(*create)
    services = Services(clock)
    clock.move(HALF)
    try:
        for role in ("shuffler", "analyzer"):
            services.do("start", role)
        wait_for("ok", lambda: inner(analyzer, "/readyz"))
        send = ["send", "task/task.bin", "answers.csv", "--column", "answer"]
        clock.run(*send)
        clock.move(OVER)
        wait_for('state="published"} 1', lambda: inner(analyzer, "/metrics"))
        epoch_0 = '"key_destroyed", "epoch": 0}'
        wait_for(epoch_0, Path("shuffler.log").read_text)
        for line, after in pairwise([*runbook_commands(), ""]):
            if "keys destroy --number" in after:
                clock.move(4 * HALF)  # devices use the new key from then on
                wait_for('"key_destroyed", "epoch": 2}', Path("shuffler.log").read_text)
            systemctl = re.fullmatch(r"systemctl (\w+) shuffledp-(\w+)", line)
            if systemctl is not None:
                services.do(*systemctl.groups())
                continue
            for documented, place in places.items():
                line = line.replace(documented, place)  # noqa: PLW2901
            subprocess.run(["bash", "-o", "pipefail", "-c", line], check=True)
        wait_for("ok", lambda: inner(analyzer, "/readyz"))
        said = capfd.readouterr().out
        for each in (
            "ok\nok\n",
            "reports that wait: 0, of epochs: 0; faults: 0",
            "batches that were taken: 1; faults: 0",
            "number 1, from epoch 3 on",
            "key 0 is destroyed",
            "the key of epoch 0 is gone already",
            "shuffledp_shuffler_least_batch_reports 100",
            "task are sound",
        ):
            assert each in said
        clock.move(HALF)
        clock.run(*send)
        clock.move(OVER)
        wait_for('state="published"} 2', lambda: inner(analyzer, "/metrics"))
        assert main(["collect", "task", "--out", "results"]) == 0
        assert json.loads(Path("results/privacy.json").read_bytes())["num_users"] == 200
    finally:
        for role in list(services.running):
            services.do("stop", role)


def inner_of(address):
    """Return where the inner port is of what listens at an address."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}"
