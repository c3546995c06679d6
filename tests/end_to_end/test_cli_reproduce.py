"""``shuffledp reproduce mallows --quick`` from end to end: files, columns, order of the curves."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from shuffledp.cli.reproduce import MALLOWS_FIGURES, SEED, reproduce
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, OutputError, ParameterError
from shuffledp.reproduction.mallows import MALLOWS

COLUMNS = [
    "figure",
    "series",
    "variant",
    "x",
    "mean",
    "standard_deviation",
    "trials",
    "x_label",
    "y_label",
    "settings",
]
RAW, UNIFORM = "local reports, not shuffled", "uniform shuffle"


def run(*arguments):
    """Run the command; let errors through."""
    return CliRunner().invoke(
        reproduce, ["mallows", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def data_folder(folder):
    """Write a small census and a small graph whose friends agree."""
    generator = Entropy.from_seed(5).generator()
    lines = []
    for _ in range(300):
        age = int(generator.integers(20, 50))
        income = ">50K" if generator.random() < (age - 15) / 45 else "<=50K"
        values = [str(age), "P", "1", "B", "1", "Single", "S", "H", "W", "M", "0", "0", "4", "US"]
        lines.append(", ".join([*values, income]))
    (folder / "adult.data").write_text("\n".join(lines) + "\n")
    edges = [(user, (user + step) % 300) for user in range(300) for step in (1, 2, 3, 4, 5, 6)]
    text = "".join(f"{first},{second}\n" for first, second in edges)
    (folder / "twitch_de_edges.csv").write_text("from,to\n" + text)
    mature = "".join(f"{user // 150 == 0},{user}\n" for user in range(300))
    (folder / "musae_DE_target.csv").write_text("mature,new_id\n" + mature)
    return folder


def test_preservation_as_text_and_json(tmp_path):
    outcome = run("--out", tmp_path / "new", "--quick", "--figure", "7")
    assert "figure 7" in outcome.stdout
    assert "--quick" in outcome.stdout
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == [
        "figure-7.csv",
        "figure-7.png",
        "figure-7.txt",
    ]
    assert (tmp_path / "new" / "figure-7.png").read_bytes().startswith(b"\x89PNG")
    rows = rows_of(tmp_path / "new" / "figure-7.csv")
    assert list(rows[0]) == COLUMNS
    outcome = run("--out", tmp_path / "new", "--quick", "--figure", "7", "--json")
    printed = json.loads(outcome.stdout)
    assert printed["seed"] == SEED
    assert printed["figures"][0]["figure"] == "7"
    # The same seed gives the same figure, and --json holds what the table holds.
    assert [f"{row['mean']}" for row in printed["figures"][0]["rows"]] == [
        row["mean"] for row in rows
    ]


def test_maps(tmp_path):
    run("--out", tmp_path, "--quick", "--figure", "1")
    rows = rows_of(tmp_path / "figure-1.csv")
    assert len(rows) == 6 * 3
    accuracy = {(row["title"], row["labels_told_apart"]): row["attack_accuracy"] for row in rows}
    assert float(accuracy["local reports", "8"]) > 0.8
    assert float(accuracy["uniform shuffle", "8"]) < 0.4
    for title in ("r_a, as published", "r_a, exact", "r_b, as published", "r_b, exact"):
        assert float(accuracy[title, "8"]) < float(accuracy["local reports", "8"])


@pytest.mark.slow
def test_classification(tmp_path):
    run("--out", tmp_path, "--quick", "--figure", "5")
    rows = rows_of(tmp_path / "figure-5.csv")
    assert list(rows[0]) == COLUMNS
    levels = [row for row in rows if row["x"] == ""]
    raw = [float(row["mean"]) for row in levels if row["series"] == RAW]
    uniform = [float(row["mean"]) for row in levels if row["series"] == UNIFORM]
    assert len(raw) == len(uniform) == 3
    assert raw[0] > uniform[0] + 0.3  # 8-way
    assert raw[2] > uniform[2] + 0.2  # 2-way


@pytest.mark.slow
def test_friends_and_census(tmp_path):
    data = data_folder(tmp_path)
    out = tmp_path / "out"
    run("--out", out, "--quick", "--figure", "4", "--figure", "8", "--data", data, "--seed", "3")
    rows = rows_of(out / "figure-4.csv")
    assert list(rows[0]) == COLUMNS
    shares = [row for row in rows if row["figure"] == "4b"]
    means = {name: np.mean(values_of(shares, name)) for name in {r["series"] for r in shares}}
    assert len(means) == 4
    assert means[RAW] > 0.9  # friends agree
    assert means[UNIFORM] < 0.2
    assert all(means[UNIFORM] - 0.1 <= mean <= means[RAW] for mean in means.values())
    assert {(row["figure"], row["trials"]) for row in rows} == {
        ("4b", "2"),
        ("4d", "1"),
        ("4d'", "1"),
    }
    census = rows_of(out / "figure-8.csv")
    assert {row["figure"] for row in census} == {"8a", "8b", "8c"}
    errors = [row for row in census if row["figure"] == "8c"]
    assert np.mean(values_of(errors, RAW)) < np.mean(values_of(errors, UNIFORM))


def values_of(rows, series):
    return [float(row["mean"]) for row in rows if row["series"] == series]


def test_the_command_knows_the_figures():
    assert tuple(MALLOWS.figures) == MALLOWS_FIGURES


def test_bad_requests(tmp_path):
    import click

    with pytest.raises(ParameterError, match=r"figure 4 needs data: give --data .* 1 or 5 or 7"):
        run("--out", tmp_path / "x")
    with pytest.raises(click.UsageError, match="--fetch needs --data"):
        run("--out", tmp_path / "x", "--fetch")
    with pytest.raises(ParameterError, match="figure = '2' is not one of 1, 4, 5, 7, 8"):
        MALLOWS.wanted(["2"], None)
    assert MALLOWS.wanted([], tmp_path) == ("1", "4", "5", "7", "8")
    assert MALLOWS.wanted(["7", "1"], None) == ("1", "7")
    assert {"4", "8"} == MALLOWS.need_data
    assert not (tmp_path / "x").exists()
    with pytest.raises(DataError, match=r"has no adult.data"):
        run("--out", tmp_path / "y", "--figure", "8", "--data", tmp_path)


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        run("--out", tmp_path / "out", "--quick", "--figure", "7")


def test_without_matplotlib(tmp_path, monkeypatch):
    from shuffledp.report import drawing

    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'shuffledp\[attacks\]'"):
        drawing.require_matplotlib()
