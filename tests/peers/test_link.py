"""Whole collections in memory: all reports come through, and each fault does what it should."""

import math

import numpy as np
import pytest
from scipy.special import chdtri

from graph_families import random_regular_graph
from network.walks import position_distribution
from peers import faults
from peers.exercises import GRAPH, KEYS, reports_of, ring, run_link, terms_on
from peers.faults import FaultyTransport
from peers.link import Faults, Link, simple_terms
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Reports
from shuffledp.deploy.wire import ProtocolError, Reason
from shuffledp.network.graph import Graph
from shuffledp.network.walk import RandomWalk
from shuffledp.peers.mail import Refusal
from shuffledp.peers.peer import draw_step
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

# Three comparisons of routes with the walk, and one interval at 1 - 2e-10.
FALSE_POSITIVE_RATE = 1e-9
RATE_PER_TEST = FALSE_POSITIVE_RATE / 5

ALL = set(reports_of(8))


def missing(collected, num_users=8):
    """Return how many users have no report there."""
    return num_users - len(collected.reports)


def assert_complete(result, num_users=8):
    """Everybody's report is there, once, and nothing was thrown away."""
    assert sorted(result.collected.reports) == reports_of(num_users)
    assert result.collected.rejected == {}


@pytest.mark.parametrize("even_traffic", [False, True])
@pytest.mark.parametrize("laziness", [0.0, 0.25])
def test_every_report_arrives_once(laziness, even_traffic):
    terms = terms_on(laziness=laziness, even_traffic=even_traffic, failure=1e-6)
    result = run_link(terms)
    assert_complete(result)
    assert result.num_refused == 0
    assert not result.absences.any()
    assert all(
        not set(tally) & {each.name for each in Refusal} for tally in result.tallies.values()
    )


def test_each_message_is_the_same_size_and_count_for_all_rounds():
    terms = terms_on(rounds=3)
    sizes = {}

    class Recording(faults.PerfectTransport):
        def to_relay(self, data, *, round_number, sender):
            sizes.setdefault(sender, []).append(len(data))
            return (data,)

    run_link(terms, transport=Recording())
    assert len(sizes) == 8
    for sender, seen in sizes.items():
        # Header: kind, context, round, sender, count; then envelopes, codes and signature.
        wanted = 4 + 32 + 3 * 4 + terms.slots[sender] * (4 + terms.envelope_bytes) + 64
        wanted += 4 + 4 * 16  # a code for each of four neighbours
        assert seen == [wanted] * 3


def test_single_hands_in_one_place_each():
    result = run_link(terms_on(protocol="single"))
    holders = result.collected.holders
    assert len(set(holders)) == len(holders) == len(set(result.collected.reports))
    assert set(result.collected.reports) <= ALL


def test_progress_is_told_each_round():
    seen = []
    run_link(terms_on(rounds=3), on_progress=seen.append)
    assert seen == [1, 2, 3]


def test_one_report_a_user_is_wanted():
    with pytest.raises(ParameterError, match="7 reports for 8 users"):
        Link(terms_on(), GRAPH, KEYS, reports_of(7), entropy=Entropy.from_seed(1))


# ---------------------------------------------------------------- faults between peers and relay
@pytest.mark.parametrize("arrival", [faults.twice, faults.cut_first])
def test_batches_that_come_twice_or_cut_short_at_first(arrival):
    terms = terms_on()
    result = run_link(terms, transport=FaultyTransport(terms=terms, batch=arrival))
    assert_complete(result)
    assert not result.absences.any()
    assert result.num_refused == (0 if arrival is faults.twice else 16)


@pytest.mark.parametrize("arrival", [faults.nothing, faults.cut, faults.changed])
def test_a_batch_that_does_not_arrive_is_taken_back(arrival):
    terms = terms_on()
    transport = FaultyTransport(terms=terms, batch=arrival, rounds=frozenset({1}))
    result = run_link(terms, transport=transport)
    assert_complete(result)
    assert result.absences[0].all()
    assert not result.absences[1].any()
    assert result.num_refused == (8 if arrival is faults.nothing else 16)


@pytest.mark.parametrize("arrival", [faults.nothing, faults.cut, faults.cut_first, faults.twice])
def test_mail_that_cannot_be_read_is_fetched_again(arrival):
    terms = terms_on()
    result = run_link(terms, transport=FaultyTransport(terms=terms, packet=arrival))
    assert_complete(result)


