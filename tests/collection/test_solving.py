"""Whatever number is missing, the target holds at the one found, and not much beyond it."""

import pytest

from shuffledp import accounting
from shuffledp.collection.account import calibrate
from shuffledp.collection.profiles import named_profile
from shuffledp.core.errors import InfeasibleTargetError, ParameterError

TARGET = {"epsilon": 1.0, "delta": 1e-6}


def epsilon_of(epsilon0, num_users, rounds):
    release = accounting.ShuffledRelease(epsilon0=epsilon0, num_users=num_users)
    return (release * rounds).epsilon(1e-6, with_lower=False).upper


def test_the_largest_epsilon0():
    found = calibrate(num_users=10_000, rounds=30, **TARGET)
    assert found.found == "epsilon0"
    assert found.guarantee.epsilon_upper <= 1.0
    assert epsilon_of(found.epsilon0 * 1.001, 10_000, 30) > 1.0


def test_the_fewest_users():
    found = calibrate(epsilon0=1.0, rounds=30, **TARGET)
    assert found.found == "num_users"
    assert found.guarantee.epsilon_upper <= 1.0 < epsilon_of(1.0, found.num_users - 1, 30)


def test_the_most_rounds():
    found = calibrate(epsilon0=1.0, num_users=10_000, **TARGET)
    assert found.found == "rounds"
    assert found.guarantee.rounds == found.rounds
    assert found.guarantee.epsilon_upper <= 1.0 < epsilon_of(1.0, 10_000, found.rounds + 1)


def test_the_smallest_epsilon_and_delta():
    found = calibrate(epsilon0=1.0, num_users=10_000, rounds=3, delta=1e-6)
    assert found.found == "epsilon"
    assert found.guarantee.epsilon_upper == pytest.approx(epsilon_of(1.0, 10_000, 3))
    found = calibrate(epsilon0=1.0, num_users=10_000, rounds=3, epsilon=0.1)
    assert found.found == "delta"
    assert 0.0 < found.guarantee.delta_upper < 1e-6


def test_of_a_named_randomizer():
    found = calibrate(num_users=1000, randomizer="k-rr", k=4, **TARGET)
    anyone = calibrate(num_users=1000, **TARGET)
    assert found.epsilon0 > anyone.epsilon0
    profile = named_profile("k-rr", epsilon0=found.epsilon0, k=4)
    release = accounting.ShuffledRelease(profile=profile, num_users=1000)
    assert found.guarantee.bound == release.epsilon(1e-6)


def test_what_programs_read():
    record = calibrate(epsilon0=1.0, num_users=10_000, **TARGET).to_json_dict()
    assert list(record) == ["found", "epsilon0", "num_users", "rounds", "guarantee"]
    assert record["guarantee"]["rounds"] == record["rounds"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon0": 1.0},
        {"num_users": 10, "rounds": 2},
        {"epsilon0": 1.0, "num_users": 10, "rounds": 2, **TARGET},
    ],
)
def test_exactly_one_number_is_missing(given):
    with pytest.raises(ParameterError, match="all but one of"):
        calibrate(**given)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"delta": 1.0}, {"num_users": 0}, {"epsilon0": -1.0}]
)
def test_numbers_out_of_range_are_named(wrong):
    (name,) = wrong
    given = {"epsilon0": 1.0, "num_users": 100, **TARGET, **wrong}
    with pytest.raises(ParameterError, match=name):
        calibrate(**given)


def test_not_even_one_round():
    with pytest.raises(InfeasibleTargetError, match="not even one round with epsilon0 = 5"):
        calibrate(epsilon0=5.0, num_users=10, **TARGET)
