"""The first printed page of a report is a summary that is complete by itself."""

import re
import unicodedata
import zlib
from dataclasses import replace

import pytest

import shuffledp as sdp
from shuffledp.collection import About

pytestmark = pytest.mark.browser

ABOUT = About(
    title="Ticket survey",
    question="Did you ride without a ticket?",
    organisation="City statistics",
    contact="privacy at example.org",
    date="2026-11-23",
)
NEXT_PAGE = "Estimates Bars are estimated frequencies"


def objects_of(pdf):
    """Return the objects of a PDF by number, streams unpacked."""
    found = {}
    for number, body in re.findall(rb"(\d+) 0 obj(.*?)endobj", pdf, re.DOTALL):
        head, _, stream = body.partition(b"stream")
        if stream:
            stream = stream.lstrip(b"\r\n")[: int(re.search(rb"/Length (\d+)", head)[1])]
            stream = zlib.decompress(stream) if b"FlateDecode" in head else stream
        found[int(number)] = (head, stream)
    return found


def letters_of(objects):
    """Return the text of each glyph by font, from the tables that let readers copy text."""
    letters = {}
    for number, (head, _) in objects.items():
        if not (table := re.search(rb"/ToUnicode (\d+) 0 R", head)):
            continue
        text = objects[int(table[1])][1].decode("ascii")
        glyphs = letters.setdefault(number, {})
        for block in re.findall(r"beginbfchar(.*?)endbfchar", text, re.DOTALL):
            for glyph, target in re.findall(r"<(\w+)> <(\w+)>", block):
                glyphs[int(glyph, 16)] = bytes.fromhex(target).decode("utf-16-be")
        for block in re.findall(r"beginbfrange(.*?)endbfrange", text, re.DOTALL):
            for first, last, target in re.findall(r"<(\w+)> <(\w+)> <(\w+)>", block):
                for offset in range(int(last, 16) - int(first, 16) + 1):
                    glyphs[int(first, 16) + offset] = chr(int(target, 16) + offset)
    return letters


def pages_of(pdf):
    """Return the text of each page of a PDF that Chromium made, without spaces and ligatures."""
    objects = objects_of(pdf)
    letters, pages = letters_of(objects), []
    for head, _ in objects.values():
        if not re.search(rb"/Type /Page\b", head):
            continue
        fonts = {
            name: letters[int(number)] for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", head)
        }
        content = objects[int(re.search(rb"/Contents (\d+) 0 R", head)[1])][1]
        text, font = [], {}
        for name, glyphs in re.findall(rb"/(F\d+) \S+ Tf|<([0-9A-Fa-f]+)>", content):
            if name:
                font = fonts[name]
            text += [font.get(int(glyphs[at : at + 4], 16), "") for at in range(0, len(glyphs), 4)]
        pages.append(unicodedata.normalize("NFKC", "".join("".join(text).split())))
    return pages


def printed(browser, path, **paper):
    """Return the pages of a report as they are printed."""
    context = browser.new_context()
    context.set_default_timeout(0.0)
    page = context.new_page()
    page.goto(path.as_uri())
    pages = pages_of(page.pdf(**paper))
    context.close()
    return pages


def holds(page, text):
    return "".join(text.split()) in page


def report_of(domain, folder):
    asked = sdp.plan(sdp.Categories(domain), num_users=5000, epsilon0=2.0, delta=1e-6)
    answers = [domain[i % len(domain)] for i in range(5000)]
    return sdp.run(asked, answers, seed=1), folder / "report.html"


@pytest.mark.parametrize("paper", [{"format": "A4"}, {"format": "Letter"}])
def test_the_first_page_is_complete(browser, tmp_path, paper):
    result, path = report_of(["yes", "no", "refused"], tmp_path)
    first, second, *_ = printed(browser, result.report(path, about=ABOUT), **paper)
    epsilon0 = result.without_shuffler.epsilon0
    for text in (
        *ABOUT.to_json_dict().values(),
        "5,000",
        "k-ary randomized response",
        f"= {epsilon0:.3f}",
        "What the reports reveal.",
        "If the shuffler fails.",
        "Simulation.",
        *("yes", "no", "refused"),
        *(f"{frequency:.2%}" for frequency in result.estimates.frequency),
    ):
        assert holds(first, text), text
    assert not holds(first, NEXT_PAGE)
    assert second.startswith("".join(NEXT_PAGE.split()))


def test_long_lists_and_labels_leave_it_one_page(browser, tmp_path):
    domain = [f"{'a long answer ' * 20}{i}" for i in range(60)]
    result, path = report_of(domain, tmp_path)
    warned = replace(result, warnings=("A warning of some length, as those of small crowds. " * 5,))
    first, second, *_ = printed(browser, warned.report(path, about=ABOUT), format="Letter")
    assert holds(first, "A warning of some length")
    assert holds(first, "and 52 more: see the table of all estimates.")
    assert holds(first, "If the shuffler fails.")
    assert not holds(first, NEXT_PAGE)
    assert holds(second, NEXT_PAGE)


def test_the_summary_is_for_paper_alone(browser, tmp_path):
    result, path = report_of(["yes", "no"], tmp_path)
    context = browser.new_context()
    context.set_default_timeout(0.0)
    page = context.new_page()
    page.goto(result.report(path).as_uri())
    assert not page.locator("#summary").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#summary").is_visible()
    context.close()
