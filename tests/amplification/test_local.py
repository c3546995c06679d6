import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import enumeration
from oracles.channels import inside
from oracles.enumeration import hockey_stick
from oracles.multiprecision import single_report
from oracles.profiles import any_randomizer
from shuffledp.amplification import local
from shuffledp.amplification.atom_law import atom_delta_above
from shuffledp.amplification.clones_and_families import CLONES
from shuffledp.amplification.local import (
    APPROXIMATE_LOCAL,
    LOCAL,
    approximate_delta,
    approximate_epsilon,
    replacement_cost,
    single_report_delta,
    single_report_epsilon,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile


@given(st.floats(1e-12, 700.0), st.floats(0.0, 1.0))
def test_delta_is_an_upper_bound_by_a_hair(epsilon0, share):
    epsilon = min(epsilon0 * share, epsilon0)
    delta = single_report_delta(epsilon0, epsilon)
    exact = single_report(epsilon0, epsilon)
    assert delta >= exact
    assert delta <= exact * (1 + mpf("1e-14"))


@pytest.mark.parametrize("epsilon0", [5e-324, 1e-320, 1e-310, 1e-300])
def test_delta_of_a_tiny_epsilon0_is_not_zero(epsilon0):
    assert single_report_delta(epsilon0, 0.0) >= single_report(epsilon0, 0.0) > 0


@given(st.floats(1e-9, 700.0), st.one_of(st.floats(1e-300, 1.0 - 1e-9), st.just(1e-16)))
@example(13.0, 0.998046875)
@example(40.0, 1.0 - 2.0**-53)
@example(700.0, 1.0 - 2.0**-53)
def test_epsilon_is_the_inverse_and_rounds_up(epsilon0, delta):
    epsilon = single_report_epsilon(epsilon0, delta)
    assert 0.0 <= epsilon <= epsilon0
    with mp.workdps(400):
        p = mp.exp(mpf(epsilon0))
        inside = p - mpf(delta) * (p + 1)
        exact = mp.log(inside) if inside > 1 else mpf(0)
        assert epsilon >= exact
        assert epsilon - exact <= 32 * math.ulp(epsilon0)


def test_the_ends():
    assert single_report_epsilon(1.0, 0.0) == 1.0
    assert single_report_epsilon(0.0, 0.5) == 0.0
    assert single_report_epsilon(1.0, 0.999) == 0.0
    assert single_report_epsilon(1.0, 0.5) == 0.0
    assert single_report_epsilon(1e308, 0.5) <= 1e308
    assert single_report_delta(1.0, 1.0) == 0.0
    assert single_report_delta(0.0, 0.0) == 0.0
    assert single_report_delta(1e308, 0.0) == 1.0
    assert single_report_delta(1e308, 9e307) == 1.0


SHARES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.999)
NUMBERS = st.floats(0.01, 1.0)
LAWS = st.tuples(*[st.lists(NUMBERS, min_size=5, max_size=5)] * 3)


def delta0_of(channel, epsilon0):
    """The least delta0 at this epsilon0: the largest local divergence, rounded up."""
    rows = np.asarray(channel)
    p = math.exp(epsilon0)
    found = max(hockey_stick(row, other, p) for row in rows for other in rows)
    return float(found) * (1.0 + 1e-12) + 1e-16


def revealing(num_inputs, p, delta0):
    """Reveals the input with probability delta0, else randomized response."""
    rows = np.array(enumeration.randomized_response(num_inputs, p)) * (1.0 - delta0)
    return np.concatenate([rows, delta0 * np.eye(num_inputs)], axis=1)


def missing(p, delta0):
    """The third input never gives two reports of the pair: the worst case of step 2."""
    rows = np.zeros((3, 4))
    rows[0], rows[1] = (delta0, 0.0, 0.0, 0.0), (0.0, delta0, 0.0, 0.0)
    pair = np.array([[p, 1.0], [1.0, p]]) / (p + 1.0)
    rows[:2, 2:] = (1.0 - delta0) * pair
    rows[2, 2:] = 0.5
    return rows


def noisy(num_inputs, p, generator, size):
    """A pure channel mixed with a little of another one that has no privacy at all."""
    pure = inside(num_inputs, p, generator)
    wild = generator.exponential(size=pure.shape) ** 4
    return (1.0 - size) * pure + size * wild / wild.sum(axis=1, keepdims=True)


def channels():
    generator = Entropy.from_seed(8).generator()
    for delta0 in (1e-4, 0.01, 0.2):
        for p in (1.0, 1.2, 2.0, 6.0):
            yield p, revealing(2, p, delta0)
            yield p, revealing(3, p, delta0)
            yield p, missing(p, delta0)
    for size in (1e-3, 0.02, 0.2):
        for p in (1.1, 2.0, 5.0):
            yield p, noisy(3, p, generator, size)
            yield p, noisy(2, p, generator, size)


