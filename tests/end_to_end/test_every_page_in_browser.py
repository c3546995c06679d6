"""Every kind of page at the widths of a phone, a tablet and a desk: nothing is cut off."""

import numpy as np
import pytest

import shuffledp as sdp
from report.monitor_results import build_result
from shuffledp.report import write_report

pytestmark = pytest.mark.browser

SIZES = ((375, "light"), (768, "dark"), (1280, "light"), (1280, "dark"))
LABELS = ["independent, leans to neither side", *(f"answer {i}" for i in range(40))]


def estimate():
    plan = sdp.plan(sdp.Categories(LABELS), num_users=410, epsilon0=3.0, delta=1e-6)
    codes = np.arange(410) % 41
    return sdp.estimate(plan.randomizer.randomize(codes, sdp.Entropy.from_seed(1)), plan)


PAGES = {
    "estimate": estimate,
    "monitor": lambda: build_result(num_periods=365, is_simulation=True),
}

# Parts of tables that are out of sight on a side without a shade, and anything beyond the page.
CUT_OFF = """() => {
    const found = [];
    if (document.documentElement.scrollWidth > innerWidth) found.push("the page");
    for (const each of document.querySelectorAll("main *")) {
        if (!each.checkVisibility() || each.closest("svg, thead")) continue;
        const style = getComputedStyle(each);
        const shades = style.backgroundAttachment.split(", ").filter((it) => it == "scroll").length;
        const across = each.scrollWidth > each.clientWidth + 1;
        const down = each.scrollHeight > each.clientHeight + 1;
        if (across && style.overflowX != "visible" && shades < 2) found.push(each.className);
        if (down && style.overflowY != "visible" && shades < 3) found.push(each.className);
    }
    return found;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_without_a_sign(browser, tmp_path, name):
    path = write_report(PAGES[name](), tmp_path / "page.html")
    assert path.stat().st_size < 500_000
    for width, scheme in SIZES:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(0.0)
        page = context.new_page()
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
        assert page.evaluate(CUT_OFF) == [], (width, scheme)
        context.close()


def test_what_is_cut_off_is_seen(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        '<main><div class="a" style="overflow-x: auto; width: 9rem"><p style="width: 20rem">x</p>'
        '</div><div class="b" style="overflow-y: auto; height: 1rem"><p>x<p>y</div></main>'
    )
    context = browser.new_context()
    context.set_default_timeout(0.0)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.evaluate(CUT_OFF) == ["a", "b"]
    context.close()
