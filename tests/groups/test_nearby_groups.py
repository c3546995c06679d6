"""Groups by distance against every pair measured, at the boundary, the poles and the limits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import groups as rows
from shuffledp.groups.groups import EARTH_RADIUS, LARGEST_COORDINATE, Groups


def members_of(groups):
    """Return the group of each person as a set."""
    return [set(groups.of(user).tolist()) for user in range(groups.num_users)]


def by_every_pair(num_users, is_near):
    return [{j for j in range(num_users) if is_near(i, j)} for i in range(num_users)]


def assert_distinct(groups):
    """No group is stored twice, and each is somebody's."""
    stored = [tuple(groups.group(row).tolist()) for row in range(groups.num_groups)]
    assert len(set(stored)) == len(stored)
    assert set(groups.group_of.tolist()) == set(range(groups.num_groups))


tenths = st.integers(-12, 12).map(lambda tenth: tenth / 10)


def exact(number):
    """Return the tenth that was meant."""
    return Fraction(round(number * 10), 10)


@given(st.lists(tenths, min_size=1, max_size=30), st.integers(0, 30).map(lambda tenth: tenth / 10))
def test_one_column_in_tenths_as_they_were_meant(values, radius):
    groups = Groups.from_distance(values, radius, metric="absolute")
    meant = [exact(value) for value in values]
    limit = exact(radius)
    expected = by_every_pair(len(values), lambda i, j: abs(meant[i] - meant[j]) <= limit)
    assert members_of(groups) == expected
    assert_distinct(groups)


@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(tenths, min_size=d, max_size=d), min_size=1, max_size=20)
    ),
    st.integers(0, 30).map(lambda tenth: tenth / 10),
)
def test_several_columns_in_tenths_as_they_were_meant(points, radius):
    groups = Groups.from_distance(points, radius)
    meant = [[exact(value) for value in point] for point in points]
    limit = exact(radius) ** 2

    def is_near(i, j):
        return sum((a - b) ** 2 for a, b in zip(meant[i], meant[j], strict=True)) <= limit

    assert members_of(groups) == by_every_pair(len(points), is_near)
    assert_distinct(groups)


def test_blocks_of_every_size_give_the_same_groups(monkeypatch):
    generator = Entropy.from_seed(3).generator()
    # Some crowded together, so that their blocks have to be halved; many in one place.
    points = np.concatenate([generator.random((500, 2)) * 100, generator.random((100, 2)) / 4])
    points = np.concatenate([points, np.repeat(points[:10], 20, axis=0)])
    whole = Groups.from_distance(points, 0.5)
    square = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    for user, is_near in enumerate(square <= 0.25):
        assert whole.of(user).tolist() == np.flatnonzero(is_near).tolist()
    for block in (1, 40, 1000):
        monkeypatch.setattr(rows, "BLOCK_MEMBERSHIPS", block)
        groups = Groups.from_distance(points, 0.5)
        assert np.array_equal(groups.members, whole.members)
        assert np.array_equal(groups.starts, whole.starts)


@pytest.mark.parametrize("metric", ["euclidean", "haversine", "absolute"])
def test_renaming_people_renames_their_groups(metric):
    generator = Entropy.from_seed(4).generator()
    points = np.round(generator.random((60, 1 if metric == "absolute" else 2)) * 10)
    new_name = generator.permutation(60)
    renamed = np.empty_like(points)
    renamed[new_name] = points
    radius = 200_000 if metric == "haversine" else 2
    before = members_of(Groups.from_distance(points, radius, metric=metric))
    after = members_of(Groups.from_distance(renamed, radius, metric=metric))
    for user in range(60):
        assert after[new_name[user]] == {int(new_name[other]) for other in before[user]}


def test_people_with_equal_values_share_a_group():
    ages = [30, 31, 30, 50, 31] * 100
    groups = Groups.from_distance(ages, 0, metric="absolute")
    assert groups.num_groups == 3
    assert groups.members.size == 500


def test_groups_of_different_places_may_be_equal():
    groups = Groups.from_distance([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]], 2.0)
    assert groups.num_groups == 2
    assert groups.group_of.tolist() == [0, 0, 1]


def test_minus_zero_is_zero():
    assert Groups.from_distance([0.0, -0.0, 1.0], 0, metric="absolute").num_groups == 2


