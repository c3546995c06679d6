"""The surveys of the demo are what their sources say they are."""

import sys

import pytest

from shuffledp.collection.source.surveys import SURVEY_NAMES, load_survey
from shuffledp.core.errors import DataError, ParameterError


@pytest.mark.parametrize(("name", "num_users"), [("fair", 6366), ("anes96", 944)])
def test_every_answer_is_in_the_domain(name, num_users):
    survey = load_survey(name)
    assert len(survey.answers) == num_users
    assert set(survey.answers) == set(survey.domain)
    assert sum(survey.true_frequencies) == pytest.approx(1.0)


def test_one_woman_in_three_had_an_affair():
    # 2,053 of 6,366: the share that textbooks quote for this data set.
    survey = load_survey("fair")
    assert survey.answers.count("yes") == 2053
    assert survey.true_frequencies[0] == 2053 / 6366


def test_party_identification_counts():
    survey = load_survey("anes96")
    assert [survey.answers.count(party) for party in survey.domain] == [
        200, 180, 108, 37, 94, 150, 175,
    ]  # fmt: skip


def test_names():
    assert SURVEY_NAMES == ("fair", "anes96")
    with pytest.raises(ParameterError, match="'gallup' is not one of fair, anes96"):
        load_survey("gallup")


def test_without_statsmodels_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(DataError, match=r"pip install 'shuffledp\[datasets\]'"):
        load_survey("fair")
