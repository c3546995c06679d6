"""The surveys of the demo are what their sources say they are."""

import sys

import pytest

from shuffledp.collection.source.surveys import surveys
from shuffledp.core.errors import MissingPackageError


@pytest.mark.parametrize(("name", "num_users"), [("fair", 6366), ("anes96", 944)])
def test_every_answer_is_in_the_domain(name, num_users):
    survey = {each.name: each for each in surveys()}[name]
    assert len(survey.answers) == num_users
    assert set(survey.answers) == set(survey.domain)


def test_one_woman_in_three_had_an_affair():
    # 2,053 of 6,366: the share that textbooks quote for this data set.
    survey, _ = surveys()
    assert survey.answers.count("yes") == 2053


def test_party_identification_counts():
    _, survey = surveys()
    assert [survey.answers.count(party) for party in survey.domain] == [
        200, 180, 108, 37, 94, 150, 175,
    ]  # fmt: skip


def test_without_statsmodels_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'shuffledp\[datasets\]'"):
        next(surveys())
