"""Spark, where it can run: one session for the tests of a file."""

import shutil
from pathlib import Path

import pytest

from shuffledp.core.errors import MissingPackageError
from shuffledp.engines import spark


@pytest.fixture(scope="module")
def start_spark():
    """Return what starts a session, or skip, since pyspark or Java is not here."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: make spark")
    try:
        spark.require_java()
    except MissingPackageError as error:
        pytest.skip(str(error))
    started = []
    applications = []

    def start(master, folder, **more):
        settings = {
            "spark.master": master,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "600m",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "3",
            "spark.local.dir": str(folder),
            **more,
        }
        for before in started:  # one at a time
            before.stop()
        session = spark.session(settings)
        session.sparkContext.setLogLevel("OFF")
        started.append(session)
        applications.append(session.sparkContext.applicationId)
        return session

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield start
        for session in started:
            session.stop()
    for name in applications:  # of local-cluster, whose executors work there
        shutil.rmtree(Path(pyspark.__file__).parent / "work" / name, ignore_errors=True)
