"""The guarantee of an exchange as it went, against the exact loss of small ones."""

import itertools
import math
import re
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, poisson

from graph_families import complete_graph
from network.walks import position_distribution
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.walk import RandomWalk
from shuffledp.peers.exchange_account import (
    Arrived,
    Exchange,
    ExchangeRecord,
    mean_loads,
    overload_probability,
)

DELTA = 1e-2


def everything(nodes):
    """Return what arrives if all that these nodes hold does."""
    return Arrived(num_reports=len(nodes), handed_in=np.array(sorted(nodes), dtype=np.int64))


def guarantee(collection, absent=None, nodes=None, delta=DELTA, silent=(), **options):
    """Return what is guaranteed if some users hand in nothing, and all others all they hold."""
    terms, graph = collection.terms, collection.graph
    nodes = range(terms.num_users) if nodes is None else nodes
    record = ExchangeRecord.of(terms, nodes, absent or [[]] * terms.rounds)
    arrived = everything(set(nodes) - set(silent))
    exchange = Exchange(terms, graph, record, arrived, **options)
    return exchange.guarantee(collection.asked.randomizer.profile, delta=delta)


def view(laws, values, epsilon0, silent=()):
    """Return the law of how many reports, and how many ones, each holder hands in."""
    keep = math.exp(epsilon0) / (1.0 + math.exp(epsilon0))
    places = len(laws)
    found = {((0, 0),) * places: 1.0}
    for law, value in zip(laws, values, strict=True):
        grown = defaultdict(float)
        for seen, chance in found.items():
            for place, one in itertools.product(range(places), (0, 1)):
                report = keep if one == value else 1.0 - keep
                after = list(seen)
                if place not in silent:
                    after[place] = (seen[place][0] + 1, seen[place][1] + one)
                grown[tuple(after)] += chance * law[place] * report
        found = grown
    return found


def exact_delta(laws, epsilon0, epsilon, silent=()):
    """Return the exact delta over all victims, both directions, and all values of others."""
    worst = 0.0
    for victim in range(len(laws)):
        for others in itertools.product((0, 1), repeat=len(laws) - 1):
            first, second = (
                view(laws, [*others[:victim], own, *others[victim:]], epsilon0, silent)
                for own in (0, 1)
            )
            for one, two in ((first, second), (second, first)):
                loss = sum(
                    max(chance - math.exp(epsilon) * two.get(seen, 0.0), 0.0)
                    for seen, chance in one.items()
                )
                worst = max(worst, loss)
    return worst


@pytest.mark.parametrize(
    ("facts", "said", "num_confirmed"),
    [
        ({}, None, 6),
        ({"num_reports": 7}, "1 reports more than users", 6),
        ({"num_reports": 5}, "1 reports are missing, more than the 0 users", 6),
        ({"num_reports": 5, "protocol": "single"}, None, 6),
        ({"short_since": (3, 2)}, "2 users report .* missing, since round 2", 4),
        ({"num_contradicting": 1}, "showed 1 users another record", 5),
    ],
)
def test_each_doubt_is_told(make_collection, facts, said, num_confirmed):
    collection = make_collection(protocol=facts.pop("protocol", "all"))
    terms, arrived = collection.terms, replace(everything(range(6)), **facts)
    found = arrived.doubts(terms, 6, np.empty(0))
    assert [bool(re.search(said or "", each)) for each in found] == [True] * (said is not None)
    assert arrived.num_confirmed == num_confirmed
    record = ExchangeRecord.of(terms, range(6), [[]] * terms.rounds)
    assert Exchange(terms, collection.graph, record, arrived).can_hide is (said is None)


def test_who_handed_in_nothing_may_have_held_so_many(make_collection):
    # The last number that chance explains: 20 reports are at a user with probability 0.1 each.
    terms, kept = make_collection().terms, np.array([2.0])
    allowed = [
        missing
        for missing in range(1, 21)
        if not replace(everything(range(20)), num_reports=20 - missing).doubts(terms, 20, kept)
    ]
    assert allowed == list(range(1, allowed[-1] + 1))
    assert binom.sf(allowed[-1], 20, 0.1) < 1e-9 < poisson.sf(allowed[-1] - 1, 2.0)


