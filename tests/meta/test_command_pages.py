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
def test_groups_of_a_page_have_every_option_once(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    groups = re.findall(r"^```\{options\} (.*)\n((?:.*\n)*?)```$", page, re.MULTILINE)
    options = [
        spelling
        for parameter in COMMANDS[name].params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
        if spelling.startswith("--")
    ]
    assert [command.replace(" ", "-") for command, _ in groups] == [name] * bool(options)
    listed = re.findall(r"--[\w-]*\w", " ".join(body for _, body in groups))
    assert sorted(listed) == sorted(options)