@pytest.mark.slow
@pytest.mark.parametrize("num_users", [1, 2, 3, 4])
def test_every_channel_is_below_its_bound(num_users):
    closest = 0.0
    for p, channel in channels():
        if channel.shape[1] > 7 and num_users > 3:
            continue
        truth = enumeration.ShuffledDivergence(channel.tolist(), num_users)
        for epsilon0 in {0.0, 0.3, math.log(p)}:
            profile = LocalProfile(epsilon0=epsilon0, delta0=min(delta0_of(channel, epsilon0), 0.9))
            if profile.delta0 == 0.9:
                continue
            for share in (*SHARES, 1.0, 1.5):
                exact = truth.delta(share * epsilon0)
                upper = approximate_delta(profile, num_users, share * epsilon0)
                assert upper >= exact * (1.0 - 1e-12) - 1e-15, (channel, num_users, epsilon0, share)
                closest = max(closest, exact / upper)
            for delta in (1.01 * profile.delta0, 0.02, 0.3):
                if delta >= profile.delta0:
                    epsilon = approximate_epsilon(profile, num_users, delta)
                    assert truth.delta(epsilon) <= delta * (1.0 + 1e-12) + 1e-15
    assert closest > 0.9  # the channels are no straw men


@pytest.mark.parametrize("epsilon0", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("delta0", [1e-9, 0.01, 0.4])
def test_one_user_exactly(epsilon0, delta0):
    channel = revealing(2, math.exp(epsilon0), delta0)
    truth = enumeration.ShuffledDivergence(channel.tolist(), 1)
    profile = LocalProfile(epsilon0=epsilon0, delta0=delta0)
    for share in (*SHARES, 1.0, 2.0):
        exact = truth.delta(share * epsilon0)
        assert approximate_delta(profile, 1, share * epsilon0) == pytest.approx(exact, rel=1e-9)
        # step 4: for one user all parts agree
        for make, deficits in local._PURE_LAWS:
            if share < 1.0:
                pure = atom_delta_above(make(epsilon0), 1, share * epsilon0)
                added = replacement_cost(profile, 1, deficits, share * epsilon0)
                assert pure + added == pytest.approx(exact, rel=1e-6)


def pure_pair(first, second, p):
    """Step 1, as it is written: two epsilon0-close laws with the same sum."""
    first, second = first.copy(), second.copy()
    down = np.maximum(first - p * second, 0.0) / (p + 1.0)
    up = np.maximum(second - p * first, 0.0) / (p + 1.0)
    first, second = first - down + up, second + down - up
    excess = second.sum() - 1.0
    if excess < 0.0:
        return pure_pair_back(second, first, -excess)[::-1]
    return pure_pair_back(first, second, excess)


def pure_pair_back(light, heavy, excess):
    room = np.maximum(heavy - light, 0.0) / 2.0
    moved = room * (excess / room.sum()) if excess > 1e-14 else 0.0 * room
    assert (moved <= room * (1.0 + 1e-9) + 1e-15).all()  # "there is room for d"
    return light + moved, heavy - moved


@settings(max_examples=50)
@given(LAWS, st.floats(1.01, 4.0))
def test_the_steps_of_the_proof(laws, p):
    first, second, other = (np.array(law) / sum(law) for law in laws)
    delta0 = delta0_of([first, second, other], math.log(p))
    pure_first, pure_second = pure_pair(first, second, p)
    assert pure_first.sum() == pytest.approx(1.0)
    assert pure_second.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(pure_first + pure_second, first + second, rtol=1e-12)
    assert (pure_first <= p * pure_second * (1.0 + 1e-9)).all()
    assert (pure_second <= p * pure_first * (1.0 + 1e-9)).all()
    assert np.maximum(first - pure_first, 0.0).sum() <= delta0 / (p + 1.0) * (1.0 + 1e-9) + 1e-15
    larger = np.maximum(pure_first, pure_second)
    assert (larger <= np.maximum(first, second) * (1.0 + 1e-12)).all()
    for omega, deficits in ((larger / p, 2.0), ((first + second) / (2.0 * p), 1.0)):
        lacking = np.maximum(omega - other, 0.0).sum()
        assert lacking <= deficits * delta0 / p * (1.0 + 1e-9) + 1e-15
        assert omega.sum() <= 1.0 + 1e-12


def test_the_cost_written_out():
    profile = LocalProfile(epsilon0=math.log(3.0), delta0=0.01)
    found = replacement_cost(profile, 5, 2.0, math.log(2.0))
    replaced = 1.0 - (1.0 - 0.02 / 3.0) ** 4
    assert found == pytest.approx(3.0 * (replaced * 0.5 + 0.01 / 4.0), rel=1e-12)
    certain = replacement_cost(LocalProfile(epsilon0=math.log(1.5), delta0=0.9), 5, 2.0, 0.0)
    assert certain == pytest.approx(2.0 * (0.2 + 0.9 / 2.5), rel=1e-12)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("num_users", [100, 10_000])
def test_a_vanishing_delta0_gives_the_clones(epsilon0, num_users):
    profile = LocalProfile(epsilon0=epsilon0, delta0=1e-30)
    clones = CLONES.epsilon(any_randomizer(epsilon0), num_users, 1e-6).upper
    assert approximate_epsilon(profile, num_users, 1e-6) == pytest.approx(clones, rel=1e-6)


@given(
    st.floats(0.01, 6.0),
    st.floats(1e-15, 1e-2),
    st.integers(1, 10**6),
    st.floats(1e-12, 0.5),
)
def test_epsilon_is_on_the_safe_side_of_its_own_delta(epsilon0, delta0, num_users, delta):
    profile = LocalProfile(epsilon0=epsilon0, delta0=delta0)
    epsilon = approximate_epsilon(profile, num_users, delta)
    if delta < delta0:
        assert epsilon == math.inf
        return
    assert 0.0 <= epsilon <= epsilon0
    assert approximate_delta(profile, num_users, epsilon) <= delta * (1.0 + 1e-9)


@given(st.floats(0.1, 3.0), st.floats(1e-12, 1e-3), st.integers(2, 10**5), st.floats(0.0, 1.2))
def test_more_delta0_never_helps(epsilon0, delta0, num_users, share):
    less, more = (
        approximate_delta(LocalProfile(epsilon0=epsilon0, delta0=size), num_users, share * epsilon0)
        for size in (delta0, 1.5 * delta0)
    )
    assert delta0 <= less <= more * (1.0 + 1e-6)


def test_better_than_the_published_form():
    # delta + (e^eps + 1)(1 + e^-eps0 / 2) n delta0, as it is quoted
    for epsilon0 in (0.1, 1.0, 3.0):
        for num_users in (10, 10**5):
            profile = LocalProfile(epsilon0=epsilon0, delta0=1e-12)
            published = 2.0 * (1.0 + math.exp(-epsilon0) / 2.0) * num_users * 1e-12
            assert replacement_cost(profile, num_users, 2.0, 0.0) < published


@pytest.mark.parametrize("epsilon0", [0.0, 1.0, 50.0, 199.0, 201.0, 1e4, 1e308])
@pytest.mark.parametrize("num_users", [1, 2, 10**15])
def test_the_ends_of_approximate_local(epsilon0, num_users):
    profile = LocalProfile(epsilon0=epsilon0, delta0=1e-9)
    assert approximate_epsilon(profile, num_users, 1e-10) == math.inf
    assert approximate_epsilon(profile, num_users, 1e-9) <= epsilon0
    assert approximate_delta(profile, num_users, epsilon0) == 1e-9
    assert 1e-9 <= approximate_delta(profile, num_users, 0.0) <= 1.0


def test_where_shuffling_gains_nothing_the_local_bound_answers():
    profile = LocalProfile(epsilon0=1.0, delta0=1e-6)
    found = approximate_epsilon(profile, 10**6, 2e-6)
    assert found == LOCAL.epsilon(profile, 10**6, 2e-6).upper < 1.0


def test_an_inversion_that_never_settles_gives_no_bound(monkeypatch):
    found = iter(range(2, 1000, 2))
    monkeypatch.setattr(local, "atom_epsilon_above", lambda *_: float(next(found)))
    profile = LocalProfile(epsilon0=100.0, delta0=1e-120)
    assert approximate_epsilon(profile, 2, 1e-3) == LOCAL.epsilon(profile, 2, 1e-3).upper


def test_the_method():
    profile = LocalProfile(epsilon0=1.0, delta0=1e-9)
    assert APPROXIMATE_LOCAL.automatic
    assert APPROXIMATE_LOCAL.violated_hypothesis(profile, 10, 1e-6) is None
    assert APPROXIMATE_LOCAL.violated_hypothesis(any_randomizer(1.0), 10, None) == "delta0 > 0"
    by_delta = APPROXIMATE_LOCAL.epsilon(profile, 1000, 1e-6)
    assert by_delta.upper == approximate_epsilon(profile, 1000, 1e-6)
    by_epsilon = APPROXIMATE_LOCAL.delta(profile, 1000, by_delta.upper)
    assert by_epsilon.upper == pytest.approx(1e-6, rel=1e-6)
