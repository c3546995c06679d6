"""A source of randomness whose words are written down, and laws counted from what it leads to."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np

from shuffledp.core.entropy import Entropy

WORDS = 2**64
LARGEST = WORDS - 1


class ScriptedWords:
    """Hands out the words that a test has chosen, in their order, and no more."""

    def __init__(self, words):
        self._words = [int(word) for word in words]

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count, "more words were asked for than there are"
        return np.array(taken, dtype=np.uint64)


class Tape:
    """Hands out the words that it was given, in order, and then those of a seeded stream.

    It stands in for `Entropy`. The stream behind the tape ends rejection loops that would otherwise
    go on for ever on a tape that is rejected throughout.
    """

    def __init__(self, words, seed=1):
        self._words = np.array(words, dtype=np.uint64).reshape(-1)
        self._rest = Entropy.from_seed(seed)
        self.used = 0

    def words(self, count):
        """Return the next words."""
        held = self._words[self.used : self.used + count]
        self.used += count
        return np.concatenate([held, self._rest.words(count - held.size)])

    def spawn(self):
        """Return a stream of its own."""
        return self._rest.spawn()

    @property
    def num_left(self):
        """Words of the tape that nobody asked for."""
        return max(self._words.size - self.used, 0)


def edges(*borders):
    """Return the words at, just below and just above each border, and both ends of all words."""
    near = {border + offset for border in borders for offset in (-1, 0, 1)}
    return sorted(word for word in near | {0, LARGEST} if 0 <= word <= LARGEST)


def cells(*borders):
    """Return first and last word, and size, of each cell between borders, as whole numbers."""
    ends = sorted({0, WORDS, *borders})
    return [(first, last - 1, last - first) for first, last in itertools.pairwise(ends)]


def leading_cells(bound):
    """Return first and last word of each value below ``bound`` that the leading bits of words give.

    As many for each; the words from the last on are refused.
    """
    shift = 64 - (bound - 1).bit_length()
    return [(value << shift, (value + 1 << shift) - 1) for value in range(bound)]


def uniform_cells(bound, num_words):
    """Return first and last accepted word of each value below ``bound``, drawn by Lemire's method.

    They are as many for each value, floor(words / bound): asserted here, in whole numbers.
    """
    surplus = num_words % bound
    found = []
    for value in range(bound):
        first = -(-(value * num_words + surplus) // bound)
        last = -(-(value + 1) * num_words // bound) - 1
        assert last - first + 1 == num_words // bound
        found.append((first, last))
    return found


def drawn_law(draw, *choices):
    """Return the law of the report that ``draw`` makes of words, one of each choice.

    A choice is a list of (first word, last word, weight). Each cell's two ends are drawn with, in
    all combinations, and must make the same report.
    """
    combinations = list(itertools.product(*choices))
    num_ends = 2 ** len(choices)
    tape = [
        [cell[end] for cell, end in zip(combination, ends, strict=True)]
        for combination in combinations
        for ends in itertools.product((0, 1), repeat=len(choices))
    ]
    reports = draw(np.array(tape, dtype=np.uint64))
    law = Counter()
    for i, combination in enumerate(combinations):
        made = set(reports[i * num_ends : (i + 1) * num_ends])
        assert len(made) == 1, combination
        law[made.pop()] += math.prod(cell[2] for cell in combination)
    return law


def assert_is_row(law, row, reports):
    """Fail unless the drawn law is the row of a channel whose columns stand for ``reports``."""
    total = sum(law.values())
    assert set(law) <= set(reports)
    assert [Fraction(law[report], total) for report in reports] == list(row)
