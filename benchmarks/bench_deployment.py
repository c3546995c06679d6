"""A deployment: reports taken in over HTTP, seals opened and counted, a fleet from end to end.

Taking in is measured at a real server, beside the same server's answers to requests that do
nothing; opening and counting beside HPKE alone, in one process. ``extra_info`` has the
rates, ratios and peaks of memory (Linux only). The pilot has 100,000 devices; ``PILOT=1000000``
in the environment makes them a million.
"""

import os
import re
import selectors
import socket
import subprocess
import sys
import time
from itertools import cycle, starmap
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from shuffledp.accounting.account import account
from shuffledp.core.entropy import Entropy
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import Analyzer
from shuffledp.deploy.servers.batches import open_texts
from shuffledp.deploy.servers.settings import read_task, sealing_keys
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.wire import open_seal

SHUFFLEDP = Path(sys.executable).with_name("shuffledp")
NUM_CONNECTIONS = 64
SECONDS = 5.0
ROUNDS = 5
NUM_OPENED = 19_000  # in this process; more are opened in others
LENGTH = re.compile(rb"content-length: (\d+)")
PILOT = int(os.environ.get("PILOT", "100000"))


def created(folder, *options):
    """Make a task in a folder; return the task."""
    command = [
        SHUFFLEDP, "task", "create", "--domain", "yes,no", "--epsilon0", "2", "--epsilon", "0.6",
        "--delta", "1e-6", "--out", folder, *options,
    ]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read_task(folder / "task.bin")


def free_ports():
    """Return options that let the servers listen where nobody else does."""
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (one, two)]
    return "--shuffler", f"127.0.0.1:{ports[0]}", "--analyzer", f"127.0.0.1:{ports[1]}"