@pytest.mark.parametrize(("silent", "is_doubted"), [(0, False), (59, True)])
def test_what_was_held_at_the_end_counts(make_collection, silent, is_doubted):
    # All walk to three users in the middle: one at the rim holds half a report, not one.
    graph = Graph.from_edges([(i, j) for i in range(60) for j in range(min(i, 3))])
    terms = make_collection(graph).terms
    record = ExchangeRecord.of(terms, range(60), [[]] * terms.rounds)
    arrived = replace(everything(set(range(60)) - {silent}), num_reports=49)
    assert bool(Exchange(terms, graph, record, arrived).doubts) is is_doubted


def test_no_more_dummies_than_chance_draws_are_doubted(make_collection):
    terms, one = make_collection(dummies=DummyLaw.from_text("poisson:2.0")).terms, everything([0])
    number = 1
    while not any("made up" in each for each in one.doubts(terms, 1, np.empty(0))):
        number += 1
        one = replace(one, num_reports=number)
    # One report, and 4 dummies on average.
    assert 1e-25 < poisson.sf(number - 2, 4.0) < 1e-9


KITE = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])


LAW = DummyLaw.from_text("poisson:2.0")


@pytest.mark.parametrize(
    ("nodes", "options"),
    [([0, 1, 2, 3], {"even_traffic": True}), ([1, 2, 3], {}), ([0, 1, 2, 3], {"dummies": LAW})],
)
def test_an_overload_is_of_all_that_the_registered_send(make_collection, nodes, options):
    collection = make_collection(KITE, least_registered=1, **options)
    terms, away = collection.terms, [[node for node in range(4) if node not in nodes]] * 3
    record = ExchangeRecord.of(terms, nodes, away)
    found = Exchange(terms, KITE, record, everything(nodes))
    walk = RandomWalk(
        KITE.subgraph(np.array(nodes)), absences=list(np.zeros((3, len(nodes)), bool))
    )
    each = 1.0 + 2.0 * 2 * ("dummies" in options)  # of two answers
    expected = overload_probability(
        walk,
        each * mean_loads(walk, 3),
        np.array([terms.slots[node] for node in nodes]),
        per_neighbour=terms.per_neighbour,
        handed_in=np.ones(len(nodes), dtype=bool),
    )
    assert found.overload == pytest.approx(expected, rel=1e-9)
    assert 0.0 < expected < 1e-3


def test_dummies_that_may_be_held_by_who_left_are_not_counted(make_collection):
    collection = make_collection(dummies=LAW, least_registered=1)
    record = ExchangeRecord.of(collection.terms, range(6), [[], [5], [5]])
    for nodes, dummies in ((range(6), LAW), (range(5), None)):
        exchange = Exchange(collection.terms, collection.graph, record, everything(nodes))
        assert exchange.asked(DELTA)["dummies"] == dummies


@pytest.mark.parametrize(
    "absent", [[[], [], []], [[3], [3], []], [[0, 1], [], [2]], [[0, 1, 2, 3], [], []]]
)
def test_epsilon_is_at_least_what_is_lost(make_collection, absent):
    collection = make_collection(KITE, rounds=3, epsilon0=1.0, least_registered=1)
    found = guarantee(collection, absent)
    masks = np.zeros((3, 4), dtype=bool)
    for row, away in enumerate(absent):
        masks[row, away] = True
    walk = RandomWalk(KITE, absences=masks)
    laws = position_distribution(walk, np.arange(4), 3)
    randomizer = collection.asked.randomizer
    assert exact_delta(laws, randomizer.epsilon0, found.epsilon_upper) <= DELTA


