"""The Python calls of the net about information leakage; see `golden.net.python_calls`."""

# ruff: noqa: C408 - arguments are written as in the call that they are for

from fractions import Fraction

import numpy as np

import shuffledp as sdp
from golden.net.python_calls import calls, of, ring
from network.walks import position_distribution
from shuffledp import leakage

SKEWED = [0.5, 0.3, 0.2]
NOISY = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]


def exact(truth=Fraction(3, 4), num_users=3):
    """Return the channel of randomized response and a shuffle, in fractions."""
    noise = leakage.randomizer_channel(num_users, 2, truth)
    return noise @ leakage.reduced_shuffle_channel(num_users, 2)


@calls(
    "leakage",
    dict(num_users=200, domain_size=2, truth=0.9),
    dict(num_users=10**6, domain_size=7, epsilon0=1.0),
    dict(num_users=50, domain_size=3, truth=0.6, prior=SKEWED),
    dict(num_users=50, domain_size=3, truth=0.6, adversary="strong"),
    dict(num_users=50, domain_size=3, truth=0.6, adversary="strong", known=[20, 20, 9]),
    dict(num_users=50, domain_size=3, truth=0.6, adversary="partial", known=[5, 5, 9]),
    dict(num_users=40, channel=NOISY, prior=SKEWED),
    dict(num_users=0, domain_size=2, truth=0.9),
    dict(num_users=10, domain_size=2, truth=0.2),
)
def account_leakage(**asked):
    return sdp.leakage.account_leakage(**asked).to_json_dict()


@calls("leakage", dict(n=3, k=2), dict(n=1_000, k=5), dict(n=10**9, k=50))
def shuffled(n, k):
    return {
        "shuffled": leakage.shuffled_vulnerability(n, k, 0.8),
        "shuffler": leakage.shuffled_vulnerability(n, k, 1),
    }


@calls(
    "leakage", dict(n=30, crowd=None), dict(n=30, crowd=[0.2, 0.2, 0.6]), dict(n=5_000, crowd=None)
)
def exchangeable(n, crowd):
    return leakage.exchangeable_vulnerability(n, NOISY, prior=SKEWED, crowd=crowd)


@calls("leakage", dict(known=[0, 200]), dict(known=[100, 100]), dict(known=[5_000, 4_999]))
def strong(known):
    return leakage.strong_vulnerability(0.8, known)


@calls("leakage", dict(known=[3, 2, 1], prior=SKEWED, num_unknown=4))
def strong_of_a_matrix(known, prior, num_unknown):
    return leakage.strong_vulnerability(NOISY, known, prior=prior, num_unknown=num_unknown)


@calls("leakage", dict(epsilon=0.5, delta=0.0), dict(epsilon=0.5, delta=0.02))
def from_guarantee(epsilon, delta):
    points = [(epsilon, delta), (0.0, 0.3)]
    found = [leakage.vulnerability_from_guarantee(SKEWED, *point) for point in points]
    return [found[0], min(found)]


@calls("leakage", dict(file="prior.json"), dict(file="some.json"), dict(file="channel.csv"))
def prior_file(file):
    found = leakage.read_prior(file)
    return {**of(found, "prior", "values", "known")}


# ---------------------------------------------------------------- maximum load
LOADS = [(1, 2), (100, 3), (1_000, 50), (10**9, 5), (10**6, 1_000)]


@calls("maximum load", *(dict(balls=n, bins=k) for n, k in LOADS))
def maximum_load(balls, bins):
    return {"excess": leakage.maximum_load_excess(balls, bins)}


# ---------------------------------------------------------------- channels and measures
@calls("channels", dict(prior=None), dict(prior=[Fraction(1, 8)] * 8))
def vulnerabilities(prior):
    seen = exact()
    asked = {
        "target": {"gain": leakage.single_target_gain(seen.inputs)},
        "whole": {},
        "matrix": {"gain": np.eye(8).astype(int).tolist()},
    }
    law = prior or [Fraction(1, 8)] * 8
    return {
        name: {
            "prior": leakage.prior_vulnerability(law, **each),
            "posterior": leakage.posterior_vulnerability(prior, seen, **each),
        }
        for name, each in asked.items()
    }


@calls("channels")
def min_capacity():
    return leakage.min_capacity_bits(NOISY)


@calls("channels", dict(less=Fraction(9, 10), more=Fraction(6, 10)))
def refinements(less, more):
    return {
        "forth": leakage.is_refined_by(exact(less), exact(more)),
        "back": leakage.is_refined_by(exact(more), exact(less)),
    }


@calls("channels")
def channels_made():
    made = {
        "randomizer": leakage.randomizer_channel(2, 3, Fraction(1, 2)),
        "reduced randomizer": leakage.reduced_randomizer_channel(3, 2, Fraction(3, 4)),
        "shuffle": leakage.shuffle_channel(2, 2),
        "own": leakage.Channel(NOISY, outputs="abc"),
    }
    return {
        name: {**of(each, "num_inputs", "num_outputs", "is_exact"), "matrix": each.to_dense()}
        for name, each in made.items()
    }


@calls("channels", dict(distance="kendall"), dict(distance="hamming"))
def place_laws(distance):
    model = sdp.groups.MallowsModel(distance=distance, num_items=4, theta=0.5)
    return sdp.groups.target_place_law(model)


@calls("channels", dict(rounds=4))
def guess_after_a_walk(rounds):
    law = position_distribution(sdp.network.RandomWalk(ring()), 3, rounds)
    noise = [[0.9, 0.1], [0.1, 0.9]]
    return leakage.positions_vulnerability(law, noise)


@calls("channels", dict(matrix=[[0.5, 0.6]]), dict(matrix=[[1.0], [float("nan")]]))
def refused_channels(matrix):
    return leakage.Channel(matrix).to_dense()
