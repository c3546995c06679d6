"""What can be guessed after ``shuffledp run``, for every shuffler, in all that is written."""

import json

import polars as pl
import pytest

from graph_families import random_regular_graph
from report.pages import Page
from shuffledp.cli.main import main
from shuffledp.core.entropy import Entropy

NUM_USERS = 80
MALLOWS = ("--shuffler", "mallows", "--groups-by", "street", "--radius", "1", "--alpha", "4")
NETWORK = ("--shuffler", "network", "--graph", "edges.csv", "--rounds", "12")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a survey, streets and friendships."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {
            "street": [user // 8 for user in range(NUM_USERS)],
            "answer": ["yes" if user < 50 else "no" for user in range(NUM_USERS)],
        }
    ).write_csv("survey.csv")
    graph = random_regular_graph(NUM_USERS, 8, Entropy.from_seed(2))
    edges = [(u, int(v)) for u in range(NUM_USERS) for v in graph.neighbours_of(u) if u < v]
    pl.DataFrame(edges, schema=["u", "v"], orient="row").write_csv("edges.csv")
    return tmp_path


def run(*arguments):
    return main(
        ["run", "survey.csv", "--column", "answer", "--domain", "yes,no", "--epsilon0", "2",
         "--delta", "1e-6", "--seed", "1", "--out", "out", *arguments]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shuffler", "methods"),
    [
        ((), {"binary", "guarantee"}),
        (MALLOWS, {"positions-bounded", "guarantee"}),
        (NETWORK, {"crowd", "guarantee"}),
    ],
    ids=["uniform", "mallows", "network"],
)
def test_the_section_is_in_all_that_is_written(here, capsys, shuffler, methods):
    assert run("--json", *shuffler) == 0
    printed = json.loads(capsys.readouterr().out)["leakage"]
    record = json.loads((here / "out" / "privacy.json").read_text())["leakage"]
    assert printed == record
    assert record["notes"] == []
    uninformed, strong = record["accounts"]
    assert [uninformed["adversary"], strong["adversary"]] == ["uninformed", "strong"]
    assert 0.5 < uninformed["posterior"]["both"] <= strong["posterior"]["both"]
    for account in record["accounts"]:
        lower, upper = account["enclosures"]["both"]
        assert account["prior"] <= lower <= upper <= account["posterior"]["randomizer"]
    assert uninformed["posterior"]["both"] < uninformed["posterior"]["shuffler"] < 1.0
    assert uninformed["posterior"]["shuffler"] < uninformed["posterior"]["randomizer"]
    if shuffler:
        assert {account["method"] for account in record["accounts"]} <= methods
    page = Page((here / "out" / "report.html").read_text())
    for text in (
        "What an adversary can guess",
        "knows nobody's answer",
        "knows everybody else's answer",
    ):
        assert text in page.text


@pytest.mark.slow
def test_more_of_the_order_tells_more(here):
    found = []
    for alpha in ("0", "4", "40", "inf"):
        groups = (*MALLOWS[:-1], alpha)
        assert run("--overwrite", *groups) == 0
        accounts = json.loads((here / "out" / "privacy.json").read_text())["leakage"]["accounts"]
        found.append(accounts[0]["enclosures"]["both"])
    uppers = [upper for _, upper in found]
    assert uppers == sorted(uppers)
    assert len(set(uppers)) == 4
    assert uppers[-1] == pytest.approx(accounts[0]["posterior"]["randomizer"], abs=1e-9)
