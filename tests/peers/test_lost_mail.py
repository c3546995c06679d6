"""Mail that a relay loses: what arrived decides, and an unexplained loss leaves epsilon0."""

import math
from dataclasses import replace

import pytest

from graph_families import complete_graph
from peers.link import ANY_SIZE
from shuffledp.collection.leakage import leakage_of
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.network.graph import Graph
from shuffledp.peers.collecting import collection_result, fetch, fetched_facts
from shuffledp.peers.relay_client import RelayClient

DELTA = 1e-3


def guide_graph():
    """Return the graph of the guide: 100 users who know 8 others each."""
    steps = (1, 6, 17, 38)
    return Graph.from_edges([(user, (user + step) % 100) for user in range(100) for step in steps])


def run_with(collection, tamper, *, when=("round", 1)):
    """Run a collection whose relay's store is tampered with after a phase."""
    service, http = collection.relay()
    runner = collection.runner(http, list(range(collection.terms.num_users)))
    while (status := runner.client.status()).phase != "over":
        runner.step(status)
        if (status.phase, status.round) == when:
            tamper(service.relay)
    return runner, *collected(collection, http)


def collected(collection, http):
    """Return what the analyzer fetches and makes of it."""
    client = RelayClient("http://127.0.0.1", ANY_SIZE, patience_seconds=0.0, client=http)
    fetched = fetch(collection.terms, collection.keys, client, wait_seconds=0.0)
    result = collection_result(
        collection.terms, collection.graph, fetched,
        delta=DELTA, options=EstimateOptions(),
    )  # fmt: skip
    return fetched, result


def lose_all_but_that_of_user_0(store):
    """Delete all mail of round 1 that user 0 did not send."""
    with store.transaction():
        store.change("DELETE FROM mail WHERE round = 1 AND sender != 0")


def delta_of_a_lone_report(epsilon0, epsilon):
    """Return delta where the one report that arrives is the victim's: the randomizer's own."""
    keep = math.exp(epsilon0) / (1.0 + math.exp(epsilon0))
    return max(keep - math.exp(epsilon) * (1.0 - keep), 0.0)


def assert_local_only(collection, result, *reasons):
    """Only epsilon0 is claimed, and it is said why."""
    epsilon = result.guarantee.epsilon_upper
    assert delta_of_a_lone_report(collection.asked.randomizer.epsilon0, epsilon) <= DELTA
    assert epsilon == collection.asked.randomizer.epsilon0
    assert result.facts is None
    for said in (result.warnings[0], result.guarantee.bound.source):
        for reason in reasons:
            assert reason in said
    assert all(
        account.both.upper == account.randomizer.upper for account in leakage_of(result).accounts
    )


@pytest.mark.parametrize(
    ("graph", "rounds", "options"),
    [
        (complete_graph(30), 3, {}),
        (complete_graph(30), 3, {"protocol": "single"}),
        (complete_graph(12), 3, {"even_traffic": True}),
        pytest.param(guide_graph(), 20, {}, marks=pytest.mark.slow),
    ],
)
def test_mail_lost_by_sender_leaves_epsilon0(make_collection, graph, rounds, options):
    collection = make_collection(graph, rounds=rounds, epsilon0=2.0, **options)
    runner, fetched, result = run_with(collection, lose_all_but_that_of_user_0)
    assert fetched.record.num_absences == 0
    assert fetched.collected.num_hand_ins == graph.num_users
    assert len(fetched.collected.reports) == 1
    assert_local_only(collection, result, "was missing, since round 1")
    assert len(runner._outcome().nodes["short"]) == graph.num_users
    assert fetched_facts(collection.terms, fetched)["num_confirmed"] == 0


def test_a_record_that_users_were_not_shown_leaves_epsilon0(make_collection):
    collection = make_collection(complete_graph(30), rounds=3, epsilon0=2.0)

    def say_that_user_3_was_absent(store):
        with store.transaction():
            store.change("DELETE FROM batches WHERE round = 2 AND sender = 3")

    _, fetched, result = run_with(collection, say_that_user_3_was_absent, when=("hand-in", 3))
    assert len(fetched.collected.reports) == 30
    assert_local_only(collection, result, "showed 30 users another record")


def test_with_everything_there_the_guarantee_is_that_of_the_walk(make_collection):
    collection = make_collection(complete_graph(30), rounds=3, epsilon0=2.0)
    runner, fetched, result = run_with(collection, lambda _: None)
    assert result.guarantee.epsilon_upper < 0.98 * collection.asked.randomizer.epsilon0
    assert result.warnings == ()
    outcome = runner._outcome()
    assert (outcome.nodes["short"], outcome.transcripts) == ([], (fetched.transcript.hex(),))
    assert fetched_facts(collection.terms, fetched)["num_confirmed"] == 30


@pytest.mark.slow
@pytest.mark.parametrize("hides_loss", [False, True])
def test_what_those_held_who_handed_in_nothing_may_be_missing(make_collection, hides_loss):
    collection = make_collection(complete_graph(30), rounds=3, epsilon0=2.0)
    _, fetched, _ = run_with(collection, lambda _: None)
    found = fetched.collected
    silent = {0, 1}
    kept = [place for place, holder in enumerate(found.holders) if holder not in silent]
    kept = kept[:5] if hides_loss else kept
    said = {node: each for node, each in found.confirmations.items() if node not in silent}
    less = replace(
        found,
        reports=tuple(found.reports[place] for place in kept),
        confirmations=said,
        num_hand_ins=28,
    )
    result = collection_result(
        collection.terms, collection.graph, replace(fetched, collected=less),
        delta=DELTA, options=EstimateOptions(),
    )  # fmt: skip
    if hides_loss:  # two users hold 25 of 30 reports with probability below 1e-9
        assert_local_only(collection, result, "25 reports are missing, more than the 2 users held")
    else:
        assert result.guarantee.epsilon_upper < 0.98 * collection.asked.randomizer.epsilon0


def test_reports_that_somebody_made_up_leave_epsilon0(make_collection):
    collection = make_collection(complete_graph(30), rounds=3, epsilon0=2.0)
    _, fetched, _ = run_with(collection, lambda _: None)
    more = replace(fetched.collected, reports=(*fetched.collected.reports, b"\x00"))
    result = collection_result(
        collection.terms, collection.graph, replace(fetched, collected=more),
        delta=DELTA, options=EstimateOptions(),
    )  # fmt: skip
    assert_local_only(collection, result, "1 reports more than users")
