"""The console in headless Chromium: readable at any size, silent, renewed while one looks on."""

import threading
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from deploy.web.test_client import missing
from deploy.web.test_survey import HOSTILE
from deploy.web.test_task_state import TASK, record, state_of
from end_to_end.test_survey_in_browser import AXE
from shuffledp.deploy.servers import http_server as http
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
    listening = http.listen("127.0.0.1", 0)
    server = http.make_server(console_app([known]))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield known, http.url_of(listening) + CONSOLE
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("path", ["", f"/{TASK.task_id.hex()}"])
def test_it_fits_is_silent_and_can_be_read_aloud(browser, served, path):
    if not AXE.exists():
        missing("axe-core")
    for width, scheme in SIZES:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(0.0)
        page, complaints, asked = context.new_page(), [], []
        page.on("console", lambda message, said=complaints: said.append(message.text))
        page.on("dialog", lambda dialog, said=complaints: said.append(dialog.message))
        page.on("pageerror", lambda error, said=complaints: said.append(str(error)))
        page.on("request", lambda request, said=asked: said.append(request.url))
        page.goto(served[1] + path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run().then((found) => found.violations.map((each) => each.id))")
        assert (found, complaints) == ([], [])
        home = served[1].removesuffix(CONSOLE)
        assert all(each.startswith(home) for each in asked)
        context.close()


def test_what_comes_in_is_shown_without_a_reload(browser, served):
    known, url = served
    context = browser.new_context()
    context.set_default_timeout(0.0)
    page = context.new_page()
    page.goto(url)
    expect(page.locator("#tasks")).to_contain_text("743 of 10,000")
    page.evaluate("window.same = true")
    known.known = replace(known.known, numbers={"shuffler_waiting_reports": 744.0})
    expect(page.locator("#tasks")).to_contain_text("744 of 10,000")
    assert page.evaluate("window.same")
    context.close()
