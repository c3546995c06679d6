"""The epsilon0 that a randomizer states: at most what was asked, at least the law's, and fixed.

The law's own loss is worked out from the whole numbers that are drawn with, to 60 digits.
"""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from adversarial import laws
from laws_of_numbers import coarse
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

WORDS = 2**64

# Ten thousand draws of each were tried when this was written; these take half a second each.
TRIALS = 400

# Around zero, thresholds' resolution, saturation and overflow.
SPECIAL = (0.0, 5e-324, 2.3e-308, 1e-20, 2.0**-64, 1.1e-19, 2.0**-63, 44.36, 44.361419511475084)
LARGE = (60.0, 88.7, 88.722839111673, 99.99, 100.0, 1e300, 1.7e308)


def losses(generator, count):
    """Return epsilon0s to ask for, on all scales."""
    chosen = generator.choice([*SPECIAL, *LARGE], count // 8)
    tiny = 10.0 ** generator.uniform(-22.0, -1.0, count // 4)
    usual = generator.uniform(0.0, 12.0, count - count // 8 - count // 4 - count // 8)
    return np.concatenate([chosen, tiny, usual, generator.uniform(12.0, 100.0, count // 8)])


def sizes(generator, count):
    """Return numbers of categories, small ones and all others."""
    large = 10.0 ** generator.uniform(0.4, 9.6, count)
    small = generator.integers(2, 20, count)
    ends = generator.choice([2, 3, 4, 65_536, 65_537, 2**31, 2**32 - 2, 2**32 - 1], count)
    return np.choose(generator.choice(3, count, p=[0.5, 0.4, 0.1]), [small, large, ends]).astype(
        int
    )


def category_ratio(randomizer):
    """Return e^epsilon0 of a randomizer of categories, from its thresholds."""
    k, threshold = randomizer.domain_size, randomizer.threshold
    match randomizer.name:
        case "k-rr":
            is_blind = threshold == WORDS // k
            return Fraction(1 if is_blind else Fraction(WORDS - (k - 1) * threshold, threshold))
        case "symmetric-unary":
            return Fraction(WORDS - threshold, threshold) ** 2
        case "optimized-local-hashing":
            return Fraction(WORDS - (randomizer.num_buckets - 1) * threshold, threshold)
        case "subset-selection":
            size = randomizer.subset_size
            is_blind = threshold == WORDS * size // k
            hit = Fraction(size, k) if is_blind else Fraction(threshold, WORDS)
            return hit / size / ((1 - hit) / (k - size))
    return Fraction(WORDS - threshold, threshold)


def number_ratio(randomizer):
    """Return e^epsilon0 of a randomizer of numbers, from its thresholds."""
    match randomizer.name:
        case "duchi":
            return Fraction(WORDS - randomizer.law.threshold, randomizer.law.threshold)
        case "piecewise":
            m, window, threshold = randomizer.law
            high = Fraction(WORDS - m * threshold, window)
            assert high.denominator == 1
            assert window <= m
            assert high >= threshold
            return high / threshold
    raise AssertionError(randomizer.name)


def assert_stated(randomizer, asked, again, ratio):
    """Fail unless the stated epsilon0 is between the law's and the one asked for, and fixed."""
    stated = randomizer.epsilon0
    assert 0.0 <= stated <= asked
    assert again == randomizer
    assert again.fingerprint == randomizer.fingerprint
    assert again.epsilon0 == stated
    assert randomizer.profile.epsilon0 == stated
    with mp.workdps(60):
        loss = mp.log(mpf(ratio.numerator) / mpf(ratio.denominator)) if ratio != 1 else mpf(0)
        assert loss <= mpf(stated)
        # Rounded up by no more than a unit in the last place.
        assert mpf(stated) <= loss * (1 + mpf(2) ** -51) + mpf(2) ** -1070


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_categories(name):
    generator = Entropy.from_seed(31).generator()
    make = RANDOMIZERS[name]
    pairs = zip(sizes(generator, TRIALS), losses(generator, TRIALS), strict=True)
    for k, asked in pairs:
        randomizer = make(domain_size=int(k), epsilon0=float(asked))
        again = make(domain_size=int(k), epsilon0=randomizer.epsilon0)
        assert_stated(randomizer, asked, again, category_ratio(randomizer))


@pytest.mark.parametrize("name", ["duchi", "piecewise"])
def test_numbers(name):
    generator = Entropy.from_seed(32).generator()
    for asked in losses(generator, TRIALS // 2):
        make = NUMBER_RANDOMIZERS[name]
        if name != "duchi" and generator.random() < 0.5:
            make = coarse(int(2 ** generator.integers(0, 9)))
        randomizer = make(low=-3, high=5, epsilon0=float(asked))
        again = make(low=-3, high=5, epsilon0=randomizer.epsilon0)
        assert_stated(randomizer, asked, again, number_ratio(randomizer))


@pytest.mark.parametrize("name", ANSWER_SET_RANDOMIZERS)
def test_sets(name):
    generator = Entropy.from_seed(34).generator()
    make = ANSWER_SET_RANDOMIZERS[name]
    pairs = zip(sizes(generator, TRIALS // 8), losses(generator, TRIALS // 8), strict=True)
    for number, asked in pairs:
        k = min(int(number), 10**6)
        size = {"domain_size": k, "max_answers": int(generator.integers(1, min(k, 6) + 1))}
        randomizer = make(epsilon0=float(asked), **size)
        again = make(epsilon0=randomizer.epsilon0, **size)
        ratio = category_ratio(randomizer.base)
        if name.startswith("split:"):
            ratio **= size["max_answers"]
        stated = randomizer.epsilon0
        assert stated <= asked
        assert again == randomizer
        with mp.workdps(60):
            assert mp.log(mpf(ratio.numerator) / ratio.denominator) <= mpf(stated)


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_vectors(name):
    generator = Entropy.from_seed(36).generator()
    for asked in losses(generator, TRIALS // 4):
        dimension = int(10 ** generator.uniform(0.31, 3.0))
        randomizer = VECTOR_RANDOMIZERS[name](dimension=dimension, epsilon0=float(asked))
        again = VECTOR_RANDOMIZERS[name](dimension=dimension, epsilon0=randomizer.epsilon0)
        assert randomizer.epsilon0 <= asked
        assert again == randomizer
        assert again.fingerprint == randomizer.fingerprint
        with mp.workdps(60):
            share = laws.cap_share(randomizer)
            hit = 1 - mpf(randomizer.threshold) / WORDS
            loss = mp.log(hit / (1 - hit)) + mp.log((1 - share) / share)
            assert loss <= mpf(randomizer.epsilon0) + mpf(10) ** -50
            assert loss >= mpf(randomizer.epsilon0) * (1 - mpf(2) * mpf(10) ** -9)


def test_a_loss_that_is_rounded_down_is_caught():
    randomizer = RANDOMIZERS["k-rr"](domain_size=3, epsilon0=1.0)
    lower = np.nextafter(randomizer.epsilon0, 0.0)
    with mp.workdps(60):
        ratio = category_ratio(randomizer)
        assert mp.log(mpf(ratio.numerator) / ratio.denominator) > mpf(float(lower))
