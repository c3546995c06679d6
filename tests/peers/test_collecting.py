"""What the analyzer makes of collections that did not go as they should, and the server's parts."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from peers.link import ANY_SIZE
from shuffledp import Mean
from shuffledp.collection.leakage import json_of_run, leakage_of
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.remote import NoAnswerError, RefusedError
from shuffledp.deploy.servers import http_server
from shuffledp.leakage.any_shuffler import crowd_vulnerability_upper
from shuffledp.leakage.counts.others import Response
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import Hiding
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.walk import RandomWalk
from shuffledp.peers import collecting
from shuffledp.peers.collecting import FetchedStore, collection_result, fetch, fetched_facts
from shuffledp.peers.exchange_account import Arrived, ExchangeRecord
from shuffledp.peers.relay_client import RelayClient
from shuffledp.peers.terms import graph_digest
from shuffledp.randomizers import KRandomizedResponse
from shuffledp.report import page_html

EVERYBODY = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def over(collection):
    """A collection that is over, and what was fetched of it."""
    _, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    return collection, fetch(collection.terms, collection.keys, client)


def taken_for(fetched, record):
    """Return what was fetched as if those of a record had taken part, and nobody else."""
    nodes = record.nodes.tolist()
    confirmations = {node: fetched.collected.confirmations[node] for node in nodes}
    collected = replace(
        fetched.collected,
        reports=fetched.collected.reports[: len(nodes)],
        confirmations=confirmations,
        num_hand_ins=len(nodes),
    )
    return replace(fetched, record=record, collected=collected)


class Crash(Exception):  # noqa: N818  # not an error, but the end of a process
    """The process is killed here."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(4))
def test_an_analyzer_killed_at_any_request_loses_nothing(collection, monkeypatch, step, after):
    # Before or after the request took effect: roster, hand-ins, record, and that they are stored.
    service, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    real, numbers = http.send, itertools.count()

    def send(request, **options):
        dies = not request.url.path.endswith("/status") and next(numbers) == step
        if dies and not after:
            raise Crash
        response = real(request, **options)
        if dies:
            raise Crash
        return response

    def fetch_with_store():
        with FetchedStore(collection.folder / "a.fetched", collection.terms) as store:
            return fetch(collection.terms, collection.keys, client, store=store)

    with monkeypatch.context() as dying:
        dying.setattr(http, "send", send)
        with pytest.raises(Crash):
            fetch_with_store()
    found = fetch_with_store()
    assert len(found.collected.reports) == 6
    assert found.not_forgotten == ""
    assert set(service.relay.rows("SELECT message FROM hand_ins")) == {(b"",)}
    # From now on no relay is needed.
    monkeypatch.setattr(http, "send", lambda *_, **__: pytest.fail("the relay is asked"))
    assert fetch_with_store().collected == found.collected


def test_a_relay_that_is_gone_before_it_forgets_costs_no_result(collection, monkeypatch):
    _, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    path = collection.folder / "a.fetched"

    def gone(_):
        raise NoAnswerError("no answer")

    with FetchedStore(path, collection.terms) as store:
        with monkeypatch.context() as leaving:
            leaving.setattr(client, "forget_hand_ins", gone)
            found = fetch(collection.terms, collection.keys, client, store=store)
        assert found.not_forgotten == "no answer"
        again = fetch(collection.terms, collection.keys, client, store=store)
        assert (again.collected, again.not_forgotten) == (found.collected, "")
    # Whoever has lost the file is told why there is nothing.
    with pytest.raises(RefusedError, match="beside the analyzer's key"):
        fetch(collection.terms, collection.keys, client)
    with FetchedStore(path, collection.terms) as store:
        with store.transaction():
            store.set_fact("absences", b"[")
        with pytest.raises(DataError, match="damaged"):
            store.everything()


def result_of(collection, fetched, **changes):
    collected = replace(fetched.collected, **changes)
    return collection_result(
        collection.terms, collection.graph,
        replace(fetched, collected=collected), delta=1e-2, options=EstimateOptions(),
    )  # fmt: skip


