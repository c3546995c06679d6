"""How results look: self-contained HTML pages, notebook fragments, lines in a terminal.

The module itself is the `shuffledp.collection.results.Renderer` that ``shuffledp/__init__.py``
registers. Names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from shuffledp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from shuffledp.report.notebook import notebook_html, plan_html, plan_text, terminal_text
    from shuffledp.report.pages import page_html, write_report
    from shuffledp.report.shuffles import group_rows, network_rows, shuffle_rows, walk_rows
    from shuffledp.report.statement import Statement, privacy_statement

__all__ = [
    "Statement",
    "group_rows",
    "network_rows",
    "notebook_html",
    "page_html",
    "plan_html",
    "plan_text",
    "privacy_statement",
    "shuffle_rows",
    "terminal_text",
    "walk_rows",
    "write_report",
]

__getattr__ = lazy_names(
    __name__,
    {
        "report.notebook": ("notebook_html", "plan_html", "plan_text", "terminal_text"),
        "report.pages": ("page_html", "write_report"),
        "report.shuffles": ("group_rows", "network_rows", "shuffle_rows", "walk_rows"),
        "report.statement": ("Statement", "privacy_statement"),
    },
)
