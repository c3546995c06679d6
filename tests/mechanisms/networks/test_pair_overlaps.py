"""Overlaps of pairs of reports: true of the exact laws, tight, and trimmed where it helps."""

from fractions import Fraction

import numpy as np
import pytest

from oracles.exact_walks import all_graphs, exact_laws, far_walk, shape, small_walks
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.mechanisms.networks.graph import Graph
from shuffledp.mechanisms.networks.pair_overlaps import doeblin_overlaps, pair_overlaps
from shuffledp.mechanisms.networks.position_bounds import PositionBounds, exact_position_bounds
from shuffledp.mechanisms.networks.random_walk import RandomWalk, position_distribution

WALKS = small_walks()
TIGHT = Fraction(1, 10**11)


def exact_law(computed, law):
    """Return the exact law that is meant: the true one on the places kept."""
    kept = [p if q > 0.0 else Fraction(0) for p, q in zip(law, computed, strict=True)]
    mass = sum(kept)
    return mass, [p / mass for p in kept] if mass else kept


def check_against_fractions(walk, overlaps, trimmed=0.0):
    """Check what overlaps state of the exact laws, and that they are tight."""
    laws = exact_laws(walk, overlaps.rounds)
    for row, v in enumerate(overlaps.victims):
        mass, meant = exact_law(overlaps.laws[row], laws[v])
        missed = Fraction(overlaps.missed[row])
        assert 1 - mass <= missed <= 1 - mass + TIGHT
        lost = 1 - sum(laws[v])
        assert mass == 0 or missed <= lost + Fraction(trimmed) + TIGHT
        assert overlaps.laws[row] == pytest.approx([float(q) for q in meant], rel=1e-12)
        for i in range(walk.num_users):
            kappa = Fraction(overlaps.kappa[row, i])
            if i == v:
                assert kappa == 1
                continue
            exact = min((laws[i][j] / q for j, q in enumerate(meant) if q > 0), default=Fraction(0))
            assert min(exact, 1) * (1 - TIGHT) <= kappa <= exact
    assert overlaps.load == pytest.approx(
        [float(sum(law[j] for law in laws)) for j in range(walk.num_users)]
    )


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("trimmed", [0.0, 0.3])
def test_overlaps_beside_exact_fractions(name, trimmed):
    walk = WALKS[name]
    for rounds in (0, 1, 3):
        overlaps = pair_overlaps(walk, rounds, np.arange(walk.num_users), trimmed=trimmed)
        check_against_fractions(walk, overlaps, trimmed)


def test_overlaps_on_all_graphs_of_four_users():
    for graph in all_graphs(4):
        walk = RandomWalk.on(graph, laziness=0.5)
        check_against_fractions(walk, pair_overlaps(walk, 4, 1))


def test_trimming_leaves_out_the_thinnest_places():
    # One user at the rim of a clique: his report is likely still near him, where few others are.
    clique = [(i, j) for i in range(8) for j in range(i)]
    graph = Graph.from_edges([*clique, (8, 0), (9, 8), (9, 1)])
    walk = RandomWalk.on(graph)
    whole = pair_overlaps(walk, 4, [9])
    trimmed = pair_overlaps(walk, 4, [9], trimmed=0.5)
    assert whole.missed.tolist() == [0.0]
    assert 0.0 < trimmed.missed[0] <= 0.5
    law, mean = whole.laws[0], whole.load / 10
    removed = (trimmed.laws[0] == 0.0) & (law > 0.0)
    assert trimmed.missed[0] == pytest.approx(law[removed].sum())
    assert (mean[removed] / law[removed]).max() <= (mean[~removed] / law[~removed]).min()
    assert (trimmed.kappa[0, :9] > whole.kappa[0, :9] + 0.3).all()


def test_trimming_stops_where_it_does_not_help():
    # All hold the same law, so that leaving places out only lowers the overlaps.
    walk = RandomWalk.on(shape("pair"), laziness=0.5)
    overlaps = pair_overlaps(walk, 1, [0], trimmed=0.9)
    assert overlaps.missed.tolist() == [0.0]
    assert overlaps.kappa.tolist() == [[1.0, pytest.approx(1.0)]]


