"""Kendall's Mallows model: Lehmer codes decoded and drawn, fast and slow alike."""

import math
from itertools import permutations, product

import mpmath
import numpy as np
import pytest

from oracles.kendall_places import displacement_law, place_law
from oracles.mallows import DISTANCES
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import group_kernels as kernels
from shuffledp.groups.exact_draws import LIBRARY_MARGIN
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import (
    MallowsModel,
    MallowsShuffler,
    draw_lehmer_code,
    permutation_of_code,
    target_place_law,
)


def decoded(code):
    """Return the permutation of a code by the definition."""
    left = list(range(len(code)))
    return [left.pop(value) for value in code]


@pytest.mark.parametrize("num_items", range(7))
def test_every_short_code(num_items):
    for code in product(*(range(num_items - i) for i in range(num_items))):
        assert permutation_of_code(np.array(code, dtype=np.int64)).tolist() == decoded(code)


@pytest.mark.parametrize(
    "size", [1, 63, 64, 65, 128, 129, 5000, kernels.BLOCK_ITEMS, kernels.BLOCK_ITEMS + 1]
)
@pytest.mark.parametrize("reach", [1, 5, 500, 2**40])
def test_long_codes(size, reach):
    generator = Entropy.from_seed(1).generator()
    code = generator.integers(0, np.minimum(np.arange(size, 0, -1), reach))
    assert permutation_of_code(code).tolist() == decoded(code)


def test_codes_of_many_blocks():
    size = 5 * kernels.BLOCK_ITEMS + 77
    for code in (np.zeros(size, dtype=np.int64), np.arange(size - 1, -1, -1)):
        expected = np.arange(size) if code[0] == 0 else np.arange(size)[::-1]
        assert (permutation_of_code(code) == expected).all()
    code = Entropy.from_seed(2).generator().integers(0, np.arange(size, 0, -1))
    pi = permutation_of_code(code)
    for place in range(0, size, size // 20):
        assert np.count_nonzero(pi[place:] < pi[place]) == code[place]


@pytest.mark.parametrize("theta", [2.0**-40, 1e-12, 1e-9, 1e-3, 0.01, 0.3, 1.0, 5.0, 50.0, 700.0])
def test_fast_and_slow_decisions_agree_on_the_same_words(theta):
    fast = draw_lehmer_code(1500, theta, Entropy.from_seed(3))
    slow = draw_lehmer_code(1500, theta, Entropy.from_seed(3), margin=math.inf)
    some = draw_lehmer_code(1500, theta, Entropy.from_seed(3), margin=0.05)
    assert (fast == slow).all()
    assert (fast == some).all()
    assert (fast >= 0).all()
    assert (fast < np.arange(1500, 0, -1)).all()


@pytest.mark.parametrize("theta", [5e-324, 1e-20, math.nextafter(2.0**-40, 0.0)])
def test_a_theta_whose_numbers_do_not_fit_is_refused(theta):
    with pytest.raises(ParameterError, match="is between 0 and 9"):
        MallowsModel(distance="kendall", num_items=3, theta=theta)
    for distance in ("hamming", "cayley"):
        assert MallowsModel(distance=distance, num_items=3, theta=theta).theta == theta


def test_an_alpha_that_allows_more_noise_than_can_be_drawn_shuffles_uniformly():
    groups = Groups.from_sets([range(50)], num_users=50)
    shuffler = MallowsShuffler.for_groups(groups, 1e-12)
    assert (shuffler.theta, shuffler.alpha, shuffler.alpha_for(groups)) == (0.0, 1e-12, 0.0)
    assert MallowsShuffler.for_groups(groups, 1e-6).theta == pytest.approx(1e-6 / 1225)


def test_margins_exceed_the_errors_of_the_library():
    # The margins assume that log and exp err by at most 2^-48; they err by less than 2^-51 here.
    generator = Entropy.from_seed(6).generator()
    with mpmath.workdps(40):
        for u in (*generator.random(300), *(2.0 ** -generator.uniform(0, 64, 100))):
            exact = mpmath.log(mpmath.mpf(float(u)))
            assert abs(math.log(u) - exact) <= abs(exact) * LIBRARY_MARGIN / 8
            exact = mpmath.exp(-mpmath.mpf(float(u)))
            assert abs(math.exp(-u) - exact) <= exact * LIBRARY_MARGIN / 8


@pytest.mark.parametrize("num_items", [1, 2, 3, 6])
@pytest.mark.parametrize("theta", [0.0, 2.0**-40, 1e-12, 0.3, 1.0, 5.0, 50.0, math.inf])
def test_laws_of_every_place_by_enumeration(num_items, theta):
    expected = np.zeros((num_items, num_items))
    for pi in permutations(range(num_items)):
        inversions = DISTANCES["kendall"](pi)
        expected[np.arange(num_items), pi] += math.exp(-theta * inversions) if inversions else 1.0
    expected /= expected[0].sum()
    for place in range(num_items):
        found = place_law(num_items, theta, place)
        assert found == pytest.approx(expected[place], rel=1e-13, abs=1e-20)
    model = MallowsModel(distance="kendall", num_items=num_items, theta=theta)
    assert target_place_law(model) == pytest.approx(expected[0], rel=1e-13, abs=1e-20)


def test_large_theta():
    model = MallowsModel(distance="kendall", num_items=100, theta=1e308)
    assert target_place_law(model).tolist() == np.eye(100)[0].tolist()


def test_many_draws_have_this_mean():
    # 4 draws of 1e5 items at theta = 0.3: some 4e4 stretches that do not touch, each with a
    # relative standard deviation below 2: 0.05 is five of them, of a fixed seed.
    model = MallowsModel(distance="kendall", num_items=100_000, theta=0.3)
    entropy = Entropy.from_seed(1)
    moved = [np.abs(model.sample(entropy) - np.arange(100_000)).mean() for _ in range(4)]
    steps, chances = displacement_law(100_000, 0.3, 50_000)
    assert np.mean(moved) == pytest.approx((np.abs(steps) * chances).sum(), rel=0.05)
