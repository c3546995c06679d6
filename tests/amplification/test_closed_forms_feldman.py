import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from oracles import enumeration
from oracles.channels import largest_ratio, staircase
from oracles.family_laws import both_ends, mean_weight
from oracles.multiprecision import mp, mpf
from oracles.profiles import any_randomizer
from shuffledp.amplification.clones_and_families import (
    CLONES,
    FELDMAN_2021_NUMERICAL,
    weak_clone_law,
)
from shuffledp.amplification.closed_forms import FELDMAN_2021_CLOSED, FELDMAN_2023_CLOSED
from shuffledp.core.entropy import Entropy


def feldman_2021_epsilon(epsilon0, num_users, delta):
    return FELDMAN_2021_CLOSED.epsilon(any_randomizer(epsilon0), num_users, delta).upper


def feldman_2021_delta(epsilon0, num_users, epsilon):
    return FELDMAN_2021_CLOSED.delta(any_randomizer(epsilon0), num_users, epsilon).upper


def feldman_2023_epsilon(epsilon0, num_users, delta):
    return FELDMAN_2023_CLOSED.epsilon(any_randomizer(epsilon0), num_users, delta).upper


def feldman_2023_delta(epsilon0, num_users, epsilon):
    return FELDMAN_2023_CLOSED.delta(any_randomizer(epsilon0), num_users, epsilon).upper


def pair_delta(epsilon0, num_users, epsilon):
    """The pair of Theorem 3.1, written out: C, A and Delta by name."""
    p, e = math.exp(epsilon0), math.exp(epsilon)
    truth = p / (p + 1.0)
    laws = ({}, {})
    for c in range(num_users):
        for a in range(c + 1):
            mass = binom.pmf(c, num_users - 1, 1.0 / p) * binom.pmf(a, c, 0.5)
            for ones, chances in ((1, (truth, 1.0 - truth)), (0, (1.0 - truth, truth))):
                outcome = (a + ones, c - a + 1 - ones)
                for law, chance in zip(laws, chances, strict=True):
                    law[outcome] = law.get(outcome, 0.0) + mass * chance
    return sum(max(laws[0][key] - e * laws[1][key], 0.0) for key in laws[0])


def exact_closed(epsilon0, num_users, delta):
    p, log_term = mp.exp(mpf(epsilon0)), mp.log(4 / mpf(delta))
    spread = 8 * mp.sqrt(p * log_term / num_users) + 8 * p / num_users
    return mp.log1p((p - 1) / (p + 1) * spread)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("num_users", [1, 2, 3, 7, 40])
def test_the_law_is_the_pair_of_the_theorem(epsilon0, num_users):
    for share in (0.0, 0.05, 0.3, 0.7, 0.95):
        truth = pair_delta(epsilon0, num_users, share * epsilon0)
        profile, laws = any_randomizer(epsilon0), [weak_clone_law(epsilon0)]
        found = both_ends(profile, num_users, share * epsilon0, laws)
        used = FELDMAN_2021_NUMERICAL.delta(profile, num_users, share * epsilon0)
        assert used.upper == found.upper
        assert found.lower * (1.0 - 1e-12) <= truth <= found.upper * (1.0 + 1e-12)
        assert found.upper <= truth * (1.0 + 1e-6) + 1e-15


@pytest.mark.parametrize("epsilon0", [1e-9, 0.5, 2.0, 50.0, 200.0])
def test_one_law_of_mean_one(epsilon0):
    law = weak_clone_law(epsilon0)
    assert law.masses.sum() == pytest.approx(1.0, rel=1e-15)
    assert mean_weight(law) == pytest.approx(1.0, rel=1e-12)


def test_the_law_of_no_information():
    assert weak_clone_law(0.0).ratios0.tolist() == [1.0, 1.0]
    assert FELDMAN_2021_NUMERICAL.delta(any_randomizer(0.0), 10, 0.0).upper == 0.0


@given(st.floats(0.01, 6.0), st.integers(1, 10**6), st.floats(0.0, 0.99))
def test_never_below_the_stronger_clones(epsilon0, num_users, share):
    profile, epsilon = any_randomizer(epsilon0), share * epsilon0
    weak = FELDMAN_2021_NUMERICAL.delta(profile, num_users, epsilon)
    strong = both_ends(profile, num_users, epsilon)
    assert weak.upper >= strong.lower


