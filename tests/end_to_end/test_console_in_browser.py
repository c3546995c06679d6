"""The console in headless Chromium: readable at any size, silent, renewed while one looks on."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from deploy.web.test_console_state import TASK, record, state_of
from deploy.web.test_survey import HOSTILE
from end_to_end.visits import serving, violations, visiting
from shuffledp.deploy.web.console import CONSOLE, console_app

pytestmark = pytest.mark.browser

SIZES = ((320, "light"), (320, "dark"), (768, "light"), (1280, "dark"))


class Known:
    """A task whose state a test decides."""

    def __init__(self, state):
        self.known, self.task = state, state.task

    async def state(self):
        return self.known


@pytest.fixture(scope="module")
def served():
    numbers = {"shuffler_waiting_reports": 743.0, "shuffler_short_epochs": 4.0}
    records = {1: record(1, 0.3), 2: record(2, 0.4)}
    records[2]["estimates"][0]["value"] = HOSTILE
    known = Known(state_of(numbers, records=records, problems=(HOSTILE,)))
    with serving(console_app([known])) as url:
        yield known, url + CONSOLE


@pytest.fixture
def visit(browser):
    with visiting(browser) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", f"/{TASK.task_id.hex()}"])
def test_it_fits_is_silent_and_can_be_read_aloud(visit, served, path):
    for width, scheme in SIZES:
        page = visit(width, scheme)
        page.goto(served[1] + path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (violations(page), page.complaints) == ([], [])
        home = served[1].removesuffix(CONSOLE)
        assert all(each.startswith(home) for _, each in page.requests)


@pytest.mark.slow
def test_what_comes_in_is_shown_without_a_reload(visit, served):
    (known, url), page = served, visit()
    page.goto(url)
    expect(page.locator("#tasks")).to_contain_text("743 of 10,000")
    page.evaluate("window.same = true")
    known.known = replace(known.known, numbers={"shuffler_waiting_reports": 744.0})
    expect(page.locator("#tasks")).to_contain_text("744 of 10,000")
    assert page.evaluate("window.same")
