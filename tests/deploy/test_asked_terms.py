"""What a collection asks, as JSON, and its reports as bytes; for every question and randomizer."""

import json

import numpy as np
import pytest

from shuffledp import (
    AnswerSets,
    Categories,
    Columns,
    Distribution,
    Mean,
    VectorMean,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.deploy.asked_terms import AskedTerms

QUESTIONS = [
    (Categories(domain=("a", "b", "c")), np.array([0, 2, 1, 1])),
    (Mean(low=0.0, high=10.0, name="age"), np.array([0.0, 10.0, 2.5, 3.0])),
    (Distribution(bins=20, limits=(0, 20), quantiles=(0.5,)), np.array([0, 19, 4, 7])),
    (
        VectorMean(names=("x", "y"), norm_bound=1.0),
        np.array([[0.0, 1.0], [0.5, 0.5], [0.0, 0.0], [-1.0, 0.0]]),
    ),
    (
        AnswerSets(domain=("a", "b", "c", "d"), max_answers=2),
        np.array([[0, 1], [-1, -1], [2, -1], [3, 0]]),
    ),
    (
        Columns({"vote": ("b", "a"), "age": ("x", "y", "z")}, pairs=[("age", "vote")]),
        np.array([[0], [5], [2], [3]]),
    ),
]
CASES = [
    (question, values, name) for question, values in QUESTIONS for name in question.candidates()
]


@pytest.mark.parametrize(("question", "values", "name"), CASES)
def test_terms_and_reports_come_back_as_they_were(question, values, name):
    asked = AskedTerms.of(question, name, 1.5)
    again = AskedTerms.from_json_dict(json.loads(json.dumps(asked.to_json_dict())))
    assert again.question == question
    assert again.randomizer.fingerprint == asked.randomizer.fingerprint
    reports = asked.randomizer.randomize(values, Entropy.from_seed(1))
    encoded = asked.codec.encode(reports)
    assert {len(each) for each in encoded} == {asked.randomizer.num_report_bytes}
    back = again.codec.decode(encoded)
    assert back.data.dtype == reports.data.dtype
    assert np.array_equal(back.data, reports.data)
    assert again.codec.decode_valid(encoded)[1] == 0


@pytest.fixture
def asked():
    return AskedTerms.of(Categories(domain=("a", "b", "c")), "k-rr", 1.0)


def test_what_is_no_report_is_left_out_and_counted(asked):
    reports, num_invalid = asked.codec.decode_valid([b"\0", b"\3", b"", b"\2", b"\1\1", b"\xff"])
    assert reports.data.tolist() == [0, 2]
    assert num_invalid == 4


@pytest.mark.parametrize("encoded", [[], [b"\5"], [b"\5", b"\6"]])
def test_no_valid_report_at_all(asked, encoded):
    reports, num_invalid = asked.codec.decode_valid(encoded)
    assert reports.num_reports == 0
    assert num_invalid == len(encoded)


def test_reports_of_another_law_or_size_are_refused(asked):
    with pytest.raises(ParameterError, match="fingerprint"):
        asked.codec.encode(Reports(data=np.zeros(2, dtype=np.uint8), fingerprint="other"))
    with pytest.raises(ParameterError, match="dtype"):
        data = np.zeros(2, dtype=np.int64)
        asked.codec.encode(Reports(data=data, fingerprint=asked.randomizer.fingerprint))
    with pytest.raises(ParameterError, match="a report of 2 bytes"):
        asked.codec.decode([b"\0", b"\0\0"])


@pytest.mark.parametrize(
    "change",
    [
        {"question": {"kind": "riddle"}},
        {"question": None},
        {"labels": ["a"]},
        {"labels": 3},
        {"randomizer": "k-r"},
        {"epsilon0": "x"},
        {"epsilon0": 0.0},
        {"fingerprint": "another"},
        {"fingerprint": None},
    ],
)
def test_terms_that_ask_something_else_are_refused(asked, change):
    with pytest.raises(DataError, match="terms"):
        AskedTerms.from_json_dict({**asked.to_json_dict(), **change})


@pytest.mark.parametrize("label", ["e\u0301", "a\xa0b", " a", "a\t", "a\u200b", 1])
@pytest.mark.parametrize(
    "question",
    [
        Categories(domain=("a", "b", "c")),
        AnswerSets(domain=("a", "b", "c"), max_answers=2),
    ],
)
def test_labels_that_no_text_becomes_are_refused(question, label):
    written = AskedTerms.of(question, next(iter(question.candidates())), 1.0).to_json_dict()
    with pytest.raises(DataError, match=r"have the label .*, and text becomes .* NFC") as caught:
        AskedTerms.from_json_dict({**written, "labels": ["x", "y", label]})
    assert ascii(label) in str(caught.value)


@pytest.mark.parametrize("written", [None, [], "text", {}, {"question": {}}])
def test_what_is_no_question_is_refused(written):
    with pytest.raises(DataError, match="no question that is known"):
        AskedTerms.from_json_dict(written)


def test_a_text_that_cannot_be_written_is_refused():
    question, text = Categories(domain=("a", "b")), "Gef\udce4llt es?"
    with pytest.raises(DataError, match="text of the question holds bytes that are no text"):
        AskedTerms.of(question, "k-rr", 1.0, text)
    written = AskedTerms.of(question, "k-rr", 1.0).to_json_dict() | {"text": text}
    with pytest.raises(DataError, match="ask no question that is known here: text of the"):
        AskedTerms.from_json_dict(written)
