"""Halved places: who hides whom against plain sums, and matches that tell nothing more."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups.place_tree import PlaceTree


def drawn(dimensions, num_users=400, *, spread=60):
    generator = Entropy.from_seed(dimensions).generator()
    return generator.integers(-spread, spread + 1, (num_users, dimensions))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("theta", [1e-9, 0.02, 0.3, 3.0])
def test_crowds_are_below_the_sums_and_near(dimensions, theta):
    cells = drawn(dimensions)
    offsets = cells[:, None, :] - cells[None, :, :]
    sums = np.exp(-theta * np.sqrt((offsets**2).sum(axis=2))).sum(axis=1) - 1.0
    found = PlaceTree.of(cells).crowds_lower(theta)
    assert np.all(found <= sums + 1e-12)
    assert np.all(found >= 0.95 * sums - 1e-4)


def test_crowds_of_one_place_and_of_one_person():
    everybody = PlaceTree.of(np.full((100, 2), 7)).crowds_lower(0.5)
    assert np.all((everybody <= 99.0) & (everybody > 98.9999))
    assert PlaceTree.of(np.array([[3]])).crowds_lower(0.5).tolist() == [0.0]


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("num_users", [1, 2, 3, 17, 400])
def test_a_match_is_one_to_one_and_leaves_places_where_they_are(dimensions, num_users):
    cells = drawn(dimensions, num_users)
    tree = PlaceTree.of(cells)
    arrival = Entropy.from_seed(3).generator().permutation(num_users)
    found = tree.matched(cells + 1, arrival)
    assert sorted(found.tolist()) == list(range(num_users))
    # The same places, all moved alike: each person gets one of their own place.
    moved = np.abs(cells[found] - cells).max(axis=1)
    assert (moved == 0).mean() > (0.999 if dimensions == 1 else 0.8)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_a_match_depends_on_the_noisy_places_and_not_on_whose_they_are(dimensions):
    tree = PlaceTree.of(drawn(dimensions, 50))
    noisy = drawn(dimensions, 50, spread=20)
    generator = Entropy.from_seed(8).generator()
    arrival, renamed = generator.permutation(50), generator.permutation(50)
    found = tree.matched(noisy, arrival)
    # Noisy place j now belongs to somebody else, who arrives when its old owner did.
    owners = np.argsort(renamed)
    assert np.array_equal(tree.matched(noisy[renamed], owners[arrival]), owners[found])
