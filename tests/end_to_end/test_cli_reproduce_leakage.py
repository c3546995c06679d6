"""``shuffledp reproduce leakage`` from end to end."""

import csv
import json

import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib")

from shuffledp.cli.reproduce import LEAKAGE_FIGURES, reproduce
from shuffledp.core.errors import ParameterError
from shuffledp.reproduction.leakage import LEAKAGE


def run(*arguments):
    return CliRunner().invoke(
        reproduce,
        ["leakage", *map(str, arguments)],
        catch_exceptions=False,
        standalone_mode=False,
    )


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_all_of_the_paper_quickly(tmp_path):
    outcome = run("--quick", "--out", tmp_path)
    assert "--quick: few points, each as in the full figure" in outcome.stdout
    words = "".join(outcome.stdout.split())
    for name in LEAKAGE_FIGURES:
        stem = name if name.startswith("table") else f"figure-{name}"
        assert f"{stem}.png,{stem}.csv" in words  # long paths are wrapped
        assert (tmp_path / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert len((tmp_path / f"{stem}.txt").read_text().splitlines()) == 1
    assert "table 1a" in outcome.stdout
    assert len(list(tmp_path.iterdir())) == 3 * len(LEAKAGE_FIGURES)


def test_figure_2_has_the_papers_numbers(tmp_path):
    outcome = run("--figure", "2", "--out", tmp_path, "--json")
    (figure,) = json.loads(outcome.stdout)["figures"]
    assert figure["figure"] == "2"
    rows = [row for row in rows_of(tmp_path / "figure-2.csv") if row["x"] == "200.0"]
    at_200 = {row["variant"]: f"{float(row['value']):.4f}" for row in rows}
    assert at_200["p = 0.9"] == "0.5225"
    assert at_200["p = 1"] == "0.5282"
    assert at_200["p = 0.6"] == "0.5056"
    assert [row["printed"] for row in rows if row["mark"] == "corrected"] == ["0.5286"]
    assert "Corrected" in (tmp_path / "figure-2.txt").read_text()


def test_tables(tmp_path):
    run("--figure", "table-4", "--figure", "table-1b", "--out", tmp_path)
    rows = rows_of(tmp_path / "table-4.csv")
    assert [row["mark"] for row in rows].count("corrected") == 4
    middle = next(row for row in rows if row["input"] == row["output"] == "a:2, b:1")
    assert middle["entry"] == "p^3 + 2 p (1-p)^2"
    assert middle["printed"] == "(p^3 + 2 p (1-p)^2)/3"
    assert float(middle["value"]) == 0.515625
    assert not (tmp_path / "table-1a.csv").exists()


def test_bad_requests(tmp_path):
    with pytest.raises(ParameterError, match=r"figure = '1' is not one of 2, 3, .*, table-5"):
        run("--out", tmp_path / "x", "--figure", "1")
    assert not (tmp_path / "x").exists()


def test_help_names_all():
    assert tuple(LEAKAGE.figures) == LEAKAGE_FIGURES
