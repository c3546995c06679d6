"""Roles in processes of their own, to be killed: one message in, one answer out, or none."""

import multiprocessing
import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from deploy.make_vectors import ANALYZER_KEY, make_task
from deploy.roles import SMALL, analyzer_for, key_of, shuffler_for
from deploy.steps import advance, take
from shuffledp.collection.output import write_results
from shuffledp.deploy.analyzer import Opened, result_of
from shuffledp.deploy.analyzer_server import publish
from shuffledp.deploy.client import Client

# Children are forked off a process that has loaded all this, so that a start takes milliseconds;
# that process looks for it as any other does.
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
_START = multiprocessing.get_context("forkserver")
_START.set_forkserver_preload(["deploy.killed"])


def run_shuffler(pipe, task, folder, database):
    """Take in uploads, release what is due."""
    with shuffler_for(task, folder, database=database) as shuffler:
        while True:
            what, *given = pipe.recv()
            pipe.send(take(shuffler, *given) if what == "take" else len(advance(shuffler, *given)))


def run_analyzer(pipe, task, folder, database):
    """Publish batches, spending for each."""
    ledger = folder / "ledger.json"
    with analyzer_for(task, folder, database=database, ledger=ledger) as analyzer:
        while True:
            number, data = pipe.recv()
            publish(analyzer, data, folder / "results" / str(number))
            pipe.send(number)


def run_client(pipe, task, folder, _database):
    """Answer, and say what is to be uploaded; or note that it has arrived."""
    while True:
        number, *answer = pipe.recv()
        with Client(task, folder / f"client-{number}.db") as client:
            if answer:
                client.report(*answer)
                key = key_of(client.kept().epoch)
                pipe.send(client.sealed(shuffler=key, analyzer=ANALYZER_KEY))
            else:
                client.done()
                pipe.send(client.is_done)


# The first guarantee and the first page load much: once here, and not in each process.
TASK = make_task(**SMALL)
_ANY = Opened(
    number=1,
    root=b"",
    reports=TASK.asked.codec.decode([b"\0"] * 3),
    guarantee=TASK.guarantee(3),
    counts=dict.fromkeys(("num_held", "num_kept", "num_earlier"), 0),
)
with tempfile.TemporaryDirectory() as _folder:
    write_results(result_of(TASK, _ANY), Path(_folder))


class Victim:
    """A role that can be killed, and starts again when it is asked next."""

    def __init__(self, run, *given):
        self._run, self._given = run, given
        self._process = None

    def ask(self, message):
        """Return the answer; None if it died before it."""
        if self._process is None:
            self._pipe, theirs = _START.Pipe()
            self._process = _START.Process(target=self._run, args=(theirs, *self._given))
            self._process.start()
            theirs.close()
        with suppress(EOFError, OSError):
            self._pipe.send(message)
            return self._pipe.recv()
        self._process.join()
        self._process = None
        return None

    def die_after(self, seconds):
        """Kill it in a moment, whatever it does then."""
        if self._process is not None:
            threading.Timer(seconds, self._process.kill).start()

    def kill(self):
        """Kill it now."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = None
