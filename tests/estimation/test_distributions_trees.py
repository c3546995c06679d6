import itertools

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.estimation.distributions import Tree, level_codes, level_sizes

# Shares of 100,000 against their chances, four times, by normal tails beyond seven deviations.
FALSE_POSITIVE_RATE = 1e-10

SIZES = [(3, 9), (8,), (3, 10), (4, 13), (3, 7, 19), (5, 18, 70)]


def dense(tree):
    """Return least squares as matrix and offset of the bins, whose total is 1."""
    codes = level_codes(np.arange(tree.sizes[-1]), tree.sizes)
    sums = np.vstack(
        [
            codes[:, level][None, :] == np.arange(size)[:, None]
            for level, size in enumerate(tree.sizes)
        ]
    ).astype(float)
    weights = np.repeat(1.0 / np.array(tree.variances), tree.sizes)
    inverse = np.linalg.inv(sums.T * weights @ sums)
    ones = inverse.sum(axis=1)
    projected = inverse - np.outer(ones, ones) / ones.sum()
    return projected @ sums.T * weights, ones / ones.sum()


@pytest.fixture(params=SIZES, ids=str)
def tree(request):
    drawn = Entropy.from_seed(1).generator()
    return Tree(request.param, tuple(drawn.uniform(0.5, 2.0, len(request.param)).tolist()))


def test_sizes_of_levels():
    assert level_sizes(1024) == (4, 16, 64, 256, 1024)
    assert level_sizes(2) == (2,)
    assert level_sizes(32) == (8, 32)  # a level of two nodes is left out
    for number in range(2, 300):
        sizes = level_sizes(number)
        assert sizes[-1] == number
        codes = level_codes(np.arange(number), sizes)
        assert all(np.unique(codes[:, i]).size == size for i, size in enumerate(sizes))
        for above, below in itertools.pairwise(codes.T):
            children = np.bincount(above[np.unique(below, return_index=True)[1]])
            assert children.max() <= 4


def test_the_fit_is_that_of_the_normal_equations(tree):
    drawn = Entropy.from_seed(2).generator()
    levels = [drawn.uniform(size=size) for size in tree.sizes]
    matrix, offset = dense(tree)
    assert tree.fit(levels) == pytest.approx(matrix @ np.concatenate(levels) + offset)
    assert tree.fit(levels, total=0.0) == pytest.approx(matrix @ np.concatenate(levels))


def test_what_fits_is_left_as_it_is(tree):
    shares = Entropy.from_seed(3).generator().dirichlet(np.ones(tree.sizes[-1]))
    codes = level_codes(np.arange(shares.size), tree.sizes)
    levels = [np.bincount(codes[:, i], weights=shares) for i in range(len(tree.sizes))]
    assert tree.fit(levels) == pytest.approx(shares)
    # A constant that is added to a level changes nothing, so that known sums of noise do not.
    assert tree.fit([each + i for i, each in enumerate(levels)]) == pytest.approx(shares)


def test_variances_of_all_ranges_for_any_noise(tree):
    drawn = Entropy.from_seed(4).generator()
    noise = [drawn.uniform(0.1, 3.0, size) for size in tree.sizes]
    starts, stops = np.triu_indices(tree.sizes[-1] + 1, 1)
    matrix, _ = dense(tree)
    for given, each in (
        (noise, np.concatenate(noise)),
        (tree.variances, np.repeat(tree.variances, tree.sizes)),
    ):
        covariance = matrix * each @ matrix.T
        expected = [covariance[a:b, a:b].sum() for a, b in zip(starts, stops, strict=True)]
        assert tree.variance(starts, stops, given) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), 10.7),
        ((4, 16, 64, 256, 1024), 10.8),
        ((32, 1024), 20.7),
        ((1024,), 170.8),
    ],
)
def test_node_variances_of_cumulative_shares(sizes, expected):
    """Of dummies whose variance a node rises with the number of levels, on average over edges."""
    tree = Tree(sizes, (float(len(sizes)),) * len(sizes))
    edges = np.arange(1, 1024)
    assert tree.variance(np.zeros_like(edges), edges, tree.variances).mean() == pytest.approx(
        expected, abs=0.05
    )
