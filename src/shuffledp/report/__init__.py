"""How a result looks: a self-contained HTML report, a notebook fragment, lines in a terminal.

The module itself is the `shuffledp.collection.results.Renderer` that ``shuffledp/__init__.py``
registers.
"""

from os import PathLike
from pathlib import Path

from shuffledp.collection.results import Result
from shuffledp.report.group_sections import group_rows, shuffle_rows
from shuffledp.report.network_sections import network_rows, walk_rows
from shuffledp.report.notebook import notebook_html, terminal_text
from shuffledp.report.page import report_html
from shuffledp.report.plan_view import plan_html, plan_text
from shuffledp.report.statement import Statement, privacy_statement
from shuffledp.report.writing import write_text_atomically

__all__ = [
    "Statement",
    "group_rows",
    "network_rows",
    "notebook_html",
    "plan_html",
    "plan_text",
    "privacy_statement",
    "report_html",
    "shuffle_rows",
    "terminal_text",
    "walk_rows",
    "write_report",
]


def write_report(result: Result, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML report, which opens with no network.

    Parameters
    ----------
    result : Result
        What to report.
    path : str or path-like
        Where to; an existing file is replaced in one step.

    Returns
    -------
    Path
        The file written, about 5 MB.

    Raises
    ------
    OutputError
        If the file cannot be written; then nothing is left behind.
    """
    return write_text_atomically(path, report_html(result))
