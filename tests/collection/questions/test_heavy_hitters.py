import math
from dataclasses import replace

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collection.questions.prefixes import codes, extensions
from shuffledp.collection.questions.rounds import DrawnRound
from shuffledp.core.errors import DataError, DomainError, ParameterError, ShuffledpError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Counts
from shuffledp.randomizers.base import error_at


def table_of(*texts, **reading):
    """Return texts as the source of a column."""
    from shuffledp.collection.source.tables import Reading, source_of_values

    return replace(source_of_values("text", texts), reading=Reading(**reading))


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_text_outside_is_in_no_bin(step):
    asked = sdp.HeavyHitters(max_bytes=2, most=9)
    column = asked.read(table_of("abc", "a\0", "ab", other=True))
    values = np.concatenate(list(column.blocks()))
    bins = extensions([b""], 0, step)
    assert codes(values, bins, step, 10**6).tolist()[:2] == [10**6 - 1] * 2
    start = {1: b"`", 2: b"a", 3: b"a`", 4: b"ab"}[step]  # "`" is the first half of "a" or "b"
    assert bins[codes(values, bins, step, 10**6)[2]] == start


@pytest.mark.parametrize("bits", [4, 8, 12, 16])
def test_a_prefix_has_a_text_of_the_asked_length(bits):
    asked = sdp.HeavyHitters(max_bytes=2, most=9, bits=bits)
    assert (bits == 16) == (asked.num_rounds == 1)
    left = [b""]
    for number in range(asked.num_rounds):
        bins = asked.bins_of(left, number).tolist()
        assert b"" < max(bins) < b"\xe0"  # of three bytes
        left = [bins[0], bins[-1]]


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
        assert asked.value_of_one(text).tolist() == [b"\x80"]
    with pytest.raises(DataError, match="no answer"):
        asked.value_of_one("")


def test_nothing_of_a_single_histogram_but_its_blanket_is_accounted():
    # Explicit data of one histogram prove nothing of rounds whose bins follow from each other.
    for name, make in sdp.HeavyHitters(max_bytes=4).candidates().items():
        law = make(2.0)
        assert (law.name, law.profile.family) == (name, RandomizerFamily.OTHER)
        assert law.profile.blanket == law.base.profile.blanket != ()
        assert (law.profile.attack, law.profile.channel) == ((), None)


def test_a_device_moves_a_share_as_one_of_those_with_a_part_in_the_round():
    asked = sdp.HeavyHitters(max_bytes=3, most=12, bits=8)
    law = DrawnRound(asked.candidates()["k-rr"](2.0).base)
    support = np.array([300, *[0] * (asked.num_bins - 1), 700])  # of whom 700 have no part
    counts = Counts(support=support, num_reports=1_000, fingerprint=law.fingerprint)
    influence = 1.0 + asked.num_bins / math.expm1(2.0)  # 1 / (p - q)
    assert asked.shift_by_one(law, 1_000, counts) == pytest.approx(influence / 300, rel=1e-9)
    users, law = 1_000 // asked.num_rounds, asked.candidates()["k-rr"](2.0)
    assert asked.expected_error(law, 1_000) == error_at(law.base, users, 0.0) > 0.0


def test_estimates_need_all_rounds():
    asked = sdp.HeavyHitters(max_bytes=4)
    with pytest.raises(ParameterError, match="round by round"):
        asked.estimate(None, None, None)
    with pytest.raises(ParameterError, match="post_processing = clip"):
        asked.require_post_processing(("clip",))
    with pytest.raises(ParameterError, match="heavy-hitters"):
        sdp.deploy.AskedTerms.of(asked, "k-rr", 2.0)
