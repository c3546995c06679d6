"""Guarantees as people ask for them, and the number that is missing."""

import math

import numpy as np
import pytest

from shuffledp import accounting
from shuffledp.accounting.account import Terms, account
from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.guarantees import guarantee_for, single_batch
from shuffledp.accounting.profiles import named_profile
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Guarantee
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile


def releases(**asked):
    return Terms(**asked).releases()


# ---------------- asked releases
CSV = "epsilon0,num_users,rounds\n1.0,10000,30\n0.5,2000,4\n"


def test_one_batch():
    wanted = accounting.ShuffledRelease(epsilon0=1.0, num_users=1000)
    assert releases(epsilon0=1.0, num_users=1000) == wanted * 1
    assert releases(epsilon0=1.0, num_users=1000, rounds=7) == wanted * 7


def test_a_named_randomizer():
    profile = named_profile("k-rr", epsilon0=1.0, domain_size=4)
    wanted = accounting.ShuffledRelease(profile=profile, num_users=50)
    assert releases(epsilon0=1.0, num_users=50, randomizer="k-rr", domain_size=4) == wanted * 1


def test_users_that_are_drawn():
    drawn = accounting.ShuffledRelease(epsilon0=1.0, num_users=50, sampled_from=1000)
    assert releases(epsilon0=1.0, num_users=1000, sampled=50) == drawn * 1
    coins = accounting.ShuffledRelease(epsilon0=1.0, num_users=1000, participation=0.25)
    assert releases(epsilon0=1.0, num_users=1000, participation=0.25) == coins * 1


def test_no_more_users_are_drawn_than_there_are():
    with pytest.raises(ParameterError, match="sampled = 11 is above num_users = 10"):
        releases(epsilon0=1.0, num_users=10, sampled=11)


def test_only_honest_users_count():
    honest = accounting.ShuffledRelease(epsilon0=1.0, num_users=899)
    assert releases(epsilon0=1.0, num_users=999, honest_fraction=0.9) == honest * 1


def test_a_schedule(tmp_path):
    path = tmp_path / "rounds.csv"
    path.write_text(CSV)
    wanted = (
        accounting.ShuffledRelease(epsilon0=1.0, num_users=10_000) * 30
        + accounting.ShuffledRelease(epsilon0=0.5, num_users=2000) * 4
    )
    assert releases(schedule=path) == wanted
    assert releases(schedule=path, rounds=2) == wanted * 2
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
        account(channel=path, num_users=2000, delta=1e-6, domain_size=2)


@pytest.mark.parametrize("wrong", [True, "1", 1j, object()])
def test_what_is_of_another_kind_is_named(wrong):
    with pytest.raises(ParameterError, match="epsilon = "):
        account(epsilon0=1.0, num_users=10, epsilon=wrong)
    with pytest.raises(ParameterError, match="participation = "):
        calibrate(num_users=10, **TARGET, participation=wrong)
    for name in ("profile", "dummies"):
        given = {"profile": LocalProfile(epsilon0=1.0), "num_users": 10, name: wrong}
        with pytest.raises(ParameterError, match=f"{name} is a .*: give a (LocalP|DummyL)"):
            ShuffledRelease(**given)


def test_numbers_beyond_all_limits_are_refused():
    for name in ("num_users", "rounds"):
        with pytest.raises(ParameterError, match=f"{name} = 1000+ is above"):
            calibrate(**{"num_users": 10, **TARGET, name: 10**400})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"num_users": 10}, "epsilon0 is missing"),
        ({"epsilon0": 1.0}, "num_users is missing"),
        ({"epsilon0": 1.0, "num_users": 0}, "num_users = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "rounds": 0}, "rounds = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "sampled": 0}, "sampled = 0"),
        ({"epsilon0": 1.0, "num_users": 10, "sampled": 11}, "11"),
        ({"epsilon0": 1.0, "num_users": 10, "sampled": 5, "participation": 0.5}, "participation"),
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
    profile, num_users = single_batch(releases(epsilon0=1.0, num_users=9), "x")
    assert (profile.epsilon0, num_users) == (1.0, 9)
    with pytest.raises(ParameterError, match="x is for one batch"):
        single_batch(accounting.StatedRelease(epsilon=1.0) * 1, "x")


# ---------------- solving
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
    expected = accounting.ShuffledRelease(epsilon0=1.0, num_users=10_000) * 3
    assert found.guarantee.delta_upper == pytest.approx(expected.delta(0.1).upper)
    coins = {"epsilon0": 1.0, "num_users": 10_000, "participation": 0.5}
    release = accounting.ShuffledRelease(**coins) * 3
    assert calibrate(**coins, rounds=3, delta=1e-6).guarantee.bound == release.epsilon(1e-6)


def test_of_a_named_randomizer():
    found = calibrate(num_users=1000, randomizer="k-rr", domain_size=4, **TARGET)
    anyone = calibrate(num_users=1000, **TARGET)
    assert found.epsilon0 > anyone.epsilon0
    profile = named_profile("k-rr", epsilon0=found.epsilon0, domain_size=4)
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
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"num_users": 0},
        {"epsilon0": -1.0},
        {"epsilon0": math.inf},
        {"epsilon0": 1j},
        {"rounds": 0, "epsilon": None},
    ],
)
def test_numbers_out_of_range_are_named(wrong):
    name = next(iter(wrong))
    given = {"epsilon0": 1.0, "num_users": 100, **TARGET, **wrong}
    with pytest.raises(ParameterError, match=name):
        calibrate(**given)


