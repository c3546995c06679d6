"""Dummies of peers: drawn once with the report, carried like it, taken off by the analyzer."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import poisson

from graph_families import complete_graph
from peers.link import ANY_SIZE
from peers.test_collecting import EVERYBODY, result_of, taken_for
from shuffledp import Categories
from shuffledp.collection.leakage import json_of_run
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.network.graph import Graph
from shuffledp.network.privacy import network_walk_epsilon
from shuffledp.peers.collecting import fetch, prepare_terms, traffic_facts
from shuffledp.peers.exchange_account import Arrived, Exchange, ExchangeRecord, messages_for
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.mail import seal_report
from shuffledp.peers.peer import Peer, PeerState
from shuffledp.peers.relay_client import RelayClient
from shuffledp.peers.terms import Terms
from shuffledp.report import page_html

KITE = Graph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)])
LAW = DummyLaw.from_text("poisson:2.0")


@pytest.fixture
def over(make_collection):
    """A collection with dummies that is over, and what was fetched of it."""
    collection = make_collection(dummies=LAW)
    _, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    return collection, fetch(collection.terms, collection.keys, client)


def test_they_walk_with_the_report_and_are_taken_off(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    number = len(fetched.collected.reports)
    assert (result.num_users, result.num_dummies) == (6, number - 6)
    assert number > 6  # none at all would be a chance of e^-24
    assert fetched.collected.rejected == {}
    counted = collection.asked.randomizer.aggregate(
        collection.asked.codec.decode(fetched.collected.reports)
    )
    p, q = collection.asked.randomizer.support_probabilities
    expected = (counted.support - (number - 6) / 2 - 6 * q) / (p - q)
    assert result.estimates.count == pytest.approx(expected)
    assert [str(law) for law in result.dummies] == ["poisson:2.0"]
    most = max(4 * slots for slots in collection.terms.slots)  # three rounds and the hand-in
    assert any(f"can have up to {most} counted" in text for text in result.warnings)
    assert result.to_json_dict()["num_dummies"] == number - 6


def test_report_and_guesses_are_made_of_them_too(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    page = " ".join(page_html(result).split())
    assert "which belong to nobody" in page
    assert "6 honest users, who send dummies" in page
    assert json_of_run(result)["leakage"]


def test_a_peer_who_fills_every_message_moves_a_share_by_no_more_than_is_stated(
    make_collection, monkeypatch
):
    collection = make_collection(dummies=LAW)
    own, sent, honest = [], Peer.outgoing, Peer.hand_in

    def fill(peer):
        """Put reports of the answer 0 in every place of the next message of user 0."""
        if peer.node == 0:
            made = [seal_report(b"\0", collection.terms) for _ in range(collection.terms.slots[0])]
            own.extend(made)
            peer.state.held = made

    def outgoing(peer, round_number):
        if peer.state.sent_in != round_number:
            fill(peer)
        return sent(peer, round_number)

    def hand_in(peer):
        if not peer.state.handed_in:
            fill(peer)
        return honest(peer)

    monkeypatch.setattr(Peer, "outgoing", outgoing)
    monkeypatch.setattr(Peer, "hand_in", hand_in)
    _, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    fetched = fetch(collection.terms, collection.keys, client)
    degrees = collection.graph.degrees.tolist()
    assert len(own) == collection.terms.most_records(degrees) == 4 * collection.terms.slots[0]
    reports, counted = fetched.collected.reports, len(fetched.collected.reports)
    assert counted > 3 * collection.terms.slots[0]  # what filled the hand-in, and much of the rest
    bound = result_of(collection, fetched).largest_shift(1)
    # Beside the same reports of others: all tables of what one user may have counted.
    others = [report for report in reports if report != b"\0"]
    for number in (0, 6, len(own)):  # with fewer than six reports there are fewer users
        shares = [
            result_of(collection, fetched, reports=[*others, *each]).estimates.frequency
            for each in ([b"\0"] * number, [b"\1"] * number)
        ]
        shift = shares[0] - shares[1]
        assert np.abs(shift) == pytest.approx(number / len(own) * bound)
    plan = replace_shuffling(result_of(collection, fetched), most_records=None)
    assert (plan.largest_shift(1) < bound).all()  # the limit of a task would be too small


def replace_shuffling(result, **changes):
    """Return the result with another limit of its exchange."""
    return replace(result, shuffling=replace(result.shuffling, **changes))


def test_the_guarantee_is_that_of_a_network_with_as_many_dummies(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    profile = collection.asked.randomizer.profile
    how = {"num_dishonest": 0}
    arrived = fetched.arrived(len(fetched.collected.reports))
    exchange = Exchange(collection.terms, collection.graph, fetched.record, arrived, **how)
    overlaps = exchange.hiding.overlaps
    left = exchange.delta_left(1e-2, profile.epsilon0)
    with_them = network_walk_epsilon(profile, overlaps=overlaps, delta=left, dummies=LAW)
    without = network_walk_epsilon(profile, overlaps=overlaps, delta=left)
    assert result.guarantee.epsilon_upper <= with_them.upper * (1 + 1e-9)
    assert result.guarantee.epsilon_upper < 0.6 * result.without_dummies.epsilon_upper
    assert result.without_dummies.epsilon_upper <= without.upper * (1 + 1e-9)


def test_where_who_was_away_handed_in_nothing_dummies_are_no_help(over):
    collection, fetched = over
    record = ExchangeRecord.of(collection.terms, range(6), [[0], [], []])
    collected = fetched.collected
    said = {node: each for node, each in collected.confirmations.items() if node}
    some = replace(fetched, record=record, collected=replace(collected, confirmations=said))
    arrived = some.arrived(len(collected.reports))
    exchange = Exchange(collection.terms, collection.graph, record, arrived)
    assert exchange.asked(1e-2)["dummies"] is None


def test_overloads_count_them(over):
    collection, fetched = over
    terms = collection.terms
    exchange = Exchange(terms, collection.graph, fetched.record, fetched.arrived(30))
    # In a complete graph each user holds one report and four dummies on average, at any time.
    chance = float(poisson.sf(terms.slots[0], 1.0 + 4.0))
    assert 6 * 4 * chance <= exchange.overload <= 1e-9


def test_a_state_has_them_in_no_order_and_draws_them_once(make_collection):
    collection = make_collection(dummies=LAW)
    _, http = collection.relay()
    first = collection.runner(http, [2, 3])
    before = first.store.states()
    first.store.close()
    assert collection.runner(http, [2, 3]).store.states() == before
    held = [PeerState.from_bytes(each, collection.terms).held for each in before.values()]
    assert all(each == sorted(each) for each in held)
    assert sum(map(len, held)) > 2  # fewer would be a chance of e^-8


def test_reports_that_are_too_many_or_too_few_leave_the_local_guarantee(over):
    collection, fetched = over
    reports = fetched.collected.reports
    loss = collection.asked.randomizer.epsilon0
    result = result_of(collection, fetched, reports=reports * 9)
    assert any("reports more than users and their dummies" in text for text in result.warnings)
    assert result.guarantee.epsilon_upper == pytest.approx(loss, rel=0.01)
    # So many of six users' and their dummies cannot have been lost, for all handed in.
    few = result_of(collection, fetched, reports=reports[:3])
    assert any("more than the 0 users" in text for text in few.warnings)
    assert few.num_users == 6


@pytest.mark.parametrize(
    ("number", "doubt"), [(4_400, "missing"), (4_900, None), (5_100, None), (5_600, "made up")]
)
def test_numbers_that_chance_hardly_draws_are_doubted(make_collection, number, doubt):
    terms = make_collection(dummies=LAW).terms
    arrived = Arrived(num_reports=number, handed_in=np.arange(1000))
    found = arrived.doubts(terms, 1000, np.empty(0))  # 4,000 dummies on average, give or take 63
    assert [doubt in each for each in found] == [True] * (doubt is not None)


def test_if_a_holder_is_silent_own_reports_are_those_registered_less_some_kept(over):
    collection, fetched = over
    record = ExchangeRecord.of(collection.terms, range(5), [[5]] * 3)
    some = taken_for(fetched, record)
    some = replace(some, collected=replace(some.collected, reports=fetched.collected.reports))
    silent = dict(some.collected.confirmations)
    silent.pop(4)
    result = result_of(
        collection, replace(some, collected=replace(some.collected, confirmations=silent))
    )
    own = len(fetched.collected.reports) - result.num_dummies
    assert own in {4, 5}  # a fifth of what came is far less certain


class TestTerms:
    ASKED = AskedTerms.of(Categories(["no", "yes"]), "k-rr", 2.0)

    def terms(self, law=LAW, asked=ASKED, **more):
        return prepare_terms(
            complete_graph(6), asked, PrivateKeys.generate(), rounds=2, dummies=law, **more
        )

    def test_they_are_in_the_terms_and_others_are_written_as_before(self):
        made = self.terms()
        assert Terms.from_json(made.to_json()) == made
        assert json.loads(made.to_json())["dummies"] == "poisson:2.0"
        plain = replace(made, dummies=None)
        assert "dummies" not in json.loads(plain.to_json())
        assert Terms.from_json(plain.to_json()) == plain
        assert made.digest() != plain.digest()
        assert made.dummies_each == 4.0
        facts = dict(traffic_facts(made, complete_graph(6)))
        most = f"{3 * max(made.slots):,} of a dishonest one"
        assert facts["dummies"] == f"poisson:2.0, 4 reports of nobody a user on average, {most}"

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"law": DummyLaw.from_text("laplace:2:27")}, "are not users'"),
            ({"protocol": "single"}, "take protocol 'all'"),
            (
                {"law": DummyLaw.from_text("poisson:501")},
                "1,002 a device .* above 1,000",
            ),
            ({"asked": AskedTerms.of(Categories(["a", "b"]), "symmetric-unary", 2.0)}, "k-rr"),
        ],
    )
    def test_others_are_refused(self, more, message):
        with pytest.raises(ParameterError, match=message):
            self.terms(**more)

    def test_another_spelling_is_refused(self):
        written = self.terms().to_json().replace("poisson:2.0", "poisson:2")
        with pytest.raises(ParameterError, match="in another way"):
            Terms.from_json(written)


def test_messages_suffice_for_reports_and_dummies():
    """Walks of Poisson many: as often as 2 in 100 somebody may hold more than there is room for."""
    draw, rounds, each = Entropy.from_seed(7).generator(), 3, 5.0
    room, _ = messages_for(KITE, rounds=rounds, failure=0.02, reports_each=each)
    how = {"rounds": rounds, "failure": 0.04, "even_traffic": True}
    _, to_each = messages_for(KITE, **how, reports_each=each)
    assert to_each > messages_for(KITE, **how)[1]
    rows = [KITE.neighbours[KITE.starts[u] : KITE.starts[u + 1]] for u in range(KITE.num_users)]
    exceeded, games = 0, 400
    for _ in range(games):
        at = np.repeat(np.arange(KITE.num_users), 1 + draw.poisson(each - 1, KITE.num_users))
        is_over = False
        for _ in range(rounds):
            is_over |= bool((np.bincount(at, minlength=KITE.num_users) > room).any())
            at = np.array([draw.choice(rows[u]) for u in at])
        exceeded += is_over
    # 8 are expected at most; 45 would be a chance below 1e-16.
    assert exceeded < 45
