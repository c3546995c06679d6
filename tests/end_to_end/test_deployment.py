"""The commands of docs/guides/deploying.md as they stand there, with servers of their own."""

import json
import math
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from deploy.databases import url_for
from deploy.make_vectors import make_task
from deploy.roles import HIDDEN
from end_to_end.clocked import EPOCH, HALF, OVER, Clock
from golden.net.exchange import free_address
from golden.schemas import found_in
from shuffledp.cli.main import TERMINATED, main
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy import remote
from shuffledp.deploy.messages import Answer, Report
from shuffledp.deploy.remote import (
    HttpClient,
    RefusedError,
    Server,
    checked_record,
    collect_results,
)
from shuffledp.deploy.servers.settings import ShufflerSettings, signing_key
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "deploying.md"
SHUFFLEDP = Path(sys.executable).with_name("shuffledp")
TRUE_SHARE = 0.3


def guide_commands():
    """Return the guide's commands, each on one line."""
    block = re.search(r"^```sh\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return block[1].replace("\\\n    ", "").strip().splitlines()


@pytest.fixture
def answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = np.arange(1000) < 1000 * TRUE_SHARE
    pl.DataFrame({"answer": np.where(said, "yes", "no")}).write_csv("answers.csv")


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """The clock of servers, which is moved to the middle of an epoch and beyond it."""
    return Clock(tmp_path, monkeypatch, behind=HALF + OVER)


def test_the_guides_commands_go_from_nothing_to_a_report(answers, clock, capfd):
    servers = []
    try:
        for line in guide_commands():
            arguments = line.removesuffix(" &").split()
            if arguments[1:3] == ["task", "create"]:
                shuffler, analyzer = free_address(), free_address()
                arguments[arguments.index("--epoch") + 1] = EPOCH
                arguments += ["--shuffler", shuffler, "--analyzer", analyzer]
            if line.endswith(" &"):
                process = subprocess.Popen(
                    [clock.shuffledp, *arguments[1:]], stdout=subprocess.PIPE, text=True
                )
                servers.append(process)
                assert process.stdout.readline().startswith("http://127.0.0.1:")
            elif arguments[1] == "collect":
                clock.move(OVER)
                assert main(arguments[1:]) == 0
            else:
                clock.run(*arguments[1:])
            if arguments[1:3] == ["task", "create"]:
                clock.move(HALF)
        task = Task.decode(Path("task/task.bin").read_bytes())
        check_results(task, json.loads(Path("results/privacy.json").read_bytes()))
        with (
            Server(task, "analyzer", patience_seconds=5) as stranger,
            pytest.raises(RefusedError, match="Authorization"),
        ):
            stranger.results()
        numbers = inner(shuffler, "/metrics")
        assert 'shuffledp_shuffler_reports_total{outcome="accepted"} 1000' in numbers
        assert inner(analyzer, "/healthz") == "ok\n"
        key = signing_key(Path("task/operator.key"))
        again = Path("again")
        again.mkdir()
        number, record = collect_results(task, key, again)
        assert number >= 1
        check_results(task, record)
        assert (again / "report.html").read_bytes() == Path("results/report.html").read_bytes()
    finally:
        for process in servers:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=600)
    assert [process.returncode for process in servers] == [TERMINATED, TERMINATED]


@pytest.mark.slow
def test_devices_that_send_dummies_go_from_a_plan_to_a_report(answers, clock, capsys):
    """A table's devices, none of which lies."""
    planned = ["plan", "--num-users", "1000", "--domain", "yes,no", "--epsilon", "0.8"]
    planned += ["--delta", "1e-6", "--dummies", "users", "--max-epsilon0", "4"]
    assert main([*planned, "--out", "plan.json"]) == 0
    addresses = ["--shuffler", free_address(), "--analyzer", free_address()]
    create = ["task", "create", "--plan", "plan.json", "--min-batch", "1000", "--out", "task"]
    create += ["--seal", "hybrid"]
    clock.run(*create, "--epoch", EPOCH, "--grace", "1s", *addresses)
    clock.move(HALF)
    servers = []
    try:
        for role in ("shuffler", "analyzer"):
            command = [clock.shuffledp, "serve", role, "--config", f"task/{role}.toml"]
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert servers[-1].stdout.readline().startswith("http://127.0.0.1:")
        clock.run("send", "task/task.bin", "answers.csv", "--column", "answer")
        clock.move(OVER)
        capsys.readouterr()
        assert main(["collect", "task", "--out", "results"]) == 0
    finally:
        for process in servers:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=600)
    assert "if it shuffles and devices send none" in " ".join(capsys.readouterr().out.split())
    record = json.loads(Path("results/privacy.json").read_bytes())
    task = Task.decode(Path("task/task.bin").read_bytes())
    assert (record["num_users"], record["parameters"]["num_honest"]) == (1000, 1000)
    assert record["guarantee"]["epsilon"]["upper"] <= 0.8
    mean = 2000 * task.dummies.mean
    # Eight standard errors, and deviations: a false alarm in 10^14 runs.
    assert abs(record["num_dummies"] - mean) < 8 * mean**0.5
    yes = record["estimates"][0]
    assert abs(yes["frequency"] - TRUE_SHARE) < 8 * yes["standard_error"]


