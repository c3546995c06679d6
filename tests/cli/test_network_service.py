"""``shuffledp network prepare``, ``relay``, ``peer`` and ``collect``: options and refusals."""

import io
import json
import sys
import threading
from collections import Counter

import polars as pl
import pytest

from given_once import given_once
from shuffledp.cli import main, network_exchange
from shuffledp.deploy.remote import NoAnswerError
from shuffledp.peers import relay as serving
from shuffledp.peers import relay_client
from shuffledp.peers.peer_runner import PeersOutcome
from shuffledp.peers.relay_client import RelayClient

# Ends what hangs, not what is slow.
HANGING_SECONDS = 600.0


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a graph of six friends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(relay_client, "PATIENCE_SECONDS", 0.0)
    edges = [f"{a},{b}" for a in range(6) for b in range(a)]
    (tmp_path / "edges.csv").write_text("\n".join(edges) + "\n")
    (tmp_path / "path.csv").write_text("0,1\n1,2\n2,3\n3,4\n4,5\n")
    pl.DataFrame({"answer": ["yes", "no"] * 3}).write_csv(tmp_path / "answers.csv")
    return tmp_path


def run(*arguments):
    return main.main(["network", *arguments])


def prepare(*arguments, out="c"):
    defaults = ["--graph", "edges.csv", "--domain", "yes,no", "--epsilon0", "1", "--rounds", "2"]
    return run("prepare", "--out", out, *given_once(defaults, arguments))


def collect(*arguments, url="http://127.0.0.1:1", key="c/analyzer.key", graph="edges.csv"):
    return run(
        "collect", "c/terms.json", "--graph", graph, "--key", key, "--relay", url,
        "--delta", "1e-3", "--out", "results", *arguments,
    )  # fmt: skip


def peer(*arguments, url="http://127.0.0.1:1", terms="c/terms.json", graph="edges.csv"):
    return run(
        "peer", terms, "--graph", graph, "--relay", url, "--state", "p.db",
        "--least-users", "2",
        *arguments,
    )  # fmt: skip


def error_of(capsys):
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_prepare_says_what_it_will_cost_and_guarantee(here, capsys):
    assert prepare("--delta", "1e-3") == 0
    out = capsys.readouterr().out
    for text in ("c/terms.json", "c/analyzer.key", "messages a user and round", "epsilon  "):
        assert text in out
    assert prepare("--json", "--delta", "1e-3", "--protocol", "single", "--lazy", "0.2",
                   "--even-traffic", "--least-registered", "4", out="d") == 0  # fmt: skip
    facts = json.loads(capsys.readouterr().out)
    assert facts["num_users"] == 6
    assert 0.0 < facts["guarantee"]["epsilon"]["upper"] <= 1.0
    terms = json.loads((here / "d/terms.json").read_text())
    assert (terms["protocol"], terms["least_registered"]) == ("single", 4)
    assert terms["laziness"] == round(0.2 * 65536) / 65536
    assert terms["per_neighbour"] > 0


def test_dishonest_users_and_too_small_a_delta_are_said_when_preparing(here, capsys):
    epsilons = []
    for dishonest, delta, out in (("0", "1e-2", "a"), ("3", "1e-2", "b"), ("0", "1e-12", "d")):
        arguments = ["--json", "--epsilon0", "2", "--rounds", "9", "--dishonest", dishonest]
        assert prepare(*arguments, "--delta", delta, out=out) == 0
        captured = capsys.readouterr()
        epsilons.append(json.loads(captured.out)["guarantee"]["epsilon"]["upper"])
        assert (
            (epsilons[-1] == 2.0)
            == (delta == "1e-12")
            == ("Only the local guarantee" in captured.err)
        )
    assert epsilons == sorted(epsilons)
    assert "which leaves nothing of delta = 1e-12" in " ".join(captured.err.split())


def test_prepare_replaces_nothing(here, capsys):
    assert prepare() == 0
    before = (here / "c/analyzer.key").read_bytes()
    assert prepare() == 2
    assert "exists: choose another --out" in error_of(capsys)
    assert (here / "c/analyzer.key").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--epsilon0", "0"], "epsilon0"),
        (["--rounds", "0"], "rounds"),
        (["--lazy", "1"], "laziness"),
        (["--randomizer", "k-r"], "did you mean 'k-rr'"),
        (["--least-registered", "7"], "least_registered"),
        (["--delta", "0"], "delta"),
        (["--dishonest", "2"], "give --delta, too"),
        (["--dishonest", "-1", "--delta", "1e-3"], "num_dishonest = -1"),
        (["--graph", "absent.csv"], "absent.csv"),
        (["--graph", "path.csv"], "bipartite"),
        (["--domain", "yes"], "yes"),
    ],
)
def test_prepare_refuses_in_one_line(here, capsys, arguments, text):
    assert prepare(*arguments) == 2
    assert text in error_of(capsys)
    assert not (here / "c").exists()


