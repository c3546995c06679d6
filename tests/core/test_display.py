"""Text for terminals and logs: nothing steers the screen, and no value is told unasked."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.display import one_line, showing_values, value_note, visible

HIDING = [
    *map(chr, range(32)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff",
    "\ud800",
    "\U000e0041",
]


@pytest.mark.parametrize("character", HIDING, ids=ascii)
def test_what_steers_or_hides_is_written_out(character):
    shown = visible(f"a{character}b")
    assert shown == f"a{character.encode('unicode_escape').decode()}b"
    assert shown.isprintable()


def test_letters_of_all_scripts_and_joined_pictures_stay():
    for text in (
        "Straße",
        "ответ",
        "\u0645\u06cc\u200c\u062e",
        "\U0001f469\u200d\U0001f467",
        "日本",
    ):
        assert visible(text) == text
    assert one_line("\U0001f469\u200d\U0001f467", limit=80) == "\U0001f469\\u200d\U0001f467"


@given(st.text(max_size=400), st.integers(10, 300))
def test_a_line_is_one_line_of_limited_length(text, limit):
    line = one_line(text, limit=limit)
    assert len(line) <= limit
    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & {unicodedata.category(each) for each in line}
    line.encode()


def test_a_huge_text_is_cut_before_it_is_worked_on():
    text = "x" * 50_000_000 + "end"
    line = one_line(text, limit=300)
    assert line.endswith("xend")
    assert sys.getsizeof(line) < 1000


def test_values_are_told_only_where_that_was_asked_for():
    assert value_note("HIV+") == ""
    with showing_values():
        assert value_note("HIV+") == " ('HIV+')"
        assert value_note("\x1b[2J") == " ('\\x1b[2J')"
        assert len(value_note("y" * 10**6)) < 110
    assert value_note("HIV+") == ""
