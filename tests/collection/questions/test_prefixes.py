import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collection.questions.prefixes import codes, extensions, num_bytes, whole_text


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


@pytest.mark.parametrize("text", ["\1", "a", "é", "日", "😀", "a日", "ab"])
def test_a_prefix_has_the_length_of_its_shortest_text(text):
    depths = range(2 * len(text.encode()) + 1)
    begun = len(text) - 1  # bytes before the last character
    expected = [max(1, (d + 1) // 2) if d <= 2 * begun else len(text.encode()) for d in depths]
    assert [num_bytes(padded(text, d)) for d in depths] == expected


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
    """Return ``depth`` half bytes of a text, filled up with zeros."""
    digits = text.encode().hex().ljust(depth, "0")[:depth]
    return bytes.fromhex(digits + "0" * (depth % 2))
