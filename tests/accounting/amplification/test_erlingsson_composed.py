import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import enumeration
from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer
from shuffledp.accounting.amplification.clones import CLONES
from shuffledp.accounting.amplification.erlingsson import general_delta, general_epsilon
from shuffledp.accounting.amplification.erlingsson_composed import (
    ERLINGSSON_COMPOSED,
    optimal_composition_delta,
    optimal_composition_epsilon,
    step_epsilon,
)
from shuffledp.core.entropy import Entropy


def composed(step, num_steps, epsilon):
    """Kairouz, Oh, Viswanath as a sum over all numbers of ones, at sixty digits."""
    q, e = 1 / (1 + mp.exp(-mpf(step))), mp.exp(mpf(epsilon))
    total = mpf(0)
    for ones in range(num_steps + 1):
        gain = (
            q**ones * (1 - q) ** (num_steps - ones) - e * q ** (num_steps - ones) * (1 - q) ** ones
        )
        total += mp.binomial(num_steps, ones) * max(gain, 0)
    return total


@pytest.mark.parametrize("step", [1e-9, 1e-4, 0.05, 0.5, 2.0, 6.0, 17.0])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 10, 57, 150])
def test_composition_against_the_sum(step, num_steps):
    for share in (0.0, 1e-3, 0.03, 0.1, 0.3, 0.51, 0.9, 0.9999):
        epsilon = share * num_steps * step
        exact = composed(step, num_steps, epsilon)
        found = optimal_composition_delta(step, num_steps, epsilon)
        assert exact <= found
        if exact > 1e-270:
            assert found <= exact * (1 + mpf("3e-10"))


@pytest.mark.parametrize("step", [1e-3, 0.05, 0.3])
def test_composition_of_many_steps_by_a_recurrence(step):
    num_steps = 20_000
    odds = mp.exp(mpf(step))
    for share in (1e-4, 0.02, 0.1):
        epsilon = share * num_steps * step
        ones = math.floor((num_steps + epsilon / step) / 2) + 1
        mass = mp.binomial(num_steps, ones) * odds**ones / (1 + odds) ** num_steps
        exact = mpf(0)
        while ones <= num_steps:
            term = mass * -mp.expm1(mpf(epsilon) - (2 * ones - num_steps) * mpf(step))
            exact += max(term, 0)
            if exact > 0 and term < exact * mpf("1e-30") and ones > num_steps * odds / (1 + odds):
                break
            mass *= odds * (num_steps - ones) / (ones + 1)
            ones += 1
        found = optimal_composition_delta(step, num_steps, epsilon)
        assert exact <= found <= max(exact, mpf("1e-280")) * (1 + mpf("1e-9"))


def test_composition_in_the_central_limit():
    # n steps of mu/sqrt(n): a Gaussian mechanism with mean shift mu, at n = 1e15
    mu, n = 0.5, 10**15
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0))  # noqa: E731
    for epsilon in (0.0, 0.3, 1.5):
        exact = normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)
        found = optimal_composition_delta(mu / math.sqrt(n), n, epsilon)
        assert found == pytest.approx(exact, rel=1e-5)


def test_composition_at_its_ends():
    assert optimal_composition_delta(0.1, 10, 1.0 + 1e-9) == 0.0
    assert optimal_composition_delta(0.1, 10, 0.999999) > 0.0
    # far below the mean of the loss, and far above it
    assert optimal_composition_delta(2.0, 10**6, 0.0) == 1.0
    assert 0.0 < optimal_composition_delta(1e-3, 10**6, 900.0) <= 1e-283
    assert optimal_composition_delta(5e-324, 1, 0.0) > 0.0
    assert optimal_composition_epsilon(1e-14, 10**15, 1e-3) == 0.0


@given(st.floats(1e-9, 3.0), st.integers(1, 10**15), st.floats(1e-250, 0.99))
def test_composition_inverts_upwards(step, num_steps, delta):
    epsilon = optimal_composition_epsilon(step, num_steps, delta)
    assert 0.0 <= epsilon <= num_steps * step
    if epsilon < num_steps * step:
        assert optimal_composition_delta(step, num_steps, epsilon) <= delta
        if epsilon > 0.0:
            less = epsilon * (1.0 - 1e-6) - 1e-300
            assert optimal_composition_delta(step, num_steps, less) > delta


@given(st.floats(1e-6, 1.0), st.integers(1, 10**9), st.floats(0.0, 1.0))
def test_more_steps_never_help(step, num_steps, share):
    epsilon = share * num_steps * step
    fewer = optimal_composition_delta(step, num_steps, epsilon)
    assert optimal_composition_delta(step, 2 * num_steps, epsilon) >= fewer * (1.0 - 1e-6)
    assert optimal_composition_delta(step, num_steps, 1.01 * epsilon) <= fewer


