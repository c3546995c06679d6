"""Values at the edge of what is allowed, and just beyond it, in every type an array can have."""

import math

import numpy as np
import pytest

from laws_of_numbers import report_variance
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

LARGEST_WORD = 2**64 - 1


def entropy():
    """Return a fresh simulation."""
    return Entropy.from_seed(9)


def categories(name):
    """A randomizer of categories that hides nothing, so that its reports tell the value."""
    return RANDOMIZERS[name](domain_size=5, epsilon0=1e300)


@pytest.mark.parametrize("name", RANDOMIZERS)
@pytest.mark.parametrize(
    "values",
    [
        np.array([-1]),
        np.array([5]),
        np.array([0, 4, 5], dtype=np.uint8),
        np.array([LARGEST_WORD], dtype=np.uint64),
        np.array([-(2**63)]),
        np.array([2**32], dtype=np.int64),  # zero in its lower half
        np.array([-128], dtype=np.int8),
    ],
    ids=str,
)
def test_codes_outside_the_domain(name, values):
    with pytest.raises(DomainError, match="is not in"):
        categories(name).randomize(values, entropy())


@pytest.mark.parametrize("name", RANDOMIZERS)
@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False]),
        np.array([1.0]),
        np.array([np.nan]),
        np.array([1], dtype=object),
        np.array([None]),
        np.array(["1"]),
        np.array([b"1"]),
        np.array([1 + 0j]),
        np.array([1], dtype="M8[ns]"),
        np.array([[1]]),
        np.array(1),
    ],
    ids=lambda values: f"{values.dtype}-{values.ndim}",
)
def test_codes_of_other_types(name, values):
    with pytest.raises(ParameterError):
        categories(name).randomize(values, entropy())


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("kind", ["category", "set", "number"])
def test_durations_are_no_whole_numbers(kind, unit):
    values = np.array([1, 0], dtype=f"m8[{unit}]")
    if kind == "set":
        randomizer = ANSWER_SET_RANDOMIZERS["sampled:k-rr"](
            domain_size=3, max_answers=2, epsilon0=1.0
        )
        values = values[None]
    else:
        randomizer = categories("k-rr") if kind == "category" else numbers("duchi")
    with pytest.raises(ParameterError):
        randomizer.randomize(values, entropy())


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_codes_of_every_integer_type_and_layout(name):
    randomizer = categories(name)
    codes = [4, 0, 3, 1]
    expected = randomizer.randomize(np.array(codes), entropy()).data.tolist()
    for dtype in ("i1", "u1", ">i2", "<u2", ">u4", "i8", ">u8"):
        array = np.array(codes, dtype=dtype)
        assert randomizer.randomize(array, entropy()).data.tolist() == expected
        strided = np.repeat(array, 3)[::3]
        assert randomizer.randomize(strided, entropy()).data.tolist() == expected
        array.flags.writeable = False
        assert randomizer.randomize(array, entropy()).data.tolist() == expected
    for dtype in (float, object, "U1"):
        assert randomizer.randomize(np.empty(0, dtype=dtype), entropy()).num_reports == 0


@pytest.mark.parametrize("name", ANSWER_SET_RANDOMIZERS)
def test_odd_sets(name):
    randomizer = ANSWER_SET_RANDOMIZERS[name](domain_size=3, max_answers=2, epsilon0=1.0)
    for wrong in (
        [[3]],
        [[-2]],
        [[1, 1]],
        [[0, 1, 2]],
        [[0, 0, -1, -1]],
        [[2**32]],
        [[-1, -1], [0, 3]],
    ):
        with pytest.raises(DomainError):
            randomizer.randomize(np.array(wrong), entropy())
    with pytest.raises(DomainError):
        randomizer.randomize(np.array([[LARGEST_WORD]], dtype=np.uint64), entropy())
    for wrong in (np.array([1, 2]), np.array([[1.0]]), np.array([[True]]), np.array([["1"]])):
        with pytest.raises(ParameterError):
            randomizer.randomize(wrong, entropy())
    # The same sets, however they are written down, are the same law and the same draw.
    expected = randomizer.randomize(np.array([[2, 0], [1, -1], [-1, -1]]), entropy()).data
    for same in (
        np.array([[0, 2], [-1, 1], [-1, -1]], dtype=np.int8),
        np.array([[0, -1, 2, -1], [-1, -1, -1, 1], [-1, -1, -1, -1]]),
        np.asfortranarray(np.array([[0, 2], [-1, 1], [-1, -1]], dtype=">i4")),
    ):
        assert (randomizer.randomize(same, entropy()).data == expected).all()


