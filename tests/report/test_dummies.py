"""Every page of a run with dummies states three guarantees, and no infinity."""

import json
import math
import re
from functools import cache

import numpy as np
import pytest
import yaml

import shuffledp as sdp
from collection.dummy_plans import SHUFFLERS, USERS, bits_plan, plan_with
from shuffledp.collection.dummies import draw_dummies
from shuffledp.collection.leakage import leakage_of
from shuffledp.collection.output import write_results
from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import Reports
from shuffledp.report.explain import FORMS, read_record
from shuffledp.report.statement import privacy_statement

ANSWERS = ["a"] * 300 + ["b"] * 690 + ["c"] * 10
TOGETHER = "the shuffler and the analyst together would see every answer"
SETTINGS = [(SHUFFLERS, math.inf), (SHUFFLERS, 2.0), (USERS, math.inf), (USERS, 2.0)]
#: An infinity, or what is none, in anything that people read.
NO_NUMBER = re.compile(r"\b(inf|infinity|nan)\b|10\^inf|\u221e", re.IGNORECASE)


@cache
def collected(text, epsilon0):
    """Return the result of a run on a table."""
    return sdp.run(plan_with(text, epsilon0=epsilon0), ANSWERS)


@pytest.fixture(params=SETTINGS, ids=lambda each: f"{each[0]}-{each[1]}")
def result(request):
    return collected(*request.param)


def is_bare(result):
    return math.isinf(result.randomizer.epsilon0)


def words_of(html):
    """Return the text of a page without markup, its mathematics spelt out."""
    text = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text.replace("\u00a0", " ").replace("&nbsp;", " "))


def test_the_terminal_has_three_guarantees(result):
    text = str(result)
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    assert lines["with dummies"].startswith(f"epsilon <= {0:.0f}"[:9])
    shufflers = "any number of users, whatever the others send"
    users = "1,000 honest users, who send dummies"
    asked = shufflers if result.dummies[0].sender == "shuffler" else users
    assert lines["with dummies"].endswith(asked)
    if is_bare(result):
        assert lines["without dummies"].startswith("no finite epsilon")
        assert lines["no shuffler"] == f"no local noise: {TOGETHER}"
    else:
        assert lines["without dummies"].endswith("no dummies added, and 1,000 users honest")
        assert lines["no shuffler"].startswith("epsilon0 = 2.000: odds change by up to 7.39")
    assert lines["true answers"] == "with the holder of the table, who is trusted with all of them"
    assert f"{result.num_dummies:,} dummies" in text
    assert "for each of 1,000 users" in text
    assert not NO_NUMBER.search(text)


def test_the_page_has_three_guarantees(result, tmp_path):
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    words = words_of(page)
    assert "Three guarantees" in words
    assert f"{result.num_dummies:,} dummy reports" in words
    assert (TOGETHER in words) == is_bare(result)
    assert ("not randomized" in words) == is_bare(result)
    assert not NO_NUMBER.search(words)
    assert "1 users" not in words


def test_the_notebook_says_what_dummies_promise(result):
    words = words_of(result._repr_html_())
    assert "The dummies." in words
    assert not NO_NUMBER.search(words)


def test_statements_count_on_nobody_where_the_shuffler_adds_dummies():
    shufflers, users = (privacy_statement(collected(text, 2.0)) for text in (SHUFFLERS, USERS))
    assert dict(shufflers.facts)["Users"] == "any number, whatever the others send"
    assert dict(users.facts)["Users"] == "1,000"
    assert dict(shufflers.facts)["Gap"].endswith(", whatever the others send")
    assert ", whatever the others send; the gap" in dict(shufflers.paragraphs)["How sharp this is."]
    assert "whatever the others send" not in dict(users.facts)["Gap"]
    assert shufflers.headline.endswith("for each of 1,000 users")
    exception = dict(shufflers.paragraphs)["The exception."]
    assert "for anyone at all has a chance below 1 in 1,000" in exception  # 1,000 users times 1e-6
    assert "to be honest" not in dict(shufflers.paragraphs)["What the reports reveal."]


def test_devices_that_send_bare_answers_hold_nothing_back():
    plan = plan_with()
    data = plan.randomizer.randomize(np.repeat([0, 1, 2], [300, 690, 10]), Entropy.from_seed(1))
    dummies = draw_dummies(plan.randomizer, plan.dummies, Entropy.from_seed(2), num_users=1000)
    both = Reports(data=np.concatenate([data.data, dummies]), fingerprint=data.fingerprint)
    found = sdp.estimate(both, plan, num_users=1000)
    assert found.collected_by == "devices"
    assert f"true answers: with each user, without local noise: {TOGETHER}" in str(found)


