"""What every Mallows model must do, checked against enumeration; and bad arguments."""

import math
from itertools import permutations

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import permutations as rank_distances
from shuffledp.groups.mallows import MALLOWS_MODELS, mallows_model
from shuffledp.groups.permutations import require_num_items, require_theta

THETAS = (0.0, 5e-324, 1e-300, 1e-12, 0.3, 1.0, 5.0, 50.0, 700.0, 1e308, math.inf)


def distance_of(name):
    return getattr(rank_distances, f"{name}_distance")


def enumerated(name, num_items, theta):
    """Return psi - 1, mean and variance of the distance, and mean displacement, to 400 digits."""
    with mpmath.workdps(400):
        psi = first = second = moved = mpmath.mpf(0)
        for pi in permutations(range(num_items)):
            distance = distance_of(name)(pi)
            weight = (
                mpmath.exp(-mpmath.mpf(min(theta, 1e4)) * distance) if distance else mpmath.mpf(1)
            )
            psi += weight
            first += distance * weight
            second += distance**2 * weight
            moved += sum(abs(a - b) for a, b in enumerate(pi)) * weight
        mean = first / psi
        return psi - 1, mean, second / psi - mean**2, moved / psi / num_items


def assert_close(found, expected):
    """Compare relatively; below the least normal float only absolutely."""
    assert abs(found - expected) <= 2e-13 * abs(expected) + 1e-307


@pytest.mark.parametrize("name", MALLOWS_MODELS)
@pytest.mark.parametrize("num_items", [1, 2, 3, 5])
@pytest.mark.parametrize("theta", THETAS)
def test_partition_function_and_moments_by_enumeration(name, num_items, theta):
    model = mallows_model(name, num_items, theta)
    more, mean, variance, displacement = enumerated(name, num_items, theta)
    with mpmath.workdps(400):
        assert_close(model.log_partition(), mpmath.log1p(more))
    assert_close(model.mean_distance(), mean)
    assert_close(model.variance_of_distance(), variance)
    assert_close(model.mean_displacement(), displacement)


@pytest.mark.parametrize("name", MALLOWS_MODELS)
@pytest.mark.parametrize("theta", [1e-12, 0.3, 1.7])
def test_probabilities_of_seven_items_sum_to_one(name, theta):
    distances = np.array([distance_of(name)(pi) for pi in permutations(range(7))])
    model = mallows_model(name, 7, theta)
    assert np.exp(-theta * distances - model.log_partition()).sum() == pytest.approx(1, rel=1e-12)
    last = tuple(reversed(range(7)))
    expected = -theta * distances[-1] - model.log_partition()
    assert model.log_probability(last) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", MALLOWS_MODELS)
def test_the_limits_of_theta(name):
    uniform, identity = mallows_model(name, 300, 0.0), mallows_model(name, 300, math.inf)
    assert uniform.log_partition() == pytest.approx(gammaln(301.0), rel=1e-13)
    assert uniform.mean_displacement() == pytest.approx((300**2 - 1) / 900, rel=1e-12)
    assert identity.log_partition() == 0.0
    assert identity.mean_distance() == identity.variance_of_distance() == 0.0
    assert identity.mean_displacement() == 0.0
    assert (identity.sample(Entropy.from_seed(1)) == np.arange(300)).all()
    assert identity.log_probability(np.arange(300)) == 0.0
    assert identity.log_probability(np.arange(300)[::-1]) == -math.inf


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
    assert model.log_probability(pi) <= 0.0


@pytest.mark.parametrize("name", MALLOWS_MODELS)
def test_moments_are_derivatives_of_the_partition_function(name):
    # d ln psi / d theta = -mean, and d mean / d theta = -variance.
    for num_items, theta in ((40, 0.01), (40, 0.7), (3000, 0.002), (3000, 1.1), (3000, 6.5)):
        step = 1e-4 * theta
        low, mid, high = (mallows_model(name, num_items, theta + k * step) for k in (-1, 0, 1))
        slope = (high.log_partition() - low.log_partition()) / (high.theta - low.theta)
        assert -slope == pytest.approx(mid.mean_distance(), rel=1e-5)
        slope = (high.mean_distance() - low.mean_distance()) / (high.theta - low.theta)
        assert -slope == pytest.approx(mid.variance_of_distance(), rel=1e-5)


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


@pytest.mark.parametrize("name", MALLOWS_MODELS)
def test_permutations_of_another_size_are_refused(name):
    with pytest.raises(ParameterError, match="pi has 2 items and the model 3"):
        mallows_model(name, 3, 1.0).log_probability([0, 1])
    with pytest.raises(ParameterError, match="repeats another number"):
        mallows_model(name, 3, 1.0).log_probability([0, 0, 1])
