"""Running sums over dyadic covers, against the cover written out node by node."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import PeriodTree
from shuffledp.monitoring.running_counts import cover_sizes, running_sums


@pytest.mark.parametrize("periods", range(1, 35))
def test_sums_are_those_over_the_nodes_of_each_cover(periods):
    tree = PeriodTree(periods=periods)
    values = Entropy.from_seed(1).generator().integers(-9, 9, (tree.num_nodes, 2))
    for through in range(1, periods + 1):
        expected = [
            sum(values[tree.index(*node)] for node in tree.cover(t)) for t in range(1, through + 1)
        ]
        sums = running_sums(tree, values, through)
        assert sums.dtype == np.int64
        assert np.array_equal(sums, expected)


def test_sizes_are_those_of_the_covers():
    tree = PeriodTree(periods=100)
    assert cover_sizes(100).tolist() == [len(tree.cover(t)) for t in range(1, 101)]


def test_fractions_stay_fractions():
    values = [Fraction(1, 3), Fraction(1, 7), Fraction(1, 5), Fraction(2)]
    sums = running_sums(PeriodTree(periods=3), values, 3)
    assert sums.tolist() == [Fraction(1, 3), Fraction(2), Fraction(11, 5)]


def test_values_of_another_tree_are_refused():
    with pytest.raises(ParameterError, match=r"node_values has shape \(3,\).*the 4 nodes"):
        running_sums(PeriodTree(periods=3), [1, 2, 3], 3)
    with pytest.raises(ParameterError, match="node_values has shape"):
        running_sums(PeriodTree(periods=1), 1.0, 1)


@pytest.mark.parametrize(
    ("through", "message"), [(0, "through = 0 is below 1"), (4, "through = 4")]
)
def test_periods_outside_the_tree_are_refused(through, message):
    with pytest.raises(ParameterError, match=message):
        running_sums(PeriodTree(periods=3), np.zeros(4), through)


def test_no_period_has_no_cover_size():
    with pytest.raises(ParameterError, match="through = 0 is below 1"):
        cover_sizes(0)
