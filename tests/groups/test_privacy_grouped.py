"""The release itself by listing everything: all permutations, all data, all outcomes."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import enumeration, profiles
from shuffledp.amplification.atom_law import atom_delta
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.groups import privacy as grouped
from shuffledp.groups.privacy import (
    MALLOWS_DISTANCES,
    grouped_epsilon,
)

# The enumeration adds doubles; what it may be off by.
RELATIVE, ABSOLUTE = 1e-11, 1e-14


def distance_of(name, pi):
    """Distance to the identity, from the definition."""
    n = len(pi)
    if name == "kendall":
        return sum(pi[i] > pi[j] for i in range(n) for j in range(i + 1, n))
    if name == "hamming":
        return sum(pi[i] != i for i in range(n))
    left, cycles = set(range(n)), 0
    while left:
        start = here = min(left)
        cycles += 1
        while True:
            left.discard(here)
            here = pi[here]
            if here == start:
                break
    return n - cycles


@cache
def permutations_by_distance(name, n):
    return [(pi, distance_of(name, pi)) for pi in itertools.permutations(range(n))]


@cache
def release_pairs(k, epsilon0, n, name, theta):
    """Laws of the release, a row each ordered pair of neighbouring datasets."""
    channel = np.array(enumeration.randomized_response(k, math.exp(epsilon0)))
    values = list(itertools.product(range(k), repeat=n))
    single = np.array([channel[list(x)] for x in values])  # dataset, user, report
    law = np.zeros((len(values), len(values)))
    total = 0.0
    for pi, d in permutations_by_distance(name, n):
        weight = math.exp(-theta * d)
        total += weight
        factors = [single[:, pi[j], :] for j in range(n)]  # place j shows user pi[j]
        product = factors[0]
        for factor in factors[1:]:
            product = (product[:, :, None] * factor[:, None, :]).reshape(len(values), -1)
        law += weight * product
    law /= total
    index = {x: i for i, x in enumerate(values)}
    first, second = [], []
    for x in values:
        for user in range(n):
            for other in range(k):
                if other != x[user]:
                    first.append(index[x])
                    second.append(index[(*x[:user], other, *x[user + 1 :])])
    return law[first], law[second]


def exact_delta(case, epsilon):
    p, q = release_pairs(*case)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1).max())


def exact_epsilon(case, delta):
    low, high = 0.0, case[1]
    if exact_delta(case, 0.0) <= delta:
        return 0.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exact_delta(case, middle) > delta else (low, middle)
    return high


CASES = [
    (2, 1.0, 3, 0.3),
    (2, 1.0, 5, 0.05),
    (2, 3.0, 5, 1.0),
    (2, 0.4, 4, 0.02),
    (3, 1.0, 3, 0.1),
    (3, 2.0, 4, 0.4),
]


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
@pytest.mark.parametrize(("k", "epsilon0", "n", "theta"), CASES)
def test_the_release_is_inside_its_bounds(k, epsilon0, n, theta, name):
    case = (k, epsilon0, n, name, theta)
    for profile in (profiles.k_rr(epsilon0, k), profiles.any_randomizer(epsilon0)):
        asked = {"num_users": n, "theta": theta, "distance": name}
        for share in (0.0, 0.1, 0.4, 0.8, 0.99):
            exact = exact_delta(case, share * epsilon0)
            # At a smaller delta more than this epsilon is unavoidable, at a larger one less is.
            less = exact * (1.0 - RELATIVE) - ABSOLUTE
            if less > 0.0:
                bound = grouped_epsilon(profile, delta=less, **asked)
                assert bound.upper >= share * epsilon0 * (1.0 - RELATIVE)
            if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
                more = exact * (1.0 + RELATIVE) + ABSOLUTE
                bound = grouped_epsilon(profile, delta=more, **asked)
                assert bound.lower <= share * epsilon0 * (1.0 + RELATIVE) + ABSOLUTE
        for delta in (0.001, 0.03, 0.2):
            exact = exact_epsilon(case, delta)
            bound = grouped_epsilon(profile, delta=delta, **asked)
            assert exact <= bound.upper + 1e-9
            if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
                assert bound.lower <= exact + 1e-9


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_the_release_hides_less_than_a_uniform_shuffle_and_the_bound_knows(name):
    # Were theta ignored the number would be too small: the enumeration would find out.
    case = (2, 1.0, 4, name, 3.0)
    uniform = account_delta(profiles.k_rr(1.0, 2), num_users=4, epsilon=0.8).upper
    assert exact_delta(case, 0.8) > 1.05 * uniform


def test_exchanging_two_entries_changes_the_distance_by_what_thinning_assumes():
    n = 5
    largest = {name: [0] * n for name in MALLOWS_DISTANCES}
    for name in MALLOWS_DISTANCES:
        for pi, own in permutations_by_distance(name, n):
            for i, j in itertools.combinations(range(n), 2):
                swapped = list(pi)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                change = abs(distance_of(name, swapped) - own)
                largest[name][j - i] = max(largest[name][j - i], change)
    assert largest["kendall"][1:] == [2 * far - 1 for far in range(1, n)]
    assert largest["hamming"][1:] == [2] * (n - 1)
    assert largest["cayley"][1:] == [1] * (n - 1)


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_the_victims_place_is_as_spread_as_thinning_assumes(name):
    # Whatever is revealed of the others' places, within a block any two places of the victim are
    # within e^(theta b) of each other.
    n, theta, victim = 5, 0.7, 1
    weights = [(pi, math.exp(-theta * d)) for pi, d in permutations_by_distance(name, n)]
    for size in (2, 3, 5):
        exchange = {"kendall": 2 * size - 3, "hamming": 2, "cayley": 1}[name]
        tightest = 0.0
        for hidden in itertools.combinations([u for u in range(n) if u != victim], n - 2):
            views = {}
            for pi, weight in weights:
                block = pi.index(victim) // size
                seen = tuple(u if u != victim and u not in hidden else -1 for u in pi)
                places = views.setdefault((block, seen), {})
                places[pi.index(victim)] = places.get(pi.index(victim), 0.0) + weight
            for places in views.values():
                tightest = max(tightest, max(places.values()) / min(places.values()))
        assert tightest <= math.exp(theta * exchange) * (1.0 + 1e-12)
    assert tightest > 1.1


def brute_force_thinned(profile_atoms, num_users, kappa, epsilon):
    """E over N ~ Bin(L - 1, kappa) of (B) for N + 1 users, by listing all outcomes."""
    e = math.exp(epsilon)
    gains = [(m, r0 - e * r1) for m, r0, r1 in profile_atoms]
    gains.append((1.0 - sum(m for m, _, _ in profile_atoms), 0.0))
    total = 0.0
    for others in range(num_users):
        chance = math.comb(num_users - 1, others) * kappa**others
        chance *= (1.0 - kappa) ** (num_users - 1 - others)
        for outcome in itertools.product(gains, repeat=others + 1):
            mass = math.prod(m for m, _ in outcome)
            total += chance * mass * max(sum(g for _, g in outcome), 0.0) / (others + 1)
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("name", ["hamming", "cayley"])
def test_thinning_is_the_kernel_with_a_smaller_blanket(name, epsilon):
    p, theta, n = math.e, 0.4, 5
    atoms = [(1.0 / (p + 1.0), p, 1.0), (1.0 / (p + 1.0), 1.0, p)]
    kappa = math.exp(-theta * (2.0 if name == "hamming" else 1.0))
    laws, size = grouped._thinning(LocalProfile(epsilon0=1.0), n, theta, name)
    assert size == n
    found = atom_delta(laws[0], n, epsilon)
    expected = brute_force_thinned(atoms, n, kappa, epsilon)
    assert expected <= found.upper <= expected * (1.0 + 1e-5) + 1e-9


def test_thinning_dominates_every_law_of_the_victims_place():
    # E[(sum p_t G_t)_+] for a law p on T against N + 1 places, N ~ Bin(size(T) - 1, kappa).
    generator = Entropy.from_seed(51).generator()
    p0, e = math.e, math.exp(0.2)
    gains = np.array([p0 - e, 1.0 - p0 * e])  # blanket reports of binary randomized response
    tightest = 0.0
    for size, spread in itertools.product((2, 4, 6), (1.01, 2.0, 9.0)):
        outcomes = np.array(list(itertools.product(gains, repeat=size)))
        uniform = [np.maximum(outcomes[:, : m + 1].mean(axis=1), 0.0).mean() for m in range(size)]
        kappa = 1.0 / spread
        bound = sum(
            math.comb(size - 1, m) * kappa**m * (1.0 - kappa) ** (size - 1 - m) * uniform[m]
            for m in range(size)
        )
        for steep in range(200):
            law = spread ** (generator.random(size) if steep else np.eye(size)[0])
            law /= law.sum()
            exact = np.maximum(outcomes @ law, 0.0).mean()
            assert exact <= bound * (1.0 + 1e-12)
            tightest = max(tightest, exact / bound)
    assert tightest > 0.99


def test_blocks_cover_everybody():
    for n, theta in itertools.product((2, 3, 7, 10, 1000, 10**6 + 3), (1e-9, 1e-3, 0.2, 1.0)):
        size, kappa = grouped._block_of("kendall", n, theta)
        blocks = n // size
        largest = -(-n // blocks)
        assert n // blocks == size
        with mp.workdps(40):
            assert kappa <= mp.exp(-mpf(theta) * max(2 * largest - 3, 0))
        assert kappa > 0.0


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_the_ends_of_theta(name):
    profile = profiles.k_rr(1.0, 3)
    asked = {"num_users": 1000, "distance": name}
    uniform = account_epsilon(profile, num_users=1000, delta=1e-6)
    found = grouped_epsilon(profile, theta=0.0, delta=1e-6, **asked)
    assert (found.upper, found.lower) == (uniform.upper, uniform.lower)
    for theta in (math.inf, 1e308, 1e5):
        found = grouped_epsilon(profile, theta=theta, delta=1e-6, **asked)
        local = account_epsilon(profile, num_users=1, delta=1e-6)
        assert found.upper == local.upper
        assert found.method == "local"
    assert found.lower <= local.lower
    kept = grouped_epsilon(profile, theta=math.inf, delta=1e-6, **asked)
    assert kept.lower == pytest.approx(kept.upper, rel=1e-6)
    # Close to uniform the numbers are those of the uniform shuffle.
    for theta in (5e-324, 1e-15):
        found = grouped_epsilon(profile, theta=theta, delta=1e-6, **asked)
        assert found.upper == pytest.approx(uniform.upper, rel=1e-6)


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_one_user_nothing_to_hide_and_no_delta(name):
    asked = {"distance": name, "theta": 0.1}
    for profile in (profiles.any_randomizer(1.0), profiles.k_rr(1.0, 2)):
        alone = grouped_epsilon(profile, num_users=1, delta=0.01, **asked)
        assert alone.upper == account_epsilon(profile, num_users=1, delta=0.01).upper
        assert grouped_epsilon(profile, num_users=50, delta=0.0, **asked).upper == 1.0
    silent = grouped_epsilon(profiles.any_randomizer(0.0), num_users=50, delta=1e-6, **asked)
    assert silent.upper == 0.0
    loud = grouped_epsilon(profiles.any_randomizer(500.0), num_users=50, delta=1e-6, **asked)
    assert loud.upper == pytest.approx(500.0)
    shrunk = grouped_epsilon(
        profiles.any_randomizer(1.0), num_users=50, delta=1e-6, with_lower=False, **asked
    )
    assert shrunk.lower is None


def test_stated_blankets_are_used_and_their_accuracy_is_assumed():
    p = math.e
    atoms = tuple(
        BlanketAtom(mass=m / (p + 2.0), ratio0=r0, ratio1=r1)
        for m, r0, r1 in ((1.0, p, 1.0), (1.0, 1.0, p), (1.0, 1.0, 1.0))
    )
    stated = LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, blanket=atoms)
    asked = {"num_users": 1000, "theta": 0.01, "distance": "cayley"}
    found = grouped_epsilon(stated, delta=1e-6, **asked)
    known = grouped_epsilon(profiles.k_rr(1.0, 3), delta=1e-6, **asked)
    assert found.upper == pytest.approx(known.upper, rel=1e-6)
    assert any("ten digits" in text for text in found.assumptions)
    assert not any("ten digits" in text for text in known.assumptions)
    assert found.method == "mallows-thinned"
    nonsense = LocalProfile(
        epsilon0=1.0,
        family=RandomizerFamily.OTHER,
        blanket=(BlanketAtom(mass=0.5, ratio0=1.0, ratio1=1.0),),
    )
    for wrong in (nonsense, replace(stated, delta0=1e-12)):
        assert grouped._thinning(wrong, 1000, 0.01, "cayley")[0] == []


def test_both_orders_of_a_stated_blanket_count():
    # Of reports (0.5, 0.5) and (0.1, 0.9); close to uniform the number is that of the shuffle.
    atoms = (
        BlanketAtom(mass=0.1, ratio0=5.0, ratio1=1.0),
        BlanketAtom(mass=0.5, ratio0=1.0, ratio1=1.8),
    )
    stated = LocalProfile(epsilon0=math.log(5.0), family=RandomizerFamily.OTHER, blanket=atoms)
    uniform = account_epsilon(stated, num_users=1000, delta=1e-6)
    found = grouped_epsilon(stated, num_users=1000, theta=1e-15, distance="cayley", delta=1e-6)
    assert (found.method, uniform.method) == ("mallows-thinned", "stated-blanket")
    assert found.upper == pytest.approx(uniform.upper, rel=1e-6)


def test_approximate_randomizers_keep_their_local_guarantee():
    profile = LocalProfile(epsilon0=1.0, delta0=1e-12)
    asked = {"num_users": 1000, "theta": 1e-8, "distance": "kendall"}
    found = grouped_epsilon(profile, delta=1e-6, **asked)
    assert found.method == "local"
    assert found.upper == account_epsilon(profile, num_users=1, delta=1e-6).upper
    with pytest.raises(OutOfRegimeError, match="delta0"):
        grouped_epsilon(profile, delta=1e-13, **asked)


@settings(max_examples=20)
@given(
    theta=st.floats(1e-6, 2.0),
    more=st.floats(1.001, 10.0),
    name=st.sampled_from(MALLOWS_DISTANCES),
    n=st.sampled_from([10, 300, 20_000]),
)
def test_more_order_more_users_more_delta(theta, more, name, n):
    profile = profiles.any_randomizer(1.0)

    def epsilon(**changed):
        asked = {"num_users": n, "theta": theta, "distance": name, "delta": 1e-5} | changed
        return grouped_epsilon(profile, with_lower=False, **asked).upper

    base = epsilon()
    slack = 1.0 + 1e-5
    # Blocks are cut to whole users, which costs a little at times.
    rough = 1.15 if name == "kendall" else slack
    assert epsilon(theta=theta * more) >= base / rough
    assert epsilon(delta=1e-3) <= base * slack
    assert epsilon(num_users=2 * n) <= base * rough
    stronger = grouped_epsilon(
        profiles.any_randomizer(1.5), num_users=n, theta=theta, distance=name, delta=1e-5
    )
    assert base <= stronger.upper * slack
    assert stronger.lower <= stronger.upper


def test_millions_of_users_take_no_longer():
    for name in MALLOWS_DISTANCES:
        found = grouped_epsilon(
            profiles.any_randomizer(1.0), num_users=10**15, theta=1e-4, distance=name, delta=1e-8
        )
        assert 0.0 < found.lower <= found.upper < 0.2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"theta": -1.0}, "theta"),
        ({"theta": math.nan}, "theta"),
        ({"theta": "1"}, "theta"),
        ({"theta": None}, "theta"),
        ({"distance": "footrule"}, "distance"),
        ({"num_users": 0}, "num_users"),
        ({"num_users": 2.5}, "num_users"),
    ],
)
def test_bad_arguments_are_named(changed, words):
    asked = {"num_users": 10, "theta": 0.1, "distance": "kendall"} | changed
    with pytest.raises(ParameterError, match=words):
        grouped_epsilon(profiles.any_randomizer(1.0), delta=1e-6, **asked)


def test_bad_targets_are_named():
    asked = {"num_users": 10, "theta": 0.1, "distance": "kendall"}
    profile = profiles.any_randomizer(1.0)
    for delta in (-0.1, 1.0, math.nan):
        with pytest.raises(ParameterError, match="delta"):
            grouped_epsilon(profile, delta=delta, **asked)
