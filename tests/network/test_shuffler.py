"""The shuffler through a network: what holders hand in, in which order, and what is refused."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import chdtri

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network import shuffler as network
from shuffledp.network.graph import Graph
from shuffledp.network.shuffler import NetworkShuffler
from shuffledp.network.walk import RandomWalk

# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 3
NUM_TRIALS = 12_000

# A star of four leaves with one edge more: irregular and not bipartite.
GRAPH = Graph.from_edges(np.array([[0, 1], [0, 2], [0, 3], [0, 4], [1, 2]]))
WALK = RandomWalk(GRAPH)


def with_holders(monkeypatch, holders):
    """Let every walk end at these holders."""
    fixed = np.array(holders, dtype=np.int32)
    monkeypatch.setattr(network, "simulate_positions", lambda *arguments, starts: fixed)


def is_rejected(outcomes, counts):
    """Return whether counts of equally likely outcomes differ from equal ones, at the rate."""
    assert set(counts) <= set(outcomes)
    expected = counts.total() / len(outcomes)
    statistic = sum((counts[each] - expected) ** 2 / expected for each in outcomes)
    return statistic > chdtri(len(outcomes) - 1, FALSE_POSITIVE_RATE / NUM_TESTS)


def batches(protocol, seed):
    """Yield what is handed in, as tuples of the numbers of users, over and over."""
    entropy = Entropy.from_seed(seed)
    shuffler = NetworkShuffler(walk=WALK, rounds=1, protocol=protocol)
    for _ in range(NUM_TRIALS):
        yield tuple(shuffler.shuffle(np.arange(5), entropy).reports.tolist())


def test_a_simulation_of_hours_is_refused():
    NetworkShuffler(walk=WALK, rounds=10**8)
    with pytest.raises(ParameterError, match=r"rounds = 1,000,000,000 is not in .* or auto"):
        NetworkShuffler(walk=WALK, rounds=10**9)


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_without_rounds_everybody_hands_in_their_own(protocol):
    shuffler = NetworkShuffler(walk=WALK, rounds=0, protocol=protocol)
    batch = shuffler.shuffle(np.array([7, 5, 7, 9, 1]), Entropy.from_seed(0))
    assert batch.reports.tolist() == [7, 5, 7, 9, 1]
    assert batch.holders.tolist() == [0, 1, 2, 3, 4]
    assert batch.num_dummies == 0


def test_dummies_begin_at_uniform_users():
    shuffler = NetworkShuffler(walk=WALK, rounds=0)
    reports = np.concatenate([np.arange(5), np.full(5_000, 9)])
    batch = shuffler.shuffle(reports, Entropy.from_seed(11))
    assert len(batch.reports) == 5_005
    holders = batch.holders[batch.reports == 9]
    # False alarms: 1e-11 in all, by the normal law at seven deviations.
    assert np.all(np.abs(np.bincount(holders, minlength=5) - 1_000) < 7 * np.sqrt(800))
    assert batch.holders[batch.reports < 5].tolist() == [0, 1, 2, 3, 4]
    single = NetworkShuffler(walk=WALK, rounds=0, protocol="single")
    with pytest.raises(ParameterError, match="with protocol 'all'"):
        single.shuffle(reports, Entropy.from_seed(1))


def test_reports_stay_with_who_holds_them(monkeypatch):
    with_holders(monkeypatch, [3, 0, 3, 3, 0])
    batch = NetworkShuffler(walk=WALK, rounds=2).shuffle(np.arange(5), Entropy.from_seed(1))
    assert batch.holders.tolist() == [0, 0, 3, 3, 3]
    assert batch.holders.dtype == np.int32
    assert set(batch.reports[:2].tolist()) == {1, 4}
    assert set(batch.reports[2:].tolist()) == {0, 2, 3}
    assert batch.num_dummies == 0


def test_single_hands_in_one_report_a_holder(monkeypatch):
    with_holders(monkeypatch, [3, 0, 3, 3, 0])
    shuffler = NetworkShuffler(walk=WALK, rounds=2, protocol="single")
    batch = shuffler.shuffle(np.arange(5), Entropy.from_seed(1))
    assert batch.holders.tolist() == [0, 3]
    assert batch.reports[0] in (1, 4)
    assert batch.reports[1] in (0, 2, 3)
    assert batch.num_dummies == 3


def test_the_order_within_a_holder_is_uniform(monkeypatch):
    with_holders(monkeypatch, [3, 0, 3, 3, 0])
    outcomes = [(*a, *b) for a, b in product(permutations((1, 4)), permutations((0, 2, 3)))]
    assert not is_rejected(outcomes, Counter(batches("all", 11)))


def test_the_report_handed_in_alone_is_uniform(monkeypatch):
    with_holders(monkeypatch, [3, 0, 3, 3, 0])
    outcomes = list(product((1, 4), (0, 2, 3)))
    assert not is_rejected(outcomes, Counter(batches("single", 12)))


def test_an_order_by_user_would_be_noticed(monkeypatch):
    with_holders(monkeypatch, [3, 0, 3, 3, 0])
    monkeypatch.setattr(
        network.UniformShuffler, "shuffle", lambda self, rows, entropy: np.roll(rows, 1)
    )
    outcomes = list(product((1, 4), (0, 2, 3)))
    assert is_rejected(outcomes, Counter(batches("single", 13)))


def test_reports_travel_along_edges():
    batch = NetworkShuffler(walk=WALK, rounds=1).shuffle(np.arange(5), Entropy.from_seed(5))
    for user, holder in zip(batch.reports.tolist(), batch.holders.tolist(), strict=True):
        assert holder in GRAPH.neighbours_of(user).tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, "S3", bool])
@pytest.mark.parametrize("row", [(), (3,), (2, 5)])
def test_any_rows(dtype, row):
    generator = Entropy.from_seed(41).generator()
    rows = generator.integers(0, 100, size=(5, *row)).astype(dtype)
    kept = rows.copy()
    shuffler = NetworkShuffler(walk=WALK, rounds=3)
    users = shuffler.shuffle(np.arange(5), Entropy.from_seed(42)).reports
    for layout in (rows, np.asfortranarray(rows)):
        batch = shuffler.shuffle(layout, Entropy.from_seed(42))
        assert batch.reports.dtype == rows.dtype
        assert (batch.reports == rows[users]).all()
    assert (rows == kept).all()


def test_what_is_handed_in_is_read_only():
    batch = NetworkShuffler(walk=WALK, rounds=1).shuffle(np.arange(5), Entropy.from_seed(0))
    for array in (batch.reports, batch.holders):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": -1}, "rounds = -1 is below 0"),
        ({"rounds": 1.5}, "rounds = 1.5 is not a whole number"),
        ({"protocol": "both"}, "protocol = 'both' is not one of all, single"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(ParameterError, match=message):
        NetworkShuffler(**{"walk": WALK, "rounds": 1, **changes})


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        (np.arange(4), "reports has 4 rows and the graph 5 users"),
        (np.array(3), "single number"),
        (np.array(["a"] * 5, dtype=object), "holds Python objects"),
    ],
)
def test_bad_reports(reports, message):
    with pytest.raises(ParameterError, match=message):
        NetworkShuffler(walk=WALK, rounds=1).shuffle(reports, Entropy.from_seed(0))
