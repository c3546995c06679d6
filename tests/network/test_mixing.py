"""How well a walk hides where reports began, for all users, exactly or by eigenvalues."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from graph_families import adjacency, complete_graph, cycle_graph, random_regular_graph, star_graph
from network.walks import ANY, DELTA, PENDANT, position_distribution, wheel
from shuffledp.amplification.registry import account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.network import mixing as network_mixing
from shuffledp.network.account import account_network
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import Hiding, NetworkMixing, Weighing
from shuffledp.network.positions import remote_users as remote_bounds
from shuffledp.network.positions import spectrum
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.privacy import Weights, network_walk_epsilon
from shuffledp.network.walk import RandomWalk


def exact_overlaps(graph: Graph, rounds: int) -> np.ndarray:
    """Return kappa[v, i] from dense powers of the walk's matrix."""
    walk = adjacency(graph).toarray().astype(float)
    walk /= walk.sum(axis=1, keepdims=True)
    laws = np.linalg.matrix_power(walk, rounds)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(laws[:, None, :] > 0, laws[None] / laws[:, None, :], np.inf)
    return np.minimum(ratios.min(axis=2), 1.0)


@pytest.mark.parametrize("method", ["exact", "spectral"])
@pytest.mark.parametrize("rounds", [0, 1, 2, 5, 20, 60])
def test_overlaps_hold_for_every_victim(method, rounds):
    for graph in (PENDANT, wheel(7), complete_graph(5)):
        hiding = NetworkMixing(graph, positions=method).hiding(rounds)
        for victim, row in enumerate(exact_overlaps(graph, rounds)):
            others = np.sort(np.delete(row, victim))
            assert (hiding.overlaps <= others * (1 + 1e-12) + 1e-12).all()


def test_without_rounds_nobody_hides_anybody():
    found = NetworkMixing(PENDANT).epsilon(ANY, rounds=0, delta=DELTA)
    assert found.upper == pytest.approx(1.0, rel=2e-3)  # what delta buys of a single report
    assert found.lower == pytest.approx(found.upper, rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "spectral"])
def test_in_the_limit_it_is_a_uniform_shuffle(method):
    graph = wheel(60)
    uniform = account_epsilon(ANY, num_users=60, delta=DELTA)
    mixing = NetworkMixing(graph, positions=method)
    assert mixing.limit(ANY, delta=DELTA).upper == pytest.approx(uniform.upper, rel=1e-12)
    found = mixing.epsilon(ANY, rounds=300, delta=DELTA)
    assert found.upper == pytest.approx(uniform.upper, rel=1e-3)
    assert found.upper >= uniform.upper
    assert found.lower == pytest.approx(uniform.lower, rel=1e-9)


@pytest.mark.parametrize(
    ("method", "num_users"),
    [("exact", 60), ("spectral", 20), pytest.param("spectral", 60, marks=pytest.mark.slow)],
)
def test_epsilon_is_that_of_the_worst_user(method, num_users):
    for graph, rounds in ((wheel(7), 3), (wheel(num_users), 6), (PENDANT, 5)):
        hiding = NetworkMixing(graph, positions=method).hiding(rounds)
        found = hiding.epsilon(ANY, delta=DELTA, with_lower=False).upper
        walk = Weighing(hiding.bounds, ANY, {"delta": DELTA}).walk
        for victim in range(min(graph.num_users, 7)):
            weights = hiding.bounds.weights(np.array([victim]))
            weighed = walk.epsilon(Weights(*weights), DELTA)
            overlaps = np.delete(hiding.bounds.low / hiding.bounds.high[victim], victim)
            overlaps = np.clip(overlaps * (1.0 - 1e-12), 0.0, 1.0)
            hidden = network_walk_epsilon(ANY, overlaps=overlaps, delta=DELTA).upper
            assert min(weighed, hidden) <= found * (1 + 1e-9)


def test_many_users_are_accounted_for_together(monkeypatch):
    hiding = NetworkMixing(PENDANT, positions="exact").hiding(6)
    plain = hiding.epsilon(ANY, delta=DELTA, with_lower=False).upper
    monkeypatch.setattr(network_mixing, "_MOST_EVALUATIONS", 0)
    assert hiding.epsilon(ANY, delta=DELTA, with_lower=False).upper >= plain * (1.0 - 1e-3)
    assert not hiding.meets(ANY, epsilon=1e-3, delta=DELTA)


