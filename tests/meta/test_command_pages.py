"""Every command has its page in the documentation, and the page names every option."""

import re
from pathlib import Path

import click
import pytest

from shuffledp.cli.main import cli

PAGES = Path(__file__).parents[2] / "docs" / "commands"

cli.list_commands(click.Context(cli))  # imports them all

#: Those of a group are on pages of their own, after the group's name.
COMMANDS = {
    "-".join(filter(None, (group, name))): command
    for group, commands in {
        "": cli.commands,
        **{
            name: command.commands
            for name, command in cli.commands.items()
            if isinstance(command, click.Group)
        },
    }.items()
    for name, command in commands.items()
}


def test_pages_and_commands_are_the_same():
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_page_names_every_option(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    options = {
        spelling
        for parameter in COMMANDS[name].params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
        if spelling.startswith("--")
    }
    assert options - set(re.findall(r"--[\w-]*\w", page)) == set()
