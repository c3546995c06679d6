"""Shuffling within groups, attacked by listing everything: all data, all permutations, all outputs.

For distinct answers an output comes from exactly one permutation of the places, so the logarithm
of the ratio of two probabilities is theta times a difference of two distances, a whole number. For
repeated answers probabilities are sums of powers of exp(-theta) = 1/3, added up in integers. So no
check here has a tolerance.
"""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups import mallows
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.groups.privacy import MALLOWS_DISTANCES
from shuffledp.groups.reference_orders import DISTANCES, ReferenceOrder, group_sensitivities

# People in overlapping groups, not in a row in these reference orders.
CASES = {
    "two": ([[0, 1]], (1, 0)),
    "three": ([[0, 2], [1, 2]], (0, 1, 2)),
    "four": ([[0, 2], [0, 1, 3], [1, 2, 3]], (2, 0, 3, 1)),
    "the paper's order": ([[0, 2, 4], [1, 3]], (0, 2, 4, 1, 3)),
    "five, in disorder": ([[0, 2, 4], [1, 2, 3, 4], [0, 3]], (3, 0, 4, 1, 2)),
    "everybody": ([[0, 1, 2, 3], [1, 3]], (3, 2, 0, 1)),
    "far apart": ([[0, 4], [0, 2, 3], [1]], (0, 3, 1, 2, 4)),
}


def distance_of(name, pi):
    """The rank distance from the identity, by its definition."""
    n = len(pi)
    if name == "kendall":
        return sum(pi[i] > pi[j] for i in range(n) for j in range(i + 1, n))
    if name == "hamming":
        return sum(pi[i] != i for i in range(n))
    if name == "footrule":
        return sum(abs(pi[i] - i) for i in range(n))
    cycles, left = 0, set(range(n))
    while left:
        cycles += 1
        item = left.pop()
        while pi[item] in left:
            item = pi[item]
            left.remove(item)
    return n - cycles


def conjugated(order, pi):
    """sigma0 pi sigma0^-1."""
    place = {user: j for j, user in enumerate(order)}
    return tuple(order[pi[place[user]]] for user in range(len(order)))


def released(answers, sigma):
    """Person i gets the answer of person sigma(i)."""
    return tuple(answers[j] for j in sigma)


def rearranged_inside(group, num_users):
    """All rearrangements that move nobody outside of the group."""
    for kappa in permutations(group):
        moved = list(range(num_users))
        for user, other in zip(group, kappa, strict=True):
            moved[user] = other
        yield tuple(moved)


def distances_of_outputs(answers, sigmas):
    """For distinct answers: the distance of the one permutation that gives each output."""
    return {released(answers, sigma): d for sigma, d in sigmas.items()}


def largest_log_ratio(group, sigmas, num_users):
    """Return max of ln Pr[z | y] - ln Pr[z | y'] in units of theta.

    Over all data y of distinct answers, y' with the answers inside the group rearranged, and all
    outputs z; ``sigmas`` has every permutation of the people with its distance.
    """
    outputs = {y: distances_of_outputs(y, sigmas) for y in permutations(range(num_users))}
    largest = 0
    for y, before in outputs.items():
        for kappa in rearranged_inside(group, num_users):
            after = outputs[released(y, kappa)]
            largest = max(largest, *(after[z] - before[z] for z in before))
    return largest


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("case", CASES)
def test_every_output_of_distinct_answers(case, distance):
    sets, order = CASES[case]
    n = len(order)
    sigmas = {conjugated(order, pi): distance_of(distance, pi) for pi in permutations(range(n))}
    groups = Groups.from_sets([*sets, range(n)], num_users=n)
    claimed = group_sensitivities(distance, groups, np.argsort(order))
    for group, delta in zip(sets, claimed.tolist(), strict=False):
        # Never more, and attained: no smaller number would be true.
        assert largest_log_ratio(group, sigmas, n) == delta


