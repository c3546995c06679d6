"""The planner in headless Chromium: a slider that plans anew, readable at any size."""

import pytest
from playwright.sync_api import expect

from end_to_end.test_console_in_browser import SIZES
from end_to_end.visits import serving, violations, visiting
from shuffledp.deploy.web.planner import planner_app

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serving(planner_app(tmp_path_factory.mktemp("planner"))) as found:
        yield found


@pytest.fixture
def visit(browser):
    with visiting(browser) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/?people=0"])
def test_it_fits_is_silent_and_can_be_read_aloud(visit, url, path):
    for width, scheme in SIZES:
        page = visit(width, scheme)
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (violations(page), page.complaints) == ([], [])


@pytest.mark.slow
def test_the_slider_plans_anew_and_keeps_the_form(visit, url):
    page = visit()
    page.goto(url + "/")
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
    expect(page.locator("#results")).to_contain_text("with 2,000 honest people")
    assert "people=2000" in page.url
    assert page.evaluate("window.same")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#results")).to_contain_text("with 2,000 honest people")
    expect(slider).to_have_value("1")
    assert page.complaints == []
    with page.expect_download() as found:
        page.get_by_text("download plan.json").click()
    assert found.value.suggested_filename == "plan.json"


def test_the_form_makes_a_task_and_says_why_not(visit, url):
    page = visit()
    page.goto(url + "/?people=1000&epsilon=1")
    page.locator("input[name=folder]").fill("task")
    page.get_by_role("button", name="Make the task").click()
    expect(page.get_by_role("status")).to_contain_text("The folder task holds the task")
    assert violations(page) == []
    page.locator("input[name=folder]").fill("task")
    page.get_by_role("button", name="Make the task").click()
    expect(page.get_by_role("alert")).to_contain_text("task exists")
    assert page.complaints == []
