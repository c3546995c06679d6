"""The weighted blanket against exact divergences of small networks, by listing all.

Shares with the package only the bounds that are judged; the laws of positions are exact fractions.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from adversarial.test_network_enumeration import (
    ABSOLUTE,
    GRAPHS,
    RELATIVE,
    SHARES,
    VIEWS,
    all_views,
    binary,
    positions,
    worst_deltas,
)
from oracles import enumeration
from shuffledp.amplification.registry import account_delta
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.network.graph import Graph
from shuffledp.network.positions import remote_users as remote_bounds
from shuffledp.network.positions.spectrum import walk_spectrum
from shuffledp.network.privacy import WeightedWalk, Weights
from shuffledp.network.walk import RandomWalk


def stationary(name):
    num_users, edges = GRAPHS[name]
    degrees = [sum(i in edge for edge in edges) for i in range(num_users)]
    return [Fraction(degree, 2 * len(edges)) for degree in degrees]


def chosen_laws(name, laws, victim):
    """Laws Q: stationary, the victim's, half of each, what all have in common, and lowered.

    The last two are smaller where most, or where few reports come.
    """
    pi, mine = stationary(name), laws[victim]
    least = [min(law[j] for law in laws) for j in range(len(laws))]
    half = [(a + b) / 2 for a, b in zip(pi, mine, strict=True)]
    common = [each / sum(least) for each in least] if any(least) else half
    found = {"stationary": pi, "own": mine, "half": half, "common": common}
    quarter = len(laws) // 4
    ratios = [sorted(law[j] / p for law in laws)[quarter] for j, p in enumerate(pi)]
    lowered = [p * min(max(c, Fraction(1, 100)), 1) for p, c in zip(pi, ratios, strict=True)]
    found["lowered"] = [each / sum(lowered) for each in lowered]
    return found


def weighed(laws, victim, law):
    """Overlaps with Q, the weights of the victim's law to it, and what Q misses."""
    places = [j for j, q in enumerate(law) if q > 0]
    overlaps = [
        max(math.nextafter(float(min(*(other[j] / law[j] for j in places), 1)), 0.0), 0.0)
        for i, other in enumerate(laws)
        if i != victim
    ]
    kept = sum(laws[victim][j] for j in places)
    values = [float(laws[victim][j] / kept / law[j]) for j in places] if kept else [1.0]
    masses = [float(law[j]) for j in places] if kept else [1.0]
    missed = float(1 - kept) * (1.0 + 1e-15)
    found = Weights(np.array(values), np.array(masses), accuracy=1e-14, missed=missed)
    return overlaps, found


def spread_out(weights, step):
    """The law with each value shared between two of a grid, with the same mean."""
    masses = np.zeros(int(weights.values.max() / step) + 3)
    for value, mass in zip(weights.values, weights.masses, strict=True):
        below = int(value / step)
        part = value / step - below
        masses[below] += mass * (1.0 - part)
        masses[below + 1] += mass * part
    values = step * np.arange(masses.size)
    return Weights(values=values, masses=masses, accuracy=1e-13, missed=weights.missed)


def check(exact, laws, profile, victim, law, *, epsilons, **options):
    """Check the bound, also with coarser weights; return the truth over the bound at 0."""
    overlaps, weights = weighed(laws, victim, law)
    walk = WeightedWalk(profile, overlaps, delta=0.01, **options)
    for epsilon, truth in zip(epsilons, exact, strict=True):
        bound = walk.delta(weights, epsilon)
        assert truth <= bound * (1.0 + RELATIVE) + ABSOLUTE
        assert bound <= walk.delta(spread_out(weights, 0.3), epsilon) * (1.0 + 1e-6)
    return exact[0] / walk.delta(weights, epsilons[0])


@pytest.mark.parametrize("laziness", [Fraction(0), Fraction(1, 4)])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "K4 plus pendant"])
def test_every_victim_dataset_and_law(name, laziness):
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    sharpest = 0.0
    for rounds in (2, 5) if laziness else (1, 2, 3, 6):
        laws = positions(name, rounds, laziness)
        rows = all_views(laws, channel)
        for victim in range(len(laws)):
            exact = worst_deltas(rows, victim, epsilons)
            for law in chosen_laws(name, laws, victim).values():
                sharp = check(exact, laws, profile, victim, law, epsilons=epsilons)
                sharpest = max(sharpest, sharp)
    assert sharpest > 0.8


