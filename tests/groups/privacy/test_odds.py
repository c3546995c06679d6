import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from shuffledp.core.errors import ParameterError
from shuffledp.groups.privacy.reidentification import odds_factor


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
