"""Noise on places against exact laws of small releases: d_sigma-privacy, and the central bound.

Views of the adversary are all multisets of (noisy place, report). Nothing here shares code or
formulas with the package, save for alpha and the bounds that are judged.
"""

import math
from collections import Counter
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.special import chdtri

from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.groups.displacement import DisplacementShuffler, PublicPlaces
from shuffledp.groups.groups import Groups
from shuffledp.groups.privacy import displaced_epsilon

# For the whole module; the tests of the order's law take equal shares.
FALSE_POSITIVE_RATE = 1e-9
NUM_DRAWS = 3_000

# The enumeration adds doubles; what it may be off by.
RELATIVE, ABSOLUTE = 1e-10, 1e-14

LINES = [[[0], [1], [3]], [[2], [2], [5]], [[0], [4], [9]], [[0], [1], [1], [6]]]
PLANES = [[[0, 0], [3, 4], [1, 0]], [[0, 0], [2, 1], [2, 2], [0, 5]]]
SPACE = [[[0, 0, 1], [2, 0, 0], [1, 3, 1]]]


def shuffler(cells, alpha):
    """A shuffler of one group of everybody."""
    groups = Groups.from_sets([range(len(cells))], num_users=len(cells))
    places = PublicPlaces(cells=np.array(cells))
    theta = alpha / places.sensitivity(groups)
    return DisplacementShuffler(places=places, theta=theta), groups


@pytest.mark.parametrize("cells", LINES + PLANES + SPACE)
@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_no_view_tells_the_order_by_more_than_alpha_and_some_do(cells, alpha):
    made, groups = shuffler(cells, alpha)
    claimed = made.alpha_for(groups)
    users = range(len(cells))
    axes = [range(min(c) - 2, max(c) + 3) for c in zip(*cells, strict=True)]
    window = list(product(*axes))

    def log_mass(place, centre):
        # The constant is the same around every centre, and cancels.
        return -made.theta * math.dist(place, centre)

    table = {(p, u): log_mass(p, cells[u]) for p in window for u in users}
    worst = 0.0
    most = 400 if len(cells) == 3 else 40
    if len(window) ** len(cells) <= most:
        views = list(product(window, repeat=len(cells)))
    else:
        drawn = Entropy.from_seed(1).generator().integers(0, len(window), (most, len(cells)))
        views = [tuple(window[i] for i in row) for row in drawn]
        views += permutations([tuple(c) for c in cells])
    for reports in (range(len(cells)), [0, *range(len(cells) - 1)]):  # all different; two alike
        for view in views:
            # Report j lies at view[j]. Who of those with equal reports sent which is not seen.
            loss = {}
            for sigma in permutations(users):
                names = [reports[sigma[u]] for u in users]
                total = 0.0
                for who in permutations(users):
                    if all(names[who[j]] == reports[j] for j in users):
                        total += math.exp(sum(table[view[j], who[j]] for j in users))
                loss[sigma] = math.log(total)
            worst = max(worst, max(loss.values()) - min(loss.values()))
    assert worst <= claimed * (1 + RELATIVE)
    assert worst >= claimed * 0.999  # the sensitivity is exact


