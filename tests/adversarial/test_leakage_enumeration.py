"""What an adversary guesses, against all data and all views of tiny collections, in fractions.

Every dataset, every list of reports and every histogram is gone through; the best guess for each
view is counted. Nothing here shares code or formulas with the package, save for what is judged.
"""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.leakage.any_shuffler import (
    crowd_vulnerability_upper,
    positions_vulnerability,
    vulnerability_from_guarantee,
)
from shuffledp.leakage.counts.blanket import blanket_vulnerability_upper
from shuffledp.leakage.counts.coarse_lattice import coarse_vulnerability
from shuffledp.leakage.counts.fullest_bin import (
    alike_bins,
    by_contour,
    excess_over,
    maximum_load_excess,
)
from shuffledp.leakage.counts.others import Response
from shuffledp.leakage.strong import _checked, strong_vulnerability, worst_knowledge
from shuffledp.leakage.uninformed import (
    exchangeable_vulnerability,
    many_values_ends,
    shuffled_vulnerability,
)

# Exact methods may be off by their round-off only.
TIGHT = 3e-12


def randomized_response(domain_size, truth):
    """The matrix of k-RR."""
    other = (1 - truth) / (domain_size - 1)
    return [[truth if x == y else other for y in range(domain_size)] for x in range(domain_size)]


def view(reports, shuffled):
    """What the adversary sees of the reports."""
    return tuple(sorted(reports)) if shuffled else tuple(reports)


def law_of_views(data, matrix, shuffled):
    """Chances of the views of one dataset."""
    law = defaultdict(Fraction)
    for reports in itertools.product(range(len(matrix[0])), repeat=len(data)):
        chance = math.prod(matrix[x][y] for x, y in zip(data, reports, strict=True))
        if chance:
            law[view(reports, shuffled)] += chance
    return law


def vulnerability(weighed_data, matrix, *, shuffled):
    """The best adversary's success at guessing the value of user 0."""
    joint = defaultdict(lambda: defaultdict(Fraction))
    for data, weight in weighed_data:
        for seen, chance in law_of_views(data, matrix, shuffled).items():
            joint[seen][data[0]] += weight * chance
    return sum(max(by_value.values()) for by_value in joint.values())


def independent(prior, num_users):
    """All datasets with their chances, where users are independent."""
    for data in itertools.product(range(len(prior)), repeat=num_users):
        yield data, math.prod(prior[x] for x in data)


def knowing(others, prior):
    """The datasets left to an adversary who knows the others' values."""
    return [((x, *others), weight) for x, weight in enumerate(prior)]


def identity(domain_size):
    """The matrix of users who tell the truth."""
    return [[Fraction(int(x == y)) for y in range(domain_size)] for x in range(domain_size)]


def assert_holds(bound, exact, *, tight=True):
    """The enclosure holds the exact number, and is no wider than round-off."""
    assert Fraction(bound.lower) <= exact <= Fraction(bound.upper)
    if tight:
        assert bound.upper - bound.lower <= TIGHT * float(exact)


SIZES = [(1, 2), (2, 2), (3, 2), (6, 2), (1, 3), (2, 3), (4, 3), (3, 4), (4, 4)]
TRUTHS = [Fraction(1), Fraction(9, 10), Fraction(3, 5)]
PRIORS = {
    2: [Fraction(1, 5), Fraction(4, 5)],
    3: [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)],
    4: [Fraction(1, 10), Fraction(1, 5), Fraction(3, 10), Fraction(2, 5)],
}


@pytest.mark.parametrize(("num_users", "domain_size"), SIZES)
def test_the_uninformed_adversary(num_users, domain_size):
    uniform = [Fraction(1, domain_size)] * domain_size
    data = list(independent(uniform, num_users))
    for truth in TRUTHS:
        matrix = randomized_response(domain_size, truth)
        both = vulnerability(data, matrix, shuffled=True)
        assert_holds(shuffled_vulnerability(num_users, domain_size, truth), both)
        if num_users <= 3:
            assert vulnerability(data, matrix, shuffled=False) == truth  # Proposition 15
    alone = vulnerability(data, identity(domain_size), shuffled=True)
    assert_holds(shuffled_vulnerability(num_users, domain_size, 1), alone)


