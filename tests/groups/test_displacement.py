"""Places on a lattice: ranks with ties, cells in the plane and around the Earth, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.displacement import DisplacementShuffler, PublicPlaces
from shuffledp.groups.groups import EARTH_RADIUS, Groups

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


def test_many_people_at_each_of_a_few_places_far_apart_are_put_into_cells():
    towns = np.array([[43.0, -4.0], [46.5, 2.0], [50.0, 7.0]])
    lone = (43.01, -4.0)  # so that one group can move
    points = np.vstack([np.repeat(towns, 300, axis=0), [lone]])
    groups = Groups.from_distance(points, 5_000, metric="haversine")
    shuffler = DisplacementShuffler.for_groups(groups, 4.0, coordinates=points, metric="haversine")
    metres = shuffler.places.sensitivity(groups) * shuffler.places.side
    assert metres == pytest.approx(2 * math.radians(0.01) * EARTH_RADIUS, rel=0.05)


def test_without_coordinates_places_are_those_of_an_order():
    groups = Groups.from_sets([[0, 2], [2, 1]], num_users=3)
    places = PublicPlaces.for_groups(groups, 4.0, None, "euclidean")
    assert sorted(places.cells.ravel().tolist()) == [0, 1, 2]
    assert places.name.startswith("places in the order")


def test_more_than_eight_coordinates_are_refused():
    with pytest.raises(ParameterError, match="9 coordinates: give 8 at most"):
        PublicPlaces.for_groups(PAIR, 4.0, np.arange(18.0).reshape(2, 9), "euclidean")


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e140])
@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_sums_of_coordinates_stay_within_64_bits(size, alpha):
    points = size * Entropy.from_seed(1).generator().random((60, 2))
    places = PublicPlaces.for_groups(Groups.from_nearest(points, 5), alpha, points, "euclidean")
    assert np.abs(places.cells).max() <= 2**32


def test_other_people_are_refused():
    places = PublicPlaces(cells=np.zeros((3, 1), int))
    with pytest.raises(ParameterError, match="2 people"):
        places.sensitivity(PAIR)
    with pytest.raises(ParameterError, match="3 rows for 2 people"):
        PublicPlaces.for_groups(PAIR, 4.0, np.zeros((3, 2)), "euclidean")


# For the whole module; one of its tests draws.
FALSE_POSITIVE_RATE = 1e-9
NUM_DRAWS = 4_000
POINTS = Entropy.from_seed(1).generator().random((200, 2))
GROUPS = Groups.from_nearest(POINTS, 5)


def on_a_line(cells, theta):
    return DisplacementShuffler(places=PublicPlaces(cells=np.array(cells)[:, None]), theta=theta)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 4.0, 50.0, 7.3e-5])
@pytest.mark.parametrize("coordinates", [POINTS, POINTS[:, 0], None])
def test_theta_times_the_sensitivity_is_at_most_alpha_and_no_less_than_floats_allow(
    alpha, coordinates
):
    shuffler = DisplacementShuffler.for_groups(GROUPS, alpha, coordinates=coordinates)
    exact = Fraction(shuffler.theta) * Fraction(shuffler.places.sensitivity(GROUPS))
    assert exact <= Fraction(alpha) <= exact * (1 + Fraction(1, 2**50))
    assert shuffler.alpha_for(GROUPS) <= alpha
    assert shuffler.scale == shuffler.places.side / shuffler.theta
    larger = Groups.from_nearest(POINTS, 9)
    assert shuffler.alpha_for(larger) > alpha


def test_alpha_zero_is_uniform_and_alpha_infinite_moves_nobody():
    uniform = DisplacementShuffler.for_groups(GROUPS, 0.0, coordinates=POINTS)
    assert uniform.theta == 0.0
    assert math.isinf(uniform.scale)
    assert uniform.alpha_for(GROUPS) == 0.0
    assert set(uniform.crowds_lower()) == {199.0}
    assert sorted(uniform.draw(Entropy.from_seed(1)).tolist()) == list(range(200))
    with pytest.raises(ParameterError, match="no noisy places"):
        uniform.noisy_places(Entropy.from_seed(1))
    still = DisplacementShuffler.for_groups(GROUPS, math.inf, coordinates=POINTS)
    assert still.draw(Entropy.from_seed(1)).tolist() == list(range(200))
    assert set(still.crowds_lower()) == {0.0}
    # What can hardly be told from a uniform shuffle is one.
    assert DisplacementShuffler.for_groups(GROUPS, 1e-20, coordinates=POINTS).theta == 0.0


def test_people_of_one_place_trade_freely_without_any_noise():
    values = [1, 1, 1, 5]
    groups = Groups.from_distance(values, 0, metric="absolute")
    shuffler = DisplacementShuffler.for_groups(groups, 1.0, coordinates=values)
    assert math.isinf(shuffler.theta)
    assert shuffler.alpha_for(groups) == 0.0
    assert shuffler.crowds_lower().tolist() == [2.0, 2.0, 2.0, 0.0]
    seen = {tuple(shuffler.draw(Entropy.from_seed(seed)).tolist()) for seed in range(60)}
    assert len(seen) == 6
    assert {draw[3] for draw in seen} == {3}


def test_reports_end_where_the_law_says():
    # Two people at distance 1: they trade places if the noisy places are the other way round, or
    # equal and a coin says so. By symmetry that is half of Pr[Z1 - Z2 = 1] and all above.
    theta = 0.8
    shuffler, entropy = on_a_line([0, 1], theta), Entropy.from_seed(6)
    k = np.arange(-200, 201)
    masses = np.exp(-theta * np.abs(k))
    masses /= masses.sum()
    difference = np.convolve(masses, masses)  # of Z1 - Z2, from -400 to 400
    chance = 0.5 * difference[401] + difference[402:].sum()
    swapped = sum(shuffler.draw(entropy)[0] == 1 for _ in range(NUM_DRAWS))
    assert binom.cdf(swapped, NUM_DRAWS, chance) > FALSE_POSITIVE_RATE / 2
    assert binom.sf(swapped - 1, NUM_DRAWS, chance) > FALSE_POSITIVE_RATE / 2
    assert binom.sf(swapped - 1, NUM_DRAWS, 0.8 * chance) < FALSE_POSITIVE_RATE / 2


def test_reports_stay_near_in_the_plane():
    shuffler = DisplacementShuffler.for_groups(GROUPS, 400.0, coordinates=POINTS)
    sigma = shuffler.draw(Entropy.from_seed(2))
    moved = np.linalg.norm(POINTS - POINTS[sigma], axis=1).mean()
    assert 0.0 < moved < 0.2
    assert shuffler.scale < 0.02


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, "S3", bool])
@pytest.mark.parametrize("row", [(), (3,), (0,)])
def test_rows_are_moved_and_not_changed(dtype, row):
    reports = np.arange(200 * max(math.prod(row), 1)).astype(dtype)[: 200 * math.prod(row)]
    reports = reports.reshape(200, *row)
    shuffler = DisplacementShuffler.for_groups(GROUPS, 4.0, coordinates=POINTS)
    found = shuffler.shuffle(reports, Entropy.from_seed(3))
    assert found.dtype == reports.dtype
    assert np.array_equal(found, reports[shuffler.draw(Entropy.from_seed(3))])


def test_refusals():
    shuffler = on_a_line([0, 1], 1.0)
    with pytest.raises(ParameterError, match="3 rows for 2 people"):
        shuffler.shuffle(np.zeros(3), Entropy.from_seed(0))
    with pytest.raises(ParameterError, match="alpha"):
        DisplacementShuffler.for_groups(GROUPS, -1.0)
    for theta, message in ((-1.0, "theta"), (math.nan, "theta"), (1e-13, "between 0 and 9")):
        with pytest.raises(ParameterError, match=message):
            on_a_line([0, 1], theta)
