"""``shuffledp leakage``: plain words, JSON, and one clear line for bad input."""

import json

import click
import pytest

from shuffledp.cli.leakage import leakage
from shuffledp.cli.main import main
from shuffledp.core.errors import DataError, OutOfRegimeError, ParameterError


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a prior in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prior.json").write_text('{"yes": 0.3, "no": 0.7}', encoding="utf-8")
    return tmp_path


def run(*arguments):
    leakage.main([str(each) for each in arguments], standalone_mode=False)


def found(capsys, *arguments):
    run(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


COLLECTION = ("--num-users", "200", "--k", "2", "--p", "0.9")


def test_people_read_the_sentence_first(capsys):
    run(*COLLECTION)
    shown = capsys.readouterr().out
    assert shown.startswith(
        "An adversary guesses one person's answer right 52.25 % of the time instead of 50 %.\n"
    )
    rows = [line.split() for line in shown.splitlines()]
    assert ["nothing", "50", "%", "0", "1"] in rows
    assert [*["every", "report", "with", "its", "name", "90", "%", "0.4000", "1.800"]] in rows
    assert [*["all", "reports,", "shuffled", "52.25", "%", "0.02254", "1.046"]] in rows
    assert "CSF 2023" in shown
    assert "assumptions" in shown


def test_programs_get_the_keys_of_the_issue(capsys):
    record = found(capsys, *COLLECTION)
    assert list(record)[:4] == ["prior", "posterior", "additive", "multiplicative"]
    assert list(record["posterior"]) == ["randomizer", "shuffler", "both"]
    assert record["prior"] == 0.5
    assert record["posterior"]["randomizer"] == pytest.approx(0.9)
    assert record["posterior"]["shuffler"] == pytest.approx(0.5282, abs=5e-5)
    assert record["posterior"]["both"] == pytest.approx(0.5225, abs=5e-5)
    assert record["additive"] == record["posterior"]["both"] - 0.5
    assert record["multiplicative"] == record["posterior"]["both"] / 0.5
    assert (record["k"], record["p"], record["adversary"]) == (2, 0.9, "uninformed")


def test_epsilon0_instead_of_p(capsys):
    by_loss = found(capsys, "--num-users", "200", "--k", "2", "--epsilon0", "2.1972245773362196")
    assert by_loss["posterior"]["both"] == pytest.approx(0.52254, abs=5e-6)


def test_who_knows_all_others(here, capsys):
    strong = ("--num-users", "201", "--k", "2", "--p", "0.8", "--adversary", "strong")
    worst = found(capsys, *strong)
    assert worst["posterior"]["both"] == pytest.approx(0.52116, abs=5e-6)
    assert worst["posterior"]["shuffler"] == 1.0
    assert worst["knowledge"] == [100, 100]
    (here / "known.json").write_text('{"prior": [0.5, 0.5], "known": [0, 200]}', encoding="utf-8")
    same = found(capsys, *strong, "--prior", "known.json")
    assert same["posterior"]["both"] == pytest.approx(0.52111, abs=5e-6)
    run(*strong)
    shown = capsys.readouterr().out
    assert "100, 100, from which it guesses best" in shown
    run(*strong, "--prior", "known.json")
    assert "known answers  0, 200\n" in capsys.readouterr().out


def test_a_prior_in_a_file(here, capsys):
    record = found(capsys, "--num-users", "20", "--p", "0.9", "--prior", "prior.json")
    assert record["prior"] == 0.7
    assert record["posterior"]["randomizer"] == pytest.approx(0.9)
    assert record["k"] == 2
    assert not record["has_uniform_prior"]
    run("--num-users", "20", "--p", "0.9", "--prior", "prior.json")
    assert "answers as likely as the chosen prior says" in capsys.readouterr().out


def test_some_known_others_in_a_file(here, capsys):
    (here / "some.json").write_text('{"prior": [0.5, 0.5], "known": [5, 4]}', encoding="utf-8")
    asked = ("--num-users", "20", "--p", "0.9", "--prior")
    record = found(capsys, *asked, "some.json")
    assert (record["adversary"], record["num_unknown"]) == ("partial", 10)
    run(*asked, "some.json")
    shown = capsys.readouterr().out
    assert "knows 9 of the 19 other answers" in shown
    assert "5, 4; 10 unknown" in shown


def test_a_prior_beside_a_strong_adversary(here, capsys):
    (here / "three.json").write_text('{"a": 0.5, "b": 0.3, "c": 0.2}', encoding="utf-8")
    asked = ("--num-users", "4", "--p", "0.6", "--prior", "three.json")
    strong = found(capsys, *asked, "--adversary", "strong")
    assert strong["adversary"] == "strong"
    assert strong["posterior"]["both"] == pytest.approx(0.53344, abs=1e-9)
    assert strong["knowledge"] == [0, 0, 3]
    (here / "three.json").write_text(
        '{"prior": {"a": 0.5, "b": 0.3, "c": 0.2}, "known": {"a": 3}}', encoding="utf-8"
    )
    told = found(capsys, *asked, "--adversary", "strong")
    assert told["posterior"]["both"] < strong["posterior"]["both"]


@pytest.mark.slow
def test_a_worst_case_that_is_only_enclosed(capsys):
    run("--num-users", "3000", "--k", "4", "--p", "0.8", "--adversary", "strong")
    shown = capsys.readouterr().out
    assert "right at most" in shown
    assert "known answers  whatever they are" in shown


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--num-users", "0", "--k", "2", "--p", "0.9"], ParameterError, "num_users = 0"),
        (
            ["--num-users", "9", "--k", "1", "--p", "0.9"],
            ParameterError,
            "is below 2: give an integer",
        ),
        (["--num-users", "9", "--k", "2", "--p", "0.3"], OutOfRegimeError, "p >= 1/k.*p = 0.7"),
        (["--num-users", "9", "--k", "2"], click.UsageError, "exactly one of --p"),
        ([*COLLECTION, "--epsilon0", "1"], click.UsageError, "exactly one of --p"),
        (["--num-users", "9", "--p", "0.9"], ParameterError, r"domain_size \(k\) is needed"),
        (["--num-users", "some"], click.BadParameter, "not a whole number"),
        (["--k", "2"], click.UsageError, "Missing parameter: num_users"),
        (
            [*COLLECTION, "--adversary", "strong", "--prior", "known.json"],
            ParameterError,
            "counts 200 users, and there are 199",
        ),
        ([*COLLECTION, "--prior", "none.json"], DataError, "none.json: No such file"),
        ([*COLLECTION, "--prior", "."], DataError, "Is a directory"),
        (
            ["--num-users", "9", "--k", "3", "--p", "0.9", "--prior", "prior.json"],
            click.UsageError,
            "--k 3, but prior.json has 2",
        ),
        ([*COLLECTION, "--prior", "bad.json"], DataError, r"sums to 0\.9, off by -0\.1"),
    ],
)
def test_bad_input_gets_one_clear_line(here, arguments, error, message):
    (here / "bad.json").write_text("[0.5, 0.4]", encoding="utf-8")
    (here / "known.json").write_text('{"prior": [0.5, 0.5], "known": [100, 100]}', encoding="utf-8")
    with pytest.raises(error, match=message) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)
    assert {path.name for path in here.iterdir()} == {"prior.json", "bad.json", "known.json"}


def test_refusals_exit_with_two(capsys):
    assert main(["leakage", "--num-users", "9", "--k", "2", "--p", "0.3"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("error: truth (p) = 0.3 is below 1/k")
