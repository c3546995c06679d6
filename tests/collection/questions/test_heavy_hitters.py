import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collection.questions.heavy_hitters import codes, extensions, whole_text
from shuffledp.core.errors import DataError, DomainError, ParameterError, ShuffledpError
from shuffledp.core.profile import RandomizerFamily


def all_texts(num_bytes):
    """Return all texts of up to two bytes, of which none is empty or has U+0000."""
    assert num_bytes == 2
    ones = [bytes([each]) for each in range(1, 128)]
    twos = [chr(each).encode() for each in range(128, 2048)]
    return {each.decode() for each in (*ones, *(a + b for a in ones for b in ones), *twos)}


@pytest.mark.parametrize("steps", [(1, 1, 1, 1), (2, 2), (3, 1), (4,), (1, 3)])
def test_extensions_reach_all_texts_and_no_other(steps):
    left, depth = [b""], 0
    for step in steps:
        found = extensions(left, depth, step)
        left, depth = found.tolist(), depth + step
        assert len(set(left)) == len(left)
        assert np.array_equal(found, np.sort(found))
    texts = [whole_text(each) for each in left]
    assert None in texts or steps[-1] == 0  # such as the first byte of a character of three
    assert {each for each in texts if each is not None} == all_texts(2)


def test_an_ended_text_is_its_own_only_extension():
    assert extensions([b"a\0"], 4, 3).tolist() == [b"a"]  # the zeros of the end are not shown
    assert whole_text(b"a") == "a"


@pytest.mark.parametrize("bits", [4, 8, 12, 16])
def test_no_prefix_has_more_extensions_than_there_are_bins(bits):
    asked = sdp.HeavyHitters(max_bytes=6, most=3, bits=bits)
    generator = sdp.Entropy.from_seed(1).generator()
    left, depth = [b""], 0
    for step in asked.steps:
        found = extensions(left, depth, step)
        assert len(found) < asked.num_bins
        depth += step
        left = generator.choice(found, min(3, len(found)), replace=False).tolist()
    assert sum(asked.steps) == 12 == depth


def test_codes_are_places_of_prefixes():
    texts = ["a", "ab", "abc", "日", "é", "b", "zz"]
    asked = sdp.HeavyHitters(max_bytes=3, most=9)
    values = np.concatenate(list(asked.column(texts).blocks()))
    for depth in range(1, 7):
        prefixes = np.unique([padded(text, depth) for text in ("ab", "日", "é", "b")])
        expected = [
            prefixes.tolist().index(own.rstrip(b"\0"))
            if (own := padded(text, depth))
            in [padded(each, depth) for each in ("ab", "日", "é", "b")]
            else 99
            for text in texts
        ]
        assert codes(values, prefixes, depth, 100).tolist() == expected


def padded(text, depth):
    """Return so many half bytes of a text, filled up with zeros."""
    digits = text.encode().hex().ljust(depth, "0")[:depth]
    return bytes.fromhex(digits + "0" * (depth % 2))


def test_a_text_outside_is_in_no_bin():
    asked = sdp.HeavyHitters(max_bytes=2, most=9)
    column = asked.read(table_of("abc", "a\0b", "ab"), other=True)
    values = np.concatenate(list(column.blocks()))
    bins = extensions([b""], 0, 4)
    assert codes(values, bins, 4, 10**6).tolist()[:2] == [10**6 - 1] * 2
    assert bins[codes(values, bins, 4, 10**6)[2]] == b"ab"


def table_of(*texts):
    """Return texts as the source of a column."""
    from shuffledp.collection.source.tables import source_of_values

    return source_of_values("text", texts)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (("abc", "abcd", "日本"), DomainError, "longer than max_bytes = 3 bytes in UTF-8"),
        (("abc", "a\0c"), DomainError, "U+0000"),
        (("abc", ""), DataError, "without an answer"),
        (("abc",), DataError, "1 row"),
    ],
)
def test_bad_texts_are_refused(texts, error, message):
    with pytest.raises(error, match=message.replace("+", r"\+")):
        sdp.HeavyHitters(max_bytes=3).column(texts)


def test_what_is_no_unicode_is_refused():
    with pytest.raises((ShuffledpError, UnicodeError)):
        sdp.HeavyHitters(max_bytes=3).column(["ab", "a\udc80"])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_bytes": 257}, "max_bytes"),
        ({"max_bytes": 8, "most": 0}, "most"),
        ({"max_bytes": 8, "bits": 5}, "bits = 5 is not one of 4, 8, 12 and 16"),
        ({"max_bytes": 8, "most": 1000, "bits": 16}, "give at most bits = 8"),
    ],
)
def test_bad_numbers_are_refused(numbers, message):
    with pytest.raises(ParameterError, match=message):
        sdp.HeavyHitters(**numbers)


def test_variants_are_the_steps_that_fit():
    asked = sdp.HeavyHitters(max_bytes=8, most=1000)
    assert [each.bits for each in asked.variants(with_dummies=False)] == [4, 8]
    assert [each.bits for each in asked.variants(with_dummies=True)] == [4]
    chosen = sdp.HeavyHitters(max_bytes=8, most=1000, bits=8)
    assert chosen.variants(with_dummies=False) == (chosen,)


def test_local_hashing_has_few_buckets_whatever_epsilon0():
    # Counting takes a transform for each bucket.
    make = sdp.HeavyHitters(max_bytes=8, bits=4).candidates()["optimized-local-hashing"]
    assert make(3.0).num_buckets < make(9.0).num_buckets == make(20.0).num_buckets < 100
    assert make(20.0).epsilon0 < 5.0


def test_json_keeps_the_question_and_what_was_found():
    asked = sdp.HeavyHitters(max_bytes=9, most=7, bits=4, found=["a", "b"])
    assert sdp.HeavyHitters.from_json(asked.to_json_dict(), asked.labels) == asked


def test_one_value_is_checked_as_a_column_is():
    asked = sdp.HeavyHitters(max_bytes=3)
    assert asked.value_of_one("日").tolist() == ["日".encode()]
    for text in ("日本", "a\0"):  # "other"
        assert asked.value_of_one(text).tolist() == [b"\xff"]
    with pytest.raises(DataError, match="no answer"):
        asked.value_of_one("")


def test_nothing_of_a_single_histogram_but_its_blanket_is_accounted():
    # Explicit data of one histogram prove nothing of rounds whose bins follow from each other.
    for name, make in sdp.HeavyHitters(max_bytes=4).candidates().items():
        law = make(2.0)
        assert (law.name, law.profile.family) == (name, RandomizerFamily.OTHER)
        assert law.profile.blanket == law.base.profile.blanket != ()
        assert (law.profile.attack, law.profile.channel) == ((), None)


def test_estimates_need_all_rounds():
    asked = sdp.HeavyHitters(max_bytes=4)
    with pytest.raises(ParameterError, match="round by round"):
        asked.estimate(None, None, None)
    with pytest.raises(ParameterError, match="post_processing = clip"):
        asked.require_post_processing(("clip",))
    with pytest.raises(ParameterError, match="heavy-hitters"):
        sdp.deploy.AskedTerms.of(asked, "k-rr", 2.0)
