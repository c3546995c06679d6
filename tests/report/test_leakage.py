"""What a report says about guesses: the table, the words, and what it does not say."""

import dataclasses

import pytest

import shuffledp as sdp
from report.pages import Page
from shuffledp.collection.leakage import RunLeakage
from shuffledp.core.bound import Bound
from shuffledp.leakage.account import LeakageAccount
from shuffledp.report import page_html
from shuffledp.report.leakage import (
    account_facts,
    account_rows,
    belief,
    chance,
    gained,
    leakage_facts,
    run_line,
)
from shuffledp.report.page import render


def between(lower, upper):
    return Bound(
        lower=lower, upper=upper, method="way", source="who <proved> it", assumptions=("if so",)
    )


def leakage_section(leakage):
    return render("leakage.html", **leakage_facts(leakage))


UNINFORMED = LeakageAccount(
    num_users=200,
    domain_size=2,
    adversary="uninformed",
    prior=0.5,
    randomizer=between(0.9, 0.9),
    shuffler=between(0.52817424, 0.52817424),
    both=between(0.52253939, 0.52253939),
    truth=0.9,
    epsilon0=2.1972,
)
STRONG = dataclasses.replace(
    UNINFORMED,
    adversary="strong",
    shuffler=between(1.0, 1.0),
    both=between(0.53, 0.54123),
    is_worst_knowledge=True,
)
CHOSEN = dataclasses.replace(
    UNINFORMED, has_uniform_prior=False, prior=0.7, both=between(0.7, 0.7 + 1e-15)
)


def test_chances_are_known_or_at_most():
    assert chance(UNINFORMED, "both") == "52.25%"
    assert chance(STRONG, "both", " %") == "at most 54.13 %"
    assert chance(CHOSEN, "both") == "70%"
    # Round-off is no leakage, even where the digits of the two ends differ.
    edge = dataclasses.replace(CHOSEN, prior=0.70005, both=between(0.70005 - 1e-13, 0.70005))
    assert chance(edge, "both") in {"70%", "70.00%", "70.01%"}


def test_leakage_is_rounded_up():
    assert gained(UNINFORMED, "both") == ("0.02254", "1.046")
    assert gained(UNINFORMED, "randomizer") == ("0.4000", "1.800")
    assert gained(CHOSEN, "both") == ("0", "1")
    assert gained(STRONG, "both") == ("at most 0.04123", "at most 1.083")
    assert gained(dataclasses.replace(STRONG, both=between(None, 0.54123)), "both") == (
        "at most 0.04123", "at most 1.083",
    )  # fmt: skip
    # Twelve per cent of it unknown, which "times" does not show and the leakage does.
    little = dataclasses.replace(UNINFORMED, both=between(0.5 + 2.2e-4, 0.5 + 2.524e-4))
    assert gained(little, "both") == ("at most 0.0002524", "at most 1 + 0.0005048")
    near = dataclasses.replace(UNINFORMED, both=between(0.6 - 2e-4, 0.6))
    assert gained(near, "both") == ("at most 0.1000", "1.200")
    tiny = dataclasses.replace(UNINFORMED, both=between(0.5, 0.5 + 1e-7))
    assert gained(tiny, "both") == ("at most 1e-7", "at most 1 + 2e-7")
    exact = dataclasses.replace(UNINFORMED, both=between(0.5 + 1e-7, 0.5 + 1e-7))
    assert gained(exact, "both") == ("1e-7", "1 + 2e-7")


def test_exact_values_beside_a_tie_are_known():
    # As computed for 5 users, 2 answers and p = 0.51: 0.50375 but for round-off.
    tie = dataclasses.replace(UNINFORMED, both=between(0.5037499999999991, 0.5037500000000009))
    assert chance(tie, "both") == "50.38%"
    assert gained(tie, "both") == ("0.003750", "1.008")


def test_rows_of_the_command():
    assert account_rows(UNINFORMED)[0] == ("nothing", "50 %", "0", "1")
    assert account_rows(UNINFORMED)[3] == ("all reports, shuffled", "52.25 %", "0.02254", "1.046")


def test_facts_of_the_command():
    facts = dict(account_facts(UNINFORMED))
    assert facts["adversary"] == "knows nobody's answer; all 2 answers equally likely"
    assert facts["randomizer"] == "truth with p = 0.9, epsilon0 = 2.198"
    assert "known answers" not in facts
    strong = dict(account_facts(STRONG))
    assert strong["known answers"] == "whatever they are"
    found = dataclasses.replace(STRONG, knowledge=(100, 99))
    facts = dict(account_facts(found))
    assert facts["known answers"] == "100, 99, from which it guesses best"
    unproved = dataclasses.replace(STRONG, truth=None, epsilon0=None)
    facts = dict(account_facts(unproved))
    assert "randomizer" not in facts
    some = dataclasses.replace(UNINFORMED, adversary="partial", knowledge=(3, 4), num_unknown=192)
    facts = dict(account_facts(some))
    assert facts["known answers"] == "3, 4; 192 unknown"
    assert facts["adversary"].startswith("knows 7 of the 199 other answers")
    assert belief(CHOSEN) == "answers as likely as the chosen prior says"


@pytest.mark.parametrize(
    ("accounts", "line"),
    [
        ((), ""),
        ((STRONG,), ""),
        ((UNINFORMED,), "52.25% right instead of 50%"),
        (
            (UNINFORMED, STRONG),
            "52.25% right instead of 50%; knowing all other answers, at most 54.13%",
        ),
    ],
)
def test_one_line_for_the_terminal(accounts, line):
    assert run_line(RunLeakage(accounts=accounts)) == line


def test_the_section_has_a_column_for_each_adversary():
    html = leakage_section(RunLeakage(accounts=(UNINFORMED, STRONG)))
    page = Page(html)
    for text in (
        "An adversary who sees",
        "this release",
        "and knows everybody else's answer",
        "and knows nobody's answer",
        "at most 54.13%",
        "They assume:",
        "guesses right 52.25% of the time with this release, and 50% without it",
        "what a group has in common is not hidden",
        "if so",
    ):
        assert text in page.text
    assert page.tags.count("tr") == 1 + 4
    assert page.tags.count("td") == 4 * 2
    assert page.tags.count("dt") == 2
    # Numbers stay in one piece, whatever the width.
    assert html.count('<td>at most <span style="white-space:nowrap">54.13%</span></td>') == 1
    assert html.count('<td><span style="white-space:nowrap">50%</span></td>') == 2
    assert "who &lt;proved&gt; it" in html


def test_what_could_not_be_computed_is_said():
    notes = ("It could not be computed: <because>.",)
    html = leakage_section(RunLeakage(accounts=(), notes=notes))
    assert html.strip() == "<p>It could not be computed: &lt;because&gt;.</p>"
    both = leakage_section(RunLeakage(accounts=(UNINFORMED,), notes=notes))
    assert "&lt;because&gt;" in both
    assert "52.25%" in both


def test_the_page_has_the_section_only_where_there_is_something_to_say():
    of_means = sdp.run(
        sdp.plan(sdp.Mean(0, 10), num_users=100, epsilon=1.0, delta=1e-6), [5.0] * 100, seed=1
    )
    assert 'id="leakage"' not in page_html(of_means)
    page = page_html(
        sdp.run(
            sdp.plan(sdp.Categories(["a", "b"]), num_users=100, epsilon=1.0, delta=1e-6),
            ["a"] * 100,
            seed=1,
        )
    )
    assert 'id="leakage"' in page
    assert "What an adversary can guess" in page
    assert page.index('id="privacy"') < page.index('id="leakage"') < page.index('id="method"')
