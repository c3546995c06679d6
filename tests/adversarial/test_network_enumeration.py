"""The bound on reports that walk, against exact divergences of small networks, by listing all.

Laws of positions are powers of the walk matrix, views of the adversary are all lists of who hands
in what. Nothing here shares code or formulas with the package, save for the bound that is judged.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from oracles import enumeration
from shuffledp.amplification.registry import account_delta
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.network.graph import Graph
from shuffledp.network.mixing import Hiding
from shuffledp.network.positions.bounds import exact_position_bounds
from shuffledp.network.privacy import (
    WeightedWalk,
    Weights,
    network_walk_delta,
    network_walk_epsilon,
)
from shuffledp.network.walk import RandomWalk
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

# The enumeration adds doubles; what it may be off by.
RELATIVE, ABSOLUTE = 1e-10, 1e-14

# Of the deltas to which bounds are sharp.
SCALE = 1e-9

GRAPHS = {
    "triangle": (3, ((0, 1), (0, 2), (1, 2))),
    "path with a chord": (4, ((0, 1), (1, 2), (2, 3), (0, 2))),
    "star plus edge": (4, ((0, 1), (0, 2), (0, 3), (1, 2))),
    "pendant triangle": (4, ((0, 1), (1, 2), (0, 2), (2, 3), (1, 3))),
    "K4 plus pendant": (5, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4))),
}
ROUNDS = (1, 2, 3, 6, 40)
SHARES = (0.0, 0.15, 0.5, 0.95)


def matrix(num_users, edges, laziness=Fraction(0)):
    """The walk, in exact fractions."""
    adjacent = [[0] * num_users for _ in range(num_users)]
    for a, b in edges:
        adjacent[a][b] = adjacent[b][a] = 1
    rows = [[(1 - laziness) * Fraction(entry, sum(row)) for entry in row] for row in adjacent]
    for i, row in enumerate(rows):
        row[i] += laziness
    return rows


def product(first, second):
    """Of two matrices of fractions."""
    columns = list(zip(*second, strict=True))
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
        for row in first
    ]


def positions(name, rounds, laziness=Fraction(0)):
    """Laws of the last holders as fractions, a row each report."""
    num_users, edges = GRAPHS[name]
    step = matrix(num_users, edges, laziness)
    laws = [[Fraction(i == j) for j in range(num_users)] for i in range(num_users)]
    for _ in range(rounds):
        laws = product(laws, step)
    return laws


def overlaps_of(laws, victim):
    """kappa_i of the others with the victim's law, rounded down."""
    mine = laws[victim]
    found = []
    for i, law in enumerate(laws):
        if i != victim:
            least = min(p / q for p, q in zip(law, mine, strict=True) if q > 0)
            found.append(max(math.nextafter(float(least), 0.0), 0.0) if least < 1 else 1.0)
    return found


# ---------------------------------------------------------------- exact divergences


def all_views(laws, channel, lost=()):
    """Laws of what "all" shows, a row each dataset: how many reports of each kind at each place.

    Of reports at places that are lost only the number is seen.
    """
    num_users, domain_size = len(laws), len(channel)
    letters = np.array(
        [[np.outer(law, row) for row in channel] for law in np.array(laws, dtype=float)]
    )
    for place in lost:
        letters[:, :, place, 0] = letters[:, :, place].sum(axis=2)
        letters[:, :, place, 1:] = 0.0
    letters = letters.reshape(*letters.shape[:2], -1)
    rows = {(): np.array([1.0])}
    for i in range(num_users):
        rows = {
            (*data, x): enumeration._add_report(law, letters[i, x], i)
            for data, law in rows.items()
            for x in range(domain_size)
        }
    return rows


def joint_of(laws):
    """Probabilities of all assignments of reports to holders, if reports move independently."""
    places = range(len(laws[0]))
    return {
        held: math.prod(float(law[j]) for law, j in zip(laws, held, strict=True))
        for held in itertools.product(places, repeat=len(laws))
    }


