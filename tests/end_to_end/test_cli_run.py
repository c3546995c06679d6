"""``shuffledp run``: from a file to results, and for bad input one line and nothing else."""

import csv
import json
import re

import polars as pl
import pytest

import shuffledp as sdp
from golden.schemas import found_in
from shuffledp.cli.main import main
from shuffledp.collection.output import MARKER_FILE

ANSWERS = ["yes"] * 400 + ["no"] * 1400 + ["refused"] * 200
TARGET = ["--epsilon", "0.5", "--delta", "1e-8"]
#: The same without comparing all randomizers, which takes a second each time.
K_RR = [*TARGET, "--randomizer", "k-rr"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a survey in it."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"id": range(2000), "answer": ANSWERS}).write_csv("answers.csv")
    pl.read_csv("answers.csv").write_parquet("answers.parquet")
    return tmp_path


def run(*arguments, table="answers.csv", column="answer", target=K_RR, out="results/"):
    return main(["run", str(table), "--column", column, *target, "--out", out, *arguments])


def names(folder):
    names = {entry.name for entry in folder.iterdir()}
    return sorted(names - {MARKER_FILE})


@pytest.mark.parametrize("table", ["answers.csv", "answers.parquet"])
def test_the_command_of_the_issue(here, capsys, table):
    assert run("--json", table=table, target=TARGET) == 0
    captured = capsys.readouterr()
    record = found_in(captured.out)
    keys = ["num_users", "randomizer", "epsilon0", "guarantee", "estimates"]
    assert list(record)[:5] == keys
    assert record["num_users"] == 2000
    assert record["guarantee"]["epsilon"]["upper"] <= 0.5
    assert [row["value"] for row in record["estimates"]] == ["no", "refused", "yes"]
    assert list(record["estimates"][0]) == [
        "value", "count", "frequency", "standard_error", "population_standard_error", "lower",
        "upper", "population_lower", "population_upper",
    ]  # fmt: skip
    assert not record["is_simulation"]
    assert "warning: The list of answers was read from the data" in captured.err
    assert names(here / "results") == ["estimates.csv", "privacy.json", "report.html"]
    saved = json.loads((here / "results" / "privacy.json").read_text())
    assert {key: saved[key] for key in record} == record
    assert saved["parameters"]["table"] == table
    assert saved["parameters"]["domain_is_discovered"]
    assert list(saved["about"]) == ["column", "date"]


def test_the_report_and_the_record_say_who_asked_what(here):
    words = {
        "title": "Commuting",
        "question": "How do you commute?",
        "organisation": "City <of> X",
        "contact": "survey@x.example",
    }
    options = [each for name, text in words.items() for each in (f"--{name}", text)]
    assert run("--domain", "yes,no,refused", "--max-epsilon0", "1", *options) == 0
    saved = json.loads((here / "results" / "privacy.json").read_text())
    date = saved["about"].pop("date")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    assert saved["about"] == {**words, "column": "answer"}
    assert saved["epsilon0"] == 1.0
    report = (here / "results" / "report.html").read_text()
    for text in ("<h1>Commuting</h1>", "How do you commute?", "City &lt;of&gt; X", date):
        assert text in report


def test_people_read_estimates_then_the_guarantee(here, capsys):
    assert run("--domain", "yes,no,refused", "--seed", "1") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "SIMULATION" in captured.out
    assert captured.out.index("refused") < captured.out.index("proved upper bound")
    assert "results/report.html" in captured.out
    assert "\x1b" not in captured.out


def test_a_seed_gives_the_same_results_from_either_format(here, capsys):
    for table, out in (("answers.csv", "a"), ("answers.parquet", "b")):
        assert run("--seed", "7", "--json", table=table, out=out) == 0
    first, second = map(found_in, capsys.readouterr().out.splitlines())
    assert first == second
    assert first["is_simulation"]
    assert (here / "a/estimates.csv").read_bytes() == (here / "b/estimates.csv").read_bytes()
    html = (here / "a/report.html").read_text(encoding="utf-8")
    assert "simulation" in html.lower()


def test_without_a_seed_results_differ(here, capsys):
    for out in ("a", "b"):
        assert run("--json", out=out) == 0
    first, second = map(found_in, capsys.readouterr().out.splitlines())
    assert first != second


def test_shuffled_reports_are_written_on_request(here):
    assert run("--save-reports", "--domain", "yes,no,refused") == 0
    assert "reports.parquet" in names(here / "results")
    reports = pl.read_parquet(here / "results/reports.parquet")
    assert reports.shape == (2000, 1)
    with (here / "results/estimates.csv").open(newline="") as file:
        assert [row["value"] for row in csv.DictReader(file)] == ["yes", "no", "refused"]


@pytest.mark.slow
def test_the_randomizer_and_its_epsilon0_can_be_fixed(here, capsys):
    fixed = ["--epsilon0", "2", "--delta", "1e-8"]
    assert run("--randomizer", "optimized-unary", "--json", target=fixed) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["randomizer"] == "optimized-unary"
    assert record["epsilon0"] == pytest.approx(2.0)
    assert run("--json", target=fixed, out="other") == 0
    assert json.loads(capsys.readouterr().out)["randomizer"] == "k-rr"


def test_other_and_missing(here, capsys):
    pl.DataFrame({"answer": [*ANSWERS, "maybe", None, ""]}).write_csv("more.csv")
    options = ["--domain", "yes,no", "--other", "--json"]
    assert run(*options, "--missing", "category", table="more.csv", out="a") == 0
    assert run(*options, "--missing", "drop", table="more.csv", out="b") == 0
    captured = capsys.readouterr()
    first, second = map(json.loads, captured.out.splitlines())
    assert [row["value"] for row in first["estimates"]] == ["yes", "no", "other", "missing"]
    assert (first["num_users"], second["num_users"]) == (2003, 2001)
    assert "warning: Dropped: 2 rows without an answer" in captured.err
    assert "; --missing category counts them as one more answer" in captured.err
    assert any("Dropped" in each for each in second["guarantee"]["assumptions"])


def test_confidence(here, capsys):
    assert run("--confidence", "0.99", "--json") == 0
    assert json.loads(capsys.readouterr().out)["confidence"] == 0.99


def test_overwrite(here, capsys):
    assert run() == 0
    before = (here / "results/estimates.csv").read_bytes()
    assert run() == 2
    assert "exists and is not empty" in capsys.readouterr().err
    assert (here / "results/estimates.csv").read_bytes() == before
    assert run("--overwrite", "--save-reports") == 0
    assert "reports.parquet" in names(here / "results")
    assert run("--overwrite") == 0
    assert "reports.parquet" not in names(here / "results")


# ------------------------------------------------------------------ bad input


def bad_file(name, data):
    def make(folder):
        path = folder / name
        if isinstance(data, bytes):
            path.write_bytes(data)
        else:
            data(path)

    return name, make


def truncated(path):
    pl.DataFrame({"answer": ANSWERS}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


BAD_INPUT = {
    "empty file": (bad_file("x.csv", b""), [], "x.csv is empty"),
    "header only": (bad_file("x.csv", b"answer\n"), [], "0 rows"),
    "one row": (bad_file("x.csv", b"answer\nyes\n"), [], "1 row with a value: a shuffled"),
    "missing column": (bad_file("x.csv", b"anwser\nyes\n"), [], "did you mean 'anwser'?"),
    "value outside the domain": (
        bad_file("x.csv", b"answer\nyes\nno\nmaybe\n"),
        ["--domain", "yes,no"],
        "row 3 of column 'answer'",
    ),
    "empty text": (bad_file("x.csv", b"answer\nyes\n\nno\n"), [], "1 row without an answer"),
    "nan": (
        bad_file("x.parquet", lambda path: pl.DataFrame({"answer": [1.0, float("nan")]})
                 .write_parquet(path)),
        [],
        "the first is row 2",
    ),
    "null": (
        bad_file("x.parquet", lambda path: pl.DataFrame({"answer": [None, "a", "b"]})
                 .write_parquet(path)),
        [],
        "the first is row 1",
    ),
    "one answer": (bad_file("x.csv", b"answer\nyes\nyes\n"), [], "only 'yes'"),
    "domain of one": (bad_file("x.csv", b"answer\na\na\n"), ["--domain", "a"], "has only 'a'"),
    "too few users": (
        bad_file("x.csv", b"answer\n" + b"yes\nno\n" * 5), [], "users would do at this target"
    ),
    "truncated parquet": (bad_file("x.parquet", truncated), [], "no complete Parquet file"),
    "no parquet": (bad_file("x.parquet", b"answer\nyes\n"), [], "no complete Parquet file"),
    "binary": (bad_file("x.csv", b"answer\n\xff\xfe\n"), [], "not text in UTF-8"),
    "other format": (bad_file("x.xlsx", b"PK"), [], "its name ends in none of"),
    "no file": (("x.csv", lambda folder: None), [], "there is no such file"),
}  # fmt: skip


def assert_refused(folder, capsys, before, message):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert names(folder) == before  # nothing half-written


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_files(here, capsys, case):
    (name, make), options, message = BAD_INPUT[case]
    make(here)
    before = names(here)
    assert run(*options, table=name) == 2
    assert_refused(here, capsys, before, message)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (["--epsilon", "0", "--delta", "1e-8"], [], "epsilon = 0.0 is not in (0, inf)"),
        (["--epsilon", "-1", "--delta", "1e-8"], [], "epsilon = -1.0"),
        (["--epsilon", "nan", "--delta", "1e-8"], [], "epsilon = nan"),
        (["--epsilon", "1", "--delta", "0"], [], "delta = 0.0 is not in (0, 1)"),
        (["--epsilon", "1", "--delta", "1"], [], "delta = 1.0 is not in (0, 1)"),
        (["--epsilon", "1", "--delta", "-1e-8"], [], "delta = -1e-08"),
        (["--delta", "1e-8"], [], "give exactly one of --epsilon"),
        ([*TARGET, "--epsilon0", "1"], [], "give exactly one of --epsilon"),
        (["--epsilon0", "-1", "--delta", "1e-8"], [], "epsilon0 = -1.0"),
        (TARGET, ["--other"], "--other needs a domain: pass --domain"),
        (TARGET, ["--missing", "ignore"], "'ignore' is not one of"),
        (TARGET, ["--confidence", "95"], "confidence = 95.0"),
        (TARGET, ["--seed", "-1"], "seed = -1"),
        (TARGET, ["--randomizer", "krr"], "did you mean 'k-rr'"),
        (TARGET, ["--id", "answer"], "--id answer is for edges"),
        (TARGET, ["--radius", "5"], "for --shuffler mallows or displacement"),
    ],
)
def test_bad_arguments(here, capsys, target, options, message):
    before = names(here)
    assert run(*options, target=target) == 2
    assert_refused(here, capsys, before, message)


