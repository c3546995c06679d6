"""Messages of the library name arguments of Python; the command line writes them as options."""

import ast
import re
from pathlib import Path

import click
import pytest

import shuffledp
from shuffledp.cli.console import say, stages
from shuffledp.cli.options import cli
from shuffledp.core.errors import DataError


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        ("pass missing='drop' to leave them out", "pass --missing drop to leave them out"),
        ("add it to domain=[...], or pass other=True", "add it to --domain, or pass --other"),
        ("max_answers = 3: pass truncate=True", "max_answers = 3: pass --truncate"),
        ("stay for example laziness=0.2", "stay for example --lazy 0.2"),
        ("name the column: id_column=...", "name the column: --id"),
        ("epsilon = 1 and delta = 2", "epsilon = 1 and delta = 2"),
        ("of type Duration(time_unit='us')", "of type Duration(time_unit='us')"),
    ],
)
def test_arguments_are_printed_as_options(capsys, message, printed):
    say("error", message)
    assert capsys.readouterr().err == f"error: {printed}\n"


@pytest.mark.parametrize(
    ("options", "message", "said"),
    [
        ({}, "a row (empty): pass missing='drop' to leave it out", "a row (empty)"),
        ({"other": None}, "2 rows: add it to domain=[...], or pass other=True", "2 rows"),
        ({"missing": None, "shuffler": "mallows"}, "a row: pass missing='drop'", "a row"),
    ],
)
def test_advice_that_a_command_does_not_take_is_left_out(options, message, said):
    assert refusal_of(message, **options) == f"{said}: correct the table"


def test_one_advice_of_two_remains():
    message = "a row: pass missing='drop' to leave them out, or missing='category' to count it"
    said = refusal_of(message, missing=None, shuffler="mallows")
    assert said == "a row: pass missing='category' to count it"
    assert refusal_of(message, missing=None, shuffler="uniform") == message


def refusal_of(message, **options):
    """Return what a command with these options says where the library raises the message."""

    def refuse(**_):
        raise DataError(message)

    params = [click.Option([f"--{name}"], default=value) for name, value in options.items()]
    command = cli.command_class("any", callback=refuse, params=params)
    with pytest.raises(DataError) as raised:
        command.main([], standalone_mode=False)
    return str(raised.value)


class Bar:
    """A progress display that only keeps the names of its lines."""

    def __init__(self):
        self.lines = []

    def add_task(self, line, total):
        self.lines.append(line)
        return len(self.lines) - 1

    def update(self, task, completed, total):
        assert task < len(self.lines)


def test_stages_say_once_what_would_be_quicker():
    move = stages(bar := Bar())
    for stage in ("position laws (quicker: positions='spectral')", "learning", "checking"):
        move(stage, 0, 2)
        move(stage, 2, 2)
    assert bar.lines == [
        "position laws (quicker: --positions spectral)",
        "learning",
        "checking",
    ]


# A folder whose messages only ever reach a terminal may name options, and so may whole commands.
OF_COMMANDS = {"cli", "deploy", "peers"}
OPTION = re.compile(r"(?<![\w-])(?<!var\()--[a-z]")


def options_named(source):
    """Return the texts of a module, docstrings aside, that name an option but no command."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        and OPTION.search(node.value)
        and not re.search(r"shuffledp [a-z]", node.value)
    ]


def test_messages_of_the_library_name_no_option():
    folder = Path(shuffledp.__file__).parent
    modules = folder.rglob("*.py")
    kept = [path for path in modules if not OF_COMMANDS & set(path.relative_to(folder).parts)]
    assert len(kept) > 100
    found = {str(path): options_named(path.read_text(encoding="utf-8")) for path in kept}
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_a_planted_option_is_found():
    assert options_named('raise ValueError(f"{x}: name the column (--id COLUMN)")') != []
    assert options_named('"""Say --id."""\ncolour = "var(--ink)"') == []