def single_views(laws, channel, lost=()):
    """Laws of what "single" shows, a row each dataset: at each place a report or nothing.

    Nothing is seen of places that are lost.
    """
    channel = np.array(channel, dtype=float)
    num_users, (domain_size, num_reports) = len(laws), channel.shape
    joint = {held: mass for held, mass in joint_of(laws).items() if mass > 0.0}
    holds = np.array(list(joint))[:, None, :] == np.arange(len(laws[0]))[:, None]  # case, place, i
    weights = np.array(list(joint.values()))
    rows = {}
    for data in itertools.product(range(domain_size), repeat=num_users):
        here = holds.sum(axis=2)
        shown = np.zeros((*here.shape, num_reports + 1))
        shown[:, :, :-1] = (holds @ channel[list(data)]) / np.maximum(here, 1)[:, :, None]
        shown[:, :, -1] = here == 0
        shown[:, list(lost)] = np.eye(num_reports + 1)[-1]
        law = weights[:, None]
        for j in range(here.shape[1]):
            law = (law[:, :, None] * shown[:, j, None, :]).reshape(len(weights), -1)
        rows[data] = law.sum(axis=0)
    return rows


def all_views_of_joint(joint, channel):
    """As `all_views` for any joint law of the holders, in a dictionary."""
    channel = np.array(channel, dtype=float)
    num_users = len(next(iter(joint)))
    domain_size, num_reports = channel.shape
    rows = {}
    for data in itertools.product(range(domain_size), repeat=num_users):
        law = {}
        for held, mass in joint.items():
            for said in itertools.product(range(num_reports), repeat=num_users):
                chance = mass * math.prod(channel[x][y] for x, y in zip(data, said, strict=True))
                view = tuple(sorted(zip(held, said, strict=True)))
                law[view] = law.get(view, 0.0) + chance
        rows[data] = law
    views = sorted({view for law in rows.values() for view in law})
    return {data: np.array([law.get(v, 0.0) for v in views]) for data, law in rows.items()}


def worst_deltas(rows, victim, epsilons):
    """Largest divergence over all data of the others and both orders, for each epsilon."""
    first, second = [], []
    domain_size = max(data[victim] for data in rows) + 1
    for data, law in rows.items():
        for other in range(domain_size):
            if other != data[victim]:
                first.append(law)
                second.append(rows[(*data[:victim], other, *data[victim + 1 :])])
    p, q = np.array(first), np.array(second)
    return [float(np.maximum(p - math.exp(e) * q, 0.0).sum(axis=1).max()) for e in epsilons]


@cache
def uniform_deltas(k, epsilon0, num_users, epsilons):
    """Exact divergences of a uniform shuffle, over all data."""
    truth = enumeration.ShuffledDivergence(
        enumeration.randomized_response(k, math.exp(epsilon0)), num_users
    )
    return [truth.delta(epsilon) for epsilon in epsilons]


def binary(epsilon0):
    """Profile and channel of binary randomized response."""
    profile = LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2
    )
    return profile, enumeration.randomized_response(2, math.exp(epsilon0))


def assert_sound(exact, laws, profile, victim, *, epsilons, protocol, **options):
    """Check the bound at every epsilon; return the largest ratio of truth to bound."""
    sharpest = 0.0
    for epsilon, truth in zip(epsilons, exact, strict=True):
        bound = network_walk_delta(
            profile,
            overlaps=overlaps_of(laws, victim),
            epsilon=epsilon,
            delta=SCALE,
            protocol=protocol,
            position_law=[min(float(p) * (1.0 + 1e-15), 1.0) for p in laws[victim]],
            **options,
        )
        assert truth <= bound * (1.0 + RELATIVE) + ABSOLUTE
        sharpest = max(sharpest, truth / bound)
    return sharpest


VIEWS = {"all": all_views, "single": single_views}


@pytest.mark.parametrize("laziness", [Fraction(0), Fraction(1, 4)])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "K4 plus pendant"])
@pytest.mark.parametrize("protocol", ["all", "single"])
def test_every_victim_and_dataset(protocol, name, laziness):
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    shares = SHARES if protocol == "all" else (0.0, 0.5)
    epsilons = [share * epsilon0 for share in shares]
    for rounds in (2, 5, 30) if laziness else ROUNDS:
        laws = positions(name, rounds, laziness)
        rows = VIEWS[protocol](laws, channel)
        for victim in range(len(laws)):
            exact = worst_deltas(rows, victim, epsilons)
            assert_sound(exact, laws, profile, victim, epsilons=epsilons, protocol=protocol)