def test_more_eigenpairs_are_sought_where_they_tell_more(monkeypatch):
    monkeypatch.setattr(remote_bounds, "_MANY", 2.0)  # what is roughly known is not followed
    graph, stages = random_regular_graph(420, 3, Entropy.from_seed(3)), []
    listening = NetworkMixing(
        graph, positions="spectral", on_progress=lambda *each: stages.append(each)
    )
    few, some = listening.position_bounds_at([3, 60])
    listening.position_bounds(61)
    assert stages.count(("more eigenvalues", 1, 1)) == 1
    (exact,) = NetworkMixing(graph, positions="exact").position_bounds_at([60])
    assert (some.low <= exact.low * (1.0 + 1e-9)).all()
    monkeypatch.setattr(network_mixing, "_MANY_PAIRS", 0)
    before = NetworkMixing(graph, positions="spectral").position_bounds(60)
    assert some.low.sum() > before.low.sum()
    assert few.low.max() == 0.0


def test_a_search_that_is_given_up_proves_nothing():
    # As soon as one user needs nearly what is known to hold, that is the answer for all.
    hiding = NetworkMixing(wheel(60), positions="exact").hiding(6)
    weighing = Weighing(hiding.bounds, ANY, {"delta": DELTA})
    users = weighing.users
    each = (Weights(*hiding.bounds.weights(users[[k]])) for k in (0, 1, 59))
    worst = max(weighing.walk.epsilon(weights, DELTA) for weights in each)
    for share in (0.5, 0.995, 1.0, 1.005, 1.5):
        found = weighing.epsilon(share * worst)
        assert found >= min(share, 1.0) * worst * (1.0 - 2e-4)


@pytest.mark.parametrize("method", ["auto", "exact", "spectral"])
@pytest.mark.parametrize("protocol", ["all", "single"])
def test_fewest_rounds_are_enough_and_one_less_is_not(method, protocol):
    mixing = NetworkMixing(wheel(60), positions=method)
    limit = mixing.limit(ANY, delta=DELTA, protocol=protocol).upper
    rounds = mixing.fewest_rounds(ANY, delta=DELTA, within=0.05, protocol=protocol)
    ask = {"delta": DELTA, "protocol": protocol, "with_lower": False}
    assert mixing.epsilon(ANY, rounds=rounds, **ask).upper <= 1.0501 * limit
    assert mixing.epsilon(ANY, rounds=rounds - 1, **ask).upper > 1.0499 * limit


@pytest.mark.slow
def test_exact_positions_are_as_good_as_eigenvalues():
    exact, spectral = (NetworkMixing(wheel(200), positions=name) for name in ("exact", "spectral"))
    for rounds in (4, 8, 11, 14):
        limit = spectral.epsilon(ANY, rounds=rounds, delta=1e-6).upper * (1.0 + 1e-4)
        assert exact.epsilon(ANY, rounds=rounds, delta=1e-6).upper <= limit
    needed = [each.fewest_rounds(ANY, delta=1e-6, within=0.01) for each in (exact, spectral)]
    assert needed[0] <= needed[1]


def test_a_search_on_a_grid_finds_the_same(monkeypatch):
    graph = wheel(60)
    plain = NetworkMixing(graph, positions="exact").fewest_rounds(ANY, delta=DELTA, within=0.001)
    monkeypatch.setattr("shuffledp.network.mixing._MOST_KEPT_NUMBERS", 60 * 160 * 10.0)
    mixing = NetworkMixing(graph, positions="exact")
    assert mixing.fewest_rounds(ANY, delta=DELTA, within=0.001) == plain


def test_a_loose_target_needs_no_rounds():
    assert NetworkMixing(PENDANT).fewest_rounds(ANY, delta=DELTA, within=100.0) == 0


