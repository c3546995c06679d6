"""Plans with dummies of a given law and local noise, for tests."""

import math
from dataclasses import replace
from functools import cache

import shuffledp as sdp
from shuffledp.accounting.dummies import least_level_dummies, level_guarantee
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.core.dummies import DummyLaw
from shuffledp.randomizers.bit_sums import BitSums
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

SHUFFLERS, USERS = "laplace:2.0:27", "poisson:0.05"
DELTA = 1e-6


@cache
def plan_with(text=SHUFFLERS, *, epsilon0=math.inf, num_users=1000, domain=("a", "b", "c")):
    """Return a plan of k-ary randomized response with dummies, of a target that it just meets."""
    law = DummyLaw.from_text(text)
    randomizer = KRandomizedResponse(domain_size=len(domain), epsilon0=epsilon0)
    users = 1 if law.sender == "shuffler" else num_users
    guarantee = guarantee_for(randomizer.profile, users, delta=DELTA, dummies=law)
    question = sdp.Categories(list(domain))
    some = sdp.plan(question, num_users=num_users, epsilon0=1.0, delta=DELTA, randomizer="k-rr")
    return replace(
        some,
        randomizer=randomizer,
        dummies=(law,),
        guarantee=guarantee,
        target_epsilon=guarantee.epsilon_upper,
        binding="epsilon",
        asked_epsilon0=epsilon0,
    )


@cache
def bits_plan(num_users=1000, num_bits=3):
    """Return a plan of a mean bit by bit, without local noise and with dummies at each level."""
    question = sdp.Mean(low=0.0, high=1.0, name="x")
    randomizer = BitSums(low=0.0, high=1.0, epsilon0=math.inf, num_bits=num_bits)
    laws = least_level_dummies(
        randomizer.profiles,
        [1.0 / weight for weight in randomizer.weights],
        epsilon=1.0,
        delta=DELTA,
    )
    some = sdp.plan(question, num_users=num_users, epsilon0=1.0, delta=DELTA)
    return replace(
        some,
        randomizer=randomizer,
        dummies=laws,
        guarantee=level_guarantee(randomizer.profiles, laws, delta=DELTA),
        target_epsilon=1.0,
        binding="epsilon",
        asked_epsilon0=math.inf,
    )


def bare_plan():
    """Return a plan of answers without local noise, hidden by a shuffler's dummies."""
    return plan_with()


def noisy_plan():
    """Return a plan of answers with local noise and the same dummies."""
    return plan_with(epsilon0=3.0)
