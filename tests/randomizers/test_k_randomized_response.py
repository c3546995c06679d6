import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import KRandomizedResponse
from shuffledp.randomizers.checks import LARGEST_K, code_type
from shuffledp.randomizers.k_randomized_response import histogram
from shuffledp.randomizers.registry import make_randomizer


class Scripted:
    """Hands out the words that it was given."""

    def __init__(self, words):
        self.remaining = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        taken, self.remaining = self.remaining[:count], self.remaining[count:]
        return taken


def oracle(randomizer, codes, words):
    """The law in plain integers: other symbol number w // T, counted from the one after it."""
    k, threshold = randomizer.domain_size, randomizer.threshold
    return [
        (code + 1 + min(word // threshold, k - 1)) % k
        for code, word in zip(codes, words, strict=True)
    ]


def edge_words(randomizer):
    """Words at and next to every place where the report changes (the first thousand of them)."""
    edges = [randomizer.threshold * j for j in range(min(randomizer.domain_size, 1000))]
    edges += [
        randomizer.threshold * (randomizer.domain_size - 1 - j)
        for j in range(min(randomizer.domain_size, 1000))
    ]
    near = {edge + step for edge in edges for step in (-1, 0, 1)} | {0, 2**64 - 1, 2**53 + 1}
    return sorted(word for word in near if 0 <= word < 2**64)


@pytest.mark.parametrize(
    ("k", "epsilon0"),
    [
        *itertools.product((2, 3, 16, 257, 1024, 10_000_000), (0.01, 1.0, 8.0, 30.0, 60.0)),
        *itertools.product((LARGEST_K,), (3.0, 30.0, 60.0)),
    ],
)
def test_reports_are_those_of_plain_integers(k, epsilon0):
    randomizer = KRandomizedResponse(domain_size=k, epsilon0=epsilon0)
    words = edge_words(randomizer) + Entropy.from_seed(1).words(1000).tolist()
    codes = [(position * 7919) % k for position in range(len(words))]
    found = randomizer.randomize(np.array(codes), Scripted(words))
    assert found.data.dtype == code_type(k)
    assert found.data.tolist() == oracle(randomizer, codes, words)


def test_each_symbol_has_exactly_its_number_of_words():
    # Counting the words that lead to each report, without drawing them all: reports change only
    # at multiples of T, which the test above pins down.
    randomizer = KRandomizedResponse(domain_size=5, epsilon0=1.0)
    threshold = randomizer.threshold
    starts = [j * threshold for j in range(5)]
    ends = [*starts[1:], 2**64]
    reports = randomizer.randomize(np.full(5, 3), Scripted(starts)).data.tolist()
    words = {report: ends[i] - starts[i] for i, report in enumerate(reports)}
    assert [Fraction(words[y], 2**64) for y in range(5)] == list(randomizer.channel()[3])


@pytest.mark.parametrize("k", [2, 3, 7, 16, 10_000_000, 3_000_000_001])
@pytest.mark.parametrize("epsilon0", [0.0, 1e-19])
def test_near_zero_the_report_ignores_the_truth(k, epsilon0):
    randomizer = KRandomizedResponse(domain_size=k, epsilon0=epsilon0)
    assert randomizer.epsilon0 == 0.0
    assert randomizer.profile.epsilon0 == 0.0
    assert randomizer.support_probabilities == (1 / k, 1 / k)
    words = [0, 1, k - 1, k, 2**63, 2**64 - 1]
    reports = [
        randomizer.randomize(np.full(len(words), code), Scripted(words)).data.tolist()
        for code in (0, 1, k - 1)
    ]
    assert reports == [[word % k for word in words]] * 3


def test_ten_million_categories_keep_the_promise_where_words_are_coarse():
    # Neighbouring thresholds differ by k^2 / 2^64 = 5.4e-6 in epsilon0 here, and the law that
    # ignores its input stands for the first step too.
    for asked in (0.0, 1e-9, 5e-6, 1.1e-5, 1.0):
        randomizer = KRandomizedResponse(domain_size=10_000_000, epsilon0=asked)
        assert asked - 1.1e-5 <= randomizer.epsilon0 <= asked
    assert KRandomizedResponse(domain_size=10_000_000, epsilon0=1.1e-5).epsilon0 > 0.0


def test_ten_million_categories_are_counted():
    k = 10_000_000
    randomizer = KRandomizedResponse(domain_size=k, epsilon0=60.0)
    codes = np.array([0, k - 1, k - 1, 5])
    counts = randomizer.aggregate(randomizer.randomize(codes, Entropy.from_seed(2)))
    assert np.flatnonzero(counts.support).tolist() == [0, 5, k - 1]
    assert counts.support[k - 1] == 2


@pytest.mark.parametrize("k", [2, 256, 257, 10_000, 70_000])
def test_counting_agrees_with_bincount(k):
    randomizer = KRandomizedResponse(domain_size=k, epsilon0=0.5)
    for num_users in (1, 2, 3, 5, 40_001):
        reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(num_users))
        expected = np.bincount(reports.data, minlength=k)
        assert np.array_equal(randomizer.aggregate(reports).support, expected)


def test_blocks_join_without_a_seam():
    randomizer = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    codes = np.arange(100_000) % 3
    words = Entropy.from_seed(3).words(codes.size)
    found = randomizer.randomize(codes, Scripted(words)).data
    assert found.tolist() == oracle(randomizer, codes.tolist(), words.tolist())


def test_one_word_a_report():
    entropy = Scripted(range(100))
    KRandomizedResponse(domain_size=3, epsilon0=1.0).randomize(np.zeros(10, dtype=int), entropy)
    assert entropy.remaining[0] == 10


def test_saturation():
    randomizer = KRandomizedResponse(domain_size=16, epsilon0=60.0)
    assert randomizer.threshold == 1
    assert randomizer.epsilon0 == pytest.approx(64 * math.log(2), rel=1e-15)
    assert randomizer == KRandomizedResponse(domain_size=16, epsilon0=1e9)


def test_warner_is_the_binary_case():
    randomizer = KRandomizedResponse(domain_size=2, epsilon0=math.log(3))
    p, q = randomizer.support_probabilities
    assert (p, q) == pytest.approx((0.75, 0.25))
    assert randomizer.profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE
    assert len(randomizer.profile.blanket) == 2


def test_law_of_blanket_differences_has_mean_one_minus_e():
    # theory: the law of G has E[G] = 1 - e for every e, in both directions.
    for k, e in itertools.product((2, 3, 1024), (0.5, 1.0, 2.0)):
        atoms = KRandomizedResponse(domain_size=k, epsilon0=1.0).profile.blanket
        mean = sum(atom.mass * (atom.ratio0 - e * atom.ratio1) for atom in atoms)
        assert mean == pytest.approx(1 - e, abs=1e-12)


@pytest.mark.parametrize("name", ["k-rr", "hadamard-response", "optimized-local-hashing"])
def test_counting_needs_less_than_a_byte_a_report(name):
    randomizer = make_randomizer(name, domain_size=16, epsilon0=2.0)
    reports = randomizer.randomize(np.zeros(8_000_000, dtype=np.int64), Entropy.from_seed(1))
    randomizer.aggregate(reports)  # imports and compiled loops are in memory from here on
    tracemalloc.start()
    try:
        randomizer.aggregate(reports)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**19, 2**19 + 1, 2**20 + 7])
@pytest.mark.parametrize("num_codes", [3, 256])
def test_codes_are_counted_in_pairs_as_one_by_one(size, num_codes):
    drawn = Entropy.from_seed(7).generator().integers(0, num_codes, 2 * size).astype(np.uint8)
    for codes in (drawn[:size], drawn[::2], drawn[:size].astype(np.uint16)):
        assert np.array_equal(histogram(codes, num_codes), np.bincount(codes, minlength=num_codes))


def test_without_noise_reports_are_the_values():
    bare = KRandomizedResponse(domain_size=3, epsilon0=math.inf)
    values = np.array([0, 2, 1, 1])
    reports = bare.randomize(values, Entropy.from_seed(1))
    assert reports.data.tolist() == values.tolist()
    assert (bare.threshold, bare.epsilon0, bare.profile.epsilon0) == (0, math.inf, math.inf)
    assert bare.support_probabilities == (1.0, 0.0)
    assert bare.channel() == ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    assert bare.estimate(reports).frequency.tolist() == [0.25, 0.5, 0.25]
    assert KRandomizedResponse(domain_size=3, epsilon0=bare.epsilon0) == bare
