import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import profiles
from shuffledp.accounting import calibration
from shuffledp.accounting.calibration import (
    epsilon_upper,
    largest_epsilon0,
    largest_local_epsilon,
    largest_rounds,
    least_users,
)
from shuffledp.amplification.registry import account_delta
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers.registry import make_randomizer

FAMILIES = {
    "any": profiles.any_randomizer,
    "2-rr": lambda epsilon0: profiles.k_rr(epsilon0, 2),
    "8-rr": lambda epsilon0: profiles.k_rr(epsilon0, 8),
    "symmetric": lambda epsilon0: profiles.symmetric_unary(epsilon0, 8),
    "optimized": lambda epsilon0: profiles.optimized_unary(epsilon0, 8),
}


def delta_at(profile, num_users, epsilon):
    return account_delta(profile, num_users=num_users, epsilon=epsilon, with_lower=False).upper


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("num_users", "epsilon", "delta"),
    [
        (1, 0.5, 1e-9),
        (2, 1.0, 0.3),
        (100, 0.3, 1e-4),
        (10_000, 1.0, 1e-8),
        (10_000, 1e-3, 1e-12),
        (1_000_000, 0.1, 1e-10),
        (1000, 8.0, 1e-6),
        (10, 1e-9, 1e-9),
        (5, 0.1, 0.99),
    ],
)
def test_the_target_is_met_there_and_not_beyond(family, num_users, epsilon, delta):
    make = FAMILIES[family]
    epsilon0 = largest_epsilon0(make, num_users=num_users, epsilon=epsilon, delta=delta)
    assert epsilon <= epsilon0 <= 40.0
    assert delta_at(make(epsilon0), num_users, epsilon) <= delta
    if epsilon0 < 40.0:
        assert delta_at(make(epsilon0 * 1.0001), num_users, epsilon) > delta


@pytest.mark.parametrize("epsilon", [1e-300, 1e-15, 1e-3, 0.1, 1.0, 17.3, 33.0, 39.0, 39.9999999])
@pytest.mark.parametrize("delta", [1e-300, 1e-18, 1e-16, 1e-9])
@pytest.mark.parametrize("family", ["any", "2-rr", "8-rr"])
def test_one_user_alone_gets_epsilon_and_a_hair(epsilon, delta, family):
    # Rounding in the search must not return an epsilon0 above epsilon whose delta was never asked.
    make = FAMILIES[family]
    epsilon0 = largest_epsilon0(make, num_users=1, epsilon=epsilon, delta=delta)
    assert epsilon0 >= epsilon
    assert delta_at(make(epsilon0), 1, epsilon) <= delta
    if delta < 1e-12:
        assert epsilon0 <= epsilon * (1.0 + 1e-5) + 4.0 * delta


@pytest.mark.parametrize("epsilon", [20.0, 30.0, 36.0, 39.0])
def test_large_targets_do_not_fail_in_round_off(epsilon):
    for name, make in FAMILIES.items():
        epsilon0 = largest_epsilon0(make, num_users=10**6, epsilon=epsilon, delta=1e-12)
        assert epsilon <= epsilon0 <= 40.0
        # In a unary report either of the pair's bits may be noise, and n others make such noise
        # n times: crowds help up to epsilon0 - ln(n).
        if name in {"optimized", "symmetric"}:
            assert epsilon0 <= epsilon + math.log(10**6)
        elif epsilon0 > epsilon:
            # beyond e^-epsilon of reports that lie, one report's own delta remains
            alone = -math.expm1(epsilon - epsilon0)
            assert alone <= 1e-12 + 10**6 * math.exp(-epsilon) or epsilon0 == 40.0


def test_targets_above_the_largest_epsilon0():
    for epsilon in (40.0, 41.0, 1e308):
        assert largest_epsilon0(FAMILIES["any"], num_users=3, epsilon=epsilon, delta=1e-9) == 40.0


