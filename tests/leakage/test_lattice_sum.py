"""Sums over many whole numbers from few values."""

import math

import numpy as np
import pytest
from scipy.special import erfc

from shuffledp.leakage.fullest_bin import lattice_rule, num_panels


@pytest.mark.parametrize("size", [1, 2, 100, 256, 257, 600, 1000, 2303, 2304, 5000, 10**5])
@pytest.mark.parametrize("panels", [1, 2, 5])
def test_polynomials_are_summed_exactly(size, panels):
    rule = lattice_rule(size, panels)
    assert rule.nodes[0] >= 0
    assert rule.nodes[-1] < size
    assert np.all(np.diff(rule.nodes) > 0)
    for degree in (0, 1, 2, 7):
        exact = math.fsum((np.arange(size) / size) ** degree)
        total, truncation = rule.total((rule.nodes / size) ** degree)
        assert abs(total - exact) <= truncation + 1e-11 * exact
        assert truncation <= 1e-9 * size
    assert 0.99 * size <= rule.amplification <= 2.0 * size


@pytest.mark.parametrize("size", [400, 1500, 40_000, 300_000])
def test_smooth_steps(size):
    rule = lattice_rule(size, 5)

    def fall(at):
        return 0.5 * erfc((at / size - 0.4) * 8.0)

    total, truncation = rule.total(fall(rule.nodes))
    assert abs(total - math.fsum(fall(np.arange(size)))) <= truncation + 1e-13 * size
    assert truncation <= 1e-9 * size


def test_truncation_is_noticed():
    # A step much sharper than the nodes are close is summed wrongly, and said to be.
    rule = lattice_rule(300_000, 1)

    def fall(at):
        return 0.5 * erfc((at / 300_000 - 0.4) * 400.0)

    total, truncation = rule.total(fall(rule.nodes))
    error = abs(total - math.fsum(fall(np.arange(300_000))))
    assert 1.0 < error <= truncation


def test_more_bins_have_more_panels():
    assert [num_panels(bins) for bins in (2, 3, 4, 6, 7, 1000)] == [2, 2, 3, 3, 5, 5]
