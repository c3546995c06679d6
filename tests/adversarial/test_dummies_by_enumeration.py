"""Every bound with dummies against everything that can be seen, at n <= 4 and k <= 3."""

import itertools
import math

import numpy as np
import pytest

from oracles import dummies as oracle
from shuffledp.amplification.dummies import dummy_curve, hidden_epsilon, hidden_share
from shuffledp.amplification.dummy_crowds import _both_bins, crowd_curve
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile

EPSILONS = (0.0, 0.2, 0.7, 1.3, 2.5)
TABLES = ("laplace:0.7:1", "laplace:1.5:2", "laplace:2.0:3", "gaussian:1.0:2", "gaussian:2.0:3")
ROUNDING = 1e-12


def table(law):
    return np.array([each / 2**64 for each in law.table])


def k_rr(k, epsilon0):
    return LocalProfile(epsilon0=epsilon0, family="k-rr", domain_size=k)


@pytest.mark.parametrize("num_users", [1, 2, 4])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("text", TABLES)
def test_bare_values_are_accounted_exactly(text, k, num_users):
    law = DummyLaw.from_text(text)
    worst = oracle.worst_delta(oracle.k_rr(k, math.inf), table(law), num_users, EPSILONS)
    for epsilon, found in zip(EPSILONS, worst, strict=True):
        bound = account_delta(k_rr(k, math.inf), num_users=num_users, epsilon=epsilon, dummies=law)
        assert bound.lower == pytest.approx(found, rel=1e-9)
        assert bound.upper == pytest.approx(found, rel=1e-9)
        assert bound.lower <= bound.upper