def test_not_even_one_round():
    with pytest.raises(InfeasibleTargetError, match="not even one round with epsilon0 = 5"):
        calibrate(epsilon0=5.0, num_users=10, **TARGET)


# ---------------- a law of one's own
def test_a_profile_says_all_there_is_about_a_report():
    law = named_profile("k-rr", epsilon0=2.0, domain_size=5)
    found = account(law, num_users=1000, delta=1e-6)
    assert found == account(
        epsilon0=2.0, randomizer="k-rr", domain_size=5, num_users=1000, delta=1e-6
    )
    assert found == guarantee_for(law, 1000, delta=1e-6)
    with pytest.raises(ParameterError, match="profile says all there is"):
        account(law, epsilon0=2.0, num_users=1000, delta=1e-6)
    with pytest.raises(ParameterError, match="schedule says all there is"):
        account(law, schedule="a.csv", delta=1e-6)


# ---------------- arrays
def test_arrays_give_a_table_with_a_row_an_element():
    users = [1e3, 1e4]  # as np.logspace returns them
    table = account(epsilon0=np.array([[1.0], [2.0]]), num_users=users, delta=1e-6)
    columns = table.to_dict()
    pairs = [(1.0, 1000), (1.0, 10_000), (2.0, 1000), (2.0, 10_000)]
    assert len(table) == 4
    assert [*zip(columns["epsilon0"], columns["num_users"], strict=True)] == pairs
    assert list(columns) == ["epsilon0", "num_users", "epsilon_lower", "epsilon_upper", "method"]
    alone = [account(epsilon0=e, num_users=n, delta=1e-6) for e, n in pairs]
    assert table.rows == tuple(alone)
    assert columns["epsilon_upper"] == [each.upper for each in alone]
    assert columns["epsilon_lower"] == [each.lower for each in alone]
    assert table.to_polars().to_dict(as_series=False) == columns
    assert table.to_pandas().to_dict("list") == columns


@pytest.mark.parametrize(
    "arrays",
    [
        {"epsilon": [0.1, 0.2]},
        {"epsilon": 0.1, "rounds": range(1, 3)},
        {"epsilon": 0.1, "participation": (0.5, 0.9)},
        {"epsilon": 0.1, "sampled": [10, 20]},
        {"epsilon": 0.1, "randomizer": "k-rr", "domain_size": [2, 3]},
    ],
)
def test_every_number_may_be_an_array(arrays):
    table = account(epsilon0=1.0, num_users=100, **arrays)
    columns = table.to_dict()
    (name,) = set(columns) - {"delta_lower", "delta_upper", "method"}
    assert columns[name] == [*arrays[name]]
    (first, _) = columns["delta_upper"]
    assert account(epsilon0=1.0, num_users=100, **{**arrays, name: arrays[name][0]}).upper == first


def test_numbers_alone_give_what_they_always_gave():
    for number in (np.int64(100), np.array(100), 100):
        assert isinstance(account(epsilon0=1.0, num_users=number, delta=1e-6), Guarantee)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"num_users": [1, 2], "epsilon0": [1, 2, 3]}, "arrays that do not go together"),
        ({"num_users": []}, "num_users: arrays that hold nothing"),
        ({"num_users": [[1], [1, 2]]}, "arrays that do not go together .*inhomogeneous"),
        ({"num_users": [1.5, 2]}, "num_users = 1.5 is not a whole number"),
        ({"num_users": [5, 0]}, "num_users = 0 is below 1"),
    ],
)
def test_arrays_that_do_not_do_are_named(arrays, message):
    with pytest.raises(ParameterError, match=message):
        account(**{"epsilon0": 1.0, "delta": 1e-6, **arrays})


def test_dummies_of_the_shuffler_need_no_crowd():
    law = "laplace:2.025:27"
    found = account(epsilon0=math.inf, dummies=law, epsilon=1.0)
    assert found.num_users == 1
    assert found.delta_upper == pytest.approx(7.839348804e-7, rel=1e-9)
    assert account(epsilon0=math.inf, dummies=DummyLaw.from_text(law), epsilon=1.0) == found
    twice = account(epsilon0=math.inf, dummies=law, delta=1e-5, rounds=2)
    assert 1.9 < twice.epsilon_upper < 2.0
    with pytest.raises(ParameterError, match="num_users"):
        account(epsilon0=math.inf, dummies="poisson:40", epsilon=1.0)
    with pytest.raises(ParameterError, match="is no law"):
        account(epsilon0=1.0, num_users=1, dummies="laplace:2", epsilon=1.0)
    with pytest.raises(ParameterError, match="leave it out"):
        account(epsilon0=1.0, num_users=1, dummies=law, epsilon=1.0, method="local")


def test_a_ledger_knows_dummies():
    pair = Terms(epsilon0=math.inf, dummies="gaussian:30.0:210").releases()
    for adaptive in (True, False):
        ledger = accounting.Ledger(epsilon=1.0, delta=1e-6, adaptive=adaptive).spend(pair)
        assert 0.15 < ledger.spent.upper < (0.5 if adaptive else 0.3)
        assert 2 <= ledger.fits(pair) <= 30
        assert accounting.Ledger.from_json_dict(ledger.to_json_dict()) == ledger
    assert ledger.fits(Terms(epsilon0=math.inf, num_users=9).releases()) == 0
