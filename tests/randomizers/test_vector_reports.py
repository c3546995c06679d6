"""From the ball to the sphere, and normal numbers."""

import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.randomizers.privunit import (
    require_dimension,
    require_norm_bound,
    require_vectors,
    standard_normals,
    to_sphere,
    uniforms,
)


def on_sphere(values, norm_bound=1.0, **options):
    return to_sphere(
        np.asarray(values), norm_bound=norm_bound, entropy=Entropy.from_seed(1), **options
    )


def test_vectors_of_full_length_keep_their_direction():
    values = np.tile([[0.0, 3.0, -4.0]], (1000, 1))
    assert on_sphere(values, 5.0) == pytest.approx(np.tile([[0.0, 0.6, -0.8]], (1000, 1)))


def test_shorter_vectors_turn_round_now_and_then():
    values = np.tile([[0.5, 0.0]], (1000, 1))
    points = on_sphere(values)
    assert set(points[:, 0]) == {1.0, -1.0}
    assert not points[:, 1].any()


def test_zero_takes_any_direction():
    points = on_sphere(np.zeros((1000, 4)))
    assert np.linalg.norm(points, axis=1) == pytest.approx(np.ones(1000))
    assert np.unique(points).size == 4000


@pytest.mark.parametrize("scale", [1e-200, 5e-324, 1e-100, 1e-20])
def test_very_short_vectors_give_unit_vectors(scale):
    points = on_sphere(np.full((100, 3), scale))
    assert np.linalg.norm(points, axis=1) == pytest.approx(np.ones(100))


@pytest.mark.parametrize("norm_bound", [1e-100, 1.0, 1e100])
def test_units_do_not_matter(norm_bound):
    points = on_sphere(np.tile([[0.3, 0.4]], (50, 1)) * norm_bound, norm_bound)
    assert np.abs(points) == pytest.approx(np.tile([[0.6, 0.8]], (50, 1)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.int8])
def test_round_off_of_the_values_type_is_forgiven(dtype):
    values = np.array([[1.0, 0.0], [0.0, 1.0]]).astype(dtype)
    if dtype is not np.int8:
        values[0, 0] += 4 * np.finfo(dtype).eps
    assert on_sphere(values) == pytest.approx(np.eye(2), abs=1e-15)
    assert values.dtype == dtype


@pytest.mark.parametrize(
    ("dtype", "excess"), [(np.float64, 2e-9), (np.float32, 3e-6), (np.float16, 2e-2)]
)
def test_a_vector_that_is_too_long_is_named(dtype, excess):
    values = np.array([[0.5, 0.0], [1.0 + excess, 0.0], [9.0, 0.0]], dtype=dtype)
    with pytest.raises(DomainError, match=r"values\[11\] has the norm 1\.0.*clip it"):
        on_sphere(values, first_row=10)


def test_the_norm_is_named_in_the_users_units():
    with pytest.raises(DomainError, match=r"values\[0\] has the norm 50, .*norm_bound = 10\]"):
        on_sphere([[30, 40]], 10.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_named(bad):
    with pytest.raises(DomainError, match=r"values\[1\] holds NaN or infinity"):
        on_sphere([[0.5, 0.0], [0.0, bad]])


def test_huge_numbers_are_refused_without_a_warning():
    with pytest.raises(DomainError, match=r"values\[0\] has the norm inf"):
        on_sphere([[1e300, 1e300]], 1e-100)


def test_shapes_and_types():
    assert require_vectors(np.empty(0), 3).shape == (0, 3)
    assert on_sphere(np.empty((0, 3))).shape == (0, 3)
    for wrong in (np.zeros(3), np.zeros((2, 4)), np.zeros((1, 2, 3)), np.float64(1.0)):
        with pytest.raises(ParameterError, match=r"shape \(n, 3\)"):
            require_vectors(wrong, 3)
    for wrong in (np.zeros((1, 3), complex), np.zeros((1, 3), bool), np.full((1, 3), "a")):
        with pytest.raises(ParameterError, match="real numbers"):
            require_vectors(wrong, 3)


def test_parameters():
    assert require_dimension(10**6) == 10**6
    with pytest.raises(ParameterError, match="Duchi"):
        require_dimension(1)
    for wrong in (0, -3, 10**6 + 1, 2.5):
        with pytest.raises(ParameterError, match="dimension = "):
            require_dimension(wrong)
    for wrong in (0.0, -1.0, math.nan, math.inf, 1e-101, 1e101):
        with pytest.raises(ParameterError, match="norm_bound = "):
            require_norm_bound(wrong)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 32_768, 100_000])
def test_every_number_asked_for_is_there(count):
    normals = standard_normals(count, Entropy.from_seed(1))
    assert normals.shape == (count,)
    assert np.isfinite(normals).all()
    assert np.unique(normals).size == count


def test_seeds_reproduce():
    first, again, other = (standard_normals(50, Entropy.from_seed(s)) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.any(first == other)


def test_uniforms_are_never_at_the_ends():
    ends = uniforms(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert ends.tolist() == [2.0**-53, 1.0 - 2.0**-53]
