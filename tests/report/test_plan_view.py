"""A plan prints what was chosen, the runners-up, and the two other trust models."""

import pytest

import shuffledp as sdp
from shuffledp.randomizers.registry import RANDOMIZERS


@pytest.fixture(scope="module")
def plan():
    return sdp.plan(sdp.Categories(["yes", "no"]), num_users=10_000, epsilon=1.0, delta=1e-7)


def test_text_lists_every_choice(plan):
    text = str(plan)
    assert text.startswith("10,000 users, ")
    assert "epsilon <= 1" in text
    names = [plan.randomizer.name, *(other.randomizer.name for other in plan.alternatives)]
    assert len(names) == len(RANDOMIZERS)
    assert all(name in text for name in names)
    assert "without a shuffler" in text
    assert "with a trusted curator" in text


def test_html_is_one_table_without_scripts(plan):
    html = plan._repr_html_()
    assert html.count("<table>") == 1
    assert html.count("<tr>") == 1 + len(RANDOMIZERS) + 2  # head, choices, other models
    assert "<script" not in html
    assert "epsilon &lt;= 1" in html