def test_weak_promises_are_called_by_their_name_and_not_refused(here, capsys):
    target = ["--epsilon", "50", "--delta", "1e-9"]
    assert run("--domain", "yes,no,refused", target=target) == 0
    captured = capsys.readouterr()
    assert "(proved upper bound)" in captured.out
    assert "is above 5: the odds between two answers" in captured.err
    assert "is above 8: only the shuffler protects" in captured.err
    for text in (captured.out, captured.err, (here / "results" / "report.html").read_text()):
        assert not re.search(r"\bsafe\b", text)


@pytest.mark.slow
def test_a_large_delta_is_warned_about(here, capsys):
    assert run("--domain", "yes,no,refused", target=["--epsilon", "1", "--delta", "0.001"]) == 0
    assert "warning: delta = 0.001 is not below 1/num_users" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dummies", "poisson:0.1"], "leave out --dummies"),
        (["--graph", "edges.csv", "--lazy", "0.5"], "leave out --graph, --lazy"),
        (["--shuffler", "mallows", "--alpha", "2"], "leave out --shuffler, --alpha"),
        (["--clip"], "leave out --clip"),
        (["--seed", "1", "--ledger", "ledger.json"], "spends nothing: no --ledger"),
        (["--shuffler", "uniform", "--processes", "2"], "--processes is for one machine"),
    ],
)
def test_spark_ignores_no_option(here, capsys, options, message):
    question = sdp.Categories(["yes", "no", "refused"])
    sdp.plan(question, num_users=2000, epsilon0=2.0, delta=1e-8).save("plan.json")
    spark = ["--engine", "spark", "--plan", "plan.json", "--id", "id"]
    assert run(*options, table="answers.parquet", target=spark) == 2
    assert message in capsys.readouterr().err
    assert not (here / "results").exists()


