"""Noise on a lattice: its law against plain sums, exact where floats cannot decide, refusals."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp
from scipy.special import chdtri

from adversarial.tapes import LARGEST, Tape
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.exact_draws import LazyUniform, draw_lattice_noise, draw_norm_acceptance

# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 7
NUM_DRAWS = 40_000


def statistic(points, theta, *, shape=lambda k: math.sqrt(sum(x * x for x in k))):
    """Chi-square of points near 0 and of all others, with its degrees of freedom."""
    dimensions = points.shape[1]
    reach = math.ceil(60 / theta) if dimensions == 1 else math.ceil(25 / theta)
    axis = np.arange(-reach, reach + 1)
    squares = np.zeros((1,) * dimensions)
    for d in range(dimensions):
        squares = squares + (axis**2).reshape([-1 if d == e else 1 for e in range(dimensions)])
    total = np.exp(-theta * np.sqrt(squares)).sum()
    near = list(itertools.product((-1, 0, 1, 2), repeat=dimensions))
    chances = [math.exp(-theta * shape(k)) / total for k in near]
    counts = [int((points == np.array(k)).all(axis=1).sum()) for k in near]
    expected = np.array([*chances, 1.0 - sum(chances)]) * len(points)
    counts = np.array([*counts, len(points) - sum(counts)])
    return float(((counts - expected) ** 2 / expected).sum()), len(near)


def critical(degrees):
    return chdtri(degrees, FALSE_POSITIVE_RATE / NUM_TESTS)


@pytest.mark.parametrize(
    ("dimensions", "theta"), [(1, 0.7), (1, 2.0), (2, 0.6), (2, 1.5), (3, 1.1)]
)
def test_points_have_their_law(dimensions, theta):
    points = draw_lattice_noise(NUM_DRAWS, dimensions, theta, Entropy.from_seed(5))
    found, degrees = statistic(points, theta)
    assert found < critical(degrees)


def test_the_statistic_rejects_the_law_of_another_norm():
    points = draw_lattice_noise(NUM_DRAWS, 2, 1.0, Entropy.from_seed(5))
    found, degrees = statistic(points, 1.0, shape=lambda k: max(abs(x) for x in k))
    assert found > critical(degrees)


def test_decimals_decide_as_floats_do():
    for dimensions in (1, 2, 3):
        for theta in (0.01, 0.4, 5.0):
            quick = draw_lattice_noise(60, dimensions, theta, Entropy.from_seed(2))
            exact = draw_lattice_noise(60, dimensions, theta, Entropy.from_seed(2), margin=math.inf)
            assert np.array_equal(quick, exact)


def test_a_word_of_zeros_asks_for_more_bits():
    # U = 2^-128 and a little: -ln U is just below 128 ln 2 = 88.7.
    assert draw_lattice_noise(1, 1, 1.0, Tape([0, 1, 0, 0])).tolist() == [[88]]


def test_minus_zero_is_refused_so_that_zero_is_not_drawn_twice():
    # Magnitude 0 with a minus, then magnitude 0 with a plus, then one of 1 with a minus.
    one = math.floor(math.exp(-1.5) * 2**64)
    tape = Tape([LARGEST, 1, LARGEST, 0, one, 1])
    assert draw_lattice_noise(2, 1, 1.0, Tape([LARGEST, one, 1, 1, LARGEST, 0])).tolist() == [
        [-1],
        [0],
    ]
    assert draw_lattice_noise(1, 1, 1.0, tape).tolist() == [[0]]
    assert tape.num_left == 2


@pytest.mark.parametrize("point", [(3, -4), (1, 1), (0, 0), (7, 0, -2)])
def test_acceptance_has_the_exact_probability(point):
    theta, rate = 0.7, 0.7 / 2.0
    with mp.workdps(60):
        norm = mp.sqrt(sum(x * x for x in point))
        chance = mp.exp(mp.mpf(rate) * sum(abs(x) for x in point) - mp.mpf(theta) * norm)
        border = int(mp.floor(chance * 2**64))
    entropy = Entropy.from_seed(1)
    for word, passes in ((border - 2, True), (border + 2, False)):
        if 0 <= word <= LARGEST:
            uniform = LazyUniform(prefix=word, num_bits=64, entropy=entropy)
            assert draw_norm_acceptance(uniform, theta, rate, point) is passes
            assert uniform.num_bits == 64


@pytest.mark.parametrize(
    ("dimensions", "theta", "message"),
    [
        (1, 0.0, "theta = 0.0 is not in"),
        (1, math.inf, "theta = inf"),
        (1, math.nan, "theta = nan"),
        (1, 2.0**-41, "uniform shuffle"),
        (0, 1.0, "dimensions = 0"),
        (9, 1.0, "fewer coordinates"),
    ],
)
def test_what_cannot_be_drawn_is_refused(dimensions, theta, message):
    with pytest.raises(ParameterError, match=message):
        draw_lattice_noise(1, dimensions, theta, Entropy.from_seed(0))