@pytest.mark.slow
def test_one_answer_among_dummies_goes_from_a_plan_to_a_report(answers, clock, capsys):
    """A batch of a single report, sent without noise: nobody else is needed to hide it."""
    planned = ["plan", "--num-users", "100", "--domain", "yes,no", "--epsilon", "1"]
    planned += ["--delta", "1e-6", "--dummies", "shuffler", "--no-local-noise"]
    assert main([*planned, "--out", "plan.json"]) == 0
    addresses = ["--shuffler", free_address(), "--analyzer", free_address()]
    create = ["task", "create", "--plan", "plan.json", "--min-batch", "1", "--out", "task"]
    create += ["--seal", "hybrid"]
    clock.run(*create, "--epoch", EPOCH, "--grace", "1s", *addresses)
    clock.move(HALF)
    assert main(["send", "task/task.bin", "--value", "yes", "--store", "device.db"]) == 2
    assert "agree with no_local_noise (--no-local-noise)" in capsys.readouterr().err
    servers = []
    try:
        for role in ("shuffler", "analyzer"):
            command = [clock.shuffledp, "serve", role, "--config", f"task/{role}.toml"]
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert servers[-1].stdout.readline().startswith("http://127.0.0.1:")
        device = ["--value", "yes", "--store", "device.db", "--no-local-noise"]
        clock.run("send", "task/task.bin", *device)
        clock.move(OVER)
        assert main(["collect", "task", "--out", "results"]) == 0
    finally:
        for process in servers:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=600)
    said = " ".join(capsys.readouterr().out.split())
    assert "no epsilon holds if it shuffles and adds none" in said
    assert "the shuffler and the analyst together would see every answer" in said
    record = json.loads(Path("results/privacy.json").read_bytes())
    law = Task.decode(Path("task/task.bin").read_bytes()).dummies
    assert (record["num_users"], record["dummies"], record["epsilon0"]) == (1, [str(law)], None)
    assert 0.9 < record["guarantee"]["epsilon"]["upper"] <= 1.0
    yes, no = (each["count"] for each in record["estimates"])
    assert abs(yes - 1) <= law.half_width  # each answer has from 0 to 2 half widths of dummies
    assert yes + no == pytest.approx(1.0)


def check_results(task, record):
    """Compare the guarantee with account's for as many reports, and estimates with the truth."""
    law = task.asked.randomizer.profile
    expected = sdp.account(law, num_users=record["num_users"], delta=1e-6)
    assert record["guarantee"]["epsilon"]["upper"] == expected.epsilon_upper
    assert record["parameters"]["num_honest"] == record["num_users"]
    assert 500 <= record["num_users"] <= 1000
    assert record["about"]["title"] == task.info
    assert date.fromisoformat(record["about"]["date"])
    if record["num_users"] == 1000:
        yes = record["estimates"][0]
        # Eight standard errors: a false alarm in 10^15 runs.
        assert abs(yes["frequency"] - TRUE_SHARE) < 8 * yes["standard_error"]


def inner(address, path):
    """Ask a server's inner port."""
    host, _, port = address.rpartition(":")
    url = f"http://{host}:{int(port) + 1}"
    client = HttpClient(url, server="server", patience_seconds=60)
    try:
        return client.request("GET", path).decode()
    finally:
        client.close()


CREATE = [
    "task", "create", "--domain", "yes,no", "--epsilon0", "2", "--epsilon", "0.6",
    "--delta", "1e-6", "--min-batch", "500", "--out", "task",
]  # fmt: skip


