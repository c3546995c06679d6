"""Given groups: what is taken, in which order, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import groups as rows
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


@st.composite
def graphs(draw):
    """Return a number of people and edges between them, loops and repetitions included."""
    num_users = draw(st.integers(1, 10))
    person = st.integers(0, num_users - 1)
    return num_users, draw(st.lists(st.tuples(person, person), max_size=15))


def reachable(edges, num_users, hops):
    """Return who reaches whom, by powers of a matrix."""
    step = np.eye(num_users, dtype=np.int64)
    for first, second in edges:
        step[first, second] = step[second, first] = 1
    reached = np.eye(num_users, dtype=np.int64)
    for _ in range(hops):
        reached = ((reached @ step) > 0).astype(np.int64)
    return reached


@given(graphs(), st.integers(0, 11))
def test_every_hop(graph, hops):
    num_users, edges = graph
    groups = Groups.from_graph(edges, num_users=num_users, hops=hops)
    chosen = np.zeros((num_users, num_users), dtype=bool)
    for user in range(num_users):
        chosen[user, groups.of(user)] = True
    assert (chosen == reachable(edges, num_users, hops)).all()
    stored = {tuple(groups.group(row).tolist()) for row in range(groups.num_groups)}
    assert len(stored) == groups.num_groups


def test_renaming_people_renames_their_groups():
    generator = Entropy.from_seed(5).generator()
    edges = generator.integers(0, 50, size=(70, 2))
    new_name = generator.permutation(50)
    before = Groups.from_graph(edges, num_users=50, hops=2)
    after = Groups.from_graph(new_name[edges], num_users=50, hops=2)
    for user in range(50):
        assert set(after.of(new_name[user])) == set(new_name[before.of(user)])


def test_many_hops_give_components():
    ring = [(i, (i + 1) % 8) for i in range(8)] + [(8, 9)]
    for hops in (4, 8, 10**30):
        groups = Groups.from_graph(ring, num_users=10, hops=hops)
        assert [groups.group(row).tolist() for row in range(2)] == [[*range(8)], [8, 9]]


def test_blocks_of_every_size_give_the_same_groups(monkeypatch):
    edges = Entropy.from_seed(6).generator().integers(0, 40, size=(60, 2))
    whole = Groups.from_graph(edges, num_users=40, hops=2)
    for cells in (1, 100, 1000):
        monkeypatch.setattr(rows, "_CELLS_AT_A_TIME", cells)
        groups = Groups.from_graph(edges, num_users=40, hops=2)
        assert np.array_equal(groups.members, whole.members)


def test_counting_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(rows, "MOST_MEMBERSHIPS", 5)
    monkeypatch.setattr(rows, "_CELLS_AT_A_TIME", 100)
    path = [(i, i + 1) for i in range(99)]
    with pytest.raises(ParameterError, match="over 8 memberships"):
        Groups.from_graph(path, num_users=100, hops=1)


def test_no_edges_and_isolated_people():
    for edges in ([], np.empty((0, 2), dtype=np.int64), [(1, 1)]):
        groups = Groups.from_graph(edges, num_users=3, hops=2)
        assert groups.members.tolist() == [0, 1, 2]
        assert "nothing is shuffled" in groups.cautions()[0]
    groups = Groups.from_graph([(0, 2)], num_users=3)
    assert groups.sizes.tolist() == [2, 1]
    assert "1 person of 3 is alone" in groups.cautions()[0]


def test_descriptions():
    assert "1 hop of" in Groups.from_graph([(0, 1)], num_users=3).description
    assert "2 hops of" in Groups.from_graph([(0, 1)], num_users=3, hops=2).description


@pytest.mark.parametrize(
    ("edges", "num_users", "hops", "message"),
    [
        ([(0, 3)], 3, 1, r"edges\[0, 1\] = 3 is not in \[0, num_users = 3\)"),
        ([(0, 1), (-1, 0)], 3, 1, r"edges\[1, 0\] = -1 is not in"),
        ([(0, 1, 2)], 3, 1, r"shape \(1, 3\)"),
        ([0, 1], 3, 1, r"shape \(2,\)"),
        ([(0, 1), (2,)], 3, 1, "not all pairs"),
        ([(0.0, 1.0)], 3, 1, "dtype float64"),
        ([("a", "b")], 3, 1, "give integers"),
        ([(0, 1)], 0, 1, "num_users = 0"),
        ([(0, 1)], 2, -1, "hops = -1 is below 0"),
        ([(0, 1)], 2, 1.5, "hops = 1.5 is not a whole number"),
    ],
)
def test_bad_input_of_graph(edges, num_users, hops, message):
    with pytest.raises(ParameterError, match=message) as error:
        Groups.from_graph(edges, num_users=num_users, hops=hops)
    assert "\n" not in str(error.value)
