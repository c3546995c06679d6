"""The bound by moments, against all ways that few balls fall."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from oracles.shuffled_guesses import k_rr, one_target
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage import uninformed as exchangeable
from shuffledp.leakage.fullest_bin import maximum_load
from shuffledp.leakage.uninformed import largest_share_upper, response_ends


@pytest.mark.parametrize("law", [[0.5, 0.5], [0.7, 0.2, 0.1], [1.0, 0.0], [1.0]])
@pytest.mark.parametrize("num_balls", [1, 3, 7])
def test_it_is_above_the_exact_mean(num_balls, law):
    exact = sum(
        math.prod(law[place] for place in places) * max(map(places.count, range(len(law))))
        for places in product(range(len(law)), repeat=num_balls)
    )
    upper = largest_share_upper(num_balls, law)
    assert exact / num_balls <= upper <= 1.0


@pytest.mark.parametrize(("num_balls", "num_bins"), [(1_000, 10), (10**6, 1_000), (10**9, 10**4)])
def test_it_is_near_for_many_balls(num_balls, num_bins):
    upper = largest_share_upper(num_balls, np.full(num_bins, 1.0 / num_bins))
    exact = maximum_load(num_balls, num_bins).upper / num_balls
    assert exact <= upper
    # The excess over an even share is at most doubled.
    assert upper - 1.0 / num_bins <= 2.0 * (exact - 1.0 / num_bins)


def test_what_is_no_law_is_refused():
    with pytest.raises(ParameterError, match="num_balls = 0"):
        largest_share_upper(0, [0.5, 0.5])
    with pytest.raises(ParameterError, match="sums to"):
        largest_share_upper(1, [0.5, 0.4])


LAWS = ([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 3)] * 3, [1, 0, 0])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("truth", [Fraction(1), Fraction(3, 5), Fraction(1, 3)])
def test_the_ends_hold_for_all_reports_of_few_users(law, truth, monkeypatch):
    for num_users in (1, 2, 5):
        prior = [Fraction(each) for each in law]
        exact = float(one_target(num_users, k_rr(3, truth), prior))
        wide = []
        for is_halved in (True, False):
            monkeypatch.setattr(exchangeable, "_MOST_HALVED", 10 if is_halved else 1)
            found = response_ends(num_users, truth, [float(each) for each in law])
            assert found.lower - 1e-15 <= exact <= found.upper + 1e-15
            wide.append(found.upper - found.lower)
        assert wide[0] <= wide[1] + 1e-15
        # As far apart as is promised.
        spare = 3.0 * float((1 - truth) / 2) * float(max(prior) - min(prior))
        assert wide[1] <= spare + 1e-9


def test_moments_where_the_load_takes_long(monkeypatch):
    law = np.arange(5.0, 15.0) / 95.0
    sharp = response_ends(1000, 0.6, law)

    def refuse(*_):
        raise OutOfRegimeError("too many steps")

    monkeypatch.setattr(exchangeable, "weighted_maximum", refuse)
    wide = response_ends(1000, 0.6, law)
    assert law.max() * (1 - 1e-12) <= wide.lower <= sharp.lower
    assert sharp.upper <= wide.upper < 1.2 * sharp.upper


def test_a_bound_on_weighted_bins():
    exact = sum(
        0.5**3 * max(weight * places.count(x) for x, weight in enumerate((1.0, 0.25)))
        for places in product(range(2), repeat=3)
    )
    upper = largest_share_upper(3, [0.5, 0.5], [1.0, 0.25])
    assert exact / 3 <= upper < largest_share_upper(3, [0.5, 0.5])
