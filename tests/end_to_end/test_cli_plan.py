"""``shuffledp plan`` prints what `make_plan` chooses."""

import json
import re

import pytest

import shuffledp as sdp
from golden.schemas import found_in
from shuffledp.cli.main import main

TARGET = ["--epsilon", "0.5", "--delta", "1e-8"]
ISSUE = ["plan", "--num-users", "100000", "--domain", "yes,no,refused", *TARGET]


def test_json(capsys):
    assert main([*ISSUE, "--json"]) == 0
    record = found_in(capsys.readouterr().out)
    plan = sdp.plan(
        sdp.Categories(["yes", "no", "refused"]), num_users=100_000, epsilon=0.5, delta=1e-8
    )
    sealed = record.pop("sealed_bytes")  # of a task, so the command's alone
    assert sealed["x25519"] < sealed["hybrid"]
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
    assert out.startswith("question         3 answers\nrandomizer       k-rr\nepsilon0         6.2")
    for text in (
        "chosen: k-rr",
        "without a shuffler",
        "with a trusted curator",
        "or subset-selection",
    ):
        assert text in out
    assert out.index("symmetric-unary") < out.index("optimized-unary")


def test_people_read_the_error_at_other_epsilons_and_what_others_used(capsys):
    assert main(ISSUE) == 0
    out = capsys.readouterr().out
    errors, _, deployments = out.partition("known deployments")
    table = errors[errors.index("error, k-rr") :].splitlines()
    assert table[0].split() == ["error,", "k-rr", "error,", "symmetric-unary"]
    assert [row.split()[0] for row in table[2:7]] == ["0.125", "0.25", "0.5", "1", "2"]
    assert deployments.count("epsilon") >= 3


def test_the_randomizer_can_be_named(capsys):
    assert main([*ISSUE, "--randomizer", "optimized-unary"]) == 0
    out = capsys.readouterr().out
    assert "randomizer       optimized-unary\n" in out
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
    assert found_in(first) == found_in(second) == found_in(third)


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


LIMITED = [*ISSUE, "--max-epsilon0", "2"]


def test_the_local_loss_can_be_limited_beside_the_target(capsys):
    assert main([*LIMITED, "--json"]) == 0
    limited = json.loads(capsys.readouterr().out)
    assert limited["epsilon0"] == 2.0
    assert max(each["epsilon0"] for each in limited["alternatives"]) == 2.0
    assert limited["guarantee"]["epsilon"]["upper"] < 0.1
    assert main([*ISSUE, "--json", "--max-epsilon0", "50"]) == 0
    loose = json.loads(capsys.readouterr().out)
    assert main([*ISSUE, "--json"]) == 0
    assert found_in(json.dumps(loose)) == found_in(capsys.readouterr().out)


def test_what_is_left_without_the_shuffler_stands_beside_the_guarantee(capsys):
    assert main(LIMITED) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "(proved upper bound)" in out
    # e^2 = 7.389..., and e^2 / (1 + e^2) = 0.88079...
    assert (
        "no shuffler epsilon0 = 2.000: odds change by up to 7.39, "
        "a guess between two answers is right up to 88.1%" in out
    )


@pytest.mark.slow
def test_what_is_left_without_the_shuffler_is_of_all_rounds(capsys):
    command = "plan --num-users 5000 --domain yes,no --epsilon 2 --delta 1e-8 --rounds 30"
    assert main([*command.split(), "--randomizer", "k-rr"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    epsilon0 = float(re.search(r"epsilon0 (\S+) bytes", out)[1])
    found = float(re.search(r"no shuffler epsilon of 30 rounds = ([\d.]+):", out)[1])
    assert found == pytest.approx(30 * epsilon0, rel=2e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ISSUE, "--max-epsilon0", "0"], "max_epsilon0 = 0.0"),
        (["plan", "--num-users", "9", "--delta", "0.1", "--max-epsilon0", "1"], "--max-epsilon0"),
        (
            ["plan", "--num-users", "9", "--epsilon", "1", "--delta", "0.1", "--max-epsilon0", "1"],
            "leave out the question",
        ),
    ],
)  # fmt: skip
def test_limits_that_limit_nothing(capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "domain", ["<=50K, >50K", '" <=50K"," >50K"', "<=50K\n>50K", "\u00a0<=50K\r\n>50K\r\n"]
)
def test_a_domain_is_in_the_form_of_labels(capsys, tmp_path, domain):
    options = ["--epsilon", "1", "--delta", "1e-6", "--num-users", "100", "--json"]
    (tmp_path / "domain.txt").write_text(domain.replace(",", "\n").replace('"', ""))
    for asked in (["--domain", domain], ["--domain-file", str(tmp_path / "domain.txt")]):
        assert main(["plan", *asked, *options]) == 0
        assert found_in(capsys.readouterr().out)["domain"] == ["<=50K", ">50K"]


DUMMIES = ["plan", "--num-users", "10000", "--k", "16", "--epsilon", "1", "--delta", "1e-6"]


def test_dummies_in_json_text_and_file(capsys, tmp_path):
    asked = [*DUMMIES, "--dummies", "shuffler", "--no-local-noise", "--frequency", "0.3"]
    assert main([*asked, "--json", "--out", str(tmp_path / "plan.json")]) == 0
    record = found_in(capsys.readouterr().out)
    assert (record["epsilon0"], record["binding"]) == (None, "no_local_noise")
    assert record["dummies"] == ["laplace:2.0:27"]
    assert record["expected_dummies"] == 432.0
    assert record["without_dummies"]["epsilon"]["upper"] is None
    plan = sdp.Plan.load(tmp_path / "plan.json")
    assert list(map(str, plan.dummies)) == record["dummies"]
    assert main(asked) == 0
    shown = capsys.readouterr()
    assert "Without local noise only the shuffler and its dummies protect" in shown.err
    for line in (
        "epsilon0         infinity\n",
        "users            any number, whatever the others send\n",
        "without dummies  no finite epsilon, if",
        "chosen: shuffler's dummies   infinity   0.027%   0.027%     0.458%         1\n",
    ):
        assert line in shown.out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--dummies", "shuffler"], "--no-local-noise"),
        (["--no-local-noise"], "--dummies shuffler"),
        (["--dummies", "all", "--no-local-noise"], "'all' is not one of"),
        (["--dummies", "shuffler", "--no-local-noise", "--most-dummies", "50"], "--most-dummies"),
        (["--frequency", "30"], "--frequency"),
    ],
)
def test_dummies_that_cannot_be_planned(capsys, asked, message):
    assert main([*DUMMIES, *asked]) != 0
    assert message in capsys.readouterr().err


def test_dummies_are_for_plans(capsys):
    arguments = ["plan", "--epsilon0", "1", "--num-users", "99", "--delta", "1e-6"]
    assert main([*arguments, "--dummies", "shuffler"]) == 2
    assert "--dishonest and dummies, or leave out --epsilon0" in capsys.readouterr().err
