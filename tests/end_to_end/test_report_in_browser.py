"""The report of a real run in headless Chromium: drawn, silent, offline, and fit for a phone."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import shuffledp as sdp
from shuffledp.cli.main import main

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=http://example.invalid/x onerror=alert(3)>",
    "<a href='http://example.invalid'>link</a>",
    "w" * 400,
    "a very " + "long " * 60 + "answer",
    "\u0625\u062c\u0627\u0628\u0629 \u0639\u0631\u0628\u064a\u0629",
    "\u202eright to left\u202c",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u65e5\u672c\u8a9e",
    "$x^2$",
    "2024-01-01",
)
SOFT_INK = {"light": "rgb(89, 99, 110)", "dark": "rgb(163, 173, 184)"}  # --ink-soft of report.css
DESKTOP, PHONE, SMALL_PHONE = (1280, 800), (375, 812), (360, 640)


@dataclass(kw_only=True)
class Visit:
    """An open page with everything that it asked for or complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory) -> Path:
    """A simulated run whose answers try everything."""
    plan = sdp.plan(sdp.Categories(list(HOSTILE)), num_users=5000, epsilon=1.0, delta=1e-6)
    answers = [HOSTILE[i % len(HOSTILE)] for i in range(5000)]
    return sdp.run(plan, answers, seed=1).report(tmp_path_factory.mktemp("report") / "hostile.html")


@pytest.fixture(scope="module")
def long_report(tmp_path_factory) -> Path:
    """A run without a seed over 1,000 answers."""
    domain = [f"answer {i}" for i in range(1000)]
    plan = sdp.plan(sdp.Categories(domain), num_users=20_000, epsilon=1.0, delta=1e-6)
    answers = [domain[min(i % 1500, 999)] for i in range(20_000)]
    return sdp.run(plan, answers).report(tmp_path_factory.mktemp("report") / "long.html")


@pytest.fixture(scope="module")
def means_report(tmp_path_factory) -> Path:
    """A simulated run for the mean of vectors, one name of which tries something."""
    names = ("east", HOSTILE[0], HOSTILE[6])
    plan = sdp.plan(sdp.VectorMean(names, norm_bound=2.0), num_users=5000, epsilon=1.0, delta=1e-6)
    vectors = [[0.6, 0.8, -1.0], [0.0, 0.0, 1.5]] * 2500
    return sdp.run(plan, vectors, seed=1).report(tmp_path_factory.mktemp("report") / "means.html")


@pytest.fixture
def visit(browser):
    contexts = []

    def open_page(path: Path, *, size=DESKTOP, scheme="light") -> Visit:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        context.set_default_timeout(0.0)
        contexts.append(context)
        opened = Visit(page=context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
        opened.page.goto(path.as_uri())
        for chart in opened.page.locator(".chart").all():
            assert chart.locator(":scope > svg:visible").count() == 1
        return opened

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE, SMALL_PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_network_complaint_or_sideways_scrolling(
    visit, hostile_report, size, scheme
):
    opened = visit(hostile_report, size=size, scheme=scheme)
    opened.page.wait_for_load_state("networkidle")
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert opened.requests[0].startswith("file:")
    widths = opened.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, SMALL_PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_so_do_reports_of_means(visit, means_report, size, scheme):
    opened = visit(means_report, size=size, scheme=scheme)
    opened.page.wait_for_load_state("networkidle")
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    widths = opened.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]


def test_means_are_drawn_and_listed_in_their_unit(visit, means_report):
    page = visit(means_report).page
    assert page.locator("#chart-estimates .wide .bar").count() == 3
    assert page.locator("#chart-estimates .wide .whisker").count() == 3
    ticks = page.locator("#chart-estimates .wide .xtick").all_text_contents()
    assert len(ticks) >= 3
    assert not any("%" in tick for tick in ticks)
    assert page.locator(".estimates tbody th").all_text_contents()[1] == HOSTILE[0]
    heads = page.locator(".estimates thead th").all_text_contents()
    assert heads == [
        "Column", "Mean", "Standard error", "95% interval", "Population standard error",
        "95% population interval",
    ]  # fmt: skip
    assert page.locator("main script, main img").count() == 0


