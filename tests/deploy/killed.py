"""Roles in processes of their own, to be killed: one message in, one answer out, or none."""

import multiprocessing
import os
import threading
from contextlib import suppress
from pathlib import Path

from deploy.make_vectors import ANALYZER_KEY
from deploy.roles import analyzer_for, key_of, shuffler_for
from deploy.steps import advance, take
from shuffledp.deploy.analyzer_server import publish
from shuffledp.deploy.client import Client

# Children are forked off a process that has loaded all this, so that a start takes milliseconds;
# that process looks for it as any other does.
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
_START = multiprocessing.get_context("forkserver")
_START.set_forkserver_preload(["deploy.ready_to_fork"])


def run_shuffler(pipe, task, folder, database):
    """Take in uploads, release what is due, hand out what is released."""
    with shuffler_for(task, folder, database=database) as shuffler:
        do = {
            "take": lambda *given: take(shuffler, *given),
            "advance": lambda now: len(advance(shuffler, now)),
            "fetch": shuffler.fetch,
        }
        while True:
            what, *given = pipe.recv()
            pipe.send(do[what](*given))


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
