"""What every Mallows model must do, checked against enumeration; and bad arguments."""

import math
from itertools import permutations

import mpmath
import numpy as np
import pytest

from oracles.mallows import DISTANCES, moments_of_distance
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.mallows import MALLOWS_MODELS, mallows_model
from shuffledp.groups.permutations import require_num_items, require_theta

THETAS = (0.0, 5e-324, 1e-300, 1e-12, 0.3, 1.0, 5.0, 50.0, 700.0, 1e308, math.inf)


def enumerated(name, num_items, theta):
    """Return mean and variance of the distance, to 400 digits."""
    with mpmath.workdps(400):
        psi = first = second = mpmath.mpf(0)
        for pi in permutations(range(num_items)):
            distance = DISTANCES[name](pi)
            weight = (
                mpmath.exp(-mpmath.mpf(min(theta, 1e4)) * distance) if distance else mpmath.mpf(1)
            )
            psi += weight
            first += distance * weight
            second += distance**2 * weight
        mean = first / psi
        return mean, second / psi - mean**2


@pytest.mark.parametrize("name", MALLOWS_MODELS)
@pytest.mark.parametrize("num_items", [2, 3, 5])
@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e-12, 0.3, 1.0, 5.0])
def test_the_moments_that_tests_measure_with(name, num_items, theta):
    mean, variance = enumerated(name, num_items, theta)
    found = moments_of_distance(name, num_items, theta)
    assert found == pytest.approx((float(mean), float(variance)), rel=1e-10)


@pytest.mark.parametrize("name", MALLOWS_MODELS)
def test_infinite_theta_leaves_the_order(name):
    identity = mallows_model(name, 300, math.inf)
    assert (identity.sample(Entropy.from_seed(1)) == np.arange(300)).all()


@pytest.mark.parametrize("name", MALLOWS_MODELS)
@pytest.mark.parametrize("num_items", [1, 2, 3, 64, 65, 1000])
@pytest.mark.parametrize("theta", THETAS)
def test_samples_are_permutations(name, num_items, theta):
    model = mallows_model(name, num_items, theta)
    pi = model.sample(Entropy.from_seed(2))
    assert pi.dtype == np.int64
    assert pi.flags.c_contiguous
    assert pi.flags.writeable
    assert (np.sort(pi) == np.arange(num_items)).all()
    assert (pi == model.sample(Entropy.from_seed(2))).all()
    if theta >= 700.0:
        assert (pi == np.arange(num_items)).all()


@pytest.mark.parametrize("name", MALLOWS_MODELS)
def test_models_are_plain_values(name):
    model = mallows_model(name, np.int64(3), np.float32(0.5))
    assert (model.distance, model.num_items, model.theta) == (name, 3, 0.5)
    assert type(model.num_items) is int
    assert type(model.theta) is float
    assert model == MALLOWS_MODELS[name](num_items=3, theta=0.5)
    assert hash(model) == hash(mallows_model(name, 3, 0.5))


@pytest.mark.parametrize("name", MALLOWS_MODELS)
@pytest.mark.parametrize("theta", [math.nan, -1e-300, -math.inf, "1", None, -(10**400)])
def test_theta_must_be_at_least_zero(name, theta):
    with pytest.raises(ParameterError, match=r"theta = .* is not in \[0, inf\]"):
        mallows_model(name, 3, theta)


def test_limits_of_arguments():
    assert require_theta(10**400) == math.inf
    assert math.copysign(1.0, require_theta(-0.0)) == 1.0
    assert require_num_items(2**32 - 1) == 2**32 - 1
    with pytest.raises(ParameterError, match="above 2\\^32 - 1"):
        require_num_items(2**32)
    with pytest.raises(ParameterError, match="num_items = 0 is below 1"):
        require_num_items(0)
    with pytest.raises(ParameterError, match="is not a whole number"):
        require_num_items(2.5)


def test_unknown_distances_are_refused():
    with pytest.raises(ParameterError, match="'footrule' has no Mallows model: choose one of"):
        mallows_model("footrule", 3, 1.0)
