"""``shuffledp bounds`` prints every bound side by side."""

import json
import os
import signal
import subprocess
import sys

import pytest

from golden.schemas import found_in
from shuffledp.accounting.compare import Over, Scenario, bound_curves, compare_scenario
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


def test_json_holds_the_curves_where_they_are_asked_for(capsys):
    assert main([*BASE, "--delta", "1e-6", "--over", "epsilon0", "--json"]) == 0
    record = found_in(capsys.readouterr().out)
    assert record == json.loads(json.dumps(bound_curves(SCENARIO, Over.EPSILON0).to_json_dict()))


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


@pytest.mark.parametrize("over", [[], ["--over", "epsilon0"]])
def test_the_figure_is_written_beside_the_table(capsys, tmp_path, over):
    target = tmp_path / "bounds.html"
    assert main([*BASE, "--delta", "1e-6", "--figure", str(target), *over]) == 0
    assert "clones" in capsys.readouterr().out
    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert f"Over the {'local ε₀' if over else 'number of users'}</h2>" in page
    assert list(tmp_path.iterdir()) == [target]


def test_a_figure_that_cannot_be_written_is_one_line(capsys, tmp_path):
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "bounds.html"
    assert main([*BASE, "--delta", "1e-6", "--figure", str(target)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: cannot write {target}: ")
    assert captured.err.count("\n") == 1


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
        ([*BASE, "--delta", "1e-6", "--over", "epsilon0"], "--over is about the curves"),
        ([*BASE, "--delta", "1e-6", "--over", "k"], "'k' is not one of"),
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


# The page is not written before the signal comes, however late that is.
PROGRAM = """
import signal, sys
from shuffledp.cli.main import main
from shuffledp import report
report.write_report = lambda *_: signal.pause()
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_figure(tmp_path, sent, status):
    """While curves are computed, which shows in the progress bar of a terminal."""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *BASE, "--delta", "1e-6", "--figure", "bounds.html"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(follower)
    shown = b""
    while b"comparing" not in shown:
        shown += os.read(leader, 65536)
    process.send_signal(sent)
    out, _ = process.communicate()
    os.close(leader)
    assert process.returncode == status
    assert out == b""
    assert list(tmp_path.iterdir()) == []