@pytest.mark.parametrize("rounds", [1, 3, 8, 40])
def test_a_clique_with_a_pendant(rounds):
    epsilon0 = 2.0
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    laws = positions("K4 plus pendant", rounds)
    rows = all_views(laws, channel)
    for victim in range(5):
        exact = worst_deltas(rows, victim, epsilons)
        assert_sound(exact, laws, profile, victim, epsilons=epsilons, protocol="all")


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_another_randomizer(protocol):
    # Three answers, and "any randomizer" in place of what is known of this one.
    epsilon0 = 1.0
    channel = enumeration.randomized_response(3, math.exp(epsilon0))
    epsilons = [share * epsilon0 for share in SHARES]
    known = LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=3
    )
    name = "triangle" if protocol == "single" else "star plus edge"
    for rounds in (1, 3, 12):
        laws = positions(name, rounds)
        rows = VIEWS[protocol](laws, channel)
        for victim in range(len(laws)):
            exact = worst_deltas(rows, victim, epsilons)
            for profile in (known, LocalProfile(epsilon0=epsilon0)):
                assert_sound(exact, laws, profile, victim, epsilons=epsilons, protocol=protocol)


@pytest.mark.parametrize("name", ["triangle", "star plus edge", "K4 plus pendant"])
def test_in_the_limit_it_is_a_uniform_shuffle(name):
    epsilon0 = 1.0
    profile, channel = binary(epsilon0)
    epsilons = tuple(share * epsilon0 for share in SHARES)
    laws = positions(name, 150)
    num_users = len(laws)
    rows = all_views(laws, channel)
    uniform = uniform_deltas(2, epsilon0, num_users, epsilons)
    for victim in range(num_users):
        exact = worst_deltas(rows, victim, epsilons)
        for epsilon, truth, shuffled in zip(epsilons, exact, uniform, strict=True):
            overlaps = overlaps_of(laws, victim)
            bound = network_walk_delta(profile, overlaps=overlaps, epsilon=epsilon, delta=SCALE)
            assert truth == pytest.approx(shuffled, rel=1e-9, abs=1e-13)
            assert bound == pytest.approx(shuffled, rel=1e-6)


def test_single_is_sharp_enough_to_beat_a_uniform_shuffle():
    # At stationarity a random part of the reports is handed in, which hides better than all.
    epsilon0 = 1.0
    profile, channel = binary(epsilon0)
    laws = positions("path with a chord", 150)
    exact = worst_deltas(single_views(laws, channel), 0, (0.2,))[0]
    everything = account_delta(profile, num_users=4, epsilon=0.2).upper
    assert exact < 0.9 * everything
    sharpest = assert_sound([exact], laws, profile, 0, epsilons=[0.2], protocol="single")
    assert sharpest > 0.5


def test_a_graph_that_changes_every_round():
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    first, second = (matrix(*GRAPHS[name]) for name in ("path with a chord", "star plus edge"))
    laws = product(product(first, second), first)
    for protocol, views in VIEWS.items():
        rows = views(laws, channel)
        for victim in range(4):
            exact = worst_deltas(rows, victim, epsilons)
            assert_sound(exact, laws, profile, victim, epsilons=epsilons, protocol=protocol)


def test_known_absences_are_part_of_the_walk():
    # User 1 is away in the second round: what he holds stays, what is sent to him waits for him.
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    step = matrix(*GRAPHS["star plus edge"])
    absent = [row if i != 1 else [Fraction(j == 1) for j in range(4)] for i, row in enumerate(step)]
    laws = product(product(step, absent), product(step, step))
    rows = all_views(laws, channel)
    for victim in range(4):
        exact = worst_deltas(rows, victim, epsilons)
        assert_sound(exact, laws, profile, victim, epsilons=epsilons, protocol="all")


