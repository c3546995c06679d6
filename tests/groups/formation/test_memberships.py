"""Groups turned round."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.groups.groups import Groups, Memberships


@given(st.lists(st.sets(st.integers(0, 8), min_size=1), max_size=7))
def test_rows_turned_round(sets):
    members = [user for one in sets for user in sorted(one)]
    starts = np.cumsum([0, *map(len, sets)])
    groups = Groups(num_users=9, starts=starts, members=np.array(members, dtype=np.int64))
    memberships = Memberships.of(groups)
    assert memberships.sizes.tolist() == [len(one) for one in sets]
    rows = np.split(memberships.user_groups, memberships.user_starts[1:-1])
    assert [row.tolist() for row in rows] == [
        [a for a, one in enumerate(sets) if user in one] for user in range(9)
    ]
    values = np.arange(9.0) ** 2
    some = np.arange(len(sets))[::2]
    assert memberships.sums_over_members(some, values).tolist() == [
        sum(user**2 for user in sets[a]) for a in some
    ]
    of_groups = np.arange(float(len(sets)))
    assert memberships.sums_over_groups(np.array([3, 0]), of_groups).tolist() == [
        sum(a for a, one in enumerate(sets) if user in one) for user in (3, 0)
    ]


def test_arrays_are_read_only():
    memberships = Memberships.of(Groups.from_sets([[0, 1]], num_users=2))
    for array in (memberships.sizes, memberships.user_starts, memberships.user_groups):
        assert not array.flags.writeable
