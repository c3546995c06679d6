"""The compressed rows themselves: what is refused, what they answer, and equal groups kept once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.groups.group_kernels import row_sums
from shuffledp.groups.groups import MOST_USERS, Groups, count_of, starts_of
from shuffledp.groups.reference_orders import Memberships


@st.composite
def coverings(draw):
    """Return a number of people, and sets of them that cover all."""
    num_users = draw(st.integers(1, 9))
    people = st.integers(0, num_users - 1)
    sets = draw(st.lists(st.sets(people, min_size=1), max_size=8))
    missing = set(range(num_users)).difference(*sets)
    return num_users, sets + [missing] * bool(missing)


@given(coverings())
def test_what_groups_answer_is_what_sets_say(covering):
    num_users, sets = covering
    groups = Groups.from_sets(sets, num_users=num_users)
    distinct = list(dict.fromkeys(frozenset(people) for people in sets))
    assert [set(groups.group(row).tolist()) for row in range(groups.num_groups)] == distinct
    assert groups.sizes.tolist() == [len(people) for people in distinct]
    assert groups.largest_size == max(map(len, distinct))
    for user in range(num_users):
        containing = [len(people) for people in distinct if user in people]
        assert groups.size_protecting()[user] == max(containing)


def test_types_and_protection_from_writing():
    groups = Groups(num_users=3, starts=[0, 2, 3], members=np.array([0, 1, 2]), group_of=[0, 0, 1])
    assert (groups.starts.dtype, groups.members.dtype) == (np.int64, np.int32)
    assert groups.group_of.dtype == np.int64
    for array in (groups.starts, groups.members, groups.group_of):
        assert not array.flags.writeable
    assert "members" not in repr(groups)


def test_people_in_no_group_are_protected_by_nobody():
    groups = Groups(num_users=3, starts=[0, 2], members=[0, 2])
    assert groups.size_protecting().tolist() == [2, 0, 2]
    assert len(groups.cautions()) == 1


def test_no_group_at_all():
    groups = Groups(num_users=2, starts=[0], members=[])
    assert (groups.num_groups, groups.largest_size) == (0, 0)
    assert "nothing is shuffled" in groups.cautions()[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_users": 0}, "num_users = 0 is below 1"),
        ({"num_users": MOST_USERS + 1}, "several batches"),
        ({"starts": [1, 4]}, "no compressed rows"),
        ({"starts": [0, 3]}, "no compressed rows"),
        ({"starts": [0, 2, 2, 4]}, "no compressed rows"),
        ({"starts": [0, 3, 2, 4]}, "no compressed rows"),
        ({"members": [0, 1, 0, 3]}, r"members lie in \[0, 3\)"),
        ({"members": [0, -1, 0, 2]}, "no compressed rows"),
    ],
)
def test_arrays_that_do_not_fit_together(fields, message):
    right = {"num_users": 3, "starts": [0, 2, 4], "members": [0, 1, 0, 2], "group_of": [0, 0, 1]}
    assert Groups(**right).num_groups == 2
    with pytest.raises(ParameterError, match=message) as error:
        Groups(**(right | fields))
    assert "\n" not in str(error.value)


def test_indices_out_of_range():
    groups = Groups.from_sets([[0], [1]], num_users=2)
    with pytest.raises(ParameterError, match=r"= 2 is not in \[0, 2\)"):
        groups.group(2)
    with pytest.raises(ParameterError, match="-1 is not in"):
        groups.group(-1)
    with pytest.raises(ParameterError, match=r"by number, group\(index\)"):
        groups.of(0)


# ------------------------------------------------------------------ cautions


def test_nothing_to_say():
    assert Groups.from_sets([[0, 1], [1, 2]], num_users=3).cautions() == ()


def test_who_is_alone_is_counted():
    (one,) = Groups.from_sets([[0, 1], [2], [2]], num_users=3).cautions()
    assert "1 person of 3 is alone" in one
    (two,) = Groups.from_sets([[0, 1], [2], [3]], num_users=4).cautions()
    assert "2 people of 4 are alone" in two


def test_everybody_alone():
    for num_users in (1, 3):
        groups = Groups.from_sets([[user] for user in range(num_users)], num_users=num_users)
        (caution,) = groups.cautions()
        assert "nothing is shuffled" in caution


def test_a_group_of_everybody():
    (caution,) = Groups.from_sets([[0, 1], [0, 1, 2]], num_users=3).cautions()
    assert "all 3 people" in caution
    assert "a uniform shuffle hides more" in caution


# ------------------------------------------------------------------ rows in the making


def test_equal_rows_are_kept_once_with_whoever_chose_them():
    members = np.array([0, 1, 0, 1, 2, 0, 1], dtype=np.int32)
    kept = Groups._of_rows(3, np.array([0, 2, 5, 7]), members, np.array([2, 0, 1]))
    assert kept.starts.tolist() == [0, 2, 5]
    assert kept.members.tolist() == [0, 1, 0, 1, 2]
    assert kept.group_of.tolist() == [0, 0, 1]


def test_rows_start_where_those_before_end():
    assert starts_of(np.array([2, 0, 1])).tolist() == [0, 2, 2, 3]


def test_counting_words():
    assert [count_of(n, "hop", "hops") for n in (0, 1, 2000)] == ["0 hops", "1 hop", "2,000 hops"]


@given(st.lists(st.sets(st.integers(0, 8), min_size=1), max_size=7))
def test_rows_turned_round(sets):
    members = [user for one in sets for user in sorted(one)]
    starts = np.cumsum([0, *map(len, sets)])
    groups = Groups(num_users=9, starts=starts, members=np.array(members, dtype=np.int64))
    memberships = Memberships.of(groups)
    assert memberships.sizes.tolist() == [len(one) for one in sets]
    rows = np.split(memberships.of_users[1], memberships.of_users[0][1:-1])
    assert [row.tolist() for row in rows] == [
        [a for a, one in enumerate(sets) if user in one] for user in range(9)
    ]
    values = np.arange(9.0) ** 2
    assert row_sums(memberships.of_groups, values).tolist() == [
        sum(user**2 for user in one) for one in sets
    ]
    of_groups = np.arange(float(len(sets)))
    assert row_sums(memberships.of_users, of_groups).tolist() == [
        sum(a for a, one in enumerate(sets) if user in one) for user in range(9)
    ]


def test_arrays_are_read_only():
    memberships = Memberships.of(Groups.from_sets([[0, 1]], num_users=2))
    for array in (memberships.sizes, *memberships.of_users, *memberships.of_groups):
        assert not array.flags.writeable
