"""A plan with dummies from its file to results: ``run``, ``estimate``, ``explain``, a ledger."""

import json
from pathlib import Path

import polars as pl
import pytest

import shuffledp as sdp
from collection.dummy_plans import SHUFFLERS, plan_with
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import save_ledger
from shuffledp.cli.main import main

SHARES = {"a": 0.3, "b": 0.69, "c": 0.01}
RUN = ["run", "answers.csv", "--column", "answer", "--plan", "plan.json"]


@pytest.fixture(params=["bare", "noisy"])
def planned(request, tmp_path, monkeypatch):
    """Work in a folder with answers and a plan of them."""
    monkeypatch.chdir(tmp_path)
    answers = [name for name, share in SHARES.items() for _ in range(round(1000 * share))]
    pl.DataFrame({"answer": answers}).write_csv("answers.csv")
    plan = plan_with() if request.param == "bare" else plan_with(epsilon0=3.0)
    plan.save("plan.json")
    return plan


def near_the_truth(rows):
    """Return whether all estimates are within eight standard errors."""
    return all(
        abs(row["frequency"] - SHARES[row["value"]]) < 8 * row["standard_error"] for row in rows
    )


def test_run_prints_estimates_and_three_guarantees(planned, capsys):
    assert main([*RUN, "--out", "made", "--save-reports"]) == 0
    printed = capsys.readouterr().out
    lines = [line.split(":")[0] for line in printed.splitlines()]
    for name in ("with dummies", "without dummies", "no shuffler"):
        assert lines.count(name) == 1
    assert "any number, whatever the others send" in printed
    saved = json.loads(Path("made/privacy.json").read_bytes())
    assert near_the_truth(saved["estimates"])
    assert saved["dummies"] == [SHUFFLERS]
    assert saved["num_users"] == 1000
    assert saved["num_dummies"] == pl.read_parquet("made/reports.parquet").height - 1000
    assert saved["guarantee"]["epsilon"]["upper"] <= planned.target_epsilon
    assert (saved["epsilon0"] is None) == (planned.randomizer.threshold == 0)
    assert "dummy reports" in Path("made/report.html").read_text(encoding="utf-8")


def test_estimate_reads_the_number_of_users_or_is_told(planned, capsys):
    assert main([*RUN, "--out", "made", "--save-reports"]) == 0
    made = json.loads(Path("made/privacy.json").read_bytes())
    pl.read_parquet("made/reports.parquet").write_csv("reports.csv")
    told = [["made/reports.parquet"], ["reports.csv", "--num-users", "1000"]]
    for number, reports in enumerate(told):
        capsys.readouterr()
        arguments = ["--plan", "plan.json", "--out", f"found-{number}", "--json"]
        assert main(["estimate", *reports, *arguments]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["estimates"] == made["estimates"]
        assert found["num_dummies"] == made["num_dummies"]
    asked = ["--plan", "plan.json", "--out", "again"]
    assert main(["estimate", "reports.csv", *asked]) == 2
    assert "--num-users" in capsys.readouterr().err
    assert main(["estimate", "reports.csv", "--num-users", "9", *asked]) == 2
    assert "num_dummies" in capsys.readouterr().err
    assert not Path("again").exists()


@pytest.mark.parametrize("form", ["notice", "label", "registry"])
def test_explain_says_who_adds_dummies_after_a_run_and_before(planned, capsys, form):
    assert main([*RUN, "--out", "made"]) == 0
    for arguments in (["made"], ["plan.json", "--collected-by", "devices"]):
        capsys.readouterr()
        assert main(["explain", *arguments, "--as", form]) == 0
        text = capsys.readouterr().out
        assert SHUFFLERS in text
        assert "or more; with fewer" not in text  # the shuffler's dummies hide one as a thousand


def test_a_ledger_is_spent_what_dummies_give(planned, capsys):
    epsilon = 1.01 * planned.guarantee.epsilon_upper
    save_ledger(Ledger(epsilon=epsilon, delta=1e-6), "ledger.json")
    assert main([*RUN, "--out", "made", "--ledger", "ledger.json"]) == 0
    capsys.readouterr()
    assert main([*RUN, "--out", "again", "--ledger", "ledger.json"]) == 2  # nothing is left
    assert not Path("again").exists()


def test_the_same_in_python(planned):
    result = sdp.run(sdp.Plan.load("plan.json"), pl.read_csv("answers.csv")["answer"])
    assert result.dummies == planned.dummies
    assert (result.estimates.lower <= result.estimates.upper).all()