def test_the_recorder_would_notice_requests_and_complaints(visit, tmp_path):
    planted = tmp_path / "planted.html"
    planted.write_text(
        '<img src="http://127.0.0.1:9/x.png"><script>throw new Error("planted")</script>'
        '<div style="width: 5000px">wide</div>'
    )
    opened = visit(planted, size=PHONE)
    opened.page.wait_for_load_state("networkidle")
    assert any("planted" in complaint for complaint in opened.complaints)
    assert "http://127.0.0.1:9/x.png" in opened.requests
    assert opened.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_the_page_forbids_itself_what_escaping_should_already_prevent(visit, hostile_report):
    opened = visit(hostile_report)
    opened.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.planted = true";
            document.body.append(script);
            const image = document.createElement("img");
            image.src = "http://127.0.0.1:9/x.png";
            document.body.append(image);
        }"""
    )
    opened.page.wait_for_load_state("networkidle")
    assert opened.page.evaluate("window.planted === undefined")
    assert sum("Content Security Policy" in text for text in opened.complaints) >= 2


def test_hostile_answers_are_shown_as_they_are(visit, hostile_report):
    page = visit(hostile_report).page
    rows = page.locator(".estimates tbody th").all_text_contents()
    assert rows[0] == HOSTILE[0]
    assert rows[4] == HOSTILE[4]
    assert page.locator("main img, main a, main script").count() == 0
    ticks = page.locator("#chart-estimates .wide .ytick").all_text_contents()
    assert len(ticks) == len(HOSTILE)
    assert HOSTILE[0] in ticks[0]
    assert page.locator("#chart-estimates a").count() == 0


def test_charts_hold_a_bar_and_a_whisker_for_each_answer_and_speak(visit, hostile_report):
    page = visit(hostile_report).page
    assert page.locator("#chart-estimates .wide .bar").count() == len(HOSTILE)
    assert page.locator("#chart-estimates .wide .whisker").count() == len(HOSTILE)
    label = page.locator("#chart-estimates").get_attribute("aria-label")
    assert label is not None
    assert "table" in label


def test_charts_follow_the_colour_scheme(visit, hostile_report):
    page = visit(hostile_report).page
    label = page.locator("#chart-estimates .wide .ytick").first
    expect(label).to_have_css("fill", SOFT_INK["light"])
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    expect(label).to_have_css("fill", SOFT_INK["dark"])
    assert page.evaluate(background) != light
    page.emulate_media(color_scheme="light")
    expect(label).to_have_css("fill", SOFT_INK["light"])


def test_on_paper_charts_fit_the_page_in_dark_ink(visit, hostile_report):
    page = visit(hostile_report, size=PHONE, scheme="dark").page
    page.emulate_media(media="print")
    assert page.locator("#chart-estimates > .wide").is_visible()
    label = page.locator("#chart-estimates .wide .ytick").first
    expect(label).to_have_css("fill", SOFT_INK["light"])
    assert page.pdf(format="A4").startswith(b"%PDF")


BROKEN_NUMBERS = """() => {
    const broken = [];
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (parent.closest("pre, code, bdi, svg, title") || !parent.checkVisibility()) continue;
        for (const found of node.data.matchAll(/\\d[\\d.,]*(e-?\\d+)?%?/g)) {
            const range = document.createRange();
            range.setStart(node, found.index);
            range.setEnd(node, found.index + found[0].length);
            const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
            if (lines.size > 1) broken.push(found[0]);
        }
    }
    return broken;
}"""


@pytest.fixture(scope="module")
def network_report(tmp_path_factory) -> Path:
    """A simulated exchange along a graph, the report with the most numbers."""
    folder = tmp_path_factory.mktemp("network")
    edges = "".join(f"{i},{(i + step) % 150}\n" for i in range(150) for step in (1, 2, 7))
    (folder / "friends.csv").write_text("from,to\n" + edges)
    rows = "".join(f"{i},{'yes' if i % 3 else 'no'}\n" for i in range(150))
    (folder / "answers.csv").write_text("who,answer\n" + rows)
    arguments = [
        "run", str(folder / "answers.csv"), "--column", "answer", "--domain", "yes,no",
        "--epsilon0", "1.2345", "--delta", "1e-6", "--shuffler", "network", "--id", "who",
        "--graph", str(folder / "friends.csv"), "--rounds", "20", "--out", str(folder / "results"),
        "--seed", "1",
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:  # what adversaries guess takes long
        patch.setattr("shuffledp.collection.leakage.computed_leakage", lambda _: None)
        assert main(arguments) == 0
    return folder / "results" / "report.html"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["means_report", "long_report", "network_report"])
def test_numbers_never_break_across_lines_on_a_phone(visit, request, name):
    opened = visit(request.getfixturevalue(name), size=PHONE)
    assert opened.page.evaluate(BROKEN_NUMBERS) == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    squeezed = "main, main * { overflow-wrap: anywhere !important; width: 1.2rem; }"
    opened.page.add_style_tag(content=squeezed)  # the check sees numbers that do break
    assert opened.page.evaluate(BROKEN_NUMBERS) != []


def test_a_simulation_shows_its_banner_and_a_real_run_has_none(visit, hostile_report, long_report):
    banner = visit(hostile_report).page.locator(".banner.alert").first
    assert banner.is_visible()
    assert "protects nobody" in banner.inner_text()
    assert visit(long_report).page.locator(".banner.alert").count() == 0


@pytest.mark.slow
def test_of_a_thousand_answers_thirty_are_drawn_and_all_are_listed(visit, long_report):
    opened = visit(long_report, size=SMALL_PHONE)
    page = opened.page
    assert page.locator("#chart-estimates .wide .bar").count() == 30
    assert page.locator(".estimates tbody tr").count() == 1000
    table = page.locator(".table.long")
    assert table.evaluate("t => t.scrollHeight > t.clientHeight")
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL_PHONE[0]
    page.locator("details:has(.estimates) > summary").click()
    assert not table.is_visible()
    assert opened.complaints == []
