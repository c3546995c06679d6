"""Sessions of Apache Spark: found or started, with a Java that is new enough."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from shuffledp.core import errors
from shuffledp.core.errors import MissingPackageError, ParameterError, ShuffledpError, needing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The oldest Java that runs pyspark 4.
_JAVA: Final = 17

# Number of items of a task: a task of Spark costs a fifth of a second, and so do several items.
_ITEMS_A_TASK: Final = 16


def session(settings: Mapping[str, str] | None = None) -> "SparkSession":
    """Return the running session of Spark, or start one with the local settings.

    Parameters
    ----------
    settings : mapping of str, optional
        Settings of Spark, such as ``spark.driver.memory``, for a session that is started; a cluster
        is named in ``PYSPARK_SUBMIT_ARGS`` or ``spark-defaults.conf``, as for any program.

    Returns
    -------
    SparkSession
        A classic session: its driver is this process.

    Raises
    ------
    MissingPackageError
        If pyspark is not installed, or Java is missing or older than 17.
    """
    with needing("pyspark", "Apache Spark", "shuffledp[spark]"):
        from pyspark.sql import SparkSession
    found = SparkSession.getActiveSession()
    if found is None:
        require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("shuffledp")
        alone = {"spark.executorEnv.POLARS_MAX_THREADS": "1"}  # for many workers
        for name, value in (alone | dict(settings or {})).items():
            builder = builder.config(name, value)
        found = builder.getOrCreate()
    return found


def require_java() -> None:
    """Raise unless Java, as Spark would start it, is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    said = ""
    if java and os.access(java, os.X_OK):
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603  # the user's own
        said = ran.stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        where = f"JAVA_HOME = {home}" if home else "PATH"
        held = f"Java {version[1]}" if version else "no Java"
        raise MissingPackageError(
            f"Apache Spark needs Java {_JAVA} or newer, and {where} has {held}: install one, such "
            "as the package openjdk-17-jre-headless, or set JAVA_HOME",
            name="java",
        )


def session_of(frame: Any) -> "SparkSession":
    """Return the session of a frame; raise unless its driver is this process."""
    from pyspark.sql.classic.dataframe import DataFrame

    if not isinstance(frame, DataFrame):
        raise ParameterError(
            f"frame is a {type(frame).__module__}.{type(frame).__name__}: give a DataFrame of a "
            "classic session of Spark, whose driver is this process, not of Spark Connect"
        )
    return frame.sparkSession


@contextmanager
def told() -> Iterator[None]:
    """Raise an error of ours in a task, however Spark wraps it, as the same error here."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = re.findall(r"shuffledp\.core\.errors\.(\w+): (.*)", str(error))
        if not found:
            raise
        name, message = found[-1]
        raise getattr(errors, name, ShuffledpError)(message) from None


@contextmanager
def stopped(where: str) -> Iterator[None]:
    """Raise an error of Spark itself, of many lines, as one of one line."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        causes = re.findall(r"^Caused by: (.+)", str(error), re.MULTILINE)
        raise ShuffledpError(f"{where}: {(causes or str(error).splitlines()[:1])[-1]}") from error


class Workers:
    """Spark's workers as an engine for pieces of work: files of reports, or sealed pages.

    Each worker reads the files itself, by their absolute paths.

    Examples
    --------
    >>> list(Workers().map(abs, [-1, 2]))  # doctest: +SKIP
    [1, 2]
    """

    def __init__(self) -> None:
        self._context = session().sparkContext

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of the function for each item, in their order.

        Items may be written to scratch files of Spark; the values bound to the function are not.
        """
        waiting, tasks = iter(items), 2 * self._context.defaultParallelism
        while some := list(islice(waiting, _ITEMS_A_TASK * tasks)):
            with told():
                spread = self._context.parallelize(some, min(len(some), tasks))
                found = spread.map(function).collect()
            yield from found
