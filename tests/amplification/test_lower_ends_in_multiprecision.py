"""Lower ends at large losses and large crowds, against 120 digits: nothing may cancel."""

import pytest
from mpmath import mp, mpf

from oracles import profiles
from oracles.family_laws import neutral_atoms, pair_of
from shuffledp.amplification.lower_bounds import (
    _family_data,
    unavoidable_delta,
    unavoidable_epsilon,
)
from shuffledp.amplification.registry import account_delta, account_epsilon

EPSILON0S = [20.0, 40.0, 60.0, 74.0, 100.0, 150.0, 200.0]
MAKERS = {
    "3-rr": lambda epsilon0: profiles.k_rr(epsilon0, 3),
    "1000-rr": lambda epsilon0: profiles.k_rr(epsilon0, 1000),
    "symmetric": lambda epsilon0: profiles.symmetric_unary(epsilon0, 10),
    "optimized": lambda epsilon0: profiles.optimized_unary(epsilon0, 10),
    "any": profiles.any_randomizer,
}


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(120):
        yield


def k_rr_data(p, k):
    """Mass, r0, r1 where all others hold a third answer: pair, third answer, the k - 3 others."""
    a = 1 / (p + k - 1)
    return [(a, p, mpf(1)), (a, mpf(1), p), (p * a, 1 / p, 1 / p), ((k - 3) * a, mpf(1), mpf(1))]


def unary_data(p, *, optimized, merged):
    """The same through the pair's bits, or through the third bit, all but two outcomes merged."""
    q = 1 / (1 + p) if optimized else 1 / (1 + mp.sqrt(p))
    own = mpf(1) / 2 if optimized else 1 - q
    if not merged:
        u = 1 - q
        high, low = own / q, (1 - own) / u
        return [
            (q * u, high, low),
            (q * u, low, high),
            (u * u, low, low),
            (q * q, high, high),
        ]
    unset = 1 - own  # the third bit, of those who hold the third value
    mass = q * (1 - q) * unset
    seen = own * (1 - q) * (1 - q), (1 - own) * q * (1 - q)  # by who holds either of the pair
    weight = (1 - sum(seen)) / (1 - 2 * mass)
    return [
        (mass, seen[0] / mass, seen[1] / mass),
        (mass, seen[1] / mass, seen[0] / mass),
        (1 - 2 * mass, weight, weight),
    ]


def data_of(name, epsilon0):
    p = mp.exp(mpf(epsilon0))
    if name in ("symmetric", "optimized"):
        optimized = name == "optimized"
        return [unary_data(p, optimized=optimized, merged=merged) for merged in (False, True)]
    return [k_rr_data(p, 1000 if name == "1000-rr" else 3)]


def exact_delta(data, epsilon, num_users):
    """(1/n) E[(sum of r0 - e r1)_+], all terms positive; at most 12 reports off the third value."""
    e = mp.exp(mpf(epsilon))
    (pair, high, low), _, (_, base, _), *rest = data
    gain, loss, slope = high - e * low, e * high - low, e - 1
    extra, weight = (rest[0][0], rest[0][1]) if rest else (mpf(0), mpf(0))
    total = mpf(0)
    off = 2 * pair + extra
    for rare in range(min(num_users, 12) + 1):
        chance = mp.binomial(num_users, rare) * (1 - off) ** (num_users - rare)
        burden = slope * base * (num_users - rare)
        for walk in range(rare + 1):
            for heads in range(walk + 1):
                value = gain * heads - loss * (walk - heads) - burden
                value -= slope * weight * (rare - walk)
                if value > 0:
                    ways = mp.binomial(rare, walk) * mp.binomial(walk, heads)
                    total += chance * ways * pair**walk * extra ** (rare - walk) * value
    return total / num_users


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("name", MAKERS)
def test_every_law_has_full_relative_accuracy(name, epsilon0):
    # Data in which all others hold a third value look the same in both orders of the pair.
    laws = [one for one, other in _family_data(MAKERS[name](epsilon0)) if one is other]
    assert len(laws) == len(data_of(name, epsilon0))
    for law, data in zip(laws, data_of(name, epsilon0), strict=True):
        exact = [each for atom in data if atom[0] > 0 for each in atom]
        by_weight = sorted(neutral_atoms(law))
        pair_mass, high, low = pair_of(law)
        half = pair_mass / 2.0
        found = [half, high, low, half, low, high]
        for mass, weight in by_weight if data[2][0] < data[-1][0] else reversed(by_weight):
            found += [mass, weight, weight]
        for one, other in zip(found, exact, strict=True):
            assert abs(one - other) <= 1e-13 * other  # 2e-14 of e^200 alone


@pytest.mark.parametrize(
    "num_users",
    [
        10**3,
        pytest.param(10**6, marks=pytest.mark.slow),
        10**9,
        pytest.param(10**12, marks=pytest.mark.slow),
        10**15,
    ],
)
@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("name", ["3-rr", "1000-rr", "symmetric", "optimized"])
def test_lower_ends_are_at_most_the_exact_values(name, epsilon0, num_users):
    profile, data = MAKERS[name](epsilon0), data_of(name, epsilon0)
    if any(num_users * (2 * law[0][0] + sum(rest[0] for rest in law[3:])) > 1 for law in data):
        return  # too many reports off the third value to be listed here
    for delta in (0.1, 1e-6):
        lower = unavoidable_epsilon(profile, num_users, delta)
        # A lower end is an epsilon whose exact delta is still above the one given.
        reached = max(exact_delta(law, lower, num_users) for law in data)
        assert reached >= delta * (1 - 1e-9)
        exact = max(exact_delta(law, 0.999 * epsilon0, num_users) for law in data)
        assert unavoidable_delta(profile, num_users, 0.999 * epsilon0) <= exact * (1 + mpf(1e-9))


def test_the_leftover_mass_of_symmetric_unary_does_not_cancel():
    # Exact: 73.89438352..., by these data; it was stated as 73.8946388912.
    bound = account_epsilon(profiles.symmetric_unary(74.0, 10), num_users=10**12, delta=0.1)
    assert bound.lower == pytest.approx(73.8943835, rel=1e-6)
    assert bound.lower < 73.8943835257
    assert bound.upper == pytest.approx(
        73.8946303104, rel=1e-8
    )  # delta there, by 80 digits: 0.0999997


def test_tails_do_not_underflow_before_they_are_weighed():
    """By direct sums delta is 1.305e-300; a tail times a mass was 0, but not times e^74, too."""
    bound = account_delta(profiles.optimized_unary(74.0, 10), num_users=10**6, epsilon=63.29)
    assert bound.lower <= 1.3051e-300
    assert bound.upper >= 1.3049e-300
