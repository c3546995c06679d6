"""Users from beginning to end on public data: each step succeeds, and its numbers are the next's.

A file to a report; parameters to justify; a notebook. A deployment is `test_deployment`.
"""

import ast
import csv
import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbclient
import nbformat
import polars as pl
import pytest
import yaml

from printed_numbers import PROMISED
from shuffledp.cli.main import main
from shuffledp.collection.source.surveys import surveys

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
TARGET = ("--epsilon", "0.5", "--delta", "1e-6")

# Without a seed, as users run it: of a simulation `explain` says nothing. 22 intervals, each of
# which misses with 1e-11 or less: Clopper and Pearson's by their theorem, the normal ones of a sum
# of at least 944 coins with less than a hundred times their nominal rate.
FALSE_POSITIVE_RATE = 1e-9
SURE = ("--confidence", repr(1 - 1e-13))
# Two shares in the notebook, with their standard errors alone: 1e-15 each by normal tails.
STANDARD_ERRORS = 8.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A table of true answers, the question, and the share of each answer in the table."""

    table: str
    column: str
    domain: list[str]
    truth: dict[str, float]
    num_users: int

    @property
    def question(self):
        """What `plan` is told about the question, and `account` and `bounds` about the law."""
        return ("--num-users", str(self.num_users), "--domain-file", "domain.txt")


@pytest.fixture(params=["fair", "anes96", "adult"])
def asked(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if request.param == "adult":
        path, frame = request.getfixturevalue("census")
        table, column, answers = str(path), "income", frame["income"].to_list()
        domain = sorted(set(answers))
    else:
        survey = {each.name: each for each in surveys()}[request.param]
        table, column, answers = "answers.csv", "answer", survey.answers
        domain = list(survey.domain)
        pl.DataFrame({"answer": answers}).write_csv(table)
    Path("domain.txt").write_text("\n".join(domain) + "\n", encoding="utf-8")
    counts, number = Counter(answers), len(answers)
    truth = {answer: counts[answer] / number for answer in domain}
    return Asked(table=table, column=column, domain=domain, truth=truth, num_users=number)


@pytest.fixture
def shuffledp(capsys):
    """Return what runs a command that must succeed, and returns what it prints."""

    def command(*arguments):
        assert main(list(arguments)) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return command


def assert_intervals_cover(record, asked):
    assert [row["value"] for row in record["estimates"]] == asked.domain
    for row in record["estimates"]:
        assert row["lower"] <= asked.truth[row["value"]] <= row["upper"]
        assert row["upper"] - row["lower"] < 0.5


def same(first, second):
    return math.isclose(first, second, rel_tol=PROMISED)


def assert_as_planned(record, plan):
    """A run keeps what was planned, and assumes of whoever holds the table what no plan knows."""
    found, planned = dict(record["guarantee"]), dict(plan["guarantee"])
    *assumed, holder = found.pop("assumptions")
    assert assumed == planned.pop("assumptions")
    assert "holds the true answers" in holder
    assert found == planned


def test_a_file_to_a_report(asked, shuffledp):
    planned = json.loads(shuffledp("plan", *asked.question, *TARGET, "--json"))
    options = ("--column", asked.column, "--domain-file", "domain.txt", *TARGET, *SURE)
    said = shuffledp("run", asked.table, *options, "--out", "results")
    assert "results/report.html" in said

    record = json.loads(Path("results/privacy.json").read_text("utf-8"))
    assert record["num_users"] == asked.num_users
    assert record["guarantee"]["epsilon"]["upper"] <= 0.5
    for name in ("randomizer", "epsilon0"):
        assert record[name] == planned[name]
    assert_as_planned(record, planned)
    assert_intervals_cover(record, asked)
    errors = [row["standard_error"] for row in record["estimates"]]
    mean_square = sum(error**2 for error in errors) / len(errors)
    assert math.sqrt(mean_square) == pytest.approx(planned["expected_standard_error"], rel=0.1)

    with Path("results/estimates.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["value"] for row in rows] == asked.domain
    for row, estimate in zip(rows, record["estimates"], strict=True):
        assert same(float(row["frequency"]), estimate["frequency"])
    page = Path("results/report.html").read_text("utf-8")
    assert f"{asked.num_users:,}" in page
    assert all(answer.replace("<", "&lt;").replace(">", "&gt;") in page for answer in asked.domain)


def test_parameters_to_justify(asked, shuffledp):
    plan = json.loads(shuffledp("plan", *asked.question, *TARGET, "--out", "plan.json", "--json"))
    epsilon = plan["guarantee"]["epsilon"]["upper"]
    law = (
        *("--epsilon0", repr(plan["epsilon0"]), "--num-users", str(asked.num_users)),
        *("--randomizer", plan["randomizer"], "--k", str(len(asked.domain)), "--delta", "1e-6"),
    )
    accounted = json.loads(shuffledp("account", *law, "--json"))
    compared = json.loads(shuffledp("bounds", *law, "--json"))
    for ends in (accounted["epsilon"], compared["epsilon"]):
        assert same(ends["upper"], epsilon)
        assert ends["lower"] <= ends["upper"]
    assert compared["bounds"][0]["method"] == accounted["method"] == plan["guarantee"]["method"]

    options = ("--column", asked.column, *SURE)
    options += ("--out", "results", "--json")
    record = json.loads(shuffledp("run", asked.table, "--plan", "plan.json", *options))
    assert_as_planned(record, plan)
    assert_intervals_cover(record, asked)

    entry = yaml.safe_load(shuffledp("explain", "results", "--as", "registry"))
    stated = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert epsilon <= float(stated["epsilon"]) <= epsilon * 1.001
    assert float(stated["delta"]) == 1e-6
    assert "epsilon <= 0.5000" in shuffledp("explain", "results", "--as", "label")
    # e^0.5 / (1 + e^0.5) = 0.62245...
    assert "at most 62.3%" in shuffledp("explain", "results", "--as", "notice")


# Run after the notebook's own cells, by somebody who does not believe it.
DOUBT = """
import json
again = sdp.account(plan.randomizer.profile, num_users=len(answers), delta=1e-6)
json.dumps({
    "epsilons": [each.epsilon_upper for each in (plan.guarantee, result.guarantee, again)],
    "distances": ((table.frequency - table.truth).abs() / table.standard_error).tolist(),
    "truth": dict(zip(table.value, table.truth)),
})
"""


def kinds(notebook):
    """Return what each cell of a notebook shows: text, a table, a figure."""
    return [
        [sorted(output.get("data", [output.output_type])) for output in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """Return what runs a notebook, with more cells behind its own, and returns all of it."""
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))

    def execute(name, *more):
        notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
        stored = kinds(notebook)
        notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]
        resources = {"metadata": {"path": str(tmp_path)}}
        # A kernel may take minutes to start on a busy machine: the limit only ends what hangs.
        limits = {"timeout": None, "startup_timeout": 3_600}
        nbclient.NotebookClient(notebook, **limits, resources=resources).execute()
        assert kinds(notebook)[: len(stored)] == stored  # `make docs-outputs` writes them
        return [
            {kind: data for output in cell.outputs for kind, data in output.get("data", {}).items()}
            for cell in notebook.cells
            if cell.cell_type == "code"
        ]

    return execute


@pytest.mark.slow
def test_a_notebook(executed, tmp_path):
    *shown, last = executed("first_collection.ipynb", DOUBT)
    found = json.loads(ast.literal_eval(last["text/plain"]))
    answers = next(surveys()).answers
    shares = {answer: answers.count(answer) / len(answers) for answer in ("yes", "no")}
    assert found["truth"] == pytest.approx(shares)
    assert len(set(found["epsilons"])) == 1
    assert max(found["epsilons"]) <= 1.0
    assert max(found["distances"]) < STANDARD_ERRORS
    assert sum("text/html" in data for data in shown) == 4  # plan, guarantee, result and table
    assert "report.html" in shown[-1]["text/plain"]
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_notebook_of_bounds(executed):
    *shown, last = executed(
        "comparing_bounds.ipynb",
        "[any_randomizer.best, binary.best, *table.loc[NUM_USERS].tolist()]",
    )
    any_best, binary_best, any_account, binary_account = json.loads(last["text/plain"])
    assert same(any_best, any_account)
    assert same(binary_best, binary_account)
    assert binary_best < any_best
    assert sum("text/html" in data for data in shown) == 2  # the comparison and the table


@pytest.mark.slow
def test_a_notebook_of_telemetry(executed):
    *shown, last = executed(
        "telemetry_with_dummies.ipynb",
        "import json; json.dumps([plan.guarantee.num_users, alone.guarantee.num_users, "
        "plan.guarantee.epsilon_upper, (week * 52).epsilon(delta=1e-5, with_lower=False).upper])",
    )
    one, crowd, epsilon, year = json.loads(ast.literal_eval(last["text/plain"]))
    assert (one, crowd) == (1, 800)
    assert epsilon <= 1.0 < year
    assert sum("text/html" in data for data in shown) == 2  # the plan and the result