def test_radius_zero_is_exact():
    values = [1e15, 1e15 + 0.125, 1e15 + 0.125]
    assert members_of(Groups.from_distance(values, 0, metric="absolute")) == [{0}, {1, 2}, {1, 2}]


def test_the_radius_is_widened_by_rounding_only():
    values = [1e6, 1e6 + 1, 1e6 + 2]
    for radius, size in ((1.0, 2), (1.0 - 1e-9, 1), (1.0 + 1e-9, 2)):
        groups = Groups.from_distance(values, radius, metric="absolute")
        assert groups.of(0).size == size
        groups = Groups.from_distance([[value, value] for value in values], radius * 2**0.5)
        assert groups.of(0).size == size


@pytest.mark.parametrize("radius", [0, 1, 1e308])
@pytest.mark.parametrize("metric", ["euclidean", "absolute", "haversine"])
def test_one_person(metric, radius):
    groups = Groups.from_distance([[1.0, 2.0][: 1 + (metric != "absolute")]], radius, metric=metric)
    assert (groups.num_users, groups.num_groups, groups.of(0).tolist()) == (1, 1, [0])
    assert "nothing is shuffled" in groups.cautions()[0]


@pytest.mark.parametrize("radius", [2.0, 1e308])
def test_everybody_within_the_radius(radius, monkeypatch):
    # A group of everybody is stored once, so that it needs no room for n^2 memberships.
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 3)
    for points, metric in (([[0.0, 0.0], [1.0, 1.0], [0.5, 0.0]], "euclidean"),):
        groups = Groups.from_distance(points, radius, metric=metric)
        assert (groups.num_groups, groups.of(2).tolist()) == (1, [0, 1, 2])
        assert "a uniform shuffle hides more" in groups.cautions()[0]


def test_the_largest_coordinates():
    far = LARGEST_COORDINATE
    points = [[-far, -far], [far, far], [far, far * (1 - 1e-3)]]
    assert members_of(Groups.from_distance(points, far / 10)) == [{0}, {1, 2}, {1, 2}]
    assert Groups.from_distance(points, 3 * far).num_groups == 1


def test_descriptions():
    points = [[1.0, 2.0], [3.0, 4.0]]
    assert "within 2.5 of" in Groups.from_distance(points, 2.5).description
    assert "5,000 m" in Groups.from_distance(points, 5000, metric="haversine").description
    assert "at most 2" in Groups.from_distance([1, 2], 2, metric="absolute").description


# ------------------------------------------------------------------ on the Earth


def central_angle(first, second):
    """Return the angle between two points by the haversine formula."""
    (lat1, lon1), (lat2, lon2) = (map(math.radians, point) for point in (first, second))
    square = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * math.asin(math.sqrt(min(1.0, square)))


positions = st.tuples(
    st.one_of(st.sampled_from([-90.0, 0.0, 90.0]), st.floats(-90, 90)),
    st.one_of(st.sampled_from([-180.0, 0.0, 179.999, 180.0]), st.floats(-180, 180)),
)


@given(st.lists(positions, min_size=1, max_size=15), st.floats(0, 3.2))
def test_haversine_against_the_formula(points, angle):
    groups = members_of(Groups.from_distance(points, angle * EARTH_RADIUS, metric="haversine"))
    for i, first in enumerate(points):
        for j, second in enumerate(points):
            between = central_angle(first, second)
            # Near the other side of the Earth both formulas lose half of their digits.
            margin = 1e-12 if between < 3 else 1e-6
            if between <= angle - margin:
                assert j in groups[i]
            if between > angle + margin:
                assert j not in groups[i]


def test_the_poles_and_the_date_line():
    points = [(90, -170), (90, 10), (-90, 3), (-90, 180), (5, 180), (5, -180), (0, 1), (-0.0, 1)]
    groups = Groups.from_distance(points, 0, metric="haversine")
    assert members_of(groups) == [{i, i ^ 1} for i in range(8)]
    across = Groups.from_distance([(0, 179.95), (0, -179.95)], 11_120, metric="haversine")
    assert across.num_groups == 1
    across = Groups.from_distance([(0, 179.95), (0, -179.95)], 11_119, metric="haversine")
    assert across.num_groups == 2


