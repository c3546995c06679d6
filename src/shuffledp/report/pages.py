"""All pages: the modules that know how to make one of something."""

from shuffledp.report import bounds, monitor, plan
from shuffledp.report import run as run_page
from shuffledp.report.page import page_html, write_report

__all__ = ["bounds", "monitor", "page_html", "plan", "run_page", "write_report"]
