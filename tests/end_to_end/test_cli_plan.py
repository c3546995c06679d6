"""``shuffledp plan`` prints what `make_plan` chooses."""

import json

import pytest

import shuffledp as sdp
from shuffledp.cli.main import main

TARGET = ["--epsilon", "0.5", "--delta", "1e-8"]
ISSUE = ["plan", "--num-users", "100000", "--domain", "yes,no,refused", *TARGET]


def test_json(capsys):
    assert main([*ISSUE, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    plan = sdp.plan(
        sdp.Categories(["yes", "no", "refused"]), num_users=100_000, epsilon=0.5, delta=1e-8
    )
    assert record == plan.to_json_dict()
    keys = ["randomizer", "epsilon0", "guarantee", "expected_standard_error", "alternatives"]
    assert list(record)[:5] == keys
    assert record["guarantee"]["epsilon"]["upper"] <= 0.5
    assert record["randomizer"] == "k-rr"
    others = [each["randomizer"] for each in record["alternatives"]]
    assert others[:2] == ["subset-selection", "symmetric-unary"]  # the first is the same law


def test_people_read_the_choice_the_runner_up_and_the_other_models(capsys):
    assert main(ISSUE) == 0
    out = capsys.readouterr().out
    assert out.startswith("question        3 answers\nrandomizer      k-rr\nepsilon0        6.2")
    for text in (
        "chosen: k-rr",
        "without a shuffler",
        "with a trusted curator",
        "or subset-selection",
    ):
        assert text in out
    assert out.index("symmetric-unary") < out.index("optimized-unary")


def test_the_randomizer_can_be_named(capsys):
    assert main([*ISSUE, "--randomizer", "optimized-unary"]) == 0
    out = capsys.readouterr().out
    assert "randomizer      optimized-unary\n" in out
    assert "or k-rr" not in out


def test_the_three_ways_to_give_a_domain_agree(capsys, tmp_path):
    (tmp_path / "domain.txt").write_text("0\n1\n2\n")
    base = ["plan", "--num-users", "1e5", *TARGET, "--json"]
    for domain in (
        ["--domain", "0, 1,2"],
        ["--domain-file", str(tmp_path / "domain.txt")],
        ["--k", "3"],
    ):
        assert main([*base, *domain]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == second == third


def test_a_large_delta_is_warned_about(capsys):
    arguments = ["--num-users", "1000", "--k", "2", "--epsilon", "1", "--delta", "0.001"]
    assert main(["plan", *arguments]) == 0
    assert capsys.readouterr().err.startswith("warning: delta = 0.001 is not below")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-users", "1e5", "--k", "3", "--domain", "a,b", *TARGET], "give exactly one"),
        (
            ["--num-users", "1e5", "--domain-file", "x", "--domain", "a,b", *TARGET],
            "--domain or --domain-file, not both",
        ),
        (["--num-users", "1e5", "--k", "1", *TARGET], "k = 1 is not in [2, "),
        (["--num-users", "1e5", "--domain", "a", *TARGET], "at least two"),
        (["--num-users", "1e5", "--domain", "", *TARGET], "at least two"),
        (["--num-users", "1e5", "--domain", "a,,b", *TARGET], "empty answer at position 2"),
        (["--num-users", "1e5", "--domain", "a,b,a", *TARGET], "'a' more than once"),
        (["--num-users", "0", "--k", "2", *TARGET], "num_users = 0 is below 1"),
        (["--num-users", "9", "--k", "2", "--epsilon", "0", "--delta", "0.1"], "epsilon = 0.0"),
        (["--num-users", "9", "--k", "2", "--epsilon", "1", "--delta", "2"], "delta = 2.0"),
        (["--num-users", "1e5", "--k", "2", *TARGET, "--randomizer", "krr"], "mean 'k-rr'"),
        (["--num-users", "20", "--k", "3", *TARGET], "users would do"),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    assert main(["plan", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
