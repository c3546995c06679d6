"""Reports that keep some of their order, against all sequences and against whole channels."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from oracles.shuffler_channels import permutation_channel
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage import any_shuffler as module
from shuffledp.leakage.any_shuffler import positions_vulnerability
from shuffledp.leakage.channel import Channel, product_channel
from shuffledp.leakage.uninformed import exchangeable_vulnerability, shuffled_vulnerability

BINARY = [[0.75, 0.25], [0.25, 0.75]]


def by_sequences(place_law, rows, prior):
    """V by listing what is released at all places, without the module's formula."""
    k, m, n = len(rows), len(rows[0]), len(place_law)
    others = [sum(prior[x] * rows[x][y] for x in range(k)) for y in range(m)]
    total = 0
    for z in product(range(m), repeat=n):
        rest = [math.prod(others[z[i]] for i in range(n) if i != j) for j in range(n)]
        total += max(
            prior[x] * sum(place_law[j] * rows[x][z[j]] * rest[j] for j in range(n))
            for x in range(k)
        )
    return total


def random_case(seed):
    generator = Entropy.from_seed(seed).generator()
    k, m, n = (int(generator.integers(2, high)) for high in (4, 4, 6))
    rows = generator.dirichlet(np.ones(m), size=k)
    return generator.dirichlet(np.ones(n)), rows, generator.dirichlet(np.ones(k))


@pytest.mark.parametrize("seed", range(24))
def test_bounds_enclose_what_sequences_give(seed):
    place_law, rows, prior = random_case(seed)
    exact = by_sequences(place_law.tolist(), rows.tolist(), prior.tolist())
    found = positions_vulnerability(place_law, rows, prior=prior)
    assert found.method == "positions-bounded"
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12


def test_a_wrong_law_of_the_place_is_seen():
    """The negative control: bounds for another law of the place do not enclose the truth."""
    law = 0.999 ** np.arange(8000)
    law /= law.sum()
    truth = 0.5 + 0.25 * math.sqrt(2.0 / math.pi * float((law**2).sum()))  # nearly a normal law
    right = positions_vulnerability(law, BINARY)
    assert right.lower <= truth <= right.upper
    wrong = law[::4] / law[::4].sum()
    assert positions_vulnerability(wrong, BINARY).lower > truth


@pytest.mark.parametrize("values", [2, 3])
def test_equals_the_whole_channel_of_a_permutation_law(values):
    """Randomize, permute by a law that is no Mallows law, look at the whole sequence."""
    n, generator = 4, Entropy.from_seed(values).generator()
    table = np.array(list(permutations(range(n))))
    chances = generator.dirichlet(np.full(len(table), 0.3))
    rows = generator.dirichlet(np.ones(values), size=values)
    prior = generator.dirichlet(np.ones(values))
    channel = product_channel(n, Channel(rows)) @ permutation_channel(table, chances, values)
    datasets = np.array(list(product(range(values), repeat=n)))
    joint = prior[datasets].prod(axis=1)[:, None] * channel.to_dense()
    for target in range(n):
        by_value = [joint[datasets[:, target] == x].sum(axis=0) for x in range(values)]
        exact = np.max(by_value, axis=0).sum()
        place_law = np.bincount(table[:, target], weights=chances, minlength=n)
        found = positions_vulnerability(place_law, rows, prior=prior)
        assert found.lower <= exact * (1.0 + 1e-13)
        assert exact <= found.upper * (1.0 + 1e-13)


def test_exact_fractions_for_randomized_response():
    """r + (p - r) E[max_w sum of M_j over z_j = w], uniform z, in fractions."""
    place_law = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    truth, k = Fraction(7, 10), 3
    other = (1 - truth) / (k - 1)
    mean = sum(
        max(sum(m for m, y in zip(place_law, z, strict=True) if y == w) for w in range(k))
        for z in product(range(k), repeat=3)
    ) / Fraction(k**3)
    exact = other + (truth - other) * mean
    rows = [[truth if x == y else other for y in range(k)] for x in range(k)]
    assert by_sequences(place_law, rows, [Fraction(1, k)] * k) == exact
    found = positions_vulnerability([0.5, 1 / 3, 1 / 6], np.array(rows, dtype=float))
    assert found.lower <= float(exact) <= found.upper


def test_differences_that_do_not_vary():
    places = module._places(np.array([0.75, 0.25]))
    found = module._positive_part(np.zeros(2), np.array([0.5, 0.5]), places)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_equal_places_are_a_uniform_shuffle():
    law = np.zeros(30)
    law[3:23] = 0.05
    found = positions_vulnerability(law, BINARY)
    exact = shuffled_vulnerability(20, 2, 0.75)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= found.lower + 1e-9
    # Equal but for rounding, at a size at which nothing can be listed.
    rough = np.full(10_000, 1e-4)
    rough[0] += 1e-18
    three = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    large = positions_vulnerability(rough / rough.sum(), three)
    exact = shuffled_vulnerability(10_000, 3, 0.8)
    assert large.lower <= exact.upper
    assert exact.lower <= large.upper <= large.lower + 1e-9


def test_more_noise_tells_less():
    law = [0.6, 0.3, 0.1]
    values = [
        positions_vulnerability(law, [[p, 1 - p], [1 - p, p]]).upper for p in (0.5, 0.7, 0.9, 1)
    ]
    assert values == sorted(values)
    assert values[0] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("size", [3_000, 1_000_000])
def test_many_places_by_the_normal_law(size):
    law = np.exp(-np.abs(np.arange(size) - size // 2) / min(size / 20, 2000.0))
    law /= law.sum()
    found = positions_vulnerability(law, BINARY)
    assert found.method == "positions-bounded"
    # 1/2 + (p - 1/2) E abs(sum of signs times masses), nearly a normal law.
    normal = 0.5 + 0.25 * math.sqrt(2.0 / math.pi * float((law**2).sum()))
    assert found.lower <= normal <= found.upper
    assert found.upper - found.lower < 0.15 * (normal - 0.5)


def test_a_sure_guess_and_a_single_place():
    assert positions_vulnerability([1.0], BINARY).upper == pytest.approx(0.75)
    sure = positions_vulnerability([0.7, 0.3], BINARY, prior=[1.0, 0.0])
    assert sure.lower == pytest.approx(1.0)
    assert sure.upper <= 1.0
    useless = positions_vulnerability(np.arange(1.0, 101.0) / 5050.0, [[0.5, 0.5]] * 2)
    assert useless.upper == pytest.approx(0.5)


def test_equal_up_to_rounding_is_equal():
    law = np.repeat([0.125, 0.0625], [4, 8])
    law[1] *= 1.0 + 1e-13
    places = module._places(law)
    assert places.counts.tolist() == [4, 8]
    assert 0.0 < places.moved < 1e-13
    exact = exchangeable_vulnerability(12, BINARY)
    assert positions_vulnerability(law, BINARY).upper > exact.lower


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"place_law": []}, "place_law"),
        ({"place_law": [[1.0]]}, "place_law"),
        ({"place_law": [0.5, 0.6]}, "place_law"),
        ({"place_law": [1.5, -0.5]}, "place_law"),
        ({"place_law": [math.nan, 1.0]}, "place_law"),
        ({"prior": [0.5]}, "prior"),
        ({"channel": [[0.5, 0.6], [0.5, 0.5]]}, "row"),
    ],
)
def test_bad_input(change, name):
    arguments = {"place_law": [0.75, 0.25], "channel": BINARY, **change}
    with pytest.raises(ParameterError, match=name):
        positions_vulnerability(arguments.pop("place_law"), arguments.pop("channel"), **arguments)
