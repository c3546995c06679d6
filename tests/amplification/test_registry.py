import dataclasses
import math
from functools import partial

import numpy as np
import pytest

from oracles import profiles
from oracles.enumeration import randomized_response
from oracles.multiprecision import single_report
from oracles.stated_blankets import atoms_of, stated
from shuffledp.amplification.channel_rows import channel_profile
from shuffledp.amplification.registry import (
    BEST,
    METHODS,
    SHUFFLE_ASSUMPTIONS,
    account_delta,
    account_epsilon,
)
from shuffledp.amplification.sampling import participating
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError, ShuffledpError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.randomizers.registry import make_randomizer

LONG = partial(pytest.param, marks=pytest.mark.slow)
EPSILON0 = [0.0, 5e-324, 1e-300, 1e-12, 1e-9, 1.0, 20.0, 30.0, 36.0, 40.0, 60.0, 199.0, 201.0,
            700.0, 710.0, 1e308]  # fmt: skip
DELTAS = [0.0, 5e-324, 1e-300, 1e-15, 1e-6, 0.5, 1.0 - 2.0**-53]
SHARES = [0.0, 1e-300, 1e-9, 0.5, 0.95, 1.0 - 1e-9, 1.0 - 1e-13, 1.0 - 2.0**-52, 1.0, 2.0]


def name_of(profile):
    return f"{profile.family}-{profile.domain_size}"


@pytest.mark.parametrize("num_users", [1, LONG(2), 50])
@pytest.mark.parametrize("epsilon0", EPSILON0)
def test_epsilon_at_the_edges_is_a_bound_whatever_the_family(epsilon0, num_users):
    for profile in profiles.every_family(epsilon0):
        for delta in DELTAS:
            bound = account_epsilon(profile, num_users=num_users, delta=delta)
            assert 0.0 <= bound.upper <= epsilon0, (name_of(profile), delta)
            if delta == 0.0:
                assert bound.upper == epsilon0
                assert bound.gap <= 1e-15
            if epsilon0 == 0.0:
                assert bound.lower == 0.0


@pytest.mark.parametrize("num_users", [1, 2, 50])
@pytest.mark.parametrize("epsilon0", EPSILON0)
def test_delta_at_the_edges_is_a_bound_whatever_the_family(epsilon0, num_users):
    for profile in profiles.every_family(epsilon0):
        for share in SHARES:
            epsilon = min(epsilon0 * share, 1.7e308)
            bound = account_delta(profile, num_users=num_users, epsilon=epsilon)
            where = (name_of(profile), epsilon)
            assert 0.0 <= bound.upper <= 1.0, where
            assert (bound.upper == 0.0) == (epsilon >= epsilon0), where
            assert bound.upper == 0.0 or bound.upper >= 1e-300, where


@pytest.mark.parametrize("epsilon0", [1e-9, 0.1, 1.0, 5.0, 20.0, 30.0, 36.0, 37.5, 40.0, 150.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.98, 1.0 - 1e-9, 1.0 - 1e-13])
def test_one_user_alone_has_no_crowd(epsilon0, share):
    # The exact answer for one user is known in closed form for any epsilon0 at all.
    exact = single_report(epsilon0, epsilon0 * share)
    for profile in (profiles.any_randomizer(epsilon0), profiles.k_rr(epsilon0, 2)):
        for method in (BEST, "clones", "local"):
            try:
                bound = account_delta(profile, num_users=1, epsilon=epsilon0 * share, method=method)
            except ShuffledpError:
                assert method == "clones"
                continue
            assert bound.upper >= exact, (name_of(profile), method)
            assert bound.lower <= exact, (name_of(profile), method)
    best = account_delta(profiles.any_randomizer(epsilon0), num_users=1, epsilon=epsilon0 * share)
    assert best.upper <= exact * (1.0 + 1e-12) + 1e-300


@pytest.mark.parametrize(("epsilon0", "epsilon"), [(40.0, 38.0), (38.0, 37.0), (36.5, 36.0)])
@pytest.mark.parametrize("num_users", [1, 2, 100])
def test_large_epsilon_is_not_lost_in_round_off(epsilon0, epsilon, num_users):
    # Others report the truth all but always: the delta of one report remains.
    alone = -math.expm1(epsilon - epsilon0)
    for profile in profiles.every_family(epsilon0):
        if profile.family in (RandomizerFamily.ANY, RandomizerFamily.K_RANDOMIZED_RESPONSE):
            bound = account_delta(profile, num_users=num_users, epsilon=epsilon)
            assert bound.upper == pytest.approx(alone, rel=1e-6), name_of(profile)


def test_a_lower_end_far_above_an_upper_end_is_never_hidden():
    # Two proofs that contradict each other by more than rounding must not be printed as one.
    for epsilon0, epsilon in ((40.0, 38.0), (1.0, 1.0 - 1e-15), (5.0, 5.0 - 1e-14)):
        clones = None
        try:
            clones = account_delta(
                profiles.any_randomizer(epsilon0), num_users=1, epsilon=epsilon, method="clones"
            )
        except ShuffledpError:
            continue
        assert clones.upper >= single_report(epsilon0, epsilon)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, math.nan, math.inf, "10", None, 10**15 + 1])
