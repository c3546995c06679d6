"""The commands and the Python in README.md and docs/ run, and print what the pages show.

A page's blocks run in their order, in one empty folder:

- ``console``: a line that begins with ``$ `` is a command, the lines below it what it prints,
  where ``...`` stands for anything; numbers agree to the digits that are promised
  (`printed_numbers`). Where nothing is shown, success is enough. Collections without a seed
  (`RANDOM`) give other numbers each time, so there numbers are not compared. Blocks about setting
  up (`SET_UP`) are not run: they come before this test can exist.
- ``python``: run as it stands; the blocks of a page share their names. Where there are prompts
  (``>>>``) the results are compared, as in a doctest.

Run as a program (`make docs-outputs`), it writes what the commands print now into the pages, or
into those named as arguments, except where the shown text still matches.
"""

import doctest
import os
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from printed_numbers import PromisedDigits

REPOSITORY = Path(__file__).parents[2]
README = REPOSITORY / "README.md"
README_SECONDS = 60.0  # of processors, with loops that are compiled for the first time
PAGES = [
    README,
    *sorted(p for p in (REPOSITORY / "docs").rglob("*.md") if "_build" not in p.parts),
]
SET_UP = ("cd ", "git ", "make", "pip ", "python3 -m venv")
RANDOM = re.compile(r"^shuffledp (run|demo)\b(?!.* --seed )", re.DOTALL)
NUMBER_OR_RULE = re.compile(r"-?\d[\d.,]*|\u2500+")
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of a console block, and the output shown below it."""

    command: str
    shown: str


def steps(block: str) -> list[Step]:
    r"""Split a console block into its commands.

    >>> steps("$ echo a\na\n$ echo \\\n  b\n")
    [Step(command='echo a', shown='a\n'), Step(command='echo \\\n  b', shown='')]
    """
    found = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [Step(command=command, shown=shown) for command, shown in found]


def printed_by(command: str, folder: Path) -> str:
    """Run a command in ``folder`` and return what it prints; fail where it fails."""
    programs = Path(sys.executable).parent
    outcome = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
            "NO_COLOR": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, f"$ {command}\n{outcome.stdout}"
    return outcome.stdout


def matches(step: Step, printed: str) -> bool:
    """Tell whether what a command printed is what the page shows.

    >>> matches(Step(command="shuffledp run a.csv", shown="yes  -0.1%\\n"), "yes 10.1%\\n")
    True
    """
    shown = step.shown
    if RANDOM.search(step.command):
        shown, printed = (NUMBER_OR_RULE.sub("#", text) for text in (shown, printed))
    return not shown or PromisedDigits().check_output(shown, printed, OPTIONS)


def run_console(block: str, folder: Path) -> str:
    """Run a console block; return it with the outputs as they are now."""
    current = ""
    for step in steps(block):
        printed = printed_by(step.command, folder)
        shown = step.shown if matches(step, printed) else printed
        current += f"$ {step.command}\n{shown}"
    return current


def run_python(block: str, names: dict[str, object], where: str) -> None:
    """Run a Python block with the page's ``names``; compare results where it has prompts."""
    if not block.startswith(">>> "):
        exec(compile(block, where, "exec"), names)  # noqa: S102 - our own pages, run on purpose
        return
    examples = doctest.DocTestParser().get_doctest(block, names, where, where, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(PromisedDigits(), optionflags=OPTIONS)
    runner.run(examples, out=report.append, clear_globs=False)
    names.update(examples.globs)
    assert runner.failures == 0, "".join(report)


def run_page(path: Path, folder: Path) -> str:
    """Run every block of a page; return the page with the console outputs as they are now."""
    names: dict[str, object] = {"__name__": "__main__"}

    def run_block(match: re.Match[str]) -> str:
        language, block = match.groups()
        if language == "python":
            line = match.string.count("\n", 0, match.start()) + 2
            run_python(block, names, f"{path.name}, line {line}")
        elif not any(step.command.startswith(SET_UP) for step in steps(block)):
            block = run_console(block, folder)
        return f"```{language}\n{block}```"

    return BLOCK.sub(run_block, path.read_text(encoding="utf-8"))


def processor_seconds() -> float:
    """Return the time that this process and its children have taken of processors."""
    taken = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in taken)


@pytest.mark.slow
def test_the_readme_takes_seconds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begun = processor_seconds()
    run_page(README, tmp_path)
    assert processor_seconds() - begun < README_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_page(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(path, tmp_path) == path.read_text(encoding="utf-8")


def test_a_stale_output_a_failing_command_and_a_wrong_result_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo new\nold\n```\n", encoding="utf-8")
    assert run_page(page, tmp_path) == "```console\n$ echo new\nnew\n```\n"
    page.write_text("```console\n$ false\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="false"):
        run_page(page, tmp_path)
    page.write_text("```python\nx = 1\n```\n```python\n>>> x\n2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="Expected"):
        run_page(page, tmp_path)


if __name__ == "__main__":
    for page_path in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            page_path.write_text(run_page(page_path, Path(scratch)), encoding="utf-8")
            os.chdir(REPOSITORY)
