"""All pages: the modules that know how to make one of something."""

from shuffledp.report import bounds, monitor_page, plan, run_page
from shuffledp.report.page import page_html, write_report

__all__ = ["bounds", "monitor_page", "page_html", "plan", "run_page", "write_report"]
