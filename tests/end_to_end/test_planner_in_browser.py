"""The planner in headless Chromium: a slider that plans anew, readable at any size."""

import threading

import pytest
from playwright.sync_api import expect

from deploy.web.test_client import missing
from end_to_end.test_console_in_browser import SIZES
from end_to_end.test_survey_in_browser import AXE
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.web.planner import planner_app

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    listening = http.listen("127.0.0.1", 0)
    server = http.make_server(planner_app())
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield http.url_of(listening)
    server.should_exit = True
    thread.join()


@pytest.fixture
def visit(browser):
    contexts = []

    def opened(address, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(0.0)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("path", ["/", "/?people=0"])
def test_it_fits_is_silent_and_can_be_read_aloud(visit, url, path):
    if not AXE.exists():
        missing("axe-core")
    for width, scheme in SIZES:
        page = visit(url + path, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run().then((found) => found.violations.map((each) => each.id))")
        assert (found, page.complaints) == ([], [])


def test_the_slider_plans_anew_and_keeps_the_form(visit, url):
    page = visit(url + "/")
    page.evaluate("window.same = true")
    slider = page.locator("#slider")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("input[name=epsilon]")).to_have_value("10")
    expect(page.locator("#results")).to_contain_text("with 10,000 honest people")
    expect(page.locator(".key-figures")).not_to_contain_text("0.5000")
    page.locator("input[name=people]").fill("none")
    expect(page.locator("#results")).to_contain_text("people = 'none' is no number")
    page.locator("input[name=people]").fill("2000")
    page.locator("button").click()
    expect(page.locator("#results")).to_contain_text("with 2,000 honest people")
    assert "people=2000" in page.url
    assert page.evaluate("window.same")
    assert page.complaints == []
    with page.expect_download() as found:
        page.get_by_text("Download plan.json").click()
    assert found.value.suggested_filename == "plan.json"
