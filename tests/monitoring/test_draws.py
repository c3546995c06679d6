"""Keys are drawn from exactly the law that is accounted: bijections, words, and frequencies."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.signs import (
    SIGN_LAWS,
    PatternSet,
    PredrawnSigns,
    SampledChange,
    draw_below,
    sign_law,
)

# Of all tests of this module together, were the laws drawn right.
FALSE_POSITIVE_RATE = 1e-10
NUM_TESTS = 10

NUM_DRAWS = 400_000


class ScriptedWords:
    """Hands out the words that a test has chosen, in their order, and no more."""

    def __init__(self, words):
        self._words = [int(word) for word in words]

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count, "more words were asked for than there are"
        return np.array(taken, dtype=np.uint64)


# Exact parts.


@given(bound=st.integers(2, 200))
def test_each_number_below_the_bound_has_the_same_number_of_words(bound):
    # Each value of the leading bits once: what is not below the bound is drawn anew, here as 0.
    bits = (bound - 1).bit_length()
    words = [value << (64 - bits) for value in range(2**bits)]
    spare = [0] * (2**bits - bound)
    drawn = draw_below(ScriptedWords([*words, *spare]), len(words), bound)
    assert drawn.tolist() == [*range(bound), *spare]


def test_what_is_drawn_anew_may_be_refused_again():
    words = [0b11 << 62, 0b01 << 62, 0b11 << 62, 0b10 << 62]
    assert draw_below(ScriptedWords(words), 2, 3).tolist() == [2, 1]


@pytest.mark.parametrize("bound", [2**62, 2**63])
def test_bounds_that_are_powers_of_two_refuse_nothing(bound):
    words = [2**64 - 1, 0, 2**63]
    shift = 64 - (bound - 1).bit_length()
    assert draw_below(ScriptedWords(words), 3, bound).tolist() == [w >> shift for w in words]


@given(num_signs=st.integers(1, 9), data=st.data())
def test_numbers_are_patterns_one_to_one(num_signs, data):
    allowed = data.draw(st.sets(st.integers(0, num_signs), min_size=1))
    patterns = PatternSet(num_signs=num_signs, allowed=allowed)
    expected = [each for each in range(2**num_signs) if each.bit_count() in allowed]
    assert patterns.num_patterns == len(expected)
    unranked = patterns.unrank(np.arange(len(expected), dtype=np.uint64))
    assert sorted(unranked.tolist()) == expected


def test_patterns_of_62_signs():
    everything = PatternSet(num_signs=62, allowed=range(63))
    assert everything.num_patterns == 2**62
    ranks = np.array([0, 1, 2**61, 2**62 - 1], dtype=np.uint64)
    assert everything.unrank(ranks).tolist() == [0, 2**61, 1, 2**62 - 1]
    middle = PatternSet(num_signs=62, allowed=[31])
    assert middle.num_patterns == comb(62, 31)
    ends = middle.unrank(np.array([0, comb(62, 31) - 1], dtype=np.uint64))
    assert ends.tolist() == [(2**31 - 1) << 31, 2**31 - 1]


def test_many_patterns_at_a_time_are_those_of_few():
    patterns = PatternSet(num_signs=20, allowed=range(5))
    whole = patterns.draw(Entropy.from_seed(3), 50_000)
    ranks = draw_below(Entropy.from_seed(3), 50_000, patterns.num_patterns)
    assert (whole == patterns.unrank(ranks)).all()


@pytest.mark.parametrize("num_signs", [0, 63])
def test_signs_must_fit_a_word(num_signs):
    with pytest.raises(ParameterError, match="num_signs"):
        PatternSet(num_signs=num_signs, allowed=[0])


@pytest.mark.parametrize("allowed", [(), (4,), (-1,)])
def test_some_pattern_must_be_allowed(allowed):
    with pytest.raises(ParameterError, match="allowed"):
        PatternSet(num_signs=3, allowed=allowed)


def test_the_coin_falls_at_its_threshold():
    # The first words are the coins, the next the uniform patterns, the last the likely ones.
    law = PredrawnSigns(max_changes=3, epsilon0=1.0)
    threshold = law.coin_threshold
    assert law.radius == 1
    coins = [threshold - 1, threshold, 0, 2**64 - 1]
    uniform = [0b111 << 61, 0b110 << 61, 0, 0b101 << 61]
    likely = [0, 3 << 62]  # numbers 0 and 3 of the 4 patterns with at most one minus
    keys = law.draw_keys(ScriptedWords([*coins, *uniform, *likely]), 4)
    assert keys.tolist() == [0b000, 0b110, 0b001, 0b101]


def test_the_change_that_counts_is_numbered_from_one():
    law = SampledChange(max_changes=4, epsilon0=1.0)
    words = [number << 62 for number in range(4)]
    assert law.draw_keys(ScriptedWords(words), 4).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", SIGN_LAWS)
def test_there_may_be_no_client(name):
    keys = sign_law(name, max_changes=5, epsilon0=1.0).draw_keys(Entropy.from_seed(0), 0)
    assert (keys.shape, keys.dtype) == ((0,), np.uint64)


# Frequencies, with negative controls.


def is_rejected(counts, probabilities):
    """Return whether counts of some events are not those of a law, by exact binomial tails.

    The events may overlap: each of them gets an equal share of the false-positive rate.
    """
    level = FALSE_POSITIVE_RATE / NUM_TESTS / len(counts)
    tails = (
        2 * min(binom.cdf(count, NUM_DRAWS, p), binom.sf(count - 1, NUM_DRAWS, p))
        for count, p in zip(counts, probabilities, strict=True)
    )
    return min(tails) < level


def grouped(cells, k):
    """Return sums for each pattern, for i minus signs in all, and for sign j being minus."""
    by_number = [sum(cells[p] for p in range(2**k) if p.bit_count() == i) for i in range(k + 1)]
    by_place = [sum(cells[p] for p in range(2**k) if p >> j & 1) for j in range(k)]
    return [*cells, *by_number, *by_place]


def pattern_counts(keys, k):
    return grouped(np.bincount(keys.astype(np.int64), minlength=2**k).tolist(), k)


def pattern_law(law):
    signs, k = law.signs, law.max_changes
    cells = [Fraction(signs.weights[p.bit_count()], signs.total) for p in range(2**k)]
    return [float(each) for each in grouped(cells, k)]


@pytest.mark.parametrize(("k", "epsilon0"), [(1, 0.5), (3, 1.0), (4, 3.0), (6, 8.0)])
def test_patterns_have_the_accounted_frequencies(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    counts = pattern_counts(law.draw_keys(Entropy.from_seed(k), NUM_DRAWS), k)
    assert not is_rejected(counts, pattern_law(law))


def minus_law(law):
    signs = law.signs
    return [comb(62, i) * weight / signs.total for i, weight in enumerate(signs.weights)]


@pytest.mark.parametrize("epsilon0", [1.0, 30.0])
def test_numbers_of_minus_signs_of_long_patterns(epsilon0):
    law = PredrawnSigns(max_changes=62, epsilon0=epsilon0)
    keys = law.draw_keys(Entropy.from_seed(62), NUM_DRAWS)
    counts = np.bincount([int(key).bit_count() for key in keys], minlength=63)
    assert not is_rejected(counts, minus_law(law))


def test_each_place_of_long_patterns_has_the_gap():
    law = PredrawnSigns(max_changes=62, epsilon0=5.0)
    keys = law.draw_keys(Entropy.from_seed(1), NUM_DRAWS)
    counts = [int((keys >> np.uint64(place) & np.uint64(1)).sum()) for place in range(62)]
    assert not is_rejected(counts, [(1 - law.gap) / 2] * 62)


@pytest.mark.parametrize("k", [3, 40])
def test_the_change_that_counts_is_uniform(k):
    law = SampledChange(max_changes=k, epsilon0=1.0)
    keys = law.draw_keys(Entropy.from_seed(k), NUM_DRAWS).astype(np.int64)
    assert not is_rejected(np.bincount(keys, minlength=k + 1)[1:], [1 / k] * k)


def exact_radius_only(law, generator):
    """Draw likely patterns with exactly tau minus signs: a ball taken for a sphere."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    sphere = [sum(1 << i for i in each) for each in combinations(range(4), law.radius)]
    likely = generator.random(NUM_DRAWS) < law.coin_threshold / 2**64
    keys[likely] = generator.choice(sphere, size=int(likely.sum()))
    return keys


