"""What a report says about shuffles within groups and through networks, in words and tables."""

import dataclasses
from dataclasses import asdict, replace

import pytest

from report.pages import Page
from shuffledp.groups.facts import MallowsFacts, Reidentification
from shuffledp.network.run import ExchangeFacts, NetworkFacts
from shuffledp.report import page_html
from shuffledp.report.wording import shuffle_words

GROUPS = MallowsFacts(
    description="people whose values differ by at most 2 (<age>)",
    num_groups=73,
    smallest_group=5,
    median_group=400,
    largest_group=1_000,
    largest_width=1_200,
    rank_distance="kendall",
    reference_order="longest axis",
    sensitivity=1_000,
    alpha=4.0,
    theta=0.004,
    mean_displacement=12.3456,
    odds_factor=54.598150033145,
    reidentification=(
        Reidentification(subset_size=1, group_size=1_000, most_probable=0.05),
        Reidentification(subset_size=2, group_size=1_000, most_probable=0.25),
    ),
    preserved=0.5,
)


def group_paragraphs(facts):
    return shuffle_words("mallows", facts).paragraphs


def group_rows(facts):
    return shuffle_words("mallows", facts).tables[0][1]


def shuffle_rows(facts):
    return shuffle_words("mallows", facts).tables[1][1]


def network_paragraph(facts, collected_by):
    (found,) = shuffle_words("network", facts, collected_by=collected_by).paragraphs
    return found


def network_rows(facts):
    return shuffle_words("network", facts).tables[0][1]


def walk_rows(facts):
    return shuffle_words("network", facts).tables[1][1]


def test_the_statement_says_what_the_theorems_say():
    titles = [title for title, _ in group_paragraphs(GROUPS)]
    text = " ".join(text for _, text in group_paragraphs(GROUPS))
    assert titles == ["What the order reveals.", "Whose answer is whose.", "What stays visible."]
    assert "a factor of at most 54.60, which is e^alpha for alpha = 4.000" in text
    assert "1 person in a group of 1,000: 5.0%; 2 people in a group of 1,000: 25.0%" in text


def test_groups_too_small_for_the_theorem_are_said_to_be():
    facts = dataclasses.replace(GROUPS, reidentification=())
    assert "too small" in group_paragraphs(facts)[1][1]


def test_group_rows_for_the_terminal():
    assert dict(group_rows(GROUPS))["Sizes"] == "5 to 1,000, median 400"
    kept = dict(group_rows(GROUPS))["Stays in largest"]
    assert kept.startswith("at least 50.0% of its reports, but for a chance of 5%")
    unknown = dataclasses.replace(GROUPS, preserved=0.0)
    assert "Stays in largest" not in dict(group_rows(unknown))
    rows = dict(shuffle_rows(GROUPS))
    assert rows["Sensitivity"] == "1,000 (the paper's formula: 720,600)"
    hamming = dict(shuffle_rows(replace(GROUPS, rank_distance="hamming")))
    assert hamming["Sensitivity"] == "1,000"
    assert rows["A report moves"] == "12.35 places on average, by simulation"


def test_the_section_escapes_what_comes_from_outside(make_result):
    html = page_html(make_result(facts=GROUPS, shuffler="mallows"))
    assert "&lt;age&gt;" in html
    assert "<age>" not in html
    page = Page(html)
    assert "95% confidence" in page.text


NETWORK = NetworkFacts(
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
    most_held=18.2,
    num_released=6_366,
    num_dummies=0,
)


def varied(**changes):
    return dataclasses.replace(NETWORK, **changes)


def test_rows_for_the_terminal():
    rows = dict(network_rows(NETWORK))
    assert rows["Edges"] == "70,000 (5 rows left out: edges to oneself or given twice)"
    assert rows["Neighbours"] == "1 to 400"
    assert dict(network_rows(varied(num_self_loops=0, num_duplicates=0)))["Edges"] == "70,000"
    walk = dict(walk_rows(NETWORK))
    assert walk["Rounds"] == "60, chosen to come close to endless rounds"
    assert walk["Spectral gap"] == "0.1810"
    assert walk["Separation left"] == "0.0013"
    assert walk["Messages"].startswith("60 reports passed on")


def test_rounds_that_were_given_and_rests():
    walk = dict(walk_rows(varied(are_rounds_chosen=False, laziness=0.25)))
    assert walk["Rounds"] == "60, resting with a chance of 25.0%"
    assert walk["Messages"].startswith("45 reports passed on")


def test_single_says_how_many_empty_answers_there_were():
    facts = varied(protocol="single", num_released=4_000, num_dummies=2_366)
    assert "4,000 reports, and 2,366 empty answers" in dict(walk_rows(facts))["Protocol"]


