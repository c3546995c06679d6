"""Real programs, really killed: what is on disk then is enough to go on."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from oracles.made_histories import outage
from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.simulation import SimulationState, simulate_monitoring

_SETTINGS = {"max_changes": 4, "epsilon0": 1.0, "delta": 1e-6, "seed": 3}

_PROGRAM = """
import sys, time
from shuffledp.monitoring.histories import open_histories
from shuffledp.monitoring.simulation import simulate_monitoring

def report(stage, done, total):
    if stage == "simulating":
        print(done, flush=True)
        time.sleep(0.02)
    if stage == "simulating" and done == int(sys.argv[4]):
        sys.stdin.read()  # until the signal comes, however late that is

histories = open_histories(sys.argv[1], user="user", time="time", value="value")
try:
    simulate_monitoring(
        histories, max_changes=4, epsilon0=1.0, delta=1e-6, seed=3, state_file=sys.argv[2],
        resume=sys.argv[3] == "resume", on_progress=report,
    )
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture(scope="module")
def histories_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("killed") / "x.parquet"
    outage(3_000, 120).write_parquet(path)
    return path


def stopped_program(histories_file, state, *, after: int, how: int, mode: str):
    """Run the program, send it a signal after some periods, and return its exit code."""
    program = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _PROGRAM,
            histories_file,
            state,
            mode,
            str(after + 40),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        for line in program.stdout:
            if int(line) >= after:
                program.send_signal(how)
                break
        program.stdout.read()
        return program.wait()


def test_killed_programs_go_on_as_if_nothing_had_happened(tmp_path, histories_file):
    state = tmp_path / "x.state"
    histories = open_histories(histories_file, user="user", time="time", value="value")
    stopped = stopped_program(histories_file, state, after=9, how=signal.SIGKILL, mode="begin")
    assert stopped == -signal.SIGKILL
    key = SimulationState.read(state).key
    stopped_program(histories_file, state, after=20, how=signal.SIGKILL, mode="resume")
    assert SimulationState.read(state).key == key
    result = simulate_monitoring(histories, **_SETTINGS, state_file=state, resume=True)
    whole = simulate_monitoring(histories, **_SETTINGS)
    np.testing.assert_array_equal(result.running.counts, whole.running.counts)
    assert result.to_json_dict() == whole.to_json_dict()


def test_an_interrupted_program_keeps_its_key(tmp_path, histories_file):
    state = tmp_path / "x.state"
    stopped = stopped_program(histories_file, state, after=9, how=signal.SIGINT, mode="begin")
    assert stopped == 130
    assert SimulationState.read(state).seed == 3
    assert [each.name for each in tmp_path.iterdir()] == ["x.state"]
