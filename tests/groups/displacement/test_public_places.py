"""Places on a lattice: ranks with ties, cells in the plane and around the Earth, refusals."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.displacement import PublicPlaces
from shuffledp.groups.groups import Groups
from shuffledp.groups.nearby_groups import EARTH_RADIUS
from shuffledp.groups.place_tree import LARGEST_COORDINATE

PAIR = Groups.from_sets([[0, 1]], num_users=2)


def test_equal_values_share_the_middle_of_their_ranks():
    places = PublicPlaces.by_rank([5.0, 1.0, 5.0, -2.0, 5.0])
    assert (places.cells.ravel() * places.side).tolist() == [3.0, 1.0, 3.0, 0.0, 3.0]
    assert places.unit == "places"


def test_people_of_one_value_need_no_noise_to_be_exchanged():
    values = [30, 30, 30, 40]
    groups = Groups.from_sets([[0, 1, 2], [3]], num_users=4)
    assert PublicPlaces.by_rank(values).sensitivity(groups) == 0


@pytest.mark.parametrize("alpha", [0.5, 4.0, float("inf")])
def test_cells_in_the_plane_are_small_beside_the_noise(alpha):
    points = Entropy.from_seed(1).generator().random((60, 2))
    groups = Groups.from_nearest(points, 5)
    places = PublicPlaces.for_groups(groups, alpha, points, "euclidean")
    scale = places.side * places.sensitivity(groups) / alpha
    assert places.side <= max(scale / 8.0, 2.0**-29)
    rounded = places.cells * places.side + points.min(axis=0)
    assert np.abs(rounded - points).max() <= 0.5 * places.side * (1 + 1e-9)


def test_places_on_the_earth_are_points_in_space():
    poles = np.array([[90.0, 10.0], [-90.0, 50.0]])
    places = PublicPlaces.for_groups(PAIR, 4.0, poles, "haversine")
    offset = (places.cells[0] - places.cells[1]) * places.side
    assert np.linalg.norm(offset) == pytest.approx(2 * EARTH_RADIUS, rel=1e-2)
    # Across the date line they are neighbours.
    near = np.array([[0.0, 179.999], [0.0, -179.999]])
    places = PublicPlaces.for_groups(PAIR, 4.0, near, "haversine")
    offset = (places.cells[0] - places.cells[1]) * places.side
    assert np.linalg.norm(offset) == pytest.approx(222.4, rel=0.1)
    assert places.unit == "m"


def test_everybody_at_one_point_needs_no_noise():
    places = PublicPlaces.for_groups(PAIR, 4.0, np.ones((2, 2)), "euclidean")
    assert places.sensitivity(PAIR) == 0.0


def test_without_coordinates_places_are_those_of_an_order():
    groups = Groups.from_sets([[0, 2], [2, 1]], num_users=3)
    places = PublicPlaces.for_groups(groups, 4.0, None, "euclidean")
    assert sorted(places.cells.ravel().tolist()) == [0, 1, 2]
    assert places.name.startswith("places in the order")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (np.zeros(3, int), "shape"),
        (np.zeros((0, 2), int), "shape"),
        (np.zeros((3, 2)), "dtype float64"),
        (np.zeros((3, 9), int), "8 at most"),
        (np.full((1, 1), LARGEST_COORDINATE + 1), "above 2"),
    ],
)
def test_what_is_no_lattice_is_refused(cells, message):
    with pytest.raises(ParameterError, match=message):
        PublicPlaces(cells=cells)


def test_other_people_are_refused():
    places = PublicPlaces(cells=np.zeros((3, 1), int))
    with pytest.raises(ParameterError, match="2 people"):
        places.sensitivity(PAIR)
    with pytest.raises(ParameterError, match="3 rows for 2 people"):
        PublicPlaces.for_groups(PAIR, 4.0, np.zeros((3, 2)), "euclidean")
    with pytest.raises(ParameterError, match="side"):
        PublicPlaces(cells=np.zeros((3, 1), int), side=0.0)
