"""Help texts, pages of commands and first lines of docstrings are plain technical English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from shuffledp.cli.main import cli

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shuffledp"

#: Each with an example of a line that it refuses.
BANNED = {
    r"^(Return|Yield)s? (what|how|who|whether|which|why|where|when|if)\b": "Return what is left.",
    r"^Tell\b": "Tell whether two laws differ.",
    r"\b([Tt]hose|[Tt]hat) of\b": "The loss, at most that of the base.",
    r"\b[Ss]o (many|much)\b": "Return the bound after so many rounds.",
    r"\b([Hh]e|[Hh]is|[Hh]im|[Hh]imself)\b": "Each user keeps his report.",
    r"\b[Aa]s many\b": "Keep as many reports as slots.",
    r"\b([Oo]f|[Ff]or|[Tt]o|[Bb]y|[Ff]rom|[Ww]ith|[Ww]hat) who\b": "The chance of who sees it.",
    r"^Of ": "Of all rounds.",
}

#: In first lines of docstrings also a clause that stands for a noun; pages have such sentences.
BANNED_FIRST = BANNED | {
    r"^(What|Who|Whoever|How|Where|Whether)\b": "What a collection returns.",
}


def banned_forms(text: str, forms: dict[str, str] = BANNED) -> list[str]:
    """Patterns of the banned forms in a text."""
    return [pattern for pattern in forms if re.search(pattern, text)]


def first_lines(source: str) -> Iterator[str]:
    """First lines of all docstrings of a module."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield (ast.get_docstring(node) or "").partition("\n")[0]


def help_texts(command: click.Command) -> Iterator[str]:
    """Help texts of a command, its options and its subcommands."""
    yield from (command.help or "").splitlines()
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            subcommand = command.get_command(click.Context(command), name)
            assert subcommand is not None
            yield from help_texts(subcommand)


@pytest.mark.parametrize(("pattern", "example"), BANNED_FIRST.items())
def test_banned_forms_are_found(pattern, example):
    assert pattern in banned_forms(example, BANNED_FIRST)


@pytest.mark.parametrize("folder", sorted(path.name for path in SOURCE.iterdir()))
def test_first_lines_of_docstrings(folder):
    path = SOURCE / folder
    found = {
        line: banned_forms(line, BANNED_FIRST)
        for module in ([path] if path.suffix == ".py" else path.rglob("*.py"))
        for line in first_lines(module.read_text(encoding="utf-8"))
    }
    assert {line: forms for line, forms in found.items() if forms} == {}


def test_help_texts():
    found = {text: banned_forms(text) for text in help_texts(cli)}
    assert {text: forms for text, forms in found.items() if forms} == {}


@pytest.mark.parametrize("page", ["faq", "glossary", "commands", "guides", "tutorial"])
def test_pages(page):
    path = ROOT / "docs" / page
    found = {
        line: banned_forms(line)
        for each in (sorted(path.glob("*.md")) if path.is_dir() else [path.with_suffix(".md")])
        for line in re.sub(r"(?s)```.*?```", "", each.read_text(encoding="utf-8")).splitlines()
    }
    assert {line: forms for line, forms in found.items() if forms} == {}
