"""Tables I to V of the paper, entry by entry, in exact fractions; two of them as corrected.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1. In Table III the middle entries of row bbb
are swapped (Table V has the same row right); in Table IV the middle entries of the middle rows are
divided by 3, and those rows do not sum to one.
"""

from fractions import Fraction

import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import (
    Channel,
    randomizer_channel,
    reduced_randomizer_channel,
    reduced_shuffle_channel,
    shuffle_channel,
)

TRUTHS = [Fraction(1, 2), Fraction(3, 5), Fraction(3, 4), Fraction(9, 10), Fraction(1)]

BY_COUNT = ["aaa", "aab", "aba", "baa", "abb", "bab", "bba", "bbb"]
BY_LETTER = ["aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb"]
HISTOGRAMS = [(3, 0), (2, 1), (1, 2), (0, 3)]

# Entries are numbered by the powers of p-bar: 0 for p^3, 1 for p^2 p-bar, and so on.
TABLE_1A = """
0 1 1 1 2 2 2 3
1 0 2 2 1 1 3 2
1 2 0 2 1 3 1 2
1 2 2 0 3 1 1 2
2 1 1 3 0 2 2 1
2 1 3 1 2 0 2 1
2 3 1 1 2 2 0 1
3 2 2 2 1 1 1 0
"""
# A third is marked by 3.
TABLE_1B = """
1 0 0 0 0 0 0 0
0 3 3 0 3 0 0 0
0 3 3 0 3 0 0 0
0 0 0 3 0 3 3 0
0 3 3 0 3 0 0 0
0 0 0 3 0 3 3 0
0 0 0 3 0 3 3 0
0 0 0 0 0 0 0 1
"""
TABLE_1C = """
1 0 0 0
0 1 0 0
0 1 0 0
0 0 1 0
0 1 0 0
0 0 1 0
0 0 1 0
0 0 0 1
"""
# K: (p^3 + 2 p p-bar^2)/3, M: (2 p^2 p-bar + p-bar^3)/3.
TABLE_2 = """
0 1 1 1 2 2 2 3
1 K K K M M M 2
1 K K K M M M 2
1 K K K M M M 2
2 M M M K K K 1
2 M M M K K K 1
2 M M M K K K 1
3 2 2 2 1 1 1 0
"""
# X: 3 p^2 p-bar, Y: 3 p p-bar^2, k and m: K and M times 3.
TABLE_5 = """
0 X Y 3
1 k m 2
1 k m 2
1 k m 2
2 m k 1
2 m k 1
2 m k 1
3 Y X 0
"""
TABLE_3_AS_PRINTED = TABLE_5.replace("3 Y X 0", "3 X Y 0")
TABLE_4 = """
0 X Y 3
1 k m 2
2 m k 1
3 Y X 0
"""
TABLE_4_AS_PRINTED = TABLE_4.replace("k", "K").replace("m", "M")


def rows(table, truth):
    """Return a table's entries for one truth probability."""
    p, q = truth, 1 - truth
    entries = {"0": p**3, "1": p**2 * q, "2": p * q**2, "3": q**3}
    entries |= {"X": 3 * p**2 * q, "Y": 3 * p * q**2}
    entries |= {"k": p**3 + 2 * p * q**2, "m": 2 * p**2 * q + q**3}
    entries |= {"K": entries["k"] / 3, "M": entries["m"] / 3}
    return [[entries[mark] for mark in line.split()] for line in table.split("\n") if line]


def numbers(table):
    """Return a table of zeros, ones and thirds."""
    values = {"0": Fraction(0), "1": Fraction(1), "3": Fraction(1, 3)}
    return [[values[mark] for mark in line.split()] for line in table.split("\n") if line]


def as_tuples(words):
    return [tuple("ab".index(letter) for letter in word) for word in words]


def entries(channel, inputs, outputs):
    """Return a channel's entries in the order of the paper."""
    return [
        [channel.matrix[channel.inputs.index(x), channel.outputs.index(y)] for y in outputs]
        for x in inputs
    ]


N, S_R = randomizer_channel, reduced_shuffle_channel(3, 2)
S = shuffle_channel(3, 2)


def test_table_1b_and_1c():
    words = as_tuples(BY_LETTER)
    assert entries(S, words, words) == numbers(TABLE_1B)
    assert entries(S_R, words, HISTOGRAMS) == numbers(TABLE_1C)


def test_the_text_on_the_shuffle_as_corrected():
    shuffled = dict(zip(S.outputs, S.matrix[S.inputs.index((0, 0, 1))], strict=True))
    third = Fraction(1, 3)  # Sec. II-D prints 1/3! each, which does not sum to one
    assert {y: p for y, p in shuffled.items() if p} == dict.fromkeys(
        as_tuples(["aab", "aba", "baa"]),  # Sec. III-B prints abb for aab
        third,
    )
    assert len(S.inputs) == 2**3  # Sec. V prints 2^8


@pytest.mark.parametrize("truth", TRUTHS)
class TestTables:
    def test_table_1a(self, truth):
        words = as_tuples(BY_COUNT)
        assert entries(N(3, 2, truth), words, words) == rows(TABLE_1A, truth)

    def test_table_2(self, truth):
        words = as_tuples(BY_COUNT)
        for cascade in (N(3, 2, truth) @ S, S @ N(3, 2, truth)):
            assert entries(cascade, words, words) == rows(TABLE_2, truth)

    def test_table_3_as_corrected(self, truth):
        words = as_tuples(BY_COUNT)
        found = entries(N(3, 2, truth) @ S_R, words, HISTOGRAMS)
        assert found == rows(TABLE_5, truth)
        # As printed its last row is not that of k-RR and shuffling, unless the two entries agree.
        assert (found == rows(TABLE_3_AS_PRINTED, truth)) == (truth in {Fraction(1, 2), 1})

    def test_table_4_as_corrected(self, truth):
        found = entries(reduced_randomizer_channel(3, 2, truth), HISTOGRAMS, HISTOGRAMS)
        assert found == rows(TABLE_4, truth)
        printed = rows(TABLE_4_AS_PRINTED, truth)
        assert [sum(row) for row in (printed[0], printed[3])] == [1, 1]
        lost = 1 - sum(printed[1])
        assert lost == 1 - sum(printed[2]) == Fraction(2, 3) * (found[1][1] + found[1][2])
        assert lost > Fraction(1, 3)
        with pytest.raises(
            ParameterError, match=r"row 1 of the channel sums to .*, not 1, off by -"
        ):
            Channel(printed)

    def test_table_5(self, truth):
        words = as_tuples(BY_COUNT)
        for cascade in (N(3, 2, truth) @ S_R, S_R @ reduced_randomizer_channel(3, 2, truth)):
            assert entries(cascade, words, HISTOGRAMS) == rows(TABLE_5, truth)


def test_the_captions():
    """For p = 0.75 the largest entry of Table V is p^3 + 2 p p-bar^2 and the smallest p-bar^3."""
    found = (N(3, 2, Fraction(3, 4)) @ S_R).matrix
    assert found.max() == Fraction(33, 64)  # 0.5156
    assert found.min() == Fraction(1, 64)  # 0.0156
