"""Pages of charts and tables, of plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shuffledp.report.drawing import Figure
from shuffledp.report.page import page_html, render_page


class Section(NamedTuple):
    """A table under its heading, with a chart above it if there is one."""

    name: str
    heading: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    figure: Figure | None = None
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPage:
    """A page of charts and tables, as `page_html` takes it."""

    title: str
    lead: str
    command: str
    sections: tuple[Section, ...]
    key_figures: tuple[tuple[str, ...], ...] = ()


@page_html.register
def _(subject: ChartPage) -> str:
    return render_page("charts.html", page=subject, title=subject.title, lead=subject.lead)
