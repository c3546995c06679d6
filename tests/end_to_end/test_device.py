"""One device, as a user runs it: limited, killed, admitted by a code; and tasks made from plans."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import shuffledp as sdp
from given_once import given_once
from golden.net.exchange import free_address
from golden.schemas import found_in
from shuffledp.cli.main import main
from shuffledp.deploy.client import Client, default_store
from shuffledp.deploy.messages import Answer, read_codes, write_code
from shuffledp.deploy.servers.settings import (
    HANDED_OUT,
    ShufflerSettings,
    keys_of,
    read_task,
    signing_key,
)
from shuffledp.deploy.shuffler import Shuffler

SHUFFLEDP = Path(sys.executable).with_name("shuffledp")
TASK = Path("task/task.bin")
CREATE = [
    "task", "create", "--domain", "yes,no", "--question", "Well?", "--epsilon0", "2", "--epsilon",
    "1.7", "--delta", "1e-6", "--min-batch", "100", "--out", "task", "--info", "a survey",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def make_task(*options):
    listen = ["--shuffler", free_address(), "--analyzer", free_address()]
    assert main(given_once([*CREATE, *listen], options)) == 0


@contextmanager
def serving(*roles):
    """Run servers; end them all."""
    started = []
    try:
        for role in roles or ("shuffler", "analyzer"):
            command = [SHUFFLEDP, "serve", role, "--config", f"task/{role}.toml"]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert started[-1].stdout.readline().startswith("http://")
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def stored():
    """Return the ids that the shuffler, which has ended, took in."""
    settings = ShufflerSettings.read(Path("task/shuffler.toml"))
    task = read_task(TASK)
    with Shuffler(
        task,
        settings.store,
        signing_key=signing_key(settings.signing_key),
        sealing_keys=keys_of(settings, task),
        handed_out=settings.sealing_keys / HANDED_OUT,
    ) as shuffler:
        store = shuffler._store
        tables = [f"reports_{epoch}" for (epoch,) in store.rows("SELECT epoch FROM epochs")]
        return sorted(row[0] for each in tables for row in store.rows(f"SELECT id FROM {each}"))  # noqa: S608


# ---------------------------------------------------------------- one device
@pytest.mark.slow
def test_a_device_says_what_it_is_asked_and_is_counted_once_however_often_it_is_killed(capsys):
    make_task()
    task = read_task(TASK)
    send = [SHUFFLEDP, "send", TASK, "--value", "yes"]
    # Nobody answers at the shuffler's: the report is on disk, and the device dies trying.
    host, _, port = task.shuffler_url.removeprefix("http://").rpartition(":")
    with socket.create_server((host, int(port))) as silent:
        process = subprocess.Popen(send, stdout=subprocess.PIPE)
        silent.accept()[0].close()
        process.kill()
        process.communicate()
    kept = _kept(task)
    with serving("shuffler") as servers:
        # The shuffler has it, and dies before or after it has said so.
        process = subprocess.Popen(send, stdout=subprocess.PIPE)
        servers[0].send_signal(signal.SIGKILL)
        process.kill()
        process.communicate()
    with serving():
        for _ in range(2):
            done = subprocess.run(send, capture_output=True, text=True, check=True)
        for said in (
            'question         "Well?"',
            'choices          "yes", "no"',
            "is the truth with probability 0.880797",
            "100 reports, of which 100 count",
            "at delta = 1e-6, proved; promised 1.7",
            "epsilon0 = 2",
            task.shuffler_url,
            "the shuffler has it",
        ):
            assert said in done.stdout
        capsys.readouterr()
        assert main(["send", str(TASK), "--value", "no", "--json"]) == 0
        said = capsys.readouterr()
        assert "this device has answered already, so --value was not used" in said.err
        found = json.loads(said.out)
        assert "value" not in found["inputs"]  # the answer goes into no log
        assert {name: n for name, n in found["answers"].items() if n} == {"accepted": 1}
    assert _kept(task) == kept
    assert stored() == [kept.report_id]
    assert default_store(task).stat().st_mode & 0o077 == 0


def _kept(task):
    """Return what the device of this user keeps."""
    with Client(task) as client:
        return client.kept()


def test_an_answer_is_asked_for_after_what_it_is_about(capsys, monkeypatch):
    make_task()
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: _stop(capsys))
    assert main(["send", str(TASK), "--store", "mine.db"]) == 130
    assert not default_store(read_task(TASK)).exists()


def _stop(capsys):
    """End at the question for the answer."""
    out = capsys.readouterr().out
    assert "is the truth with probability" in out
    assert "mine.db" in out
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-epsilon0", "1.5"], "the limits are 1.5 and 2"),
        (["--max-epsilon0", "nan"], "the limits are nan"),
        (["--least-batch", "101"], "the limits are inf and 101"),
        (["--operator-key", "00" * 32], "not of the one that you named"),
        (["--operator-key", "me"], "64 hexadecimal digits"),
        (["--value", "perhaps"], "outside the domain"),
        (["--column", "a"], "--column and ways of reading are for TABLE"),
        (["table.csv", "--max-epsilon0", "3"], "--max-epsilon0 is for a device"),
        (["--codes", "absent"], "cannot read absent"),
    ],
)
def test_what_a_user_does_not_agree_to_is_refused_before_anything_is_kept(options, message, capsys):
    make_task()
    value = [] if "--value" in options or "table.csv" in options else ["--value", "yes"]
    assert main(["send", str(TASK), *value, *options]) == 2
    assert message in capsys.readouterr().err
    assert not default_store(read_task(TASK)).exists() or _kept(read_task(TASK)) is None


def test_a_task_cannot_write_to_the_terminal(capsys):
    make_task("--info", "\x1b[2Jsurvey\r\n", "--question", "\x1b]0;x\x07?")
    capsys.readouterr()
    assert main(["send", str(TASK), "--value", "yes", "--max-epsilon0", "1"]) == 2
    said = "".join(capsys.readouterr())
    assert "survey" in said
    assert not set(said) & {"\x1b", "\x07", "\r"}


# ---------------------------------------------------------------- codes
def test_codes_admit_one_device_each(capsys):
    make_task("--codes", "3")
    capsys.readouterr()
    file = Path("task/shuffler/codes.txt")
    assert file.stat().st_mode & 0o077 == 0
    lines = file.read_text().splitlines()
    assert len(read_codes(file.read_text())) == 3
    assert main(["serve", "shuffler", "--config", "task/shuffler.toml", "--check"]) == 0
    for number, line in enumerate(lines):
        Path(f"{number}.txt").write_text(line.lower())
    with serving():
        for number, code in enumerate(["0.txt", "1.txt", "1.txt", "0.txt"]):
            told = main(["send", str(TASK), "--value", "yes", "--store", f"{number}.db",
                         "--codes", code])  # fmt: skip
            assert told == 0
        out, _ = capsys.readouterr()
        assert out.count("the shuffler has it") == 2
        assert out.count("yours, if you sent it before") == 2
        for options in ([], ["--codes", "other.txt"]):
            Path("other.txt").write_text("BQCQ-JBFV-5YHT-QMQY-73TG-FPEF-4OLA-6CUG")
            status = main(["send", str(TASK), "--value", "no", "--store", "x.db", *options])
            assert status == 2
        assert "it is no code" in capsys.readouterr().err
        Path("table.csv").write_text("answer\nyes\nno\nno\n")
        assert main(["send", str(TASK), "table.csv", "--column", "answer", "--codes",
                     str(file), "--json"]) == 0  # fmt: skip
        answers = found_in(capsys.readouterr().out)["answers"]
        assert (answers["accepted"], answers["replayed"]) == (1, 2)
        Path("table.csv").write_text("answer\n" + "no\n" * 4)
        assert main(["send", str(TASK), "table.csv", "--column", "answer", "--codes",
                     str(file)]) == 2  # fmt: skip
        assert "3 codes for 4 rows" in capsys.readouterr().err
    assert len(stored()) == 3


@pytest.mark.slow
def test_a_device_without_a_code_is_told_and_can_try_again(capsys):
    make_task("--codes", "2")
    assert "fewer reports an epoch than the least batch of 100" in capsys.readouterr().err
    codes = read_codes(Path("task/shuffler/codes.txt").read_text())
    with serving(), Client(read_task(TASK), "a.db") as client:
        first = client.report("yes")
        assert client.report("yes", code=codes[0]) == first  # it may have arrived
        assert client.send() is Answer.NOT_ADMITTED
        assert not client.is_done
        Path("mine.txt").write_text(write_code(codes[1]))
        second = client.report("no", code=codes[0])
        assert (second.report, second.epoch) == (first.report, first.epoch)
        assert client.send() is Answer.ACCEPTED
        assert client.report("no", code=codes[1]) == second
        assert main(["send", str(TASK), "--value", "no", "--store", "b.db"]) == 2
        assert "then send again with --codes" in capsys.readouterr().err
        assert main(["send", str(TASK), "--store", "b.db", "--codes", "mine.txt"]) == 0
    assert len(stored()) == 2
    assert second.report_id in stored()
    assert main([*CREATE[:-4], "--out", "more", "--codes", "-1"]) == 2
    Path("task/shuffler/codes.txt").write_text("typo\n")
    assert main(["serve", "shuffler", "--config", "task/shuffler.toml", "--check"]) == 2
    assert "line 1: it is no code" in capsys.readouterr().err


# ---------------------------------------------------------------- plans
def plan_file(**target):
    asked = sdp.plan(sdp.Categories(["yes", "no"]), delta=1e-8, **target)
    asked.save("plan.json")
    return asked


def create(*options, batch="10000", out="task"):
    return main(["task", "create", "--plan", "plan.json", "--min-batch", batch, "--out", out,
                 *options])  # fmt: skip


def test_a_task_promises_what_was_planned(capsys):
    planned = plan_file(num_users=9_000, epsilon=0.3)
    assert create("--honest-fraction", "0.9", "--epoch", "1d", "--json") == 0
    found = found_in(capsys.readouterr().out)
    assert found["promised"] == {"epsilon": 0.3, "delta": 1e-8}
    assert found["epsilon0"] == planned.randomizer.epsilon0
    asked = read_task(TASK).asked
    assert asked.randomizer == planned.randomizer
    assert asked.question.labels == ("yes", "no")


def test_a_plan_that_no_longer_holds_says_what_to_change(capsys):
    plan_file(num_users=10_000, epsilon=0.3)
    assert create("--honest-fraction", "0.9") == 2
    said = capsys.readouterr().err
    assert "for 9,000 honest reports" in said
    assert "give --min-batch 11112" in said
    assert not Path("task").exists()
    assert create("--honest-fraction", "0.9", batch="11112") == 0
    assert create("--honest-fraction", "0.9", "--epsilon", "0.33", out="more") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon0", "1"], "leave --epsilon0 out"),
        (["--domain", "a,b"], "leave the question out"),
        (["--honest-fraction", "nan"], "not in (0, 1]"),
        (["--honest-fraction", "0"], "not in (0, 1]"),
    ],
)
def test_a_plan_stands_for_question_and_randomizer(options, message, capsys):
    plan_file(num_users=9_000, epsilon=0.3)
    assert create(*options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_plans_of_several_messages_are_refused_by_name(capsys):
    how = ["--mean", "--range", "0,1", "--num-users", "4000", "--epsilon", "1", "--delta", "1e-7"]
    how += ["--dummies", "shuffler", "--no-local-noise", "--out", "plan.json"]
    assert main(["plan", *how]) == 0
    assert create() == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has bit-sums-5, for which each user sends several messages" in said
    assert "plan without dummies" in said


@pytest.mark.slow
def test_plans_of_several_rounds_are_refused(capsys):
    plan_file(num_users=9_000, epsilon=1.0, rounds=4)
    assert create() == 2
    assert "4 rounds about the same people" in capsys.readouterr().err
    Path("plan.json").write_text(json.dumps({"schema": 1}))
    assert create() == 2
    assert main([*CREATE[:4], "--min-batch", "9", "--out", "task"]) == 2
    assert "or --plan" in capsys.readouterr().err
