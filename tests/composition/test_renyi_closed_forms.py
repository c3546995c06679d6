import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from oracles import enumeration
from oracles.channels import largest_ratio, staircase
from oracles.multiprecision import mp, mpf
from shuffledp.composition.renyi import blanket_renyi_upper
from shuffledp.core.entropy import Entropy

ORDERS = (1.0 + 1e-9, 1.01, 1.5, 2.0, 3.7, 8.0, 40.0)


def renyi(p, q, order):
    return math.log(float((q * (p / q) ** order).sum())) / (order - 1.0)


def shuffled_renyi(channel, num_users, order):
    """The largest over all data and both directions, by listing everything."""
    return max(renyi(p, q, order) for p, q, *_ in enumeration.neighbouring_laws(channel, num_users))


def clone_renyi(epsilon0, num_users, orders):
    """The pair of the clones, from its counts (a, b) and not from the walk of the proof."""
    p = math.exp(epsilon0)
    excesses = np.zeros(len(orders))
    masses = binom.pmf(np.arange(num_users), num_users - 1, 2.0 / (p + 1.0))
    for c in np.flatnonzero(masses > 1e-30):
        a = np.arange(c + 2)
        fair = np.concatenate([[0.0], binom.pmf(np.arange(c + 1), c, 0.5), [0.0]])
        second = masses[c] * (fair[:-1] + p * fair[1:]) / (p + 1.0)
        growth = math.expm1(epsilon0) * (2 * a - c - 1) / (a + p * (c + 1 - a))
        # E[(1 + growth)^order] - 1, without the mean of growth, which is 0
        excesses += [
            (second * (np.expm1(order * np.log1p(growth)) - order * growth)).sum()
            for order in orders
        ]
    return [math.log1p(each) / (order - 1.0) for each, order in zip(excesses, orders, strict=True)]


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("k", "num_users"), [(2, 1), (2, 2), (2, 9), (3, 2), (3, 5)])
def test_above_the_enumeration_of_randomized_response(k, num_users, epsilon0):
    channel = enumeration.randomized_response(k, math.exp(epsilon0))
    for order in ORDERS[1:]:
        exact = shuffled_renyi(channel, num_users, order)
        assert blanket_renyi_upper(order, epsilon0, num_users) >= exact * (1.0 - 1e-9)


def test_above_the_enumeration_of_random_channels():
    generator = Entropy.from_seed(3).generator()
    for _ in range(15):
        channel = staircase(3, math.exp(generator.choice([0.3, 1.0, 3.0])), generator)
        epsilon0 = math.log(largest_ratio(channel)) * (1.0 + 1e-14)
        for order in (1.2, 2.0, 10.0):
            exact = shuffled_renyi(channel.tolist(), 4, order)
            assert blanket_renyi_upper(order, epsilon0, 4) >= exact * (1.0 - 1e-9)


@pytest.mark.parametrize("epsilon0", [0.01, 0.5, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("num_users", [1, 2, 30, 1000])
def test_above_the_clone_pair(epsilon0, num_users):
    orders = ORDERS[1:]
    for order, exact in zip(orders, clone_renyi(epsilon0, num_users, orders), strict=True):
        assert blanket_renyi_upper(order, epsilon0, num_users) >= exact * (1.0 - 1e-9)
        if num_users == 1:
            assert blanket_renyi_upper(order, epsilon0, 1) == pytest.approx(exact, rel=1e-9)


def test_close_to_the_clone_pair_where_it_is_used():
    orders = (1.5, 2.0, 4.0)
    for num_users in (100, 1000):
        for order, exact in zip(orders, clone_renyi(0.5, num_users, orders), strict=True):
            assert blanket_renyi_upper(order, 0.5, num_users) <= 1.3 * exact


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 30.0])
def test_the_limit_of_a_large_crowd(epsilon0, order):
    p, n = math.exp(epsilon0), 10**14
    limit = order * (p - 1.0) ** 2 / ((p + 1.0) * n)
    assert limit * (1.0 - 1e-9) <= blanket_renyi_upper(order, epsilon0, n) <= 1.02 * limit


def test_the_two_lemmas_of_the_proof():
    # h = cosh(bu)/cosh(u) is convex in z = tanh(u)^2, and at most cosh(sqrt(b^2 - 1) u).
    for b in (1.0, 1.001, 2.0, 7.0):
        z = [mpf(i) / 400 for i in range(396)]
        u = [mp.atanh(mp.sqrt(each)) for each in z]
        h = [mp.cosh(b * each) / mp.cosh(each) for each in u]
        for i in range(1, len(h) - 1):
            assert h[i - 1] + h[i + 1] >= 2 * h[i] - mpf("1e-40")
        for each, value in zip(u, h, strict=True):
            assert value <= mp.cosh(mp.sqrt(mpf(b) ** 2 - 1) * each) + mpf("1e-40")


@given(st.floats(1.0 + 1e-9, 1e4), st.floats(0.0, 300.0), st.integers(1, 10**15))
@example(5.0, 1.1663040298265114e-275, 2760)
@example(2.0, 1.1663040298265114e-275, 1)
def test_monotone_and_never_above_one_report(order, epsilon0, num_users):
    value = blanket_renyi_upper(order, epsilon0, num_users)
    added = 1e-200 / (order - 1.0)  # where epsilon0 squared would underflow
    assert 0.0 <= value <= epsilon0
    assert value <= 0.5 * order * epsilon0 * epsilon0 * (1.0 + 1e-9) + 2.0 * added
    more = blanket_renyi_upper(order, epsilon0, 4 * num_users)
    assert more <= value * (1.0 + 1e-9) + added
    assert blanket_renyi_upper(2.0 * order, epsilon0, num_users) >= value * (1.0 - 1e-9) - added
