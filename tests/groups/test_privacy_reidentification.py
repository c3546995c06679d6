import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.groups.privacy import odds_factor, reidentification_bound


def published_bound(*, group_size, subset_size, epsilon0, alpha):
    """Theorem 4.2 of the paper."""
    sets = (group_size - subset_size) // subset_size
    exponent = 2.0 * subset_size * epsilon0 + alpha
    return 1.0 / (1.0 + sets * math.exp(-exponent))


@given(alpha=st.floats(0.0, 709.0))
def test_the_factor_is_rounded_up(alpha):
    with mp.workdps(60):
        exact = mp.exp(mpf(alpha))
        assert exact <= odds_factor(alpha) <= exact * (1 + mpf(2e-15))


def test_the_factor_at_the_ends():
    assert odds_factor(0.0) == 1.0
    assert odds_factor(800.0) == odds_factor(math.inf) == math.inf


@pytest.mark.parametrize("bad", [math.nan, -1.0])
def test_bad_arguments_are_named(bad):
    with pytest.raises(ParameterError, match="alpha"):
        odds_factor(bad)


def posterior_odds(theta, prior, z):
    """Odds of x_0 = 1 after z, for 3 users in one group whose bag of reports is that of z."""
    weights = [0.0, 0.0]
    for y in set(itertools.permutations(z)):
        likelihood = 0.0
        for pi in itertools.permutations(range(3)):
            if all(z[j] == y[pi[j]] for j in range(3)):
                inversions = sum(pi[i] > pi[j] for i, j in itertools.combinations(range(3), 2))
                likelihood += math.exp(-theta * inversions)
        for x in (0, 1):
            weights[x] += prior[(x, y)] * likelihood
    return weights[1] / weights[0]


def test_an_enumerated_adversary_moves_no_further_and_some_almost_as_far():
    theta, bag = 0.4, (0, 0, 1)
    arrangements = sorted(set(itertools.permutations(bag)))
    farthest = 0.0
    for correlation in (0.5, 0.9, 1.0 - 1e-6):
        for favoured in itertools.permutations(arrangements, 2):
            # x_0 = 0 goes with the first arrangement, x_0 = 1 with the second.
            prior = {(x, y): (1.0 - correlation) / 3.0 for x in (0, 1) for y in arrangements}
            for x in (0, 1):
                prior[(x, favoured[x])] += correlation
            before = sum(prior[(1, y)] for y in arrangements) / sum(
                prior[(0, y)] for y in arrangements
            )
            for z in arrangements:
                moved = abs(math.log(posterior_odds(theta, prior, z) / before))
                assert moved <= 3.0 * theta + 1e-12  # Delta = 3
                farthest = max(farthest, moved)
    # Equal reports blur: two places of the odd one out cost 2 theta.
    assert farthest == pytest.approx(2.0 * theta, rel=1e-3)


@cache
def inversions(pi):
    return sum(pi[i] > pi[j] for i, j in itertools.combinations(range(len(pi)), 2))


def sensitivity(n, group):
    """Largest difference of inversions between permutations that differ inside the group only."""
    classes = {}
    for pi in itertools.permutations(range(n)):
        # pi[j] is the user at place j: the group's members are exchanged among their places.
        key = tuple(user if user not in group else -1 for user in pi)
        low, high = classes.get(key, (n * n, 0))
        classes[key] = (min(low, inversions(pi)), max(high, inversions(pi)))
    return max(high - low for low, high in classes.values())


def best_win(n, subset, epsilon0, theta, x):
    """Probability that the best adversary wins: the best rows for every output, summed."""
    k, p = len(subset), math.exp(epsilon0)
    report = {(v, y): (p if v == y else 1.0) / (p + 1.0) for v in (0, 1) for y in (0, 1)}
    permutations = list(itertools.permutations(range(n)))
    weights = np.array([math.exp(-theta * inversions(pi)) for pi in permutations])
    weights /= weights.sum()
    guesses = list(itertools.combinations(range(n), k))
    wins = np.array(
        [[sum(pi[j] in subset for j in rows) > k / 2 for rows in guesses] for pi in permutations]
    )
    total = 0.0
    for z in itertools.product((0, 1), repeat=n):
        joint = weights * np.array(
            [math.prod(report[(x[pi[j]], z[j])] for j in range(n)) for pi in permutations]
        )
        total += float((joint @ wins).max())
    return total


