"""Plans with dummies of a given law and local noise, for tests."""

import math
from dataclasses import replace
from functools import cache

import shuffledp as sdp
from shuffledp.accounting.guarantees import guarantee_for, guarantee_of_crowd
from shuffledp.core.dummies import DummyLaw
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
        without_dummies=guarantee_of_crowd(randomizer.profile, num_users, delta=DELTA),
        target_epsilon=guarantee.epsilon_upper,
        binding="epsilon",
        asked_epsilon0=epsilon0,
    )


def bare_plan():
    """Return a plan of answers without local noise, hidden by a shuffler's dummies."""
    return plan_with()


def noisy_plan():
    """Return a plan of answers with local noise and the same dummies."""
    return plan_with(epsilon0=3.0)
