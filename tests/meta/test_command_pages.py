"""Every command has its page in the documentation, which shows its options below headings."""

import re
from pathlib import Path

import click
import pytest

from shuffledp.cli.main import cli
from shuffledp.cli.options import headed

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
def test_a_page_shows_the_options_of_its_command_once(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\{options\} (.*)\n```$", page, re.MULTILINE)
    assert [command.replace(" ", "-") for command in shown] == [name] * bool(COMMANDS[name].params)


#: A list of more options than this has headings.
FEW = 6


@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_list_of_options_has_headings(name):
    shown = headed(click.Context(COMMANDS[name]), COMMANDS[name].params)
    assert sum(map(len, shown.values())) <= FEW or (len(shown) > 1 and "Options" not in shown)