def test_estimates_guarantee_and_facts(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    assert (result.num_users, result.shuffler, result.is_simulation) == (6, "network", False)
    assert result.guarantee.num_users == 6
    facts = fetched_facts(collection.terms, fetched)
    assert facts["num_reports"] == facts["num_registered"] == facts["num_handed_in"] == 6
    assert facts["collection_id"] == collection.terms.collection_id.hex()


def test_the_report_says_how_the_exchange_went(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    facts = result.facts
    assert (facts.num_users, facts.num_invited, facts.num_handed_in) == (6, 6, 6)
    assert (facts.num_edges, facts.num_absences, facts.is_traffic_even) == (15, 0, False)
    assert facts.spectral_gap == pytest.approx(0.8, abs=1e-6)
    assert 0.0 < facts.overload < 1e-8
    assert result.to_json_dict()["network"]["num_invited"] == 6


def test_the_report_counts_those_who_were_away_or_never_came(over):
    collection, fetched = over
    absent = [[0, 5], [5], [5]]
    record = ExchangeRecord.of(collection.terms, range(5), absent)
    result = result_of(collection, taken_for(fetched, record))
    facts = result.facts
    assert (facts.num_users, facts.num_invited, facts.num_absences) == (5, 6, 1)
    assert facts.num_edges == 10
    masks = np.array([[user in row for user in range(5)] for row in absent])
    walk = RandomWalk(collection.graph.subgraph(range(5)), absences=masks)
    profile = collection.asked.randomizer.profile
    (bounds,) = exact_position_bounds(walk, (3,))
    alone = Hiding(bounds).epsilon(profile, delta=1e-2, with_lower=False).upper
    assert alone <= result.guarantee.epsilon_upper <= 1.001 * alone  # an overload is charged for


@pytest.mark.parametrize("nodes", [[], [4]])
def test_fewer_than_two_users_exchange_nothing(over, nodes):
    collection, fetched = over
    absent = [[node for node in range(6) if node not in nodes]] * 3
    record = ExchangeRecord.of(collection.terms, nodes, absent)
    result = result_of(collection, replace(fetched, record=record))
    assert result.facts is None
    assert result.guarantee.epsilon_upper == collection.asked.randomizer.epsilon0


def test_a_graph_on_which_reports_never_mix_has_no_spectral_gap(over):
    collection, fetched = over
    square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)])
    graph, terms = square, replace(
        collection.terms, num_users=4, slots=(20,) * 4, graph_digest=graph_digest(square)
    )  # fmt: skip
    record = ExchangeRecord.of(terms, range(4), [[]] * 3)
    result = collection_result(
        terms, graph, taken_for(fetched, record), delta=1e-2,
        options=EstimateOptions(),
    )  # fmt: skip
    assert result.facts.spectral_gap == 0.0
    assert result.facts.separation == 1.0


def test_single_says_who_held_none(over):
    collection, fetched = over
    single = replace(collection, terms=replace(collection.terms, protocol="single"))
    facts = result_of(single, fetched, reports=fetched.collected.reports[:4]).facts
    assert (facts.num_released, facts.num_dummies) == (4, 2)


def test_what_is_no_report_is_left_out(over):
    collection, fetched = over
    reports = (*fetched.collected.reports[:5], b"\xff")
    result = result_of(collection, fetched, reports=reports, rejected={"malformed": 2})
    assert any("3 things handed in were no report" in text for text in result.warnings)
    assert any("1 of 6 reports are missing" in text for text in result.warnings)


def test_more_reports_than_users_are_not_to_be_trusted(over):
    collection, fetched = over
    result = result_of(collection, fetched, reports=fetched.collected.reports * 2)
    assert result.num_users == 12
    assert result.guarantee.num_users == 6
    assert any("no estimate can be trusted" in text for text in result.warnings)


def test_no_report_is_no_result(over):
    collection, fetched = over
    with pytest.raises(DataError, match="none of 6 users' reports came"):
        result_of(collection, fetched, reports=())


def test_the_end_is_waited_for(collection, monkeypatch):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    waits, seen = [], []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 9:
            runner.run()

    monkeypatch.setattr(collecting, "time", SimpleNamespace(sleep=sleep))
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)

    def on_progress(stage, done, total):
        seen.append((stage, done, total))

    found = fetch(collection.terms, collection.keys, client, on_progress=on_progress)
    assert len(found.collected.reports) == 6
    assert waits == sorted(waits)
    assert seen[0] == ("rounds", 0, 3)


def test_a_relay_is_found_at_either_kind_of_address():
    with http_server.listen("::1", 0) as listening:
        assert http_server.url_of(listening).startswith("http://[::1]:")


