"""The crescents: counts, geometry at all three scales, and the merging of labels."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.datasets.crescents import LABELS, coarser, draw_crescents

# Noise beyond 8 deviations: 2e-15 a coordinate, some 8,000 of them twice; the means of 500 points
# are 0.1 away from theirs, more than 6 deviations, in one of 1e9 samples.
FALSE_POSITIVE_RATE = 1e-8


@pytest.fixture(scope="module")
def crescents():
    return draw_crescents(4_003, Entropy.from_seed(3))


def test_counts(crescents):
    counts = np.bincount(crescents.labels)
    assert counts.size == len(LABELS)
    assert sorted(counts.tolist()) == [500] * 5 + [501] * 3
    assert not crescents.points.flags.writeable


def test_seeded(crescents):
    again = draw_crescents(4_003, Entropy.from_seed(3))
    other = draw_crescents(4_003, Entropy.from_seed(4))
    assert (again.points == crescents.points).all()
    assert (other.points != crescents.points).any()


def test_clusters_lie_apart(crescents):
    warm = coarser(crescents.labels, 2) == 0
    assert crescents.points[warm, 1].min() > crescents.points[~warm, 1].max()


@pytest.mark.parametrize("label", range(8))
def test_crescents_are_half_circles_and_halves_lie_side_by_side(crescents, label):
    points = crescents.points[crescents.labels == label]
    centre = np.array([0.0, -3.2 * (label // 4)])
    upside_down = 1.0
    if label // 2 % 2:
        centre += [1.0, 0.45]
        upside_down = -1.0
    around = upside_down * (points - centre)
    assert np.abs(np.hypot(*around.T) - 1.0).max() < 8 * 0.09 * np.sqrt(2)
    assert around[:, 1].min() > -8 * 0.09
    side = -around[:, 0] if label % 2 else around[:, 0]
    assert side.min() > -8 * 0.09
    assert abs(side.mean() - 2 / np.pi) < 0.1


def test_the_two_crescents_of_a_cluster_can_be_told_apart(crescents):
    # By the nearest neighbour, nearly always: else 4-way classification would be hopeless.
    from scipy.spatial import cKDTree

    _, nearest = cKDTree(crescents.points).query(crescents.points, k=2)
    four = coarser(crescents.labels, 4)
    assert (four[nearest[:, 1]] == four).mean() > 0.97


def test_too_few_people():
    with pytest.raises(ParameterError, match="num_users = 7 is below 8"):
        draw_crescents(7, Entropy.from_seed(1))