# ---------------------------------------------------------------- a relay that tampers
def test_letters_in_another_order_do_no_harm():
    terms = terms_on()
    assert_complete(
        run_link(terms, transport=FaultyTransport(terms=terms, letters=faults.reversed_order))
    )


@pytest.mark.parametrize(
    ("tampering", "reason"),
    [
        (faults.repeated, Refusal.DUPLICATE),
        (faults.renumbered, Refusal.UNOPENED),
    ],
)
def test_copies_are_left_out_and_counted(tampering, reason):
    terms = terms_on()
    result = run_link(terms, transport=FaultyTransport(terms=terms, letters=tampering))
    assert_complete(result)
    copies = sum(tally[reason.name] for tally in result.tallies.values())
    assert copies == 2 * sum(terms.slots)


def test_letters_replayed_from_other_rounds_and_recipients_do_not_open():
    terms = terms_on(rounds=3)
    result = run_link(terms, transport=FaultyTransport(terms=terms, letters=faults.Replayed()))
    assert_complete(result)
    assert sum(tally[Refusal.UNOPENED.name] for tally in result.tallies.values()) > 0


def test_changed_letters_are_lost_and_counted():
    terms = terms_on()
    transport = FaultyTransport(terms=terms, letters=faults.flipped_letters, rounds=frozenset({2}))
    result = run_link(terms, transport=transport)
    assert result.collected.reports == ()
    assert missing(result.collected) == 8
    refused = sum(tally[Refusal.UNOPENED.name] for tally in result.tallies.values())
    assert refused == sum(terms.slots)


# ---------------------------------------------------------------- who stays away, and who restarts
def test_reports_of_an_absent_user_wait():
    terms = terms_on(rounds=4, failure=1e-6)
    away = Faults(absent={3: frozenset({1, 2}), 5: frozenset({4})})
    result = run_link(terms, faults=away)
    assert_complete(result)
    expected = np.zeros((4, 8), dtype=bool)
    expected[[0, 1, 3], [3, 3, 5]] = True
    assert (result.absences == expected).all()


def test_a_user_who_never_returns_takes_his_reports_along():
    terms = terms_on(rounds=3)
    result = run_link(terms, faults=Faults(gone_from={2: 2}))
    assert result.absences.tolist() == [
        [node == 2 and r > 0 for node in range(8)] for r in range(3)
    ]
    collected = result.collected
    assert collected.num_hand_ins == 7
    assert set(collected.reports) < ALL
    assert missing(collected) > 0


def test_users_who_never_registered_are_left_out():
    result = run_link(terms_on(), faults=Faults(unregistered=frozenset({0, 4})))
    assert set(result.collected.reports) == ALL - {reports_of(8)[0], reports_of(8)[4]}
    assert missing(result.collected) == 2
    assert result.absences[:, [0, 4]].all()


def test_a_user_with_nobody_to_send_to_keeps_his_report():
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 0)], num_users=4)
    result = run_link(terms_on(graph), graph)
    assert_complete(result, 4)
    place = result.collected.reports.index(reports_of(4)[3])
    assert result.collected.holders[place] == 3


@pytest.mark.parametrize("which", ["relay_restarts", "peer_restarts"])
def test_restarts_lose_nothing_and_send_nothing_twice(which):
    result = run_link(terms_on(rounds=3), faults=Faults(**{which: frozenset({1, 2, 3})}))
    assert_complete(result)
    assert not result.absences.any()
    assert result.num_refused == 0


def test_surplus_reports_are_dropped_and_counted():
    star = Graph.from_edges([(0, leaf) for leaf in range(1, 8)])
    terms = terms_on(star)
    tight = type(terms).from_json(terms.to_json().replace(str(list(terms.slots)), str([2] * 8)))
    result = run_link(tight, star)
    dropped = sum(tally["dropped"] for tally in result.tallies.values())
    # Seven leaves' reports meet at the hub, which may pass on two; its own is at a leaf by then.
    assert dropped == 5
    assert missing(result.collected) == 5


def test_surplus_reports_for_one_neighbour_are_dropped_and_counted():
    star = Graph.from_edges([(0, leaf) for leaf in range(1, 8)])
    terms = terms_on(star, even_traffic=True)
    assert terms.per_neighbour > 1
    old, new = (f'"per_neighbour": {count}' for count in (terms.per_neighbour, 1))
    tight = type(terms).from_json(terms.to_json().replace(old, new))
    result = run_link(tight, star, seed=3)
    dropped = sum(tally["dropped"] for tally in result.tallies.values())
    assert dropped == missing(result.collected) > 0


