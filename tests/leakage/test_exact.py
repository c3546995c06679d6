"""Fractions: listing of all throws, integer partitions, and the recurrence in whole numbers."""

import itertools
import math
from fractions import Fraction

import pytest

from oracles.partitions import (
    maximum_load_by_partitions,
    num_partitions,
)
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.fullest_bin import exact_maximum_load


def by_listing(balls, bins):
    """Return the same from all k^n throws."""
    throws = itertools.product(range(bins), repeat=balls)
    total = sum(max(throw.count(b) for b in range(bins)) for throw in throws)
    return Fraction(total, bins**balls)


@pytest.mark.parametrize(
    ("balls", "bins"), [(1, 1), (4, 1), (1, 5), (3, 2), (7, 2), (5, 3), (6, 4), (3, 9), (4, 7)]
)
def test_against_all_throws(balls, bins):
    exact = by_listing(balls, bins)
    assert exact_maximum_load(balls, bins) == exact
    assert maximum_load_by_partitions(balls, bins) == exact


@pytest.mark.parametrize(("balls", "bins"), [(20, 4), (30, 3), (25, 25), (12, 1000), (60, 2)])
def test_against_partitions(balls, bins):
    assert exact_maximum_load(balls, bins) == maximum_load_by_partitions(balls, bins)


@pytest.mark.parametrize("balls", [1, 2, 77, 500, 1000])
def test_two_bins(balls):
    middle = math.comb(balls - 1, (balls - 1) // 2)
    exact = balls * (Fraction(1, 2) + Fraction(middle, 2**balls))
    assert exact_maximum_load(balls, 2) == exact


def test_birthdays():
    distinct = Fraction(math.perm(365, 3), 365**3)
    together = Fraction(1, 365**2)
    assert exact_maximum_load(3, 365) == distinct + 2 * (1 - distinct - together) + 3 * together


@pytest.mark.parametrize(
    ("balls", "parts", "number"), [(6, 3, 7), (4, 4, 5), (5, 1, 1), (100, 100, 10**7), (7, 9, 15)]
)
def test_number_of_partitions(balls, parts, number):
    found = num_partitions(balls, parts)
    assert found > number if number == 10**7 else found == number


@pytest.mark.parametrize("parts", [2, 3])
def test_refuses_what_is_too_many(parts):
    with pytest.raises(OutOfRegimeError, match=r"num_balls = \d+ has at least \d{8}"):
        maximum_load_by_partitions(10**8, parts)
    with pytest.raises(OutOfRegimeError, match="partitions into num_bins = 80 parts"):
        maximum_load_by_partitions(120, 80)


@pytest.mark.parametrize(("balls", "bins"), [(1001, 2), (1000, 10**9)])
def test_refuses_what_is_too_large(balls, bins):
    with pytest.raises(OutOfRegimeError, match=rf"num_balls = {balls} and num_bins = {bins} need"):
        exact_maximum_load(balls, bins)


@pytest.mark.parametrize("call", [exact_maximum_load, maximum_load_by_partitions])
@pytest.mark.parametrize("bad", [0, -1, 1.5, math.nan, "2", None])
def test_bad_sizes(call, bad):
    with pytest.raises(ParameterError, match="num_balls"):
        call(bad, 3)
    with pytest.raises(ParameterError, match="num_bins"):
        call(3, bad)
