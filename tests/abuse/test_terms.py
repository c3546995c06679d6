"""A malicious analyzer: terms that give users away, against the real commands."""

import io
import json

import pytest

from given_once import given_once
from graph_families import complete_graph
from peers.link import simple_terms
from shuffledp import Categories, Mean
from shuffledp.cli import main
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.remote import HttpClient
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.peers import peer_runner, relay_client
from shuffledp.peers.collecting import prepare_terms
from shuffledp.peers.keys import PrivateKeys, Registration, Roster
from shuffledp.peers.peer import Peer
from shuffledp.peers.peer_runner import PeerRunner, PeerStore, spending_facts
from shuffledp.peers.terms import Limits, traffic_bytes

GRAPH = complete_graph(12)
KEYS = PrivateKeys.generate()
ENTROPY = Entropy.from_operating_system()
YES = dict.fromkeys(range(12), 1)


def asked_with(epsilon0=2.0, domain=("no", "yes"), text="Do you smoke?", randomizer="k-rr"):
    return AskedTerms.of(Categories(domain=domain), randomizer, epsilon0, text)


def terms_of(asked, **options):
    return prepare_terms(GRAPH, asked, KEYS, **{"rounds": 4, **options})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(relay_client.RelayClient.__init__.__kwdefaults__, "patience_seconds", 0.0)
    edges = [f"{a},{b}" for a in range(12) for b in range(a)]
    (tmp_path / "edges.csv").write_text("\n".join(edges) + "\n")
    return tmp_path


def publish(here, **changes):
    """Write terms that differ from harmless ones, as only somebody malicious writes them."""
    written = json.loads(terms_of(asked_with()).to_json())
    asked = asked_with(changes.pop("epsilon0", 2.0)).to_json_dict()
    written |= {"randomizer": asked} | changes
    (here / "terms.json").write_text(json.dumps(written))


def peer(*options):
    defaults = ["--relay", "http://127.0.0.1:1", "--user", "3", "--state", "me.db"]
    command = ["network", "peer", "terms.json", "--graph", "edges.csv"]
    return main.main([*command, *given_once(defaults, options)])


@pytest.mark.parametrize(
    ("changes", "options", "text"),
    [
        ({"epsilon0": 1000.0}, (), "epsilon0 = 1000, more than max_epsilon0 = 4"),
        ({}, ("--max-epsilon0", "1"), "epsilon0 = 2, more than max_epsilon0 = 1"),
        ({"laziness": 65535 / 65536, "rounds": 1}, (), "stays with its user with probability"),
        ({}, ("--least-users", "13"), "for 12 users, fewer than least_users = 13"),
        ({"slots": [200_000] * 12}, (), "MB of traffic, more than max_megabytes = 100"),
        ({}, ("--max-megabytes", "0.001"), "more than max_megabytes = 0.001"),
        ({}, ("--terms-digest", "00" * 32), "not the one that is required"),
    ],
)
def test_harmful_terms_are_refused_before_the_answer_is_asked(  # noqa: PLR0917
    here, capsys, monkeypatch, changes, options, text
):
    publish(here, **changes)
    unread = io.StringIO("yes\n")
    monkeypatch.setattr("sys.stdin", unread)
    assert peer(*options) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert "Answer" not in captured.out + captured.err
    assert unread.tell() == 0
    assert not (here / "me.db").exists()


def test_the_terms_are_shown_before_the_answer_is_asked(here, capsys, monkeypatch):
    publish(here)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert peer() == 2  # there is no relay
    captured = capsys.readouterr()
    shown, _, _ = captured.out.partition("Answer")
    shown = " ".join(shown.split())
    for text in (
        'question "Do you smoke?"',
        'choices "no", "yes"',
        "is the truth with probability 0.880797 (epsilon0 = 2)",
        "rounds 4",
        "least crowd 10 users",
        "sent by a user in all",
        "spent before nothing on this question; 0 on all questions in this file",
    ):
        assert text in shown
    assert "no answer from the relay" in captured.err
    assert peer() == 2  # the report is drawn: nothing is asked again
    assert "the same report is sent again" in " ".join(capsys.readouterr().out.split())


def test_one_state_file_is_of_one_user(here, capsys):
    publish(here)
    assert peer("--answer", "yes") == 2
    assert peer("--answer", "yes", "--user", "4") == 2
    assert "is of another user" in capsys.readouterr().err


def test_what_a_relay_says_cannot_write_to_the_terminal(here, capsys, monkeypatch):
    publish(here)
    said = "\x1b]0;owned\x07\x9b2J\u202e\u200b" + "x" * 5_000
    answer = 403, json.dumps({"error": said}).encode()
    monkeypatch.setattr(HttpClient, "_answer", lambda *_: answer)
    assert peer("--answer", "yes") == 2
    told = capsys.readouterr().err
    assert "\\x1b]0;owned" in told
    assert told.replace("\n", "").isprintable()
    assert len(told) < 420


