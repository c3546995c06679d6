"""``shuffledp bounds`` prints every bound side by side."""

import json

import pytest

from golden.schemas import found_in
from shuffledp.accounting.compare import Scenario, compare_scenario
from shuffledp.amplification.registry import METHODS
from shuffledp.cli.main import main

BASE = ["bounds", "--epsilon0", "1", "--num-users", "10000"]
SCENARIO = Scenario(epsilon0=1.0, num_users=10_000, delta=1e-6)


def test_people_read_the_smallest_first_and_the_lower_end_last(capsys):
    assert main([*BASE, "--delta", "1e-6"]) == 0
    out = capsys.readouterr().out
    table, _, rest = out.partition("these say nothing here\n")
    lines = table.splitlines()
    assert lines[0] == "any randomizer with epsilon0 = 1, 10,000 users, delta = 1e-6"
    assert lines[2].split() == ["bound", "epsilon", "times", "the", "best", "exact", "proved"]
    assert lines[4].startswith("clones  ")
    assert lines[4].split()[1:3] == ["0.0432062", "1.000"]
    assert [line for line in lines if line][-1].startswith("no analysis can go below   0.0379980")
    assert "erlingsson-small" in rest
    assert "needs epsilon0 < 1/2" in rest
    assert all(name in out for name in METHODS)
    assert not [line for line in out.splitlines() if line != line.rstrip() or "\x1b" in line]


def test_people_read_deltas_and_that_no_lower_end_is_known(capsys):
    arguments = ["--epsilon0", "250", "--num-users", "10", "--epsilon", "1"]
    assert main(["bounds", *arguments]) == 0
    out = capsys.readouterr().out
    assert "delta   times the best" in out
    assert "\nno lower end is known\n" in out


def test_json(capsys):
    assert main([*BASE, "--delta", "1e-6", "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert found_in(out) == compare_scenario(SCENARIO).to_json_dict()


def test_a_named_randomizer(capsys):
    arguments = [*BASE, "--delta", "1e-6", "--json"]
    assert main([*arguments, "--randomizer", "k-rr", "--k", "16"]) == 0
    assert main([*arguments, "--randomizer", "privunit", "--dimension", "8"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["bounds"][0]["method"] == "k-rr-blanket"
    assert (second["randomizer"], second["dimension"]) == ("privunit", 8)


def test_a_large_delta_is_warned_about(capsys):
    assert main([*BASE, "--delta", "1e-3", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: delta = 0.001 is not below")
    json.loads(captured.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (BASE, "give exactly one of --delta"),
        ([*BASE, "--delta", "1e-6", "--epsilon", "1"], "give exactly one of --delta"),
        ([*BASE, "--delta", "0"], "delta = 0.0 is not in (0, 1)"),
        ([*BASE, "--epsilon", "-1"], "epsilon = -1.0"),
        (["bounds", "--epsilon0", "1", "--delta", "1e-6"], "--num-users"),
        (["bounds", "--delta", "1e-6"], "--epsilon0"),
        ([*BASE, "--delta", "1e-6", "--k", "3"], "domain_size = 3"),
        ([*BASE, "--delta", "1e-6", "--randomizer", "rappor"], "'rappor' is not one of k-rr"),
        (["bounds", "--epsilon0", "-1", "--num-users", "9", "--delta", "0.1"], "epsilon0 = -1.0"),
        (["bounds", "--epsilon0", "1", "--num-users", "0", "--delta", "0.1"], "num_users = 0"),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