@pytest.mark.parametrize("cells", [[0, 1, 3], [2, 2, 5]])
@pytest.mark.parametrize("theta", [0.5, 1.2])
def test_the_law_of_the_order_is_within_alpha_too(cells, theta):
    reach = math.ceil(36 / theta)  # what is beyond has a mass below 1e-14
    axis = np.arange(-reach, reach + max(cells) + 1)
    laws = [np.exp(-theta * np.abs(axis - cell)) for cell in cells]
    mass = np.einsum("i,j,k->ijk", *(law / law.sum() for law in laws)).ravel()
    noisy = np.stack(np.meshgrid(axis, axis, axis, indexing="ij")).reshape(3, -1)
    chances = Counter()
    for arrival in permutations(range(3)):
        # In order of the noisy places, ties in order of arrival: who lies where.
        order = np.array(arrival)[np.argsort(noisy[list(arrival)], axis=0, kind="stable")]
        for sigma in permutations(range(3)):
            is_it = (order == np.array(sigma)[:, None]).all(axis=0)
            chances[sigma] += mass[is_it].sum() / 6.0
    made, groups = on_line(cells, theta)
    claimed = made.alpha_for(groups)
    assert math.log(max(chances.values()) / min(chances.values())) <= claimed * (1 + RELATIVE)
    # The package draws that law: a person's place on the line is that in the order of the cells.
    entropy, drawn = Entropy.from_seed(9), Counter()
    for _ in range(NUM_DRAWS):
        drawn[tuple(made.draw(entropy).tolist())] += 1
    total = sum(
        (drawn[sigma] - NUM_DRAWS * chance) ** 2 / (NUM_DRAWS * chance)
        for sigma, chance in chances.items()
    )
    assert total < chdtri(5, FALSE_POSITIVE_RATE / 4)


def on_line(cells, theta):
    places = PublicPlaces(cells=np.array(cells)[:, None])
    groups = Groups.from_sets([range(len(cells))], num_users=len(cells))
    return DisplacementShuffler(places=places, theta=theta), groups


def edge_law(centre, theta, reach):
    """Masses of noisy places on 0 ... reach, with what falls beyond put on the ends."""
    if reach == 0:
        return [1.0]
    q = math.exp(-theta)
    middle = (1 - q) / (1 + q)
    masses = [middle * q ** abs(place - centre) for place in range(reach + 1)]
    masses[0] = q**centre / (1 + q)
    masses[-1] = q ** (reach - centre) / (1 + q)
    return masses


def released(symbol_laws, num_symbols):
    """The law of the multiset of independent symbols."""
    law = {(0,) * num_symbols: 1.0}
    for masses in symbol_laws:
        grown = Counter()
        for counts, chance in law.items():
            for symbol, mass in enumerate(masses):
                after = (*counts[:symbol], counts[symbol] + 1, *counts[symbol + 1 :])
                grown[after] += chance * mass
        law = grown
    return law


def hockey_stick(first, second, epsilon):
    growth = math.exp(epsilon)
    return sum(max(mass - growth * second.get(view, 0.0), 0.0) for view, mass in first.items())


def worst_delta(centres, theta, reach, epsilon0, epsilons):
    """The exact divergence of neighbouring data, for the worst data of the others."""
    truth = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    places = [edge_law(centre, theta, reach) for centre in centres]
    worst = np.zeros(len(epsilons))

    def symbols(user, bit):
        says = (truth, 1 - truth) if bit == 0 else (1 - truth, truth)
        return [place * say for place in places[user] for say in says]

    for victim in {centre: user for user, centre in enumerate(centres)}.values():
        others = [user for user in range(len(centres)) if user != victim]
        # Users of one centre are alike.
        alike = {
            tuple(
                sorted((centres[user], bit) for user, bit in zip(others, bits, strict=True))
            ): bits
            for bits in product((0, 1), repeat=len(others))
        }
        for bits in alike.values():
            laws = [symbols(user, bit) for user, bit in zip(others, bits, strict=True)]
            rest = released(laws, 2 * (reach + 1))
            laws = []
            for bit in (0, 1):
                law = Counter()
                for counts, chance in rest.items():
                    for symbol, mass in enumerate(symbols(victim, bit)):
                        after = (*counts[:symbol], counts[symbol] + 1, *counts[symbol + 1 :])
                        law[after] += chance * mass
                laws.append(law)
            for index, epsilon in enumerate(epsilons):
                found = max(hockey_stick(*laws, epsilon), hockey_stick(*laws[::-1], epsilon))
                worst[index] = max(worst[index], found)
    return worst