def slightly_weaker_coin(law, generator):
    """Draw every fiftieth key uniformly instead."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    keys[::50] = generator.integers(0, 16, size=keys[::50].size)
    return keys


def places_in_favour(law, generator):
    """Draw minus signs that prefer the first places."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    moved = generator.random(NUM_DRAWS) < 0.2
    return np.where(moved & (keys == 8), np.uint64(1), keys)


def never_all_minus(law, _generator):
    """Draw no pattern of minus signs alone: what cannot be drawn costs an infinite loss."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    return np.where(keys == 15, np.uint64(7), keys)


@pytest.mark.parametrize(
    "flawed",
    [
        exact_radius_only,
        slightly_weaker_coin,
        places_in_favour,
        never_all_minus,
    ],
)
def test_planted_flaws_are_found(flawed):
    law = PredrawnSigns(max_changes=4, epsilon0=3.0)
    keys = flawed(law, Entropy.from_seed(5).generator())
    assert is_rejected(pattern_counts(keys, 4), pattern_law(law))


def test_another_epsilon0_is_found():
    drawn = PredrawnSigns(max_changes=4, epsilon0=3.1)
    keys = drawn.draw_keys(Entropy.from_seed(5), NUM_DRAWS)
    claimed = PredrawnSigns(max_changes=4, epsilon0=3.0)
    assert is_rejected(pattern_counts(keys, 4), pattern_law(claimed))