@pytest.mark.parametrize(
    "changes",
    [
        {"num_users": 0},
        {"num_users": 1.5},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"delta": None},
    ],
)
def test_targets_out_of_range(changes):
    arguments = {"num_users": 10, "epsilon": 1.0, "delta": 1e-6} | changes
    with pytest.raises(ParameterError, match=next(iter(changes))):
        largest_epsilon0(FAMILIES["any"], **arguments)
    if "num_users" not in changes:
        del arguments["num_users"]
        with pytest.raises(ParameterError, match=next(iter(changes))):
            least_users(rounds=1, profile=LocalProfile(epsilon0=1.0), **arguments)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.floats(0.2, 4.0),
    st.floats(0.05, 0.9),
    st.floats(-9.0, -2.0),
)
def test_the_fewest_users_are_enough_and_one_less_are_not(family, epsilon0, share, log_delta):
    profile, epsilon, delta = FAMILIES[family](epsilon0), share * epsilon0, 10.0**log_delta
    num_users = least_users(rounds=1, profile=profile, epsilon=epsilon, delta=delta)
    assert delta_at(profile, num_users, epsilon) <= delta
    if num_users > 1:
        fewer = num_users - 1 if num_users < 1_000 else math.floor(num_users * 0.999) - 1
        assert delta_at(profile, fewer, epsilon) > delta


def test_enough_users_for_anybody():
    for epsilon0, epsilon in ((1.0, 1.0), (0.0, 1e-9)):
        profile = LocalProfile(epsilon0=epsilon0)
        assert least_users(rounds=1, profile=profile, epsilon=epsilon, delta=1e-300) == 1


def test_a_target_that_no_number_of_users_meets(monkeypatch):
    monkeypatch.setattr(calibration, "_MOST_USERS", 10**5)
    with pytest.raises(InfeasibleTargetError, match="lower epsilon0"):
        least_users(rounds=1, profile=LocalProfile(epsilon0=3.0), epsilon=1e-4, delta=1e-12)


STATED = {
    "hashing": lambda epsilon0: (
        make_randomizer("optimized-local-hashing", domain_size=20, epsilon0=epsilon0).profile
    ),
    "subsets": lambda epsilon0: (
        make_randomizer("subset-selection", domain_size=20, epsilon0=epsilon0).profile
    ),
}


@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize(
    ("num_users", "epsilon", "delta"), [(50, 0.5, 1e-3), (10_000, 1.0, 1e-8), (10**6, 0.01, 1e-9)]
)
def test_wide_ends_on_the_way_cost_no_more_than_the_tolerance(name, num_users, epsilon, delta):
    make = STATED[name]
    epsilon0 = largest_epsilon0(make, num_users=num_users, epsilon=epsilon, delta=delta)
    assert delta_at(make(epsilon0), num_users, epsilon) <= delta
    assert delta_at(make(epsilon0 * (1.0 + 1.2e-6)), num_users, epsilon) > delta


CROWD = ShuffledRelease(epsilon0=1.0, num_users=10_000)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.3, 2.0])
def test_rounds_meet_the_target_and_one_more_does_not(epsilon):
    rounds = largest_rounds(CROWD, epsilon=epsilon, delta=1e-6)
    assert rounds == 0 or epsilon_upper(CROWD * rounds, 1e-6) <= epsilon
    assert epsilon_upper(CROWD * (rounds + 1), 1e-6) > epsilon
    assert (rounds == 0) == (epsilon == 0.01)


def test_rounds_of_a_release_that_says_nothing():
    silent = ShuffledRelease(epsilon0=0.0, num_users=1)
    assert largest_rounds(silent, epsilon=1.0, delta=1e-6) == 2**20


def test_rounds_end_where_failures_exceed_delta():
    failing = ShuffledRelease(profile=LocalProfile(epsilon0=1.0, delta0=1e-9), num_users=1_000)
    assert largest_rounds(failing, epsilon=50.0, delta=1e-6) in {999, 1_000}
    assert epsilon_upper(failing * 1_001, 1e-6) == math.inf


