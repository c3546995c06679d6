"""What a report says about an exchange that took place."""

from dataclasses import asdict, replace

import pytest

from report.pages import Page
from shuffledp.collection.results import NetworkFacts
from shuffledp.network.exchange_facts import ExchangeFacts
from shuffledp.report.network_sections import (
    network_section,
    statement_paragraph,
    walk_rows,
)
from shuffledp.report.page import report_html
from shuffledp.report.reproduction import python_code

FACTS = ExchangeFacts(
    graph="friends.csv",
    num_users=95,
    num_edges=400,
    fewest_neighbours=3,
    most_neighbours=12,
    num_self_loops=0,
    num_duplicates=0,
    irregularity=1.2,
    rounds=20,
    are_rounds_chosen=False,
    protocol="all",
    laziness=0.0,
    spectral_gap=0.4,
    separation=0.01,
    worst_user="eve",
    method="exact",
    uniform_epsilon=0.5,
    published_epsilon=None,
    epsilon_by_rounds=((10, 0.8), (20, 0.6)),
    most_held=1.5,
    num_released=94,
    num_dummies=0,
    num_invited=100,
    num_handed_in=93,
    num_absences=190,
    is_traffic_even=False,
    overload=1.23e-10,
)


def test_rows_say_who_was_there():
    rows = dict(walk_rows(FACTS))
    assert rows["Took part"] == "95 of 100 users registered, and 93 handed in"
    assert rows["Away"].startswith("users sent nothing 190 times; the reports they held stayed")
    assert "at most 1.3e-10" in rows["Overflow"]
    assert rows["Spectral gap"] == "0.4000 if nobody is away"
    assert rows["Messages"].startswith("18 reports passed on")  # a tenth of all was missed
    there = dict(walk_rows(replace(FACTS, num_absences=0)))
    assert there["Away"] == "nobody, in any round"
    assert there["Spectral gap"] == "0.4000"


@pytest.mark.parametrize("even", [False, True])
def test_what_the_relay_may_tell_depends_on_the_traffic(even):
    facts = replace(FACTS, is_traffic_even=even)
    assert ("as many to each neighbour" in dict(walk_rows(facts))["Traffic"]) == even
    for text in (network_section(facts, ""), statement_paragraph(facts)[1]):
        assert ("may show" in text) == even
        assert ("keep" in text) != even
    assert "simulated" not in network_section(facts, "")


def test_a_simulated_exchange_says_nothing_of_this():
    names = set(asdict(FACTS)) - {
        "num_invited", "num_handed_in", "num_absences", "is_traffic_even", "overload"
    }  # fmt: skip
    facts = NetworkFacts(**{name: getattr(FACTS, name) for name in names})
    assert "Took part" not in dict(walk_rows(facts))
    assert "The relay" not in statement_paragraph(facts)[1]
    assert "simulated on one machine" in network_section(facts, "")


def test_the_page_has_the_section(make_result):
    page = Page(report_html(make_result(network=FACTS, shuffler="network")))
    assert "95 of 100 users registered, and 93 handed in" in page.text
    assert "The relay is trusted to keep from the adversary" in page.text


def test_code_is_given_only_where_it_repeats_the_guarantee(make_result):
    """With absences, code for the whole graph would show an epsilon that is too small."""
    result = make_result(network=FACTS, shuffler="network")
    assert "depends on who took part" in python_code(result)
    everybody = replace(FACTS, num_absences=0, num_users=100, overload=1e-9)
    result = make_result(network=everybody, shuffler="network")
    delta = result.guarantee.delta_upper - 1e-9
    assert f"rounds=20, delta={delta!r}" in python_code(result)
