"""What a report says about a shuffle within groups, in words and tables."""

import dataclasses

import pytest

from shuffledp.collection.results import (
    GroupFacts,
    OtherGrouping,
    Reidentification,
    SubsetPreservation,
)
from shuffledp.report.group_sections import (
    group_rows,
    group_section,
    shuffle_rows,
    statement_paragraphs,
)

FACTS = GroupFacts(
    description="people within 2 of each other (<age>, absolute distance)",
    num_groups=73,
    smallest_group=5,
    median_group=400,
    largest_group=1_000,
    largest_width=1_200,
    rank_distance="kendall",
    reference_order="longest axis",
    sensitivity=1_000,
    published_sensitivity=3_000,
    orders_tried=(("breadth first", 2_000), ("longest axis", 1_000)),
    alpha=4.0,
    theta=0.004,
    mean_displacement=12.3456,
    is_displacement_exact=False,
    odds_factor=54.598150033145,
    reidentification=(
        Reidentification(subset_size=1, group_size=1_000, most_probable=0.05),
        Reidentification(subset_size=2, group_size=1_000, most_probable=0.25),
    ),
    preservation=(
        SubsetPreservation(name="region <x>", size=10, eta=0.5, delta=0.05, confidence=0.95),
        SubsetPreservation(name="region y", size=20, eta=0.7, delta=0.05, confidence=None),
    ),
    other_groupings=(
        OtherGrouping(description="half", largest_group=30, sensitivity=50, alpha=0.2),
    ),
)


def test_the_statement_says_what_the_theorems_say():
    titles = [title for title, _ in statement_paragraphs(FACTS)]
    text = " ".join(text for _, text in statement_paragraphs(FACTS))
    assert titles == ["What the order reveals.", "Whose answer is whose.", "What stays visible."]
    assert "a factor of at most 54.60, which is e^alpha for alpha = 4.000" in text
    assert "1 person in a group of 1,000: 5.0%; 2 people in a group of 1,000: 25.0%" in text


def test_groups_too_small_for_the_theorem_are_said_to_be():
    facts = dataclasses.replace(FACTS, reidentification=())
    assert "too small" in statement_paragraphs(facts)[1][1]


def test_rows_for_the_terminal():
    assert dict(group_rows(FACTS))["Sizes"] == "5 to 1,000, median 400"
    rows = dict(shuffle_rows(FACTS))
    assert rows["Sensitivity"] == "1,000 (the paper's formula: 3,000, 3 times as much)"
    assert rows["A report moves"] == "12.35 places on average, by simulation"
    exact = dataclasses.replace(FACTS, published_sensitivity=None, is_displacement_exact=True)
    assert dict(shuffle_rows(exact))["Sensitivity"] == "1,000"
    assert dict(shuffle_rows(exact))["A report moves"] == "12.35 places on average"


def test_the_section_escapes_what_comes_from_outside():
    html = group_section(FACTS)
    assert "&lt;age&gt;" in html
    assert "region &lt;x&gt;" in html
    assert "<age>" not in html
    assert "95% confidence" in html
    assert "<td>exact</td>" in html
    assert "Reference orders that were tried" in html


@pytest.mark.parametrize("field", ["preservation", "other_groupings", "orders_tried"])
def test_tables_without_rows_are_left_out(field):
    whole, without = group_section(FACTS), group_section(dataclasses.replace(FACTS, **{field: ()}))
    assert without.count("<table>") == whole.count("<table>") - 1
