"""Traversals against plain Python ones, and on groups where the best order is known."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.groups.groups import Groups, Memberships
from shuffledp.groups.permutations import inverse
from shuffledp.groups.reference_orders import (
    breadth_first,
    cuthill_mckee,
    principal_axis_order,
    sensitivity,
)


@st.composite
def any_groups(draw):
    """Groups of up to ten people, some of whom may be in none; with or without owners."""
    num_users = draw(st.integers(1, 10))
    people = st.integers(0, num_users - 1)
    if draw(st.booleans()):
        edges = draw(st.lists(st.tuples(people, people), max_size=12))
        return Groups.from_graph(np.array(edges).reshape(-1, 2), num_users=num_users)
    sets = draw(st.lists(st.sets(people, min_size=1), max_size=6))
    members = [user for one in sets for user in sorted(one)]
    starts = np.cumsum([0, *map(len, sets)])
    return Groups(num_users=num_users, starts=starts, members=np.array(members, dtype=np.int64))


def in_plain_python(groups, roots, rank):
    """Visit breadth first with sets and lists."""
    sets = [groups.group(a).tolist() for a in range(groups.num_groups)]
    order, component, opened = [], {}, set()
    for root in roots:
        if root in component:
            continue
        number = max(component.values(), default=-1) + 1
        component[root] = number
        queue = [root]
        while queue:
            user = queue.pop(0)
            order.append(user)
            own = [] if groups.group_of is None else [groups.group_of[user]]
            for a in [*own, *(a for a, one in enumerate(sets) if user in one)]:
                if a in opened:
                    continue
                opened.add(a)
                for other in sorted(sets[a], key=rank):
                    if other not in component:
                        component[other] = number
                        queue.append(other)
    return order, [component[user] for user in range(groups.num_users)]


@given(any_groups())
def test_breadth_first(groups):
    protecting, own = groups.size_protecting(), groups.group_of
    size_of = protecting if own is None else groups.sizes[own]
    roots = sorted(range(groups.num_users), key=lambda user: (-size_of[user], user))
    order, component = breadth_first(Memberships.of(groups))
    assert (order.tolist(), component.tolist()) == in_plain_python(groups, roots, int)
    assert (np.diff(component[order]) >= 0).all()


@given(any_groups())
def test_cuthill_mckee(groups):
    memberships = Memberships.of(groups)
    degree = np.diff(memberships.user_starts)
    first, component = breadth_first(memberships)
    expected = first.tolist()
    for _ in range(2):
        expected, _ = in_plain_python(groups, expected[::-1], lambda user: (degree[user], user))
    order = cuthill_mckee(memberships, first)
    assert order.tolist() == expected
    # Components still fill places in a row.
    assert np.count_nonzero(np.diff(component[order])) == component.max()


def test_the_largest_group_comes_first_in_a_row():
    groups = Groups.from_sets([[0, 5], [1, 6], [2, 4, 6, 7], [3]], num_users=8)
    order, component = breadth_first(Memberships.of(groups))
    assert order.tolist() == [2, 4, 6, 7, 1, 0, 5, 3]
    assert component.tolist() == [1, 0, 0, 2, 0, 1, 0, 0]


def test_people_open_their_own_group_first():
    # The root, 5 of the paper's Appendix A.10, is in other groups with smaller numbers.
    edges = [(4, 1), (4, 2), (4, 7), (4, 3), (7, 2), (3, 6), (1, 0), (2, 5)]
    groups = Groups.from_graph(edges, num_users=8)
    order, _ = breadth_first(Memberships.of(groups))
    assert (order + 1).tolist() == [5, 2, 3, 4, 8, 1, 6, 7]


def test_cuthill_mckee_finds_the_end_of_a_chain():
    chain = Entropy.from_seed(11).generator().permutation(200)
    sets = [np.sort(pair) for pair in pairwise(chain)]
    groups = Groups.from_sets(sets, num_users=200)
    memberships = Memberships.of(groups)
    first, _ = breadth_first(memberships)
    order = cuthill_mckee(memberships, first)
    assert order.tolist() in (chain.tolist(), chain[::-1].tolist())
    assert sensitivity("kendall", groups, inverse(order)) == 1
    assert sensitivity("kendall", groups, inverse(first)) > 1


def test_principal_axis():
    generator = Entropy.from_seed(9).generator()
    along = generator.permutation(50).astype(float)
    across = generator.random(50)
    points = np.stack([along - across, along + across, np.zeros(50)], axis=1)
    assert (principal_axis_order(points) == np.argsort(along)).all()
    assert (principal_axis_order(points - 1e9) == np.argsort(along)).all()
    # Neither the squares of huge coordinates nor a single place are a difficulty.
    assert (principal_axis_order(points * 1e148) == np.argsort(along)).all()
    assert principal_axis_order(np.ones((4, 2))).tolist() == [0, 1, 2, 3]


def test_one_column_is_sorted_upwards():
    assert principal_axis_order(np.array([[3.0], [-7.0], [3.0], [0.5]])).tolist() == [1, 3, 0, 2]


def test_tiny_coordinates():
    points = np.array([[3.0], [-7.0], [0.5]]) * 1e-200
    assert principal_axis_order(points).tolist() == [1, 2, 0]