def test_an_existing_folder_is_refused_before_anything_is_read(here, capsys):
    (here / "results").mkdir()
    (here / "results" / "thesis.tex").write_text("x")
    before = names(here)
    assert run(table="absent.csv") == 2
    assert_refused(here, capsys, before, "exists and is not empty")
    assert run("--overwrite") == 2
    assert_refused(here, capsys, before, "has no .shuffledp-results.json")


INCOME = "income,age\n" + " <=50K,30\n >50K,NA\n" * 20
AGE = ["--column", "age", "--mean", "--range", "0,99"]
THOUSAND = "x;y\n" + "1.234;a\n" * 9
MEAN = ["--column", "x", "--mean", "--range", "0,9"]


@pytest.mark.parametrize(
    ("table", "options", "found"),
    [
        (INCOME, ["--column", "income", "--domain", "<=50K, >50K"], 40),
        (INCOME, ["--column", "income", "--domain", '" <=50K"," >50K"'], 40),
        (INCOME, ["--column", "income", "--domain", "<=50K\n>50K\n"], 40),  # as sort -u has it
        (INCOME, ["--column", "income", "--domain-file", "lines.txt"], 40),
        (INCOME, ["--column", "income", "--domain-file", "crlf.txt"], 40),
        (INCOME, AGE, "that is no number"),
        (INCOME, [*AGE, "--missing-text", "NA", "--missing", "drop"], 20),
        (THOUSAND, MEAN, "say which it is with --decimal . or --decimal ,"),
        (THOUSAND, [*MEAN, "--decimal", "."], 9),
        (THOUSAND, [*MEAN, "--decimal", ","], "outside [0, 9]"),
    ],
)
def test_how_text_becomes_values(here, capsys, table, options, found):
    (here / "table.csv").write_text(table)
    (here / "lines.txt").write_text(" <=50K\n >50K\n\n")
    (here / "crlf.txt").write_bytes(b" <=50K\r\n >50K\r\n")
    target = ["--epsilon0", "1", "--delta", "1e-3", "--out", "results"]
    status = main(["run", "table.csv", *options, *target, "--json"])
    printed = capsys.readouterr()
    if isinstance(found, str):
        assert status == 2
        assert found in printed.err
        return
    assert status == 0, printed.err
    assert found_in(printed.out)["num_users"] == found