def test_every_limit_of_the_command_reaches_the_protocol(here, monkeypatch):
    """Those that the terms are held to are tried above; the others bind during the exchange."""

    class Runner:
        def __init__(self, *, limits, **_):
            found.append(limits)
            raise OutputError

    found = []
    monkeypatch.setattr(peer_runner, "PeerRunner", Runner)
    publish(here)
    assert peer("--answer", "yes") == 2
    digest = bytes(range(32))
    options = ("--most-absences", "0", "--roster-digest", digest.hex(), "--least-users", "11")
    assert peer(*options) == 2
    assert found == [Limits(), Limits(most_absences=0, roster_digest=digest, least_users=11)]


def test_what_terms_say_cannot_write_to_the_terminal():
    domain = tuple(f"{number}\x1b[2J" for number in range(30))
    asked = asked_with(domain=domain, text="Hello\x1b]0;root\x07\n")
    texts = "".join(value for _, value in asked.facts())
    assert texts.isprintable()
    assert "and 10 more" in texts


def test_other_laws_are_told_by_what_can_be_guessed():
    mean = AskedTerms.of(Mean(low=0.0, high=1.0, name="age"), "duchi", 1.0)
    facts = dict(mean.facts())
    assert facts["question"] == "not in words"
    assert facts["choices"] == '"age"; low = 0.0; high = 1.0'
    assert "with probability 0.731059 at most" in facts["your report"]


# ---------------------------------------------------------------- in Python
@pytest.mark.parametrize(("epsilon0", "laziness"), [(5.0, 0.0), (4.0001, 0.0), (1.0, 0.9)])
def test_a_peer_refuses_by_default(epsilon0, laziness):
    laziness = round(laziness * 65536) / 65536
    terms = simple_terms(GRAPH, KEYS, rounds=2, epsilon0=epsilon0, laziness=laziness)
    with pytest.raises(ProtocolError) as found:
        Peer.create(terms, GRAPH, 0, bytes(4), ENTROPY)
    assert (found.value.fault, found.value.reason) == (Fault.ANALYZER, Reason.LIMIT)


def test_a_peer_refuses_a_small_roster():
    terms = terms_of(asked_with(), least_registered=1)
    peers = [Peer.create(terms, GRAPH, node, bytes(terms.report_bytes), ENTROPY) for node in (0, 1)]
    items = [Registration.from_bytes(each.state.registration, terms) for each in peers]
    with pytest.raises(ProtocolError, match="2 users have registered, fewer than least_users"):
        peers[0].begin(Roster(terms, items))


@pytest.mark.parametrize(
    "limits", [{"most_epsilon0": 0.0}, {"least_users": 0}, {"most_megabytes": -1.0}]
)
def test_limits_out_of_range(limits):
    with pytest.raises(ParameterError):
        Limits(**limits)


def test_traffic_counts_what_is_sent_and_expected():
    terms = terms_of(asked_with(), even_traffic=True)
    sent = 11 * terms.per_neighbour * terms.envelope_bytes * 4
    rest = 2 * 16 * 11 * 4 + 12 * 136  # codes, roster
    assert traffic_bytes(terms, GRAPH, 0) == pytest.approx(2 * sent + rest)
    uneven = terms_of(asked_with())
    expected = 2 * uneven.slots[0] * uneven.envelope_bytes * 4 + rest
    assert traffic_bytes(uneven, GRAPH, 0) == pytest.approx(expected)


# ---------------------------------------------------------------- the same question again
class Home:
    """A user's device: one file, whatever the collection."""

    def __init__(self, path):
        self.path = path

    def answer(self, asked, value=1, **limits):
        terms = terms_of(asked)
        values = dict.fromkeys(YES, value)
        with PeerStore(self.path, terms) as store:
            runner = PeerRunner(
                terms=terms, graph=GRAPH, store=store, names={3: ""}, client=None,
                entropy=ENTROPY, limits=Limits(**limits),
            )  # fmt: skip
            runner.draw(lambda: values)
            return [each.report for each in store.answers(asked.question_digest)]

    def told(self, asked):
        with PeerStore(self.path, terms_of(asked)) as store:
            return dict(spending_facts(store, asked, ""))["spent before"]


def test_new_terms_for_the_same_question_get_the_same_report(tmp_path):
    home = Home(tmp_path / "me.db")
    first = home.answer(asked_with(0.1))
    for attempt in range(20):  # were it drawn anew, all would agree once in 2^20 times
        assert home.answer(asked_with(0.1), value=attempt % 2) == first
    assert len(first) == 1
    assert "the same report is sent again" in home.told(asked_with(0.1))


@pytest.mark.parametrize(
    "other", [asked_with(2.5), asked_with(2.5, domain=("yes", "no")),
              asked_with(2.5, text="do  you SMOKE?"),
              asked_with(2.5, randomizer="symmetric-unary")],
)  # fmt: skip
def test_another_law_on_the_same_question_is_counted(tmp_path, other):
    home = Home(tmp_path / "me.db")
    home.answer(asked_with(2.0))
    assert "epsilon0 2 on this question: another report makes 4.5" in home.told(other)
    with pytest.raises(ProtocolError, match=r"2\.5 after 2 spent on this question before"):
        home.answer(other)
    assert len(home.answer(other, most_epsilon0=5.0)) == 2
    assert home.told(asked_with(text="Do you drink?")) == (
        "nothing on this question; 4.5 on all questions in this file"
    )
