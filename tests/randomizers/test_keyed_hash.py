import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.randomizers.keyed_hash import (
    BUCKETS,
    LONGEST_TEXT_BYTES,
    TEXTS,
    buckets_of,
    derived_words,
    digests_of,
    new_key,
)
from shuffledp.randomizers.randomizer_kernels import hash_texts

WORD = 2**64 - 1
KEY = bytes(range(16))


def siphash(message, key):
    """Return SipHash-2-4, written from the paper's description in plain integers."""

    def rotate(word, places):
        return (word << places | word >> (64 - places)) & WORD

    def rounds(v, count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & WORD
            v[2] = (v[2] + v[3]) & WORD
            v[1] = rotate(v[1], 13) ^ v[0]
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[1]) & WORD
            v[0] = (v[0] + v[3]) & WORD
            v[1] = rotate(v[1], 17) ^ v[2]
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    start = b"somepseudorandomlygeneratedbytes"
    k = [int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")]
    v = [int.from_bytes(start[8 * i : 8 * i + 8], "big") ^ k[i % 2] for i in range(4)]
    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for at in range(0, len(padded), 8):
        block = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= block
        rounds(v, 2)
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def as_key(words):
    return b"".join(int(word).to_bytes(8, "little") for word in words)


def hash_of(message, key=KEY):
    out = np.empty(1, dtype=np.uint64)
    buffer = np.frombuffer(message + b"\0", dtype=np.uint8)
    hash_texts(*np.frombuffer(key, dtype="<u8"), buffer, np.array([len(message)]), out)
    return int(out[0])


def test_the_published_vector():
    message = bytes(range(15))
    assert hash_of(message) == siphash(message, KEY) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("length", [*range(70), 255, 256, 257, 1000])
def test_every_length_is_as_in_plain_integers(length):
    message = Entropy.from_seed(length).words(125).tobytes()[:length]
    assert hash_of(message) == siphash(message, KEY)


@given(texts=st.lists(st.text(max_size=30), max_size=20), key=st.binary(min_size=16, max_size=16))
def test_digests_are_hashes_of_the_bytes(texts, key):
    words = as_key(derived_words(key, TEXTS))
    expected = [siphash(text.encode(), words) for text in texts]
    assert digests_of(texts, key).tolist() == expected
    assert digests_of(tuple(texts), key).tolist() == expected
    assert digests_of(pl.Series(texts, dtype=pl.String), key).tolist() == expected
    assert digests_of(np.array([*texts, None], dtype=object)[:-1], key).tolist() == expected


def test_arrays_of_strings_and_categories_are_taken_too():
    texts = ["a", "", "ä", "abcdefgh", "a"]
    expected = digests_of(texts, KEY).tolist()
    assert digests_of(np.array(texts), KEY).tolist() == expected
    assert digests_of(np.array(texts, dtype=np.dtypes.StringDType()), KEY).tolist() == expected
    assert digests_of(pl.Series(texts, dtype=pl.Categorical), KEY).tolist() == expected
    assert digests_of(pl.Series(texts, dtype=pl.Enum(texts[:-1])), KEY).tolist() == expected
    # A slice of a column, and one made of several chunks.
    assert digests_of(pl.Series(["z", *texts]).slice(1), KEY).tolist() == expected
    in_chunks = pl.Series(texts[:2]).append(pl.Series(texts[2:]))
    assert digests_of(in_chunks, KEY).tolist() == expected


@pytest.mark.parametrize("as_series", [False, True])
def test_blocks_make_no_difference(as_series):
    texts = [str(i) for i in range(2**16 + 3)]
    given_texts = pl.Series(texts) if as_series else texts
    digests = digests_of(given_texts, KEY)
    some = [0, 2**16 - 1, 2**16, 2**16 + 2]
    assert digests[some].tolist() == digests_of([texts[i] for i in some], KEY).tolist()
    assert np.unique(digests).size == digests.size


def test_buckets_are_low_bits_of_the_hash_of_digest_and_number():
    digests = Entropy.from_seed(1).words(50)
    hashes = np.arange(50, dtype=np.uint64)
    buckets = buckets_of(digests, hashes, key=KEY, num_buckets=64)
    words = as_key(derived_words(KEY, BUCKETS))
    assert buckets.tolist() == [
        siphash(as_key([digest, j]), words) % 64 for j, digest in enumerate(digests.tolist())
    ]


def test_no_texts_have_no_digests():
    for empty in ([], (), np.array([]), np.array([], dtype=object), pl.Series([], dtype=pl.String)):
        assert digests_of(empty, KEY).shape == (0,)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], r"values\[1\] is of type NoneType"),
        (["a", "b", b"c"], r"values\[2\] is of type bytes"),
        (np.array(["a", 1.5], dtype=object), r"values\[1\] is of type float"),
        (pl.Series(["a", "b", None]), r"values\[2\] is of type NoneType"),
        (["a", "\ud800"], r"values\[1\] has a lone surrogate"),
        (["a", "é" * (LONGEST_TEXT_BYTES // 2 + 1)], rf"values\[1\] has {LONGEST_TEXT_BYTES + 2}"),
        (pl.Series(["a", "b" * (LONGEST_TEXT_BYTES + 1)]), r"values\[1\] has"),
        (["a"] * 2**16 + [None], r"values\[65536\] is of type NoneType"),
    ],
)
def test_what_is_not_a_text_is_named_by_its_position(texts, message):
    with pytest.raises(DomainError, match=message):
        digests_of(texts, KEY)


def test_the_longest_text_is_taken():
    text = "b" * LONGEST_TEXT_BYTES
    assert digests_of([text], KEY).tolist() == [
        siphash(text.encode(), as_key(derived_words(KEY, TEXTS)))
    ]


@pytest.mark.parametrize(
    "texts",
    [
        "one text",
        b"bytes",
        7,
        iter(["a"]),
        {"a"},
        np.array([1, 2]),
        np.array([["a"]]),
        np.array([np.nan]),
        pl.DataFrame({"a": ["b"]}),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_other_types_are_refused(texts):
    with pytest.raises(ParameterError, match="values is"):
        digests_of(texts, KEY)


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(17), "0" * 16, None, bytearray(16)])
def test_other_keys_are_refused(key):
    with pytest.raises(ParameterError, match=r"key is .* not 16 bytes"):
        digests_of(["a"], key)


def test_new_keys_differ_and_can_be_reproduced():
    assert len({new_key(Entropy.from_operating_system()) for _ in range(9)}) == 9
    assert new_key(Entropy.from_seed(1)) == new_key(Entropy.from_seed(1))
    assert derived_words(KEY, TEXTS) != derived_words(KEY, BUCKETS)
