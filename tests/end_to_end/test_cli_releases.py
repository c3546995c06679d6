"""``account`` and ``plan`` about repeated, sampled and partly honest collections."""

import json

import pytest

import shuffledp as sdp
from shuffledp import accounting
from shuffledp.cli.main import main

BASE = ["--epsilon0", "1", "--num-users", "10000"]
DELTA = ["--delta", "1e-6"]


def printed(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert main([*map(str, arguments)]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    return error


def test_many_rounds(capsys):
    record = printed(capsys, "account", *BASE, *DELTA, "--rounds", "365")
    daily = accounting.ShuffledRelease(epsilon0=1.0, num_users=10_000)
    bound = (daily * 365).epsilon(1e-6)
    assert record["epsilon"] == {"lower": bound.lower, "upper": bound.upper}
    assert record["rounds"] == 365
    main(["account", *BASE, *DELTA, "--rounds", "365"])
    out = capsys.readouterr().out
    assert "rounds   365\nusers    10,000 in the smallest batch" in out


def test_users_that_are_drawn_and_users_that_are_honest(capsys):
    alone = printed(capsys, "account", *BASE, *DELTA)["epsilon"]["upper"]
    drawn = printed(capsys, "account", *BASE, *DELTA, "--sampled", "1000")["epsilon"]["upper"]
    coins = printed(capsys, "account", *BASE, *DELTA, "--participation", "0.1")["epsilon"]["upper"]
    honest = printed(capsys, "account", *BASE, *DELTA, "--honest-fraction", "0.5")["epsilon"]
    half = printed(capsys, "account", "--epsilon0", "1", "--num-users", "5000", *DELTA)["epsilon"]
    assert drawn < alone
    assert coins < alone
    assert honest == half


def test_a_schedule(capsys, tmp_path):
    path = tmp_path / "rounds.csv"
    path.write_text("epsilon0,num_users,rounds\n1,10000,30\n0.5,2000,4\n")
    record = printed(capsys, "account", "--schedule", str(path), *DELTA)
    assert record["rounds"] == 34
    assert record["epsilon"]["upper"] == sdp.account(schedule=path, delta=1e-6).epsilon_upper


def test_a_channel(capsys, tmp_path):
    path = tmp_path / "coin.csv"
    path.write_text("0.75,0.25\n0.25,0.75\n")
    record = printed(capsys, "account", "--channel", str(path), "--num-users", "10000", *DELTA)
    assert 0.0 < record["epsilon"]["lower"] < record["epsilon"]["upper"] < 0.1
    path.write_text("0.75,0.2\n0.25,0.75\n")
    error = refused(capsys, "account", "--channel", path, "--num-users", "10", *DELTA)
    assert "row" in error


def test_numbers_and_vectors_by_name(capsys):
    anyone = printed(capsys, "account", *BASE, *DELTA)["epsilon"]["upper"]
    for more in (["piecewise"], ["privunit", "--dimension", "50"]):
        named = printed(capsys, "account", *BASE, *DELTA, "--randomizer", *more)["epsilon"]
        assert named["lower"] < named["upper"] < anyone


@pytest.mark.slow
def test_a_certificate(capsys):
    record = printed(
        capsys, "account", "--epsilon0", "1", "--num-users", "1000", *DELTA, "--certify"
    )
    assert "by ball arithmetic" in record["certificate"]
    main(["account", "--epsilon0", "1", "--num-users", "100", "--epsilon", "0.1", "--certify"])
    assert "certificate at epsilon = 0.1" in capsys.readouterr().out
    error = refused(capsys, "account", *BASE, *DELTA, "--rounds", 2, "--certify")
    assert "certify is for one batch" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-users", "10", *DELTA], "epsilon0 is missing"),
        (["--epsilon0", "1", *DELTA], "num_users is missing"),
        ([*BASE, *DELTA, "--rounds", "0"], "rounds = 0"),
        ([*BASE, *DELTA, "--sampled", "20000"], "20000"),
        ([*BASE, *DELTA, "--participation", "2"], "participation = 2"),
        ([*BASE, *DELTA, "--rounds", "2", "--method", "clones"], "for one batch"),
        ([*BASE, *DELTA, "--channel", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_what_cannot_be_is_one_line(capsys, arguments, message):
    assert message in refused(capsys, "account", *arguments)


@pytest.mark.slow
def test_plan_finds_the_number_that_is_missing(capsys):
    target = ["--epsilon", "1", *DELTA]
    found = printed(capsys, "plan", "--num-users", "10000", "--rounds", "30", *target)
    assert found["found"] == "epsilon0"
    assert found["guarantee"]["epsilon"]["upper"] <= 1.0
    found = printed(capsys, "plan", "--epsilon0", "1", "--rounds", "30", *target)
    assert found["found"] == "num_users"
    found = printed(capsys, "plan", *BASE, *target)
    assert found["found"] == "rounds"
    found = printed(capsys, "plan", *BASE, "--epsilon", "0.1", "--rounds", "3")
    assert found["found"] == "delta"
    main(["plan", *BASE, *target])
    assert capsys.readouterr().out.startswith("most rounds  ")


def test_plan_for_a_year(capsys):
    arguments = ["--num-users", "2000", "--domain", "yes,no", "--epsilon", "2", *DELTA]
    record = printed(capsys, "plan", *arguments, "--rounds", "365", "--randomizer", "k-rr")
    assert record["rounds"] == record["guarantee"]["rounds"] == 365
    assert record["guarantee"]["epsilon"]["upper"] <= 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--domain", "yes,no", "--epsilon", "1", *DELTA], "give --num-users, --epsilon and"),
        (["--domain", "yes,no", "--epsilon0", "1", *DELTA], "leave out the question"),
        (["--epsilon0", "1"], "all but one of"),
        ([*BASE, "--epsilon", "1", *DELTA, "--rounds", "3"], "all but one of"),
    ],
)
def test_plans_that_cannot_be_are_one_line(capsys, arguments, message):
    assert message in refused(capsys, "plan", *arguments)