@pytest.mark.parametrize("leaver", range(4))
@pytest.mark.parametrize("left", [0, 1, 2])
def test_epsilon_is_at_least_what_is_lost_where_somebody_left(make_collection, leaver, left):
    collection = make_collection(KITE, rounds=3, epsilon0=1.0, least_registered=1)
    absent = [[leaver] if number >= left else [] for number in range(3)]
    masks = np.array([[user in away for user in range(4)] for away in absent])
    laws = position_distribution(RandomWalk(KITE, absences=masks), np.arange(4), 3)
    epsilon0 = collection.asked.randomizer.epsilon0
    for delta in (DELTA, 0.2):
        found = guarantee(collection, absent, silent=[leaver], delta=delta)
        assert exact_delta(laws, epsilon0, found.epsilon_upper, silent=[leaver]) <= delta


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize(("left", "most"), [(19, 0.7285), (14, 0.735), (4, 0.848), (0, 0.866)])
def test_one_who_leaves_for_good_takes_no_guarantee_from_the_others(
    make_collection, left, most, even
):
    steps = (1, 6, 17, 38)  # the graph of the guide
    graph = Graph.from_edges([(user, (user + step) % 100) for user in range(100) for step in steps])
    collection = make_collection(graph, rounds=20, epsilon0=2.0, even_traffic=even)
    absent = [[7] if number >= left else [] for number in range(20)]
    found = guarantee(collection, absent, silent=[7], delta=1e-3)
    assert 0.7283 < found.epsilon_upper <= most
    # Whoever comes back may have dropped what was too much, and is counted.
    if left == 0 and not even:
        assert guarantee(collection, absent, delta=1e-3).epsilon_upper == 2.0


def test_dishonest_users_are_left_out_of_the_count(make_collection):
    collection = make_collection(complete_graph(40), rounds=6, epsilon0=2.0)
    everybody = guarantee(collection)
    found = guarantee(collection, num_dishonest=10)
    assert found.num_users == 30
    mixing, profile = NetworkMixing(collection.graph), collection.asked.randomizer.profile
    expected = mixing.epsilon(profile, rounds=6, delta=DELTA, num_dishonest=10, with_lower=False)
    assert found.epsilon_upper == pytest.approx(expected.upper, rel=1e-6)
    assert found.epsilon_upper > everybody.epsilon_upper
    for many in (39, 10**9):
        assert guarantee(collection, num_dishonest=many).epsilon_upper == 2.0
    with pytest.raises(ParameterError, match="num_dishonest = -1"):
        guarantee(collection, num_dishonest=-1)


def test_who_did_not_register_hides_nobody(make_collection):
    collection = make_collection(KITE, rounds=3, epsilon0=1.0, least_registered=1)
    absent = [[3], [3], [3]]
    found = guarantee(collection, absent, nodes=[0, 1, 2])
    laws = position_distribution(RandomWalk(KITE.subgraph([0, 1, 2])), np.arange(3), 3)
    assert exact_delta(laws, collection.asked.randomizer.epsilon0, found.epsilon_upper) <= DELTA
    assert found.num_users == 3


def test_with_everybody_there_it_is_the_account_of_the_graph(make_collection):
    collection = make_collection(complete_graph(40), rounds=6, epsilon0=2.0)
    terms = collection.terms
    walk = RandomWalk(collection.graph, absences=list(np.zeros((6, 40), dtype=bool)))
    handed_in = np.ones(40, dtype=bool)
    how = {"per_neighbour": 0, "handed_in": handed_in}
    overload = overload_probability(walk, mean_loads(walk, 6), terms.slots, **how)
    assert 0.0 < overload < 1e-8
    mixing = NetworkMixing(collection.graph)
    profile = collection.asked.randomizer.profile
    found = guarantee(collection)
    # An overload tilts the paths of all reports: it costs (1 + e) times its probability.
    for delta in (DELTA, 30.0 * overload):
        held = guarantee(collection, delta=delta).epsilon_upper
        left = delta - (1.0 + math.exp(held)) * overload
        expected = mixing.epsilon(profile, rounds=6, delta=left, with_lower=False)
        assert expected.upper <= held * (1.0 + 1e-9)
        assert held == pytest.approx(expected.upper, rel=1e-3)
    assert found.lower is None
    assert found.epsilon_upper < 1.0
    assert "record of who was absent" in " ".join(found.bound.assumptions)


