"""What people ask about becomes the releases they mean, or one line that says what is wrong."""

import math

import pytest

from shuffledp import accounting
from shuffledp.collection.account import account, asked_releases, guarantee_of, single_batch
from shuffledp.collection.profiles import named_profile
from shuffledp.core.errors import ParameterError

CSV = "epsilon0,num_users,rounds\n1.0,10000,30\n0.5,2000,4\n"


def test_one_batch():
    wanted = accounting.ShuffledRelease(epsilon0=1.0, num_users=1000)
    assert asked_releases(epsilon0=1.0, num_users=1000) == wanted * 1
    assert asked_releases(epsilon0=1.0, num_users=1000, rounds=7) == wanted * 7


def test_a_named_randomizer():
    profile = named_profile("k-rr", epsilon0=1.0, k=4)
    wanted = accounting.ShuffledRelease(profile=profile, num_users=50)
    assert asked_releases(epsilon0=1.0, num_users=50, randomizer="k-rr", k=4) == wanted * 1


def test_users_that_are_drawn():
    drawn = accounting.ShuffledRelease(epsilon0=1.0, num_users=50, sampled_from=1000)
    assert asked_releases(epsilon0=1.0, num_users=1000, sampled=50) == drawn * 1
    coins = accounting.ShuffledRelease(epsilon0=1.0, num_users=1000, participation=0.25)
    assert asked_releases(epsilon0=1.0, num_users=1000, participation=0.25) == coins * 1


def test_only_honest_users_count():
    honest = accounting.ShuffledRelease(epsilon0=1.0, num_users=899)
    assert asked_releases(epsilon0=1.0, num_users=999, honest_fraction=0.9) == honest * 1


def test_a_schedule(tmp_path):
    path = tmp_path / "rounds.csv"
    path.write_text(CSV)
    wanted = (
        accounting.ShuffledRelease(epsilon0=1.0, num_users=10_000) * 30
        + accounting.ShuffledRelease(epsilon0=0.5, num_users=2000) * 4
    )
    assert asked_releases(schedule=path) == wanted
    assert asked_releases(schedule=path, rounds=2) == wanted * 2
    guarantee = account(schedule=path, delta=1e-6)
    assert guarantee.bound == wanted.epsilon(1e-6)
    assert (guarantee.num_users, guarantee.rounds) == (2000, 34)


def test_a_channel(tmp_path):
    path = tmp_path / "coin.csv"
    path.write_text("3/4,1/4\n1/4,3/4\n")
    guarantee = account(channel=path, num_users=2000, delta=1e-6)
    by_name = account(epsilon0=math.log(3.0), num_users=2000, delta=1e-6)
    assert guarantee.bound.method in ("channel-blanket", "clones")  # which are equal here
    assert guarantee.epsilon_upper <= by_name.epsilon_upper * (1.0 + 1e-6)
    with pytest.raises(ParameterError, match="channel says all there is about the randomizer"):
        account(channel=path, num_users=2000, delta=1e-6, k=2)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"num_users": 10}, "epsilon0 is missing"),
        ({"epsilon0": 1.0}, "num_users is missing"),
        ({"epsilon0": 1.0, "num_users": 0}, "num_users = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "rounds": 0}, "rounds = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "sampled": 0}, "sampled = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "sampled": 11}, "11"),
        ({"epsilon0": 1.0, "num_users": 10, "participation": 0.0}, "participation = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "participation": math.nan}, "participation = nan"),
        ({"epsilon0": 1.0, "num_users": 10, "honest_fraction": 1.5}, "1.5"),
        ({"epsilon0": 1.0, "num_users": 10, "honest_fraction": 0.01}, "0.01"),
        ({"epsilon0": 1.0, "num_users": 10, "sampled": 5, "honest_fraction": 0.5}, "does not go"),
        ({"schedule": "x.csv", "epsilon0": 1.0}, "schedule says all there is"),
        ({"schedule": "x.csv", "participation": 0.5}, "schedule says all there is"),
        ({"schedule": "x.csv", "honest_fraction": 0.5}, "honest_fraction does not go"),
    ],
)
def test_what_contradicts_itself_is_refused(asked, message):
    with pytest.raises(ParameterError, match=message):
        account(delta=1e-6, **asked)


def test_a_named_method_is_for_one_plain_batch():
    bound = account(epsilon0=1.0, num_users=1000, delta=1e-6, method="erlingsson").bound
    assert bound.method == "erlingsson"
    for more in ({"rounds": 2}, {"sampled": 10}, {"participation": 0.5}):
        with pytest.raises(ParameterError, match="method = 'erlingsson' is for one batch"):
            account(epsilon0=1.0, num_users=1000, delta=1e-6, method="erlingsson", **more)
    profile, num_users = single_batch(asked_releases(epsilon0=1.0, num_users=9), "x")
    assert (profile.epsilon0, num_users) == (1.0, 9)
    with pytest.raises(ParameterError, match="x is for one batch"):
        single_batch(accounting.StatedRelease(epsilon=1.0) * 1, "x")


def test_exactly_one_of_epsilon_and_delta():
    release = accounting.ShuffledRelease(epsilon0=1.0, num_users=100) * 2
    assert guarantee_of(release, epsilon=0.5).delta == release.delta(0.5)
    for given in ({}, {"epsilon": 0.5, "delta": 1e-6}):
        with pytest.raises(ParameterError, match="exactly one"):
            guarantee_of(release, **given)
    with pytest.raises(ParameterError, match="releases is empty"):
        guarantee_of(release * 0, delta=1e-6)
