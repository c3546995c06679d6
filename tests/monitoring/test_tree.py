"""The dyadic tree against its definition: intervals written out, period by period."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import PeriodTree

PERIODS = st.integers(1, 300)


def intervals(periods):
    """Return the periods of each node by level and position: those that end by ``periods``."""
    nodes, level = {}, 1
    while (length := 2 ** (level - 1)) <= periods:
        position = 1
        while position * length <= periods:
            last = position * length
            nodes[level, position] = range(last - length + 1, last + 1)
            position += 1
        level += 1
    return nodes


@given(periods=PERIODS)
def test_nodes_are_the_intervals_that_end_in_time(periods):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    assert tree.num_nodes == len(nodes)
    assert tree.num_levels == max(level for level, _ in nodes) == math.floor(math.log2(periods)) + 1
    for level in range(1, tree.num_levels + 1):
        assert tree.nodes_at(level) == sum(each == level for each, _ in nodes)
        assert tree.length(level) == len(nodes[level, 1])
        assert tree.offset(level) == tree.index(level, 1)
    # The flat index counts the levels one after the other, leaves first.
    assert [tree.index(*node) for node in sorted(nodes)] == list(range(len(nodes)))


@given(periods=PERIODS, data=st.data())
def test_what_ends_at_a_period(periods, data):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    t = data.draw(st.integers(1, periods))
    ending = {level: position for (level, position), span in nodes.items() if span[-1] == t}
    assert sorted(ending) == list(tree.levels_ending_at(t))
    for level in range(1, tree.num_levels + 1):
        if level in ending:
            assert tree.position_ending_at(level, t) == ending[level]
        else:
            with pytest.raises(ParameterError, match="no node"):
                tree.position_ending_at(level, t)


@given(periods=PERIODS, data=st.data())
def test_covers_partition_the_periods_with_a_node_for_each_one_bit(periods, data):
    tree, nodes = PeriodTree(periods=periods), intervals(periods)
    t = data.draw(st.integers(0, periods))
    cover = tree.cover(t)
    assert [period for node in cover for period in nodes[node]] == list(range(1, t + 1))
    assert len(cover) == t.bit_count() == len({level for level, _ in cover})


@given(height=st.integers(0, 10), data=st.data())
def test_covers_are_those_of_the_published_loop(height, data):
    # Algorithm 2, lines 7 to 10: merge two neighbours as long as there are any.
    t = data.draw(st.integers(0, 2**height))
    cover = {(1, period) for period in range(1, t + 1)}
    while pairs := [(h, i) for h, i in cover if i % 2 == 0 and (h, i - 1) in cover and h <= height]:
        h, i = pairs[0]
        cover = cover - {(h, i - 1), (h, i)} | {(h + 1, i // 2)}
    assert cover == set(PeriodTree(periods=2**height).cover(t))


def test_one_period():
    tree = PeriodTree(periods=1)
    assert (tree.num_levels, tree.num_nodes, tree.cover(1), tree.cover(0)) == (1, 1, ((1, 1),), ())
    assert list(tree.levels_ending_at(1)) == [1]


@pytest.mark.parametrize("periods", [2**20, 2**20 - 1, 2**40])
def test_many_periods_cost_nothing(periods):
    tree = PeriodTree(periods=periods)
    assert tree.num_levels == periods.bit_length()
    assert (
        tree.index(tree.num_levels, 1)
        == tree.num_nodes - 1
        == 2 * periods - periods.bit_count() - 1
    )
    assert len(tree.cover(periods)) == periods.bit_count()


@pytest.mark.parametrize("periods", [0, -1, 1.5, math.nan, "8", None, 2**40 + 1])
def test_periods_out_of_range(periods):
    with pytest.raises(ParameterError, match="periods"):
        PeriodTree(periods=periods)


TREE = PeriodTree(periods=6)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: TREE.nodes_at(0), "level"),
        (lambda: TREE.length(4), "level"),
        (lambda: TREE.offset(4), "level"),
        (lambda: TREE.index(4, 1), "level"),
        (lambda: TREE.index(2, 4), "position"),
        (lambda: TREE.index(2, 0), "position"),
        (lambda: TREE.levels_ending_at(0), "t"),
        (lambda: TREE.levels_ending_at(7), "t"),
        (lambda: TREE.position_ending_at(1, 7), "t"),
        (lambda: TREE.position_ending_at(4, 6), "level"),
        (lambda: TREE.cover(7), "t"),
        (lambda: TREE.cover(-1), "t"),
        (lambda: TREE.cover(2.0), "t"),
    ],
)
def test_there_is_no_such_node_or_period(call, name):
    with pytest.raises(ParameterError, match=f"^{name} = "):
        call()
