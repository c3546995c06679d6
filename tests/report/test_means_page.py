"""Reports about means: units of the data rather than percent, and columns rather than answers."""

import dataclasses
import re

import pytest

import shuffledp as sdp
from collection.kinds import KINDS, NUM_USERS
from report.pages import Page, drawn, labels, of_class
from shuffledp.report import notebook_html, page_html, terminal_text
from shuffledp.report.run import figure_of_estimates
from shuffledp.report.wording import (
    RANDOMIZER_TITLES,
    estimate_table,
    randomizer_title,
    wording,
)

MEANS = ["mean", "vector-mean"]
SHARES = ["frequencies", "answer-sets", "distribution", "columns"]


@pytest.fixture(scope="module")
def results():
    """A simulated run of every kind."""
    return {
        name: sdp.run(
            sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6),
            kind.values,
            seed=1,
        )
        for name, kind in KINDS.items()
    }


@pytest.fixture(scope="module")
def pages(results):
    return {name: page_html(result) for name, result in results.items()}


def estimates_section(page):
    return page.partition('<section id="estimates"')[2].partition("</section>")[0]


@pytest.mark.parametrize("name", MEANS)
def test_the_table_of_means_has_no_counts_and_no_percent(results, pages, name):
    table = estimates_section(pages[name])
    assert re.findall(r'role="columnheader">([^<]*)', table) == [
        "Column", "Mean", "Standard error", "95% interval", "Population standard error",
        "95% population interval",
    ]  # fmt: skip
    cells = re.findall(r'role="cell"[^>]*>([^<]*)', table)
    assert len(cells) == 5 * len(results[name].domain)
    assert not [cell for cell in cells if "%" in cell]
    assert "frequencies" not in table
    assert "estimated means" in table
    assert "beyond the limits of the values" in table


@pytest.mark.parametrize("name", SHARES[:2])
def test_the_table_of_shares_has_counts_and_percent(pages, name):
    table = estimates_section(pages[name])
    assert re.findall(r'role="columnheader">([^<]*)', table) == [
        "Answer", "Estimated count", "Frequency", "Standard error", "95% interval",
        "Population standard error", "95% population interval",
    ]  # fmt: skip
    cells = re.findall(r'role="cell"><bdi>([^<]*)', table)[1::6]
    assert cells
    assert all(cell.endswith("%") for cell in cells)


@pytest.mark.parametrize("name", KINDS)
def test_every_page_tells_its_question(results, pages, name):
    page, result = Page(pages[name]), results[name]
    assert result.question.describe() in page.text
    assert randomizer_title(result.randomizer) in page.text
    words = "frequencies" if name in SHARES else "means"
    assert f"these are the {words} estimated" in page.text
    for label in result.domain:
        assert label in page.text
    names = {"distribution": "Bins", "mean-by-group": "Groups"}
    heading = names.get(name, "Columns" if name in MEANS else "Answers")
    assert {"Columns", "Answers", *names.values()} & set(page.texts) == {heading}


@pytest.mark.parametrize("name", KINDS)
def test_charts_are_valid_and_in_their_unit(results, name):
    figure = figure_of_estimates(results[name])
    elements = drawn(figure)
    assert all(("%" in text) == (name in SHARES) for text in labels(elements, "xtick"))
    hover = " ".join(bar.find("title").text for bar in of_class(elements, "bar"))
    estimates = re.sub(r"95% (population )?(simultaneous )?interval", "", hover)
    assert ("%" in estimates) == (name in SHARES)
    dots = [each for each in of_class(elements, "bar") if each.tag.endswith("circle")]
    assert len(dots) == (name == "mean")


@pytest.mark.parametrize("name", KINDS)
def test_notebook_and_terminal(results, name):
    result = results[name]
    head = "Frequency" if name in SHARES else "Mean"
    for text in (terminal_text(result), notebook_html(result)):
        assert head in text
        assert result.domain[0] in text
    table = terminal_text(result).splitlines()
    start = next(i for i, line in enumerate(table) if head in line)
    rows = table[start + 1 : start + 1 + len(result.domain)]
    assert all(("%" in row) == (name in SHARES) for row in rows)


def test_intervals_that_hold_at_once_say_so(results):
    kind = KINDS["vector-mean"]
    plan = sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, kind.values, seed=1, simultaneous=True)
    assert estimate_table(result, is_narrow=True)[0][-1] == "95% simultaneous interval"
    text = Page(page_html(result)).text
    assert "95% simultaneous interval" in text
    assert "95% for all of them at once" in text
    assert "95% for each" in Page(page_html(results["vector-mean"])).text


def test_means_have_as_many_decimals_as_their_errors_deserve(results):
    headings, (row,) = estimate_table(results["mean"])
    assert headings[1] == "Mean"  # nothing is counted
    _, estimate, shown, interval, of_population, _ = row
    narrow = estimate_table(results["mean"], is_narrow=True)[1]
    assert narrow == [(row[0], estimate, shown, interval)]
    assert len(of_population.partition(".")[2]) == len(shown.partition(".")[2])
    error = results["mean"].estimates.standard_error[0]
    assert abs(float(shown) - error) < 0.06 * error
    assert len(estimate.partition(".")[2]) == len(shown.partition(".")[2]) <= 3


def test_every_registered_randomizer_has_a_title():
    for kind in KINDS.values():
        for name, make in kind.question.candidates().items():
            title = randomizer_title(make(1.0))
            assert {title, title.partition(",")[0]} & set(RANDOMIZER_TITLES.values())
            assert name not in title
    assert "one answer drawn of each set" in randomizer_title(
        KINDS["answer-sets"].question.candidates()["sampled:k-rr"](1.0)
    )


def test_an_unknown_randomizer_goes_by_its_name():
    class Own:
        name = "mine:own"
        epsilon0 = 1.0

    assert randomizer_title(Own()) == "mine:own"
    assert "k-rr" in RANDOMIZER_TITLES


def test_the_wording_follows_the_estimates(results):
    assert wording(results["mean"].question).plural == "means"
    renamed = dataclasses.replace(results["answer-sets"], target_epsilon=2.0)
    assert wording(renamed.question).plural == "frequencies"
