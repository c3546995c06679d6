"""Means bit by bit under a shuffler's dummies."""

import math

import pytest

import shuffledp as sdp
from shuffledp.core.dummies import DummyLaw

QUESTION = sdp.Mean(-5.0, 15.0, name="age")


def test_errors_to_expect_know_the_dummies():
    law = QUESTION.dummy_candidates()["bit-sums-2"](math.inf)
    assert law.name == "bit-sums-2"
    dummies = tuple(map(DummyLaw.from_text, ("gaussian:2:9", "gaussian:3:15")))
    variance = 4 / 9 * dummies[0].variance / 2 + 1 / 9 * dummies[1].variance / 2
    rounding = 50 / (6 * 9)
    found = QUESTION.expected_error(law, 50, dummies)
    assert found == pytest.approx(20.0 * math.sqrt(variance + rounding) / 50)
    assert QUESTION.expected_error(law, 50) == pytest.approx(20.0 * math.sqrt(rounding) / 50)