@pytest.mark.parametrize("rounds", [1, 4, 8])
def test_a_clique_with_a_pendant(rounds):
    epsilon0 = 2.0
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    laws = positions("K4 plus pendant", rounds)
    rows = all_views(laws, channel)
    for victim in range(5):
        exact = worst_deltas(rows, victim, epsilons)
        for law in chosen_laws("K4 plus pendant", laws, victim).values():
            check(exact, laws, profile, victim, law, epsilons=epsilons)


@pytest.mark.parametrize("most", [1024, 2, 0])
@pytest.mark.parametrize("name", ["path with a chord", "star plus edge"])
def test_what_eigenvalues_and_remote_rows_say(name, most, monkeypatch):
    """The whole way of large graphs, some of its places in groups."""
    monkeypatch.setattr(remote_bounds, "_MOST_ROWS", most)
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    graph = Graph.from_edges(GRAPHS[name][1])
    spectrum, walk = walk_spectrum(graph), RandomWalk(graph)
    followed = remote_bounds.FollowedLaws()
    for rounds in (2, 4, 7, 12):
        laws = positions(name, rounds)
        rows = all_views(laws, channel)
        bounds = remote_bounds.remote_position_bounds(walk, spectrum, rounds, followed)
        for victim in range(len(laws)):
            crowd = WeightedWalk(profile, np.delete(bounds.low, victim), delta=0.01)
            weights = Weights(*bounds.weights(np.array([victim])))
            exact = worst_deltas(rows, victim, epsilons)
            for epsilon, truth in zip(epsilons, exact, strict=True):
                bound = crowd.delta(weights, epsilon)
                assert truth <= bound * (1.0 + RELATIVE) + ABSOLUTE


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_another_randomizer(protocol):
    epsilon0 = 1.0
    channel = enumeration.randomized_response(3, math.exp(epsilon0))
    epsilons = [share * epsilon0 for share in SHARES]
    known = LocalProfile(
        epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=3
    )
    name = "triangle" if protocol == "single" else "star plus edge"
    for rounds in (1, 3):
        laws = positions(name, rounds)
        rows = VIEWS[protocol](laws, channel)
        for victim in range(len(laws)):
            exact = worst_deltas(rows, victim, epsilons)
            for law in chosen_laws(name, laws, victim).values():
                for profile in (known, LocalProfile(epsilon0=epsilon0)):
                    check(exact, laws, profile, victim, law, epsilons=epsilons)


def test_places_without_mass_and_dishonest_users():
    epsilon0 = 1.2
    profile, channel = binary(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    laws = positions("path with a chord", 4)
    mine = laws[3]
    kept = [p if p > min(mine) else Fraction(0) for p in mine]
    law = [p / sum(kept) for p in kept]
    exact = worst_deltas(all_views(laws, channel), 3, epsilons)
    check(exact, laws, profile, 3, law, epsilons=epsilons)
    honest = [laws[0], laws[2], laws[3]]  # the adversary knows all about user 1
    exact = worst_deltas(all_views(honest, channel), 2, epsilons)
    check(
        exact, laws, profile, 3, stationary("path with a chord"), epsilons=epsilons, num_dishonest=1
    )


def test_weighing_beats_hiding_the_place():
    # A report that is at 0 or 1 only, among others that are anywhere: thinning hides nothing.
    laws = [[Fraction(1, 2), Fraction(1, 2), Fraction(0)], *([[Fraction(1, 3)] * 3] * 2)]
    profile, channel = binary(1.2)
    overlaps, weights = weighed(laws, 0, [Fraction(1, 3)] * 3)
    bound = WeightedWalk(profile, overlaps, delta=0.1).delta(weights, 0.0)
    exact = worst_deltas(all_views(laws, channel), 0, (0.0,))[0]
    assert exact <= bound * (1.0 + RELATIVE)
    assert bound < 0.95 * account_delta(profile, num_users=1, epsilon=0.0).upper


def test_a_bound_that_claims_too_much_is_caught():
    profile, channel = binary(1.2)
    laws = positions("star plus edge", 2)
    exact = worst_deltas(all_views(laws, channel), 3, (0.3,))[0]
    _, weights = weighed(positions("star plus edge", 30), 3, stationary("star plus edge"))
    overlaps, _ = weighed(positions("star plus edge", 30), 3, stationary("star plus edge"))
    assert exact > WeightedWalk(profile, overlaps, delta=0.1).delta(weights, 0.3)