def test_a_task_that_promises_too_much_is_refused_and_nothing_written(answers, capsys):
    refused = [*CREATE]
    refused[refused.index("0.6")] = "0.05"
    assert main(refused) == 2
    assert "promises epsilon = 0.05" in capsys.readouterr().err
    assert not Path("task").exists()


def test_epochs_begin_once_the_task_is_checked_however_long_that_takes(answers, monkeypatch):
    seconds = [1_000.0]
    monkeypatch.setattr("time.time", lambda: seconds[0])
    monkeypatch.setattr(Task, "check", lambda _: seconds.__setitem__(0, 2_000.0))
    assert main(CREATE) == 0
    assert Task.decode(Path("task/task.bin").read_bytes()).start == 2_000


def test_what_is_asked_and_promised_is_said(answers, capsys):
    assert main([*CREATE, "--honest-fraction", "0.8", "--json"]) == 0
    record = found_in(capsys.readouterr().out)
    assert record["num_honest"] == 400
    assert main(["task", "check", "task/task.bin", "--json"]) == 0
    assert found_in(capsys.readouterr().out) == record
    assert main(["task", "check", "task/task.bin"]) == 0
    out = capsys.readouterr().out
    assert 'choices          "yes", "no"' in out
    assert "a guess" in out
    assert main(["task", "check", "answers.csv"]) == 2
    assert main(["task", "check", "absent"]) == 2
    assert main(CREATE) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-local-noise"], "only dummies hide: leave --epsilon0 out"),
        (["--dummies", "laplace"], "is no law: write laplace:SCALE:HALF_WIDTH"),
        (["--dummies", "poisson:501"], "1,002 a device for 2 answers, above 1,000"),
        (["--dummies", "poisson:0.1", "--epsilon", "0.05"], "raise epsilon or the least batch"),
        (["--dummies", "laplace:2:27", "--epsilon", "0.3"], "give dummies of a larger scale"),
        (["--epsilon0", "inf", "--dummies", "laplace:2:27"], "--no-local-noise"),
    ],
)
def test_dummies_that_do_not_keep_the_promise_are_refused(answers, capsys, options, message):
    given = dict(zip(CREATE[2::2], CREATE[3::2], strict=True))
    beside = iter(options)
    given |= {name: "" if name == "--no-local-noise" else next(beside) for name in beside}
    arguments = [each for pair in given.items() for each in pair if each]
    assert main(["task", "create", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("task").exists()


def test_settings_are_checked_name_by_name(answers, capsys):
    assert main(CREATE) == 0
    for role in ("shuffler", "analyzer"):
        assert main(["serve", role, "--config", f"task/{role}.toml", "--check"]) == 0
    assert Path("task/operator.key").stat().st_mode & 0o077 == 0
    settings = Path("task/shuffler.toml").read_text()
    for change, message in (
        (settings + 'sealing_kyes = "x"\n', "'sealing_keys' was perhaps meant"),
        (settings.replace("listen", "# listen"), "lacks listen"),
        (settings.replace("signs_as", "# signs_as"), "lacks signs_as"),
        ("[", "cannot read"),
        (settings.replace("3600", '"an hour"'), "grace_seconds = 'an hour' is not a number"),
        (settings.replace("3600", "-50"), "grace_seconds = -50 is not in [0, inf)"),
        (settings.replace("3600", "nan"), "grace_seconds = nan is not in [0, inf)"),
        (settings.replace("3600", "true"), "grace_seconds = True is not a number"),
        (settings.replace('"shuffler/store"', '"shuffler/none"'), "shuffler/none"),
        (settings + 'batches = "file:///none/of/these"\n', "cannot open a batch"),
        (settings.replace('"127.0.0.1:', '"127.0.0.1;'), "is not ADDRESS:PORT"),
        (settings.replace("shuffler/signing.key", "operator.key"), "is not the key that signs as"),
        (settings.replace("shuffler/keys.bin", "analyzer/keys.bin"), "has not signed it"),
        (re.sub('analyzer = ".', 'analyzer = "x', settings), "no public key of 64"),
        (settings.replace("task.bin", "\\u0000"), "task = '\\x00' is not a path"),
        (settings.replace('"shuffler/store"', '""'), "store = '' is not a path"),
    ):
        Path("task/other.toml").write_text(change)
        assert main(["serve", "shuffler", "--config", "task/other.toml", "--check"]) == 2
        assert message in capsys.readouterr().err
    settings = Path("task/analyzer.toml").read_text()
    Path("task/other.toml").write_text(settings.replace('"analyzer/keys"', '"analyzer/kyes"'))
    assert main(["serve", "analyzer", "--config", "task/other.toml", "--check"]) == 2
    assert "analyzer/kyes: it is no folder" in capsys.readouterr().err
    assert main(["serve", "analyzer", "--config", "task/shuffler.toml", "--check"]) == 2
    assert "'analyzer_keys', which is none of the analyzer's" in capsys.readouterr().err
    read = ShufflerSettings.read(Path("task/shuffler.toml"))
    assert len(list(read.sealing_keys.glob("*.key"))) == 30
    assert main(["task", "create", "--epoch", "soon"]) == 2
    assert "30s, 15m" in capsys.readouterr().err
    for address in ("http://127.0.0.1:8410", "127.0.0.1", ":8410", "127.0.0.1:65535"):
        assert main([*CREATE[:-1], "other", "--shuffler", address]) == 2
        assert "is not ADDRESS:PORT" in capsys.readouterr().err
        assert not Path("other").exists()  # with half of the keys
    wrong = ("https://a:0", "https://a:99999", "https://:80", "https://[::1")
    for url in ("ftp://a.example", "a.example", "https://", "https://a b", "https://a/?x", *wrong):
        assert main([*CREATE[:-1], "other", "--shuffler-url", url]) == 2
        assert f"--shuffler-url '{url}' is no URL" in capsys.readouterr().err
    assert main([*CREATE[:-1], "other", "--codes", "1e12"]) == 2
    assert "--codes 1000000000000 is not in [0, 10,000,000]" in capsys.readouterr().err


@pytest.mark.slow
def test_a_server_whose_work_in_the_background_fails_exits_with_1(answers):
    assert main([*CREATE, "--shuffler", free_address()]) == 0
    program = (
        "import sys\n"
        "from shuffledp.cli.main import main\n"
        "from shuffledp.deploy.shuffler import Shuffler\n"
        "Shuffler.closed = lambda *_: 1 / 0\n"
        "sys.exit(main(['serve', 'shuffler', '--config', 'task/shuffler.toml']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, b"ZeroDivisionError" in done.stderr) == (1, True)


def test_who_waits_for_a_result_is_told_what_for_and_when_the_task_is_over(answers, monkeypatch):
    assert main([*CREATE, "--num-epochs", "1", "--epoch", "1h"]) == 0
    task = Task.decode(Path("task/task.bin").read_bytes())
    nothing = {"batches": [], "kept": [1], "refused": {}}
    monkeypatch.setattr(Server, "results", lambda _: nothing)
    clock = {"now": task.start + 1800.0}
    monkeypatch.setattr(remote.time, "time", lambda: clock["now"])
    told = []

    def sleep(seconds):
        clock["now"] += 1000.0

    key = signing_key(Path("task/operator.key"))
    with pytest.raises(
        DataError, match=r"no result yet, 3 seconds on: .* over: .* ended 1,200 sec"
    ):
        collect_results(task, key, Path(), wait_seconds=3.0, sleep=sleep, on_wait=told.append)
    with pytest.raises(DataError, match=r"keeps batch 1: .* with a later batch: leave --batch out"):
        collect_results(task, key, Path(), batch=1, sleep=lambda _: pytest.fail("waits"))
    with pytest.raises(DataError, match="batch 1 has no result: no report in it is valid and new"):
        collect_results(make_task(**HIDDEN), key, Path(), batch=1)
    nothing["batches"] = [5]
    with pytest.raises(DataError, match="no result of batch 2: choose one of 5"):
        collect_results(replace(task, num_epochs=5), key, Path(), batch=2)
    for number in (0, 2):
        with pytest.raises(ParameterError, match=rf"batch = {number} is not .* in \[1, 2\)"):
            collect_results(task, key, Path(), batch=number)
    assert [each.split("the task ")[1] for each in told] == [
        "goes on: its last epoch ends in 1,800 seconds",
        "is over: its last epoch ended 200 seconds ago",
    ]
    assert task.state_at(task.start - 5).endswith("not begun: its first epoch begins in 5 seconds")


HOSTILE = {
    "no JSON": b"{",
    "no object": b"[]",
    "nothing in it": b"{}",
    "deep": b"[" * 100_000,
    "another task": ("parameters", "task_id", "00"),
    "no honest": ("parameters", "num_honest", 0),
    "more honest than users": ("parameters", "num_honest", 10**400),
    "a true count": ("parameters", "num_honest", True),
    "text for a count": ("num_users", "many"),
    "NaN": ("guarantee", "epsilon", "upper", float("nan")),
    "no float": ("guarantee", "epsilon", "upper", 10**400),
    "text for epsilon": ("guarantee", "epsilon", "upper", "0.1"),
    "no guarantee": ("guarantee", None),
    "epsilon too small": ("guarantee", "epsilon", "upper", 0.1),
    "another delta": ("guarantee", "delta", 1e-9),
    "another epsilon0": ("epsilon0", 1.0),
    "half a budget": ("parameters", "budget", {"left": 1.0}),
    "no confidence": ("confidence", None),
    "estimates of no rows": ("estimates", {"value": "yes"}),
    "a row of no columns": ("estimates", [1]),
    "a word as an estimate": ("estimates", [{"frequency": "many"}]),
    "an endless interval": ("estimates", [{"frequency": 0.5, "lower": 0.4, "upper": math.inf}]),
}


@pytest.mark.parametrize("what", [None, *HOSTILE])
def test_what_an_analyzer_says_is_recomputed_from_the_task(answers, what):
    assert main(CREATE) == 0
    task = Task.decode(Path("task/task.bin").read_bytes())
    law, delta = task.asked.randomizer.profile, float(task.delta)
    record = {
        "num_users": 600,
        "epsilon0": law.epsilon0,
        "guarantee": sdp.account(law, num_users=550, delta=delta).to_json_dict(),
        "parameters": {"num_honest": 550, "task_id": task.task_id.hex(), "budget": None},
        "confidence": 0.95,
        "estimates": [{"value": "yes", "frequency": 0.5, "lower": 0.4, "upper": None}],
    }
    if what is None:
        assert checked_record(task, json.dumps(record).encode()) == record
        return
    data = HOSTILE[what]
    if isinstance(data, tuple):
        *names, last, value = data
        inner = record
        for name in names:
            inner = inner[name]
        inner[last] = value
        data = json.dumps(record).encode()
    with pytest.raises(ProtocolError) as caught:
        checked_record(task, data)
    assert caught.value.fault is Fault.ANALYZER


@pytest.mark.parametrize(
    "said",
    [
        {"batches": [{}, "1", None, -1, 10**30, True], "kept": [[], 0.5], "refused": {}},
        {"batches": [], "kept": [], "refused": {"1": {"deep": []}}},
    ],
)
def test_numbers_of_batches_that_are_none_are_left_out(answers, monkeypatch, said):
    assert main(CREATE) == 0
    task = Task.decode(Path("task/task.bin").read_bytes())
    monkeypatch.setattr(Server, "_ask", lambda *_: json.dumps(said).encode())
    with Server(task, "analyzer") as analyzer:
        found = analyzer.results()
    assert found["batches"] == found["kept"] == []
    assert all(isinstance(each, str) for each in found["refused"].values())


def test_without_servers_sending_and_collecting_end_with_one_line(answers, capsys, monkeypatch):
    monkeypatch.setattr(Server.__init__, "__kwdefaults__", {"patience_seconds": 0.0})
    assert main([*CREATE, "--shuffler", free_address(), "--analyzer", free_address()]) == 0
    assert main(["send", "task/task.bin", "answers.csv", "--column", "answer"]) == 2
    assert "no answer from the shuffler" in capsys.readouterr().err
    assert main(["collect", "task/task.bin", "--out", "results"]) == 2
    assert "no answer from the analyzer" in capsys.readouterr().err
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["bare.csv", "--column", "column_1", "--no-header", "--csv-separator", "!"], 3),
        (["answers.csv", "--column", "answer", "--missing-text", "yes"], "the domain lists"),
        (["--value", "yes", "--decimal", ","], "are for TABLE: leave them out"),
    ],
)
def test_a_fleet_reads_its_table_as_run_does(answers, capsys, monkeypatch, options, found):
    Path("bare.csv").write_text("yes!1\n no!2\nyes!3\n")
    monkeypatch.setattr(remote, "send_values", lambda *_, **how: {"accepted": how["num_values"]})
    assert main(CREATE) == 0
    capsys.readouterr()
    status = main(["send", "task/task.bin", *options, "--json"])
    printed = capsys.readouterr()
    if isinstance(found, str):
        assert (status, found in printed.err) == (2, True)
    else:
        assert json.loads(printed.out)["num_sent"] == found


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_fleet_whose_reports_are_late_does_not_end_well(answers, capsys, monkeypatch, options):
    counts = {"accepted": 998, "late": 2, "early": 0}
    monkeypatch.setattr(remote, "send_values", lambda *_, **__: counts)
    assert main(CREATE) == 0
    assert main(["send", "task/task.bin", "answers.csv", "--column", "answer", *options]) == 2
    printed = capsys.readouterr()
    assert "998" in printed.out
    assert "2 of 1,000 reports were not taken in: its epoch is over" in printed.err


