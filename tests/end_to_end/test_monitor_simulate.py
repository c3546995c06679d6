"""``shuffledp monitor simulate`` from end to end: files, real interrupts, bad input."""

import csv
import json
import signal

import pytest

from given_once import given_once
from oracles.made_histories import outage
from report.pages import Page
from shuffledp.cli.main import main
from shuffledp.cli.monitor import PROTOCOLS
from shuffledp.collection.output import MARKER_FILE
from shuffledp.monitoring.client import ClientFleet
from shuffledp.monitoring.design import SIGN_LAWS

NUM_USERS, PERIODS = 500, 24
READING = ("--user", "user", "--time", "time", "--value", "value")
PRIVACY = ("--max-changes", "4", "--epsilon0", "2", "--delta", "1e-6", "--seed", "1")


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """A table in which something happens in the middle."""
    path = tmp_path_factory.mktemp("histories") / "histories.parquet"
    outage(NUM_USERS, PERIODS).write_parquet(path)
    return path


@pytest.fixture
def simulate(histories, tmp_path, capsys):
    """Run the command; return its status and what it printed."""

    def run(*arguments, table=histories, reading=READING, privacy=PRIVACY, out="out"):
        parts = ["monitor", "simulate", table, *reading, *privacy, "--out", tmp_path / out]
        status = main(given_once(parts, arguments))
        return status, capsys.readouterr()

    return run


def rows_of(folder, name="estimates.csv"):
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def files(folder):
    names = {each.name for each in folder.iterdir()}
    return sorted(names - {MARKER_FILE})


def test_names_of_options_are_those_of_the_library():
    assert set(PROTOCOLS) == set(SIGN_LAWS)
    assert next(iter(SIGN_LAWS)) == PROTOCOLS[0]


def test_everything_is_written_and_said(simulate, tmp_path):
    status, printed = simulate()
    assert status == 0
    out = tmp_path / "out"
    assert files(tmp_path) == ["out"]
    assert files(out) == [
        "estimates.csv",
        "report.html",
        "result.json",
        "true-counts-not-private.csv",
    ]
    rows = rows_of(out)
    assert len(rows) == PERIODS
    for row in rows:
        assert float(row["lower"]) < float(row["count"]) < float(row["upper"])
        assert "true_count" not in row
    for row in rows_of(out, "true-counts-not-private.csv"):
        assert 0 <= int(row["true_count"]) <= NUM_USERS
    record = json.loads((out / "result.json").read_text())
    assert record["parameters"]["user"] == "user"
    assert record["is_simulation"]
    page = Page((out / "report.html").read_text(encoding="utf-8"))
    assert "Simulated monitoring of 500 users over 24 periods" in page.text
    for text in (
        "users             500\n",
        "periods           24\n",
        "95% band for all periods at once",
        "of 24 true counts",
        "ignored changes   none",
        "(all a user ever sends)",
        "report            ",
    ):
        assert text in printed.out, text


def test_an_interrupt_leaves_nothing(simulate, tmp_path, monkeypatch):
    period_sums = ClientFleet.period_sums

    def interrupted(self, period):
        if period == 7:
            signal.raise_signal(signal.SIGINT)
        return period_sums(self, period)

    monkeypatch.setattr(ClientFleet, "period_sums", interrupted)
    status, printed = simulate()
    assert status == 130
    assert printed.out == ""
    assert files(tmp_path) == []


def test_an_interrupt_while_reading_leaves_nothing(simulate, tmp_path, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("shuffledp.monitoring.open_histories", interrupted)
    assert simulate()[0] == 130
    assert files(tmp_path) == []


def test_changes_beyond_the_limit_are_counted_and_warned_about(simulate):
    status, printed = simulate("--max-changes", 1)
    assert status == 0
    assert "were ignored" in printed.err
    assert "users\n" in printed.out.partition("ignored changes")[2][:40]


def test_categories(simulate, tmp_path):
    table = tmp_path / "values.csv"
    lines = ["id,day,tool"]
    lines += [
        f"{user},2026-01-0{day},{'abcde'[user % 5]}" for user in range(60) for day in (1, 3, 5)
    ]
    table.write_text("\n".join(lines) + "\n")
    reading = ("--user", "id", "--time", "day", "--value", "tool")
    status, _ = simulate("--categories", "a,b,c,d,e", table=table, reading=reading, out="one")
    assert status == 0
    rows = rows_of(tmp_path / "one", "true-counts-not-private.csv")
    assert len(rows) == len(rows_of(tmp_path / "one")) == 25
    assert {row["true_count"] for row in rows} == {"12"}
    assert rows[0]["time"] == "2026-01-01"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-changes", "0"], "max_changes = 0"),
        (["--max-changes", "25"], "max_changes = 25 is above periods = 24"),
        (["--epsilon0", "0"], "epsilon0 = 0"),
        (["--epsilon0", "nan"], "epsilon0 = nan"),
        (["--delta", "2"], "delta = 2"),
        (["--confidence", "1"], "confidence = 1"),
        (["--periods", "3"], "periods = 3"),
        (["--periods", "1e12"], "periods = 1000000000000 is above 1,048,576"),
        (["--every", "1" + 30 * "0"], "is not between -2^62 and 2^62"),
        (["--time", "user"], "name the columns 'user', 'user', 'value', one of them twice"),
        (["--user", "who"], "'who'"),
        (["--every", "soon"], "every = 'soon'"),
        (["--protocol", "magic"], "is not one of 'predrawn-signs'"),
    ],
)
def test_bad_requests_leave_nothing(simulate, tmp_path, arguments, message):
    status, printed = simulate(*arguments)
    assert status == 2
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("gap", "options", "message"),
    [
        ("NA", [], "has nothing in column 'user'"),
        ("-99", ["--missing-text", "-99"], "has nothing in column 'user'"),
        ("-99", [], None),
        ("a", ["--missing-text", "1"], "missing_texts has '1', which the domain lists"),
        ("a", ["--csv-separator", ";"], "no column 'user'"),
    ],
)
def test_people_without_a_name_are_not_one_person(simulate, tmp_path, gap, options, message):
    table = tmp_path / "histories.csv"
    rows = [f"{user},{time},1" for user in ("a", "b", "c", gap) for time in (1, 5)]
    table.write_text("\n".join(["user,time,value", *rows]) + "\n")
    status, printed = simulate(*options, table=table)
    assert (status, message or "") == (2 if message else 0, message or "")
    assert (message or "") in printed.err


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_folder_without_a_name_of_its_own_is_refused(simulate, tmp_path, monkeypatch, out):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "kept").touch()
    monkeypatch.chdir(tmp_path / "here")
    status, printed = simulate("--out", out)
    assert status == 2
    assert "exists and is not empty" in printed.err
    assert (files(tmp_path), files(tmp_path / "here")) == (["here"], ["kept"])
