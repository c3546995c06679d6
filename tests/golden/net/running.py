"""Runs the calls of the net: command lines in this process, and functions; all to plain data."""

import csv
import io
import json
import os
import re
import shlex
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest.mock import patch

from golden.net import exchange, leakage_calls  # noqa: F401 - adds its calls to those of the other
from golden.net.command_calls import command_calls
from golden.net.inputs import write_inputs
from golden.net.plain import plain
from golden.net.python_calls import CALLS, ShuffledpError
from golden.schemas import found_in

_ENVIRONMENT = {"COLUMNS": "80", "NO_COLOR": "1"}
_SAID = re.compile(r"^(?:error|warning): .*", re.MULTILINE)


@cache
def program() -> Callable[[list[str]], int]:
    """Return what the console script ``shuffledp`` calls."""
    (script,) = entry_points(group="console_scripts", name="shuffledp")
    return script.load()


def run_program(arguments: list[str]) -> tuple[int, str, str]:
    """Run the program in this process; return its exit code and what it printed and said."""
    out, err = io.StringIO(), io.StringIO()
    with patch.dict(os.environ, _ENVIRONMENT), redirect_stdout(out), redirect_stderr(err):
        status = program()(arguments)
    return status, out.getvalue(), err.getvalue()


def _run_line(line: str) -> dict[str, Any]:
    status, printed, said = run_program(shlex.split(line))
    found: dict[str, Any] = {"exit code": status}
    if printed and "--json" in line:
        found["printed"] = found_in(printed)
    elif printed:
        found["printed"] = printed.splitlines()
    if messages := _SAID.findall(said):
        found["said"] = messages
    return found


def _written(folder: Path) -> dict[str, Any]:
    """Name the files in a folder, with the header of a table and the keys of an object."""
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".csv":
            found[path.name] = next(csv.reader(path.read_text("utf-8").splitlines()))
        elif path.suffix == ".json" and not path.name.startswith("."):
            found[path.name] = sorted(json.loads(path.read_text("utf-8")))
        else:
            found[path.name] = None
    return found


def run_command(lines: str) -> dict[str, Any]:
    """Run a command line in the working folder, or several, and look at what was written."""
    before = set(Path().iterdir())
    found = [_run_line(line) for line in lines.split(" && ")]
    result = found[0] if len(found) == 1 else {"lines": found}
    for path in set(Path().iterdir()) - before:
        result[f"wrote {path.name}"] = _written(path) if path.is_dir() else None
    return result


def run_function(function: Callable[[], Any]) -> dict[str, Any]:
    """Call a function of the adapter: what it returns, or how it refuses, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = {"returned": plain(function())}
        except ShuffledpError as error:
            found = {"refused": type(error).__name__, "message": str(error)}
    own = [each for each in caught if each.category.__module__.startswith("shuffledp")]
    if own:
        found["warned"] = [f"{each.category.__name__}: {each.message}" for each in own]
    return found


def all_calls() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return every call by its name, "capability | what is called"."""
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"network exchange | $ {exchange.LINES}": lambda: exchange.run_exchange(run_program),
        f"deploy | $ {exchange.SERVED_LINES}": lambda: exchange.run_servers(run_program),
    }
    for capability, line in command_calls():
        found[f"{capability} | $ {line}"] = lambda line=line: run_command(line)
    for name, function in CALLS.items():
        found[name] = lambda function=function: run_function(function)
    return found


def result_of(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run a call in a folder of its own that holds the inputs; return its result as plain data."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_inputs(Path(folder))
        return plain(call())


def all_results(on_call: Callable[[str], None] = lambda name: None) -> dict[str, Any]:
    """Run the whole net."""
    found = {}
    for name, call in all_calls().items():
        on_call(name)
        found[name] = result_of(call)
    return found