def test_the_statement_names_what_a_trusted_shuffler_would_give():
    title, text = network_paragraph(NETWORK, collected_by="devices")
    assert title == "Who has to be trusted."
    assert "for 60 rounds" in text
    assert "epsilon <= 0.4900" in text
    assert "for 1 round;" in network_paragraph(varied(rounds=1), collected_by="table")[1]


def test_the_network_section_escapes_what_comes_from_outside(make_result):
    html = page_html(make_result(facts=NETWORK, shuffler="network"))
    assert "friends &lt;of&gt; all.csv" in html
    assert "&lt;eve&gt;" in html
    assert "<eve>" not in html
    assert "Who learns what" in html


def test_other_shuffles_have_no_section(make_result):
    assert "Network shuffle" not in Page(page_html(make_result())).text


def test_the_page_says_who_passed_the_reports_on(make_result):
    page = Page(page_html(make_result(facts=NETWORK, shuffler="network")))
    assert "neighbours in a network passed the reports on" in page.text
    assert "Who has to be trusted." in page.text
    assert "who handed in which" in page.text
    assert "If reports are followed on their way." in page.text


EXCHANGE = ExchangeFacts(
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
    most_held=1.5,
    num_released=94,
    num_dummies=0,
    num_invited=100,
    num_handed_in=93,
    num_absences=190,
    num_dishonest=0,
    is_traffic_even=False,
    overload=1.23e-10,
)


def section_of(make_result, facts):
    html = page_html(make_result(facts=facts, shuffler="network"))
    return html.partition('<section id="network"')[2].partition("</section>")[0]


def test_the_randomness_of_an_exchange_is_that_of_its_users(make_result):
    page = Page(page_html(make_result(facts=EXCHANGE, shuffler="network")))
    assert "of those who sent the reports" in page.text
    assert "keyed by the operating system" not in page.text


def test_rows_say_who_was_there():
    rows = dict(walk_rows(EXCHANGE))
    assert rows["Took part"] == "95 of 100 users registered, and 93 handed in"
    assert dict(walk_rows(replace(EXCHANGE, num_dishonest=5)))["Took part"].endswith(
        "and 93 handed in; dishonest, who hide nobody: 5"
    )
    assert rows["Away"].startswith("users sent nothing 190 times; the reports they held stayed")
    assert "at most 1.3e-10" in rows["Overflow"]
    assert rows["Spectral gap"] == "0.4000 if nobody is away"
    assert rows["Messages"].startswith("18 reports passed on")  # a tenth of all was missed
    there = dict(walk_rows(replace(EXCHANGE, num_absences=0)))
    assert there["Away"] == "nobody, in any round"
    assert there["Spectral gap"] == "0.4000"


@pytest.mark.parametrize("even", [False, True])
def test_what_the_relay_may_tell_depends_on_the_traffic(make_result, even):
    facts = replace(EXCHANGE, is_traffic_even=even)
    assert ("as many to each neighbour" in dict(walk_rows(facts))["Traffic"]) == even
    section = section_of(make_result, facts)
    for text in (section, network_paragraph(facts, collected_by="devices")[1]):
        assert ("may show" in text) == even
        assert ("keep" in text) != even
    assert "simulated" not in section


def test_a_simulated_exchange_says_nothing_of_this(make_result):
    names = set(asdict(EXCHANGE)) - {
        "num_invited", "num_handed_in", "num_absences", "num_dishonest", "is_traffic_even",
        "overload",
    }  # fmt: skip
    facts = NetworkFacts(**{name: getattr(EXCHANGE, name) for name in names})
    assert "Took part" not in dict(walk_rows(facts))
    assert "The relay" not in network_paragraph(facts, collected_by="devices")[1]
    assert "simulated on one machine" in section_of(make_result, facts)


def test_the_page_has_the_exchange(make_result):
    page = Page(page_html(make_result(facts=EXCHANGE, shuffler="network")))
    assert "95 of 100 users registered, and 93 handed in" in page.text
    assert "The relay is trusted to keep from the adversary" in page.text


def test_names_from_outside_begin_no_row():
    facts = replace(GROUPS, description="a\n- Sizes: 7\n## Shuffle")
    tables = dict(shuffle_words("mallows", facts).tables)
    assert [*tables] == ["Groups", "Shuffle"]
    assert dict(tables["Groups"])["Who shares one"] == r"a\n- Sizes: 7\n## Shuffle"
    assert dict(tables["Groups"])["Sizes"] == "5 to 1,000, median 400"
    rows = dict(network_rows(varied(graph="a\n- Edges: 7")))
    assert (rows["Graph"], rows["Edges"][:6]) == (r"a\n- Edges: 7", "70,000")