def test_prepare_takes_dummies_into_terms_messages_and_guarantee(here, capsys):
    assert prepare("--delta", "1e-3", "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert prepare("--delta", "1e-3", "--dummies", "poisson:3", "--json", out="d") == 0
    hidden = json.loads(capsys.readouterr().out)
    assert hidden["slots"] > plain["slots"]
    upper = [each["guarantee"]["epsilon"]["upper"] for each in (plain, hidden)]
    assert upper[1] < upper[0]
    assert json.loads((here / "d/terms.json").read_text())["dummies"] == "poisson:3.0"
    assert prepare("--dummies", "poisson:3", out="e") == 0
    assert "dummies                    poisson:3.0, 6 reports" in capsys.readouterr().out
    for law in ("laplace:2:27", "poisson"):
        assert prepare("--dummies", law, out="f") == 2
        assert "dummies = " in error_of(capsys)


def test_prepare_needs_the_possible_answers(here, capsys):
    arguments = ["--graph", "edges.csv", "--epsilon0", "1", "--rounds", "2", "--out", "c"]
    assert run("prepare", *arguments) == 2
    assert "--domain" in error_of(capsys)


ONE = ("--user", "3", "--answer", "yes")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give --user and --answer, or --table"),
        ([*ONE, "--table", "answers.csv"], "give --user and --answer, or --table"),
        (["--table", "answers.csv", "--answer", "yes"], "give --user and --answer, or --table"),
        ([*ONE, "--column", "answer"], "are for --table"),
        (["--user", "3", "--answer", "maybe"], "outside the domain"),
        (["--user", "9", "--answer", "yes"], "9"),
        (["--table", "answers.csv", "--column", "answer", "--id", "answer"], "hold one identifier"),
        (["--table", "answers.csv", "--column", "anser"], "did you mean 'answer'"),
        (["--most-absences", "-1", *ONE], "most_absences"),
        (["--roster-digest", "ab", *ONE], "64 hexadecimal digits"),
        (["--roster-digest", "x" * 64, *ONE], "64 hexadecimal digits"),
    ],
)
def test_peer_refuses_in_one_line(here, capsys, arguments, text):
    assert prepare() == 0
    capsys.readouterr()
    assert peer(*arguments) == 2
    assert text in error_of(capsys)


def test_peer_asks_for_an_answer_that_is_left_out(here, capsys, monkeypatch):
    assert prepare() == 0
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("maybe\n"))
    assert peer("--user", "3") == 2
    assert "outside the domain" in capsys.readouterr().err


def test_wrong_files_are_refused(here, capsys):
    assert prepare() == 0
    assert prepare(out="d") == 0
    capsys.readouterr()
    assert collect(key="d/analyzer.key") == 2
    assert "does not fit the terms" in error_of(capsys)
    assert collect(graph="path.csv") == 2
    assert "graph" in error_of(capsys)
    assert peer(*ONE, graph="path.csv") == 2
    assert "graph" in error_of(capsys)
    assert peer(*ONE, terms="edges.csv") == 2
    assert "terms" in error_of(capsys)
    assert run("relay", "c/terms.json", "--graph", "path.csv", "--store", "r.db") == 2
    assert "graph" in error_of(capsys)
    # Nobody listens there: what was drawn stays, and the same command goes on.
    assert peer(*ONE) == 2
    assert "no answer from the relay" in error_of(capsys)
    # Another collection: the file serves both, with the same report.
    assert peer(*ONE, terms="d/terms.json") == 2
    captured = capsys.readouterr()
    assert "the same report is sent again" in " ".join(captured.out.split())
    assert "no answer from the relay" in captured.err


@pytest.mark.parametrize("option", [("--delta", "1"), ("--confidence", "0"), ("--wait", "-1")])
def test_collect_refuses_in_one_line(here, capsys, option):
    assert prepare() == 0
    capsys.readouterr()
    assert collect(*option) == 2
    assert option[0][2:] in error_of(capsys)
    assert not (here / "results").exists()


def test_other_packages_are_asked_for(here, capsys, monkeypatch):
    assert prepare() == 0
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    relay = ("relay", "c/terms.json", "--graph", "edges.csv", "--store", "r.db")
    for refused in (lambda: peer(*ONE), collect, lambda: run(*relay)):
        assert refused() == 2
        assert "pip install 'shuffledp[service]'" in error_of(capsys)


