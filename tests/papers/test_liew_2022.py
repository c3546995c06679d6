"""Fig. 4 to 9 on small graphs; the simulation of Fig. 9 against moments known in closed form."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from liew_2022 import (
    FIGURES,
    TITLES,
    expected_empty_users,
    heterogeneous_vectors,
    law_with_irregularity,
    rounds_of,
    squared_errors,
)
from paper import Settings, main
from public_data import load_graph
from shuffledp import Entropy
from shuffledp.randomizers import PrivUnit

# Every statistical assertion below is 6 standard errors wide or more (two-sided normal tail 2e-9);
# there are four of them.
FALSE_POSITIVE_RATE = 1e-8
SIX = 6.0

NUM_USERS, DIMENSION, TRIALS = 400, 8, 60

DATA = Path(__file__).parents[3] / "shared" / "data"


def run(*arguments):
    main(FIGURES, ["--quick", *map(str, arguments)])


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def values(rows, kind, variant):
    return [
        float(row["value"])
        for row in rows
        if (row["kind"], row["variant"]) == (kind, variant) and row["value"]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four random graphs under the names of the real ones."""
    data = tmp_path_factory.mktemp("data")
    names = ("facebook_lcc_edges.csv", "twitch_de_edges.csv", "deezer_europe_edges.csv")
    for index, name in enumerate((*names, "enron_lcc_edges.csv")):
        size = 900 if "twitch" in name else 80 + index
        generator = Entropy.from_seed(index).generator()
        edges = generator.integers(0, size, size=(8 * size, 2)).tolist()
        (data / name).write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in edges))
    return data


@pytest.mark.slow
def test_figures_without_data(tmp_path, capsys):
    run("--out", tmp_path)
    assert capsys.readouterr().out.count("give --data FOLDER") == 4  # the others are left out
    for number in ("5", "8"):
        rows = rows_of(tmp_path / f"figure-{number}.csv")
        assert (tmp_path / f"figure-{number}.png").read_bytes().startswith(b"\x89PNG")
        assert all(float(row["value"]) >= 0.0 for row in rows if row["value"])
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.slow
def test_figures_on_graphs(tmp_path, folder):
    run("--data", folder, "--out", tmp_path, "--figure", "4", "6", "7")
    rounds = rows_of(tmp_path / "figure-4.csv")
    for name in ("Facebook", "Deezer", "Enron"):
        ours = values(rounds, "ours", name)
        assert (np.diff(ours) <= 1e-3 * ours[-1]).all()
        assert ours[-1] == pytest.approx(
            values(rounds, "trusted uniform shuffler", name)[0], rel=0.01
        )
    over_epsilon0 = rows_of(tmp_path / "figure-6.csv")
    assert {row["variant"] for row in over_epsilon0} == {*TITLES.values(), ""}
    protocols = rows_of(tmp_path / "figure-7.csv")
    # A report that may be dropped is hidden better.
    pairs = zip(values(protocols, "ours", "all"), values(protocols, "ours", "single"), strict=True)
    assert all(single < everything for everything, single in pairs)


def test_mean(tmp_path, folder):
    run("--figure", "9", "--data", folder, "--out", tmp_path, "--seed", "3")
    rows = rows_of(tmp_path / "figure-9.csv")
    assert {row["trials"] for row in rows} == {"2"}
    errors = {
        name: values(rows, "ours", name)
        for name in ("all", "single, dummies counted", "single, empty answers recognised")
    }
    counted, recognised = (errors[name] for name in list(errors)[1:])
    # At epsilon0 = 2 the bias of counted dummies is several times all noise.
    assert 2.0 * max(errors["all"][1], recognised[1]) < counted[1]
    text = (tmp_path / "figure-9.txt").read_text()
    law = load_graph("twitch", Settings(data=folder)).stationary_law()
    assert f"{round(expected_empty_users(law)):,} dummies" in text


@pytest.mark.skipif(not DATA.exists(), reason="the real graphs are not on this machine")
def test_the_twitch_graph():
    law = load_graph("twitch", Settings(data=DATA)).stationary_law()
    assert law.size == 9_498
    assert law.size * float(law @ law) == pytest.approx(7.9152, abs=5e-5)
    # The paper's number is 7,080; with degrees taken from the edge list it cannot be.
    assert expected_empty_users(law) == pytest.approx(5_456, abs=1)


