"""Speed of the expected maximum load, E[max] of n balls in k bins.

Each size by the faster method and, where they finish, by both. ``extra_info`` has the
value, the half-width of the enclosure relative to E[max] and to its excess over n / k, and where
there is a fraction the error against it. The baseline is the literature's sum over integer
partitions; the recurrence in whole numbers stands beside it.
"""

from fractions import Fraction

import numpy as np
import pytest

from oracles.fullest_bin import exact_maximum_load, maximum_load
from oracles.partitions import maximum_load_by_partitions
from shuffledp.leakage.counts.fullest_bin import (
    alike_bins,
    by_contour,
    by_recurrence,
    excess_over,
    maximum_load_excess,
    uneven_maximum,
)

SIZES = [(10**3, 5), (10**6, 5), (10**9, 5), (10**5, 1000), (10**9, 10**4)]
BOTH = [
    (10**6, 5, by_recurrence),
    (10**9, 5, by_recurrence),
    (10**3, 5, by_contour),
    (10**6, 5, by_contour),
    (10**5, 1000, by_contour),
    (10**9, 10**4, by_contour),
]
SMALL = [(60, 3), (100, 5), (60, 10)]  # 331, 46 262 and 195 491 partitions


def note(benchmark, found, balls, bins):
    """Keep how accurate the enclosure is beside the time."""
    excess = maximum_load_excess(balls, bins)
    benchmark.extra_info.update(
        maximum_load=found.upper,
        relative_half_width=(found.upper - found.lower) / found.upper / 2,
        excess_half_width=(excess.upper - excess.lower) / excess.upper / 2,
    )


@pytest.mark.parametrize(("balls", "bins"), SIZES)
def test_automatic(benchmark, balls, bins):
    benchmark.group = f"maximum load of {balls} in {bins}"
    maximum_load(balls, bins)  # compiles
    note(benchmark, benchmark(maximum_load, balls, bins), balls, bins)


@pytest.mark.parametrize(("balls", "bins", "tails"), BOTH)
def test_method(benchmark, balls, bins, tails):
    benchmark.group = f"maximum load of {balls} in {bins}"
    asked = Fraction(balls, bins), alike_bins(balls, bins, Fraction(1, bins)), tails
    excess_over(*asked)
    benchmark.pedantic(excess_over, asked, rounds=3, iterations=1)


@pytest.mark.parametrize(("balls", "bins"), SMALL)
def test_enclosure_of_few(benchmark, balls, bins):
    benchmark.group = f"maximum load of {balls} in {bins}"
    maximum_load(balls, bins)
    found = benchmark(maximum_load, balls, bins)
    exact = exact_maximum_load(balls, bins)
    note(benchmark, found, balls, bins)
    benchmark.extra_info["error"] = float(abs(Fraction(found.upper) - exact) / exact)


@pytest.mark.parametrize(("balls", "bins"), [*SMALL, (500, 5)])
def test_whole_numbers(benchmark, balls, bins):
    benchmark.group = f"maximum load of {balls} in {bins}"
    benchmark.pedantic(exact_maximum_load, (balls, bins), rounds=1)


@pytest.mark.parametrize(("balls", "bins"), SMALL)
def test_baseline_partitions(benchmark, balls, bins):
    benchmark.group = f"maximum load of {balls} in {bins}"
    found = benchmark.pedantic(maximum_load_by_partitions, (balls, bins), rounds=1)
    assert found == exact_maximum_load(balls, bins)


@pytest.mark.parametrize(("balls", "bins"), [(2000, 50), (10**5, 5)])
def test_uneven(benchmark, balls, bins):
    benchmark.group = f"uneven maximum of {balls} in {bins}"
    law = np.array([(1.0 + 1e-3 * x / bins) for x in range(bins)])
    uneven_maximum(balls, law / law.sum())
    found = benchmark.pedantic(uneven_maximum, (balls, law / law.sum()), rounds=3)
    benchmark.extra_info["relative_half_width"] = (found.upper - found.lower) / found.upper / 2
