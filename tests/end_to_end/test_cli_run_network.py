"""``shuffledp run --shuffler network``: an exchange along the edges of a file, one-line errors."""

import json
from pathlib import Path

import polars as pl
import pytest

from given_once import given_once
from golden.schemas import found_in
from graph_families import random_regular_graph
from shuffledp.cli.main import main
from shuffledp.core.entropy import Entropy

NUM_USERS, NEIGHBOURS = 20, 4
DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a survey and the friendships of those who answered."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(NUM_USERS)],
            "answer": ["yes" if 4 * i < 3 * NUM_USERS else "no" for i in range(NUM_USERS)],
        }
    ).write_csv("survey.csv")
    graph = random_regular_graph(NUM_USERS, NEIGHBOURS, Entropy.from_seed(2))
    edges = [(u, int(v)) for u in range(NUM_USERS) for v in graph.neighbours_of(u) if u < v]
    pl.DataFrame(edges, schema=["u", "v"], orient="row").write_csv("edges.csv")
    (tmp_path / "names.csv").write_text("".join(f"p{u},p{v}\n" for u, v in edges))
    (tmp_path / "ring.csv").write_text(
        "".join(f"{u},{(u + 1) % NUM_USERS}\n" for u in range(NUM_USERS))
    )
    return tmp_path


@pytest.fixture(autouse=True)
def nobody_guesses(monkeypatch):
    """Leave out what adversaries guess: nine tenths of the work, and held by tests of leakage."""
    monkeypatch.setattr("shuffledp.collection.leakage.computed_leakage", lambda _: None)


def run(*arguments, graph=("--graph", "edges.csv"), epsilon=("--epsilon0", "2")):
    return main(given_once(
        ["run", "survey.csv", "--column", "answer", "--domain", "yes,no", *epsilon,
         "--delta", "1e-6", "--shuffler", "network", *graph, "--out", "out"], arguments,
    ))  # fmt: skip


def saved(folder):
    return json.loads((folder / "out" / "privacy.json").read_text())


def test_people_read_estimates_guarantee_and_network(here, capsys):
    assert run("--seed", "1") == 0
    out = capsys.readouterr().out
    assert out.index("95% interval") < out.index("proved upper bound") < out.index("spectral gap")
    assert "network shuffler" in out
    assert "chosen to come close to endless rounds" in out


def test_json_and_files_say_the_same(here, capsys):
    assert run("--json", "--rounds", "6") == 0
    record = found_in(capsys.readouterr().out)
    assert {key: saved(here)[key] for key in record} == record
    network = record["network"]
    assert (network["rounds"], network["protocol"]) == (6, "all")
    assert network["num_edges"] == NEIGHBOURS * NUM_USERS / 2
    assert network["uniform_epsilon"] <= record["guarantee"]["epsilon"]["upper"] <= 2.0
    report = (here / "out" / "report.html").read_text()
    assert "Network shuffle" in report
    assert "Who has to be trusted." in report


@pytest.mark.slow
def test_more_rounds_hide_more(here):
    found = []
    for rounds in ("1", "6"):
        assert run("--rounds", rounds, "--delta", "1e-2", "--overwrite") == 0
        found.append(saved(here)["guarantee"]["epsilon"]["upper"])
    assert found[0] > found[1]


def test_a_target_is_met(here):
    assert run("--rounds", "auto", epsilon=("--epsilon", "1.5")) == 0
    record = saved(here)
    assert record["guarantee"]["epsilon"]["upper"] <= 1.5 <= record["epsilon0"]
    assert record["target"]["epsilon"] == 1.5


def test_single_reports_and_empty_answers(here, capsys):
    assert run("--protocol", "single", "--rounds", "3", "--seed", "4", "--save-reports") == 0
    network = saved(here)["network"]
    assert network["num_released"] + network["num_dummies"] == NUM_USERS
    rows = pl.read_parquet("out/reports.parquet")
    assert rows.height == network["num_released"]
    assert "equally likely to be handed in" in capsys.readouterr().err


def test_users_have_labels(here):
    arguments = ["--id", "name", "--rounds", "2", "--save-reports"]
    assert run(*arguments, graph=("--graph", "names.csv")) == 0
    rows = pl.read_parquet("out/reports.parquet")
    assert rows.height == NUM_USERS
    assert saved(here)["network"]["worst_user"].startswith("p")


def test_resting_reports_mix_on_a_ring(here):
    ring = ("--graph", "ring.csv")
    assert run("--lazy", "0.5", "--rounds", "4", graph=ring) == 0
    assert saved(here)["network"]["laziness"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": ()}, "needs --graph"),
        ({"graph": ("--graph", "none.csv")}, "none.csv"),
        ({"graph": ("--graph", "names.csv")}, "--id"),
        ({"graph": ("--graph", "ring.csv")}, "--lazy 0.2"),
        ({"graph": ("--graph", "edges.csv", "--id", "answer")}, "--id answer holds the answers"),
        ({"graph": ("--graph", "edges.csv", "--rounds", "some")}, "'some' is not a whole number"),
        ({"graph": ("--graph", "edges.csv", "--rounds", "-1")}, "rounds = -1 is below 0"),
        ({"graph": ("--graph", "edges.csv", "--lazy", "1")}, "laziness = 1.0"),
        ({"graph": ("--graph", "edges.csv", "--lazy", "nan")}, "laziness = nan"),
        ({"graph": ("--graph", "edges.csv", "--protocol", "some")}, "'some' is not one of"),
        ({"graph": ("--graph", "edges.csv", "--missing", "drop")}, "no --missing drop"),
        ({"graph": ("--graph", "edges.csv", "--alpha", "4")}, "--shuffler mallows"),
    ],
)
def test_what_cannot_be_done_takes_one_line_and_leaves_nothing(here, capsys, arguments, message):
    assert run(**arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert error[-1].startswith("error: ")
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("option", "name"),
    [
        (["--graph", "edges.csv"], "--graph"),
        (["--rounds", "3"], "--rounds"),
        (["--protocol", "all"], "--protocol"),
        (["--lazy", "0.1"], "--lazy"),
    ],
)
def test_its_options_need_the_network_shuffler(here, capsys, option, name):
    arguments = ["run", "survey.csv", "--column", "answer", "--domain", "yes,no", "--out", "out"]
    assert main([*arguments, "--epsilon", "1", "--delta", "1e-6", *option]) == 2
    assert f"{name} is for --shuffler network" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the real graphs are not on this machine")
def test_friends_on_twitch(tmp_path):
    table, edges = DATA / "musae_DE_target.csv", DATA / "twitch_de_lcc_edges.csv"
    status = main(
        ["run", str(table), "--column", "mature", "--domain", "True,False", "--epsilon0", "1",
         "--delta", "1e-7", "--shuffler", "network", "--graph", str(edges), "--id", "new_id",
         "--rounds", "90", "--protocol", "all", "--out", str(tmp_path / "out"), "--seed", "1"]
    )  # fmt: skip
    assert status == 0
    record = saved(tmp_path)
    network = record["network"]
    assert (network["num_users"], network["num_edges"]) == (9_498, 153_138)
    assert network["irregularity"] == pytest.approx(7.9152, abs=5e-5)
    # The gap of the walk is 0.181088, and what is reported is proved, from below.
    assert 0.1805 < network["spectral_gap"] <= 0.181089
    upper = record["guarantee"]["epsilon"]["upper"]
    assert network["uniform_epsilon"] <= upper <= 1.01 * network["uniform_epsilon"]
    share = record["estimates"][0]
    assert abs(share["frequency"] - 5_742 / 9_498) < 8 * share["standard_error"]