@pytest.mark.parametrize(("num_users", "domain_size"), [(2, 2), (5, 2), (2, 3), (4, 3), (3, 4)])
def test_a_prior_that_is_not_uniform(num_users, domain_size):
    prior = PRIORS[domain_size]
    for truth in TRUTHS:
        matrix = randomized_response(domain_size, truth)
        exact = vulnerability(independent(prior, num_users), matrix, shuffled=True)
        assert_holds(exchangeable_vulnerability(num_users, matrix, prior=prior), exact)
        law = np.array([float(chance) for chance in prior])
        assert_holds(many_values_ends(num_users, float(truth), law), exact, tight=truth == 1)


def test_a_randomizer_given_by_a_matrix():
    matrix = [
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), Fraction(0)],
        [Fraction(1, 8), Fraction(5, 8), Fraction(1, 8), Fraction(1, 8)],
        [Fraction(0), Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)],
    ]
    for prior in ([Fraction(1, 3)] * 3, PRIORS[3]):
        for num_users in (1, 2, 4):
            exact = vulnerability(independent(prior, num_users), matrix, shuffled=True)
            assert_holds(exchangeable_vulnerability(num_users, matrix, prior=prior), exact)


def loads(num_balls, num_bins):
    """The mean load of the fullest bin, by throwing the balls in every way."""
    total = sum(
        max(Counter(thrown).values())
        for thrown in itertools.product(range(num_bins), repeat=num_balls)
    )
    return Fraction(total, num_bins**num_balls)


@pytest.mark.parametrize(("num_balls", "num_bins"), [(1, 7), (4, 6), (6, 4), (7, 3), (9, 2)])
def test_the_fullest_bin(num_balls, num_bins):
    excess = loads(num_balls, num_bins) - Fraction(num_balls, num_bins)
    ends = maximum_load_excess(num_balls, num_bins)
    assert Fraction(ends.lower) <= excess <= Fraction(ends.upper)
    assert ends.upper - ends.lower <= 1e-11 * float(excess)
    if num_balls > 1:
        ends = excess_over(
            Fraction(num_balls, num_bins),
            alike_bins(num_balls, num_bins, Fraction(1, num_bins)),
            by_contour,
        )
        assert Fraction(ends.lower) <= excess <= Fraction(ends.upper)
        assert ends.upper - ends.lower <= 1e-10 * float(excess)


@pytest.mark.parametrize("domain_size", [2, 3])
@pytest.mark.parametrize("num_users", [2, 4])
def test_the_strong_adversary(num_users, domain_size):
    uniform = [Fraction(1, domain_size)] * domain_size
    for prior in (uniform, PRIORS[domain_size]):
        for truth in TRUTHS[1:]:
            matrix = randomized_response(domain_size, truth)
            found = {}
            for others in itertools.combinations_with_replacement(
                range(domain_size), num_users - 1
            ):
                counts = tuple(others.count(value) for value in range(domain_size))
                exact = vulnerability(knowing(others, prior), matrix, shuffled=True)
                assert_holds(strong_vulnerability(truth, counts, prior=prior), exact)
                assert_holds(strong_vulnerability(matrix, counts, prior=prior), exact)
                asked = _checked(matrix, counts, prior, 0)
                blocks = coarse_vulnerability(asked.kinds(), asked.prior[:, None] * asked.rows())
                assert_holds(blocks, exact, tight=False)
                found[counts] = exact
            law = np.array([float(chance) for chance in prior])
            for randomizer in (float(truth), [[float(entry) for entry in row] for row in matrix]):
                worst, _ = worst_knowledge(num_users, randomizer, law)
                assert_holds(worst, max(found.values()))
            if prior is uniform:
                ceiling = blanket_vulnerability_upper(num_users, domain_size, truth)
                assert max(found.values()) <= Fraction(ceiling)


