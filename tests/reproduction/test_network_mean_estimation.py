"""The simulation of Fig. 9 against moments known in closed form."""

import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.randomizers.vectors.privunit import PrivUnit
from shuffledp.reproduction.network_mean_estimation import (
    expected_empty_users,
    heterogeneous_vectors,
    squared_errors,
)

# Every statistical assertion below is 6 standard errors wide or more (two-sided normal tail 2e-9);
# there are four of them.
FALSE_POSITIVE_RATE = 1e-8
SIX = 6.0

NUM_USERS, DIMENSION, TRIALS = 400, 8, 60


def simulated(epsilon0, law, num_dummies, seed=1):
    entropy = Entropy.from_seed(seed)
    vectors = heterogeneous_vectors(NUM_USERS, DIMENSION, entropy)
    randomizer = PrivUnit(dimension=DIMENSION, epsilon0=epsilon0)
    found = squared_errors(
        randomizer, vectors, law, num_dummies=num_dummies, trials=TRIALS, entropy=entropy
    )
    return randomizer, vectors, found


def is_near(samples, expected):
    return abs(samples.mean() - expected) < SIX * samples.std(ddof=1) / math.sqrt(samples.size)


def test_errors_against_their_expectations():
    law = np.arange(1.0, NUM_USERS + 1.0)
    law /= law.sum()
    num_dummies = 150
    randomizer, vectors, found = simulated(2.0, law, num_dummies)
    truth = vectors.mean(axis=0)
    spread = 1.0 / randomizer.mean_along**2  # expected squared norm of a decoded report
    noise = (spread - 1.0) / NUM_USERS
    assert is_near(found.all_reports, noise)
    # Sampling without replacement, then the mean over all n with dummies of expectation zero.
    kept = NUM_USERS - num_dummies
    variance = 1.0 - truth @ truth
    sampling = kept * (num_dummies / (NUM_USERS - 1.0)) * variance
    bias = (num_dummies / NUM_USERS) ** 2 * (truth @ truth)
    expected = bias + (kept * (spread - 1.0) + num_dummies * spread + sampling) / NUM_USERS**2
    assert is_near(found.with_dummies, expected)
    assert not is_near(found.with_dummies, expected - bias)  # what ignoring the bias would give
    assert is_near(
        found.num_released.astype(float), NUM_USERS - expected_empty_users(law, NUM_USERS)
    )
    m = found.num_released
    given_m = (spread - 1.0) / m + (1.0 / m - 1.0 / NUM_USERS) * variance * NUM_USERS / (
        NUM_USERS - 1
    )
    assert is_near(found.without_dummies - given_m, 0.0)


def test_everybody_in_one_place():
    law = np.zeros(NUM_USERS)
    law[7] = 1.0
    _, _, found = simulated(1.0, law, NUM_USERS)
    assert (found.num_released == 1).all()
    assert expected_empty_users(law, NUM_USERS) == NUM_USERS - 1


def test_the_same_seed_gives_the_same_errors():
    law = np.full(NUM_USERS, 1.0 / NUM_USERS)
    first, second = (simulated(1.0, law, 0)[2] for _ in range(2))
    assert (first.all_reports == second.all_reports).all()
    # No dummies: all reports count, in another order.
    assert first.with_dummies == pytest.approx(first.all_reports)


def test_vectors():
    vectors = heterogeneous_vectors(1_000, 200, Entropy.from_seed(4))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(1_000))
    along = vectors.mean(axis=1) * math.sqrt(200)
    # Centre c and d coordinates: the cosine to (1, ..., 1) is c / sqrt(c^2 + 1), nearly.
    assert along[:500].mean() == pytest.approx(1 / math.sqrt(2), abs=0.02)
    assert along[500:].mean() == pytest.approx(10 / math.sqrt(101), abs=0.002)
    assert heterogeneous_vectors(1, 2, Entropy.from_seed(4)).shape == (1, 2)


@pytest.mark.parametrize("num_dummies", [-1, NUM_USERS + 1])
def test_too_many_dummies(num_dummies):
    with pytest.raises(ParameterError, match=r"num_dummies = .* is not in \[0, n = 400\]"):
        simulated(1.0, np.full(NUM_USERS, 1.0 / NUM_USERS), num_dummies)
