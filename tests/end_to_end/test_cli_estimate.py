"""``shuffledp estimate``: reports and a plan give what the run that made them gave."""

import json
from pathlib import Path

import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.cli.main import main

PLAN = ["plan", "--num-users", "2000", "--epsilon", "1", "--delta", "1e-6", "--out", "plan.json"]
ASKED = {
    "k-rr": (["--domain", "yes,no", "--randomizer", "k-rr"], ["--column", "answer"]),
    "hashing": (
        ["--domain", "yes,no", "--randomizer", "optimized-local-hashing"],
        ["--column", "answer"],
    ),
    "mean": (["--mean", "--range", "0,10"], ["--column", "number"]),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = ["yes"] * 500 + ["no"] * 1500
    pl.DataFrame({"answer": answers, "number": [3.0, 5.0] * 1000}).write_csv("data.csv")


def estimate(*arguments, reports="made/reports.parquet"):
    return main(["estimate", reports, "--plan", "plan.json", "--out", "results", *arguments])


@pytest.mark.parametrize("name", ASKED)
def test_a_run_with_a_plan_and_its_reports_agree(here, name, capsys):
    question, column = ASKED[name]
    assert main([*PLAN, *question]) == 0
    run = ["run", "data.csv", *column, "--plan", "plan.json", "--save-reports", "--out", "made"]
    assert main(run) == 0
    capsys.readouterr()
    assert estimate("--title", "A title", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    made = json.loads(Path("made/privacy.json").read_bytes())
    assert found["estimates"] == made["estimates"]
    assert found["guarantee"]["epsilon"] == made["guarantee"]["epsilon"]
    assert made["parameters"]["plan"] == "plan.json"
    assert not made["parameters"]["domain_is_discovered"]
    saved = json.loads(Path("results/privacy.json").read_bytes())
    assert saved["about"]["title"] == "A title"
    assert "made/reports.parquet" in saved["parameters"]["reports"]


def test_fewer_reports_than_planned_are_warned_about_or_refused(here, capsys):
    assert main([*PLAN, "--domain", "yes,no", "--randomizer", "k-rr"]) == 0
    pl.DataFrame({"report": ["yes", "no", None] * 30}).write_csv("few.csv")
    capsys.readouterr()
    assert estimate(reports="few.csv") == 2
    assert "--missing drop" in capsys.readouterr().err
    assert estimate("--missing", "drop", "--strict", reports="few.csv") == 2
    assert "60 answered" in capsys.readouterr().err
    assert not Path("results").exists()
    assert estimate("--missing", "drop", reports="few.csv") == 0
    captured = capsys.readouterr()
    assert "60 users" in captured.out
    assert "2,000 users were planned and 60 answered" in captured.err
    planned = sdp.Plan.load("plan.json")
    bound = sdp.account(planned.randomizer.profile, num_users=60, delta=1e-6)
    saved = json.loads(Path("results/privacy.json").read_bytes())
    assert saved["guarantee"]["epsilon"]["upper"] == bound.epsilon_upper


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate", "absent.parquet", "--out", "results"], "give --plan"),
        (["estimate", "absent.parquet", "--plan", "data.csv", "--out", "r"], "is no plan"),
        (["run", "data.csv", "--column", "answer", "--out", "r"], "give --delta, or --plan"),
        (
            ["run", "data.csv", "--column", "answer", "--plan", "plan.json", "--delta", "1e-6",
             "--out", "r"],
            "give none beside it",
        ),
        (
            ["run", "data.csv", "--column", "answer", "--plan", "plan.json", "--domain", "a,b",
             "--out", "r"],
            "leave both out",
        ),
        (["plan", "--epsilon0", "1", "--num-users", "9", "--epsilon", "1", "--out", "p"], "--out"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(here, arguments, message, capsys):
    assert main([*PLAN, "--domain", "yes,no", "--randomizer", "k-rr"]) == 0
    capsys.readouterr()
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_separators_and_headers(here, capsys):
    lines = Path("data.csv").read_text().splitlines()[1:]
    Path("bare.csv").write_text("\n".join(line.replace(",", "!") for line in lines) + "\n")
    asked = ["--domain", "yes,no", "--randomizer", "k-rr", "--epsilon", "1", "--delta", "1e-6"]
    options = ["--column", "column_1", "--no-header", "--csv-separator", "!", "--out", "results"]
    assert main(["run", "bare.csv", *asked, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_users"] == 2000


@pytest.mark.parametrize(
    ("rows", "options", "found"),
    [
        (["1", "1.234", "3"], ["--mean"], "that the plan's randomizer never makes"),
        (["1", " 2", "3"], ["--mean"], 3),
        (["yes", "no", " yes", "NA"], [], "or with one that the plan's"),
        (["yes", "no", " yes", "NA", ""], ["--missing-text", "NA", "--missing", "drop"], 3),
        (["yes", "no", "nan", "null"], ["--missing", "drop"], 2),
    ],
)
def test_reports_in_text_are_read_as_answers_are(here, capsys, rows, options, found):
    asked = ["--domain", "yes,no", "--randomizer", "k-rr"]
    if "--mean" in options:
        asked = ["--mean", "--range", "0,1", "--randomizer", "piecewise"]
    assert main([*PLAN, *asked]) == 0
    Path("reports.csv").write_text("\n".join(f"{row};x" for row in ["report", *rows]) + "\n")
    capsys.readouterr()
    ways = [each for each in options if each != "--mean"]
    status = estimate(*ways, "--json", reports="reports.csv")
    printed = capsys.readouterr()
    if isinstance(found, str):
        assert status == 2
        assert found in printed.err
        return
    assert status == 0, printed.err
    assert json.loads(printed.out)["num_users"] == found
