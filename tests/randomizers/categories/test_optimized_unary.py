import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import OptimizedUnaryEncoding


def test_closed_form_probabilities():
    randomizer = OptimizedUnaryEncoding(k=10, epsilon0=math.log(3))
    assert randomizer.support_probabilities == pytest.approx((0.5, 0.25))
    assert randomizer.profile.family is RandomizerFamily.OPTIMIZED_UNARY


def test_the_true_bit_is_a_coin_of_its_own():
    # With the same words, moving the truth changes at most the two bits concerned.
    randomizer = OptimizedUnaryEncoding(k=16, epsilon0=1.0)
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
    randomizer = OptimizedUnaryEncoding(k=3, epsilon0=1e6)
    assert randomizer.threshold == 1
    assert randomizer.epsilon0 == pytest.approx(64 * math.log(2), rel=1e-15)


def test_blanket_of_a_large_domain_is_the_one_of_the_literature():
    # theory 2.3, "OUE, large k", with p = e^epsilon0.
    p = round(math.exp(1.0), 12)
    atoms = {
        (round(atom.ratio0, 12), round(atom.ratio1, 12)): atom.mass
        for atom in OptimizedUnaryEncoding(k=10**6, epsilon0=1.0).profile.blanket
    }
    assert atoms == pytest.approx(
        {
            (p, 1.0): 1 / (2 * (p + 1)),
            (1.0, p): 1 / (2 * (p + 1)),
            (p, p): 1 / (2 * p * (p + 1)),
            (1.0, 1.0): p / (2 * (p + 1)),
        }
    )