@pytest.mark.slow
def test_an_analyzer_waits_for_a_shuffler_that_is_away_and_ends_when_told(answers):
    shuffler, analyzer = free_address(), free_address()
    assert main([*CREATE, "--epoch", "2s", "--shuffler", shuffler, "--analyzer", analyzer]) == 0
    servers = []

    def start(role):
        command = [SHUFFLEDP, "serve", role, "--config", f"task/{role}.toml"]
        servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        assert servers[-1].stdout.readline().startswith(b"http://")

    def wait_until(answers):
        while f"shuffler_answers {answers}" not in inner(analyzer, "/metrics"):
            time.sleep(0.05)

    try:
        start("analyzer")
        wait_until(0)
        start("shuffler")
        wait_until(1)
        servers[1].kill()
        wait_until(0)
        servers[0].terminate()  # once
        _, said = servers[0].communicate(timeout=600)
        assert servers[0].returncode == TERMINATED
        assert said.count(b'"event": "shuffler_away"') == 2
    finally:
        for process in servers:
            process.kill()
            process.communicate()


@pytest.fixture
def bucket(monkeypatch):
    """The URL of a bucket of a server that speaks S3."""
    moto = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    moto.start()
    endpoint = f"http://127.0.0.1:{moto.get_host_and_port()[1]}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",  # any will do
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": endpoint,
    }.items():
        monkeypatch.setenv(name, value)
    obstore = pytest.importorskip("obstore")
    httpx.put(f"{endpoint}/batches").raise_for_status()
    yield "s3://batches/pilot"
    left = obstore.store.from_url("s3://batches").list().collect()
    moto.stop()
    assert left == []  # nothing stays once it is fetched


