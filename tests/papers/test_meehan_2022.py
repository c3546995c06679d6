"""Figures with few people: files, order of the curves; thetas and what they preserve."""

import csv
import math

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from meehan_2022 import FIGURES, largest_eta, preserved_shares, theta_for
from paper import main
from releases import OURS, PUBLISHED, RAW, UNIFORM
from shuffledp import Entropy


def run(*arguments):
    main(FIGURES, ["--quick", *map(str, arguments)])


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


def test_preservation(tmp_path):
    run("--out", tmp_path / "new", "--figure", "7")
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == [
        *("figure-7.csv", "figure-7.png", "figure-7.txt"),
    ]
    assert (tmp_path / "new" / "figure-7.png").read_bytes().startswith(b"\x89PNG")
    rows = rows_of(tmp_path / "new" / "figure-7.csv")
    assert {row["figure"] for row in rows} == {"7a", "7b", "7c"}
    assert all(0.0 <= float(row["value"]) <= 1.0 for row in rows)
    # At the same alpha the exact sensitivity preserves more (on average over the points).
    assert np.mean(values_of(rows, OURS)) > np.mean(values_of(rows, PUBLISHED)) + 0.03
    first = (tmp_path / "new" / "figure-7.csv").read_bytes()
    run("--out", tmp_path / "new", "--figure", "7")
    assert (tmp_path / "new" / "figure-7.csv").read_bytes() == first  # the seed is the same


@pytest.mark.slow
def test_maps(tmp_path):
    run("--out", tmp_path, "--figure", "1")
    rows = rows_of(tmp_path / "figure-1.csv")
    assert len(rows) == 6 * 3
    accuracy = {(row["title"], row["labels_told_apart"]): row["attack_accuracy"] for row in rows}
    assert float(accuracy["local reports", "8"]) > 0.8
    assert float(accuracy["uniform shuffle", "8"]) < 0.4
    for title in ("r_a, as published", "r_a, exact", "r_b, as published", "r_b, exact"):
        assert float(accuracy[title, "8"]) < float(accuracy["local reports", "8"])


@pytest.mark.slow
def test_classification(tmp_path):
    run("--out", tmp_path, "--figure", "5")
    rows = rows_of(tmp_path / "figure-5.csv")
    levels = [row for row in rows if row["x"] == ""]
    raw = [float(row["value"]) for row in levels if row["kind"] == RAW]
    uniform = [float(row["value"]) for row in levels if row["kind"] == UNIFORM]
    assert len(raw) == len(uniform) == 3
    assert raw[0] > uniform[0] + 0.3  # 8-way
    assert raw[2] > uniform[2] + 0.2  # 2-way


@pytest.mark.slow
def test_friends_and_census(tmp_path):
    data = data_folder(tmp_path)
    out = tmp_path / "out"
    run("--out", out, "--figure", "4", "8", "--data", data, "--seed", "3")
    rows = rows_of(out / "figure-4.csv")
    shares = [row for row in rows if row["figure"] == "4b"]
    means = {name: np.mean(values_of(shares, name)) for name in {r["kind"] for r in shares}}
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
    return [float(row["value"]) for row in rows if row["kind"] == series]


def test_thetas():
    assert theta_for(PUBLISHED, 30, 3.0) == pytest.approx(3 / 465)
    # Seven members, every fifth place: 21 + 2 * 4 * (1 + 2 + 3 + 3 + 2 + 1) = 117.
    assert theta_for(OURS, 30, 3.0) == pytest.approx(3 / 117)


def test_the_extremes():
    entropy = Entropy.from_seed(1)
    assert (preserved_shares(50, math.inf, (0.1, 0.5), trials=3, entropy=entropy) == 1.0).all()
    everything = preserved_shares(50, 0.0, (1.0,), trials=3, entropy=entropy)
    assert (everything == 1.0).all()
    uniform = preserved_shares(1_000, 0.0, (0.5,), trials=20, entropy=entropy)
    assert uniform.mean() == pytest.approx(0.5, abs=0.05)  # 14 standard errors


def test_largest_eta():
    assert largest_eta(np.array([0.3]), 0.01) == 0.3
    assert largest_eta(np.linspace(1.0, 0.0, 101), 0.01) == pytest.approx(0.01)