def test_random_channels_are_below_it():
    generator = Entropy.from_seed(21).generator()
    for _ in range(12):
        channel = staircase(3, math.exp(generator.choice([0.3, 1.0, 3.0])), generator)
        epsilon0 = math.log(largest_ratio(channel)) * (1.0 + 1e-14)
        truth = enumeration.ShuffledDivergence(channel.tolist(), 4)
        for share in (0.0, 0.2, 0.6, 0.9):
            upper = FELDMAN_2021_NUMERICAL.delta(any_randomizer(epsilon0), 4, share * epsilon0)
            assert truth.delta(share * epsilon0) <= upper.upper * (1.0 + 1e-12) + 1e-15


@given(st.floats(1e-9, 12.0), st.integers(100, 10**15), st.floats(1e-300, 0.99))
def test_closed_form_from_above_by_a_hair(epsilon0, num_users, delta):
    value, exact = (
        feldman_2021_epsilon(epsilon0, num_users, delta),
        exact_closed(epsilon0, num_users, delta),
    )
    assert exact <= value <= exact * (1 + mpf("1e-13"))


@pytest.mark.parametrize("delta", [0.9, 0.1, 1e-3, 1e-9])
@pytest.mark.parametrize("num_users", [60, 1000, 10**5])
def test_closed_form_is_above_the_numerical_one_up_to_the_edge_of_its_regime(num_users, delta):
    edge = num_users / (16.0 * math.log(4.0 / delta))
    for share in (1.0 - 1e-9, 0.5, 0.1, 0.01):
        if edge <= 1.0:
            continue
        epsilon0 = math.log(edge) * share
        profile = any_randomizer(epsilon0)
        assert FELDMAN_2021_CLOSED.violated_hypothesis(profile, num_users, delta) is None
        closed = FELDMAN_2021_CLOSED.epsilon(profile, num_users, delta).upper
        weak = both_ends(profile, num_users, closed, [weak_clone_law(profile.epsilon0)])
        assert weak.lower <= delta
        assert closed >= feldman_2023_epsilon(epsilon0, num_users, delta) * (1.0 - 1e-13)


@pytest.mark.parametrize(
    ("epsilon0", "num_users", "delta"),
    [
        (math.log(1000 / (16 * math.log(4 / 1e-6))) + 1e-9, 1000, 1e-6),
        (math.log(1000 / (16 * math.log(2 / 1e-6))), 1000, 1e-6),  # the regime as printed
        (1.0, 1, 0.5),
        (0.0, 22, None),
        (50.0, 10**15, 1e-6),
        (1e4, 10**15, None),
    ],
)
def test_outside_its_regime(epsilon0, num_users, delta):
    violated = FELDMAN_2021_CLOSED.violated_hypothesis(any_randomizer(epsilon0), num_users, delta)
    assert violated == "epsilon0 <= ln(num_users / (16 ln(4/delta)))"


def test_delta_of_zero_is_refused():
    assert FELDMAN_2021_CLOSED.violated_hypothesis(any_randomizer(1.0), 10**6, 0.0) == "delta > 0"


@given(st.floats(1e-6, 5.0), st.integers(10**5, 10**12), st.floats(1e-30, 0.9))
def test_delta_is_the_inverse_and_rounds_up(epsilon0, num_users, delta):
    epsilon = float(exact_closed(epsilon0, num_users, delta))
    found = feldman_2021_delta(epsilon0, num_users, epsilon)
    edge = 4.0 * math.exp(-num_users / (16.0 * math.exp(epsilon0)))
    assert found == pytest.approx(max(delta, edge), rel=1e-6)
    assert exact_closed(epsilon0, num_users, found) <= mpf(epsilon) * (1 + mpf("1e-15"))


def test_delta_where_there_is_none():
    assert feldman_2021_delta(1.0, 10_000, 0.0) == 1.0
    assert feldman_2021_delta(1.0, 10_000, 1e-3) == 1.0
    assert feldman_2021_delta(0.0, 10_000, 0.0) == 1.0
    # far above what the regime can prove, its edge is claimed and nothing smaller
    assert feldman_2021_delta(1.0, 1000, 0.999) >= 4.0 * math.exp(-1000 / (16.0 * math.e))
    assert 0.0 < feldman_2021_delta(1.0, 10**12, 0.999) < 1e-299
    assert FELDMAN_2021_CLOSED.delta(any_randomizer(1.0), 10_000, 0.0).upper == 1.0


def exact_closed_of_feldman_2023(epsilon0, num_users, delta):
    p, log_term = mp.exp(mpf(epsilon0)), mp.log(4 / mpf(delta))
    spread = 4 * mp.sqrt(2 * log_term / ((p + 1) * num_users)) + mpf(4) / num_users
    return mp.log1p((p - 1) * spread)


