"""Output of the commands: results on stdout, warnings, errors and progress on stderr.

rich is imported when something is printed, since ``--json`` and ``--help`` do without it.
"""

import codecs
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp._version import __version__
from shuffledp.collection.output import json_text, results_folder
from shuffledp.core.display import one_line, visible
from shuffledp.core.progress import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress as ProgressBar
    from rich.progress import TaskID

_MAX_WIDTH = 100
_LONGEST_LINE = 400
_SCHEMA_VERSION = 1


def is_json() -> bool:
    """Return True if the command must print JSON."""
    return bool(click.get_current_context().meta.get("shuffledp.json"))


def print_json(value: Mapping[str, object]) -> bool:
    """Print one JSON object on one line if --json is given; return True if it was printed.

    Results come first, then inputs and versions; docs/schemas has a JSON Schema for each command.
    A changed meaning of a key raises the schema version.
    """
    if is_json():
        context = click.get_current_context()
        about = {
            "command": context.command_path,
            "inputs": {
                name: _plain(each) for name, each in context.params.items() if each is not None
            },
            "schema_version": _SCHEMA_VERSION,
            "shuffledp_version": __version__,
        }
        click.echo(json_text({**value, **about}))
    return is_json()


def _plain(value: object) -> object:
    """Return the value of an option as a JSON value."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if value == math.inf:  # JSON has no infinity
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def say(kind: str, message: str) -> None:
    """Print a message of some kind, such as an error, on one line of stderr."""
    click.echo(f"{kind}: {one_line(_with_options(message), limit=_LONGEST_LINE)}", err=True)


# Options whose names differ from the names of the arguments.
_OTHER_NAMES = {
    "laziness": "lazy",
    "id-column": "id",
    "missing-texts": "missing-text",
    "domains": "domain-file",
}


def _with_options(message: str) -> str:
    """Return a message with arguments written as options: missing='drop' as --missing drop."""

    def option(found: re.Match[str]) -> str:
        name = found["name"].replace("_", "-")
        value = found["text"] or found["number"] or ""
        return f"--{_OTHER_NAMES.get(name, name)} {value}".rstrip()

    value = r"(?:True|\[\.\.\.\]|\.\.\.|'(?P<text>[\w.,-]+)'|(?P<number>0\.\d+))"
    pattern = rf"(?<!\()\b(?P<name>[a-z_]+)={value}"
    return re.sub(pattern, option, message)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print each warning on a line of stderr."""
    for warning in warnings:
        say("warning", warning)


#: Folders of complete results; a later failure, such as in printing, does not undo them.
published: list[Path] = []


@contextmanager
def new_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield `results_folder`; refuse one that holds a file named by the command's options."""
    given = click.get_current_context().params.values()
    read = [each for each in given if isinstance(each, Path) and each != out]
    with results_folder(out, overwrite=overwrite, inputs=read) as folder:
        yield folder
    published.append(out)


def prepare_stdout() -> None:
    """Escape characters that the encoding of stdout lacks, as in JSON."""
    published.clear()
    codecs.register_error("shuffledp.escaped", _escaped)
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open until exit
    elif hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="shuffledp.escaped")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return JSON escapes of the characters that cannot be encoded, and their end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", units), error.end


def show(*renderables: "RenderableType") -> None:
    """Print objects of rich: plain, unpadded text unless stdout is a terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, _MAX_WIDTH)
    with console.capture() as capture:
        console.print(*renderables, sep="\n")
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_facts(facts: Iterable[tuple[str, str]], *, gap: int = 2) -> None:
    """Print names and values in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, gap))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(name, visible(value))
    show(grid)


def print_table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table whose first column is text and the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left")
    for row in rows:
        table.add_row(*map(visible, row))
    show(table)


def print_list(title: str, items: Iterable[str]) -> None:
    """Print a title and one bullet an item."""
    print_paragraph(title, "")
    print_facts((("-", item) for item in items), gap=1)


def print_paragraph(title: str, text: str) -> None:
    """Print a paragraph with a title, wrapped to the terminal."""
    from rich.text import Text

    show(Text.assemble((title, "bold"), " ", visible(text)))


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Yield a callback that moves a bar on stderr, or None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar

    with ProgressBar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield stages(bar)


def stages(bar: "ProgressBar") -> Progress:
    """Return a progress callback with one line of the display for each stage."""
    tasks: dict[str, TaskID] = {}

    def move(stage: str, done: int, total: int | None) -> None:
        if stage not in tasks:
            tasks[stage] = bar.add_task(_with_options(stage), total=total)
        bar.update(tasks[stage], completed=done, total=total)

    return move