def test_who_knows_some_of_the_others():
    truth, prior = Fraction(4, 5), PRIORS[3]
    matrix = randomized_response(3, truth)
    for known in ((), (0,), (2,), (0, 2)):
        unknown = 3 - len(known)
        data = [
            ((x, *known, *rest), weight * prior[x])
            for x in range(3)
            for rest, weight in independent(prior, unknown)
        ]
        counts = [known.count(value) for value in range(3)]
        exact = vulnerability(data, matrix, shuffled=True)
        for randomizer in (truth, matrix):
            bound = strong_vulnerability(randomizer, counts, prior=prior, num_unknown=unknown)
            assert_holds(bound, exact)


def permuted(law_of_orders, matrix, prior, target):
    """Success against reports that a random permutation, drawn apart from the data, rearranges."""
    size = len(law_of_orders[0][0])
    joint = defaultdict(lambda: defaultdict(Fraction))
    for data, weight in independent(prior, size):
        for reports, chance in law_of_views(data, matrix, shuffled=False).items():
            for order, share in law_of_orders:
                released = [0] * size
                for user, place in enumerate(order):
                    released[place] = reports[user]
                joint[tuple(released)][data[target]] += weight * chance * share
    return sum(max(law.values()) for law in joint.values())


def test_a_permutation_that_is_not_uniform():
    weights = dict(zip(itertools.permutations(range(3)), (8, 4, 2, 1, 1, 5), strict=True))
    total = sum(weights.values())
    orders = [(order, Fraction(weight, total)) for order, weight in weights.items()]
    for target in range(3):
        places = [Fraction(0)] * 3
        for order, share in orders:
            places[order[target]] += share
        for domain_size in (2, 3):
            matrix = randomized_response(domain_size, Fraction(4, 5))
            prior = PRIORS[domain_size]
            exact = permuted(orders, matrix, prior, target)
            bound = positions_vulnerability([float(place) for place in places], matrix, prior=prior)
            # Closed bounds where places are not alike; a guess without reports is below.
            assert_holds(bound, exact, tight=False)
            assert max(prior) * (1.0 - 1e-12) <= bound.lower


@pytest.mark.parametrize("domain_size", [2, 3])
def test_a_random_crowd(domain_size):
    """Each other user joins the shuffle by a coin; who stays out is seen beside the report."""
    overlaps = [Fraction(3, 10), Fraction(9, 10), Fraction(1, 2)]
    uniform = [Fraction(1, domain_size)] * domain_size
    for truth in TRUTHS[1:]:
        matrix = randomized_response(domain_size, truth)
        expected = Fraction(0)
        for coins in itertools.product((0, 1), repeat=3):
            chance = math.prod(
                k if coin else 1 - k for k, coin in zip(overlaps, coins, strict=True)
            )
            data = independent(uniform, 1 + sum(coins))
            expected += chance * vulnerability(data, matrix, shuffled=True)
        ceiling = crowd_vulnerability_upper(
            Response.of(truth, domain_size), np.array(overlaps, dtype=float)
        )
        assert expected <= Fraction(ceiling) <= expected * (1 + Fraction(1, 10**6))


def test_no_mechanism_exceeds_what_its_guarantee_allows():
    generator = Entropy.from_seed(77).generator()
    for _ in range(60):
        domain_size, num_outputs = 2 + int(generator.integers(3)), 2 + int(generator.integers(4))
        table = generator.random((domain_size, num_outputs)) ** 4
        table /= table.sum(axis=1, keepdims=True)
        prior = generator.dirichlet([1.0] * domain_size)
        exact = sum((prior[:, None] * table).max(axis=0))
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            delta = max(
                sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(one, two, strict=True))
                for one in table
                for two in table
            )
            assert exact <= vulnerability_from_guarantee(prior, epsilon, delta) + 1e-15
