"""Every command has its page in the documentation, and the page names every option."""

from pathlib import Path

import pytest

from shuffledp.interface.cli.main import cli

PAGES = Path(__file__).parents[2] / "docs" / "commands"


def test_pages_and_commands_are_the_same():
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(cli.commands)


@pytest.mark.parametrize("name", cli.commands)
def test_page_names_every_option(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    options = {
        spelling
        for parameter in cli.commands[name].params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
        if spelling.startswith("--")
    }
    assert {option for option in options if f"`{option}" not in page} == set()
