"""Displacements under Kendall's distance: laws by enumeration, and the mean of both formulas."""

import math
from itertools import permutations

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import kendall as displacement
from shuffledp.groups.kendall import (
    KendallMallows,
    displacement_law,
    mean_displacement,
)
from shuffledp.groups.permutations import kendall_distance


def as_table(law, num_items, place):
    """Return the probability of each item at a place."""
    displacements, probabilities = law
    table = np.zeros(num_items)
    inside = (displacements + place >= 0) & (displacements + place < num_items)
    assert probabilities[~inside].sum() == 0.0
    table[displacements[inside] + place] = probabilities[inside]
    return table


@pytest.mark.parametrize("num_items", [1, 2, 3, 6])
@pytest.mark.parametrize("theta", [0.0, 5e-324, 1e-12, 0.3, 1.0, 5.0, 50.0, math.inf])
def test_laws_of_every_place_by_enumeration(num_items, theta):
    expected = np.zeros((num_items, num_items))
    for pi in permutations(range(num_items)):
        inversions = kendall_distance(pi)
        expected[np.arange(num_items), pi] += math.exp(-theta * inversions) if inversions else 1.0
    expected /= expected[0].sum()
    for place in range(num_items):
        found = as_table(displacement_law(num_items, theta, place), num_items, place)
        assert found == pytest.approx(expected[place], rel=1e-13, abs=1e-20)
    moved = np.abs(np.subtract.outer(np.arange(num_items), np.arange(num_items)))
    mean = (expected * moved).sum() / num_items
    assert mean_displacement(num_items, theta) == pytest.approx(mean, rel=1e-13)


@pytest.mark.parametrize(
    ("num_items", "theta"),
    [(40, 1e-9), (40, 0.02), (41, 0.1), (150, 0.02), (151, 0.5), (151, 3.0), (300, 1.0)],
)
def test_both_formulas_give_the_same_mean(num_items, theta):
    means = []
    for place in range(num_items):
        displacements, probabilities = displacement_law(num_items, theta, place)
        assert probabilities.sum() == pytest.approx(1.0, rel=1e-12)
        means.append((np.abs(displacements) * probabilities).sum())
    found = mean_displacement(num_items, theta)
    assert found == pytest.approx(math.fsum(means) / num_items, rel=1e-11)


def test_places_far_from_the_ends_are_alike():
    middle = displacement_law(20_000, 0.5, 10_000)
    other = displacement_law(20_000, 0.5, 4_000)
    assert (middle[0] == other[0]).all()
    assert middle[1] == pytest.approx(other[1], rel=1e-9, abs=1e-22)
    assert middle[1] == pytest.approx(middle[1][::-1], rel=1e-9, abs=1e-22)
    mean = (np.abs(middle[0]) * middle[1]).sum()
    assert mean_displacement(10**7, 0.5) == pytest.approx(mean, rel=1e-5)


def test_small_theta_tends_to_the_uniform_law():
    assert mean_displacement(5001, 1e-13) == pytest.approx(mean_displacement(5001, 0.0), rel=1e-8)
    # For small theta and many items it is c / theta, c = 2 ln 2 by the mode of q^(j^2) / (q)_j^2.
    assert mean_displacement(10**6, 1e-3) * 1e-3 == pytest.approx(2 * math.log(2), rel=2e-3)


def test_large_theta():
    # One swap of neighbours: n - 1 of them, each moves two items by one.
    assert mean_displacement(100, 40.0) == pytest.approx(2 * 99 / 100 * math.exp(-40.0), rel=1e-12)
    assert mean_displacement(100, 1e308) == 0.0
    _, probabilities = displacement_law(100, 1e308, 50)
    assert probabilities.max() == probabilities.sum() == 1.0


def test_many_draws_have_this_mean():
    # 4 draws of 1e5 items at theta = 0.3: some 4e4 stretches that do not touch, each with a
    # relative standard deviation below 2: 0.05 is five of them, of a fixed seed.
    model = KendallMallows(num_items=100_000, theta=0.3)
    entropy = Entropy.from_seed(1)
    moved = [np.abs(model.sample(entropy) - np.arange(100_000)).mean() for _ in range(4)]
    assert np.mean(moved) == pytest.approx(model.mean_displacement(), rel=0.05)


def test_too_much_work_is_refused(monkeypatch):
    assert mean_displacement(10**7, 1e-6) is None
    with pytest.raises(ParameterError, match=r"need 1\.0e\+12 terms, above 5e\+08"):
        displacement_law(2_000_000, 1e-9, 1_000_000)
    monkeypatch.setattr(displacement, "MAX_TERMS", 100)
    assert mean_displacement(100, 0.1) is None
    assert mean_displacement(100, 0.0) is not None


@pytest.mark.parametrize("place", [-1, 3])
def test_places_out_of_range_are_refused(place):
    with pytest.raises(ParameterError, match=r"is not in \[0, 2\]"):
        displacement_law(3, 1.0, place)


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="theta = nan"):
        mean_displacement(3, math.nan)
    with pytest.raises(ParameterError, match="num_items = 0"):
        displacement_law(0, 1.0, 0)