class TestLeakage:
    def test_the_numbers_are_upper_bounds(self, result):
        found = leakage_of(result)
        assert "upper bounds" in found.notes[-1]
        by_adversary = {each.adversary: each for each in found.accounts}
        plain = sdp.leakage.account_leakage(
            num_users=1000, domain_size=3, truth=result.randomizer.support_probabilities[0]
        )
        uninformed = by_adversary["uninformed"].both
        assert uninformed.upper <= plain.both.upper * (1.0 + 1e-9)
        assert uninformed.lower == pytest.approx(1 / 3)
        # One of three equally likely answers: e / (e + 2) but for delta.
        loss = math.exp(result.guarantee.epsilon_upper)
        permitted = 1e-6 + loss / (loss + 2.0)
        assert by_adversary["strong"].both.upper <= permitted * (1.0 + 1e-9)

    def test_a_strong_adversary_would_know_bare_answers_without_dummies(self):
        (_, strong) = leakage_of(collected(SHUFFLERS, math.inf)).accounts
        assert strong.randomizer.upper == 1.0
        assert strong.both.upper < 0.6

    def test_an_attack_on_bare_answers_stays_below(self):
        """The best guess of who knows all but one answer, enumerated over the dummies' table."""
        law = plan_with().dummies[0]
        table = np.array([float(each) for each in law.table]) / 2.0**64
        before, after = np.append(0.0, table), np.append(table, 0.0)  # one more, and as many
        grids = np.meshgrid(np.arange(table.size + 1), np.arange(table.size + 1), indexing="ij")
        first, second = before[grids[0]] * after[grids[1]], after[grids[0]] * before[grids[1]]
        right = float(np.maximum(first, second).sum()) / 2.0  # between two answers
        plan = plan_with(domain=("a", "b"))
        (_, strong) = leakage_of(sdp.run(plan, ANSWERS[:990])).accounts
        assert right <= strong.both.upper * (1.0 + 1e-12)


class TestExplain:
    @pytest.fixture
    def record(self, result, tmp_path):
        write_results(result, tmp_path)
        return read_record(tmp_path)

    def test_every_form_says_who_adds_dummies(self, record, result):
        for form in FORMS.values():
            text = form(record)
            assert str(result.dummies[0]) in text
            assert not NO_NUMBER.search(text)

    def test_the_notice_says_what_fails_with_the_mixing(self, record, result):
        text = FORMS["notice"](record)
        assert (f"Nothing else protects your answer: {TOGETHER}." in text) == is_bare(result)
        assert ("randomized" in text) != is_bare(result)
        alone = result.dummies[0].sender == "shuffler"
        assert ("however many people take part" in text) == alone

    def test_the_label_and_the_registry(self, record, result):
        label, entry = FORMS["label"](record), yaml.safe_load(FORMS["registry"](record))
        without = "no finite epsilon is proved" if is_bare(result) else "1,000 users are honest"
        assert re.search(rf"\| If no dummies are added \| .*{without} \|", label)
        details = entry["deployment"]["privacy_loss"]["privacy_parameters_details"]
        assert without in details
        assert (TOGETHER in details) == is_bare(result)

    def test_numbers_in_the_file_are_finite(self, result, tmp_path):
        write_results(result, tmp_path)
        text = (tmp_path / "privacy.json").read_text()
        assert "Infinity" not in text
        saved = json.loads(text)
        assert saved["num_dummies"] == result.num_dummies
        assert (saved["epsilon0"] is None) == is_bare(result)


def test_forms_count_the_reports_of_a_user(tmp_path):
    write_results(sdp.run(bits_plan(), np.linspace(0.0, 1.0, 1000)), tmp_path)
    record = read_record(tmp_path)
    assert "| Unit of privacy | one user, who gives 3 reports |" in FORMS["label"](record)
    limited = {**record, "epsilon0": 2.0}
    assert "| Epsilon of a user's reports by themselves | 2.000 |" in FORMS["label"](limited)
    assert "the 3 reports of a user by themselves have epsilon <= 2.000" in (
        FORMS["registry"](limited)
    )