class Serving:
    """A server of its own; a context manager, whose ``url`` is where it listens."""

    def __init__(self, role, folder):
        command = [SHUFFLEDP, "serve", role, "--config", folder / f"{role}.toml"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self._process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def peak(self):
        """Return the most memory it had, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def answered(url, requests):
    """Send requests over 64 connections, each once the one before is answered; answers a second."""
    address = urlsplit(url)
    number, endless = 0, cycle(requests)
    with selectors.DefaultSelector() as waiting:
        for _ in range(NUM_CONNECTIONS):
            each = socket.create_connection((address.hostname, address.port))
            waiting.register(each, selectors.EVENT_READ, bytearray())
            each.sendall(next(endless))
        begin = time.perf_counter()
        while time.perf_counter() - begin < SECONDS:
            for key, _ in waiting.select():
                said = key.data
                said += key.fileobj.recv(1 << 16)
                head, end, body = said.partition(b"\r\n\r\n")
                if end and len(body) == int(LENGTH.search(head)[1]):
                    assert head.startswith(b"HTTP/1.1 200 ")
                    said.clear()
                    number += 1
                    key.fileobj.sendall(next(endless))
        taken = time.perf_counter() - begin
        for key in list(waiting.get_map().values()):
            key.fileobj.close()
    return number / taken


@pytest.mark.parametrize("each", [1, 50])
def test_ingest(benchmark, tmp_path, each):
    folder = tmp_path / "task"
    task = created(folder, "--min-batch", "500", "--epoch", "1d", *free_ports())
    size = m.report_size(1)
    base = f"/tasks/{task.task_id.hex()}"
    # Seals are not opened in a request, so any bytes will do.
    noise = Entropy.from_seed(1).generator().bytes(200_000 * (16 + size))
    bodies = []
    for at in range(0, 200_000, each):
        reports = (
            noise[n * 16 : n * 16 + 16] + bytes(5) + noise[n * size : n * size + size - 21]
            for n in range(at, at + each)
        )
        body = b"".join(reports)
        head = f"POST {base}/reports HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        bodies.append(head.encode() + body)
    empty = [f"GET {base}/keys HTTP/1.1\r\nhost: x\r\n\r\n".encode()]
    with Serving("shuffler", folder) as server:
        nothing = answered(server.url, empty)
        rate = benchmark.pedantic(answered, args=(server.url, bodies), rounds=1)
        benchmark.extra_info.update(
            reports_a_second=round(rate * each),
            requests_beside_empty_ones=round(rate / nothing, 2),
            peak_mb=round(server.peak()),
        )


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """A task, its keys, and reports that are sealed twice."""
    folder = tmp_path_factory.mktemp("sealed") / "task"
    task = created(folder, "--min-batch", "500", "--epoch", "1d")
    keys = sealing_keys(folder / "shuffler" / "keys")
    inner = X25519PrivateKey.generate()
    public = [each.public_key().public_bytes_raw() for each in (keys[0], inner)]
    shuffler_key, analyzer_key = (m.SealKey(number=0, public_key=each) for each in public)
    reports = [
        m.Report.sealed_for(
            task,
            bytes([number % 2]),
            report_id=number.to_bytes(16, "big"),
            epoch=0,
            shuffler=shuffler_key,
            analyzer=analyzer_key,
        )
        for number in range(NUM_OPENED)
    ]
    return task, keys, inner, reports


def beside(function, baseline):
    """Return the processor seconds of a call and of a baseline, in turn, the least of each."""
    found = []
    for _ in range(ROUNDS):
        for each in (function, baseline):
            begin = time.process_time()
            each()
            found.append(time.process_time() - begin)
    return min(found[::2]), min(found[1::2])


def test_shuffler_opens_sorts_and_writes(benchmark, sealed, tmp_path):
    task, keys, _, reports = sealed
    infos = [m.outer_info(task.task_id, 0, each.report_id) for each in reports]

    def hpke():
        for each, info in zip(reports, infos, strict=True):
            open_seal(each.sealed, keys[0], info)

    signing = Ed25519PrivateKey.generate()
    handed_out = tmp_path / "handed_out"
    handed_out.touch()
    how = {"sealing_keys": keys, "handed_out": handed_out}
    with Shuffler(task, tmp_path, signing_key=signing, **how) as shuffler:
        shuffler.take(reports, task.start)
        (state,) = shuffler.closed(task.start + 2 * task.epoch_seconds)

        def release():
            held, _, pages = shuffler.to_open(state)
            shuffler.write(state, held, starmap(open_texts, pages))

        taken, alone = beside(release, hpke)
        benchmark.pedantic(release, rounds=1)
    benchmark.extra_info.update(
        opened_a_second=round(NUM_OPENED / taken), beside_hpke=taken / alone
    )


def test_analyzer_opens_and_counts(benchmark, sealed, tmp_path):
    task, keys, inner, reports = sealed
    infos = [m.outer_info(task.task_id, each.epoch, each.report_id) for each in reports]
    records = [
        open_seal(each.sealed, keys[0], info) for each, info in zip(reports, infos, strict=True)
    ]
    info = m.inner_info(task.task_id)
    signing = Ed25519PrivateKey.generate()
    batch = m.Batch(
        task,
        number=1,
        first_epoch=0,
        last_epoch=0,
        records=tuple(records),
        num_opened=len(records),
        num_dishonest=0,
    ).signed(signing)
    data = b"".join(batch.encode())
    task.guarantee(NUM_OPENED)  # is found once a size
    analyzers = []
    for number in range(ROUNDS + 1):
        folder = tmp_path / str(number)  # where nothing was seen
        folder.mkdir()
        found = Analyzer(
            task,
            folder,
            shuffler_key=signing.public_key().public_bytes_raw(),
            opening_keys={0: inner},
        )
        analyzers.append(found)

    def count():
        with analyzers.pop() as analyzer:
            opened = analyzer.take(data)
        task.asked.randomizer.aggregate(opened.reports)

    def hpke():
        for each in records:
            open_seal(each[1:], inner, info)

    taken, alone = beside(count, hpke)
    benchmark.pedantic(count, rounds=1)
    rate = round(NUM_OPENED / taken)
    benchmark.extra_info.update(counted_a_second=rate, beside_hpke=round(taken / alone, 3))


def test_pilot(benchmark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = np.arange(PILOT) < 0.3 * PILOT
    pl.DataFrame({"answer": np.where(said, "yes", "no")}).write_csv("answers.csv")
    folder = tmp_path / "task"
    options = ["--min-batch", str(PILOT), "--epoch", "20s", "--grace", "20s"]
    task = created(folder, *options, "--num-epochs", "1000", *free_ports())
    with Serving("shuffler", folder) as shuffler, Serving("analyzer", folder) as analyzer:

        def whole():
            for command in (
                ["send", folder / "task.bin", "answers.csv", "--column", "answer"],
                ["collect", folder, "--out", "results", "--json"],
            ):
                subprocess.run([SHUFFLEDP, *command], check=True, stdout=subprocess.DEVNULL)

        benchmark.pedantic(whole, rounds=1)
        peaks = {"shuffler": shuffler.peak(), "analyzer": analyzer.peak()}
    record = pl.read_json("results/privacy.json").row(0, named=True)
    expected = account(task.asked.randomizer.profile, num_users=PILOT, delta=1e-6)
    assert record["num_users"] == PILOT
    assert record["guarantee"]["epsilon"]["upper"] == expected.epsilon_upper
    yes = record["estimates"][0]
    # Eight standard errors: a false alarm in 10^15 runs.
    assert abs(yes["frequency"] - 0.3) < 8 * yes["standard_error"]
    benchmark.extra_info.update(
        devices=PILOT, **{f"{k}_peak_mb": round(v) for k, v in peaks.items()}
    )