@pytest.mark.parametrize("rounds", [1, 30])
def test_users_meet_the_target_and_fewer_do_not(rounds):
    profile = LocalProfile(epsilon0=1.0)
    users = least_users(rounds=rounds, epsilon=0.5, delta=1e-6, profile=profile)

    def cost(number):
        return epsilon_upper(ShuffledRelease(epsilon0=1.0, num_users=number) * rounds, 1e-6)

    assert cost(users) <= 0.5
    assert cost(math.floor(users * (1 - 2e-3)) - 1) > 0.5


def test_users_of_a_particular_randomizer_with_coins():
    arguments = {"rounds": 3, "epsilon": 1.0, "delta": 1e-3}
    anyone = LocalProfile(epsilon0=1.0)
    any_one = least_users(profile=anyone, **arguments)
    binary = least_users(profile=profiles.k_rr(1.0, 2), **arguments)
    # Half of the crowd is away, but so is the victim: the users who send are about as many.
    coins = least_users(profile=anyone, participation=0.5, **arguments)
    assert binary < any_one
    assert coins < any_one


def test_too_many_users_are_not_sought():
    with pytest.raises(InfeasibleTargetError, match="lower epsilon0"):
        least_users(rounds=2, epsilon=1e-6, delta=1e-6, profile=LocalProfile(epsilon0=30.0))


@pytest.mark.parametrize(
    ("options", "rounds", "epsilon", "delta"),
    [
        ({"num_users": 10_000}, 10, 0.5, 1e-6),
        ({"num_users": 30, "participation": 0.2}, 10, 0.5, 1e-6),
        ({"num_users": 155}, 2, 6.5, 0.004),  # a step of the search leads out of its bracket
    ],
)
def test_local_epsilon_meets_the_target_and_more_does_not(options, rounds, epsilon, delta):
    found = largest_local_epsilon(rounds=rounds, epsilon=epsilon, delta=delta, **options)

    def cost(epsilon0):
        return epsilon_upper(ShuffledRelease(epsilon0=epsilon0, **options) * rounds, delta)

    assert cost(found) <= epsilon
    assert cost(found * (1 + 2e-3)) > epsilon


def test_local_epsilon_of_a_particular_randomizer_is_larger():
    arguments = {"num_users": 1000, "rounds": 4, "epsilon": 0.5, "delta": 1e-6}
    binary = largest_local_epsilon(profile_for=lambda e: profiles.k_rr(e, 2), **arguments)
    assert binary > largest_local_epsilon(**arguments)


@pytest.mark.parametrize("epsilon", [1e-300, 2e-12, 1e-9, 80.0, 1e4])
def test_local_epsilon_is_at_least_a_share_of_the_target(epsilon):
    found = largest_local_epsilon(num_users=3, rounds=2, epsilon=epsilon, delta=1e-9)
    assert found >= min(0.5 * epsilon * (1 - 1e-11), 40.0)
    assert found <= 40.0
    assert epsilon_upper(ShuffledRelease(epsilon0=found, num_users=3) * 2, 1e-9) <= epsilon


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
        lambda: least_users(rounds=2, profile=LocalProfile(epsilon0=1.0), **arguments),
        lambda: largest_local_epsilon(num_users=10, rounds=2, **arguments),
    ):
        with pytest.raises(ParameterError):
            ask()


def test_few_compositions_are_needed(monkeypatch):
    counted = []
    original = calibration.epsilon_upper
    monkeypatch.setattr(calibration, "epsilon_upper", lambda *a: counted.append(1) or original(*a))
    largest_rounds(CROWD, epsilon=0.5, delta=1e-6)
    assert len(counted) <= 10


def test_one_round_near_epsilon_0_takes_few_compositions(monkeypatch):
    counted = []
    original = calibration.epsilon_upper
    monkeypatch.setattr(calibration, "epsilon_upper", lambda *a: counted.append(1) or original(*a))
    found = largest_local_epsilon(num_users=10**9, rounds=1, epsilon=1e-11, delta=1e-8)
    release = ShuffledRelease(epsilon0=found, num_users=10**9)
    assert 0.0 < original(release, 1e-8) <= 1e-11
    assert len(counted) <= 25
