"""``shuffledp monitor plan`` prints what `plan_monitoring` finds."""

import json

import pytest

from given_once import given_once
from golden.schemas import found_in
from shuffledp.cli.main import main
from shuffledp.monitoring.plan import plan_monitoring

SIZE = ("--periods", "16", "--max-changes", "2", "--num-users", "5000", "--delta", "1e-7")


def plan(capsys, *arguments):
    status = main(given_once(["monitor", "plan", *SIZE], arguments))
    return status, capsys.readouterr()


@pytest.mark.slow
def test_json(capsys):
    status, printed = plan(capsys, "--epsilon0", 1, "--json")
    assert status == 0
    planned = plan_monitoring(periods=16, max_changes=2, num_users=5_000, delta=1e-7, epsilon0=1.0)
    assert found_in(printed.out) == json.loads(json.dumps(planned.to_dict()))


def test_people_read_errors_and_guarantees_then_the_table_and_the_advice(capsys):
    status, printed = plan(capsys, "--epsilon0", 1)
    assert status == 0
    out = printed.out
    assert out.startswith("error ")
    for text in (
        "in the worst period",
        "95% band for all periods at once",
        "proved upper bound, of all that is ever published",
        "of all that a user ever sends, without a shuffler",
        "16 (5 levels)",
        "this plan: monitoring",
        "everybody, every period,",
        "assumptions",
    ):
        assert text in out, text
    order = ("\nepsilon ", "\nepsilon0 ", "\nusers ", "\nway to collect", "\nadvice ")
    places = [out.index(text) for text in (*order, "\nmethod ", "\nsource ", "\nassumptions\n")]
    assert places == sorted(places)


@pytest.mark.slow
def test_a_central_target(capsys):
    status, printed = plan(capsys, "--epsilon", 0.5, "--json")
    assert status == 0
    record = json.loads(printed.out)
    assert record["asked_epsilon"] == 0.5
    assert 0.49 < record["central"]["upper"] <= 0.5


def test_values(capsys):
    few = ("--periods", 2)
    _, printed = plan(capsys, "--epsilon0", 1, "--categories", "a,b,c,d,e", "--json", *few)
    assert json.loads(printed.out)["encoding"] == "hadamard"
    status, printed = plan(capsys, "--epsilon0", 1, "--categories", "red,blue", *few)
    assert status == 0
    assert "2, one-hot encoding" in printed.out


def test_one_period_is_a_one_shot_collection(capsys):
    status, printed = plan(capsys, "--epsilon0", 1, "--periods", 1, "--max-changes", 1)
    assert status == 0
    assert "One period is a one-shot collection" in printed.out
    assert "1 (1 level)" in printed.out


def test_a_large_delta_is_warned_about(capsys):
    _, printed = plan(capsys, "--epsilon0", 1, "--delta", 0.01, "--periods", 2, "--num-users", 300)
    assert printed.err.startswith("warning: delta = 0.01 is not below")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give exactly one of --epsilon0"),
        (["--epsilon0", "1", "--epsilon", "1"], "give exactly one of --epsilon0"),
        (["--epsilon0", "0"], "epsilon0 = 0"),
        (["--epsilon0", "inf"], "epsilon0 = inf"),
        (["--epsilon", "-1"], "epsilon = -1"),
        (["--epsilon0", "1", "--delta", "0"], "delta = 0"),
        (["--epsilon0", "1", "--max-changes", "17"], "max_changes = 17 is above periods = 16"),
        (["--epsilon0", "1", "--periods", "0"], "periods = 0"),
        (["--epsilon0", "1", "--num-users", "0"], "num_users = 0"),
        (["--epsilon0", "1", "--confidence", "0"], "confidence = 0"),
        (["--epsilon0", "1", "--categories", "a,a"], "'a'"),
    ],
)
def test_bad_requests(capsys, arguments, message):
    status, printed = plan(capsys, *arguments)
    assert status == 2
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_dummies(capsys):
    asked = ("--periods", 4, "--max-changes", 1, "--epsilon0", 6, "--dummies", "shuffler")
    status, printed = plan(capsys, *asked, "--max-epsilon0", 2)
    assert status == 0
    order = ("under a shuffler's", "\ndummies ", "\nwith them ", "\nwithout ", "\nadvice ")
    places = [printed.out.index(text) for text in order]
    assert places == sorted(places)
    status, printed = plan(capsys, *asked)
    assert status != 0
    assert "give exactly one of them" in printed.err