@pytest.mark.parametrize("degrees", [0.001, 0.1, 1.0, 37.0, 90.0, 179.0])
@pytest.mark.parametrize("where", [0.0, 0.1, -77.7, 63.3])
def test_exactly_at_the_radius_is_inside(degrees, where):
    radius = math.radians(degrees) * EARTH_RADIUS
    points = [(0.0, where), (0.0, where + degrees if where + degrees <= 180 else where - degrees)]
    assert Groups.from_distance(points, radius, metric="haversine").num_groups == 1
    # One micrometre less, or a metre where the chord hardly grows, and they are apart.
    less = 1e-6 if degrees <= 90 else 1.0
    assert Groups.from_distance(points, radius - less, metric="haversine").num_groups == 2


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("points", "radius", "metric", "message"),
    [
        ([[1, 2], [3, math.nan]], 1, "euclidean", r"points\[1, 1\]: nan is not finite"),
        ([1, math.inf], 1, "absolute", r"points\[1, 0\]: inf is not finite"),
        ([[1e151]], 1, "euclidean", r"points\[0, 0\]: coordinate 1e\+151 is not in"),
        ([[0, 0], [91, 0]], 1, "haversine", r"points\[1, 0\]: latitude 91.0 is not in \[-90, 90\]"),
        ([[0, -181]], 1, "haversine", r"longitude -181.0 is not in \[-180, 180\]"),
        ([[0, 0, 0]], 1, "haversine", "takes latitude and longitude, not 3 columns"),
        ([1], 1, "haversine", "takes latitude and longitude, not 1 columns"),
        ([[0, 0]], 1, "absolute", "takes one column, not 2"),
        ([[]], 1, "euclidean", "takes one column or more, not 0"),
        ([[0, 0]], 1, "manhattan", "'manhattan' is not one of euclidean, haversine, absolute"),
        ([], 1, "euclidean", "num_users = 0 is below 1"),
        (5.0, 1, "euclidean", r"shape \(\)"),
        ([[[1.0]]], 1, "euclidean", r"shape \(1, 1, 1\)"),
        ([[1], [1, 2]], 1, "euclidean", "do not form an array"),
        (["a"], 1, "absolute", "do not form an array"),
        ([1], -1, "absolute", r"radius = -1 is not in \[0, inf\)"),
        ([1], math.nan, "absolute", "radius = nan"),
        ([1], math.inf, "absolute", "radius = inf"),
        ([1], "5km", "absolute", "radius = '5km' is not a number"),
    ],
)
def test_bad_input(points, radius, metric, message):
    with pytest.raises(ParameterError, match=message) as error:
        Groups.from_distance(points, radius, metric=metric)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("metric", ["absolute", "euclidean"])
def test_too_many_memberships_are_counted_and_refused(metric, monkeypatch):
    values = np.repeat(np.arange(10.0), 3)
    points = values if metric == "absolute" else np.stack([values, values], axis=1)
    # Ten places of three people: each place has itself and two neighbours, but for the ends.
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 84)
    assert Groups.from_distance(points, 1.5, metric=metric).members.size == 84
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 83)
    with pytest.raises(ParameterError, match=r"have 84 memberships, above .* 83: try a smaller r"):
        Groups.from_distance(points, 1.5, metric=metric)


def assert_nearest(groups, points, size):
    """Each person is in their group, and nobody outside is nearer than somebody inside."""
    points = np.asarray(points, dtype=np.int64).reshape(len(points), -1)
    square = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    for user, row in enumerate(square):
        members = groups.of(user)
        assert user in members
        assert np.unique(members).size == size
        assert np.sort(row[members]).tolist() == np.sort(row)[:size].tolist()


# Few whole numbers, so that there are ties, and many people in one place.
grids = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.lists(st.integers(0, 3), min_size=d, max_size=d), min_size=1, max_size=25)
)


@given(grids, st.data())
def test_ties_on_a_grid(points, data):
    size = data.draw(st.integers(1, len(points)))
    groups = Groups.from_nearest(points, size)
    assert_nearest(groups, points, size)
    assert (groups.sizes == size).all()
    stored = {tuple(groups.group(row).tolist()) for row in range(groups.num_groups)}
    assert len(stored) == groups.num_groups


