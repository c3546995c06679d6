"""The command as a process: signals, full disks, closed pipes, terminals."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from shuffledp.collection.output import MARKER_FILE

PROGRAM = "import sys; from shuffledp.cli import start; sys.exit(start())"
COMMAND = [sys.executable, "-c", PROGRAM]
RUN = ["run", "answers.csv", "--column", "answer", "--domain", "yes,no", "--delta", "1e-9"]


def files(folder):
    names = {entry.name for entry in folder.iterdir()}
    return sorted(names - {MARKER_FILE})


def write_answers(folder, num_users):
    answers = pl.Series("answer", ["yes", "no"] * (num_users // 2))
    answers.to_frame().write_csv(folder / "answers.csv")


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_half_written(tmp_path, sent, status):
    write_answers(tmp_path, 1_000_000)
    # Results do not take their place before the signal comes, however late that is.
    waiting = (
        "import signal; from shuffledp.collection import output; "
        "output._move_into_place = lambda *_: signal.pause()"
    )
    process = subprocess.Popen(
        [
            sys.executable, "-c", f"{waiting}\n{PROGRAM}",
            *RUN, "--epsilon0", "1", "--out", "results", "--save-reports",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    while not any(".partial-" in name for name in files(tmp_path)):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(sent)
    out, err = process.communicate()
    assert process.returncode == status
    assert files(tmp_path) == ["answers.csv"]
    assert out == ""
    assert "Traceback" not in err


def run_with_limited_files(folder, limit):
    """Run with a limit on the size of each file, which fails as a full disk does."""
    # Python 3.11 keeps a part of a compiled module as if it were whole: write none.
    limited = (
        "import resource, sys; sys.dont_write_bytecode = True; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    )
    return subprocess.run(
        [
            sys.executable, "-c", f"{limited}\n{PROGRAM}",
            *RUN, "--epsilon0", "1", "--out", "results", "--save-reports",
        ],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def assert_refused_in_one_line(outcome):
    assert outcome.returncode == 2, outcome.stderr
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("error: cannot write")
    assert outcome.stderr.count("\n") == 1


# Below the table of the report, and between it and the reports.
@pytest.mark.slow
@pytest.mark.parametrize("limit", [1000, 20_000])
def test_a_write_that_fails_leaves_nothing(tmp_path, limit):
    write_answers(tmp_path, 100_000)
    assert_refused_in_one_line(run_with_limited_files(tmp_path, limit))
    assert files(tmp_path) == ["answers.csv"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one megabyte, where the machine lets us make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no permission to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("filling", [1_000_000, 1_044_000])
def test_a_full_disk_leaves_nothing(tmp_path, small_disk, filling):
    write_answers(tmp_path, 100_000)
    (small_disk / "filling").write_bytes(bytes(filling))
    outcome = subprocess.run(
        [
            *COMMAND, *RUN, "--epsilon0", "1", "--save-reports",
            "--out", str(small_disk / "results"),
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert_refused_in_one_line(outcome)
    assert f"{small_disk / 'results'}: No space left on device" in outcome.stderr
    assert files(small_disk) == ["filling"]


ACCOUNT = ["account", "--epsilon0", "1", "--num-users", "1000", "--delta", "1e-6", "--json"]


def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device, not a path of ours
        outcome = subprocess.run(
            [*COMMAND, *ACCOUNT], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert outcome.returncode == 2
    assert outcome.stderr == "error: cannot write output: No space left on device\n"


def test_a_closed_pipe_ends_quietly():
    process = subprocess.Popen(
        [*COMMAND, *ACCOUNT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141
    process.stderr.close()


RESULTS = [*RUN, "--epsilon0", "1", "--out", "results"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["full", "pipe", "closed"])
def test_results_that_are_complete_and_not_printed_are_a_success(tmp_path, how):
    write_answers(tmp_path, 1000)
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device, not a path of ours
        command = [*COMMAND, *RESULTS]
        if how == "closed":
            command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
        outcome = subprocess.run(
            command,
            cwd=tmp_path,
            stdout={"full": full, "pipe": writer, "closed": None}[how],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    os.close(writer)
    assert outcome.returncode == 0, outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert ("results are complete, but not printed" in outcome.stderr) == (how != "closed")
    assert "estimates.csv" in files(tmp_path / "results")


@pytest.mark.parametrize("encoding", ["latin-1", pytest.param("cp1252", marks=pytest.mark.slow)])
def test_any_encoding_of_the_terminal_will_do(tmp_path, encoding):
    answers = ["caf\u00e9 \u65e5\U0001f600", "no"] * 500
    pl.DataFrame({"answer": answers}).write_csv(tmp_path / "answers.csv")
    command = [*COMMAND, *RESULTS, "--domain", ",".join(answers[:2]), "--overwrite"]
    command.remove("yes,no")
    command.remove("--domain")
    for extra in ([], ["--json"]):
        outcome = subprocess.run(
            [*command, *extra],
            cwd=tmp_path, capture_output=True, check=False,
            env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
        )  # fmt: skip
        assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout.decode(encoding))
    assert found["inputs"]["domain"] == answers[:2]


def test_a_terminal_gets_a_progress_bar_and_stdout_stays_clean(tmp_path):
    write_answers(tmp_path, 1000)
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *RUN, "--epsilon", "1", "--out", "results", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 0
    os.close(leader)
    assert b"randomizing" in shown
    assert b"counting" in shown
    assert json.loads(out)["num_users"] == 1000


@pytest.mark.parametrize("group", [[], ["monitor"], ["network"]])
def test_a_bare_group_prints_its_help_as_help(group):
    outcome = subprocess.run([*COMMAND, *group], capture_output=True, text=True, check=True)
    assert "Usage: " in outcome.stdout
    assert "Commands:" in outcome.stdout
    assert outcome.stderr == ""


INTERRUPTED_IMPORT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""
INTERRUPTED_COMPILATION = """
import os, signal
from shuffledp.cli import main
main._say_compiling = lambda: os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("before", [INTERRUPTED_IMPORT, INTERRUPTED_COMPILATION])
def test_ctrl_c_ends_quietly_before_anything_is_computed(tmp_path, before):
    outcome = subprocess.run(
        [sys.executable, "-c", f"{before}\n{PROGRAM}", *ACCOUNT],
        capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert outcome.returncode == 130, outcome.stderr
    assert outcome.stdout == ""
    assert outcome.stderr.strip() == ""


@pytest.mark.slow
def test_the_first_compilation_is_announced_in_a_terminal_only(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "TERM": "dumb"}
    said = []
    for _ in range(2):
        leader, follower = pty.openpty()
        with os.fdopen(follower, "wb") as stderr:
            outcome = subprocess.run(
                [*COMMAND, *ACCOUNT], stdout=subprocess.PIPE, stderr=stderr, env=environment,
                check=True, text=True,
            )  # fmt: skip
            stderr.write(b"end")
        said.append(os.read(leader, 65536).decode())
        os.close(leader)
        assert json.loads(outcome.stdout)["delta"] == 1e-6
    assert said[0].splitlines()[0] == "compiling, once: this takes some seconds"
    assert said[1] == "end"


def test_help_and_version():
    for arguments, text in ((["--help"], "Commands:"), (["--version"], "shuffledp ")):
        outcome = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=True)
        assert text in outcome.stdout
