"""What ``shuffledp run`` writes and what the library writes of the same run are the same bytes."""

import json
from dataclasses import replace

import pytest

import shuffledp as sdp
from report.pages import Page
from shuffledp.cli.main import main
from shuffledp.collection.leakage import json_of_run
from shuffledp.collection.output import write_results
from shuffledp.collection.result import About
from shuffledp.groups import DisplacementShuffling, Grouping, GroupShuffling
from shuffledp.network import NetworkMixing
from shuffledp.network.run import NetworkPlan, read_network
from shuffledp.report import page_html, privacy_statement

QUESTION, NUM_USERS = sdp.Categories(["yes", "no"]), 60
HOW = {"epsilon0": 2.0, "delta": 1e-5}


@pytest.fixture
def table(tmp_path):
    rows = [f"{i // 3 if i else 999},{'yes' if i % 3 else 'no'}" for i in range(NUM_USERS)]
    path = tmp_path / "survey.csv"
    path.write_text("\n".join(["age,answer", *rows]) + "\n")
    edges = [f"{i},{(i + step) % NUM_USERS}" for i in range(NUM_USERS) for step in (1, 8)]
    (tmp_path / "edges.csv").write_text("\n".join(edges) + "\n")
    return path


def within_groups(name, table):
    opened = Grouping(by=("age",), radius=1).open(table)
    kind = DisplacementShuffling if name == "displacement" else GroupShuffling
    within = kind(shuffler=opened.shuffler(4.0, name=name))
    return sdp.plan(QUESTION, num_users=NUM_USERS, shuffling=within, **HOW)


def through_a_network(protocol, table):
    graph = read_network(table.with_name("edges.csv"), table, num_users=NUM_USERS)
    exchange = NetworkPlan(
        name="edges.csv", mixing=NetworkMixing(graph), rounds=3, protocol=protocol
    )
    return exchange.setting(QUESTION, **HOW)


GROUPS = ["--groups-by", "age", "--radius", "1", "--alpha", "4"]
SHUFFLES = {
    "mallows": (within_groups, GROUPS),
    "displacement": (within_groups, GROUPS),
    "all": (through_a_network, ["--rounds", "3"]),
    "single": (through_a_network, ["--rounds", "3", "--protocol", "single"]),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_library_and_command_write_the_same(name, table, tmp_path, capsys):
    make, options = SHUFFLES[name]
    shuffler = name
    if make is through_a_network:
        shuffler, options = "network", [*options, "--graph", str(table.with_name("edges.csv"))]
    by_command, by_library = tmp_path / "command", tmp_path / "library"
    asked = ["--column", "answer", "--domain", "yes,no", "--epsilon0", "2", "--delta", "1e-5"]
    shuffle = ["--shuffler", shuffler, *options, "--seed", "5", "--out", str(by_command)]
    assert main(["run", str(table), *asked, *shuffle]) == 0
    warned = capsys.readouterr().err
    written = json.loads((by_command / "privacy.json").read_text())

    plan = make(name, table)
    column = sdp.collection.open_column(table, "answer", QUESTION)
    result = replace(sdp.run(plan, column, seed=5), about=About(**written["about"]))
    by_library.mkdir()
    how = {"parameters": written["parameters"], "findings": json_of_run(result)}
    write_results(result, by_library, **how)
    for file in ("privacy.json", "estimates.csv", "report.html"):
        assert (by_library / file).read_bytes() == (by_command / file).read_bytes(), file
    text = Page(page_html(result)).text + " ".join(map(str, privacy_statement(result).paragraphs))
    if shuffler == "network":
        assert result.facts.protocol == name
        assert "all 60 shuffled reports" not in text
    else:
        assert result.facts.alpha == 4.0
        assert "e^alpha for alpha = 4" in text
    # Cautions of the shuffle itself, which the library used to keep to itself.
    caution = "alone in every group" if shuffler == name else "With protocol single"
    is_told = [caution in each for each in result.warnings]
    assert any(is_told) == (name != "all")
    assert (caution in " ".join(warned.split())) == (name != "all")


def test_a_shuffler_that_does_not_know_its_groups_says_nothing_of_them(table):
    plan = within_groups("mallows", table)
    nameless = replace(plan.shuffling, shuffler=replace(plan.shuffling.shuffler, groups=None))
    assert sdp.run(plan, ["yes"] * NUM_USERS, seed=1, shuffling=nameless).facts is None
