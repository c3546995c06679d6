"""Guarantees of one batch, and of everything that is published about the same people."""

import json
import math

import numpy as np
import pytest

from oracles import profiles
from shuffledp import accounting
from shuffledp.accounting.account import account
from shuffledp.accounting.guarantees import guarantee_for, guarantee_of, guarantee_of_crowd
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer

KEYS = {"epsilon", "delta", "method", "source", "assumptions"}


def test_epsilon_from_delta():
    profile = profiles.k_rr(1.0, 4)
    guarantee = guarantee_for(profile, 1000, delta=1e-6)
    assert guarantee.epsilon == account_epsilon(profile, num_users=1000, delta=1e-6)
    assert guarantee.delta == guarantee.delta_upper == 1e-6
    assert guarantee.bound is guarantee.epsilon
    assert guarantee.num_users == 1000


def test_delta_from_epsilon():
    profile = profiles.k_rr(1.0, 4)
    guarantee = guarantee_for(profile, 1000, epsilon=0.1)
    assert guarantee.delta == account_delta(profile, num_users=1000, epsilon=0.1)
    assert guarantee.epsilon == guarantee.epsilon_upper == 0.1
    assert guarantee.bound is guarantee.delta


@pytest.mark.parametrize("given", [{}, {"epsilon": 0.1, "delta": 1e-6}])
def test_exactly_one_of_the_two(given):
    with pytest.raises(ParameterError, match="exactly one"):
        guarantee_for(profiles.any_randomizer(1.0), 10, **given)
    with pytest.raises(ParameterError, match="exactly one"):
        account(epsilon0=1.0, num_users=10, **given)


@pytest.mark.parametrize(
    ("randomizer", "k", "profile"),
    [
        (None, None, profiles.any_randomizer(1.0)),
        ("k-rr", 2, profiles.k_rr(1.0, 2)),
        ("k-rr", 16, profiles.k_rr(1.0, 16)),
        ("symmetric-unary", None, profiles.symmetric_unary(1.0)),
        ("symmetric-unary", 4, profiles.symmetric_unary(1.0, 4)),
        ("optimized-unary", 4, profiles.optimized_unary(1.0, 4)),
    ],
)
def test_account_by_name_is_the_profile_accounted(randomizer, k, profile):
    by_name = account(epsilon0=1.0, num_users=500, delta=1e-5, randomizer=randomizer, domain_size=k)
    assert by_name.bound == guarantee_for(profile, 500, delta=1e-5).bound


def test_a_lower_end_can_be_left_out():
    quick = guarantee_for(profiles.any_randomizer(1.0), 100, delta=1e-4, with_lower=False)
    assert quick.bound.lower is None


@pytest.mark.parametrize("randomizer", sorted(set(RANDOMIZERS) - {"k-rr", "symmetric-unary"}))
def test_account_of_every_registered_randomizer_is_that_of_its_law(randomizer):
    law = make_randomizer(randomizer, domain_size=4, epsilon0=1.0)
    by_name = account(
        epsilon0=law.epsilon0, num_users=500, delta=1e-5, randomizer=randomizer, domain_size=4
    )
    by_law = guarantee_for(law.profile, 500, delta=1e-5)
    assert by_name.epsilon_upper == pytest.approx(by_law.epsilon_upper, rel=1e-9)
    anyone = account(epsilon0=law.epsilon0, num_users=500, delta=1e-5)
    assert by_name.epsilon_upper <= anyone.epsilon_upper * (1.0 + 1e-9)


def test_a_law_that_depends_on_k_needs_it():
    with pytest.raises(ParameterError, match="domain_size is needed for hadamard-response"):
        account(epsilon0=1.0, num_users=10, delta=0.1, randomizer="hadamard-response")


@pytest.mark.parametrize("randomizer", ["any", "other", "krr", "", 3, "K-RR"])
def test_an_unknown_randomizer_is_refused_with_the_names(randomizer):
    with pytest.raises(ParameterError, match="optimized-unary"):
        account(epsilon0=1.0, num_users=10, delta=0.1, randomizer=randomizer)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"randomizer": "k-rr"}, "number of answers k"),
        ({"domain_size": 4}, "makes no difference without a randomizer"),
        ({"randomizer": "k-rr", "domain_size": 1}, "domain_size"),
        ({"randomizer": "k-rr", "domain_size": 2.5}, "domain_size"),
        ({"randomizer": "optimized-unary", "domain_size": 0}, "domain_size"),
        ({"epsilon0": -1.0}, "epsilon0"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"epsilon0": "1"}, "epsilon0"),
        ({"num_users": 0}, "num_users"),
        ({"num_users": 10.0}, "num_users"),
        ({"delta": 1.0}, "delta"),
        ({"method": "magic"}, "method"),
    ],
)
def test_arguments_out_of_range(changes, match):
    arguments = {"epsilon0": 1.0, "num_users": 10, "delta": 1e-3} | changes
    with pytest.raises(ParameterError, match=match):
        account(**arguments)


def test_a_method_out_of_its_regime():
    with pytest.raises(OutOfRegimeError, match="num_users >= 1000"):
        account(epsilon0=0.1, num_users=999, delta=1e-6, method="erlingsson-small")


@pytest.mark.parametrize(
    "asked",
    [{"delta": 1e-6}, {"epsilon": 0.1}, {"delta": np.float64(1e-6)}, {"epsilon": np.float32(0.1)}],
)
@pytest.mark.parametrize("num_users", [100, np.int64(100)])
def test_json(asked, num_users):
    guarantee = account(epsilon0=1.0, num_users=num_users, **asked)
    printed = json.loads(json.dumps(guarantee.to_json_dict()))
    assert set(printed) == KEYS
    (name, value), (other,) = *asked.items(), {"epsilon", "delta"} - set(asked)
    assert printed[name] == float(value)
    assert set(printed[other]) == {"lower", "upper"}
    assert printed[other]["lower"] <= printed[other]["upper"]
    assert len(printed["assumptions"]) >= 3


def test_json_of_what_is_unknown_or_infinite():
    bound = Bound(lower=None, upper=math.inf, method="m", source="s", assumptions=())
    printed = Guarantee(epsilon=bound, delta=0.1, num_users=3).to_json_dict()
    assert printed["epsilon"] == {"lower": None, "upper": None}
    json.dumps(printed, allow_nan=False)


def test_a_crowd_of_several_rounds_is_accounted_for_all_of_them():
    once, thrice = (
        guarantee_of_crowd(profiles.any_randomizer(1.0), 1000, delta=1e-6, rounds=rounds)
        for rounds in (1, 3)
    )
    assert (once.rounds, thrice.rounds) == (1, 3)
    assert once.epsilon_upper < thrice.epsilon_upper <= 3.0 * once.epsilon_upper
    assert guarantee_of_crowd(LocalProfile(epsilon0=math.inf), 9, delta=0.5).upper == math.inf


def test_exactly_one_of_epsilon_and_delta():
    release = accounting.ShuffledRelease(epsilon0=1.0, num_users=100) * 2
    assert guarantee_of(release, epsilon=0.5).delta == release.delta(0.5)
    for given in ({}, {"epsilon": 0.5, "delta": 1e-6}):
        with pytest.raises(ParameterError, match="exactly one"):
            guarantee_of(release, **given)
    with pytest.raises(ParameterError, match="releases is empty"):
        guarantee_of(release * 0, delta=1e-6)
