"""Upper ends fall with users and delta and rise with epsilon0; lower ends never exceed them.

The thin sweep runs always, the full one where slow tests do. Its chunks are families.
"""

import math
from functools import cache

import pytest

from oracles import profiles
from shuffledp.amplification import registry
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.errors import LowerEndWarning
from shuffledp.randomizers.registry import make_randomizer

FAMILIES = {
    "any": profiles.any_randomizer,
    "2-rr": lambda epsilon0: profiles.k_rr(epsilon0, 2),
    "3-rr": lambda epsilon0: profiles.k_rr(epsilon0, 3),
    "16-rr": lambda epsilon0: profiles.k_rr(epsilon0, 16),
    "10000-rr": lambda epsilon0: profiles.k_rr(epsilon0, 10_000),
    "symmetric": lambda epsilon0: profiles.symmetric_unary(epsilon0, 10),
    "optimized": lambda epsilon0: profiles.optimized_unary(epsilon0, 10),
    **{
        name: lambda epsilon0, name=name: (
            make_randomizer(name, domain_size=100, epsilon0=epsilon0).profile
        )
        for name in ("optimized-local-hashing", "subset-selection", "hadamard-response")
    },
}
# Rounding of two upper ends: where hardly anything is gained they are next to each other.
ROUNDING = 1e-7

# Round-off of delta, and what stated laws leave for the digits that they lack.
FLAT = 1e-8

# Exact, but each end to 8e-6 only; it may be above a neighbouring one by as much.
TOLERANCE = {"2-rr": 2e-5}

# Its buckets, or subsets, change with epsilon0, so that losses need not rise with it.
CHANGING = {"optimized-local-hashing", "subset-selection"}

THIN = ([0.5, 8.0, 40.0], [1, 30, 10**3, 10**10], [0.1, 1e-40])
FULL = (
    [0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 30.0, 40.0, 70.0, 74.0, 100.0, 200.0],
    [1, 2, 3, 10, 30, 100, 300, *(10**power for power in (3, 4, 6, 8, 10, 12, 15))],
    [0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-20, 1e-100, 1e-300],
)
# Hundreds of milliseconds a cell.
SLOW = {"hadamard-response"}

# Exact two-ary randomized response at many users takes seconds a cell.
FEWER = {"2-rr": 10**6}


@cache
def upper_of_class(epsilon0, users, delta):
    """Return the upper bound for any randomizer, computed once for all families."""
    profile = profiles.any_randomizer(epsilon0)
    return account_epsilon(profile, num_users=users, delta=delta, with_lower=False).upper


def sweep(name, epsilon0s, all_users, deltas):
    """Account for every cell and compare it with its neighbours; return how many there were."""
    ends, cells = {}, 0
    room = 1.0 + TOLERANCE.get(name, ROUNDING)
    all_users = [users for users in all_users if users <= FEWER.get(name, math.inf)]
    for i, epsilon0 in enumerate(epsilon0s):
        profile = FAMILIES[name](epsilon0)
        for j, users in enumerate(all_users):
            for m, delta in enumerate(deltas):
                where = (name, epsilon0, users, delta)
                bound = account_epsilon(profile, num_users=users, delta=delta)
                assert bound.lower is None or 0.0 <= bound.lower <= bound.upper, where
                assert bound.upper <= upper_of_class(profile.epsilon0, users, delta), where
                found = ends[i, j, m] = bound.upper
                cells += 1
                if j and found > (fewer := ends[i, j - 1, m] * room):
                    # A curve may be flat up to round-off: then delta tells.
                    there = account_delta(profile, num_users=users, epsilon=fewer, with_lower=False)
                    assert there.upper <= delta * (1.0 + FLAT), where
                if m:
                    assert found >= ends[i, j, m - 1] / room, where
                if i and name not in CHANGING and found < ends[i - 1, j, m] / room:
                    quieter = FAMILIES[name](epsilon0s[i - 1])
                    there = account_delta(quieter, num_users=users, epsilon=found, with_lower=False)
                    assert there.upper <= delta * (1.0 + FLAT), where
                for before in range(j):
                    lower = bound.lower
                    assert lower is None or lower <= ends[i, before, m] * room, where
    return cells


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in SLOW])
def test_a_thin_grid(name):
    assert sweep(name, *THIN) > 0


def test_a_lower_end_that_is_dropped_fails_the_sweep(monkeypatch):
    """Warnings are errors here, those of lower ends above upper ones included."""
    monkeypatch.setattr(registry, "unavoidable_epsilon", lambda *_: 0.5)
    with pytest.raises(LowerEndWarning, match="lower end"):
        sweep("3-rr", [0.5], [1000], [1e-6])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_full_grid(name):
    assert sweep(name, *FULL) > 0


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in SLOW])
@pytest.mark.parametrize("delta", [0.2, 1e-6, 1e-60])
def test_a_published_epsilon_holds_when_checked(name, delta):
    for epsilon0, users in ((0.5, 40), (8.0, 10**4), (8.0, 10**7), (16.0, 10**3)):
        profile = FAMILIES[name](epsilon0)
        published = account_epsilon(profile, num_users=users, delta=delta, with_lower=False).upper
        checked = account_delta(profile, num_users=users, epsilon=published, with_lower=False).upper
        assert checked <= delta * (1.0 + 1e-9), (epsilon0, users)


def test_the_round_trip_that_failed():
    profile = profiles.k_rr(8.0, 16)  # 1.029e-6 was found
    published = account_epsilon(profile, num_users=10**4, delta=1e-6).upper
    assert account_delta(profile, num_users=10**4, epsilon=published).upper <= 1e-6 * (1 + 1e-9)


def test_amplification_is_not_given_up_at_tiny_deltas():
    ends = [
        account_epsilon(profiles.k_rr(16.0, 10_000), num_users=users, delta=1e-250)
        for users in (10**7, 10**8)
    ]
    assert [round(end.upper, 5) for end in ends] == [11.67866, 9.91758]
    assert all(end.gap < 1e-6 for end in ends)


@pytest.mark.parametrize("name", ["16-rr", "symmetric", "optimized-local-hashing"])
def test_best_is_the_least_of_all_that_apply(name):
    for epsilon0, users, delta in ((1.0, 1000, 1e-6), (4.0, 3, 0.1), (8.0, 10**5, 1e-100)):
        profile = FAMILIES[name](epsilon0)
        best = account_epsilon(profile, num_users=users, delta=delta, with_lower=False).upper
        for method in METHODS.values():
            if method.violated_hypothesis(profile, users, delta) is None:
                assert best <= method.epsilon(profile, users, delta).upper, method.name