@given(st.lists(st.integers(0, 6), min_size=1, max_size=25), st.data())
def test_one_column(values, data):
    size = data.draw(st.integers(1, len(values)))
    groups = Groups.from_nearest(values, size, metric="absolute")
    assert_nearest(groups, values, size)


def test_everybody_at_one_distance():
    # The person in the middle has 12 others at distance 5, more than are asked for at first.
    circle = [(3, 4), (4, 3), (5, 0), (0, 5), (-3, 4), (-4, 3), (-5, 0)]
    circle += [(0, -5), (3, -4), (4, -3), (-3, -4), (-4, -3)]
    points = [*circle, (0, 0)]
    for size in range(1, 14):
        assert_nearest(Groups.from_nearest(points, size), points, size)


def test_blocks_of_every_size_give_the_same_groups_of_nearest(monkeypatch):
    points = Entropy.from_seed(6).generator().integers(0, 12, size=(300, 2))
    whole = Groups.from_nearest(points, 7)
    assert_nearest(whole, points, 7)
    for block in (1, 100):
        monkeypatch.setattr(rows, "BLOCK_MEMBERSHIPS", block)
        assert np.array_equal(Groups.from_nearest(points, 7).members, whole.members)


def test_renaming_people_without_ties_renames_their_groups():
    generator = Entropy.from_seed(7).generator()
    points = generator.random((60, 2))
    new_name = generator.permutation(60)
    renamed = np.empty_like(points)
    renamed[new_name] = points
    before, after = Groups.from_nearest(points, 6), Groups.from_nearest(renamed, 6)
    for user in range(60):
        assert set(after.of(new_name[user])) == set(new_name[before.of(user)])


def test_across_the_date_line_and_at_the_pole():
    points = [(0, 179.9), (0, -179.8), (0, 179.0), (90, 0), (89.9, 50), (89, 50)]
    groups = Groups.from_nearest(points, 2, metric="haversine")
    assert members_of(groups) == [{0, 1}, {0, 1}, {0, 2}, {3, 4}, {3, 4}, {4, 5}]


def test_people_of_one_place_share_what_they_can():
    ages = np.repeat([20, 40, 60], 100)
    groups = Groups.from_nearest(ages, 10, metric="absolute")
    # Each age has the group of ten of its people, and one for each of the other ninety.
    assert groups.num_groups == 3 * 91
    assert_nearest(groups, ages, 10)


def test_the_ends_of_the_sizes():
    groups = Groups.from_nearest([3, 1, 2], 1, metric="absolute")
    assert [groups.of(user).tolist() for user in range(3)] == [[0], [1], [2]]
    groups = Groups.from_nearest([3, 1, 2], 3, metric="absolute")
    assert (groups.num_groups, groups.members.tolist()) == (1, [0, 1, 2])
    assert Groups.from_nearest([[1.0, 2.0]], 1).members.tolist() == [0]


def test_descriptions_of_nearest():
    assert "the 0 nearest others" in Groups.from_nearest([1, 2], 1).description
    assert "the 1 nearest other" in Groups.from_nearest([1, 2, 4], 2).description


def test_too_many_memberships_are_counted_and_refused_of_nearest(monkeypatch):
    ages = [20, 20, 20, 40]  # a group of two, one for the third of that age, and one of the last
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 6)
    assert Groups.from_nearest(ages, 2, metric="absolute").members.size == 6
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 5)
    with pytest.raises(ParameterError, match=r"have 6 memberships, .*group_size="):
        Groups.from_nearest(ages, 2, metric="absolute")


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "group_size = 0 is below 1"),
        (3, r"group_size = 3 is not in \[1, 2\]: there are only 2 people"),
        (1.5, "group_size = 1.5 is not a whole number"),
    ],
)
def test_bad_sizes(size, message):
    with pytest.raises(ParameterError, match=message):
        Groups.from_nearest([1.0, 2.0], size)


def test_bad_points():
    with pytest.raises(ParameterError, match=r"points\[0, 0\]: nan is not finite"):
        Groups.from_nearest([float("nan")], 1)
    with pytest.raises(ParameterError, match="there are only 1 person"):
        Groups.from_nearest([1.0], 2)