@pytest.fixture
def relay(here, monkeypatch):
    """A relay in a thread, on a real socket, which stops by itself when all was collected."""
    from shuffledp.network.run import read_graph
    from shuffledp.peers.collecting import read_terms

    assert prepare() == 0
    terms = read_terms(here / "c/terms.json")
    ready, urls = threading.Event(), []

    def on_ready(url):
        urls.append(url)
        ready.set()

    thread = threading.Thread(
        target=serving.serve_relay,
        args=(terms, read_graph(here / "edges.csv"), here / "r.db"),
        kwargs={
            "is_eager": True,
            "round_seconds": 3600.0,
            "on_ready": on_ready,
            "until_collected": True,
        },
        daemon=True,
    )
    thread.start()
    assert ready.wait(HANGING_SECONDS)
    yield urls[0]
    thread.join(HANGING_SECONDS)
    assert not thread.is_alive()


def test_a_whole_collection_by_commands(relay, here, capsys, monkeypatch):
    assert collect("--wait", "0.01", url=relay) == 2
    assert "not over: it is in its registration phase" in capsys.readouterr().err
    one = [
        "c/terms.json",
        "--graph",
        "edges.csv",
        "--relay",
        relay,
        "--state",
        "one.db",
        "--least-users",
        "2",
        *ONE,
    ]
    # Only a main thread may handle signals, so this one runs the bare command.
    alone = threading.Thread(
        target=network_exchange.peer.main, args=(one,), kwargs={"standalone_mode": False}
    )
    alone.start()
    others = {"who": [0, 1, 2, 4, 5], "answer": ["yes", "no", "yes", "yes", "no"]}
    pl.DataFrame(others).write_csv(here / "others.csv")
    many = ["--table", "others.csv", "--column", "answer", "--id", "who"]
    assert peer(*many, url=relay) == 0
    alone.join()
    with monkeypatch.context() as leaving:

        def gone(*_):
            raise NoAnswerError("the relay is gone")

        leaving.setattr(RelayClient, "forget_hand_ins", gone)
        assert collect("--wait", str(HANGING_SECONDS), url=relay) == 0
    first = capsys.readouterr()
    assert "while it serves, run this command again" in " ".join(first.err.split())
    assert (here / "c/analyzer.key.fetched").stat().st_mode & 0o777 == 0o600
    assert collect("--overwrite", "--dishonest", "5", url=relay) == 0
    text = " ".join(capsys.readouterr().err.split())
    assert "Only the local guarantee is left, epsilon <= 1: there are no two honest users." in text
    privacy = json.loads((here / "results/privacy.json").read_text())
    assert any("Only the local guarantee" in text for text in privacy["warnings"])
    assert "Only the local guarantee" in (here / "results/report.html").read_text()
    assert collect("--overwrite", "--dishonest", "1", url=relay) == 0
    captured = capsys.readouterr()
    assert "may still have" not in captured.err
    assert "proved upper bound" in captured.out
    text = " ".join(captured.out.split())
    assert "6 of 6 users registered, and 6 handed in; dishonest, who hide nobody: 1" in text
    assert "keeps its record of who sent envelopes" in " ".join(captured.out.split())
    assert "This exchange took place" in (here / "results/report.html").read_text()
    assert (here / "results/report.html").exists()
    privacy = json.loads((here / "results/privacy.json").read_text())
    assert privacy["parameters"]["num_reports"] == 6
    assert privacy["network"]["num_dishonest"] == 1
    assert privacy["parameters"]["num_confirmed"] == 6
    beginning = privacy["parameters"]["transcript"][:16]
    assert f"roster {privacy['parameters']['roster_digest']}" in " ".join(first.out.split())
    assert f"transcript {beginning}" in " ".join(first.out.split())


def test_peers_say_what_went_wrong(capsys):
    outcome = PeersOutcome(
        num_users=5,
        nodes={"handed in": [0, 3], "late": [1], "lost": [2], "withheld": [4], "short": [0, 3]},
        counts=Counter(absent=3, dropped=4, MALFORMED=7),
        transcripts=("ab" * 32, "cd" * 32),
    )
    network_exchange._print_outcome(outcome)
    captured = capsys.readouterr()
    said = " ".join(captured.err.split())
    for text in (
        "1 users, node 1 among them, came after registration",
        "1 users, node 2 among them, came after handing in",
        "4 reports were dropped",
        "1 users, node 4 among them, missed more rounds than --most-absences",
        "7 malformed inside",
        "2 users, node 0 among them, missed mail that was sent to them",
    ):
        assert text in said
    assert "abababababababab, cdcdcdcdcdcdcdcd" in captured.out
