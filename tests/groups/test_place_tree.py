"""Halved places: who hides whom against plain sums, and matches that tell nothing more."""

import math
from itertools import permutations

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups import displacement as assignment
from shuffledp.groups import groups as rows
from shuffledp.groups.displacement import PlaceTree, largest_assignment, largest_star
from shuffledp.groups.groups import Groups
from shuffledp.groups.reference_orders import sensitivity


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


def exact(points):
    """The maximum by listing all permutations, with plain loops."""
    return max(
        sum(math.dist(points[i], points[s[i]]) for i in range(len(points)))
        for s in permutations(range(len(points)))
    )


def cases(dimensions, count=25):
    generator = Entropy.from_seed(10 + dimensions).generator()
    for _ in range(count):
        size = int(generator.integers(1, 7))
        yield generator.integers(-9, 10, (size, dimensions))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_bound_is_the_maximum(dimensions):
    for points in cases(dimensions):
        groups = Groups.from_sets([range(len(points))], num_users=len(points))
        truth = exact(points.tolist())
        found = largest_assignment(groups, points)
        # Never below the truth; the two differ by the rounding of the sums alone.
        assert truth * (1 - 1e-14) <= found <= truth * (1 + 1e-9) + 1e-9
        assert largest_star(groups, points.astype(float)) >= truth * (1 - 1e-14)


def test_unsolved_groups_have_the_star_bound(monkeypatch):
    monkeypatch.setattr(assignment, "_LARGEST_SOLVED", 1)
    for points in cases(2):
        groups = Groups.from_sets([range(len(points))], num_users=len(points))
        truth = exact(points.tolist())
        assert truth * (1 - 1e-14) <= largest_assignment(groups, points) <= truth * 1.16 + 1e-9


def test_a_bad_assignment_still_gives_a_bound(monkeypatch):
    monkeypatch.setattr(
        "scipy.optimize.linear_sum_assignment",
        lambda costs, maximize: (np.arange(len(costs)), np.arange(len(costs))),
    )
    for points in cases(2, count=10):
        assert assignment._dual(points.astype(float)) >= exact(points.tolist()) * (1 - 1e-14)


def test_the_largest_of_many_groups_counts(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_MEMBERSHIPS", 7)
    points = Entropy.from_seed(4).generator().integers(0, 50, (40, 2))
    sets = [list(range(i, i + 5)) for i in range(0, 36, 3)] + [[39]]
    groups = Groups.from_sets([*sets, range(34, 40)], num_users=40)
    truth = max(exact(points[group].tolist()) for group in [*sets, list(range(34, 40))])
    assert largest_assignment(groups, points) == pytest.approx(truth, rel=1e-9)
    monkeypatch.setattr(assignment, "_MOST_SOLVED", 1)
    assert truth <= largest_assignment(groups, points) <= 1.16 * truth


def test_on_a_line_it_is_the_footrule():
    places = Entropy.from_seed(4).generator().permutation(30)
    groups = Groups.from_sets([range(9), [3, 9, 28], range(10, 30)], num_users=30)
    assert largest_assignment(groups, places[:, None]) == sensitivity("footrule", groups, places)
