import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import OptimizedUnaryEncoding, Reports, SymmetricUnaryEncoding
from shuffledp.randomizers.unary_encoding import (
    bernoulli_lanes,
    bytes_per_row,
    column_sums,
    require_rows,
)


class Scripted:
    """Hands out the words that it was given, and counts them."""

    def __init__(self, words):
        self.given = np.asarray(words, dtype=np.uint64)
        self.used = 0

    def words(self, count):
        self.used += count
        return self.given[self.used - count : self.used]


@pytest.mark.parametrize(
    "threshold",
    [1, 2, 3, 2**63, 2**63 - 1, 2**62, 5 << 61, 0x2E8BA2E8BA2E8BA3, 2**64 // 149, 2**40 + 1],
)
def test_bits_are_those_of_plain_integers(threshold):
    script = Scripted(Entropy.from_seed(1).words(64 * 30))
    lanes = bernoulli_lanes(30, threshold, script)
    digits = script.given.reshape(64, 30)  # of each number, the most significant first
    for lane in range(30):
        numbers = [0] * 64
        for word in digits[:, lane].tolist():
            numbers = [2 * w + (word >> position & 1) for position, w in enumerate(numbers)]
        # Digits that were not drawn cannot matter.
        assert int(lanes[lane]) == sum((w < threshold) << i for i, w in enumerate(numbers))
    # A digit settles half of what is left; those of T beyond its last 1 are never drawn.
    last = 64 - (threshold & -threshold).bit_length() + 1
    assert 30 <= script.used <= 30 * min(last, 40)


@pytest.mark.parametrize("numerator", range(1, 9))
def test_all_words_of_four_digits_give_exactly_the_probability(numerator):
    # Bit i holds the number whose digits are the binary digits of i mod 16: every four-digit number
    # four times, so that exactly 4 * numerator of them lie below T = numerator / 16.
    digits = [sum((i >> (3 - j) & 1) << i for i in range(64)) for j in range(4)]
    (lane,) = bernoulli_lanes(1, numerator << 60, Scripted(digits + [0] * 60)).tolist()
    assert [lane >> i & 1 for i in range(64)] == [i % 16 < numerator for i in range(64)]


def test_a_stubborn_word_takes_all_digits():
    threshold = 2**63 - 1
    script = Scripted([0] + [2**64 - 1] * 63)  # T itself, in all positions: not below
    assert bernoulli_lanes(1, threshold, script).tolist() == [0]
    assert script.used == 64


@pytest.mark.parametrize("k", [2, 8, 9, 63, 64, 100, 1000, 1024, 5000])
@pytest.mark.parametrize("num_rows", [0, 1, 3, 64, 1000])
def test_counting_agrees_with_unpacked_bits(k, num_rows):
    rows = Entropy.from_seed(k).generator().integers(0, 256, (num_rows, bytes_per_row(k)), np.uint8)
    if k % 8:
        rows[:, -1] &= (1 << k % 8) - 1
    expected = np.unpackbits(rows, axis=1, bitorder="little")[:, :k].sum(axis=0)
    assert column_sums(rows)[:k].tolist() == expected.tolist()


@pytest.mark.parametrize("num_rows", [254, 255, 256, 510, 4096 * 32 + 17])
def test_counters_are_emptied_before_they_overflow(num_rows):
    rows = np.full((num_rows, 16), 255, dtype=np.uint8)
    assert set(column_sums(rows).tolist()) == {num_rows}


def test_rows_at_an_odd_address_are_counted():
    padded = np.zeros(1 + 3 * 1000, dtype=np.uint8)
    padded[1::3] = 1
    rows = padded[1:].reshape(1000, 3)
    assert column_sums(rows).tolist() == [1000] + [0] * 23


def test_a_bit_beyond_the_domain_is_found():
    rows = np.zeros((1000, 2), dtype=np.uint8)
    rows[777, 1] = 1 << 2
    with pytest.raises(DomainError, match="report 777 has a bit set beyond category 9"):
        require_rows(Reports(data=rows, fingerprint=""), k=10, fingerprint="")


@pytest.mark.parametrize("k", [3, 16, 1000])
def test_true_bits_are_written_once_to_each_row(k):
    codes = np.arange(70_000) % k
    randomizer = SymmetricUnaryEncoding(domain_size=k, epsilon0=100.0)
    assert randomizer.threshold == 1
    rows = randomizer.randomize(codes, Entropy.from_seed(1)).data
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    assert np.array_equal(bits.argmax(axis=1), codes)
    assert bits.sum() == codes.size  # T = 1: a noise bit has probability 2^-64


def test_closed_form_probabilities_of_symmetric_encoding():
    randomizer = SymmetricUnaryEncoding(domain_size=10, epsilon0=2 * math.log(3))
    assert randomizer.support_probabilities == pytest.approx((0.75, 0.25))
    assert randomizer.profile.family is RandomizerFamily.SYMMETRIC_UNARY


def test_noise_is_the_same_for_every_truth():
    # report = noise XOR one-hot, so two truths with the same words differ in exactly two bits.
    randomizer = SymmetricUnaryEncoding(domain_size=16, epsilon0=1.0)
    first, second = (
        np.unpackbits(
            randomizer.randomize(np.full(500, code), Entropy.from_seed(1)).data,
            axis=1,
            bitorder="little",
        )
        for code in (3, 11)
    )
    assert np.flatnonzero((first != second).all(axis=0)).tolist() == [3, 11]
    assert (first != second).sum() == 2 * 500


def test_saturation_of_symmetric_encoding():
    randomizer = SymmetricUnaryEncoding(domain_size=3, epsilon0=1e6)
    assert randomizer.threshold == 1
    assert randomizer.epsilon0 == pytest.approx(128 * math.log(2), rel=1e-15)


def test_blanket_of_a_large_domain_has_no_all_ones_report():
    atoms = SymmetricUnaryEncoding(domain_size=10**6, epsilon0=1.0).profile.blanket
    assert len(atoms) == 4
    assert sum(atom.mass * atom.ratio0 for atom in atoms) == pytest.approx(1.0, rel=1e-12)


def test_closed_form_probabilities():
    randomizer = OptimizedUnaryEncoding(domain_size=10, epsilon0=math.log(3))
    assert randomizer.support_probabilities == pytest.approx((0.5, 0.25))
    assert randomizer.profile.family is RandomizerFamily.OPTIMIZED_UNARY


def test_the_true_bit_is_a_coin_of_its_own():
    # With the same words, moving the truth changes at most the two bits concerned.
    randomizer = OptimizedUnaryEncoding(domain_size=16, epsilon0=1.0)
    first, second = (
        np.unpackbits(
            randomizer.randomize(np.full(5000, code), Entropy.from_seed(1)).data,
            axis=1,
            bitorder="little",
        )
        for code in (3, 11)
    )
    assert np.flatnonzero((first != second).any(axis=0)).tolist() == [3, 11]
    assert np.array_equal(first[:, 3], second[:, 11])  # the coin


def test_saturation():
    randomizer = OptimizedUnaryEncoding(domain_size=3, epsilon0=1e6)
    assert randomizer.threshold == 1
    assert randomizer.epsilon0 == pytest.approx(64 * math.log(2), rel=1e-15)


def test_blanket_of_a_large_domain_is_the_one_of_the_literature():
    # theory 2.3, "OUE, large k", with p = e^epsilon0.
    p = round(math.exp(1.0), 12)
    atoms = {
        (round(atom.ratio0, 12), round(atom.ratio1, 12)): atom.mass
        for atom in OptimizedUnaryEncoding(domain_size=10**6, epsilon0=1.0).profile.blanket
    }
    assert atoms == pytest.approx(
        {
            (p, 1.0): 1 / (2 * (p + 1)),
            (1.0, p): 1 / (2 * (p + 1)),
            (p, p): 1 / (2 * p * (p + 1)),
            (1.0, 1.0): p / (2 * (p + 1)),
        }
    )