@pytest.mark.slow
def test_processes_share_a_database_and_objects_and_one_may_die(answers, bucket, clock, tmp_path):
    first, analyzer = free_address(4), free_address()
    create = [*CREATE, "--epoch", EPOCH, "--grace", "1s", "--shuffler", first]
    create[create.index("500")] = "1020"  # so that all are in one batch
    clock.run(*create, "--num-epochs", "1000", "--analyzer", analyzer)
    clock.move(HALF)
    with Path("task/shuffler.toml").open("a") as settings:
        settings.write(f'batches = "{bucket}"\ndatabase = "{url_for(tmp_path)}"\n')
    with Path("task/analyzer.toml").open("a") as settings:
        settings.write(f'database = "{url_for(tmp_path)}"\n')
    task = Task.decode(Path("task/task.bin").read_bytes())
    servers, urls = [], []
    try:
        # The first to come releases batches; the analyzer and the fleet speak to the second.
        for role, number in (("shuffler", "1"), ("shuffler", "0"), ("analyzer", "0")):
            settings = ["--config", f"task/{role}.toml", "--instance", number]
            process = subprocess.Popen(
                [clock.shuffledp, "serve", role, *settings], stdout=subprocess.PIPE, text=True
            )
            servers.append(process)
            urls.append(process.stdout.readline().strip())
        clock.run("send", "task/task.bin", "answers.csv", "--column", "answer")
        with Server(task, "shuffler") as other, Server(task, "analyzer") as counting:
            other._url = urls[0]  # devices reach the second process
            keys, inner_key = other.keys(), counting.keys().keys[0]
            epoch = 0
            body = b"".join(
                Report.sealed_for(
                    task,
                    b"\0",
                    report_id=bytes([number] * 16),
                    epoch=epoch,
                    shuffler=keys.key_of_epoch(epoch),
                    analyzer=inner_key,
                ).encode()
                for number in range(20)
            )
            assert set(other.upload(body)) == {Answer.ACCEPTED}
        servers[0].kill()
        clock.move(OVER)
        assert main(["collect", "task", "--out", "results"]) == 0
        record = json.loads(Path("results/privacy.json").read_bytes())
        assert record["num_users"] == 1020
        assert record["parameters"]["num_repeated"] == 0
    finally:
        for process in servers:
            process.terminate()
            process.communicate(timeout=600)