def numbers(name, low=-1.0, high=1.0, epsilon0=1e300):
    """A randomizer of numbers that hides next to nothing."""
    return NUMBER_RANDOMIZERS[name](low=low, high=high, epsilon0=epsilon0)


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
@pytest.mark.parametrize(
    "value",
    [
        math.nextafter(1.0, 2.0),
        math.nextafter(-1.0, -2.0),
        math.nan,
        math.inf,
        -math.inf,
        1.7e308,
        np.nextafter(np.float32(1.0), np.float32(2.0)),
        np.float16(-1.001),
        np.uint64(LARGEST_WORD),
        np.int8(-128),
    ],
    ids=str,
)
def test_numbers_just_outside_the_range(name, value):
    with pytest.raises(DomainError, match=r"values\[1\] ="):
        numbers(name).randomize(np.array([0, value], dtype=np.asarray(value).dtype), entropy())


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
@pytest.mark.parametrize(
    "values",
    [
        np.array([True]),
        np.array([0.5], dtype=object),
        np.array([None]),
        np.array(["0.5"]),
        np.array([0.5 + 0j]),
        np.array([0], dtype="M8[s]"),
        np.array([[0.5]]),
        np.array(0.5),
    ],
    ids=lambda values: f"{values.dtype}-{values.ndim}",
)
def test_numbers_of_other_types(name, values):
    with pytest.raises(ParameterError):
        numbers(name).randomize(values, entropy())


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
def test_zero_has_no_sign_and_no_size(name):
    randomizer = numbers(name, epsilon0=2.0)
    expected = randomizer.randomize(np.zeros(50), entropy()).data.tolist()
    for zero in (-0.0, 5e-324, -5e-324, 1e-300, -1e-300):
        assert randomizer.randomize(np.full(50, zero), entropy()).data.tolist() == expected
    assert NUMBER_RANDOMIZERS[name](low=-0.0, high=1, epsilon0=1.0).fingerprint == (
        NUMBER_RANDOMIZERS[name](low=0, high=1, epsilon0=1.0).fingerprint
    )


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
def test_numbers_of_every_type(name):
    randomizer = numbers(name, epsilon0=2.0)
    values = [1, -1, 0, 1] * 10
    expected = randomizer.randomize(np.array(values, dtype=float), entropy()).data.tolist()
    for dtype in ("i1", ">i2", "i8", "f2", "f4", ">f8", np.longdouble):
        array = np.array(values, dtype=dtype)
        assert randomizer.randomize(array, entropy()).data.tolist() == expected
        assert randomizer.randomize(array[::-1], entropy()).num_reports == 40


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, 1e-100),
        (0.0, 1e100),
        (-5e99, 5e99),
        (1.0, math.nextafter(1.0, 2.0)),
        (1e16, 1e16 + 2.0),
        (1e-300, 1e-100),
        (-1e-100, 1e-101),
        (np.float32(0.1), 0.2),
    ],
    ids=str,
)
def test_extreme_ranges_work_from_end_to_end(name, low, high):
    for epsilon0 in (0.5, 3.0, 60.0):
        randomizer = numbers(name, low, high, epsilon0)
        low, high = randomizer.low, randomizer.high
        inside = np.linspace(low, high, 9).clip(low, high)
        reports = randomizer.randomize(inside, entropy())
        estimates = randomizer.estimate(reports)
        assert np.isfinite(estimates.mean).all()
        assert np.isfinite(estimates.standard_error).all()
        for value in (low, high):
            assert 0.0 <= report_variance(randomizer, value) < math.inf
        assert 0.0 < randomizer.mean_report_variance() < math.inf
        for beyond in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf)):
            with pytest.raises(DomainError):
                randomizer.randomize(np.array([beyond]), entropy())


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-1e308, 1e308),
        (0.0, 5e-324),
        (0.0, 9e-101),
        (1e300, 1.1e300),
        (0.0, math.nan),
        (-math.inf, 0.0),
        (-0.0, 0.0),
        (1.0, 0.0),
        ("0", 1),
        (None, 1),
        (0, 10**400),
    ],
    ids=str,
)
def test_ranges_that_are_none(name, low, high):
    with pytest.raises(ParameterError):
        NUMBER_RANDOMIZERS[name](low=low, high=high, epsilon0=1.0)


@pytest.mark.parametrize("make", [*RANDOMIZERS.values(), *NUMBER_RANDOMIZERS.values()])
@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1e-300, -1.0, "1", None, 1j])
def test_epsilon0_that_is_none(make, epsilon0):
    if make is RANDOMIZERS["k-rr"] and epsilon0 == math.inf:
        assert make(epsilon0=epsilon0, domain_size=3).epsilon0 == math.inf  # the truth, for dummies
        return
    options = {"domain_size": 3} if make in RANDOMIZERS.values() else {"low": 0, "high": 1}
    with pytest.raises(ParameterError):
        make(epsilon0=epsilon0, **options)


def vectors(name, **options):
    """A randomizer of vectors with three coordinates."""
    return VECTOR_RANDOMIZERS[name](**{"dimension": 3, "epsilon0": 8.0, **options})