def test_dishonest_users_hide_nobody():
    mixing = NetworkMixing(wheel(60))
    honest = mixing.epsilon(ANY, rounds=200, delta=DELTA).upper
    fewer = mixing.epsilon(ANY, rounds=200, delta=DELTA, num_dishonest=20).upper
    uniform = account_epsilon(ANY, num_users=40, delta=DELTA).upper
    assert honest < fewer
    assert fewer == pytest.approx(uniform, rel=1e-2)
    assert fewer >= uniform


def test_lazy_reports_mix_on_a_bipartite_graph():
    mixing = NetworkMixing(star_graph(40), laziness=0.25)
    uniform = account_epsilon(ANY, num_users=40, delta=DELTA).upper
    assert mixing.epsilon(ANY, rounds=200, delta=DELTA).upper == pytest.approx(uniform, rel=1e-3)


def test_position_laws_cover_every_user():
    graph, rounds = wheel(9), 4
    walk = adjacency(graph).toarray().astype(float)
    walk /= walk.sum(axis=1, keepdims=True)
    laws = np.linalg.matrix_power(walk, rounds)
    for method in ("exact", "spectral"):
        hiding = NetworkMixing(graph, positions=method).hiding(rounds)
        assert (laws <= hiding.position_law * (1 + 1e-12)).all()


def test_progress_is_reported():
    stages = set()
    mixing = NetworkMixing(wheel(30), on_progress=lambda stage, done, total: stages.add(stage))
    mixing.fewest_rounds(ANY, delta=DELTA)
    assert "eigenvalues" in stages
    assert len(stages) == 2


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph.from_edges([(0, 1)]), "the graph has 2 users: at least 3"),
        (Graph.from_edges([(0, 1), (1, 2), (0, 2)], num_users=5), "2 of 5 users have no neigh"),
        (Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 4)]), "2 components"),
        (star_graph(5), "bipartite.*laziness=0.2"),
        (cycle_graph(6), "bipartite"),
    ],
)
def test_graphs_on_which_reports_do_not_mix_are_refused(graph, message):
    with pytest.raises(ParameterError, match=message):
        NetworkMixing(graph)


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match="positions = 'fast' is not one of"):
        NetworkMixing(PENDANT, positions="fast")
    mixing = NetworkMixing(PENDANT)
    with pytest.raises(ParameterError, match="within = 0"):
        mixing.fewest_rounds(ANY, delta=DELTA, within=0.0)
    with pytest.raises(ParameterError, match="within = nan"):
        mixing.fewest_rounds(ANY, delta=DELTA, within=float("nan"))
    with pytest.raises(ParameterError, match="delta = 0"):
        mixing.fewest_rounds(ANY, delta=0.0)
    with pytest.raises(ParameterError, match="rounds = -1"):
        mixing.hiding(-1)


def test_exact_laws_of_too_many_users_are_refused(monkeypatch):
    monkeypatch.setattr("shuffledp.network.mixing._MOST_EXACT_USERS", 3)
    mixing = NetworkMixing(PENDANT, positions="exact")
    with pytest.raises(ParameterError, match="positions = 'exact' follows each of 4 users"):
        mixing.hiding(2)
    assert NetworkMixing(PENDANT).position_bounds(2).method == "spectral"


@pytest.mark.parametrize("positions", ["exact", "auto"])
def test_exact_laws_that_were_asked_for_say_what_is_quicker(positions):
    stages = []
    mixing = NetworkMixing(
        PENDANT, positions=positions, on_progress=lambda stage, *_: stages.append(stage)
    )
    mixing.position_bounds(2)
    hint = " (quicker: positions='spectral')"
    assert "position laws" + hint * (positions == "exact") in stages


def test_a_graph_that_hardly_mixes_is_given_up(monkeypatch):
    monkeypatch.setattr("shuffledp.network.mixing._MOST_ROUNDS", 8)
    with pytest.raises(InfeasibleTargetError, match="no 8 rounds are proved to be enough"):
        NetworkMixing(cycle_graph(101), positions="spectral").fewest_rounds(ANY, delta=DELTA)


