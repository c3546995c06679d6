"""Given groups: what is taken, in which order, and what is refused."""

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.groups import group_rows as rows
from shuffledp.groups.groups import Groups


@pytest.mark.parametrize(
    "sets",
    [
        [[2, 0], [1]],
        ({0, 2}, (1,)),
        (iter(people) for people in ([0, 2], [1])),
        [np.array([2, 0], dtype=np.uint8), range(1, 2)],
        [frozenset({0, 2}), [1], [2, 0]],
    ],
    ids=["lists", "sets", "iterators", "arrays", "repeated"],
)
def test_every_kind_of_iterable(sets):
    groups = Groups.from_sets(sets, num_users=3)
    assert groups.members.tolist() == [0, 2, 1]
    assert groups.sizes.tolist() == [2, 1]
    assert groups.group_of is None


def test_an_array_is_not_changed():
    people = np.array([2, 0, 1])
    Groups.from_sets([people], num_users=3)
    assert people.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("sets", "num_users", "message"),
    [
        ([[0, 1], []], 2, "group 1 is empty"),
        ([[0, 1], [1, 0, 1]], 2, "group 1 has member 1 2 times"),
        ([[0, 2]], 2, r"group 0 has member 2, which is not in \[0, 2\)"),
        ([[0, 1], [-1]], 2, "group 1 has member -1"),
        ([[0], [1]], 4, "2 people of 4 are in no group, the first is 2"),
        ([[0, 2]], 3, "1 person of 3 is in no group, the first is 1"),
        ([], 1, "1 person of 1 is in no group"),
        ([["a", "b"]], 2, "group 0 has members of dtype"),
        ([[0.0, 1.0]], 2, "dtype float64"),
        ([[True, False]], 2, "dtype bool"),
        ([[[0, 1]]], 2, "give numbers of people"),
        ([0, 1], 2, "group 0 is 0: give the numbers"),
        ([[0, [1]]], 2, "give the numbers of its members"),
        ([[0]], 0, "num_users = 0"),
    ],
)
def test_bad_input(sets, num_users, message):
    with pytest.raises(ParameterError, match=message) as error:
        Groups.from_sets(sets, num_users=num_users)
    assert "\n" not in str(error.value)


def test_too_many_memberships(monkeypatch):
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 3)
    assert Groups.from_sets([[0, 1], [2]], num_users=3).num_groups == 2
    with pytest.raises(ParameterError, match="over 4 memberships, above the limit of 3"):
        Groups.from_sets([[0, 1], [2, 0]], num_users=3)
