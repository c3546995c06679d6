"""Random walks: laws against exact fractions and dense powers, walkers against a plain twin."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_families import adjacency
from network.walks import position_distribution
from oracles.exact_walks import all_graphs, exact_laws, far_walk, shape, small_walks
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.network import walk_kernels as kernels
from shuffledp.network.graph import Graph
from shuffledp.network.walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    columns_at_a_time,
    move_laws,
    point_laws,
    relative_error,
    simulate_positions,
    threads,
)

WALKS = small_walks()


def random_graph(num_users, num_edges, seed=0):
    """Return a graph with about so many edges, some users without any."""
    generator = Entropy.from_seed(seed).generator()
    edges = generator.integers(0, num_users, size=(num_edges, 2))
    return Graph.from_edges(edges, num_users=num_users)


def dense(walk, round_number=0):
    """Return the matrix of a round, without collusion."""
    matrix = adjacency(walk.graph).toarray()
    stay, move = walk.stay_and_move(round_number)
    return np.diag(stay) + move[:, None] * matrix


# ---------------------------------------------------------------- laws
@pytest.mark.parametrize("name", WALKS)
def test_laws_are_those_of_exact_fractions(name):
    walk = WALKS[name]
    for rounds in range(4 if walk.absences else 9):
        exact = exact_laws(walk, rounds)
        laws = position_distribution(walk, np.arange(walk.num_users), rounds)
        error = Fraction(relative_error(walk, rounds))
        for i, together in enumerate(laws):
            for law in (together, position_distribution(walk, i, rounds)):
                for computed, true in zip(map(Fraction, law.tolist()), exact[i], strict=True):
                    assert abs(computed - true) <= error * min(computed, true)


def test_laws_on_all_graphs_of_four_users():
    for graph in all_graphs(4):
        walk = RandomWalk(graph, laziness=0.5)
        laws = position_distribution(walk, [0, 1, 2, 3], 5)
        np.testing.assert_allclose(laws, np.array(exact_laws(walk, 5), dtype=float), rtol=1e-14)


@pytest.mark.parametrize("laziness", [0.0, 0.2])
def test_many_starts_are_rows_of_the_dense_power(laziness):
    walk = RandomWalk(random_graph(150, 400), laziness=laziness)
    laws = position_distribution(walk, np.arange(150), 7)
    assert columns_at_a_time(150) == 64  # so that there are three blocks
    np.testing.assert_allclose(laws, np.linalg.matrix_power(dense(walk), 7), rtol=1e-12, atol=0)
    assert position_distribution(walk, 3, 7) == pytest.approx(laws[3], rel=1e-12, abs=0.0)


def test_degrees_of_every_remainder_are_added_up():
    # Rows are added four at a time, so hubs of 1 to 9 neighbours take every path.
    for degree in range(1, 10):
        star = Graph.from_edges([(0, k) for k in range(1, degree + 1)])
        laws = position_distribution(RandomWalk(star), np.arange(degree + 1), 1)
        assert laws[1:, 0].tolist() == [1.0] * degree
        assert laws[0, 1:] == pytest.approx(1.0 / degree)


def test_laws_move_on_from_where_they_are():
    walk = WALKS["absences, lazy"]
    laws = point_laws(walk, np.arange(5))
    for round_number in range(3):
        assert move_laws(walk, laws, round_number, round_number + 1) == 0
    assert (position_distribution(walk, np.arange(5), 3) == laws.T).all()


def test_a_walk_keeps_the_stationary_law():
    graph = random_graph(60, 300, seed=1)
    law = graph.stationary_law()
    moved = law.copy()
    move_laws(RandomWalk(graph, laziness=0.1), moved, 0, 25)
    assert moved == pytest.approx(law, rel=1e-13)


@pytest.mark.parametrize("laziness", [0.0, 0.25])
def test_rounds_after_laws_repeat_change_nothing_and_take_no_time(laziness):
    walk = RandomWalk(random_graph(60, 300, seed=1), laziness=laziness)
    at_once, step_by_step = point_laws(walk, np.arange(9)), point_laws(walk, np.arange(9))
    assert move_laws(walk, at_once, 0, 1001) == 0
    for round_number in range(1001):
        move_laws(walk, step_by_step, round_number, round_number + 1)
    assert (at_once == step_by_step).all()
    move_laws(walk, at_once, 1001, 10**12 + 1)  # an even number of rounds on
    assert (at_once == step_by_step).all()


def test_laws_in_threads_end_with_their_caller():
    walk = RandomWalk(Graph.from_edges([(i, (i + 1) % 2001) for i in range(2001)]))

    def follow(start):
        if start == 0:
            raise LookupError
        move_laws(walk, point_laws(walk, np.array([start])), 0, 10**12)

    with pytest.raises(LookupError):
        list(threads(follow, [0, 1, 2]))


def test_who_is_absent_keeps_all_and_still_receives():
    pair = shape("pair")
    away = [[False, True], [False, True], [False, False]]
    walk = RandomWalk(pair, absences=away)
    assert position_distribution(walk, [0, 1], 2).tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert position_distribution(walk, [0, 1], 3).tolist() == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("laws_at_once", [False, True])
def test_tiny_probabilities_become_zero_and_are_counted(laws_at_once):
    walk, rounds = far_walk()
    law = np.zeros(19)
    law[0] = 1.0
    laws = law.reshape(19, 1).copy() if laws_at_once else law
    flushed = move_laws(walk, laws, 0, rounds)
    exact = exact_laws(walk, rounds)[0]
    assert 0 < exact[18] < LEAST_PROBABILITY < exact[17]
    law = laws.reshape(-1)
    assert law[:18] == pytest.approx([float(p) for p in exact[:18]], rel=1e-13, abs=0)
    assert law[18] == 0.0
    assert flushed > 0


def test_the_compiled_threshold_is_the_stated_one():
    assert kernels.FLUSH_BELOW == LEAST_PROBABILITY


def test_the_relative_error_counts_operations():
    star = Graph.from_edges([(0, k) for k in range(1, 6)])
    walk = RandomWalk(star)
    assert relative_error(walk, 0) == 0.0
    assert relative_error(walk, 10) == pytest.approx(10 * 8 * 2.0**-52)
    assert relative_error(WALKS["nobody knows anybody"], 3) > 0.0
    with pytest.raises(ParameterError, match="no correct digit"):
        relative_error(walk, 10**16)


def test_blocks_are_narrow_for_many_users():
    assert [columns_at_a_time(n) for n in (1, 10_000, 60_000, 10**9)] == [64, 64, 16, 8]


# ---------------------------------------------------------------- the walk itself
@given(laziness=st.floats(0.0, 1.0, exclude_max=True))
def test_laziness_is_the_nearest_multiple(laziness):
    kept = RandomWalk(shape("pair"), laziness=laziness).laziness
    assert (Fraction(kept) * 2**53).denominator == 1
    assert abs(Fraction(kept) - Fraction(laziness)) <= Fraction(1, 2**54)
    assert 0.0 <= kept < 1.0
    assert Fraction(1.0 - kept) == 1 - Fraction(kept)


def test_masks_are_copied_and_cannot_be_changed():
    mask = np.array([True, False])
    walk = RandomWalk(shape("pair"), absences=(mask,))
    mask[:] = True
    assert walk.absences[0].tolist() == [True, False]
    with pytest.raises(ValueError, match="read-only"):
        walk.absences[0][0] = False


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: RandomWalk(g, laziness=1.0), r"not in \[0, 1\)"),
        (lambda g: RandomWalk(g, laziness=-0.1), r"not in \[0, 1\)"),
        (lambda g: RandomWalk(g, laziness=float("nan")), "laziness"),
        (lambda g: RandomWalk(g, absences=[[True]]), r"absences\[0\] has shape \(1,\)"),
        (lambda g: RandomWalk(g, absences=[[1, 0]]), "dtype int"),
    ],
)
def test_walks_that_make_no_sense(make, message):
    with pytest.raises(ParameterError, match=message):
        make(shape("pair"))


@pytest.mark.parametrize(
    ("start", "rounds", "message"),
    [
        (0, -1, "rounds = -1"),
        (0, 1.5, "not a whole number"),
        (0, 3, "rounds = 3 is above 2"),
    ],
)
def test_arguments_that_make_no_sense(start, rounds, message):
    walk = RandomWalk(shape("pair"), absences=np.zeros((2, 2), dtype=bool))
    with pytest.raises(ParameterError, match=message):
        position_distribution(walk, start, rounds)


def test_no_starts():
    assert position_distribution(WALKS["path"], [], 2).shape == (0, 4)


# ---------------------------------------------------------------- walkers
def plain_walkers(walk, round_number, holders, coins, half_words):
    """Move walkers by a round, and return how many half words that took."""
    graph = walk.graph
    words = iter(half_words)
    used = 0
    for i, holder in enumerate(holders):
        around = graph.neighbours_of(holder).tolist()
        away = bool(walk.absences) and walk.absences[round_number][holder]
        if away or not around or (int(coins[i]) >> 11) < int(walk.laziness * 2**53):
            continue
        while True:
            used += 1
            product = int(next(words)) * len(around)
            if product % 2**32 >= 2**32 % len(around):
                break
        holders[i] = around[product >> 32]
    return used


@pytest.mark.parametrize("name", ["star and edge", "absences, lazy", "triangle and two alone"])
def test_walkers_move_as_in_plain_python(name):
    walk = WALKS[name]
    entropy = Entropy.from_seed(3)
    holders = np.tile(np.arange(5, dtype=np.int32), 40)
    coins = entropy.words(200)
    # Refused by every degree that does not divide 2^32, so that some walkers draw again.
    half_words = entropy.words(150).view(np.uint32)
    half_words[::3] = 0
    expected = holders.tolist()
    plain_walkers(walk, 0, expected, coins, half_words)
    away = walk.absences[0] if walk.absences else np.zeros(0, dtype=bool)
    graph, threshold = walk.graph, np.uint64(walk.laziness * 2.0**53)
    done = 0
    for piece in np.array_split(half_words, 7):  # the draws run out in the middle
        done = kernels.step_walkers(
            graph.starts, graph.neighbours, away, threshold, coins, piece, holders, done
        )
    assert done == 200
    assert holders.tolist() == expected


def test_a_seed_gives_the_same_positions():
    walk = RandomWalk(random_graph(80, 200), laziness=0.25)
    first, second = (simulate_positions(walk, 5, Entropy.from_seed(9)) for _ in range(2))
    assert first.dtype == np.int32
    assert first.tolist() == second.tolist()


def test_walkers_stay_where_they_must():
    walk = RandomWalk(shape("triangle and two alone"), absences=[[True, True, False] + [False] * 2])
    for seed in range(20):
        holders = simulate_positions(walk, 1, Entropy.from_seed(seed))
        assert holders[[0, 1, 3, 4]].tolist() == [0, 1, 3, 4]
        assert holders[2] in (0, 1)
    assert simulate_positions(walk, 0, Entropy.from_seed(1)).tolist() == [0, 1, 2, 3, 4]


def test_many_walkers_from_chosen_starts():
    # On an even cycle parity is kept, whatever the draws; there are several groups of walkers.
    cycle = Graph.from_edges([(i, (i + 1) % 6) for i in range(6)])
    starts = np.arange(200_000) % 6
    holders = simulate_positions(RandomWalk(cycle), 3, Entropy.from_seed(2), starts=starts)
    assert ((holders - starts) % 2 == 1).all()
    assert np.isin((holders - starts) % 6, [1, 3, 5]).all()
    nobody = starts[:0]
    assert simulate_positions(RandomWalk(cycle), 3, Entropy.from_seed(2), starts=nobody).size == 0


def test_rounds_without_known_absences_are_refused():
    with pytest.raises(ParameterError, match="above 3"):
        simulate_positions(WALKS["absences"], 4, Entropy.from_seed(0))
