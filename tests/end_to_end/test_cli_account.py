"""``shuffledp account`` prints the accountant's numbers, for people and for programs."""

import json
import math
import warnings

import pytest

import shuffledp as sdp
from golden.schemas import found_in
from shuffledp.amplification import registry
from shuffledp.cli.main import main

BASE = ["account", "--epsilon0", "1", "--num-users", "10000"]


def test_epsilon_as_json(capsys):
    assert main([*BASE, "--delta", "1e-6", "--json"]) == 0
    record = found_in(capsys.readouterr().out)
    expected = sdp.account(epsilon0=1.0, num_users=10_000, delta=1e-6)
    assert list(record) == ["epsilon", "delta", "method", "source", "assumptions"]
    assert record == expected.to_json_dict()
    assert record["delta"] == 1e-6
    assert record["epsilon"]["upper"] == pytest.approx(0.04320616, abs=1e-8)


def test_delta_as_json(capsys):
    assert main([*BASE, "--epsilon", "0.05", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["epsilon"] == 0.05
    assert 0.0 < record["delta"]["lower"] <= record["delta"]["upper"] < 1e-6


def test_json_is_one_line_of_full_precision(capsys):
    main([*BASE, "--delta", "1e-6", "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    bound = sdp.account(epsilon0=1.0, num_users=10_000, delta=1e-6).bound
    assert repr(bound.upper) in out


def test_people_read_the_upper_bound_first_then_the_gap(capsys):
    assert main([*BASE, "--delta", "1e-6"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "epsilon  0.0432062 (proved upper bound)"
    assert lines[1].startswith("gap      12.1%: no analysis can show epsilon below 0.0379980")
    assert "assumptions" in lines
    assert not [line for line in lines if line != line.rstrip() or "\x1b" in line]


def test_people_read_a_delta_as_well(capsys):
    main([*BASE, "--epsilon", "0.05"])
    out = capsys.readouterr().out
    assert out.startswith("delta    ")
    assert "epsilon  0.05\n" in out


def test_no_lower_bound_and_no_gap(capsys):
    main(["account", "--epsilon0", "0", "--num-users", "10", "--delta", "1e-6"])
    assert "epsilon  0 (proved upper bound)\ngap      none" in capsys.readouterr().out


def test_naming_the_randomizer_gives_a_smaller_epsilon(capsys):
    main([*BASE, "--delta", "1e-6", "--json"])
    main([*BASE, "--delta", "1e-6", "--json", "--randomizer", "k-rr", "--k", "16"])
    any_randomizer, k_rr = map(json.loads, capsys.readouterr().out.splitlines())
    assert k_rr["epsilon"]["upper"] < any_randomizer["epsilon"]["upper"]
    assert k_rr["method"] == "k-rr-blanket"


def test_methods_by_name(capsys):
    assert main([*BASE, "--delta", "1e-6", "--method", "erlingsson", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "erlingsson"


@pytest.mark.parametrize("number", ["10000", "1e4", "10_000", "10000.0"])
def test_numbers_of_users_may_be_written_as_people_do(capsys, number):
    main(["account", "--epsilon0", "1", "--num-users", number, "--delta", "1e-6"])
    assert "users    10,000" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["account", "bounds"])
def test_at_an_epsilon_of_0_delta_is_the_total_variation(capsys, command):
    one = ["--epsilon0", "1", "--num-users", "1", "--epsilon", "0", "--json"]
    assert main([command, *one]) == 0
    found = capsys.readouterr().out
    exact = math.tanh(0.5)
    assert f"{exact:.6f}" in found
    assert sdp.account(epsilon0=1.0, num_users=1, epsilon=0.0).delta_upper == pytest.approx(exact)


def test_a_large_delta_is_warned_about_on_stderr(capsys):
    assert main([*BASE, "--delta", "1e-4", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: delta = 0.0001 is not below 1/num_users")
    json.loads(captured.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (BASE, "give exactly one of --delta"),
        ([*BASE, "--delta", "1e-6", "--epsilon", "1"], "give exactly one of --delta"),
        ([*BASE, "--delta", "-1e-6"], "delta = -1e-06 is not in [0, 1)"),
        ([*BASE, "--delta", "1"], "delta = 1.0 is not in [0, 1)"),
        ([*BASE, "--delta", "nan"], "delta = nan"),
        ([*BASE, "--epsilon", "-1"], "epsilon = -1.0 is not in [0, inf)"),
        ([*BASE, "--epsilon", "-1"], "epsilon = -1.0"),
        ([*BASE, "--epsilon", "inf"], "epsilon = inf"),
        ([*BASE, "--delta", "1e-6", "--k", "3"], "makes no difference without a randomizer"),
        ([*BASE, "--delta", "1e-6", "--randomizer", "rappor"], "'rappor' is not one of k-rr"),
        ([*BASE, "--delta", "1e-6", "--randomizer", "k-rr"], "domain_size is needed"),
        ([*BASE, "--delta", "1e-6", "--method", "clone"], "did you mean 'clones'"),
        ([*BASE, "--delta", "1e-6", "--method", "clone"], "feldman-2023-closed, feldman-2021-num"),
        ([*BASE, "--delta", "1e-6", "--method", "erlingsson-small"], "needs"),
        (["account", "--epsilon0", "-1", "--num-users", "9", "--delta", "0.1"], "epsilon0 = -1.0"),
        (["account", "--epsilon0", "1", "--num-users", "0", "--delta", "0.1"], "num_users = 0"),
        (["account", "--epsilon0", "1", "--num-users", "1.5", "--delta", "0.1"], "'1.5' is not"),
        (["account", "--epsilon0", "1", "--num-users", "x", "--delta", "0.1"], "'x' is not"),
        (["account", "--epsilon0", "x", "--num-users", "9", "--delta", "0.1"], "'x' is not"),
        (["account", "--delta", "0.1"], "num_users is missing"),
        (["account", "--nonsense"], "No such option"),
        (["account", "--nonsense"], "(see 'shuffledp account --help')\n"),
        (["acount"], "No such command 'acount'"),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_lower_end_that_crosses_is_left_out_on_stderr_and_costs_no_upper_end(capsys, monkeypatch):
    monkeypatch.setattr(registry, "unavoidable_epsilon", lambda *_: 0.9)
    assert main([*BASE, "--delta", "1e-6", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["epsilon"]["lower"] is None
    assert json.loads(printed.out)["epsilon"]["upper"] == pytest.approx(0.04320616, abs=1e-8)
    (line,) = [each for each in printed.err.splitlines() if "lower end" in each]
    assert line.startswith("warning: method 'clones' gives at most 0.0432")


def test_other_warnings_stay_what_they_are(monkeypatch):
    def warn(*_):
        warnings.warn("something else", UserWarning, stacklevel=1)

    monkeypatch.setattr(registry, "unavoidable_epsilon", warn)
    with pytest.warns(UserWarning, match="something else"):
        main([*BASE, "--delta", "1e-6", "--json"])
