"""Maxima of weighted loads, against listing of all histograms and the uniform case."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.fullest_bin import maximum_load
from shuffledp.leakage.weighted_loads import weighted_maximum

FALSE_POSITIVE_RATE = 1e-9


def by_listing(balls, law, weights):
    """Return the expectation from all histograms."""
    total = []
    for head in itertools.product(range(balls + 1), repeat=len(law) - 1):
        loads = (*head, balls - sum(head))
        if loads[-1] < 0:
            continue
        chance = float(math.factorial(balls))
        for load, mass in zip(loads, law, strict=True):
            chance *= mass**load / math.factorial(load)
        total.append(chance * max(w * load for w, load in zip(weights, loads, strict=True)))
    return math.fsum(total)


def encloses(found, value):
    return found.lower <= value * (1.0 + 1e-14) and value * (1.0 - 1e-14) <= found.upper


@pytest.mark.parametrize(
    ("balls", "law", "weights"),
    [
        (1, [0.2, 0.3, 0.5], [1.0, 2.0, 0.0]),
        (5, [0.2, 0.3, 0.5], [1.0, 2.0, 0.0]),
        (5, [0.2, 0.3, 0.5], [1.0, 2.0, 3.5]),
        (12, [0.1, 0.2, 0.3, 0.4], [4.0, 2.1, 1.3, 1.0]),
        (12, [0.25] * 4, [1.0, 1.1, 1.2, 1.3]),
        (12, [0.1, 0.2, 0.3, 0.4], [1.0] * 4),
        (9, [0.3, 0.3, 0.4], [2.0, 2.0, 0.0]),
        (20, [0.5, 0.5, 0.0], [1.0, 1.0, 7.0]),
        (20, [0.0, 1.0], [1.0, 3.0]),
        (10, [0.5, 0.5], [1.0, 1e-6]),
        (7, [0.5, 0.5], [1.0, 0.0]),
    ],
)
def test_against_all_histograms(balls, law, weights):
    found = weighted_maximum(balls, law, weights)
    assert encloses(found, by_listing(balls, law, weights))
    assert found.upper - found.lower <= 1e-10 * found.upper


@given(
    st.integers(1, 9),
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.just(0.0) | st.floats(1e-150, 10.0)),
        min_size=2,
        max_size=4,
    ),
)
def test_any_law_and_weights(balls, bins):
    masses = np.array([mass for mass, _ in bins])
    law = masses / math.fsum(masses)
    weights = [weight for _, weight in bins]
    found = weighted_maximum(balls, law, weights)
    exact = by_listing(balls, law, weights)
    assert encloses(found, exact)
    assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize(("balls", "bins"), [(300, 3), (2000, 50), (10**5, 5), (10**5, 50)])
def test_almost_uniform(balls, bins):
    # No bin is exactly like another, so the general method runs; the answer hardly moves.
    law = (1.0 + 1e-14 * np.arange(bins)) / bins
    law /= math.fsum(law)
    found = weighted_maximum(balls, law, np.full(bins, 2.0))
    uniform = maximum_load(balls, bins)
    assert found.lower <= 2.0 * uniform.upper * (1.0 + 1e-12)
    assert 2.0 * uniform.lower <= found.upper * (1.0 + 1e-12)
    assert found.upper - found.lower <= 1e-9 * found.upper
    # A negative control: one ball in ten thousand more is told apart.
    more = weighted_maximum(balls + -(-balls // 10_000), law, np.full(bins, 2.0))
    assert more.lower > found.upper


def test_uniform_is_the_maximum_load():
    found, plain = weighted_maximum(10**9, [0.2] * 5, [3.0] * 5), maximum_load(10**9, 5)
    assert found.lower <= 3.0 * plain.lower
    assert 3.0 * plain.upper <= found.upper <= 3.0 * plain.upper * (1.0 + 1e-13)


def test_common_weights_agree_with_general_ones():
    # Weights that differ in the last digits go load by load.
    law, balls = [0.26, 0.25, 0.25, 0.24], 5000
    common = weighted_maximum(balls, law, [1.0] * 4)
    general = weighted_maximum(balls, law, [1.0, 1.0 + 1e-15, 1.0, 1.0])
    assert common.lower <= general.upper * (1.0 + 2e-15)
    assert general.lower <= common.upper
    assert abs(common.lower - general.lower) <= 1e-9 * common.lower


def test_clear_winner_at_any_size():
    found = weighted_maximum(10**9, [0.5, 0.3, 0.2], [1.0, 1.0, 1.0])
    assert found.lower <= 5e8 <= found.upper
    assert found.upper - found.lower <= 1e-5


def test_bins_behind_are_left_out_but_counted():
    # Two in front, a hundred far behind: the answer is that of the two and a rest without weight.
    law = np.array([0.3, 0.29, *([0.0041] * 100)])
    law /= math.fsum(law)
    balls = 2000
    found = weighted_maximum(balls, law, np.ones(102))
    front = [law[0], law[1], 1.0 - law[0] - law[1]]
    two = weighted_maximum(balls, front, [1.0, 1.0, 0.0])
    assert found.lower == pytest.approx(two.lower, rel=1e-9)
    assert found.upper == pytest.approx(two.upper, rel=1e-9)


def test_against_simulation():
    law = np.array([0.1, 0.2, 0.3, 0.4])
    weights = np.array([4.0, 2.1, 1.3, 1.0])
    balls, rounds = 400, 20_000
    loads = Entropy.from_seed(7).generator().multinomial(balls, law, size=rounds)
    mean = float((loads * weights).max(axis=1).mean())
    found = weighted_maximum(balls, law, weights)
    # Bernstein for values in [0, n max w] of small variance would need less; Hoeffding of one ball
    # at a time: moving a ball changes a mean by at most max w / rounds.
    moves = balls * rounds * (float(weights.max()) / rounds) ** 2
    radius = math.sqrt(0.5 * moves * math.log(2.0 / FALSE_POSITIVE_RATE))
    assert abs(mean - found.lower) <= radius
    wrong = weighted_maximum(balls, law[::-1], weights)
    assert abs(mean - wrong.lower) > radius


def test_nothing_weighs():
    found = weighted_maximum(5, [0.5, 0.5], [0.0, 0.0])
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_refuses_what_is_too_large():
    law = [0.2 + 1e-9, 0.2 - 1e-9, 0.2, 0.2, 0.2]
    with pytest.raises(OutOfRegimeError, match=r"needs .* steps \(\d+ nodes"):
        weighted_maximum(10**9, law, [1.0] * 5)


@pytest.mark.parametrize(
    ("law", "weights", "message"),
    [
        ([0.5, 0.4], [1.0, 1.0], "sum 0.9"),
        ([1.5, -0.5], [1.0, 1.0], "negative entry"),
        ([math.nan, 1.0], [1.0, 1.0], "sum nan"),
        ([0.5, 0.5], [1.0, -1.0], "weights"),
        ([0.5, 0.5], [1.0, math.inf], "weights"),
        ([0.5, 0.5], [1.0, math.nan], "weights"),
        ([0.5, 0.5], [1e-300, 1e-300], "scale"),
        ([0.5, 0.5], [1.0], "same length"),
        ([], [], "same length"),
        ([[1.0]], [[1.0]], "flat"),
    ],
)
def test_bad_laws_and_weights(law, weights, message):
    with pytest.raises(ParameterError, match=message):
        weighted_maximum(5, law, weights)


@pytest.mark.parametrize("bad", [0, 1.5, math.nan, 10**15 + 1])
def test_bad_balls(bad):
    with pytest.raises(ParameterError, match="num_balls"):
        weighted_maximum(bad, [0.5, 0.5], [1.0, 2.0])
