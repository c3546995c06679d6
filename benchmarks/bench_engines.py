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
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.core.entropy import Entropy
from shuffledp.engines.processes import usable_cores

NUM_REPORTS = 10**8
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


@pytest.mark.benchmark(group="randomize rows")
@pytest.mark.parametrize("engine", ["one process", "spark"])
def test_randomize(benchmark, collected, session, engine):
    plan, num_rows = collected[0], 10**7

    def here():
        values = np.arange(num_rows) % len(LABELS)
        return plan.randomizer.randomize(values, Entropy.from_operating_system()).num_reports

    def there():
        value = f"concat('answer ', cast(id % {len(LABELS)} as string)) as value"
        rows = session.range(num_rows).selectExpr("id", value)
        return sdp.spark.run(rows, "value", plan, id_column="id").num_users

    found = benchmark.pedantic(here if engine == "one process" else there, rounds=1)
    assert found == num_rows