def test_num_users_is_a_count(value):
    with pytest.raises(ParameterError, match="num_users"):
        account_epsilon(profiles.any_randomizer(1.0), num_users=value, delta=1e-6)
    with pytest.raises(ParameterError, match="num_users"):
        account_delta(profiles.any_randomizer(1.0), num_users=value, epsilon=0.1)


@pytest.mark.parametrize("value", [-1e-300, 1.0, 2, math.nan, math.inf, "1e-6", None, [1e-6]])
def test_delta_is_a_probability(value):
    with pytest.raises(ParameterError, match="delta"):
        account_epsilon(profiles.any_randomizer(1.0), num_users=10, delta=value)


@pytest.mark.parametrize(
    "value", [-1e-300, math.nan, math.inf, -math.inf, "1", None, [1.0], 10**400]
)
def test_epsilon_is_a_finite_number(value):
    with pytest.raises(ParameterError):
        account_delta(profiles.any_randomizer(1.0), num_users=10, epsilon=value)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_numpy_numbers_are_taken_at_their_exact_value(kind):
    epsilon0, epsilon, delta = kind(0.7), kind(0.3), kind(0.1)
    for profile in (LocalProfile(epsilon0=epsilon0), LocalProfile(epsilon0=float(epsilon0))):
        for num_users in (1, np.int64(1), np.uint8(1)):
            bound = account_delta(profile, num_users=num_users, epsilon=epsilon)
            assert bound.upper >= single_report(float(epsilon0), float(epsilon))
            assert type(bound.upper) is float
            inverse = account_epsilon(profile, num_users=num_users, delta=delta)
            assert single_report(float(epsilon0), inverse.upper) <= float(delta)
            assert type(inverse.upper) is float


@pytest.mark.parametrize("value", ["", "BEST", "clone", "erlingsson-smal", "nonsense"])
def test_an_unknown_method_is_named_with_the_known_ones(value):
    with pytest.raises(ParameterError, match="binary-exact") as caught:
        account_delta(profiles.any_randomizer(1.0), num_users=10, epsilon=0.1, method=value)
    assert repr(value) in str(caught.value)


def test_a_misspelt_method_gets_a_suggestion():
    with pytest.raises(ParameterError, match="did you mean 'clones'"):
        account_delta(profiles.any_randomizer(1.0), num_users=10, epsilon=0.1, method="clone")


@pytest.mark.parametrize("value", [None, 3, ["clones"], b"clones"])
def test_a_method_that_is_no_text_is_our_error(value):
    with pytest.raises(ParameterError, match="method"):
        account_delta(profiles.any_randomizer(1.0), num_users=10, epsilon=0.1, method=value)


PURE_ONLY = set(METHODS) - {"local", "approximate-local", "channel-blanket"}


@pytest.mark.parametrize("method", sorted(PURE_ONLY))
def test_most_methods_are_for_pure_randomizers(method):
    family, size = {
        "binary-exact": (RandomizerFamily.K_RANDOMIZED_RESPONSE, 2),
        "k-rr-blanket": (RandomizerFamily.K_RANDOMIZED_RESPONSE, 3),
        "unary-blanket": (RandomizerFamily.SYMMETRIC_UNARY, 3),
        "stated-blanket": (RandomizerFamily.OTHER, 4),
    }.get(method, (RandomizerFamily.ANY, None))
    pure = stated(0.3, atoms_of(randomized_response(4, math.exp(0.3))))
    profile = dataclasses.replace(pure, delta0=1e-9, family=family, domain_size=size)
    with pytest.raises(OutOfRegimeError, match=r"delta0 = 0 .*'approximate-local' is for"):
        account_delta(profile, num_users=2000, epsilon=0.1, method=method)
    bound = account_delta(profile, num_users=2000, epsilon=0.1)
    assert bound.method in ("approximate-local", "local")
    assert bound.upper >= 1e-9