@given(st.floats(1e-9, 12.0), st.integers(100, 10**15), st.floats(1e-300, 0.99))
def test_closed_form_from_above_by_a_hair_of_feldman_2023(epsilon0, num_users, delta):
    value = feldman_2023_epsilon(epsilon0, num_users, delta)
    exact = exact_closed_of_feldman_2023(epsilon0, num_users, delta)
    assert exact <= value <= exact * (1 + mpf("1e-13"))


@pytest.mark.parametrize("delta", [0.99, 0.5, 0.1, 1e-3, 1e-9, 1e-40])
@pytest.mark.parametrize("num_users", [12, 60, 1000, 10**5])
def test_it_is_above_the_clones_up_to_the_edge_of_its_regime(num_users, delta):
    edge = num_users / (8.0 * math.log(2.0 / delta)) - 1.0
    for share in (1.0 - 1e-9, 0.5, 0.1, 0.01):
        if edge <= 1.0:
            continue
        profile = any_randomizer(math.log(edge) * share)
        assert FELDMAN_2023_CLOSED.violated_hypothesis(profile, num_users, delta) is None
        closed = FELDMAN_2023_CLOSED.epsilon(profile, num_users, delta).upper
        assert both_ends(profile, num_users, closed).lower <= delta
        # and it has amplified wherever that is not already at epsilon0
        assert closed < profile.epsilon0 or CLONES.delta(profile, num_users, closed).upper == 0.0


def test_the_inequality_of_the_proof():
    # u/(1-u) <= 2y for t in (0, 1/2], w <= t^2/(2 ln 2): step 3, on a grid to its corners
    for i in range(1, 101):
        t = 0.005 * i
        for j in range(101):
            w = t * t / (2.0 * math.log(2.0)) * j / 100.0
            u = t * math.sqrt(1.0 - w) + w
            assert u <= t + (1.0 - 0.5 * t) * w < 1.0
            bound = t + (1.0 - 0.5 * t) * w
            assert bound <= 2.0 * (math.sqrt(t * t + 2.0 * w * math.log(2.0)) + w) * (1.0 - bound)


@pytest.mark.parametrize(
    ("epsilon0", "num_users", "delta"),
    [
        (math.log(1000 / (8 * math.log(2 / 1e-6)) - 1) + 1e-9, 1000, 1e-6),
        (1.0, 1, 0.5),
        (0.0, 11, None),
        (50.0, 10**15, 1e-6),
        (1e4, 10**15, None),
    ],
)
def test_outside_its_regime_of_feldman_2023(epsilon0, num_users, delta):
    violated = FELDMAN_2023_CLOSED.violated_hypothesis(any_randomizer(epsilon0), num_users, delta)
    assert violated == "epsilon0 <= ln(num_users / (8 ln(2/delta)) - 1)"


def test_delta_of_zero_is_refused_of_feldman_2023():
    assert FELDMAN_2023_CLOSED.violated_hypothesis(any_randomizer(1.0), 10**6, 0.0) == "delta > 0"


@given(st.floats(1e-6, 5.0), st.integers(10**5, 10**12), st.floats(1e-30, 0.9))
def test_delta_is_the_inverse_and_rounds_up_of_feldman_2023(epsilon0, num_users, delta):
    epsilon = float(exact_closed_of_feldman_2023(epsilon0, num_users, delta))
    found = feldman_2023_delta(epsilon0, num_users, epsilon)
    edge = 2.0 * math.exp(-num_users / (8.0 * (math.exp(epsilon0) + 1.0)))
    assert found == pytest.approx(max(delta, edge), rel=1e-6)
    assert exact_closed_of_feldman_2023(epsilon0, num_users, found) <= mpf(epsilon) * (
        1 + mpf("1e-15")
    )


@pytest.mark.parametrize("num_users", [30, 300, 3000])
def test_delta_is_above_the_clones_everywhere(num_users):
    for epsilon0 in (0.01, 0.5, 1.0):
        profile = any_randomizer(epsilon0)
        for share in (0.0, 0.1, 0.3, 0.6, 0.9, 0.99):
            closed = FELDMAN_2023_CLOSED.delta(profile, num_users, share * epsilon0).upper
            assert closed >= both_ends(profile, num_users, share * epsilon0).lower


def test_delta_where_there_is_none_of_feldman_2023():
    assert feldman_2023_delta(1.0, 10_000, 0.0) == 1.0
    assert feldman_2023_delta(1.0, 10_000, 1e-4) == 1.0
    assert feldman_2023_delta(0.0, 10_000, 0.0) == 1.0
    assert feldman_2023_delta(1.0, 1000, 0.999) >= 2.0 * math.exp(-1000 / (8.0 * (math.e + 1.0)))
    assert 0.0 < feldman_2023_delta(1.0, 10**12, 0.999) < 1e-299