def test_missing_data(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run("--out", tmp_path / "x", "--figure", "4", "--data", tmp_path)
    assert "has no facebook_lcc_edges.csv or" in capsys.readouterr().err


def test_largest_component_is_taken(tmp_path):
    (tmp_path / "enron_lcc_edges.csv").write_text("u,v\n0,1\n5,6\n6,7\n7,5\n")
    assert load_graph("enron", Settings(data=tmp_path)).num_users == 3


def test_stationary_law():
    law = law_with_irregularity(1_000, 10.0)
    assert law.sum() == pytest.approx(1.0)
    assert 1_000 * float(law @ law) == pytest.approx(10.0)
    assert np.count_nonzero(law) == 100


def test_rounds_of_regular_graphs():
    for degree, last in ((3, 100), (5, 60), (10, 30), (50, 20)):
        rounds = rounds_of(degree)
        assert rounds[:16] == list(range(1, 17))  # while it oscillates
        assert rounds[-1] == last


def simulated(epsilon0, law, num_dummies, seed=1):
    entropy = Entropy.from_seed(seed)
    vectors = heterogeneous_vectors(NUM_USERS, DIMENSION, entropy)
    randomizer = PrivUnit(dimension=DIMENSION, epsilon0=epsilon0)
    found = squared_errors(
        randomizer, vectors, law, num_dummies=num_dummies, trials=TRIALS, entropy=entropy
    )
    return randomizer, vectors, found


def is_near(samples, expected):
    return abs(samples.mean() - expected) < SIX * samples.std(ddof=1) / math.sqrt(samples.size)


def test_errors_against_their_expectations():
    law = np.arange(1.0, NUM_USERS + 1.0)
    law /= law.sum()
    num_dummies = 150
    randomizer, vectors, found = simulated(2.0, law, num_dummies)
    truth = vectors.mean(axis=0)
    spread = 1.0 / randomizer.mean_along**2  # expected squared norm of a decoded report
    noise = (spread - 1.0) / NUM_USERS
    assert is_near(found.all_reports, noise)
    # Sampling without replacement, then the mean over all n with dummies of expectation zero.
    kept = NUM_USERS - num_dummies
    variance = 1.0 - truth @ truth
    sampling = kept * (num_dummies / (NUM_USERS - 1.0)) * variance
    bias = (num_dummies / NUM_USERS) ** 2 * (truth @ truth)
    expected = bias + (kept * (spread - 1.0) + num_dummies * spread + sampling) / NUM_USERS**2
    assert is_near(found.with_dummies, expected)
    assert not is_near(found.with_dummies, expected - bias)  # what ignoring the bias would give
    assert is_near(found.num_released.astype(float), NUM_USERS - expected_empty_users(law))
    m = found.num_released
    given_m = (spread - 1.0) / m + (1.0 / m - 1.0 / NUM_USERS) * variance * NUM_USERS / (
        NUM_USERS - 1
    )
    assert is_near(found.without_dummies - given_m, 0.0)


def test_everybody_in_one_place():
    law = np.zeros(NUM_USERS)
    law[7] = 1.0
    _, _, found = simulated(1.0, law, NUM_USERS)
    assert (found.num_released == 1).all()
    assert expected_empty_users(law) == NUM_USERS - 1


def test_the_same_seed_gives_the_same_errors():
    law = np.full(NUM_USERS, 1.0 / NUM_USERS)
    first, second = (simulated(1.0, law, 0)[2] for _ in range(2))
    assert (first.all_reports == second.all_reports).all()
    # No dummies: all reports count, in another order.
    assert first.with_dummies == pytest.approx(first.all_reports)


def test_vectors():
    vectors = heterogeneous_vectors(1_000, 200, Entropy.from_seed(4))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(1_000))
    along = vectors.mean(axis=1) * math.sqrt(200)
    # Centre c and d coordinates: the cosine to (1, ..., 1) is c / sqrt(c^2 + 1), nearly.
    assert along[:500].mean() == pytest.approx(1 / math.sqrt(2), abs=0.02)
    assert along[500:].mean() == pytest.approx(10 / math.sqrt(101), abs=0.002)
    assert heterogeneous_vectors(1, 2, Entropy.from_seed(4)).shape == (1, 2)
