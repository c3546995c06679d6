import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from laws_of_numbers import channel_of, report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import Duchi, KRandomizedResponse


def test_the_law_is_binary_randomized_response():
    for epsilon0 in (0.0, 1e-9, 0.5, 3.0, 60.0):
        binary = KRandomizedResponse(domain_size=2, epsilon0=epsilon0)
        randomizer = Duchi(low=0, high=1, epsilon0=epsilon0)
        assert randomizer.epsilon0 == binary.epsilon0
        assert channel_of(randomizer) == binary.channel()
        assert randomizer.profile == binary.profile
        assert randomizer.profile.channel() == binary.channel()


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 8.0, 60.0])
def test_reports_are_those_of_plain_integers(epsilon0):
    randomizer = Duchi(low=0, high=2**30, epsilon0=epsilon0)
    num_users = 5000
    values = Entropy.from_seed(1).generator().integers(0, 2**30 + 1, num_users)
    found = randomizer.randomize(values, Entropy.from_seed(2)).data.tolist()
    words = Entropy.from_seed(2).words(2 * num_users).tolist()
    for i, value in enumerate(values.tolist()):
        bit = value == 2**30 or words[i] < value * 2**34
        flip = words[num_users + i] < randomizer.law.threshold
        assert found[i] == bit ^ flip


@pytest.mark.parametrize("epsilon0", [1e-6, 0.2, 1.0, 5.0, 40.0])
def test_estimates_are_unbiased_with_the_known_variance(epsilon0):
    randomizer = Duchi(low=-3, high=5, epsilon0=epsilon0)
    wrong = channel_of(randomizer)[0][1]
    slope = 1 - 2 * wrong
    offset, factor = randomizer.score_scale
    assert offset == 1.0
    assert factor == pytest.approx(float(4 / slope), rel=1e-15)
    for quarter in range(5):
        up = Fraction(quarter, 4)  # chance of the upper end, for this value
        mean_bit = (1 - up) * wrong + up * (1 - wrong)
        value = -3 + 8 * up
        assert 1 + 4 / slope * (2 * mean_bit - 1) == value
        variance = (4 / slope) ** 2 * 4 * mean_bit * (1 - mean_bit)
        assert report_variance(randomizer, float(value)) == pytest.approx(
            float(variance), rel=1e-12
        )


def test_variance_is_the_published_one():
    for epsilon0, x in itertools.product((0.3, 1.0, 4.0), (-1.0, 0.0, 0.7)):
        randomizer = Duchi(low=-1, high=1, epsilon0=epsilon0)
        c = (math.exp(epsilon0) + 1) / (math.exp(epsilon0) - 1)
        assert report_variance(randomizer, x) == pytest.approx(c**2 - x**2)
        assert randomizer.mean_report_variance() == pytest.approx(c**2 - 1 / 3)


def test_blanket_atoms_have_means_of_one():
    atoms = Duchi(low=0, high=1, epsilon0=1.0).profile.blanket
    assert len(atoms) == 2
    for ratio in ("ratio0", "ratio1"):
        assert sum(atom.mass * getattr(atom, ratio) for atom in atoms) == pytest.approx(1.0)


def test_saturation():
    randomizer = Duchi(low=0, high=1, epsilon0=60.0)
    assert randomizer.law.threshold == 1
    assert randomizer.epsilon0 == pytest.approx(64 * math.log(2))
    assert np.unique(randomizer.randomize(np.ones(1000), Entropy.from_seed(1)).data) == 1