SIX = {
    "every other one": ([[0, 2, 4], [1, 3, 5], [0, 5]], (0, 1, 2, 3, 4, 5)),
    "in disorder": ([[0, 2, 3, 5], [1, 4], [1, 2, 4]], (4, 0, 5, 2, 1, 3)),
    "the two ends": ([[0, 5], [0, 1, 4, 5], [2, 3, 4]], (5, 3, 1, 4, 2, 0)),
}


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("case", SIX)
def test_every_output_of_six_distinct_answers(case, distance):
    # z comes from y by sigma and from y kappa by kappa^-1 sigma, whatever y: names do not matter.
    sets, order = SIX[case]
    sigmas = {conjugated(order, pi): distance_of(distance, pi) for pi in permutations(range(6))}
    groups = Groups.from_sets([*sets, range(6)], num_users=6)
    claimed = group_sensitivities(distance, groups, np.argsort(order))
    for group, delta in zip(sets, claimed.tolist(), strict=False):
        attained = max(
            sigmas[released(kappa, sigma)] - before
            for kappa in rearranged_inside(group, 6)
            for sigma, before in sigmas.items()
        )
        assert attained == delta


def integer_law(answers, sigmas):
    """Return 3^D Pr[z], unnormalised, for exp(-theta) = 1/3 and D the largest distance."""
    highest = max(sigmas.values())
    law = {}
    for sigma, d in sigmas.items():
        z = released(answers, sigma)
        law[z] = law.get(z, 0) + 3 ** (highest - d)
    return law


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("case", ["three", "four", "the paper's order", "far apart"])
def test_every_output_of_repeated_answers(case, distance):
    sets, order = CASES[case]
    n = len(order)
    sigmas = {conjugated(order, pi): distance_of(distance, pi) for pi in permutations(range(n))}
    groups = Groups.from_sets([*sets, range(n)], num_users=n)
    claimed = group_sensitivities(distance, groups, np.argsort(order))
    laws = {}
    for counts in ("00111", "01122", "00001"):
        for y in set(permutations(counts[:n])):
            laws[y] = integer_law(y, sigmas)
    for y, before in laws.items():
        for group, delta in zip(sets, claimed.tolist(), strict=False):
            for kappa in rearranged_inside(group, n):
                after = laws[released(y, kappa)]
                assert before.keys() == after.keys()
                assert all(before[z] <= 3**delta * after[z] for z in before)


def test_the_literal_line_8_is_not_private():
    # Algorithm 1 prints sigma0^-1 sigma_hat, with sigma_hat = sigma0 pi around sigma0.
    order, group = (0, 2, 4, 1, 3), [0, 2, 4]
    place = tuple(np.argsort(order))
    literal, private = {}, {}
    for pi in permutations(range(5)):
        sigma_hat = tuple(order[j] for j in pi)
        literal[tuple(place[user] for user in sigma_hat)] = distance_of("kendall", pi)
        private[tuple(sigma_hat[place[user]] for user in range(5))] = distance_of("kendall", pi)
    assert private == {
        conjugated(order, pi): distance_of("kendall", pi) for pi in permutations(range(5))
    }
    groups = Groups.from_sets([group, [1], [3]], num_users=5)
    claimed = int(group_sensitivities("kendall", groups, np.array(place))[0])
    assert claimed == 3
    assert largest_log_ratio(group, private, 5) == 3
    assert largest_log_ratio(group, literal, 5) == 7


@pytest.mark.parametrize("case", CASES)
def test_the_code_does_what_was_listed(monkeypatch, case):
    _, order = CASES[case]
    n = len(order)
    reference = ReferenceOrder(
        order=np.array(order), name="test", distance="kendall", sensitivity=99
    )
    shuffler = MallowsShuffler(reference=reference, theta=1.0)
    answers = np.arange(100, 100 + n)
    for pi in permutations(range(n)):
        model = SimpleNamespace(sample=lambda entropy, pi=pi: np.array(pi))
        monkeypatch.setattr(mallows, "MallowsModel", lambda model=model, **_: model)
        shuffled = shuffler.shuffle(answers, Entropy.from_seed(0))
        assert tuple(shuffled.tolist()) == released(answers, conjugated(order, pi))


@pytest.mark.parametrize("distance", MALLOWS_DISTANCES)
def test_a_shuffler_keeps_the_alpha_it_was_asked_for(distance):
    sets, _ = CASES["five, in disorder"]
    groups = Groups.from_sets(sets, num_users=5)
    shuffler = MallowsShuffler.for_groups(groups, 2.0, distance=distance)
    order = tuple(shuffler.reference.order.tolist())
    sigmas = {conjugated(order, pi): distance_of(distance, pi) for pi in permutations(range(5))}
    attained = max(largest_log_ratio(group, sigmas, 5) for group in sets)
    assert shuffler.theta * attained == pytest.approx(2.0)
    assert shuffler.theta * attained <= 2.0 == shuffler.alpha_for(groups)