def test_the_spectrum_and_rows_are_kept_for_as_long_as_the_graph(monkeypatch):
    spectra, moved = [], []
    make, move = spectrum.walk_spectrum, remote_bounds.move_laws
    monkeypatch.setattr(
        spectrum, "walk_spectrum", lambda *a, **k: spectra.append(k) or make(*a, **k)
    )
    monkeypatch.setattr(remote_bounds, "move_laws", lambda *a: moved.append(a[2:]) or move(*a))
    monkeypatch.setattr(remote_bounds, "_LARGEST_ERROR", -1.0)  # nothing is summed
    monkeypatch.setattr(remote_bounds, "_LARGEST_MIDDLE_ERROR", -1.0)
    graph = wheel(60)
    asked = {"delta": DELTA, "rounds": 20, "positions": "spectral"}
    first = account_network(graph, ANY, **asked)
    rows = len(moved)
    assert rows > 0
    assert account_network(graph, ANY, **asked) == first
    assert (len(spectra), len(moved)) == (1, rows)
    account_network(graph, ANY, laziness=0.5, **asked)
    account_network(wheel(60), ANY, **asked)
    assert len(spectra) == 3  # another walk, and another graph
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert kept() is None


@pytest.mark.slow
def test_another_eigensolver_gives_the_same_numbers(monkeypatch):
    # Eigenvectors of equal eigenvalues are any basis: here that of the users in another order.
    users, solver = Entropy.from_seed(5).generator().permutation(60), np.linalg.eigh

    def reordered(matrix):
        values, vectors = solver(matrix[np.ix_(users, users)])
        return values, vectors[np.argsort(users)]

    found = []
    for eigh in (solver, reordered):
        monkeypatch.setattr(np.linalg, "eigh", eigh)
        graph = Graph.from_edges([(i, (i + step) % 60) for i in range(60) for step in (1, 7, 26)])
        mixing = NetworkMixing(graph, positions="spectral")
        hiding = mixing.hiding(9)
        found.append((mixing.epsilon(ANY, rounds=9, delta=1e-3).upper, hiding.worst_user))
    assert found[0] == (pytest.approx(found[1][0], rel=1e-12), found[1][1])


def test_hiding_of_no_bounds_but_low_and_high():
    bounds = NetworkMixing(PENDANT).position_bounds(5)
    hiding = Hiding(bounds)
    assert hiding.overlaps.size == 3
    assert 0.0 <= hiding.separation <= 1.0


def test_a_walk_with_absences_has_its_hiding():
    graph = complete_graph(3)
    walk = RandomWalk(graph, absences=[[True, False, False], *[[False] * 3] * 3])
    laws = position_distribution(walk, np.arange(3), 4)
    hiding = Hiding(*exact_position_bounds(walk, (4,)))
    for victim in range(3):
        others = np.sort([(laws[i] / laws[victim]).min() for i in range(3) if i != victim])
        assert (hiding.overlaps <= np.minimum(others, 1.0) + 1e-12).all()
    assert hiding.epsilon(ANY, delta=DELTA).upper < 1.0


def test_a_target_is_met_just_where_epsilon_reaches_it():
    hiding = NetworkMixing(PENDANT).hiding(5)
    reached = hiding.epsilon(ANY, delta=DELTA).upper
    assert hiding.meets(ANY, epsilon=reached * (1 + 1e-6), delta=DELTA)
    assert not hiding.meets(ANY, epsilon=reached * (1 - 1e-3), delta=DELTA)


@pytest.mark.slow
def test_dummies_never_raise_epsilon(monkeypatch):
    """Not even where thinning with them is as good as weighing, but for half a percent."""
    ring = [(i, (i + step) % 10) for i in range(10) for step in (1, 2)]
    hiding = NetworkMixing(Graph.from_edges([*ring, (0, 5)])).hiding(4)
    plain = hiding.epsilon(ANY, delta=0.02)
    assert plain.method == "network-walk/weighted"

    def thinned(*args, dummies=None, **asked):
        found = plainly(*args, **asked)
        return found if dummies is None else replace(found, lower=None, upper=1.003 * plain.upper)

    plainly = network_mixing.network_walk_epsilon
    monkeypatch.setattr(network_mixing, "network_walk_epsilon", thinned)
    few = {"delta": 0.02, "dummies": DummyLaw.from_text("poisson:0.01")}
    found = hiding.epsilon(ANY, **few)
    assert (found.upper, found.lower) == (plain.upper, None)
