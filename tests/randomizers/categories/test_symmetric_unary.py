import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import SymmetricUnaryEncoding


def test_closed_form_probabilities():
    randomizer = SymmetricUnaryEncoding(k=10, epsilon0=2 * math.log(3))
    assert randomizer.support_probabilities == pytest.approx((0.75, 0.25))
    assert randomizer.profile.family is RandomizerFamily.SYMMETRIC_UNARY


def test_noise_is_the_same_for_every_truth():
    # report = noise XOR one-hot, so two truths with the same words differ in exactly two bits.
    randomizer = SymmetricUnaryEncoding(k=16, epsilon0=1.0)
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


def test_saturation():
    randomizer = SymmetricUnaryEncoding(k=3, epsilon0=1e6)
    assert randomizer.threshold == 1
    assert randomizer.epsilon0 == pytest.approx(128 * math.log(2), rel=1e-15)


def test_blanket_of_a_large_domain_has_no_all_ones_report():
    atoms = SymmetricUnaryEncoding(k=10**6, epsilon0=1.0).profile.blanket
    assert len(atoms) == 4
    assert sum(atom.mass * atom.ratio0 for atom in atoms) == pytest.approx(1.0, rel=1e-12)
