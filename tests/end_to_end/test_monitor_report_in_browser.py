"""The report of a monitored statistic in headless Chromium: drawn, silent, offline, phone-sized."""

import pytest

from report.monitor_results import build_result
from shuffledp.report import write_report

pytestmark = pytest.mark.browser

HOSTILE = "<img src=http://example.invalid/x onerror=alert(3)>"
DESKTOP, SMALL_PHONE = (1280, 800), (360, 640)
SHAPES = {
    "year": {"num_periods": 365, "is_simulation": True},
    "values": {"num_periods": 200, "num_curves": 9, "labels": [HOSTILE, *"abcdefg", "w" * 300]},
    "single": {"num_periods": 1},
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        name: write_report(build_result(**shape), folder / f"{name}.html")
        for name, shape in SHAPES.items()
    }


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (SMALL_PHONE, "dark")])
@pytest.mark.parametrize("name", SHAPES)
def test_it_opens_without_network_complaint_or_sideways_scrolling(
    browser, pages, name, scheme, size
):
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
    )
    context.set_default_timeout(0.0)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(pages[name].as_uri())
    charts = page.locator(".chart").all()
    assert len(charts) == 1
    for chart in charts:
        assert chart.locator(":scope > svg:visible").count() == 1
    page.wait_for_load_state("networkidle")
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    fills = page.locator("#chart-running .wide .band").count()
    assert fills == (6 if name == "values" else 1)
    assert page.locator("main img, main script").count() == 0
    ticks = page.locator("#chart-running .wide .xtick").all_text_contents()
    assert 1 <= len(ticks) <= 8
    context.close()