def test_absences_cost_privacy_and_never_more_than_all_of_it(make_collection):
    collection = make_collection(complete_graph(40), rounds=2, epsilon0=2.0)
    epsilon0 = collection.asked.randomizer.epsilon0
    nobody = guarantee(collection).epsilon_upper
    one = guarantee(collection, [[0], [0]]).epsilon_upper
    everybody = guarantee(collection, [list(range(40))] * 2).epsilon_upper
    assert nobody < one < everybody <= epsilon0
    assert everybody > 0.98 * epsilon0  # only what delta forgives is taken off


@pytest.mark.parametrize(("nodes", "delta"), [([5], DELTA), ([], DELTA), (range(6), 1e-12)])
def test_where_nothing_hides_the_randomizer_alone_counts(make_collection, nodes, delta):
    collection = make_collection(least_registered=1)
    absent = [[node for node in range(6) if node not in nodes]] * 3
    record = ExchangeRecord.of(collection.terms, nodes, absent)
    profile = LocalProfile(epsilon0=1.0)
    exchange = Exchange(collection.terms, collection.graph, record, everything(nodes))
    found = exchange.guarantee(profile, delta=delta)
    assert found.epsilon_upper == 1.0
    assert found.bound.method == "local randomizer alone"


def test_a_delta_of_the_randomizer_s_own_that_is_too_large_leaves_nothing(make_collection):
    collection = make_collection(least_registered=1)
    record = ExchangeRecord.of(collection.terms, [], [list(range(6))] * 3)
    profile = LocalProfile(epsilon0=1.0, delta0=0.5)
    exchange = Exchange(collection.terms, collection.graph, record, everything([]))
    found = exchange.guarantee(profile, delta=DELTA)
    assert found.epsilon_upper == math.inf


def test_a_bipartite_graph_is_accounted_for_what_it_is(make_collection):
    square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)])
    collection = make_collection(square, rounds=3, epsilon0=1.0)
    found = guarantee(collection)
    # Nobody hides: only what delta forgives is taken off epsilon0.
    assert 0.98 < found.epsilon_upper <= collection.asked.randomizer.epsilon0


def test_single_is_accounted_too(make_collection):
    collection = make_collection(complete_graph(40), rounds=4, epsilon0=2.0, protocol="single")
    away = guarantee(collection, [[0], [], [], []]).epsilon_upper
    assert 0.0 < away < 2.0


@pytest.mark.parametrize(
    ("even", "said"),
    [
        (False, "keeps its record of who sent envelopes to whom from the analyzer"),
        (True, "may show the analyzer all its records"),
    ],
)
def test_what_is_asked_of_the_relay_depends_on_the_traffic(make_collection, even, said):
    collection = make_collection(rounds=2, even_traffic=even)
    assumptions = " ".join(guarantee(collection).bound.assumptions)
    assert said in assumptions
    assert ("may show" in assumptions) == even


@pytest.mark.parametrize(
    "absent",
    [None, 3, [[]], [[]] * 4, [[6], [], []], [[-1], [], []], [["x"], [], []], [[1e300], [], []]],
)
def test_a_record_that_cannot_be_read_is_refused(collection, absent):
    with pytest.raises(DataError, match="cannot be read"):
        ExchangeRecord.of(collection.terms, range(6), absent)


def test_a_record_that_says_who_never_registered_was_there_is_refused(collection):
    with pytest.raises(DataError, match="does not fit its roster"):
        ExchangeRecord.of(collection.terms, range(5), [[5], [], [5]])