def test_no_epsilon_at_a_delta_below_delta0():
    profile = LocalProfile(epsilon0=1.0, delta0=1e-6)
    for delta in (0.0, 1e-7):
        with pytest.raises(OutOfRegimeError, match="below delta0 = 1e-06"):
            account_epsilon(profile, num_users=1000, delta=delta)
    zeros = channel_profile([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    for with_lower in (True, False):
        with pytest.raises(OutOfRegimeError, match=r"below delta0 = 0\.5"):
            account_epsilon(zeros, num_users=1000, delta=0.1, with_lower=with_lower)
    law = DummyLaw.from_text("laplace:2.025:27")
    for asked in ({"delta": 1e-3}, {"epsilon": 0.5}):
        account = account_epsilon if "delta" in asked else account_delta
        with pytest.raises(OutOfRegimeError, match="method 'clones' needs delta0 = 0"):
            account(profile, num_users=1000, method="clones", dummies=law, **asked)
    assert account_epsilon(profile, num_users=1000, delta=1e-6).upper == 1.0
    assert account_delta(profile, num_users=1000, epsilon=1.0).upper >= 1e-6
    assert account_delta(profile, num_users=1000, epsilon=5.0).upper >= 1e-6
    # reports that ignore the value but for a rare failure
    useless = LocalProfile(epsilon0=0.0, delta0=1e-3)
    assert account_delta(useless, num_users=10, epsilon=0.0).upper == pytest.approx(1e-3, rel=1e-9)
    assert account_epsilon(useless, num_users=10, delta=1e-3).upper == 0.0


@pytest.mark.parametrize("method", sorted(PURE_ONLY))
def test_at_delta_zero_only_the_local_bound_holds(method):
    profile = profiles.k_rr(0.3, 2)
    needed = {
        "unary-blanket": profiles.symmetric_unary(0.3, 4),
        "stated-blanket": stated(0.3, atoms_of(randomized_response(4, math.exp(0.3)))),
    }.get(method, profile)
    with pytest.raises(OutOfRegimeError, match="delta > 0"):
        account_epsilon(needed, num_users=2000, delta=0.0, method=method)
    assert account_epsilon(needed, num_users=2000, delta=0.0, method="local").upper == 0.3


def test_k_rr_with_absurdly_many_answers_is_no_crash():
    for k in (2**31, 2**53 + 1, 10**18, 10**300, 10**400):
        try:
            bound = account_delta(profiles.k_rr(1.0, k), num_users=10, epsilon=0.3)
        except ParameterError:
            continue
        assert 0.0 < bound.upper <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon0", [0.05, LONG(0.4), 1.0, LONG(3.0), 12.0])
@pytest.mark.parametrize("num_users", [1, 100, LONG(3000)])
def test_best_is_the_smallest_of_all(epsilon0, num_users):
    for profile in profiles.every_family(epsilon0):
        for delta in (1e-9, 1e-3):
            best = account_epsilon(profile, num_users=num_users, delta=delta)
            at_best = account_delta(profile, num_users=num_users, epsilon=best.upper)
            # Two enclosures of one number, on two grids: apart by no more than their widths.
            assert at_best.upper <= delta * (1.0 + 8e-5)
            for name, method in METHODS.items():
                if method.violated_hypothesis(profile, num_users, delta) is not None:
                    continue
                try:
                    other = account_epsilon(
                        profile, num_users=num_users, delta=delta, method=name, with_lower=False
                    )
                except OutOfRegimeError:
                    assert name == "erlingsson"  # no finite bound
                    continue
                assert best.upper <= other.upper * (1.0 + 1e-7)
                assert best.lower is None or best.lower <= other.upper


def test_what_a_bound_says():
    bound = account_epsilon(profiles.k_rr(1.0, 4), num_users=1000, delta=1e-6)
    assert bound.assumptions[: len(SHUFFLE_ASSUMPTIONS)] == SHUFFLE_ASSUMPTIONS
    assert bound.source
    quick = account_epsilon(profiles.k_rr(1.0, 4), num_users=1000, delta=1e-6, with_lower=False)
    assert quick.lower is None
    assert quick.upper == bound.upper
    exact = account_delta(profiles.k_rr(1.0, 2), num_users=1000, epsilon=0.1, with_lower=False)
    assert exact.lower is None


def test_the_table_of_methods_is_read_only_and_consistent():
    assert all(name == method.name for name, method in METHODS.items())
    with pytest.raises(TypeError):
        METHODS["clones"] = METHODS["local"]


@pytest.mark.parametrize("num_users", [10**9, 10**12])
def test_many_users(num_users):
    for profile in (profiles.any_randomizer(2.0), profiles.k_rr(2.0, 16)):
        bound = account_epsilon(profile, num_users=num_users, delta=1e-10)
        assert 0.0 < bound.lower <= bound.upper < 1e-3
        back = account_delta(profile, num_users=num_users, epsilon=bound.upper, with_lower=False)
        assert back.upper <= 1e-10 * (1.0 + 8e-5)


@pytest.mark.parametrize("epsilon0", [1e-9, 0.5])
def test_tiny_delta_for_many_users(epsilon0):
    # The window for delta = 1e-300 is wide.
    bound = account_epsilon(profiles.k_rr(epsilon0, 4), num_users=10**5, delta=1e-300)
    assert 0.0 < bound.upper <= epsilon0


@pytest.mark.parametrize("name", ["optimized-local-hashing", "k-rr"])
def test_below_the_least_delta_nothing_but_the_local_loss_holds(name):
    profile = make_randomizer(name, domain_size=100, epsilon0=2.0).profile
    found = account_epsilon(profile, num_users=1000, delta=1e-305, with_lower=False)
    assert found.upper == profile.epsilon0


@pytest.mark.parametrize(
    "profile",
    [
        make_randomizer("subset-selection", domain_size=5, epsilon0=1.0).profile,
        participating(LocalProfile(epsilon0=1.0), 0.5),
        channel_profile([[0.6, 0.4], [0.45, 0.55]]),
    ],
)
def test_a_randomizer_without_a_family_has_its_local_loss_at_delta_0(profile):
    found = account_epsilon(profile, num_users=100, delta=0.0)
    assert 0.999 * profile.epsilon0 < found.lower <= found.upper == profile.epsilon0
