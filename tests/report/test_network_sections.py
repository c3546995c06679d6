"""What a report says about a shuffle through a network, in words, tables and a curve."""

import dataclasses

import pytest

from report.pages import Page
from shuffledp.collection.results import NetworkFacts
from shuffledp.report.network_sections import (
    network_rows,
    network_section,
    statement_paragraph,
    walk_rows,
)
from shuffledp.report.page import report_html
from shuffledp.report.reproduction import python_code
from shuffledp.report.rounds_figure import rounds_figure

FACTS = NetworkFacts(
    graph="friends <of> all.csv",
    num_users=6_366,
    num_edges=70_000,
    fewest_neighbours=1,
    most_neighbours=400,
    num_self_loops=2,
    num_duplicates=3,
    irregularity=2.46751,
    rounds=60,
    are_rounds_chosen=True,
    protocol="all",
    laziness=0.0,
    spectral_gap=0.18108,
    separation=0.00123,
    worst_user="<eve>",
    method="exact laws",
    uniform_epsilon=0.49,
    published_epsilon=2.91234,
    epsilon_by_rounds=((6, 2.5), (30, 0.8), (60, 0.499967)),
    most_held=18.2,
    num_released=6_366,
    num_dummies=0,
)


def varied(**changes):
    return dataclasses.replace(FACTS, **changes)


def test_rows_for_the_terminal():
    rows = dict(network_rows(FACTS))
    assert rows["Edges"] == "70,000 (5 rows left out: edges to oneself or given twice)"
    assert rows["Neighbours"] == "1 to 400"
    assert dict(network_rows(varied(num_self_loops=0, num_duplicates=0)))["Edges"] == "70,000"
    walk = dict(walk_rows(FACTS))
    assert walk["Rounds"] == "60, chosen to come close to endless rounds"
    assert walk["Spectral gap"] == "0.1810"
    assert walk["Separation left"] == "0.0013"
    assert walk["Published theorem"] == "epsilon <= 2.913 (Liew et al., corrected)"
    assert walk["Messages"].startswith("60 reports passed on")


def test_rounds_that_were_given_and_rests():
    walk = dict(walk_rows(varied(are_rounds_chosen=False, laziness=0.25)))
    assert walk["Rounds"] == "60, resting with a chance of 25.0%"
    assert walk["Messages"].startswith("45 reports passed on")


def test_a_theorem_that_says_nothing():
    walk = dict(walk_rows(varied(published_epsilon=None)))
    assert walk["Published theorem"] == "says no more than epsilon0"


def test_single_says_how_many_empty_answers_there_were():
    facts = varied(protocol="single", num_released=4_000, num_dummies=2_366)
    assert "4,000 reports, and 2,366 empty answers" in dict(walk_rows(facts))["Protocol"]


def test_the_statement_names_what_a_trusted_shuffler_would_give():
    title, text = statement_paragraph(FACTS)
    assert title == "Who has to be trusted."
    assert "for 60 rounds" in text
    assert "epsilon <= 0.4900" in text
    assert "for 1 round;" in statement_paragraph(varied(rounds=1))[1]


def test_the_section_escapes_what_comes_from_outside():
    html = network_section(FACTS, "<chart/>")
    assert "friends &lt;of&gt; all.csv" in html
    assert "&lt;eve&gt;" in html
    assert "<eve>" not in html
    assert "<chart/>" in html
    assert "Who learns what" in html


def test_the_curve_comes_down_to_the_uniform_level(make_result):
    figure = rounds_figure(make_result(network=FACTS))
    level, curve = figure.spec["data"]
    assert curve["x"] == [6, 30, 60]
    assert curve["y"] == [2.5, 0.8, 0.499967]
    assert level["y"] == [0.49, 0.49]
    assert figure.rows[-1] == ("60", "0.5000")
    assert "type" not in figure.spec["layout"]["yaxis"]
    steep = varied(epsilon_by_rounds=((1, 5.5), (60, 0.5)))
    assert rounds_figure(make_result(network=steep)).spec["layout"]["yaxis"]["type"] == "log"


@pytest.mark.parametrize("points", [(), ((60, 0.5),), ((30, float("inf")), (60, 0.5))])
def test_fewer_than_two_points_make_no_curve(make_result, points):
    assert rounds_figure(make_result(network=varied(epsilon_by_rounds=points))) is None
    page = Page(report_html(make_result(network=varied(epsilon_by_rounds=points))))
    assert "Network shuffle" in page.text
    assert ("div", "id", "chart-rounds") not in page.attributes


def test_other_shuffles_have_no_curve_and_no_section(make_result):
    assert rounds_figure(make_result()) is None
    assert "Network shuffle" not in Page(report_html(make_result())).text


def test_the_page_says_who_passed_the_reports_on(make_result):
    page = Page(report_html(make_result(network=FACTS, shuffler="network")))
    assert "neighbours in a network passed the reports on" in page.text
    assert "Who has to be trusted." in page.text
    assert "who handed in which" in page.text
    assert "If reports are followed on their way." in page.text
    assert ("div", "id", "chart-rounds") in page.attributes


def test_the_code_to_repeat_it_is_python(make_result):
    code = python_code(make_result(network=FACTS, shuffler="network"))
    compile(code, "report", "exec")
    assert "rounds=60" in code
