"""All bounds as rows of text."""

import pytest

from shuffledp.accounting.compare import BoundComparison, ComparedBound, Scenario, Standing
from shuffledp.amplification.registry import METHODS
from shuffledp.cli.bounds import (
    LOWER_END,
    bound_rows,
    missing_rows,
    scenario_text,
)

SCENARIO = Scenario(epsilon0=1.0, num_users=1000, delta=1e-6)


def compared(lower=0.037998):
    return BoundComparison(
        scenario=SCENARIO,
        bounds=(
            ComparedBound(
                method=METHODS["binary-exact"], value=0.04320612, standing=Standing.BOUND
            ),
            ComparedBound(method=METHODS["local"], value=1.0, standing=Standing.BOUND),
            ComparedBound(
                method=METHODS["erlingsson"], value=1.5, standing=Standing.NO_GAIN, reason="no use"
            ),
            ComparedBound(
                method=METHODS["erlingsson-small"],
                value=None,
                standing=Standing.OUTSIDE,
                reason="needs <this>",
            ),
        ),
        lower=lower,
    )


def test_bounds_are_rounded_up_and_the_lower_end_down():
    rows = bound_rows(compared())
    assert rows[0] == ("binary-exact", "0.0432062", "1.000", "yes", rows[0][4])
    assert rows[1][:3] == ("local", "1.00000", "23.15")
    assert rows[-1] == (LOWER_END, "0.0379980", "0.8794", "", "")
    assert all(len(row) == 5 for row in rows)
    assert {row[4] for row in rows[:-1]} <= {"here", "source"}


def test_without_a_lower_end_there_is_no_row_for_it():
    assert LOWER_END not in [row[0] for row in bound_rows(compared(lower=None))]


def test_what_says_nothing_says_why():
    assert missing_rows(compared()) == [
        ("erlingsson", "1.50000: no use"),
        ("erlingsson-small", "needs <this>"),
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "any randomizer with epsilon0 = 1, 1,000 users, delta = 1e-6"),
        (
            {"delta": None, "epsilon": 0.5, "num_users": 1},
            "any randomizer with epsilon0 = 1, 1 user, epsilon = 0.5",
        ),
        (
            {"randomizer": "k-rr", "domain_size": 3},
            "k-rr, k = 3, with epsilon0 = 1, 1,000 users, delta = 1e-6",
        ),
        (
            {"randomizer": "privunit", "dimension": 8},
            "privunit, dimension = 8, with epsilon0 = 1, 1,000 users, delta = 1e-6",
        ),
    ],
)
def test_the_scenario_in_words(changes, text):
    arguments = {"epsilon0": 1.0, "num_users": 1000, "delta": 1e-6}
    assert scenario_text(Scenario(**{**arguments, **changes})) == text
