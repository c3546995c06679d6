import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer
from shuffledp.accounting.amplification.clones import CLONES
from shuffledp.accounting.amplification.feldman_2023 import (
    FELDMAN_2023_CLOSED,
    feldman_2023_delta,
    feldman_2023_epsilon,
)


def exact_closed(epsilon0, num_users, delta):
    p, log_term = mp.exp(mpf(epsilon0)), mp.log(4 / mpf(delta))
    spread = 4 * mp.sqrt(2 * log_term / ((p + 1) * num_users)) + mpf(4) / num_users
    return mp.log1p((p - 1) * spread)


@given(st.floats(1e-9, 12.0), st.integers(100, 10**15), st.floats(1e-300, 0.99))
def test_closed_form_from_above_by_a_hair(epsilon0, num_users, delta):
    value = feldman_2023_epsilon(epsilon0, num_users, delta)
    exact = exact_closed(epsilon0, num_users, delta)
    assert exact <= value <= exact * (1 + mpf("1e-13"))


@pytest.mark.parametrize("delta", [0.99, 0.5, 0.1, 1e-3, 1e-9, 1e-40])
@pytest.mark.parametrize("num_users", [12, 60, 1000, 10**5])
def test_it_is_above_the_clones_up_to_the_edge_of_its_regime(num_users, delta):
    edge = num_users / (8.0 * math.log(2.0 / delta)) - 1.0
    for share in (1.0 - 1e-9, 0.5, 0.1, 0.01):
        if edge <= 1.0:
            continue
        profile = any_randomizer(math.log(edge) * share)
        assert FELDMAN_2023_CLOSED.violated_hypothesis(profile, num_users, delta) is None
        closed = FELDMAN_2023_CLOSED.epsilon(profile, num_users, delta).upper
        assert CLONES.delta(profile, num_users, closed).lower <= delta
        # and it has amplified wherever that is not already at epsilon0
        assert closed < profile.epsilon0 or CLONES.delta(profile, num_users, closed).upper == 0.0


def test_the_inequality_of_the_proof():
    # u/(1-u) <= 2y for t in (0, 1/2], w <= t^2/(2 ln 2): step 3, on a grid to its corners
    for i in range(1, 101):
        t = 0.005 * i
        for j in range(101):
            w = t * t / (2.0 * math.log(2.0)) * j / 100.0
            u = t * math.sqrt(1.0 - w) + w
            assert u <= t + (1.0 - 0.5 * t) * w < 1.0
            bound = t + (1.0 - 0.5 * t) * w
            assert bound <= 2.0 * (math.sqrt(t * t + 2.0 * w * math.log(2.0)) + w) * (1.0 - bound)


@pytest.mark.parametrize(
    ("epsilon0", "num_users", "delta"),
    [
        (math.log(1000 / (8 * math.log(2 / 1e-6)) - 1) + 1e-9, 1000, 1e-6),
        (1.0, 1, 0.5),
        (0.0, 11, None),
        (50.0, 10**15, 1e-6),
        (1e4, 10**15, None),
    ],
)
def test_outside_its_regime(epsilon0, num_users, delta):
    violated = FELDMAN_2023_CLOSED.violated_hypothesis(any_randomizer(epsilon0), num_users, delta)
    assert violated == "epsilon0 <= ln(num_users / (8 ln(2/delta)) - 1)"


def test_delta_of_zero_is_refused():
    assert FELDMAN_2023_CLOSED.violated_hypothesis(any_randomizer(1.0), 10**6, 0.0) == "delta > 0"


@given(st.floats(1e-6, 5.0), st.integers(10**5, 10**12), st.floats(1e-30, 0.9))
def test_delta_is_the_inverse_and_rounds_up(epsilon0, num_users, delta):
    epsilon = float(exact_closed(epsilon0, num_users, delta))
    found = feldman_2023_delta(epsilon0, num_users, epsilon)
    edge = 2.0 * math.exp(-num_users / (8.0 * (math.exp(epsilon0) + 1.0)))
    assert found == pytest.approx(max(delta, edge), rel=1e-6)
    assert exact_closed(epsilon0, num_users, found) <= mpf(epsilon) * (1 + mpf("1e-15"))


@pytest.mark.parametrize("num_users", [30, 300, 3000])
def test_delta_is_above_the_clones_everywhere(num_users):
    for epsilon0 in (0.01, 0.5, 1.0):
        profile = any_randomizer(epsilon0)
        for share in (0.0, 0.1, 0.3, 0.6, 0.9, 0.99):
            closed = FELDMAN_2023_CLOSED.delta(profile, num_users, share * epsilon0).upper
            assert closed >= CLONES.delta(profile, num_users, share * epsilon0).lower


def test_delta_where_there_is_none():
    assert feldman_2023_delta(1.0, 10_000, 0.0) == 1.0
    assert feldman_2023_delta(1.0, 10_000, 1e-4) == 1.0
    assert feldman_2023_delta(0.0, 10_000, 0.0) == 1.0
    assert feldman_2023_delta(1.0, 1000, 0.999) >= 2.0 * math.exp(-1000 / (8.0 * (math.e + 1.0)))
    assert 0.0 < feldman_2023_delta(1.0, 10**12, 0.999) < 1e-299
