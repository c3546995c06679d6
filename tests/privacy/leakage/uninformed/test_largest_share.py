"""The bound by moments, against all ways that few balls fall."""

import math
from itertools import product

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.privacy.leakage.maximum_load.maximum_load import maximum_load
from shuffledp.privacy.leakage.uninformed.largest_share import largest_share_upper


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