@pytest.mark.parametrize("norm_bound", [1e-100, 1.0, 3.0, 1e100])
@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_vectors_at_the_edge_of_the_ball(name, norm_bound):
    randomizer = vectors(name, norm_bound=norm_bound)
    scales = [0.0, 1e-200, 0.99e-150, 2e-150, 1e-20, 1.0 - 1e-16, 1.0, 1.0 + 9e-10]
    directions = np.array([[1.0, 0.0, 0.0], [0.0, -0.6, 0.8], [-0.0, 0.0, -1.0]])
    values = np.concatenate([scale * norm_bound * directions for scale in scales])
    reports = randomizer.randomize(values, entropy())
    assert np.isfinite(reports.data).all()
    assert randomizer.aggregate(reports).num_reports == len(values)
    tiny = np.array([[1e-300, 0.0, 0.0], [5e-324, -5e-324, 0.0], [-0.0, -0.0, -0.0]])
    assert randomizer.aggregate(randomizer.randomize(tiny, entropy())).num_reports == 3
    for wrong in (
        [1.0 + 3e-9, 0.0, 0.0],
        [0.0, 1e150, 0.0],
        [0.8, 0.8, 0.0],
    ):
        with pytest.raises(DomainError, match="has the norm"):
            randomizer.randomize(np.array([wrong]) * norm_bound, entropy())


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_vectors_that_overflow_or_are_none(name):
    randomizer = vectors(name)
    for wrong in ([1e300, 0, 0], [1e300, -1e300, 1e300], [1.7e308] * 3):
        with pytest.raises(DomainError, match="has the norm inf"):
            randomizer.randomize(np.array([[0, 0, 0], wrong]), entropy())
    for wrong in ([math.nan, 0, 0], [0, math.inf, 0], [-math.inf, math.inf, 0]):
        with pytest.raises(DomainError, match=r"values\[1\] holds NaN or infinity"):
            randomizer.randomize(np.array([[0, 0, 0], wrong]), entropy())


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_vectors_of_every_type(name):
    randomizer = vectors(name)
    unit = [[1, 0, 0], [0, -1, 0]]
    expected = randomizer.randomize(np.array(unit, dtype=float), entropy()).data.tolist()
    for dtype in ("i1", ">i4", "i8", "f2", "f4", ">f8", np.longdouble):
        values = np.array(unit, dtype=dtype)
        assert randomizer.randomize(values, entropy()).data.tolist() == expected
        fortran = np.asfortranarray(values)
        assert randomizer.randomize(fortran, entropy()).data.tolist() == expected
    # Norms of 1 that were rounded in a short type.
    for dtype in (np.float16, np.float32):
        third = np.full((1, 3), 1.0 / math.sqrt(3.0)).astype(dtype)
        assert randomizer.randomize(third, entropy()).num_reports == 1
        above = np.array([[1.0 + 20.0 * np.finfo(dtype).eps, 0.0, 0.0]], dtype=dtype)
        with pytest.raises(DomainError):
            randomizer.randomize(above, entropy())
    with pytest.raises(DomainError):
        randomizer.randomize(np.array([[65504.0, 0.0, 0.0]], dtype=np.float16), entropy())
    for dtype in (bool, object, complex, "U1", "m8[ns]"):
        with pytest.raises(ParameterError):
            randomizer.randomize(np.array(unit).astype(dtype), entropy())
    for shape in ((3,), (1, 2), (1, 4), (1, 1, 3), (0, 2)):
        with pytest.raises(ParameterError):
            randomizer.randomize(np.zeros(shape), entropy())
    assert randomizer.randomize(np.zeros((0, 3)), entropy()).num_reports == 0


@pytest.mark.parametrize("kind", ["category", "set", "number", "vector"])
def test_masked_values_are_not_taken_for_answers(kind):
    # np.asarray drops the mask, and what was hidden would be reported.
    values = np.ma.MaskedArray([1, 0], mask=[False, True])
    if kind == "set":
        randomizer = ANSWER_SET_RANDOMIZERS["sampled:k-rr"](
            domain_size=3, max_answers=2, epsilon0=1.0
        )
        values = np.ma.MaskedArray([[1, 0]], mask=[[False, True]])
    elif kind == "number":
        randomizer = NUMBER_RANDOMIZERS["piecewise"](low=0.0, high=1.0, epsilon0=1.0)
    elif kind == "vector":
        randomizer = VECTOR_RANDOMIZERS["privunit"](dimension=2, epsilon0=1.0)
        values = np.ma.MaskedArray([[0.5, 0.5]], mask=[[False, True]])
    else:
        randomizer = RANDOMIZERS["hadamard-response"](domain_size=3, epsilon0=1.0)
    with pytest.raises(ParameterError, match="masked array"):
        randomizer.randomize(values, Entropy.from_seed(1))
