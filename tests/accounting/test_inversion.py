import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import profiles
from shuffledp.accounting import inversion
from shuffledp.accounting.composed import Composition
from shuffledp.accounting.inversion import (
    epsilon_upper,
    largest_local_epsilon,
    largest_rounds,
    last_within,
    least_users,
    smallest_delta,
)
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.accounting.stated_release import StatedRelease
from shuffledp.core.errors import InfeasibleTargetError, ParameterError

CROWD = ShuffledRelease(epsilon0=1.0, num_users=10_000)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.3, 2.0])
def test_rounds_meet_the_target_and_one_more_does_not(epsilon):
    rounds = largest_rounds(CROWD, epsilon=epsilon, delta=1e-6)
    assert rounds == 0 or epsilon_upper(CROWD * rounds, 1e-6) <= epsilon
    assert epsilon_upper(CROWD * (rounds + 1), 1e-6) > epsilon
    assert (rounds == 0) == (epsilon == 0.01)


def test_rounds_of_a_composition_and_of_nothing():
    week = CROWD * 5 + StatedRelease(epsilon=0.01)
    rounds = largest_rounds(week, epsilon=1.0, delta=1e-6)
    assert epsilon_upper(week * rounds, 1e-6) <= 1.0 < epsilon_upper(week * (rounds + 1), 1e-6)
    assert largest_rounds(Composition(), epsilon=1.0, delta=1e-6) == 1_000_000
    silent = ShuffledRelease(epsilon0=0.0, num_users=1)
    assert largest_rounds(silent, epsilon=1.0, delta=1e-6) == 1_000_000
    assert largest_rounds(silent * 3, epsilon=1.0, delta=1e-6) == 333_333


def test_rounds_end_where_failures_exceed_delta():
    failing = StatedRelease(epsilon=1e-9, delta=1e-7)
    assert largest_rounds(failing, epsilon=1.0, delta=1e-6) in {9, 10}


@pytest.mark.parametrize("rounds", [1, 30])
def test_users_meet_the_target_and_fewer_do_not(rounds):
    users = least_users(rounds=rounds, epsilon=0.5, delta=1e-6, epsilon0=1.0)

    def cost(number):
        return epsilon_upper(ShuffledRelease(epsilon0=1.0, num_users=number) * rounds, 1e-6)

    assert cost(users) <= 0.5
    assert cost(math.floor(users * (1 - 2e-4)) - 1) > 0.5


def test_users_of_a_particular_randomizer_with_coins():
    arguments = {"rounds": 3, "epsilon": 1.0, "delta": 1e-3}
    any_one = least_users(epsilon0=1.0, **arguments)
    binary = least_users(profile=profiles.k_rr(1.0, 2), **arguments)
    # Half of the crowd is away, but so is the victim: the users who send are about as many.
    coins = least_users(epsilon0=1.0, participation=0.5, **arguments)
    assert binary < any_one
    assert coins < any_one


def test_too_many_users_are_not_sought():
    with pytest.raises(InfeasibleTargetError, match="lower epsilon0"):
        least_users(rounds=2, epsilon=1e-6, delta=1e-6, epsilon0=30.0)


@pytest.mark.parametrize(
    "options",
    [
        {"num_users": 10_000},
        {"num_users": 100, "sampled_from": 1000},
        {"num_users": 30, "participation": 0.2},
    ],
)
def test_local_epsilon_meets_the_target_and_more_does_not(options):
    found = largest_local_epsilon(rounds=10, epsilon=0.5, delta=1e-6, **options)

    def cost(epsilon0):
        return epsilon_upper(ShuffledRelease(epsilon0=epsilon0, **options) * 10, 1e-6)

    assert cost(found) <= 0.5
    assert cost(found * (1 + 2e-4)) > 0.5


def test_local_epsilon_of_a_particular_randomizer_is_larger():
    arguments = {"num_users": 1000, "rounds": 4, "epsilon": 0.5, "delta": 1e-6}
    binary = largest_local_epsilon(profile_for=lambda e: profiles.k_rr(e, 2), **arguments)
    assert binary > largest_local_epsilon(**arguments)


@pytest.mark.parametrize("epsilon", [1e-9, 80.0, 1e4])
def test_local_epsilon_is_at_least_a_share_of_the_target(epsilon):
    found = largest_local_epsilon(num_users=3, rounds=2, epsilon=epsilon, delta=1e-9)
    assert found >= min(0.5 * epsilon * (1 - 1e-11), 40.0)
    assert found <= 40.0
    assert epsilon_upper(ShuffledRelease(epsilon0=found, num_users=3) * 2, 1e-9) <= epsilon


def test_smallest_delta_is_that_of_the_composition():
    year = CROWD * 5
    assert smallest_delta(year, epsilon=0.2) == year.delta(0.2).upper


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": math.nan, "delta": 1e-6},
    ],
)
def test_impossible_targets_are_refused(arguments):
    for ask in (
        lambda: largest_rounds(CROWD, **arguments),
        lambda: least_users(rounds=2, epsilon0=1.0, **arguments),
        lambda: largest_local_epsilon(num_users=10, rounds=2, **arguments),
    ):
        with pytest.raises(ParameterError):
            ask()


@given(
    threshold=st.integers(0, 10**6),
    most=st.integers(0, 10**6),
    power=st.sampled_from([0.0, 0.3, 0.5, 1.0, 3.0]),
)
def test_the_search_finds_the_last_number_within(threshold, most, power):
    asked = []

    def cost(number):
        asked.append(number)
        return number**power if number <= threshold else math.inf

    found = last_within(cost, float(max(threshold, 1) ** power), most=most)
    truth = min(threshold, most)
    assert truth * (1 - 1e-4) - 1e-9 <= found <= truth
    assert found == 0 or found in asked
    assert len(asked) <= 60


def test_the_search_is_quick_where_costs_grow_like_roots():
    asked = []

    def cost(number):
        asked.append(number)
        return math.sqrt(number) + 0.001 * number

    found = last_within(cost, 100.0, most=10**6)
    assert cost(found) <= 100.0 < cost(found + 2)
    assert len(asked) <= 15


def test_few_compositions_are_needed(monkeypatch):
    counted = []
    original = inversion.epsilon_upper
    monkeypatch.setattr(inversion, "epsilon_upper", lambda *a: counted.append(1) or original(*a))
    largest_rounds(CROWD, epsilon=0.5, delta=1e-6)
    assert len(counted) <= 10
