"""The net: what some 400 calls return stays what it was, whatever moves inside the package.

`golden/net.json` holds the results, and ``make golden`` writes it anew. The calls are in
`golden/net/`: command lines in `command_calls` and `exchange`, public names in `python_calls` and
`leakage_calls`, which alone change where a name moves. Numbers are compared to nine digits and all
else exactly (`golden.net.plain`, which also names what is left out).

Calls of each capability:

account           30
attack             3
bounds             5
calibrate         20
certify            3
channels          10
compose           14
demo               1
deploy             4
estimate          29
explain            3
groups            28
leakage           34
learnability       2
ledger             6
maximum load       5
monitor plan      15
monitor simulate  10
network account   23
network exchange   3
network run        7
plan              25
refused           29
run               32
subsample         10
"""

import ast
import re
from copy import deepcopy
from pathlib import Path

import click
import pytest
from fastjsonschema import JsonSchemaException

from golden.make_net import num_calls, written_results
from golden.net import leakage_calls, python_calls
from golden.net.plain import VOLATILE, changes, differences, results_in, text_of
from golden.net.running import all_calls, result_of, run_program
from golden.schemas import ABOUT, PRINTED, SCHEMAS, check, schema_file
from shuffledp.cli.main import cli

CALLS = all_calls()
WRITTEN = written_results()

# Commands that no call runs, and why.
NOT_RUN = {
    "planner": "it serves a page, which tests/end_to_end/test_planner_in_browser.py fills in",
    "aggregate": "its results are compared with the analyzer's, byte by byte",
    "task next": "it needs a round of a search before; tests/end_to_end/test_search.py has two",
}


# These take seconds, and others of their kind do not.
LONG = {name for name in CALLS if "--shuffler network" in name and "--protocol" not in name}
LONG |= {name for name in CALLS if "--periods 64" in name or "--positions spectral" in name}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each in LONG)) for each in CALLS]
)
def test_a_call_returns_what_it_did(name):
    before = len(PRINTED)
    assert changes({name: WRITTEN[name]}, {name: result_of(CALLS[name])}) == []
    for record in PRINTED[before:]:
        check(record)
        assert set(ABOUT) <= set(record)


def test_the_file_holds_the_calls_and_no_others():
    assert sorted(WRITTEN) == sorted(CALLS)


def test_the_table_above_counts_the_calls():
    assert num_calls(CALLS) in __doc__


# ---------------------------------------------------------------- what the net covers
def commands(*group: str) -> list[str]:
    """Return all commands below a group, from the help texts."""
    _, text, _ = run_program([*group, "--help"])
    _, found, listed = text.partition("\nCommands:\n")
    if not found:
        return [" ".join(group)]
    names = re.findall(r"^  (\S+)", listed, re.MULTILINE)
    return [each for name in names for each in commands(*group, name)]


def names_used(source: str) -> set[str]:
    """Return the attributes that a module's code takes from others."""
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}


def test_every_command_is_in_the_net():
    lines = [line for name in CALLS for line in name.partition("| $ ")[2].split(" && ")]
    run = {each for each in commands() if any(f"{line} ".startswith(f"{each} ") for line in lines)}
    assert set(commands()) - run == set(NOT_RUN)


def test_every_public_name_is_in_the_net():
    adapters = (python_calls, leakage_calls)
    used = {
        name for each in adapters for name in names_used(Path(each.__file__).read_text("utf-8"))
    }
    public = {name for module in python_calls.PUBLIC for name in module.__all__}
    assert public - used == set(python_calls.NOT_CALLED)


def test_every_public_module_is_in_the_net():
    package = Path(python_calls.sdp.__file__).parent
    listed = [
        path
        for path in (package / "__init__.py", *package.glob("*/__init__.py"))
        if ("lazy_names(__name__)" in path.read_text("utf-8") or path.parent.name == "estimation")
        and path.parent.name != "report"  # what results call to show themselves
    ]
    assert {Path(module.__file__) for module in python_calls.PUBLIC} == set(listed)


# ---------------------------------------------------------------- what the net catches
BOUND = "account | account(epsilon0=1.0, num_users=1000, delta=1e-06)"
REFUSAL = "account | account(epsilon0='1', num_users=5000, delta=1e-06)"


def test_planted_changes_are_caught():
    old = {name: WRITTEN[name] for name in (BOUND, REFUSAL)}
    assert changes(old, results_in(text_of(old))) == []

    def found(plant):
        new = deepcopy(old)
        plant(new[BOUND]["returned"], new[REFUSAL])
        return changes(old, new)

    def scale(bound, factor):
        bound["epsilon"]["upper"] *= factor

    assert found(lambda bound, _: scale(bound, 1.0 + 1e-10)) == []
    for factor in (1.0 + 1e-7, 1.0 - 1e-8):
        (line,) = found(lambda bound, _, factor=factor: scale(bound, factor))
        assert f"{BOUND}.returned.epsilon.upper: " in line
    (line,) = found(lambda bound, _: bound.pop("method"))
    assert line.endswith(".method: gone")
    (line,) = found(lambda bound, _: bound.update(more=1))
    assert line.endswith(".more: new")
    (line,) = found(lambda bound, _: bound["assumptions"].pop())
    assert ".assumptions: " in line
    (line,) = found(lambda _, refused: refused.update(message=refused["message"] + "s"))
    assert ".message: " in line
    assert changes(old, {BOUND: old[BOUND]}) == [f"{REFUSAL}: gone"]


@pytest.mark.parametrize(
    ("old", "new", "agree"),
    [
        (3, 4, False),
        (1, 1.0, False),
        (1, True, False),
        (0.0, 1e-17, True),
        (0.0, 1e-12, False),
        (1e-20, 2e-20, False),
        ("epsilon is 0.123456789", "epsilon is 0.123456788", True),
        ("epsilon is 0.123456789", "epsilon is 0.123456", False),
        ("epsilon of 17", "epsilon of 18", False),
        ([1, 2], [1], False),
        (None, 0, False),
    ],
)
def test_what_agrees(old, new, agree):
    assert (differences(old, new) == []) is agree


def test_volatile_keys_are_left_out_and_have_reasons():
    text = text_of(WRITTEN)
    assert all(f'"{name}":' not in text and reason for name, reason in VOLATILE.items())


# ---------------------------------------------------------------- what programs read
def test_each_schema_is_of_a_command_and_refuses_what_is_not_its_own():
    cli.list_commands(click.Context(cli))  # imports them all
    groups = {"": cli.commands} | {
        f"{name} ": command.commands
        for name, command in cli.commands.items()
        if isinstance(command, click.Group)
    }
    printing = {
        schema_file(f"shuffledp {group}{name}").name
        for group, commands in groups.items()
        for name, command in commands.items()
        if any(each.name == "as_json" for each in command.params)
    }
    assert {path.name for path in SCHEMAS.iterdir()} == printing
    record = {"command": "shuffledp account", "inputs": {}}
    with pytest.raises(JsonSchemaException):
        check(record)