@given(st.floats(1e-12, 17.0), st.integers(2, 10**15))
def test_step_from_above_by_a_hair(epsilon0, num_users):
    p = mp.exp(mpf(epsilon0))
    step = step_epsilon(epsilon0, num_users)
    if math.isinf(step):
        assert p**2 >= num_users * (1 - mpf("1e-14"))
        return
    exact = mp.log1p(p**2 * mp.expm1(mpf(epsilon0)) / num_users)
    assert exact <= step <= exact * (1 + mpf("1e-14"))
    assert step < epsilon0 * (1.0 + 1e-14)


def swap_step(channel, first, others, index, prefix):
    """Law of report ``index`` (0 = the first) of Algorithm 5, given the reports before."""
    n = len(others) + 1
    weights = np.zeros(n)
    for swapped in range(n):
        data = [first, *others]
        data[0], data[swapped] = data[swapped], data[0]
        weights[swapped] = math.prod(
            channel[x][y] for x, y in zip(data[:index], prefix, strict=True)
        )
    law = np.zeros(channel.shape[1])
    for swapped in range(n):
        data = [first, *others]
        data[0], data[swapped] = data[swapped], data[0]
        law += weights[swapped] * channel[data[index]]
    return law / weights.sum()


@pytest.mark.parametrize(("p", "num_users"), [(1.2, 3), (1.5, 4), (2.0, 5)])
def test_no_step_of_the_swapping_algorithm_loses_more(p, num_users):
    channel = np.array(enumeration.randomized_response(3, p))
    allowed = step_epsilon(math.log(p), num_users)
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(3), num_users - 1):
        for index in range(num_users):
            for prefix in itertools.product(range(3), repeat=index):
                laws = [swap_step(channel, x, others, index, prefix) for x in range(2)]
                worst = max(worst, float(np.abs(np.log(laws[0] / laws[1])).max()))
    assert 0.3 * allowed < worst <= allowed


def test_the_ratio_lemma():
    generator = Entropy.from_seed(5).generator()
    for _ in range(2000):
        p = math.exp(generator.uniform(0.0, 3.0))
        t = generator.uniform(0.0, 1.0)
        s, other = generator.uniform(0.0, t), generator.uniform(0.0, t)
        a = p ** generator.uniform(-1.0, 1.0)
        b = min(max(a * p ** generator.uniform(-1.0, 1.0), 1.0 / p), p)
        ratio = (1.0 + s * (a - 1.0)) / (1.0 + other * (b - 1.0))
        assert ratio <= (1.0 + t * (p - 1.0)) * (1.0 + 1e-12)


@pytest.mark.parametrize(("epsilon0", "num_users"), [(0.1, 4), (0.3, 6), (0.5, 5)])
def test_above_the_enumeration_and_the_clones(epsilon0, num_users):
    truth = enumeration.ShuffledDivergence(
        enumeration.randomized_response(3, math.exp(epsilon0)), num_users
    )
    profile = any_randomizer(epsilon0)
    for share in (0.0, 0.2, 0.5, 0.9):
        upper = ERLINGSSON_COMPOSED.delta(profile, num_users, share * epsilon0).upper
        assert upper >= truth.delta(share * epsilon0)
        assert upper >= CLONES.delta(profile, num_users, share * epsilon0).lower


@given(st.floats(1e-4, 3.0), st.integers(10**3, 10**12), st.floats(1e-100, 0.5))
def test_never_above_theorem_7(epsilon0, num_users, delta):
    profile = any_randomizer(epsilon0)
    sharper = ERLINGSSON_COMPOSED.epsilon(profile, num_users, delta).upper
    assert sharper <= general_epsilon(epsilon0, num_users, delta)
    sharper_delta = ERLINGSSON_COMPOSED.delta(profile, num_users, 0.5 * sharper).upper
    theirs = general_delta(epsilon0, num_users, 0.5 * sharper)
    assert sharper_delta <= max(theirs * (1.0 + 1e-6), 1e-270)


@pytest.mark.parametrize(
    ("epsilon0", "num_users", "delta", "hypothesis"),
    [
        (1.0, 1, 1e-6, "num_users > 1"),
        (math.log(100.0) / 2 + 1e-12, 100, 1e-6, "e^(2 epsilon0) < num_users"),
        (0.0, 1, None, "num_users > 1"),
        (50.0, 10**15, None, "e^(2 epsilon0) < num_users"),
        (1e308, 10**15, None, "e^(2 epsilon0) < num_users"),
        (1.0, 100, 0.0, "delta > 0"),
    ],
)
def test_outside_its_hypotheses(epsilon0, num_users, delta, hypothesis):
    profile = any_randomizer(epsilon0)
    assert ERLINGSSON_COMPOSED.violated_hypothesis(profile, num_users, delta) == hypothesis


def test_nothing_to_hide():
    assert ERLINGSSON_COMPOSED.violated_hypothesis(any_randomizer(0.0), 10, 1e-6) is None
    assert ERLINGSSON_COMPOSED.epsilon(any_randomizer(0.0), 10, 1e-6).upper <= 1e-300
    assert ERLINGSSON_COMPOSED.delta(any_randomizer(0.0), 10, 0.0).upper <= 1e-280
