"""The survey page in headless Chromium: asked, answered, refused, with a client that is ours."""

import json

import pytest
from playwright.sync_api import expect

import shuffledp as sdp
from deploy.web.test_survey import HOSTILE, task_of
from end_to_end.visits import serving, violations, visiting
from shuffledp.deploy.web.survey import Survey, survey_app, texts

pytestmark = pytest.mark.browser

SIZES = ((320, "light", "ar"), (320, "dark", "de"), (768, "light", "fr"), (1280, "dark", "en"))
ID = "ab" * 16

# Notes what it is asked for; `plan` decides what becomes of a report.
CLIENT = """
const plan = {plan};
window.asked = [];
export async function kept() {{ return plan.kept ?? null; }}
export async function report(url, value, {{ onState, code }}) {{
    window.code = code;
    window.asked.push(value === undefined ? "kept" : value);
    onState("checked");
    if (plan.code && !plan.after) throw Object.assign(new Error("why"), {{ code: plan.code }});
    onState("kept");
    if (plan.code) throw Object.assign(new Error("why"), {{ code: plan.code }});
    return {{ id: "{id}", randomized: "01", answer: plan.answer ?? "accepted" }};
}}
"""


@pytest.fixture(scope="module")
def url():
    tasks = (
        task_of(sdp.Categories(["yes", "no", HOSTILE])),
        task_of(sdp.Mean(0, 80), "duchi"),
        task_of(sdp.Categories([f"answer {number}" for number in range(20)])),
        task_of(sdp.AnswerSets(domain=("bike", "bus", "car"), max_answers=2), "sampled:k-rr"),
    )
    with serving(survey_app(Survey(tasks=tasks, is_trial=True, owner=HOSTILE))) as found:
        yield found


@pytest.fixture
def visit(browser, url):
    with visiting(browser) as opened:

        def visited(*, language="en", width=1280, scheme="light", **plan):
            page = opened(width, scheme)
            script = CLIENT.format(plan=json.dumps(plan), id=ID)
            page.route(
                "**/shuffledp.js",
                lambda route: route.fulfill(body=script, content_type="text/javascript"),
            )
            page.goto(f"{url}/?lang={language}")
            expect(page.locator("button")).to_be_enabled()
            return page

        yield visited


def answer(page):
    """Answer all four questions, and take part."""
    page.get_by_label("no", exact=True).check()
    page.get_by_label("A number from 0 to 80").fill("38.5")
    page.locator("select").select_option("answer 7")
    for label in ("bike", "car"):
        page.get_by_label(label).check()
    page.locator("#consent").check()


@pytest.mark.parametrize(("width", "scheme", "language"), SIZES)
def test_it_fits_says_nothing_to_the_console_and_loads_its_own_files_only(
    visit, url, width, scheme, language
):
    page = visit(width=width, scheme=scheme, language=language)
    assert page.complaints == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    names = ("report.css", "pages.css", "survey.js", "shuffledp.js")
    assert sorted(page.requests)[1:] == sorted(("GET", f"{url}/static/{name}") for name in names)
    assert page.requests[0] == ("GET", f"{url}/?lang={language}")
    assert page.context.cookies() == []


@pytest.mark.parametrize(
    "language",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (each not in ("ar", "en")))
        for each in sorted(texts())
    ],
)
def test_axe_finds_no_violation(visit, language):
    for scheme in ("light", "dark"):
        page = visit(language=language, scheme=scheme)
        page.locator("button").click()  # complaints are shown, too
        assert violations(page) == []


def test_answers_are_handed_to_the_client_and_taken_off_the_page(visit):
    page = visit()
    answer(page)
    page.locator("button").click()
    expect(page.locator("#status")).to_have_text("Thank you. Your reports have arrived.")
    assert page.evaluate("window.asked") == ["no", "38.5", "answer 7", ["bike", "car"]]
    receipts = page.locator(".receipt").all_text_contents()
    assert receipts[0] == f"Your altered report was \u2068no\u2069, id {ID}."
    assert receipts[1] == f"Your altered report was 01, id {ID}."
    assert receipts[2] == f"Your altered report was \u2068answer 1\u2069, id {ID}."
    assert page.locator("fieldset :checked:not(option)").count() == 0
    assert page.locator("input[type=number]").input_value() == ""
    assert page.locator("button").is_disabled()
    assert page.evaluate("window.code") is None


def test_the_browser_keeps_no_answer_in_its_history(visit, url):
    page = visit()
    answer(page)
    page.goto(f"{url}/?lang=fr")
    page.go_back()
    expect(page.locator("button")).to_be_enabled()
    assert page.locator("fieldset :checked:not(option)").count() == 0
    assert page.locator("input[type=number]").input_value() == ""
    assert page.locator("select").input_value() == ""


