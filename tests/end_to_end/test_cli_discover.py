"""``--discover`` from a table to a report, and its refusals."""

import csv
import json

import pytest

from shuffledp.cli.main import main
from shuffledp.core.entropy import KEY_BYTES, Entropy
from shuffledp.deploy.task import Task

TARGET = ["--epsilon", "2", "--delta", "1e-6"]
ASKED = ["--discover", "--max-bytes", "3", "--most", "5"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "texts.csv"
    rows = ["one", "日", "é", "=1"] * 1000
    path.write_text("\n".join(["text", *rows, "far too long"]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def invoke(capsys):
    """Return a function that runs a command: its status, and its output and errors in one line."""

    def run(*words):
        status = main([str(word) for word in words])
        shown = capsys.readouterr()
        return status, " ".join(f"{shown.out} {shown.err}".split()), shown.out

    return run


@pytest.fixture
def fixed_words(monkeypatch):
    """Draw the same random words in each run of these tests, as if the system had given them.

    What is found, and that nothing false is, holds with probability 0.95 only.
    """
    monkeypatch.setattr(Entropy, "choose", lambda _: Entropy.from_key(bytes(KEY_BYTES)))


def test_a_table_to_a_report(invoke, table, tmp_path):
    out = tmp_path / "out"
    how = [*TARGET, *ASKED, "--column", "text", "--seed", "1", "--out", out]
    status, said, _ = invoke("run", table, *how)
    assert status != 0
    assert "row 4,001" in said
    assert "longer than max-bytes = 3" in said.replace("max_bytes", "max-bytes")
    assert not out.exists()
    status, said, _ = invoke("run", table, *how, "--other")
    assert status == 0, said
    for words in ("false texts: any text that nobody has", "with probability 0.95 at least"):
        assert words in said
    with (out / "estimates.csv").open(encoding="utf-8", newline="") as file:
        found = [row["value"] for row in csv.DictReader(file)]
    assert sorted(found) == sorted(["one", "日", "é", "'=1"])  # which no spreadsheet takes for more
    record = json.loads((out / "privacy.json").read_text(encoding="utf-8"))
    assert record["question"]["kind"] == "heavy-hitters"
    assert len(record["discovery"]["rounds"]) > 1
    assert "False texts" in (out / "report.html").read_text(encoding="utf-8")
    assert invoke("explain", out, "--as", "notice")[0] != 0  # a simulation promises nothing


@pytest.mark.usefixtures("fixed_words")
def test_a_table_without_popular_texts(invoke, tmp_path):
    path, out = tmp_path / "texts.csv", tmp_path / "out"
    rows = [f"{i:03d}" for i in range(800)] * 2
    path.write_text("\n".join(["text", *rows]) + "\n", encoding="utf-8")
    how = ["--epsilon", "0.3", "--delta", "1e-6", *ASKED, "--column", "text", "--out", out]
    status, said, _ = invoke("run", path, *how)
    assert status == 0, said
    assert "Nothing was found" in said
    assert (out / "estimates.csv").read_text(encoding="utf-8").startswith("value,count,frequency")
    assert json.loads((out / "privacy.json").read_text(encoding="utf-8"))["estimates"] == []
    assert "Nothing was found" in (out / "report.html").read_text(encoding="utf-8")
    for form in ("notice", "label", "registry"):
        assert invoke("explain", out, "--as", form)[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("fixed_words")
def test_a_plan_with_dummies_is_saved_and_run(invoke, table, tmp_path):
    saved, out = tmp_path / "plan.json", tmp_path / "out"
    how = ["--num-users", 4001, "--dummies", "shuffler", "--no-local-noise", "--out", saved]
    status, said, _ = invoke("plan", *ASKED, *TARGET, *how)
    assert status == 0, said
    assert "false texts" in said
    words = ["--column", "text", "--plan", saved, "--other", "--out", out]
    status, said, printed = invoke("run", table, *words, "--json")
    assert status == 0, said
    result = json.loads(printed)
    assert result["guarantee"]["rounds"] == len(result["discovery"]["rounds"])
    assert {each["value"] for each in result["estimates"]} == {"one", "日", "é", "=1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--discover"], "--discover and --max-bytes go together"),
        (["--max-bytes", "3"], "--discover and --max-bytes go together"),
        (["--most", "3"], "--most goes with --discover"),
        ([*ASKED, "--domain", "a,b"], "--discover needs no --domain"),
        ([*ASKED, "--bits", "5"], "bits = 5 is not one of 4, 8, 12 and 16"),
        ([*ASKED, "--save-reports"], "leave that out"),
        ([*ASKED, "--post-process", "clip"], "post_processing"),
    ],
)
def test_refusals(invoke, table, tmp_path, words, message):
    how = [*TARGET, "--column", "text", "--other", "--out", tmp_path / "out"]
    status, said, _ = invoke("run", table, *how, *words)
    assert status != 0
    assert message.replace("_", "-") in said.replace("_", "-")


@pytest.mark.slow
def test_a_task_of_the_first_round_among_dummies(invoke, tmp_path):
    saved, out = tmp_path / "plan.json", tmp_path / "task"
    asked = ["--discover", "--max-bytes", "2", "--most", "2", "--dummies", "shuffler"]
    how = [*TARGET, "--num-users", 4000, "--max-epsilon0", "8", "--out", saved]
    assert invoke("plan", *asked, *how)[0] == 0
    status, said, _ = invoke("task", "create", "--plan", saved, "--min-batch", "1", "--out", out)
    assert status == 0, said
    assert "1 of 4; the promise is for all of them together" in said
    assert "no shuffler epsilon of 4 rounds" in said


def test_the_task_of_the_next_round(invoke, tmp_path):
    folder, results, out = (tmp_path / name for name in ("round1", "results1", "round2"))
    how = [*ASKED, "--bits", "8", *TARGET, "--epsilon0", "2", "--min-batch", "4000"]
    status, said, _ = invoke("task", "create", *how, "--codes", "3", "--out", folder)
    assert status == 0, said
    task = Task.decode((folder / "task.bin").read_bytes())
    assert task.asked.question.steps[0] == 2  # half bytes
    rounds = [{"num_users": 1300, "num_bins": 700, "least_count": 50, "num_left": 1}]
    record = {"parameters": {"task_id": task.task_id.hex()}, "discovery": {"rounds": rounds}}
    follow = ["task", "next", folder, results, "--codes", folder / "shuffler" / "codes.txt"]
    results.mkdir()
    for text, words in (
        ("{", "is no JSON"),
        ("{}", "no result of a search's round"),
        (json.dumps(record), "over after round 1 of"),
    ):
        (results / "privacy.json").write_text(text, encoding="utf-8")
        status, said, _ = invoke(*follow, "--out", out)
        assert status != 0
        assert words in said
        assert not out.exists()
    record["discovery"]["left"] = [b"o".hex()]
    (results / "privacy.json").write_text(json.dumps(record), encoding="utf-8")
    status, said, _ = invoke(*follow, "--epoch", "2h", "--out", out)
    assert status == 0, said
    assert (
        f"round 2 of {task.asked.question.num_rounds}; the promise is for all of them together"
        in said
    )
    after = Task.decode((out / "task.bin").read_bytes())
    assert after.collection_id == task.collection_id
    assert (after.round, after.epoch_seconds) == (2, 7200)
    for name in ("operator.key", "shuffler/codes.txt"):
        assert (out / name).read_bytes() == (folder / name).read_bytes()
    assert (out / "shuffler/signing.key").read_bytes() != b""
    assert "choose another" in invoke(*follow, "--out", out)[1]


def test_tasks_of_rounds_that_cannot_be(invoke, tmp_path):
    saved, out = tmp_path / "plan.json", tmp_path / "task"
    assert invoke("plan", *ASKED, *TARGET, "--num-users", 4000, "--out", saved)[0] == 0
    given = [*ASKED, *TARGET, "--epsilon0", "2"]
    for how, words in (
        (given, "bits is missing: devices need it"),
        ([*given, "--bits", "8", "--dummies", "poisson:0.01"], "do not go with this search"),
        (["--plan", saved, "--honest-fraction", "0.01"], "is too small for"),
    ):
        status, said, _ = invoke("task", "create", *how, "--min-batch", "4000", "--out", out)
        assert status != 0
        assert words in said
        assert not out.exists()
