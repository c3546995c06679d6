"""Groups of the nearest against sorting all others by distance and number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import group_rows as rows
from shuffledp.groups.groups import Groups


def nearest_by_sorting(points, size):
    """Return each person and the nearest others; ties by number."""
    points = np.asarray(points, dtype=np.int64).reshape(len(points), -1)
    square = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    groups = []
    for user, row in enumerate(square):
        others = [other for other in np.lexsort((np.arange(row.size), row)) if other != user]
        groups.append({user, *map(int, others[: size - 1])})
    return groups


def members_of(groups):
    return [set(groups.of(user).tolist()) for user in range(groups.num_users)]


# Few whole numbers, so that there are ties, and many people in one place.
grids = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.lists(st.integers(0, 3), min_size=d, max_size=d), min_size=1, max_size=25)
)


@given(grids, st.data())
def test_ties_on_a_grid(points, data):
    size = data.draw(st.integers(1, len(points)))
    groups = Groups.from_nearest(points, size)
    assert members_of(groups) == nearest_by_sorting(points, size)
    assert (groups.sizes == size).all()
    stored = {tuple(groups.group(row).tolist()) for row in range(groups.num_groups)}
    assert len(stored) == groups.num_groups


@given(st.lists(st.integers(0, 6), min_size=1, max_size=25), st.data())
def test_one_column(values, data):
    size = data.draw(st.integers(1, len(values)))
    groups = Groups.from_nearest(values, size, metric="absolute")
    assert members_of(groups) == nearest_by_sorting(values, size)


def test_everybody_at_one_distance():
    # The person in the middle has 12 others at distance 5, more than are asked for at first.
    circle = [(3, 4), (4, 3), (5, 0), (0, 5), (-3, 4), (-4, 3), (-5, 0)]
    circle += [(0, -5), (3, -4), (4, -3), (-3, -4), (-4, -3)]
    points = [*circle, (0, 0)]
    for size in range(1, 14):
        assert members_of(Groups.from_nearest(points, size)) == nearest_by_sorting(points, size)


def test_blocks_of_every_size_give_the_same_groups(monkeypatch):
    points = Entropy.from_seed(6).generator().integers(0, 12, size=(300, 2))
    whole = Groups.from_nearest(points, 7)
    assert members_of(whole) == nearest_by_sorting(points, 7)
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
    # Each age has the group of its first ten, and one for each of the other ninety.
    assert groups.num_groups == 3 * 91
    assert groups.of(55).tolist() == [*range(9), 55]


def test_the_ends_of_the_sizes():
    groups = Groups.from_nearest([3, 1, 2], 1, metric="absolute")
    assert [groups.of(user).tolist() for user in range(3)] == [[0], [1], [2]]
    groups = Groups.from_nearest([3, 1, 2], 3, metric="absolute")
    assert (groups.num_groups, groups.members.tolist()) == (1, [0, 1, 2])
    assert Groups.from_nearest([[1.0, 2.0]], 1).members.tolist() == [0]


def test_descriptions():
    assert "the 0 nearest others" in Groups.from_nearest([1, 2], 1).description
    assert "the 1 nearest other" in Groups.from_nearest([1, 2, 4], 2).description


def test_too_many_memberships_are_counted_and_refused(monkeypatch):
    ages = [20, 20, 20, 40]  # the group of the first two, one for the third, and one of the last
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 6)
    assert Groups.from_nearest(ages, 2, metric="absolute").members.size == 6
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 5)
    with pytest.raises(ParameterError, match=r"have 6 memberships, .*--group-size"):
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