def departed(name, rounds, leaver, left):
    """Positions where a user does nothing any more after so many rounds."""
    num_users, edges = GRAPHS[name]
    step = matrix(num_users, edges)
    still = [Fraction(j == leaver) for j in range(num_users)]
    gone = [still if i == leaver else row for i, row in enumerate(step)]
    laws = [[Fraction(i == j) for j in range(num_users)] for i in range(num_users)]
    for number in range(rounds):
        laws = product(laws, step if number < left else gone)
    return laws


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("name", ["path with a chord", "star plus edge", "pendant triangle"])
def test_who_leaves_for_good_takes_reports_along(name, left):
    # The ways of the package: all reports as if seen, and those alone that are seen.
    epsilon0, rounds = 1.2, 4
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    graph, sharpest = Graph.from_edges(GRAPHS[name][1]), 0.0
    for leaver in range(4):
        away = np.zeros((rounds, 4), dtype=bool)
        away[left:, leaver] = True
        walk, seen = RandomWalk(graph, absences=away), np.arange(4) != leaver
        (bounds,) = exact_position_bounds(walk, [rounds], seen=seen)
        laws = departed(name, rounds, leaver, left)
        for protocol, views in VIEWS.items():
            rows = views(laws, channel, lost=(leaver,))
            for victim in range(4):
                exact = worst_deltas(rows, victim, epsilons)
                weighed = []
                for each in (bounds, bounds.given):
                    hiding = Hiding(each)
                    walk = WeightedWalk(profile, np.delete(each.low, victim), delta=0.01)
                    weights = Weights(*each.weights(np.array([victim])))
                    weighed.append([walk.delta(weights, epsilon) for epsilon in epsilons])
                    thinned = [
                        network_walk_delta(
                            profile, overlaps=hiding.overlaps, epsilon=epsilon, protocol=protocol,
                            position_law=hiding.position_law, delta=SCALE,
                        )
                        for epsilon in epsilons
                    ]  # fmt: skip
                    for truth, *found in zip(exact, weighed[-1], thinned, strict=True):
                        assert truth <= min(found) * (1.0 + RELATIVE) + ABSOLUTE
                sharpest = max(sharpest, exact[0] / min(weighed[0][0], weighed[1][0]))
        if left == 0:  # what the leaver holds is seen by nobody
            assert max(worst_deltas(rows, leaver, epsilons)) <= ABSOLUTE
    assert sharpest > 0.3


def test_who_is_lost_hides_nobody():
    # A bound for which lost reports hide others as well as those that are seen claims too much.
    profile, channel = binary(1.2)
    graph, seen = Graph.from_edges(GRAPHS["pendant triangle"][1]), np.arange(4) != 3
    laws = departed("pendant triangle", 1, 3, 0)
    exact = worst_deltas(all_views(laws, channel, lost=(3,)), 0, (0.0,))[0]
    walk = RandomWalk(graph, absences=[~seen])
    bounds = exact_position_bounds(walk, [1], seen=seen)[0].given
    weights = Weights(*bounds.weights(np.array([0])))
    proved, claimed = (
        WeightedWalk(profile, low, delta=0.1).delta(weights, 0.0)
        for low in (bounds.low[1:], np.ones(3))
    )
    assert claimed < exact <= proved


def after_absences(joint, edges, num_users, absence):
    """One round in which each user is away with some chance, and then keeps all that he holds."""
    around = [
        [b for b in range(num_users) if (min(a, b), max(a, b)) in edges] for a in range(num_users)
    ]
    moved = {}
    for away in itertools.product((False, True), repeat=num_users):
        chance = math.prod(absence if each else 1.0 - absence for each in away)
        for held, mass in joint.items():
            options = [(j,) if away[j] else around[j] for j in held]
            share = mass * chance / math.prod(map(len, options))
            for following in itertools.product(*options):
                moved[following] = moved.get(following, 0.0) + share
    return moved


def test_absences_are_no_laziness():
    # A round on a star, then one on a triangle in which each user is away with probability 1/3.
    # That makes each report's law uniform, so if reports moved independently this would be a
    # uniform shuffle. But the two that met at the centre stay together too often.
    epsilon0 = 1.0
    profile, channel = binary(epsilon0)
    third = Fraction(1, 3)
    star, triangle = ((0, 1), (0, 2)), ((0, 1), (0, 2), (1, 2))
    laws = product(matrix(3, star), matrix(3, triangle, laziness=third))
    assert all(entry == third for law in laws for entry in law)
    joint = after_absences({(0, 1, 2): 1.0}, star, 3, 0.0)
    joint = after_absences(joint, triangle, 3, 1.0 / 3.0)
    # Each report by itself has the law of a lazy walk.
    for i, j in itertools.product(range(3), repeat=2):
        mass = sum(chance for held, chance in joint.items() if held[i] == j)
        assert mass == pytest.approx(1.0 / 3.0, rel=1e-12)
    for epsilon in (0.0, 0.3, 0.6, 0.9):
        as_laziness = network_walk_delta(
            profile, overlaps=overlaps_of(laws, 0), epsilon=epsilon, delta=SCALE
        )
        independent = worst_deltas(all_views_of_joint(joint_of(laws), channel), 0, (epsilon,))[0]
        assert independent <= as_laziness * (1.0 + RELATIVE)
        together = worst_deltas(all_views_of_joint(joint, channel), 0, (epsilon,))[0]
        assert together > 1.25 * as_laziness


