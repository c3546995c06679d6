"""Counting many reports: one process, all cores, Apache Spark.

Beside each the count without privacy of the same column in the same run: by polars, by DuckDB where
it is installed, and by plain PySpark. ``extra_info`` has reports a second. Start-up of processes
and of the session is apart.
"""

import os
import resource
import shutil
import subprocess
import sys
from functools import partial, reduce
from operator import add
from pathlib import Path

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import shuffledp as sdp
from engines.test_spark import key_of, placed
from shuffledp.core.entropy import Entropy, derived_key
from shuffledp.deploy.servers.batches import PAGE, open_texts
from shuffledp.deploy.wire import seal
from shuffledp.engines.processes import usable_cores

pytestmark = pytest.mark.filterwarnings("ignore")  # pyspark's own, of its sockets

NUM_REPORTS = 10**8
NUM_FILES = 100_000
NUM_COSTLY = 10**7
NUM_SEALS = 200_000
SEED = 3
LABELS = [f"answer {number}" for number in range(1000)]


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A plan, and a Parquet file of reports."""
    question = sdp.Categories(LABELS)
    plan = sdp.plan(question, num_users=NUM_REPORTS, epsilon0=4.0, delta=1e-10, randomizer="k-rr")
    path = tmp_path_factory.mktemp("reports") / "reports.parquet"
    values = Entropy.from_seed(1).generator().integers(0, len(LABELS), 10**6)
    entropy = Entropy.from_seed(2)
    blocks = (plan.randomizer.randomize(values, entropy) for _ in range(NUM_REPORTS // 10**6))
    sdp.collection.write_reports(path, blocks, plan.randomizer, labels=tuple(LABELS))
    return plan, path


@pytest.fixture(scope="module")
def session():
    pytest.importorskip("pyspark")
    session = sdp.spark.session({"spark.ui.enabled": "false"})
    yield session
    session.stop()


def measure(benchmark, count):
    assert benchmark.pedantic(count, rounds=3, warmup_rounds=1) == NUM_REPORTS
    benchmark.extra_info["reports a second"] = NUM_REPORTS / benchmark.stats.stats.median


@pytest.mark.benchmark(group="count reports")
@pytest.mark.parametrize("number", sorted({1, usable_cores()}))
def test_processes(benchmark, collected, number):
    plan, path = collected
    with sdp.engines.Processes(number) as processes:
        measure(benchmark, lambda: sdp.estimate(path, plan, engine=processes.map).num_users)


@pytest.fixture
def cores():
    """Keep this process, and threads that it starts, to some cores."""
    usable = os.sched_getaffinity(0)

    def keep(number):
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), sorted(usable)[:number])

    yield keep
    keep(len(usable))


@pytest.mark.benchmark(group="count a thousand million reports, a core a process")
@pytest.mark.parametrize("number", sorted({1, usable_cores()}))
def test_cores(benchmark, collected, tmp_path, cores, number):
    """One process reads in one thread and counts in another, so alone it is kept to one core."""
    plan, path = collected
    for copy in range(10):
        (tmp_path / f"{copy}.parquet").hardlink_to(path)
    cores(number)
    with sdp.engines.Processes(number) as processes:
        count = partial(sdp.estimate, tmp_path, plan, engine=processes.map)
        found = benchmark.pedantic(count, rounds=3, warmup_rounds=1)
    assert found.num_users == 10 * NUM_REPORTS


@pytest.fixture(scope="module")
def costly(tmp_path_factory):
    """A plan, and a Parquet file of reports each of which is compared with 1,000 answers."""
    question = sdp.Categories(LABELS)
    how = {"randomizer": "optimized-local-hashing"}
    plan = sdp.plan(question, num_users=NUM_COSTLY, epsilon0=4.0, delta=1e-10, **how)
    path = tmp_path_factory.mktemp("hashed") / "reports.parquet"
    values = Entropy.from_seed(1).generator().integers(0, len(LABELS), NUM_COSTLY)
    reports = plan.randomizer.randomize(values, Entropy.from_seed(2))
    sdp.collection.write_reports(path, [reports], plan.randomizer)
    return plan, path


@pytest.mark.benchmark(group="count reports that are compared with 1,000 answers")
@pytest.mark.parametrize("number", sorted({1, usable_cores()}))
def test_processes_for_costly_reports(benchmark, costly, number):
    plan, path = costly
    with sdp.engines.Processes(number) as processes:
        count = lambda: sdp.estimate(path, plan, engine=processes.map).num_users  # noqa: E731
        assert benchmark.pedantic(count, rounds=3, warmup_rounds=1) == NUM_COSTLY


@pytest.mark.benchmark(group="open 200,000 seals")
@pytest.mark.parametrize("number", sorted({1, usable_cores()}))
def test_processes_for_seals(benchmark, number):
    key = X25519PrivateKey.generate()
    sealed = [(b"info", seal(b"\0" * 16, key.public_key().public_bytes_raw(), b"info"))] * PAGE
    opens = partial(open_texts, "x25519", key.private_bytes_raw())
    with sdp.engines.Processes(number) as processes:
        count = lambda: sum(map(len, processes.map(opens, [sealed] * (NUM_SEALS // PAGE))))  # noqa: E731
        assert benchmark.pedantic(count, rounds=3, warmup_rounds=1) == NUM_SEALS // PAGE * PAGE


@pytest.mark.benchmark(group="count reports")
def test_spark(benchmark, collected, session):
    plan, path = collected
    frame = session.read.parquet(str(path))
    measure(benchmark, lambda: sdp.spark.estimate(frame, plan).num_users)


@pytest.mark.benchmark(group="count reports")
def test_files_by_workers_of_spark(benchmark, collected, session):
    assert session
    plan, path = collected
    engine = sdp.spark.Workers().map
    measure(benchmark, lambda: sdp.estimate(path, plan, engine=engine).num_users)


@pytest.mark.benchmark(group="count reports")
def test_spark_without_privacy(benchmark, collected, session):
    frame = session.read.parquet(str(collected[1]))

    def count():
        return sum(row["count"] for row in frame.groupBy("report").count().collect())

    measure(benchmark, count)


@pytest.mark.benchmark(group="count reports")
def test_polars_without_privacy(benchmark, collected):
    counted = pl.scan_parquet(collected[1]).group_by("report").len().select(pl.sum("len"))
    measure(benchmark, lambda: counted.collect(engine="streaming").item())


@pytest.mark.benchmark(group="count reports")
def test_duckdb_without_privacy(benchmark, collected):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    counted = duckdb.read_parquet(str(collected[1])).aggregate("report, count(*)")
    measure(benchmark, lambda: sum(number for _, number in counted.fetchall()))


@pytest.mark.benchmark(group="a thousand million reports")
@pytest.mark.parametrize("number", sorted({1, usable_cores()}))
def test_a_thousand_million_in_a_program(benchmark, collected, tmp_path, number):
    """The command, start-up and all; the promise is 60 seconds and 1 GB for one process."""
    plan, path = collected
    (tmp_path / "reports").mkdir()
    for copy in range(10):
        shutil.copyfile(path, tmp_path / "reports" / f"{copy}.parquet")
    plan.save(tmp_path / "plan.json")
    program = [
        Path(sys.executable).with_name("shuffledp"),
        "estimate",
        tmp_path / "reports",
        "--overwrite",
    ]
    program += ["--plan", tmp_path / "plan.json", "--out", tmp_path / "out"]
    program += ["--processes", str(number)]

    def count():
        subprocess.run(program, check=True, capture_output=True, env=os.environ)

    benchmark.pedantic(count, rounds=1)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    benchmark.extra_info["largest process, MB"] = largest // 1024


@pytest.mark.benchmark(group="count 100,000 files")
@pytest.mark.parametrize("engine", ["processes", "spark"])
def test_small_files(benchmark, collected, session, tmp_path, engine):
    assert session
    plan, path = collected
    file = tmp_path / "0.parquet"
    pl.scan_parquet(path).head(1000).sink_parquet(file)
    for number in range(1, NUM_FILES):
        (tmp_path / f"{number}.parquet").hardlink_to(file)
    found = []
    with sdp.engines.Processes() as processes:
        workers = processes if engine == "processes" else sdp.spark.Workers()
        count = lambda: found.append(sdp.estimate(tmp_path, plan, engine=workers.map))  # noqa: E731
        benchmark.pedantic(count, rounds=1)
    assert found[0].num_users == 1000 * NUM_FILES


@pytest.mark.benchmark(group="randomize rows")
@pytest.mark.parametrize("engine", ["one process", "spark"])
def test_randomize(benchmark, collected, session, tmp_path, engine):
    """The same ids under the same key, in the blocks that Spark forms: the same counts."""
    plan, key = collected[0], key_of(SEED)
    whole = list(placed(session, key, NUM_REPORTS, -(-NUM_REPORTS // 2**16), tmp_path / "placed"))

    def here():
        return sdp.estimate(reduce(add, map(counted, whole)), plan).estimates

    def counted(block):
        entropy = Entropy.from_key(derived_key(key, b"rows", block[0]))
        return plan.randomizer.aggregate(plan.randomizer.randomize(block[1] % 1000, entropy))

    def there():
        value = "concat('answer ', cast(id % 1000 as string)) as value"
        rows = session.range(NUM_REPORTS).selectExpr("id", value)
        return sdp.spark.run(rows, "value", plan, id_column="id", seed=SEED).estimates

    found = benchmark.pedantic(here if engine == "one process" else there, rounds=1)
    if engine == "spark":
        assert found.count == pytest.approx(here().count)