def test_many_blocks_and_victims():
    generator = Entropy.from_seed(5).generator()
    cycle = [(i, (i + 1) % 150) for i in range(150)]
    graph = Graph.from_edges(np.concatenate([cycle, generator.integers(0, 150, size=(400, 2))]))
    walk = RandomWalk.on(graph, laziness=0.1)
    calls = []
    victims = np.arange(149, 49, -1)  # two blocks of victims
    overlaps = pair_overlaps(walk, 5, victims, on_progress=lambda *call: calls.append(call))
    assert calls == [("position laws", done, 150) for done in (64, 128, 150)]
    laws = position_distribution(walk, np.arange(150), 5)
    assert overlaps.laws == pytest.approx(laws[victims])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = laws[None] / laws[victims][:, None]
    expected = np.where(laws[victims][:, None] > 0.0, ratios, np.inf).min(axis=2)
    np.testing.assert_allclose(overlaps.kappa, expected, rtol=1e-11)
    assert (overlaps.kappa <= np.minimum(expected * (1.0 + 1e-14), 1.0)).all()


def test_exact_pairs_are_better_than_the_reference():
    walk = WALKS["complete and pendant"]
    (bounds,) = exact_position_bounds(walk, [4])
    for v in range(5):
        assert (pair_overlaps(walk, 4, v).kappa[0] >= bounds.overlaps_with(v) * (1.0 - 1e-12)).all()


def test_what_was_set_to_zero_is_missed():
    walk, rounds = far_walk()
    overlaps = pair_overlaps(walk, rounds, [0, 18])
    laws = exact_laws(walk, rounds)
    for row, v in enumerate(overlaps.victims):
        mass, meant = exact_law(overlaps.laws[row], laws[v])
        assert 0 < 1 - mass <= Fraction(overlaps.missed[row]) < TIGHT
        for i in set(range(19)) - {int(v)}:
            exact = min(laws[i][j] / q for j, q in enumerate(meant) if q > 0)
            assert Fraction(overlaps.kappa[row, i]) <= exact


def test_no_victims():
    overlaps = pair_overlaps(WALKS["path"], 2, [])
    assert overlaps.kappa.shape == (0, 4)
    assert overlaps.missed.shape == (0,)


@pytest.mark.parametrize(
    ("rounds", "victims", "trimmed", "message"),
    [
        (1, 5, 0.0, r"victims = 5 is not in \[0, 5\)"),
        (-1, 0, 0.0, "rounds = -1"),
        (1, 0, 1.0, r"trimmed = 1.0 is not in \[0, 1\)"),
        (1, 0, -0.1, "trimmed = -0.1"),
        (1, 0, float("nan"), "trimmed = nan"),
        (10**16, 0, 0.0, "no correct digit"),
    ],
)
def test_arguments_that_make_no_sense(rounds, victims, trimmed, message):
    with pytest.raises(ParameterError, match=message):
        pair_overlaps(WALKS["star and edge"], rounds, victims, trimmed=trimmed)


# ---------------------------------------------------------------- what all laws have in common
@pytest.mark.parametrize("name", ["star and edge", "complete and pendant", "changing", "path"])
def test_doeblin_overlaps_are_true_of_all_laws(name):
    walk = WALKS[name]
    (bounds,) = exact_position_bounds(walk, [3])
    laws = exact_laws(walk, 3)
    least = [min(law[j] for law in laws) for j in range(walk.num_users)]
    mass = sum(least)
    overlaps = doeblin_overlaps(bounds, 1)
    assert overlaps.victims.tolist() == [1]
    assert 1 - mass <= Fraction(overlaps.missed[0]) <= 1 - mass + TIGHT
    assert overlaps.kappa[0, 1] == 1.0
    for kappa in np.delete(overlaps.kappa[0], 1):
        assert mass * (1 - TIGHT) <= Fraction(kappa) <= mass
    if mass:
        assert overlaps.laws[0] == pytest.approx([float(p / mass) for p in least])
    else:
        assert not overlaps.laws.any()


def test_doeblin_overlaps_need_all_laws():
    two = np.ones(2)
    with pytest.raises(OutOfRegimeError, match="method 'spectral' do not hold the least"):
        doeblin_overlaps(
            PositionBounds(rounds=1, low=two, high=two, collision=two, method="spectral"), 0
        )
    (lossy,) = exact_position_bounds(WALKS["leaf colludes"], [1])
    with pytest.raises(OutOfRegimeError, match="lost to colluding users"):
        doeblin_overlaps(lossy, 0)
    (bounds,) = exact_position_bounds(RandomWalk.on(shape("triangle")), [1])
    for wrong in (3, -1):
        with pytest.raises(ParameterError, match=f"victim = {wrong}"):
            doeblin_overlaps(bounds, wrong)
