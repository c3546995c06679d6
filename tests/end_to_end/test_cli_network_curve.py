"""``shuffledp network curve`` from end to end: files, table, JSON, bad input."""

import json

import click
import pytest
from click.testing import CliRunner

from shuffledp.cli.network_account import curve, round_numbers
from shuffledp.cli.options import whole_numbers
from shuffledp.core.errors import ParameterError

SETTING = ("--epsilon0", "1", "--delta", "1e-3")


def run(*arguments):
    return CliRunner().invoke(
        curve, [*map(str, arguments), *SETTING], catch_exceptions=False, standalone_mode=False
    )


def write_wheel(path, num_users):
    """Write a hub, a rim around it, and a pair of strangers, who are left out."""
    rim = [(user, user % (num_users - 1) + 1) for user in range(1, num_users)]
    spokes = [(0, user) for user in range(1, num_users)]
    lines = [f"{first},{second}" for first, second in [*rim, *spokes, (num_users, num_users + 1)]]
    path.write_text("u,v\n" + "\n".join(lines) + "\n")
    return path


def test_files_and_json(tmp_path):
    graph = write_wheel(tmp_path / "wheel.csv", 60)
    out = tmp_path / "out"
    outcome = run(graph, "--regular", "6,8", "--num-users", 60, "--rounds", "1,30", "--out", out)
    assert [each.name for each in out.iterdir()] == ["network-curve.html"]
    page = (out / "network-curve.html").read_text()
    assert "wheel: 60 users" in page
    assert "6-regular" in outcome.stdout
    outcome = run(graph, "--rounds", "1,30", "--out", out, "--json")
    found = json.loads(outcome.stdout)["curves"]
    assert [each["name"] for each in found] == ["wheel"]
    assert found[0]["rounds"] == [1, 30]
    assert found[0]["epsilon"][1] < found[0]["epsilon"][0] <= 1.0
    assert found[0]["uniform_epsilon"] <= found[0]["epsilon"][1]


def test_bad_requests(tmp_path):
    with pytest.raises(click.UsageError, match="give an edge list, or --regular"):
        run("--out", tmp_path / "x")
    path = tmp_path / "bipartite.csv"
    path.write_text("u,v\n0,1\n1,2\n2,3\n3,0\n")
    with pytest.raises(ParameterError, match="bipartite"):
        run(path, "--out", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    for text in ("5-2", "a", "1--3", "-1"):
        with pytest.raises(click.BadParameter):
            round_numbers(text)
    with pytest.raises(click.BadParameter):
        whole_numbers("3,x")