# ---------------------------------------------------------------- where reports end
LAW_GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])


def counts_of_routes(laziness, num_trials, *, planted=False):
    """Return how often the report of user 0 ends where after two rounds, by the peers' draws."""
    draws = Entropy.from_seed(5)
    terms = terms_on(LAW_GRAPH, laziness=laziness)
    counts = np.zeros(4)
    neighbours = [
        LAW_GRAPH.neighbours[a:b].tolist()
        for a, b in zip(LAW_GRAPH.starts, LAW_GRAPH.starts[1:], strict=False)
    ]
    for _ in range(num_trials):
        node = 0
        for _ in range(2):
            staying, moving = draw_step([b"report"], tuple(neighbours[node]), terms, draws)
            if not staying:
                ((node, _),) = moving
            elif planted:
                node = neighbours[node][0]
        counts[node] += 1
    return counts


def is_rejected(counts, law):
    """Return whether counts differ from a law, at the declared rate."""
    expected = law * counts.sum()
    assert expected[law > 0].min() > 100
    statistic = ((counts - expected)[law > 0] ** 2 / expected[law > 0]).sum()
    return counts[law == 0].any() or statistic > chdtri((law > 0).sum() - 1, RATE_PER_TEST)


@pytest.mark.parametrize("laziness", [0.0, 0.25])
def test_reports_end_where_the_random_walk_says(laziness):
    law = position_distribution(RandomWalk(LAW_GRAPH, laziness=laziness), 0, 2)
    assert not is_rejected(counts_of_routes(laziness, 4_000), law)


def test_a_wrong_walk_is_rejected():
    law = position_distribution(RandomWalk(LAW_GRAPH, laziness=0.25), 0, 2)
    assert is_rejected(counts_of_routes(0.25, 4_000, planted=True), law)
    assert is_rejected(counts_of_routes(0.0, 4_000), law)


@pytest.mark.slow
def test_holders_of_whole_collections_follow_the_walk():
    # The same with all of the encryption: fewer walks, of all four reports.
    terms = terms_on(LAW_GRAPH, laziness=0.25, failure=0.5)
    law = position_distribution(RandomWalk(LAW_GRAPH, laziness=0.25), 0, 2)
    counts = np.zeros(4)
    for seed in range(60):
        collected = run_link(terms, LAW_GRAPH, seed=seed).collected
        for report, holder in zip(collected.reports, collected.holders, strict=True):
            if report == reports_of(4)[0]:
                counts[holder] += 1
    # Hoeffding's inequality for each of the four shares of at most 60 walks.
    margin = math.sqrt(math.log(8 / RATE_PER_TEST) / (2 * counts.sum()))
    assert np.abs(counts / counts.sum() - law).max() < margin


# ---------------------------------------------------------------- many
@pytest.mark.slow
def test_ten_thousand_peers_finish_a_survey():
    num_users = 10_000
    entropy = Entropy.from_seed(11)
    graph = random_regular_graph(num_users, 20, entropy)
    randomizer = KRandomizedResponse(domain_size=2, epsilon0=1.0)
    truth = np.zeros(num_users, dtype=np.int64)
    truth[:3_000] = 1
    codes = randomizer.randomize(truth, entropy).data
    # A generous allowance for surplus keeps the number of envelopes, and the time, down.
    terms = simple_terms(graph, KEYS, rounds=2, report_bytes=1, failure=0.5)
    result = Link(terms, graph, KEYS, [bytes([code]) for code in codes], entropy=entropy).run()
    dropped = sum(tally["dropped"] for tally in result.tallies.values())
    assert dropped == missing(result.collected, num_users) <= 10
    received = np.frombuffer(b"".join(result.collected.reports), dtype=codes.dtype)
    reports = Reports(data=received, fingerprint=randomizer.fingerprint)
    estimates = randomizer.estimate(randomizer.aggregate(reports), confidence=1 - 2e-10)
    assert estimates.lower[1] <= 0.3 <= estimates.upper[1]
    assert estimates.upper[1] - estimates.lower[1] < 0.3


def test_a_ring_is_what_the_tests_think():
    assert ring(8).degrees.tolist() == [4] * 8
    with pytest.raises(ProtocolError) as caught:
        terms_on().require_graph(ring(9))
    assert caught.value.reason is Reason.MISMATCH