def test_the_two_enumerations_agree():
    _, channel = binary(1.0)
    laws = positions("triangle", 2)
    for victim in range(3):
        one = worst_deltas(all_views(laws, channel), victim, (0.0, 0.4))
        other = worst_deltas(all_views_of_joint(joint_of(laws), channel), victim, (0.0, 0.4))
        assert one == pytest.approx(other, rel=1e-12)


def test_a_dishonest_user_hides_nobody():
    # The adversary knows the report of user 1 and where it ended: the other three are on their own.
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    laws = positions("star plus edge", 5)
    honest = [laws[0], laws[2], laws[3]]
    rows = all_views(honest, channel)
    for index, victim in ((0, 0), (1, 2), (2, 3)):
        exact = worst_deltas(rows, index, epsilons)
        assert_sound(
            exact, laws, profile, victim, epsilons=epsilons, protocol="all", num_dishonest=1
        )


def test_a_bound_that_claims_too_much_is_caught():
    # The overlaps of a walk that was three rounds longer, and a victim who is always in a crowd.
    profile, channel = binary(1.2)
    laws = positions("star plus edge", 2)
    exact = worst_deltas(all_views(laws, channel), 3, (0.3,))[0]
    later = overlaps_of(positions("star plus edge", 30), 3)
    assert exact > network_walk_delta(profile, overlaps=later, epsilon=0.3, delta=SCALE)


def test_epsilon_is_that_of_the_exact_delta():
    epsilon0 = 1.0
    profile, channel = binary(epsilon0)
    laws = positions("pendant triangle", 6)
    for protocol, views in VIEWS.items():
        rows = views(laws, channel)
        for victim, delta in itertools.product(range(4), (0.3, 0.05, 1e-3)):
            bound = network_walk_epsilon(
                profile,
                overlaps=overlaps_of(laws, victim),
                delta=delta,
                protocol=protocol,
                position_law=[float(p) * (1.0 + 1e-15) for p in laws[victim]],
            )
            assert worst_deltas(rows, victim, (bound.upper,))[0] <= delta * (1.0 + RELATIVE)


# Poisson tails are cut here, which moves a divergence by less than this where means are below 1.
MOST_DUMMIES, CUT = 10, 1e-7


def with_one_more(masses, law):
    """Law of counts in cells, an axis each, after one more report of this law over the cells."""
    total = np.zeros([size + 1 for size in masses.shape])
    for cell, chance in enumerate(law):
        place = [slice(int(axis == cell), -1 if axis != cell else None) for axis in range(len(law))]
        total[tuple(place)] += chance * masses
    return total


@pytest.mark.parametrize("epsilon0", [1.0, 2.5, 30.0])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_walking_dummies_by_enumeration(rounds, epsilon0):
    """Three users, two answers: counts of each answer at each place, dummies included."""
    rate, epsilon = 0.3, 0.4
    step = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]])
    laws = np.linalg.matrix_power(step, rounds)
    randomizer = KRandomizedResponse(domain_size=2, epsilon0=epsilon0)
    p, q = randomizer.support_probabilities
    reports = np.array([[p, q], [q, p]])
    counts = np.arange(MOST_DUMMIES)
    dummies = np.ones(())
    for place in range(3):
        mean = rate * laws[:, place].sum()
        law = np.exp(-mean) * mean**counts / [math.factorial(each) for each in counts]
        for _ in range(2):
            dummies = np.multiply.outer(dummies, law)
    for victim in range(3):
        others = [i for i in range(3) if i != victim]
        kappas = [min(laws[i][laws[victim] > 0] / laws[victim][laws[victim] > 0]) for i in others]
        bound = network_walk_delta(
            randomizer.profile,
            overlaps=np.clip(np.array(kappas) * (1 - 1e-12), 0.0, 1.0),
            epsilon=epsilon,
            delta=SCALE,
            dummies=DummyLaw(shape="poisson", scale=rate),
        )
        worst = 0.0
        for values in itertools.product(range(2), repeat=2):
            masses = dummies
            for i, value in zip(others, values, strict=True):
                masses = with_one_more(masses, np.outer(laws[i], reports[value]).ravel())
            first, second = (
                with_one_more(masses, np.outer(laws[victim], reports[value]).ravel())
                for value in range(2)
            )
            worst = max(worst, float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum()))
        assert worst <= bound + CUT
        assert bound <= 3.0 * worst
