"""The weighted blanket: its limits, its monotony, what it refuses.

That it is above exact divergences is tested by enumeration, in tests/adversarial.
"""

import math

import numpy as np
import pytest

from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.network.privacy.weighted_walk import WeightedWalk, Weights

ANY = LocalProfile(epsilon0=1.0)
EVEN = Weights(values=[1.0], masses=[1.0])
# Asymmetric: one order of the pair loses more than the other.
ATOMS = ((0.1, 2.5, 1.0), (0.3, 1.0, 1.5), (0.45, 1.0, 1.0))
STATED = LocalProfile(
    epsilon0=1.0,
    family=RandomizerFamily.OTHER,
    blanket=tuple(BlanketAtom(mass=m, ratio0=a, ratio1=b) for m, a, b in ATOMS),
)


@pytest.mark.parametrize(
    "profile",
    [
        ANY,
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=9),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.SYMMETRIC_UNARY),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OPTIMIZED_UNARY),
        STATED,
    ],
)
def test_with_even_weights_it_is_a_uniform_shuffle(profile):
    uniform = account_epsilon(profile, num_users=1000, delta=1e-6, with_lower=False).upper
    walk = WeightedWalk(profile, np.ones(999), delta=1e-6)
    assert walk.is_known
    # For unary encodings the accountant rounds the law up to one of three kinds of reports.
    assert uniform * (1.0 - 5e-3) <= walk.epsilon(EVEN, 1e-6) <= uniform * (1.0 + 1e-3)


def test_wider_weights_and_fewer_others_hide_less():
    def delta(values, overlap=1.0, **options):
        masses = np.full(len(values), 1.0 / len(values))
        walk = WeightedWalk(ANY, np.full(200, overlap), delta=1e-3, **options)
        return walk.delta(Weights(values=values, masses=masses), 0.3)

    even = delta([1.0])
    wide = delta([0.5, 1.5])
    wider = delta([0.0, 2.0])
    assert even < wide < wider < delta([0.0, 2.0], 0.8) < delta([0.0, 2.0], 0.8, num_dishonest=50)
    alone = account_delta(ANY, num_users=1, epsilon=0.3).upper
    assert delta([1.0], num_dishonest=300) == alone
    assert delta([1.0], 0.0) == alone


def test_what_is_missed_is_added():
    walk = WeightedWalk(ANY, np.ones(999), delta=1e-3)
    alone = account_delta(ANY, num_users=1, epsilon=0.2).upper
    hidden = walk.delta(EVEN, 0.2)
    found = walk.delta(Weights(values=[1.0], masses=[1.0], missed=0.25), 0.2)
    assert found == pytest.approx(0.75 * hidden + 0.25 * alone)
    assert walk.delta(Weights(values=[1.0], masses=[1.0], missed=1.0), 0.2) == alone


def test_without_a_blanket_the_report_alone_counts():
    impure = LocalProfile(epsilon0=1.0, delta0=1e-9)
    walk = WeightedWalk(impure, np.ones(999), delta=1e-6)
    assert not walk.is_known
    assert walk.epsilon(EVEN, 1e-6) == account_epsilon(impure, num_users=1, delta=1e-6).upper
    assert walk.delta(EVEN, 0.1) == account_delta(impure, num_users=1, epsilon=0.1).upper
    huge = WeightedWalk(LocalProfile(epsilon0=500.0), np.ones(9), delta=1e-6)
    assert not huge.is_known
    walk = WeightedWalk(ANY, np.ones(999), delta=1e-6)
    assert walk.delta(EVEN, 1.0) == 0.0
    assert walk.epsilon(EVEN, 0.0) == 1.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"values": [1.0, 2.0], "masses": [1.0]},
        {"values": [[1.0]], "masses": [[1.0]]},
        {"values": [1.0], "masses": [1.0], "missed": math.nan},
        {"values": [1.0], "masses": [1.0], "missed": -0.1},
        {"values": [1.0], "masses": [1.0], "accuracy": 1.0},
    ],
)
def test_what_is_no_law_is_refused(arguments):
    with pytest.raises(ParameterError, match="weights"):
        Weights(**arguments)


def test_values_and_masses_out_of_range_are_refused():
    walk = WeightedWalk(ANY, np.ones(9), delta=1e-3)
    for values, masses in (([-1.0], [1.0]), ([1.0], [1.5]), ([math.nan], [1.0])):
        with pytest.raises(ParameterError):
            walk.delta(Weights(values=values, masses=masses), 0.1)
