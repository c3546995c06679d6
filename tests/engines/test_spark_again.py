"""What Spark runs again, and what it writes down, in a cluster of two executors on this machine."""

import base64
import os
import sys

import pytest

from engines.test_spark import NUM_USERS, SEED, frame_of, key_of, plan_of, reports_in
from shuffledp.core.errors import DataError
from shuffledp.engines import spark, spark_blocks

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster(start_spark, tmp_path_factory):
    """Two executors, tasks that are run again, a second copy of slow ones, and a history."""
    # Tasks have no tests: functions of these go to them with their code.
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "events").mkdir()
    return start_spark(
        "local-cluster[2,1,512]",
        folder,
        **{
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.3",
            "spark.speculation.minTaskRuntime": "100ms",
            "spark.sql.adaptive.enabled": "false",
            "spark.shuffle.io.maxRetries": "1",
            "spark.shuffle.io.retryWait": "1s",
            "spark.deploy.maxExecutorRetries": "50",
        },
    ), folder


def test_the_key_is_in_no_plan_history_log_or_file(cluster, capfd):
    session, local = cluster
    events = local / "events"
    session.sparkContext.setLogLevel("DEBUG")
    key = key_of(SEED)
    plan = plan_of()
    reports = spark.randomize(frame_of(session), "value", plan, id_column="id", seed=SEED)
    assert reports.count() == NUM_USERS
    reports.explain("extended")
    planned = reports._jdf.queryExecution().toString()
    session.sparkContext.setLogLevel("OFF")
    forms = [
        key,
        key.hex().encode(),
        base64.b64encode(key),
        repr(key).encode(),
        str(list(key)).encode(),
    ]
    forms += [form.upper() for form in forms[1:2]]
    assert not any(form in planned.encode() for form in forms)
    said = capfd.readouterr()
    work = spark_work(session)
    files = [path for where in (local, work) for path in where.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(events) for path in files)
    assert any(path.is_relative_to(work) for path in files)
    for text in (said.out.encode(), said.err.encode(), *(path.read_bytes() for path in files)):
        assert not any(form in text for form in forms)
    assert repr(key) not in repr(spark_blocks._with_key(spark_blocks._check, key, None))


def spark_work(session):
    from pathlib import Path

    import pyspark

    return Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId


def kill_executor():
    """End the executor that a task runs in, a Java program above it."""
    import signal
    from pathlib import Path

    process = os.getpid()
    while True:
        name, rest = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)
        if "(java" in name:
            os.kill(process, signal.SIGKILL)
            signal.pause()  # and so does this
        process = int(rest.split()[1])


def lose_shuffle_files(folder):
    """Delete the outcomes of earlier tasks."""
    from pathlib import Path

    for path in Path(folder).rglob("shuffle_*.data"):
        path.unlink()


def disturbance(name, folder, marks):
    """Return what happens to one task, once, as a function of its partition."""

    def happen(partition):
        import time

        mark = f"{marks}/{name}-{partition}"
        if partition != 1 or os.path.exists(mark):  # noqa: PTH110  # short
            return
        os.close(os.open(mark, os.O_CREAT))
        if name == "fails":
            raise RuntimeError("on purpose")
        if name == "dies":
            kill_executor()
        elif name == "slow":
            time.sleep(20)  # a second copy of the task is there much earlier
        else:
            lose_shuffle_files(folder)

    return happen


def disturbed(frame, happen):
    """Return the same rows, in whose tasks something happens."""

    def pass_on(batches):
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            if number == 0:
                happen(TaskContext.get().partitionId())
            yield batch

    return frame.mapInArrow(pass_on, frame.schema)


def by_partition(keyed, table):
    """Planted: a task draws by its number, as `rand()` with a seed does."""
    import pyarrow as pa
    from pyspark import TaskContext

    from shuffledp.core.entropy import Entropy
    from shuffledp.engines import spark_blocks

    values = spark_blocks._opened(keyed, table).values
    entropy = Entropy.from_seed(TaskContext.get().partitionId())
    law = keyed.terms.value.randomizer
    drawn = law.randomize(values, entropy).data
    return pa.table(
        {"report": spark_blocks.as_column(drawn, law, keyed.terms.value.question.labels)}
    )


def afresh(keyed, table):
    """Planted: each attempt draws anew, as `rand()` without a seed does."""
    import pyarrow as pa

    from shuffledp.core.entropy import Entropy
    from shuffledp.engines import spark_blocks

    values = spark_blocks._opened(keyed, table).values
    law = keyed.terms.value.randomizer
    drawn = law.randomize(values, Entropy.from_operating_system()).data
    return pa.table(
        {"report": spark_blocks.as_column(drawn, law, keyed.terms.value.question.labels)}
    )


@pytest.mark.parametrize("name", ["fails", "dies", "slow", "loses"])
@pytest.mark.parametrize("where", ["before", "after"])
def test_rows_are_randomized_once_whatever_runs_again(cluster, tmp_path, monkeypatch, name, where):
    """Each row has one report, the same as undisturbed; none is lost and none is twice."""
    session, folder = cluster
    monkeypatch.setattr(spark_blocks, "_ROWS_A_BLOCK", 100)
    plan = plan_of()
    rows = frame_of(session)
    wanted = reports_in(spark.randomize(rows, "value", plan, id_column="id", seed=SEED))
    assert len(wanted) == NUM_USERS
    happen = disturbance(name, folder, tmp_path)
    if where == "before":  # in the tasks that read the rows, for the first time or a later one
        reports = spark.randomize(disturbed(rows, happen), "value", plan, id_column="id", seed=SEED)
    else:  # in those that shuffle what the randomizing tasks have made
        reports = spark.randomize(rows, "value", plan, id_column="id", seed=SEED)
        reports = disturbed(disturbed(reports, lambda _: None).repartition(3, "report"), happen)
    assert reports_in(reports) == wanted
    assert list(tmp_path.iterdir())  # it did happen


@pytest.mark.parametrize("planted", [by_partition, afresh])
def test_planted_errors_are_seen(cluster, monkeypatch, planted):
    """The same comparison, over how many tasks there are, tells laws that draw by place apart."""
    session, _ = cluster
    monkeypatch.setattr(spark_blocks, "_ROWS_A_BLOCK", 100)

    def both():
        found = []
        for number in ("3", "5"):
            session.conf.set("spark.sql.shuffle.partitions", number)
            rows = frame_of(session, partitions=int(number))
            found.append(
                reports_in(spark.randomize(rows, "value", plan_of(), id_column="id", seed=SEED))
            )
        session.conf.set("spark.sql.shuffle.partitions", "3")
        return found

    one, other = both()
    assert one == other
    monkeypatch.setattr(spark_blocks, "_report", planted)
    one, other = both()
    assert one != other


def test_rows_that_change_between_attempts_end_the_job(cluster):
    session, _ = cluster

    def other_each_time(batches):
        import uuid

        import pyarrow as pa

        for batch in batches:
            values = [f"answer {uuid.uuid4().int % 20}" for _ in range(batch.num_rows)]
            yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(values)], ["id", "value"])

    rows = frame_of(session).mapInArrow(other_each_time, "id bigint, value string")
    reports = spark.randomize(rows, "value", plan_of(), id_column="id", seed=SEED)
    with pytest.raises(Exception, match="store it first"):
        reports.collect()
    with pytest.raises(DataError, match="store it first"):
        spark.run(rows, "value", plan_of(), id_column="id", seed=SEED)


def test_pieces_of_work_go_to_spark_in_order(cluster):
    assert cluster
    assert list(spark.Workers().map(abs, range(-10, 0))) == list(range(10, 0, -1))
