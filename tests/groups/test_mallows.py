"""What every Mallows model must do, checked against enumeration."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mallows import DISTANCES, moments_of_distance
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import group_kernels as kernels
from shuffledp.groups.exact_draws import (
    LIBRARY_MARGIN,
    SMALLEST_THETA,
    LazyUniform,
    draw_against_odds,
)
from shuffledp.groups.mallows import (
    MallowsModel,
    draw_by_swaps,
    hamming_stay,
    permute_all_but,
)
from shuffledp.groups.privacy import MALLOWS_DISTANCES
from shuffledp.groups.reference_orders import require_theta

THETAS = (0.0, 5e-324, 1e-300, 1e-12, 0.3, 1.0, 5.0, 50.0, 700.0, 1e308, math.inf)


def enumerated(name, num_items, theta):
    """Return mean and variance of the distance, to 400 digits."""
    with mpmath.workdps(400):
        psi = first = second = mpmath.mpf(0)
        for pi in permutations(range(num_items)):
            distance = DISTANCES[name](pi)
            weight = (
                mpmath.exp(-mpmath.mpf(min(theta, 1e4)) * distance) if distance else mpmath.mpf(1)
            )
            psi += weight
            first += distance * weight
            second += distance**2 * weight
        mean = first / psi
        return mean, second / psi - mean**2


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
@pytest.mark.parametrize("num_items", [2, 3, 5])
@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e-12, 0.3, 1.0, 5.0])
def test_the_moments_that_tests_measure_with(name, num_items, theta):
    mean, variance = enumerated(name, num_items, theta)
    found = moments_of_distance(name, num_items, theta)
    assert found == pytest.approx((float(mean), float(variance)), rel=1e-10)


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_infinite_theta_leaves_the_order(name):
    identity = MallowsModel(distance=name, num_items=300, theta=math.inf)
    assert (identity.sample(Entropy.from_seed(1)) == np.arange(300)).all()


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
@pytest.mark.parametrize("num_items", [1, 2, 3, 64, 65, 1000])
@pytest.mark.parametrize("theta", THETAS)
def test_samples_are_permutations(name, num_items, theta):
    if name == "kendall" and 0.0 < theta < SMALLEST_THETA:
        theta = SMALLEST_THETA
    model = MallowsModel(distance=name, num_items=num_items, theta=theta)
    pi = model.sample(Entropy.from_seed(2))
    assert pi.dtype == np.int64
    assert pi.flags.c_contiguous
    assert pi.flags.writeable
    assert (np.sort(pi) == np.arange(num_items)).all()
    assert (pi == model.sample(Entropy.from_seed(2))).all()
    if theta >= 700.0:
        assert (pi == np.arange(num_items)).all()


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
def test_models_are_plain_values(name):
    model = MallowsModel(distance=name, num_items=np.int64(3), theta=np.float32(0.5))
    assert (model.distance, model.num_items, model.theta) == (name, 3, 0.5)
    assert type(model.num_items) is int
    assert type(model.theta) is float
    assert model == MallowsModel(distance=name, num_items=3, theta=0.5)
    assert hash(model) == hash(MallowsModel(distance=name, num_items=3, theta=0.5))


@pytest.mark.parametrize("name", MALLOWS_DISTANCES)
@pytest.mark.parametrize("theta", [math.nan, -1e-300, -math.inf, "1", None, -(10**400)])
def test_theta_must_be_at_least_zero(name, theta):
    with pytest.raises(ParameterError, match=r"theta = .* is not in \[0, inf\]"):
        MallowsModel(distance=name, num_items=3, theta=theta)


def test_limits_of_arguments():
    assert require_theta(10**400) == math.inf
    assert math.copysign(1.0, require_theta(-0.0)) == 1.0
    assert MallowsModel(distance="kendall", num_items=2**32 - 1, theta=1.0).num_items == 2**32 - 1
    with pytest.raises(ParameterError, match="above 4,294,967,295: shuffle parts"):
        MallowsModel(distance="kendall", num_items=2**32, theta=1.0)
    with pytest.raises(ParameterError, match="num_items = 0 is below 1"):
        MallowsModel(distance="kendall", num_items=0, theta=1.0)
    with pytest.raises(ParameterError, match="is not a whole number"):
        MallowsModel(distance="kendall", num_items=2.5, theta=1.0)


def test_unknown_distances_are_refused():
    with pytest.raises(ParameterError, match="'footrule' has no sampler: choose one of"):
        MallowsModel(distance="footrule", num_items=3, theta=1.0)


# ---------------------------------------------------------------- Cayley: swaps
@pytest.mark.parametrize("theta", [0.0, 5e-324, 1e-12, 0.3, 1.0, 5.0, 8.0, 50.0, 700.0, 1e308])
def test_fast_and_slow_decisions_agree_on_the_same_words(theta):
    fast = draw_by_swaps(1500, theta, Entropy.from_seed(1))
    slow = draw_by_swaps(1500, theta, Entropy.from_seed(1), margin=math.inf)
    some = draw_by_swaps(1500, theta, Entropy.from_seed(1), margin=0.05)
    assert (fast == slow).all()
    assert (fast == some).all()


HALVES = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**32 - 2, 2**32 - 1])


@given(
    high=HALVES,
    low=HALVES,
    place=st.integers(1, 50),
    theta=st.floats(0.0, 30.0) | st.floats(0.0, 1.7e308),
)
def test_every_decision_of_the_kernel_is_that_of_exact_arithmetic(high, low, place, theta):
    pi = np.arange(place + 1)
    words = np.array([high << 32 | low], dtype=np.uint64)
    next_place, used, is_undecided = kernels.draw_swaps(pi, theta, LIBRARY_MARGIN, words, place)
    assert used == 1
    if low * place % 2**32 < 2**32 % place:
        assert (next_place, is_undecided) == (place, False)  # refused
    elif is_undecided:
        assert next_place == place
    else:
        uniform = LazyUniform(prefix=high, num_bits=32, entropy=Entropy.from_seed(2))
        other = low * place >> 32
        moved = place if draw_against_odds(uniform, place, theta) else None
        assert next_place == place + 1
        assert np.flatnonzero(pi != np.arange(place + 1)).tolist() == (
            [] if moved is None else [other, place]
        )


@pytest.mark.parametrize("theta", [0.1, 1.0, 3.0])
def test_words_next_to_a_boundary_are_left_undecided(theta):
    with mpmath.workdps(60):
        high = int(mpmath.floor(5 / (5 + mpmath.exp(theta)) * 2**32))
    for change, outcome in ((-1, (6, 1, False)), (0, (5, 1, True)), (1, (6, 1, False))):
        words = np.array([(high + change << 32) + 2**31], dtype=np.uint64)
        pi = np.arange(6)
        assert kernels.draw_swaps(pi, theta, LIBRARY_MARGIN, words, 5) == outcome
        assert (pi[5] == 5) == (change >= 0)


# ---------------------------------------------------------------- Hamming: forced places
def derangements(up_to):
    """Return the exact derangement numbers D_0, ..., D_n."""
    numbers = [1, 0]
    for d in range(2, up_to + 1):
        numbers.append((d - 1) * (numbers[d - 1] + numbers[d - 2]))
    return numbers[: up_to + 1]


def exact_law(num_items, theta):
    """Return the probabilities C(n, d) D_d e^(-theta d) / psi, to 400 digits."""
    with mpmath.workdps(400):
        weights = [
            math.comb(num_items, d) * number * mpmath.exp(-mpmath.mpf(theta) * d)
            for d, number in enumerate(derangements(num_items))
        ]
        psi = mpmath.fsum(weights)
        return [weight / psi for weight in weights]


@pytest.mark.parametrize("num_items", [2, 17, 400])
@pytest.mark.parametrize("theta", [0.0, 1e-300, 0.1, 1.0, 2.9, 5.0, 6.1, 50.0, 300.0])
def test_mean_from_derangement_numbers(num_items, theta):
    law = exact_law(num_items, theta)
    model = MallowsModel(distance="hamming", num_items=num_items, theta=theta)
    with mpmath.workdps(400):
        mean = mpmath.fsum(d * p for d, p in enumerate(law))
        stays = 1 - mean / num_items
    assert abs(hamming_stay(model.num_items, model.theta) - stays) <= 1e-13 * stays


def test_forcing_a_subset_gives_the_law_of_the_distance():
    # Exactly, with e^theta = 5/2: sum over s of P(s) P(n - s others keep n - s - d in place).
    growth, num_items = Fraction(5, 2), 7
    numbers = derangements(num_items)
    weights = [(growth - 1) ** s / math.factorial(s) for s in range(num_items + 1)]
    found = [Fraction(0)] * (num_items + 1)
    for s, weight in enumerate(weights):
        others = num_items - s
        for d in range(others + 1):
            share = Fraction(math.comb(others, d) * numbers[d], math.factorial(others))
            found[d] += weight / sum(weights) * share
    claimed = [math.comb(num_items, d) * numbers[d] / growth**d for d in range(num_items + 1)]
    assert found == [weight / sum(claimed) for weight in claimed]


@pytest.mark.parametrize("num_forced", range(5))
def test_forced_sets_and_the_rest_are_uniform_over_all_shuffles(num_forced, monkeypatch):
    # Every shuffle of four items once: each (set, permutation of the others) equally often.
    monkeypatch.setattr(
        "shuffledp.groups.mallows.UniformShuffler.shuffle",
        lambda self, items, entropy: np.array(entropy),
    )
    found = {}
    for order in permutations(range(4)):
        pi = tuple(permute_all_but(4, num_forced, order))
        found[pi] = found.get(pi, 0) + 1
    expected = {}
    copies = math.factorial(num_forced)  # orders that differ in what is not used
    for fixed in combinations(range(4), num_forced):
        others = [place for place in range(4) if place not in fixed]
        for order in permutations(others):
            pi = list(range(4))
            for place, item in zip(others, order, strict=True):
                pi[place] = item
            expected[tuple(pi)] = expected.get(tuple(pi), 0) + copies
    assert found == (expected if num_forced < 4 else {(0, 1, 2, 3): 24})


def test_many_items():
    # Far from both ends the fixed points are a Poisson variate of mean e^theta.
    model = MallowsModel(distance="hamming", num_items=10**9, theta=8.0)
    stays = hamming_stay(model.num_items, model.theta)
    assert stays == pytest.approx(math.exp(8.0) / 10**9, rel=1e-12)


def test_one_item_stays():
    for theta in (0.0, 1.0, math.inf):
        model = MallowsModel(distance="hamming", num_items=1, theta=theta)
        assert model.sample(Entropy.from_seed(1)).tolist() == [0]
        assert hamming_stay(model.num_items, model.theta) == 1.0
