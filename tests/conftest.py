"""Shared by all tests: search of Hypothesis, fixed secrets, the choice of quick tests, Chromium."""

import contextlib
import functools
import hashlib
import importlib
import itertools
import os
import pkgutil
import shutil
import signal
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

import shuffledp
from shuffledp.core import entropy

REPOSITORY = Path(__file__).parents[1]

# A shell that starts the tests in the background makes them ignore Ctrl-C, and with them every
# program that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The gate tries the same examples on every run, so that a red run is about the change; `make
# test-all` tries four times as many, and HYPOTHESIS_PROFILE=explore looks further. None times
# examples: the first one compiles loops.
for _name, _most in (("gate", 50), ("long", 200)):
    settings.register_profile(
        _name,
        max_examples=_most,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile(
    "explore",
    max_examples=5_000,
    deadline=None,
    database=DirectoryBasedExampleDatabase(REPOSITORY / ".cache" / "hypothesis"),
    suppress_health_check=[HealthCheck.too_slow],
)
_profile = os.environ.get("HYPOTHESIS_PROFILE", "gate")
settings.load_profile(_profile)

# Hypothesis draws from the constants of whatever modules are loaded by then. All of them, always:
# else the examples would depend on which tests a worker process has run before.
for _module in pkgutil.walk_packages(shuffledp.__path__, "shuffledp."):
    importlib.import_module(_module.name)


# The gate draws the same secrets on every run, for the same reason: each test and each fixture has
# its own, whatever ran before. Other processes, and `explore`, draw from the operating system.
_PROCESS = os.getpid()
_draws: list[tuple[str, Iterator[int]]] = [("", itertools.count())]


@contextlib.contextmanager
def _drawing(name: str) -> Generator[None]:
    """Draw secrets that depend on ``name`` alone."""
    _draws.append((name, itertools.count()))
    try:
        yield
    finally:
        _draws.pop()


if _profile != "explore":
    _from_operating_system = entropy._read_operating_system

    @functools.wraps(_from_operating_system)
    def _read(num_bytes: int) -> bytes:
        """Return the next secret of the test."""
        if os.getpid() != _PROCESS:
            return _from_operating_system(num_bytes)
        name, numbers = _draws[-1]
        return hashlib.shake_256(f"{next(numbers)} {name}".encode()).digest(num_bytes)

    entropy._read_operating_system = _read


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Name a test's secrets after it."""
    with _drawing(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Name a fixture's secrets after it, and after the test or module that it belongs to."""
    with _drawing(f"{request.node.nodeid} {fixturedef.argname} {request.param_index}"):
        return (yield)


# Checked by mypy alone: it reads files that nobody writes.
collect_ignore = ["typed"]

# Whole folders of long tests: sampled laws, long enumerations, every command that the pages show.
_LONG = {"adversarial", "docs", "statistical"}
# Of a function with more cases than this a third is quick, but of rules of the project all are.
_MANY = 4


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of some folders as slow, and two thirds of the cases of a function of many."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        folders = set(item.path.relative_to(REPOSITORY).parts[:-1])
        if folders & _LONG:
            item.add_marker(pytest.mark.slow)
        elif "meta" not in folders and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for several in cases.values():
        if len(several) > _MANY:
            for place, item in enumerate(several):
                if place % 3:
                    item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def chromium_executable() -> str:
    """Path of Chromium: without one, tests skip on a user's machine and fail in CI."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("CI"):
        pytest.fail("no Chromium on this machine, and continuous integration must have one")
    pytest.skip("no Chromium on this machine; `make browser` says what to do")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name cases of bytes by their argument: some are random, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None