def test_what_can_be_guessed_of_somebody_who_registered(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    uninformed, strong = leakage_of(result).accounts
    assert (uninformed.num_users, uninformed.domain_size) == (6, 2)
    truth = collection.asked.randomizer.support_probabilities[0]
    for account in (uninformed, strong):
        assert account.randomizer.upper == pytest.approx(truth)
        # Reports may have been lost, so that nothing is sure to leak.
        assert account.both.lower == 0.5 < account.both.upper <= account.randomizer.upper
    assert uninformed.both.method == uninformed.shuffler.method == "crowd"
    walk = RandomWalk(collection.graph)
    hiding = Hiding(*exact_position_bounds(walk, (3,)))
    exact = crowd_vulnerability_upper(Response.of(truth, 2), hiding.overlaps)
    assert uninformed.both.upper == pytest.approx(exact, abs=1e-6)
    assert leakage_of(result).notes == ()
    assert len(json_of_run(result)["leakage"]["accounts"]) == 2
    assert 'id="leakage"' in page_html(result)


@pytest.mark.parametrize("nodes", [[], [4]])
def test_alone_nobody_is_hidden(over, nodes):
    collection, fetched = over
    absent = [[node for node in range(6) if node not in nodes]] * 3
    record = ExchangeRecord.of(collection.terms, nodes, absent)
    result = result_of(collection, replace(fetched, record=record))
    for account in leakage_of(result).accounts:
        assert account.num_users == 1
        assert account.both.upper == account.randomizer.upper
        assert account.shuffler.upper == 1.0


def test_guesses_are_for_questions_with_a_list_of_answers(over):
    collection, fetched = over
    asked = AskedTerms.of(Mean(low=0.0, high=1.0), "duchi", 8.0)
    drawn = asked.randomizer.randomize(np.full(6, 0.5), Entropy.from_seed(1))
    means = replace(collection, terms=replace(collection.terms, asked=asked))
    result = result_of(means, fetched, reports=tuple(asked.codec.encode(drawn)))
    assert leakage_of(result) is None
    assert json_of_run(result) == {}


def own_reports(*, num_reports, num_handed_in, mean_kept, num_short=0):
    """What `_own_reports` makes of 100 users with 0.3 dummies each."""
    exchange = SimpleNamespace(
        terms=SimpleNamespace(dummies_each=0.3),
        record=SimpleNamespace(nodes=np.arange(100)),
        mean_kept=mean_kept,
    )
    handed_in = np.arange(num_handed_in)
    short = (1,) * num_short
    arrived = Arrived(num_reports=num_reports, handed_in=handed_in, short_since=short)
    return collecting._own_reports(exchange, arrived)


def test_own_reports_among_dummies_are_known_if_nothing_was_kept():
    for number in (100, 117, 160):
        assert own_reports(num_reports=number, num_handed_in=100, mean_kept=0.0) == (100, 0.0)
    alone, variance = own_reports(num_reports=104, num_handed_in=100, mean_kept=0.0, num_short=1)
    assert (alone, variance) == (80, pytest.approx(80 * 0.3 / 1.3))


@pytest.mark.slow
def test_the_number_of_own_reports_has_the_variance_stated_and_widens_intervals():
    draw = Entropy.from_seed(3).generator()
    law = KRandomizedResponse(domain_size=3, epsilon0=8.0)
    errors, variances, inside = [], [], []
    for _ in range(2_000):
        own = 100 - draw.binomial(100, 0.08)
        extra = draw.poisson(0.3 * own)
        number, variance = own_reports(
            num_reports=own + extra, num_handed_in=92, mean_kept=8.0 * 1.3
        )
        errors.append(number - own)
        variances.append(variance)
        counts = law.aggregate(law.randomize(np.zeros(own, np.int64), Entropy.from_seed(own)))
        support = counts.support + draw.multinomial(extra, [1 / 3] * 3)
        all_counts = replace(counts, support=support, num_reports=own + extra)
        told = all_counts.less_dummies(DummyLaw.from_text("poisson:0.1"), num_users=number)
        found = collecting._widened(law.estimate(told), variance / number**2)
        inside.append(found.lower[0] <= 1.0 <= found.upper[0])
    assert abs(np.mean(errors)) < 5.0 * np.std(errors) / np.sqrt(2_000)
    assert np.var(errors) < 1.1 * np.mean(variances)
    assert np.mean(inside) > 0.95 - 5.0 * np.sqrt(0.95 * 0.05 / 2_000)