def test_a_code_is_taken_from_the_end_of_the_address(visit, url):
    page = visit()
    page.goto(f"{url}/?lang=fr#code=abc-def")
    answer_in_french(page)
    expect(page.locator("#status")).to_have_text(texts()["fr"]["done"])
    assert page.evaluate("window.code") == "abc-def"
    assert "abc-def" not in "".join(each for _, each in page.requests if "#" not in each)


def test_a_code_stays_with_the_page_in_another_language_and_may_come_later(visit, url):
    page = visit()
    page.goto(f"{url}/?lang=en#code=abc-def")
    page.evaluate("location.hash = '#code=ghi-jkl'")
    page.locator("nav a[lang=fr]").click()
    expect(page.locator("html[lang=fr]")).to_be_attached()
    assert page.evaluate("location.hash") == "#code=ghi-jkl"
    page.evaluate("location.hash = '#code=mno-pqr'")
    answer_in_french(page)
    expect(page.locator("#status")).to_have_text(texts()["fr"]["done"])
    assert page.evaluate("window.code") == "mno-pqr"


def test_the_keyboard_is_enough(visit):
    page = visit()
    page.locator("input[type=radio]").first.focus()
    page.keyboard.press("ArrowDown")
    for keys in ("Tab", "12", "Tab", "a", "Tab", "Space", "Tab", "Tab", "Tab", "Space", "Tab"):
        page.keyboard.type(keys) if keys.isalnum() and keys not in ("Tab", "Space") else (
            page.keyboard.press(keys)
        )
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("Thank you. Your reports have arrived.")
    assert page.evaluate("window.asked") == ["no", "12", "answer 0", ["bike"]]


def test_nothing_is_sent_before_all_is_answered_and_agreed(visit):
    page = visit()
    page.locator("button").click()
    errors = page.locator(".error")
    assert errors.all_text_contents() == ["Please answer this question."] * 3 + [""]
    answer(page)
    for number in ("81", "-1", "1e9"):
        page.locator("input[type=number]").fill(number)
        page.locator("button").click()
        assert errors.nth(1).text_content() == texts()["en"]["errors"]["value"]
    page.locator("input[type=number]").fill("80")
    page.get_by_label("bus").check()  # a third of at most two
    page.locator("button").click()
    assert errors.nth(3).text_content() == texts()["en"]["errors"]["value"]
    page.get_by_label("bus").uncheck()
    page.locator("#consent").uncheck()
    page.locator("button").click()
    expect(page.locator("#status")).to_have_text("Please say that you take part.")
    assert page.evaluate("window.asked") == []


@pytest.mark.parametrize("code", sorted(texts()["en"]["errors"].keys() - {"unreachable", "late"}))
def test_what_goes_wrong_is_said_in_the_language_of_the_page(visit, code):
    page = visit(language="fr", code=code, after=code == "offline")
    answer_in_french(page)
    words = texts()["fr"]
    expect(page.locator(".error").first).to_contain_text(words["errors"][code])
    expect(page.locator("#status")).to_have_text(words["some"])
    expect(page.locator("button")).to_have_text(words["again"])


def answer_in_french(page):
    page.locator("input[type=radio]").first.check()
    page.locator("input[type=number]").fill("1")
    page.locator("select").select_option("answer 7")
    page.locator("#consent").check()
    page.locator("button").click()


def test_a_lost_connection_sends_the_kept_report_again_and_no_answer(visit):
    page = visit(language="fr", code="offline", after=True)
    answer_in_french(page)
    expect(page.locator("button")).to_be_enabled()
    page.locator("button").click()
    expect(page.locator("button")).to_be_enabled()
    assert page.evaluate("window.asked")[4:] == ["kept"] * 4


@pytest.mark.parametrize(
    ("plan", "name"), [({"code": "unreachable"}, "unreachable"), ({"answer": "late"}, "late")]
)
def test_no_connection_before_anything_is_kept_and_a_late_report(visit, plan, name):
    page = visit(language="fr", **plan)
    answer_in_french(page)
    expect(page.locator(".error").first).to_have_text(texts()["fr"]["errors"][name])


def test_a_browser_that_has_answered_says_so_and_asks_nothing(visit):
    page = visit(kept={"id": ID, "randomized": "00", "answer": "accepted"})
    expect(page.locator("#answered")).to_be_visible()
    assert page.locator("fieldset :enabled:not(option)").count() == 0
    assert page.locator(".receipt").count() == 4
    page.locator("#consent").check()
    page.locator("button").click()
    expect(page.locator("#status")).to_have_text("Thank you. Your reports have arrived.")
    assert page.evaluate("window.asked") == ["kept"] * 4
