import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies

from shuffledp.report import formatting
from shuffledp.report.formatting import (
    best_guess,
    decimals_for,
    fixed,
    odds_factor,
    one_in,
    percent,
    rounded,
    shorten,
    shown_label,
)

POSITIVE = strategies.floats(min_value=1e-300, max_value=1e300)
WORDS = {"million": 10**6, "billion": 10**9, "trillion": 10**12}


@given(POSITIVE)
@example(0.1)
@example(0.99999)
@example(999999.9)
@example(9.9996e-5)
def test_bounds_are_rounded_to_their_own_side(value):
    up, down = rounded(value, up=True), rounded(value, up=False)
    assert Fraction(down) <= Fraction(repr(value)) <= Fraction(up)
    assert float(up) == pytest.approx(value, rel=1e-3)
    assert float(down) == pytest.approx(value, rel=1e-3)


def test_rounded_values_are_short():
    assert rounded(0.499967, up=True) == "0.5000"
    assert rounded(0.0, up=True) == "0"
    assert rounded(float("inf"), up=True) == "infinity"
    assert rounded(1e-8, up=False) == rounded(1e-8, up=True) == "1e-8"
    assert rounded(0.1, up=True) == "0.1000"


@given(POSITIVE)
def test_given_numbers_read_back_as_themselves(value):
    assert float(formatting.given(value)) == value


@given(strategies.floats(min_value=1e-15, max_value=20.0))
def test_odds_never_look_smaller_than_they_are(epsilon):
    assert float(odds_factor(epsilon).replace(",", "")) >= math.exp(epsilon)


@given(strategies.floats(min_value=1e-10, max_value=13.0), strategies.floats(0.0, 0.5))
def test_the_best_guess_never_looks_worse_than_it_is(epsilon, delta):
    exact = (math.exp(epsilon) + delta) / (math.exp(epsilon) + 1.0)
    shown = float(best_guess(epsilon, delta).removesuffix("%")) / 100.0
    assert exact <= shown + 1e-12
    assert shown <= exact + 2e-3


def test_no_privacy_means_certainty():
    assert best_guess(1e9, 0.0) == "100%"
    assert best_guess(0.0, 0.0) == "50%"


@given(strategies.floats(min_value=1e-14, max_value=1.0))
@example(1e-6)
@example(0.9999e-6)
def test_one_in_never_looks_rarer_than_it_is(probability):
    number, _, word = one_in(probability).removeprefix("1 in ").partition(" ")
    shown = float(number.replace(",", "")) * WORDS.get(word, 1)
    assert shown <= (1.0 + 1e-11) / probability
    assert shown >= 0.98 / probability


def test_one_in_at_the_ends():
    assert one_in(0.0) == "zero"
    assert one_in(1.0) == "1 in 1"
    assert one_in(1e-10) == "1 in 10 billion"


def test_decimals_follow_the_smallest_noise():
    assert decimals_for([0.0, float("nan"), float("inf")]) == 1
    assert decimals_for([1e-12]) == 6
    assert percent(0.12344, decimals_for([0.6])) == "12.34%"
    assert fixed(-0.0001, 2) == "0.00"
    assert fixed(-12.5, 1) == "-12.5"


def test_nothing_in_a_label_can_steer_the_screen():
    assert shown_label("a\nb\x00\ud800\u202e\u200b") == "a\\nb\\x00\\ud800\\u202e\\u200b"
    assert shown_label("\U0001f469\u200d\U0001f467") == "\U0001f469\u200d\U0001f467"
    shown_label("\ud800").encode()


def test_shortened_labels_end_in_an_ellipsis_and_no_dangling_joiner():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde\u2026"
    assert shorten("abcd\u200dxyz", 6) == "abcd\u2026"
    assert shorten("abcd xyz", 6) == "abcd\u2026"
