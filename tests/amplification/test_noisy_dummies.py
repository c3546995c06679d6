"""k-RR among a shuffler's dummies, whoever else lies."""

import math

import numpy as np
import pytest

from oracles import dummies as oracle
from oracles import profiles
from shuffledp.amplification import dummies
from shuffledp.amplification.dummies import dummy_curve, noisy_curve
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import LocalProfile

TABLES = ("laplace:0.7:1", "laplace:1.5:2", "laplace:2.0:3", "gaussian:1.0:2", "gaussian:0.1:4")


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("text", TABLES)
def test_exact_for_one_user(text, k):
    law = DummyLaw.from_text(text)
    table = np.array([each / 2**64 for each in law.table])
    for epsilon0 in (0.3, 1.0, 3.0):
        curve = noisy_curve(law, profiles.k_rr(epsilon0, k))
        epsilons = (0.0, 0.2, 0.7, 1.3)
        worst = oracle.worst_delta(oracle.k_rr(k, epsilon0), table, 1, epsilons)
        for epsilon, found in zip(epsilons, worst, strict=True):
            upper = curve.forward(epsilon).upper
            assert found <= upper * (1.0 + 1e-13)
            if epsilon < epsilon0:
                assert upper == pytest.approx(found, rel=1e-9 if k == 3 else 1e-3, abs=1e-9)
            else:
                assert upper == 0.0


def by_sampling(law, profile, epsilon, samples=200_000):
    """The formula's mean over drawn numbers of dummies, and its standard error."""
    k, likelihood = profile.domain_size, math.exp(profile.epsilon0)
    table = np.array([each / 2**64 for each in law.table])
    ratios = np.concatenate(([0.0], table[:-1] / table[1:]))
    generator = Entropy.from_seed(k).generator()
    drawn = ratios[generator.choice(table.size, (samples, 2), p=table / table.sum())]
    rest = generator.multinomial(k - 2, table / table.sum(), samples) @ ratios
    q, e = 1.0 / (likelihood + k - 1), math.exp(epsilon)
    p = likelihood * q
    gains = (p - e * q) * drawn[:, 0] - (e * p - q) * drawn[:, 1] - (e - 1.0) * q * rest
    gains = np.maximum(gains, 0.0)
    return (p - e * q) * table[-1] + gains.mean(), gains.std() / math.sqrt(samples)


# Two tails of a normal law beyond seven deviations, for each of the six cases.
FALSE_POSITIVE_RATE = 1.6e-11


@pytest.mark.parametrize("text", ["laplace:0.9:12", "gaussian:1.2:9"])
@pytest.mark.parametrize(("k", "epsilon0"), [(17, 2.0), (300, 5.0), (4_000, 7.0)])
def test_many_bins_against_drawn_dummies(text, k, epsilon0):
    law, profile = DummyLaw.from_text(text), profiles.k_rr(epsilon0, k)
    mean, error = by_sampling(law, profile, 0.2)
    upper = noisy_curve(law, profile).forward(0.2).upper
    assert abs(upper - mean) <= 7.0 * error + 0.01 * mean


def test_grids_keep_the_mass_and_the_mean():
    law = DummyLaw.from_text("gaussian:3.0:20")
    table = np.array([each / 2**64 for each in law.table])
    for number in (1, 2, 7, 64, 1_022, 10**5):
        values, masses, lost = dummies._others(law, number)
        assert masses.sum() == pytest.approx(1.0, rel=1e-9)
        assert values @ masses == pytest.approx(number * (1.0 - table[-1]), rel=1e-9)
        assert lost < 1e-17
        assert values.size <= 300


@pytest.mark.parametrize("k", [4, 17])
def test_numbers_too_rare_to_keep_are_lost_to_the_adversary(k, monkeypatch):
    law, profile = DummyLaw.from_text("laplace:0.9:12"), profiles.k_rr(2.0, k)
    kept = dummies._noisy_delta(law, profile, 0.2).upper
    monkeypatch.setattr(dummies, "_RARE", 0.03)
    monkeypatch.setattr(dummies, "_others", dummies._others.__wrapped__)
    _, masses, lost = dummies._others(law, k - 2)
    assert masses.sum() + lost >= 1.0 - 1e-9
    assert lost > 0.0
    assert dummies._noisy_delta(law, profile, 0.2).upper > kept


def test_all_bins_together_hide_more_than_a_pair():
    law, profile = DummyLaw.from_text("laplace:0.454:6"), profiles.k_rr(5.0, 1_024)
    pair = dummy_curve(law, profile, 1).forward(1.0).upper
    found = account_delta(profile, num_users=1, epsilon=1.0, dummies=law)
    assert found.method == "shuffler-dummies-k-rr"
    assert found.upper == pytest.approx(9.3455e-7, rel=0.01)
    assert found.upper < 1e-4 * pair
    assert any("may do what they like" in each for each in found.assumptions)
    epsilon = account_epsilon(profile, num_users=1, delta=found.upper, dummies=law)
    assert epsilon.upper == pytest.approx(1.0, rel=1e-5)


def test_never_above_the_pair():
    for text in ("laplace:1.0:14", "gaussian:4.0:25"):
        law = DummyLaw.from_text(text)
        for k, epsilon0 in ((3, 0.5), (16, 3.0), (1_024, 9.0), (10**6, 2.0)):
            profile = profiles.k_rr(epsilon0, k)
            pair, found = dummy_curve(law, profile, 1), noisy_curve(law, profile)
            for epsilon in (0.0, 0.1, 0.4, 0.9 * epsilon0):
                assert found.forward(epsilon).upper <= pair.forward(epsilon).upper * (1.0 + 1e-5)


@pytest.mark.parametrize(
    "profile",
    [
        LocalProfile(epsilon0=1.0),
        profiles.k_rr(1.0, 2),
        LocalProfile(epsilon0=math.inf, family="k-rr", domain_size=5),
        LocalProfile(epsilon0=1.0, delta0=1e-9, family="k-rr", domain_size=5),
        LocalProfile(epsilon0=1.0, participation=0.5, family="k-rr", domain_size=5),
    ],
)
def test_other_reports_have_their_own_bound(profile):
    assert noisy_curve(DummyLaw.from_text("laplace:1.0:14"), profile) is None
    assert noisy_curve(DummyLaw.from_text("poisson:3.0"), profiles.k_rr(1.0, 5)) is None