@pytest.mark.parametrize("theta", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("epsilon0", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(
    ("n", "group", "subset"),
    [
        (3, (0, 1, 2), (1,)),
        (4, (0, 1, 3), (0,)),
        (5, (0, 2, 4), (2,)),
        (4, (0, 1, 2, 3), (0, 1)),
        (5, (0, 1, 2, 3, 4), (0, 4)),
        (5, (0, 1, 2, 3, 4), (1, 2)),
    ],
)
def test_no_adversary_wins_more_often(n, group, subset, epsilon0, theta):
    alpha = theta * sensitivity(n, group)
    asked = {
        "group_size": len(group),
        "subset_size": len(subset),
        "epsilon0": epsilon0,
        "alpha": alpha,
    }
    bound, published = reidentification_bound(**asked), published_bound(**asked)
    assert bound <= published * (1.0 + 1e-14)
    inside = tuple(1 if user in subset else 0 for user in range(n))
    for x in (inside, (0,) * n, tuple(user % 2 for user in range(n))):
        assert best_win(n, subset, epsilon0, theta, x) <= bound * (1.0 + 1e-12)


def test_the_bound_is_attained_by_a_guess_at_random():
    assert best_win(4, (2,), 0.0, 0.0, (0, 0, 0, 0)) == pytest.approx(0.25)
    bound = reidentification_bound(group_size=4, subset_size=1, epsilon0=0.0, alpha=0.0)
    assert bound == pytest.approx(0.25)


def test_half_of_the_exponent_would_be_too_little():
    # With k epsilon0 in place of 2 k epsilon0 the bound would be wrong.
    epsilon0 = 3.0
    won = best_win(2, (0,), epsilon0, 0.0, (1, 0))
    assert won > 1.0 / (1.0 + math.exp(-epsilon0 * 0.5))
    bound = reidentification_bound(group_size=2, subset_size=1, epsilon0=epsilon0, alpha=0.0)
    assert won <= bound


of_any_group = given(
    r=st.integers(2, 400),
    share=st.floats(0.0, 1.0),
    epsilon0=st.floats(0.0, 20.0),
    alpha=st.floats(0.0, 50.0),
)


@of_any_group
def test_never_above_the_published_bound_and_monotone(r, share, epsilon0, alpha):
    k = max(1, int(share * (r // 2)))
    asked = {"group_size": r, "subset_size": k, "epsilon0": epsilon0, "alpha": alpha}
    bound = reidentification_bound(**asked)
    assert 0.0 < bound <= 1.0
    assert bound <= published_bound(**asked) * (1.0 + 1e-12)
    assert bound <= reidentification_bound(**(asked | {"alpha": alpha + 0.1})) * (1.0 + 1e-14)
    assert bound <= reidentification_bound(**(asked | {"epsilon0": epsilon0 * 2})) * (1.0 + 1e-14)
    assert bound >= reidentification_bound(**(asked | {"group_size": r + 5})) * (1.0 - 1e-13)


@of_any_group
def test_the_probability_is_rounded_up(r, share, epsilon0, alpha):
    k = max(1, int(share * (r // 2)))
    most = sum(math.comb(k, i) * math.comb(r - 2 * k, k - i) for i in range(k // 2 + 1, k + 1))
    with mp.workdps(60):
        odds = mpf(math.comb(r - k, k)) / most
        exact = 1 / (1 + odds * mp.exp(-2 * k * mpf(epsilon0) - mpf(alpha)))
        bound = reidentification_bound(group_size=r, subset_size=k, epsilon0=epsilon0, alpha=alpha)
        assert exact <= bound <= exact * (1 + mpf(1e-10))


def test_published_values():
    # floor((50 - 5)/5) = 9 sets; ours counts all sets of five.
    asked = {"group_size": 50, "subset_size": 5, "epsilon0": 0.1, "alpha": 1.0}
    assert published_bound(**asked) == pytest.approx(1.0 / (1.0 + 9.0 * math.exp(-2.0)))
    most = sum(math.comb(5, i) * math.comb(40, 5 - i) for i in (3, 4, 5))
    odds = math.comb(45, 5) / most
    assert odds > 100.0
    assert reidentification_bound(**asked) == pytest.approx(1.0 / (1.0 + odds * math.exp(-2.0)))


def test_large_subsets_and_large_losses():
    huge = {"group_size": 10_000, "subset_size": 2001, "epsilon0": 0.0, "alpha": 0.0}
    assert 0.0 < reidentification_bound(**huge) < published_bound(**huge)
    wide = {"group_size": 10**6, "subset_size": 900, "epsilon0": 0.0, "alpha": 0.0}
    assert 0.0 <= reidentification_bound(**wide) < 1e-300
    for alpha in (900.0, math.inf):
        asked = {"group_size": 10, "subset_size": 2, "epsilon0": 1.0, "alpha": alpha}
        assert reidentification_bound(**asked) == 1.0
        assert published_bound(**asked) == 1.0


def test_bad_arguments_are_named_of_reidentification():
    good = {"group_size": 10, "subset_size": 2, "epsilon0": 1.0, "alpha": 1.0}
    for name, value in (
        ("group_size", 1),
        ("subset_size", 0),
        ("subset_size", 11),
        ("epsilon0", math.inf),
        ("epsilon0", math.nan),
        ("alpha", -1.0),
        ("alpha", math.nan),
    ):
        with pytest.raises(ParameterError, match=name):
            reidentification_bound(**(good | {name: value}))
    with pytest.raises(OutOfRegimeError, match="group_size / 2"):
        reidentification_bound(**(good | {"subset_size": 6}))
    with pytest.raises(OutOfRegimeError, match="group_size / 2"):
        reidentification_bound(**(good | {"group_size": 3}))
