"""A shuffler killed at random moments: what it acknowledged is released exactly once."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deploy.make_vectors import make_task
from deploy.test_system import OVER, SMALL, analyzer_for, at, shuffler_for, upload
from shuffledp.collection.questions import Categories
from shuffledp.core.entropy import Entropy
from shuffledp.deploy.asked_terms import AskedTerms

NUM_REPORTS = 250
TASK = make_task(
    **SMALL
    | {"asked": AskedTerms.of(Categories([str(i) for i in range(NUM_REPORTS)]), "k-rr", 1.0)}
)


def started(folder):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.killed", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def asked(process, line):
    """Return the answer, or None if the process died before it."""
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip() or None
    except BrokenPipeError:
        return None


@pytest.mark.parametrize(
    "num_kills", [20, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_what_was_acknowledged_is_released_once(tmp_path, num_kills):
    (tmp_path / "task.bin").write_bytes(TASK.encode())
    draw = Entropy.from_seed(num_kills).generator()
    bodies = [upload(TASK, bytes([i]), number=i, epoch=i % 3) for i in range(NUM_REPORTS)]
    acknowledged, kills = set(), 0
    process = started(tmp_path)
    while kills < num_kills:
        killer = threading.Timer(draw.uniform(0.0, 0.02), process.send_signal, [signal.SIGKILL])
        number = int(draw.integers(NUM_REPORTS))
        is_first = asked(process, f"take {at(2)} {bodies[number].hex()}")  # it runs now
        killer.start()
        while is_first is not None:
            number = int(draw.integers(NUM_REPORTS))
            line = f"take {at(2)} {bodies[number].hex()}"
            if kills == num_kills - 1:  # the last one may die while it releases
                line = [line, f"advance {at(2, OVER)}"][draw.integers(2)]
            is_first = asked(process, line)
            if is_first == "ACCEPTED":
                acknowledged.add(number)
        process.communicate()
        kills += 1
        process = started(tmp_path)
    process.kill()
    process.communicate()
    released = []
    with shuffler_for(TASK, tmp_path) as shuffler, analyzer_for(TASK, tmp_path) as analyzer:
        shuffler.advance(at(2, OVER))
        for batch in shuffler.sealed_after(0):
            released += analyzer.take(shuffler.fetch(batch)).reports.data.tolist()
    assert len(set(released)) == len(released)
    assert acknowledged
    assert acknowledged <= set(released)