def uniform_delta(users, epsilon0, epsilon):
    """The exact divergence of a uniform shuffle of bits, for the worst data of the others."""
    return worst_delta([0] * users, 1.0, 0, epsilon0, [epsilon])[0]


@pytest.mark.parametrize("centres", [[0, 1, 2], [0, 0, 3], [1, 1, 1], [0, 2, 4]])
@pytest.mark.parametrize("theta", [0.05, 0.4, 1.5])
def test_thinning_is_an_upper_bound(centres, theta):
    epsilon0, epsilons = 1.0, [0.0, 0.3, 0.7]
    truth = worst_delta(centres, theta, 4, epsilon0, epsilons)
    uniform = {
        (m, epsilon): uniform_delta(m, epsilon0, epsilon) for m in (1, 2, 3) for epsilon in epsilons
    }
    for index, epsilon in enumerate(epsilons):
        bound = 0.0
        for victim, centre in enumerate(centres):
            chances = [
                math.exp(-theta * abs(other - centre))
                for user, other in enumerate(centres)
                if user != victim
            ]
            total = 0.0
            for coins in product((0, 1), repeat=len(chances)):
                weight = math.prod(
                    chance if coin else 1 - chance
                    for coin, chance in zip(coins, chances, strict=True)
                )
                total += weight * uniform[1 + sum(coins), epsilon]
            bound = max(bound, total)
        assert truth[index] <= bound * (1 + RELATIVE) + ABSOLUTE


@pytest.mark.parametrize("theta", [0.02, 0.2])
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_the_bound_that_is_reported_holds(theta, epsilon0):
    centres, epsilons = [0, 0, 1, 1, 1], [0.0, 0.1 * epsilon0, 0.4 * epsilon0]
    truth = worst_delta(centres, theta, 1, epsilon0, epsilons)
    made = DisplacementShuffler(places=PublicPlaces(cells=np.array(centres)[:, None]), theta=theta)
    crowd = float(made.crowds_lower().min())
    sums = [sum(math.exp(-theta * abs(a - b)) for b in centres) - 1.0 for a in centres]
    assert 0.98 * min(sums) <= crowd <= min(sums)
    profiles = (
        LocalProfile(epsilon0=epsilon0),
        LocalProfile(
            epsilon0=epsilon0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2
        ),
    )
    for profile in profiles:
        for exact, epsilon in zip(truth, epsilons, strict=True):
            asked = {"num_users": len(centres), "expected_crowd": crowd}
            # At a smaller delta more than this epsilon is unavoidable, at a larger one less is.
            less, more = exact * (1 - RELATIVE) - ABSOLUTE, exact * (1 + RELATIVE) + ABSOLUTE
            if less > 0.0:
                upper = displaced_epsilon(profile, delta=less, **asked).upper
                assert upper >= epsilon * (1 - RELATIVE)
            lower = displaced_epsilon(profile, delta=more, **asked).lower
            assert lower <= epsilon * (1 + RELATIVE) + ABSOLUTE


def test_a_constant_that_depends_on_the_centre_would_break_it():
    # Noise cut off at the ends of a finite line: not what the package does, and not private.
    theta, cells = 1.0, [0, 2, 9]

    def masses(centre):
        weights = [math.exp(-theta * abs(place - centre)) for place in range(10)]
        return [weight / sum(weights) for weight in weights]

    laws = [masses(centre) for centre in cells]
    claimed = theta * max(
        sum(abs(cells[u] - cells[s[u]]) for u in range(3)) for s in permutations(range(3))
    )
    within = max(
        math.log(laws[0][p] * laws[1][r]) - math.log(laws[1][p] * laws[0][r])
        for p, r in combinations_with_replacement(range(10), 2)
    )
    # The constants cancel where reports are rearranged, each centre being used once ...
    assert within <= claimed
    # ... but the victim's law is no longer within e^(theta d) of another's.
    assert max(math.log(laws[0][p] / laws[1][p]) for p in range(10)) > theta * 2