@pytest.mark.parametrize("num_users", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("text", TABLES)
def test_local_noise_beside_a_table(text, k, epsilon0, num_users):
    law, profile = DummyLaw.from_text(text), k_rr(k, epsilon0)
    worst = oracle.worst_delta(oracle.k_rr(k, epsilon0), table(law), num_users, EPSILONS)
    for epsilon, found in zip(EPSILONS, worst, strict=True):
        bound = account_delta(profile, num_users=num_users, epsilon=epsilon, dummies=law)
        assert bound.lower * (1.0 - ROUNDING) <= found <= bound.upper * (1.0 + ROUNDING)
        alone = dummy_curve(law, profile, num_users).forward(epsilon)
        assert found <= alone.upper * (1.0 + ROUNDING)
        if (k, num_users) == (2, 1):
            assert alone.upper == pytest.approx(max(found, 1e-300), rel=1e-6)


@pytest.mark.parametrize("num_users", [2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("text", ["laplace:0.7:1", "laplace:1.5:2", "gaussian:1.0:2"])
def test_dummies_of_the_shuffler_and_a_crowd(text, k, epsilon0, num_users):
    """The joint bound with the whole law of the other users' uniform answers on the pair."""
    law, profile = DummyLaw.from_text(text), k_rr(k, epsilon0)
    worst = oracle.worst_delta(oracle.k_rr(k, epsilon0), table(law), num_users, EPSILONS)
    others, chance = num_users - 1, 2.0 / (math.exp(epsilon0) + k - 1.0)
    chances = [
        math.comb(others, m) * chance**m * (1.0 - chance) ** (others - m) for m in range(num_users)
    ]
    for epsilon, found in zip(EPSILONS, worst, strict=True):
        if epsilon >= epsilon0:
            assert found <= ROUNDING
            continue
        moved = hidden_epsilon(epsilon0, epsilon)
        levels = [_both_bins(law, m, moved) for m in range(num_users)]
        assert levels == sorted(levels, reverse=True)  # it falls with the crowd
        mean = math.fsum(a * b for a, b in zip(chances, levels, strict=True))
        assert found <= hidden_share(profile, epsilon) * mean * (1.0 + 1e-9)


@pytest.mark.parametrize("num_users", [1, 2, 3])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("mean", [0.4, 2.0])
def test_dummies_of_the_users(mean, k, epsilon0, num_users):
    law, profile = DummyLaw(shape="poisson", scale=mean / num_users), k_rr(k, epsilon0)
    numbers = oracle.poisson(mean, 24)  # what is left out is below 1e-15
    worst = oracle.worst_delta(oracle.k_rr(k, epsilon0), numbers, num_users, EPSILONS)
    for epsilon, found in zip(EPSILONS, worst, strict=True):
        bound = account_delta(profile, num_users=num_users, epsilon=epsilon, dummies=law)
        assert bound.lower * (1.0 - 1e-9) - 1e-14 <= found <= bound.upper * (1.0 + 1e-9)
        curves = [dummy_curve(law, profile, num_users), crowd_curve(law, profile, num_users)]
        for curve in curves:
            assert curve is None or found <= curve.forward(epsilon).upper * (1.0 + 1e-9)
        if math.isinf(epsilon0):
            assert bound.lower == pytest.approx(found, rel=1e-9, abs=1e-13)


def random_channel(generator, inputs, outputs):
    channel = generator.dirichlet(np.full(outputs, 0.7), size=inputs)
    return 0.98 * channel + 0.02 / outputs  # pure: every report is possible


def leaked(channel, epsilon0):
    """The least delta0 of a channel at epsilon0."""
    pairs = itertools.permutations(channel, 2)
    return max(oracle.divergence(one, other, epsilon0) for one, other in pairs)


@pytest.mark.parametrize("number", range(12))
def test_any_randomizer(number):
    """Dummies of every possible report, whatever the channel, pure or not."""
    generator = Entropy.from_seed(320 + number).generator()
    channel = random_channel(generator, 2, 3)
    law = DummyLaw.from_text(TABLES[number % len(TABLES)])
    pure = max(np.log(one / other).max() for one, other in itertools.permutations(channel, 2))
    for num_users in (1, 2):
        worst = oracle.worst_delta(channel, table(law), num_users, EPSILONS)
        for share in (1.0, 0.5, 0.2):
            epsilon0 = share * pure * (1.0 + 1e-12)
            delta0 = 0.0 if share == 1.0 else min(leaked(channel, epsilon0) * (1.0 + 1e-12), 1.0)
            profile = LocalProfile(epsilon0=epsilon0, delta0=delta0)
            for epsilon, found in zip(EPSILONS, worst, strict=True):
                bound = dummy_curve(law, profile, num_users).forward(epsilon).upper
                assert found <= bound * (1.0 + 1e-9) + 1e-15


@pytest.mark.parametrize("participation", [0.3, 0.9])
def test_users_who_may_stay_away(participation):
    """A report that is sent by a coin is one more column, which no dummies go with."""
    law = DummyLaw.from_text("laplace:1.5:2")
    for epsilon0 in (1.0, math.inf):
        sent = participation * oracle.k_rr(2, epsilon0)
        views = []
        for row in sent:
            reported = oracle.view(table(law), [row])
            reported[:-1, :-1] += (1.0 - participation) * oracle.view(table(law), [])
            views.append(reported)
        profile = LocalProfile(epsilon0=epsilon0, participation=participation)
        for epsilon in EPSILONS:
            found = oracle.divergence(*views, epsilon)
            bound = account_delta(profile, num_users=1, epsilon=epsilon, dummies=law).upper
            assert found <= bound * (1.0 + ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("text", TABLES)
def test_epsilon_is_enough_and_hardly_more(text):
    law = DummyLaw.from_text(text)
    for k, epsilon0, num_users in itertools.product((2, 3), (1.0, 3.0, math.inf), (1, 2, 3, 4)):
        channel = oracle.k_rr(k, epsilon0)
        for delta in (0.01, 0.1, 0.3):
            profile = k_rr(k, epsilon0)
            try:
                bound = account_epsilon(profile, num_users=num_users, delta=delta, dummies=law)
            except ValueError:  # more is always revealed
                assert law.table[0] / 2**64 > 0.4 * delta
                continue
            worst = oracle.worst_delta(channel, table(law), num_users, (bound.upper, bound.lower))
            assert worst[0] <= delta * (1.0 + 1e-9)
            assert worst[1] >= delta * (1.0 - 1e-6) or bound.lower == 0.0
