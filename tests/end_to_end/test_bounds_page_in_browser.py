"""Pages of curves in headless Chromium: drawn, silent, offline, and fit for a phone."""

import pytest

from report.test_charts import curve
from shuffledp.accounting.compare import Over, Scenario, bound_curves
from shuffledp.report import write_report
from shuffledp.report.bounds import bound_lines
from shuffledp.report.charts import network_page

pytestmark = pytest.mark.browser

SIZES = {"desktop": (1280, 800), "phone": (360, 640)}


@pytest.fixture(scope="module")
def curves():
    return bound_curves(Scenario(epsilon0=1.0, num_users=10_000, delta=1e-6), Over.NUM_USERS)


@pytest.fixture(scope="module")
def address(curves, tmp_path_factory):
    return write_report(curves, tmp_path_factory.mktemp("bounds") / "bounds.html").as_uri()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_drawn_without_network_complaint_or_sideways_scrolling(
    browser, address, curves, size, scheme
):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(0.0)
    page, requests, complaints = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    assert page.locator("#chart-bounds > svg:visible").count() == 1
    page.locator("summary").click()
    page.wait_for_load_state("networkidle")
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert page.locator("#chart-bounds .wide .trace").count() == len(bound_lines(curves))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


@pytest.mark.parametrize("size", SIZES)
def test_so_is_a_page_of_nothing_but_charts(browser, tmp_path, size):
    width, height = SIZES[size]
    path = write_report(network_page([curve()]), tmp_path / "curves.html")
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(0.0)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    for chart in page.locator(".chart").all():
        assert chart.locator(":scope > svg:visible").count() == 1
    for summary in page.locator("summary").all():
        summary.click()
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
