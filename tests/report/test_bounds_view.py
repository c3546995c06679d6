import math

import pytest

from shuffledp.accounting.amplification.registry import METHODS
from shuffledp.collection.bounds import BoundComparison, ComparedBound, Scenario, Standing
from shuffledp.report.bounds_view import (
    LOWER_END,
    bound_rows,
    gap_text,
    headings,
    missing_rows,
    number,
    scenario_text,
    users_text,
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
    assert all(len(row) == len(headings(compared())) for row in rows)
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
            {"randomizer": "k-rr", "k": 3},
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


def test_numbers():
    assert number(None, up=True) == ""
    assert number(1 / 3, up=True) == "0.333334"
    assert number(1 / 3, up=False) == "0.333333"
    assert users_text(2) == "2 users"
    assert headings(compared())[1] == "epsilon"


def test_gaps_are_rounded_up():
    assert gap_text(1.0 - 1.01e-5, 1.0) == "1.1e-5"
    assert gap_text(1.0 - 1e-9, 1.0) == "below 1e-6"
    assert gap_text(0.5, 1.0) == "0.50"
    assert gap_text(0.0, 0.0) == "0"
    assert gap_text(None, math.pi) == "not known"
