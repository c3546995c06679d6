"""The survey page: what it asks, promises and refuses, and what it may load."""

import asyncio
import gzip
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import httpx
import pytest

import shuffledp as sdp
from deploy.make_vectors import make_task
from deploy.roles import BARE, HIDDEN, OWN, SMALL
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.web.survey import Survey, question_facts, survey_app, texts

HOSTILE = "</label><script>alert(1)</script>\" onclick='alert(2)'"


def task_of(question=None, randomizer="k-rr", epsilon0=1.0986, **changes):
    question = question or sdp.Categories(["yes", "no"])
    asked = sdp.deploy.AskedTerms.of(question, randomizer, epsilon0, "Have you?")
    return make_task(**SMALL | {"asked": asked} | changes)


def got(app, path="/", **headers):
    """Return the answer to a request of an application."""

    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def placeholders(text):
    return sorted(re.findall(r"\{\w+\}", text))


def test_every_language_has_every_text_with_the_same_numbers():
    english = texts()["en"]
    assert sorted(texts()) == ["ar", "de", "en", "es", "fr"]
    for words in texts().values():
        assert words.keys() == english.keys()
        assert words["errors"].keys() == english["errors"].keys()
        for name in english.keys() - {"errors"}:
            assert placeholders(words[name]) == placeholders(english[name]), (
                words["language"],
                name,
            )


@pytest.mark.parametrize(
    ("path", "accepted", "language"),
    [
        ("/", "", "en"),
        ("/", "fr-CH, de;q=0.9", "fr"),
        ("/", "nl, ES;q=0.8, de;q=0.3", "es"),
        ("/?lang=ar", "fr", "ar"),
        ("/?lang=xx", "de", "de"),
    ],
)
def test_the_page_is_in_the_language_that_is_asked_for(path, accepted, language):
    found = got(survey_app(Survey(tasks=(task_of(),))), path, **{"accept-language": accepted})
    direction = "rtl" if language == "ar" else "ltr"
    assert f'<html lang="{language}" dir="{direction}">' in found.text


def test_labels_are_texts_and_nothing_runs_but_files_of_the_package():
    task = task_of(sdp.Categories(["yes", HOSTILE]), info=f"a survey {HOSTILE}")
    found = got(survey_app(Survey(tasks=(task,), owner=HOSTILE)))
    elements = Elements()
    elements.feed(found.text)
    names = {name for _, attributes in elements.found for name in attributes}
    assert [each for each in names if each.startswith("on") or each == "style"] == []
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "module", "src": "static/survey.js"}]
    values = [each.get("value") for tag, each in elements.found if tag == "input"]
    assert values[:2] == ["yes", task.asked.question.labels[1]]
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "connect-src 'self' https://analyzer.example https://shuffler.example;" in policy
    assert "unsafe" not in policy
    assert "form-action 'none'" in policy
    assert "set-cookie" not in found.headers


def test_promises_are_of_all_questions_together():
    many = {"min_batch": 10_000, "delta": "1e-8"}
    one = Survey(tasks=(task_of(epsilon="0.9", **many),)).promises()
    assert (one["local_odds"], one["local_guess"]) == ("3.00", "75.0%")
    assert (one["odds"], one["exception"]) == ("2.46", "1/100,000,000")
    tasks = tuple(task_of(epsilon=each, **many) for each in ("0.9", "1"))
    both = Survey(tasks=tasks).promises()
    assert (both["local_odds"], both["local_guess"]) == ("9.00", "90.0%")
    assert (both["odds"], both["exception"]) == ("6.69", "1/50,000,000")
    least = Survey(tasks=(task_of(epsilon="2", **many),)).promises()
    assert least["odds"] == "3.00"  # no more than epsilon0
    page = got(survey_app(Survey(tasks=tasks))).text
    assert "by a factor of at most 6.69" in page
    assert "for all 2 questions together" in page


def test_one_report_is_not_said_to_be_mixed_alone():
    pages = [
        got(survey_app(Survey(tasks=(make_task(**each),)))).text
        for each in (HIDDEN, HIDDEN | {"min_batch": 30})
    ]
    assert "The shuffler mixes reports." in pages[0]
    assert "at least 1 reports" not in pages[0]
    assert "The shuffler mixes at least 30 reports." in pages[1]


def test_a_trial_says_on_the_page_what_does_not_hold():
    for is_trial in (True, False):
        page = got(survey_app(Survey(tasks=(task_of(),), is_trial=is_trial))).text
        assert ('<div class="banner alert" role="note">' in page) is is_trial


def test_questions_are_asked_by_their_kind():
    many = sdp.Categories([f"answer {number}" for number in range(13)])
    found = question_facts(task_of(many))
    assert (found["control"], len(found["labels"]), found["is_named"]) == ("select", 13, True)
    found = question_facts(task_of(sdp.Mean(-0.5, 80), "duchi"))
    assert (found["control"], found["low"], found["high"]) == ("number", "-0.5", "80")
    assert not found["is_named"]
    sets = sdp.AnswerSets(domain=("bike", "bus", "car"), max_answers=2)
    found = question_facts(task_of(sets, "sampled:k-rr"))
    assert (found["control"], found["most"]) == ("checkbox", 2)
    assert found["url"].startswith("https://shuffler.example/tasks/")


def test_what_no_page_can_ask_is_refused():
    task = task_of()
    vector = sdp.VectorMean(["a", "b"], norm_bound=1.0)
    bins = sdp.Distribution(bins=4, limits=(0, 1))
    zero = sdp.Categories(["yes", "n\0"])  # which HTML replaces: it would be no answer
    for tasks, message in (
        ((), "tasks has none, or one twice"),
        ((task, task), "tasks has none, or one twice"),
        ((make_task(**BARE),), "sends answers without noise from devices"),
        ((make_task(**OWN),), "sends dummies from devices"),
        ((task_of(vector, "privunit", 2.0),), "use the device client"),
        ((task_of(zero),), r"has the answer 'n\\x00', and no page"),
        ((task_of(bins, "sampled-levels-1"),), "asks for distribution"),  # no browser draws it
    ):
        with pytest.raises(ParameterError, match=message):
            Survey(tasks=tasks)


def test_the_page_has_less_than_60_kilobytes_as_it_travels():
    app = survey_app(Survey(tasks=(task_of(), task_of(delta="2e-8"), task_of(delta="3e-8"))))
    page = got(app, "/?lang=ar")
    assert page.headers["content-encoding"] == "gzip"
    folder = files("shuffledp.deploy.web")
    loaded = ("static/pages.css", "static/survey.js", "client/shuffledp.js")
    parts = [page.content, *((folder / name).read_bytes() for name in loaded)]
    parts.append((files("shuffledp.report") / "templates/report.css").read_bytes())
    assert sum(len(gzip.compress(each)) for each in parts) < 60_000


def test_only_files_of_the_page_are_served():
    app = survey_app(Survey(tasks=(task_of(),)))
    assert got(app, "/static/pages.css").headers["content-type"].startswith("text/css")
    for path in ("/static/texts.json", "/static/..%2fpages.py", "/other"):
        assert got(app, path).status_code == 404
    assert json.loads(got(app, "/static/x").text)["error"] == "there is no file 'x'"


@pytest.mark.parametrize("changes", [{"title": "\udce4"}, {"owner": "\udce4"}])
def test_a_text_that_cannot_be_written_is_refused(changes):
    with pytest.raises(DataError, match="title or owner holds bytes that are no text"):
        Survey(tasks=(task_of(),), **changes)
