"""``shuffledp reproduce network --quick`` from end to end, on small graphs."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib")

from shuffledp.cli.reproduce import NETWORK_FIGURES, reproduce
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.reproduction.network import NETWORK
from shuffledp.reproduction.network_graphs import GRAPHS, load_graph
from shuffledp.reproduction.network_mean_estimation import expected_empty_users
from shuffledp.reproduction.settings import Settings

DATA = Path(__file__).parents[3] / "shared" / "data"
COLUMNS = [
    "figure",
    "claim",
    "variant",
    "x",
    "value",
    "standard_deviation",
    "trials",
    "x_label",
    "y_label",
    "settings",
]


def run(*arguments):
    return CliRunner().invoke(
        reproduce,
        ["network", "--quick", *map(str, arguments)],
        catch_exceptions=False,
        standalone_mode=False,
    )


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def values(rows, claim, variant, figure=None):
    return [
        float(row["value"])
        for row in rows
        if (row["claim"], row["variant"]) == (claim, variant)
        and row["value"]
        and figure in {None, row["figure"]}
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


@pytest.mark.parametrize("number", ["5", "8"])
def test_figures_without_data(tmp_path, number):
    run("--figure", number, "--out", tmp_path)
    rows = rows_of(tmp_path / f"figure-{number}.csv")
    assert list(rows[0]) == COLUMNS
    assert (tmp_path / f"figure-{number}.png").read_bytes().startswith(b"\x89PNG")
    assert all(float(row["value"]) >= 0.0 for row in rows if row["value"])


def test_figures_on_graphs(tmp_path, folder):
    outcome = run("--data", folder, "--out", tmp_path, "--json", *_figures("4", "6", "7"))
    assert [each["figure"] for each in json.loads(outcome.stdout)["figures"]] == ["4", "6", "7"]
    rounds = rows_of(tmp_path / "figure-4.csv")
    for name in ("Facebook", "Deezer", "Enron"):
        ours = values(rounds, "ours", name)
        assert (np.diff(ours) <= 1e-3 * ours[-1]).all()
        assert ours[-1] == pytest.approx(
            values(rounds, "trusted uniform shuffler", name)[0], rel=0.01
        )
    over_epsilon0 = rows_of(tmp_path / "figure-6.csv")
    assert {row["variant"] for row in over_epsilon0} == {
        *(each.title for each in GRAPHS.values()),
        "",
    }
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
    assert f"{round(expected_empty_users(law, law.size)):,} dummies" in text


@pytest.mark.skipif(not DATA.exists(), reason="the real graphs are not on this machine")
def test_the_twitch_graph():
    law = load_graph("twitch", Settings(data=DATA)).stationary_law()
    assert law.size == 9_498
    assert law.size * float(law @ law) == pytest.approx(7.9152, abs=5e-5)
    # The paper's number is 7,080; with degrees taken from the edge list it cannot be.
    assert expected_empty_users(law, law.size) == pytest.approx(5_456, abs=1)


def test_bad_requests(tmp_path, folder):
    with pytest.raises(ParameterError, match=r"figure 4 needs data: .* --figure 5 or 8"):
        run("--out", tmp_path / "x")
    with pytest.raises(ParameterError, match="figure = '1' is not one of 4, 5, 6, 7, 8, 9"):
        run("--out", tmp_path / "x", "--figure", "1")
    assert not (tmp_path / "x").exists()
    assert NETWORK.wanted([], folder) == tuple(NETWORK.figures) == NETWORK_FIGURES
    assert set(NETWORK.figures) > NETWORK.need_data
    with pytest.raises(ParameterError, match="the Enron graph is needed"):
        load_graph("enron", Settings())
    with pytest.raises(DataError, match=r"has no enron_lcc_edges.csv or .* at SNAP"):
        load_graph("enron", Settings(data=tmp_path))


def test_largest_component_is_taken(tmp_path):
    (tmp_path / "enron_lcc_edges.csv").write_text("u,v\n0,1\n5,6\n6,7\n7,5\n")
    assert load_graph("enron", Settings(data=tmp_path)).num_users == 3


def _figures(*numbers):
    return [word for number in numbers for word in ("--figure", number)]


def test_stationary_law():
    from shuffledp.reproduction.network_stationary import law_with_irregularity

    law = law_with_irregularity(1_000, 10.0)
    assert law.sum() == pytest.approx(1.0)
    assert 1_000 * float(law @ law) == pytest.approx(10.0)
    assert np.count_nonzero(law) == 100
    for irregularity in (0.5, 1_001.0, float("nan")):
        with pytest.raises(ParameterError, match=r"irregularity = .* is not in \[1, n = 1000\]"):
            law_with_irregularity(1_000, irregularity)


def test_rounds_of_regular_graphs():
    from shuffledp.reproduction.network_rounds_figures import _rounds_of

    for degree, last in ((3, 100), (5, 60), (10, 30), (50, 20)):
        rounds = _rounds_of(degree, quick=False)
        assert rounds[:16] == tuple(range(1, 17))  # while it oscillates
        assert rounds[-1] == last


def test_a_file_that_is_there_is_not_fetched(folder):
    assert load_graph("twitch", Settings(data=folder, fetch=True)).num_users > 800
