"""``shuffledp run`` and ``plan`` for numbers, vectors, texts and several answers."""

import csv
import json

import polars as pl
import pytest

import shuffledp as sdp
from collection.kinds import KINDS, NUM_USERS
from golden.schemas import found_in
from report.pages import Page
from shuffledp.cli.main import main
from shuffledp.collection.output import MARKER_FILE

TARGET = ["--epsilon", "1", "--delta", "1e-6"]

#: What is asked, and where the values are; the files are those of `here`.
ASKED = {
    "mean": ["--mean", "--range", "0,120"],
    "vector-mean": ["--vector", "east,north,up", "--norm", "1"],
    "answer-sets": ["--domain", "bike,bus,car,plane", "--max-answers", "2"],
    "columns": ["--columns", "age,vote", "--pairs", "all", "--domain-file", "domains.json"],
    "distribution": ["--quantiles", ".25,.5,.75", "--range", "0,9", "--bins", "9"],
}
ENDS = [
    "standard_error", "population_standard_error", "lower", "upper", "population_lower",
    "population_upper",
]  # fmt: skip
KEYS = {
    "mean": ["value", "mean", *ENDS],
    "answer-sets": ["value", "count", "frequency", *ENDS],
}
KEYS |= {"vector-mean": KEYS["mean"], "columns": KEYS["answer-sets"]}
CUMULATIVE = ["", "_standard_error", "_lower", "_upper"]
KEYS["distribution"] = [
    *KEYS["answer-sets"],
    "cumulative_population_standard_error",
    *(f"cumulative{each}" for each in CUMULATIVE),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a survey of every kind in it."""
    monkeypatch.chdir(tmp_path)
    for name, kind in KINDS.items():
        kind.table.write_csv(f"{name}.csv")
        kind.table.write_parquet(f"{name}.parquet")
    domains = dict(KINDS["columns"].question.domains)
    (tmp_path / "domains.json").write_text(json.dumps(domains))
    (tmp_path / "words.txt").write_text("tea\ncoffee\nwine\n")
    return tmp_path


def run(name, *options, suffix="csv", out="results", table=None, asked=None):
    column = [] if KINDS[name].question.table_columns else ["--column", "x"]
    return main(
        [
            "run", table or f"{name}.{suffix}", *column, *(asked or ASKED[name]),
            *TARGET, "--out", out, *options,
        ]
    )  # fmt: skip


def files(folder):
    names = {entry.name for entry in folder.iterdir()}
    return sorted(names - {MARKER_FILE})


def assert_refused(folder, capsys, before, message):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert files(folder) == before  # nothing half-written


# ------------------------------------------------------------------ run


@pytest.mark.parametrize("name", ASKED)
def test_json_and_files(here, capsys, name):
    assert run(name, "--json", "--save-reports", suffix="parquet") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    record = found_in(captured.out)
    assert list(record)[:5] == ["num_users", "randomizer", "epsilon0", "guarantee", "estimates"]
    assert record["num_users"] == NUM_USERS
    assert record["guarantee"]["epsilon"]["upper"] <= 1.0
    assert record["question"]["kind"] == name
    labels = list(KINDS[name].question.labels)
    assert [row["value"] for row in record["estimates"]] == labels
    assert [list(row) for row in record["estimates"]] == [KEYS[name]] * len(labels)
    folder = here / "results"
    assert files(folder) == ["estimates.csv", "privacy.json", "report.html", "reports.parquet"]
    saved = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    assert {key: saved[key] for key in record} == record
    assert saved["domain"] == labels
    assert not saved["parameters"]["domain_is_discovered"]
    with (folder / "estimates.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [list(row) for row in rows] == [KEYS[name]] * len(labels)
    stored = sdp.collection.open_reports(folder / "reports.parquet")
    assert sum(len(block.data) for block in stored.blocks()) == NUM_USERS
    assert "Private estimates" in Page((folder / "report.html").read_text(encoding="utf-8")).text


@pytest.mark.parametrize("name", ASKED)
def test_people_read_estimates_then_the_guarantee(here, capsys, name):
    assert run(name, "--seed", "1", "--simultaneous") == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert KINDS[name].question.describe() in " ".join(captured.out.split())
    head = next(line for line in lines if "Standard error" in line)
    assert ("Mean" in head) == ("mean" in name)
    assert "95% simultaneous interval" in head
    assert "SIMULATION" in captured.out
    assert captured.out.index("Standard error") < captured.out.index("proved upper bound")
    assert "results/report.html" in captured.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_a_seed_gives_the_same_results_from_either_format(here, capsys, name):
    for suffix in ("csv", "parquet"):
        assert run(name, "--seed", "7", "--json", suffix=suffix, out=suffix) == 0
    first, second = map(found_in, capsys.readouterr().out.splitlines())
    assert first == second
    assert (here / "csv/estimates.csv").read_bytes() == (
        here / "parquet/estimates.csv"
    ).read_bytes()


@pytest.mark.parametrize(
    ("name", "randomizer"),
    [
        ("mean", "duchi"),
        ("vector-mean", "privunit"),
        ("answer-sets", "split:k-rr"),
    ],
)
def test_the_randomizer_can_be_named(here, capsys, name, randomizer):
    assert run(name, "--randomizer", randomizer, "--json") == 0
    assert json.loads(capsys.readouterr().out)["randomizer"] == randomizer
    assert main(["plan", "--num-users", "1200", *ASKED[name], *TARGET, "--json",
                 "--randomizer", randomizer]) == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out)["randomizer"] == randomizer


@pytest.mark.parametrize("name", ASKED)
def test_epsilon0_can_be_fixed(here, capsys, name):
    column = [] if KINDS[name].question.table_columns else ["--column", "x"]
    arguments = ["run", f"{name}.csv", *column, *ASKED[name], "--delta", "1e-6", "--out", "r"]
    assert main([*arguments, "--epsilon0", "2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["epsilon0"] == pytest.approx(2.0)
    assert record["randomizer"] == next(iter(KINDS[name].question.candidates()))
    before = files(here)
    assert main([*arguments, "--epsilon0", "0", "--overwrite"]) == 2
    assert "epsilon0" in capsys.readouterr().err
    assert files(here) == before


def test_clipping_and_dropping(here, capsys):
    (here / "a.csv").write_text("x\n" + "5\n1e9\n-1\n\n" * 300)
    assert run("mean", "--clip", "--missing", "drop", "--json", table="a.csv") == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert record["num_users"] == 900
    assert 0.0 < record["estimates"][0]["mean"] < 120.0
    assert captured.err.startswith("warning: Dropped: 300 rows")
    saved = json.loads((here / "results/privacy.json").read_text())["parameters"]
    assert (saved["clip"], saved["missing"], saved["num_missing_dropped"]) == (True, "drop", 300)


def test_separators_and_truncating(here, capsys):
    (here / "a.csv").write_text("x\n" + "bus | bike | car\nplane\n" * 300)
    options = ["--separator", "|", "--truncate", "--json", "--post-process", "clip"]
    assert run("answer-sets", *options, table="a.csv") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["post_processing"] == ["clip"]
    saved = json.loads((here / "results/privacy.json").read_text())["parameters"]
    assert (saved["separator"], saved["truncate"]) == ("|", True)


def test_steps_of_post_processing(here, capsys):
    pl.DataFrame({"x": ["yes", "no"] * 500}).write_csv("a.csv")
    steps = ["--post-process", "clip", "--post-process", "norm-sub", "--json"]
    assert run("frequencies", *steps, table="a.csv", asked=["--domain", "yes,no,maybe"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["post_processing"] == ["clip", "norm-sub"]
    assert sum(row["frequency"] for row in record["estimates"]) == pytest.approx(1.0)


# ------------------------------------------------------------------ what cannot be asked


WRONG = {
    "two kinds": (["--mean", "--range", "0,1", "--discover", "--max-bytes", "4"],
                  "--mean and --discover ask different questions"),
    "two more kinds": (["--vector", "a,b", "--norm", "1", "--domain", "a,b", "--max-answers", "1"],
                       "--vector and --max-answers ask different questions"),
    "mean of answers": (["--mean", "--range", "0,1", "--domain", "a,b"],
                        "--mean needs no --domain"),
    "no range": (["--mean"], "--mean and --range go together"),
    "no mean": (["--range", "0,1"], "--mean and --range go together"),
    "no norm": (["--vector", "a,b"], "--vector and --norm go together"),
    "no vector": (["--norm", "1"], "--vector and --norm go together"),
    "sets of what": (["--max-answers", "2"], "--max-answers needs --domain"),
    "a range of one": (["--mean", "--range", "5"], "is not two numbers"),
    "a range of three": (["--mean", "--range", "1,2,3"], "is not two numbers"),
    "a range of words": (["--mean", "--range", "a,b"], "is not two numbers"),
    "an empty range": (["--mean", "--range", "5,5"], "the wrong way round or empty"),
    "an endless range": (["--mean", "--range", "0,inf"], "high = inf"),
    "a vector of one": (["--vector", "a", "--norm", "1"], "for a single column ask for a mean"),
    "a negative norm": (["--vector", "a,b", "--norm", "-1"], "norm_bound = -1.0"),
    "a part of an answer": (["--domain", "a,b", "--max-answers", "1.5"], "not a whole number"),
    "no answers": (["--domain", "a,b", "--max-answers", "0"], "max_answers = 0"),
    "too many answers": (["--domain", "a,b", "--max-answers", "3"], "above k = 2"),
    "no domain": (["--domain-file", "absent.txt"], "cannot read absent.txt: No such file"),
    "pairs of what": (["--pairs", "all"], "--pairs goes with --columns"),
    "columns of a list": (["--columns", "a,b", "--domain", "x,y"], "a --domain-file (JSON)"),
    "columns of no JSON": (["--columns", "a,b", "--domain-file", "words.txt"], "no JSON object"),
    "columns twice": (["--columns", "age,age", "--domain-file", "domains.json"], "'age' twice"),
    "pairs of one": (["--columns", "age,vote", "--domain-file", "domains.json", "--pairs", "age"],
                     "pairs has ('age',)"),
    "two domains": (["--domain", "a,b", "--domain-file", "words.txt"], "not both"),
    "another's randomizer": (["--mean", "--range", "0,120", "--randomizer", "k-rr"],
                             "did you mean"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_questions(here, capsys, case):
    options, message = WRONG[case]
    before = files(here)
    column = [] if {"--vector", "--columns"} & {*options} else ["--column", "x"]
    run_it = ["run", "mean.csv", *column, *TARGET, "--out", "results"]
    for command in (run_it, ["plan", "--num-users", "1000", *TARGET]):
        assert main([*command, *options]) == 2
        assert_refused(here, capsys, before, message)


WRONG_READING = [
    ("mean", ["--other"], "--other makes no sense for this question"),
    ("mean", ["--separator", ";"], "--separator makes no sense"),
    ("mean", ["--truncate"], "--truncate makes no sense"),
    ("mean", ["--missing", "category"], "'category' makes no sense for numbers"),
    ("mean", ["--post-process", "clip"], "means are left as estimated"),
    ("vector-mean", ["--column", "east"], "give --column, or several with"),
    ("vector-mean", ["--other"], "--other makes no sense"),
    ("answer-sets", ["--post-process", "round"], "'round' is not one of clip"),
    ("columns", ["--post-process", "norm-sub"], "only consistent and clip apply"),
    ("columns", ["--clip"], "--clip makes no sense"),
    ("answer-sets", ["--missing", "category"], "'category' makes no sense for sets"),
    ("answer-sets", ["--clip"], "--clip makes no sense"),
    ("answer-sets", ["--separator", ""], "separator is empty"),
    ("answer-sets", ["--post-process", "norm-sub"], "only clip applies"),
    ("answer-sets", ["--randomizer", "k-rr"], "did you mean"),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG_READING)
def test_wrong_ways_of_reading(here, capsys, name, options, message):
    before = files(here)
    assert run(name, *options) == 2
    assert_refused(here, capsys, before, message)


def test_a_column_is_needed(here, capsys):
    before = files(here)
    for asked in (["--mean", "--range", "0,1"], ["--domain", "a,b"], []):
        assert main(["run", "mean.csv", *asked, *TARGET, "--out", "results"]) == 2
        assert_refused(here, capsys, before, "give --column")


WRONG_VALUES = [
    ("mean", "x\n5\nabc\n", "row 2 of column 'x' of a.csv holds a value that is no number"),
    (
        "mean",
        "x\n5\n\n6\n",
        "column 'x' of a.csv has 1 row without an answer (null, NaN or empty), the first is row 2",
    ),
    ("mean", "x\n5\n121\n", "row 2 of column 'x' of a.csv holds a value outside [0, 120]"),
    ("mean", "y\n5\n6\n", "no column 'x'"),
    ("vector-mean", "east,north,up\n1,1,1\n0,0,0\n", "row 1 of columns"),
    (
        "answer-sets",
        "x\nbus\nbus;ship\n",
        "row 2 of column 'x' of a.csv holds a value with an answer outside",
    ),
    (
        "answer-sets",
        "x\nbus\nbus;car;bike\n",
        "row 2 of column 'x' of a.csv holds a value of more than",
    ),
]


@pytest.mark.parametrize(("name", "text", "message"), WRONG_VALUES)
def test_wrong_values(here, capsys, name, text, message):
    (here / "a.csv").write_text(text)
    before = files(here)
    assert run(name, table="a.csv") == 2
    assert_refused(here, capsys, before, message)


def test_columns_without_a_list_are_read_with_a_caution(here, capsys):
    asked = ["--columns", "age,vote", "--post-process", "consistent"]
    assert run("columns", "--json", asked=asked) == 0
    captured = capsys.readouterr()
    assert "lists of answers were read from the data" in captured.err
    saved = json.loads((here / "results/privacy.json").read_text())
    assert saved["parameters"]["domain_is_discovered"]
    assert saved["domain"] == ["age=old", "age=young", "vote=no", "vote=yes"]
    assert main(["plan", "--num-users", "1200", "--columns", "age,vote", *TARGET]) == 2
    assert "--columns needs --domain-file" in capsys.readouterr().err
    (here / "alike.csv").write_text("age,vote\nold,yes\nold,no\n")
    assert run("columns", table="alike.csv", out="none", asked=["--columns", "age,vote"]) == 2
    assert "could have given with --domain-file\n" in capsys.readouterr().err


# ------------------------------------------------------------------ plan


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_of_every_kind(here, capsys, name):
    assert main(["plan", "--num-users", "1200", *ASKED[name], *TARGET]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split(maxsplit=1) == ["question", KINDS[name].question.describe()]
    for text in ("chosen: ", "without a shuffler", "same error with a trusted curator"):
        assert text in out
    assert ("\nor " in out) == (name not in {"vector-mean", "columns"})
    error = next(line for line in out.splitlines() if line.startswith("standard error"))
    assert ("%" in error) == ("mean" not in name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_a_plan_as_json(here, capsys, name):
    assert main(["plan", "--num-users", "1200", *ASKED[name], *TARGET, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["question"]["kind"] == name
    assert record["domain"] == (["mean"] if name == "mean" else list(KINDS[name].question.labels))
    assert record["guarantee"]["epsilon"]["upper"] <= 1.0
    question = sdp.Mean(0, 120) if name == "mean" else KINDS[name].question
    plan = sdp.plan(question, num_users=1200, epsilon=1.0, delta=1e-6)
    assert record["randomizer"] == plan.randomizer.name
    assert record["expected_standard_error"] == plan.expected_standard_error


def test_numbered_answers_are_for_the_default_question_only(capsys):
    base = ["plan", "--num-users", "1200", *TARGET, "--k", "4"]
    for options in (ASKED["mean"], ["--domain", "a,b"]):
        assert main([*base, *options]) == 2
        assert "give exactly one of --domain, --domain-file and --k" in capsys.readouterr().err
