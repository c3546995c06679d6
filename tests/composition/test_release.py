import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shuffledp as sdp
from oracles import profiles
from shuffledp.amplification.registry import account_epsilon
from shuffledp.amplification.sampling import participating
from shuffledp.composition.release import ShuffledRelease, StatedRelease, honest_users
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_users": 0, "epsilon0": 1.0},
        {"num_users": 1.5, "epsilon0": 1.0},
        {"num_users": 10},
        {"num_users": 10, "epsilon0": 1.0, "profile": LocalProfile(epsilon0=1.0)},
        {"num_users": 10, "epsilon0": math.nan},
        {"num_users": 10, "epsilon0": -1.0},
        {"num_users": 10, "epsilon0": 1.0, "sampled_from": 9},
        {"num_users": 10, "epsilon0": 1.0, "sampled_from": 20.5},
        {"num_users": 10, "epsilon0": 1.0, "participation": 0.0},
        {"num_users": 10, "epsilon0": 1.0, "participation": 1.5},
        {"num_users": 10, "epsilon0": 1.0, "participation": math.nan},
        {"num_users": 10, "epsilon0": 1.0, "participation": 0.5, "sampled_from": 20},
    ],
)
def test_impossible_releases_are_refused(arguments):
    with pytest.raises(ParameterError):
        ShuffledRelease(**arguments)


@pytest.mark.parametrize(
    "arguments", [{"epsilon": -1.0}, {"epsilon": math.inf}, {"epsilon": 1.0, "delta": 1.0}]
)
def test_impossible_guarantees_are_refused(arguments):
    with pytest.raises(ParameterError):
        StatedRelease(**arguments)


def test_too_many_users_are_refused_by_the_accountant():
    with pytest.raises(ParameterError, match="above 1e"):
        ShuffledRelease(epsilon0=1.0, num_users=10**15 + 1).epsilon(1e-6)


def test_epsilon0_is_known_either_way():
    release = ShuffledRelease(profile=profiles.k_rr(2.0, 4), num_users=10)
    assert release.epsilon0 == release.law.epsilon0 == 2.0
    assert ShuffledRelease(epsilon0=2, num_users=10).law == LocalProfile(epsilon0=2.0)


def test_a_randomizer_of_the_library_can_be_released():
    randomizer = sdp.randomizers.KRandomizedResponse(domain_size=16, epsilon0=2.0)
    release = ShuffledRelease(profile=randomizer.profile, num_users=1000)
    found = release.epsilon(1e-6)
    assert found == account_epsilon(randomizer.profile, num_users=1000, delta=1e-6)
    again = sdp.randomizers.KRandomizedResponse(domain_size=16, epsilon0=2.0)
    assert release == ShuffledRelease(profile=again.profile, num_users=1000)


def test_drawing_all_is_the_same_as_no_drawing():
    plain = ShuffledRelease(epsilon0=1.0, num_users=1000)
    drawn = ShuffledRelease(epsilon0=1.0, num_users=1000, sampled_from=1000)
    coins = ShuffledRelease(epsilon0=1.0, num_users=1000, participation=1)
    for delta in (1e-3, 1e-9):
        assert drawn.epsilon(delta).upper == pytest.approx(plain.epsilon(delta).upper, rel=1e-9)
        assert coins.epsilon(delta) == plain.epsilon(delta)
        half = participating(LocalProfile(epsilon0=1.0), 0.5)
        seldom = ShuffledRelease(epsilon0=1.0, num_users=1000, participation=0.5)
        exact = account_epsilon(half, num_users=1000, delta=delta)
        assert seldom.epsilon(delta).upper == exact.upper


@pytest.mark.parametrize("make", ["sampled", "coins"])
def test_fewer_users_at_a_time_are_more_private(make):
    def epsilon(part):
        if make == "sampled":
            release = ShuffledRelease(epsilon0=1.0, num_users=1000, sampled_from=1000 * part)
        else:
            release = ShuffledRelease(epsilon0=1.0, num_users=1000, participation=1.0 / part)
        found = release.epsilon(1e-6, with_lower=False).upper
        assert release.delta(found, with_lower=False).upper == pytest.approx(1e-6, rel=1e-3)
        assert found < (release * 2).epsilon(1e-6, with_lower=False).upper
        return found

    found = [epsilon(part) for part in (1, 2, 10, 100)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_a_delta_above_the_chance_of_being_drawn_needs_no_epsilon():
    drawn = ShuffledRelease(epsilon0=1.0, num_users=10, sampled_from=10_000)
    assert drawn.epsilon(0.001).upper == drawn.epsilon(0.5).lower == 0.0
    assert drawn.epsilon(0.0009).upper >= 0.0
    assert drawn.epsilon(0.0).upper == pytest.approx(math.log1p(0.001 * math.expm1(1.0)))
    assert drawn.epsilon(0.0).lower == 0.0
    assert drawn.delta(1.0).upper == drawn.delta(1.0).lower == 0.0
    assert drawn.delta(0.0, with_lower=False).lower is None
    assert drawn.epsilon(1e-6, with_lower=False).lower is None
    with pytest.raises(ParameterError):
        drawn.epsilon(math.nan)


def test_one_drawn_of_ten_is_known_at_each_end():
    # A report of binary randomized response that is the victim's with probability 0.1: then
    # delta(0) = 0.1 (L - 1)/(L + 1), above the delta that is asked for.
    likelihood = math.exp(5.0)
    drawn = ShuffledRelease(profile=profiles.k_rr(5.0, 2), num_users=1, sampled_from=10)
    assert 0.07 < 0.1 * (likelihood - 1.0) / (likelihood + 1.0) <= drawn.delta(0.0).upper
    found = drawn.epsilon(0.07)
    assert drawn.delta(found.lower).lower > 0.07 >= drawn.delta(found.upper).upper * (1 - 1e-9)
    assert 0.0 < found.lower < found.upper


def test_without_a_known_attack_there_is_no_lower_end():
    unary = profiles.symmetric_unary(1.0)
    drawn = ShuffledRelease(profile=unary, num_users=10, sampled_from=100)
    assert drawn.epsilon(1e-6).lower is None
    assert drawn.delta(0.01).lower is None
    assert drawn.attacks() == ()


def test_what_no_theorem_covers_is_refused():
    hazy = ShuffledRelease(profile=LocalProfile(epsilon0=1.0, delta0=1e-3), num_users=10)
    assert hazy.highest == math.inf
    assert hazy.attacks() == ()
    with pytest.raises(OutOfRegimeError):
        hazy.epsilon(1e-9)


@given(users=st.integers(1, 10**15), percent=st.integers(1, 100))
def test_honest_users_are_rounded_down_from_the_decimal(users, percent):
    if users * percent >= 100:
        assert honest_users(users, percent / 100) == users * percent // 100
    else:
        with pytest.raises(ParameterError, match="no honest user"):
            honest_users(users, percent / 100)


@pytest.mark.parametrize(("users", "fraction"), [(0, 0.5), (10, 0.0), (10, 1.1), (10, math.nan)])
def test_impossible_shares_are_refused(users, fraction):
    with pytest.raises(ParameterError, match=r"below 1|not in \(0, 1\]|not finite"):
        honest_users(users, fraction)


@pytest.mark.parametrize("chance", [0.0, 1.1])
def test_impossible_chances_are_refused(chance):
    with pytest.raises(ParameterError, match=r"participation = .* is not in \(0, 1\]"):
        ShuffledRelease(num_users=10, epsilon0=1.0, participation=chance)


BARE = LocalProfile(epsilon0=math.inf, family="k-rr", domain_size=2)


def bare(text, **how):
    return ShuffledRelease(profile=BARE, num_users=1, dummies=DummyLaw.from_text(text), **how)


def test_dummies_go_with_a_release_and_say_so():
    release = bare("laplace:2.0:27")
    assert repr(release).endswith("num_users=1, dummies='laplace:2.0:27')")
    bound = release.epsilon(1e-6)
    assert bound.method == "shuffler-dummies"
    assert len(set(bound.assumptions)) == len(bound.assumptions) == 4
    assert "laplace:2.0:27" in bound.assumptions[-1]
    assert release != bare("laplace:2.0:28")


def test_failure_is_the_chance_of_an_infinite_loss_of_bare_values():
    release = bare("laplace:2.0:27")
    for text in ("laplace:2.0:27", "laplace:3.0:9", "gaussian:2.0:5", "gaussian:3.0:9"):
        atom = Fraction(bare(text).dummies.table[0], 2**64)
        exact = 2 * atom - atom * atom
        assert exact <= Fraction(bare(text).failure) <= exact * (1 + Fraction(1, 10**12))
    assert release.highest == pytest.approx(1.0, rel=1e-6)
    assert bare("poisson:40.0").failure == 0.0
    for how in ({"participation": 0.5}, {"sampled_from": 2}):  # dummies are not alone there
        assert bare("laplace:2.0:27", **how).failure == 0.0


@pytest.mark.parametrize("how", [{"participation": 0.5}, {"sampled_from": 2}, {}])
@pytest.mark.parametrize("text", ["laplace:8.0:99", "gaussian:9.0:60", "poisson:80.0"])
def test_dummies_compose_and_rare_users_are_hidden_better(text, how):
    if text.startswith("poisson") and "participation" in how:
        with pytest.raises(ParameterError, match="users who stay away send none"):
            bare(text, **how).epsilon(1e-5)
        return
    release, always = bare(text, **how), bare(text)
    one, three = release.epsilon(1e-5), (release * 3).epsilon(1e-5)
    assert one.upper <= three.upper <= 3.2 * one.upper
    assert one.upper <= always.epsilon(1e-5).upper
    if not how:
        assert three.lower == pytest.approx(three.upper, rel=3e-3)


def test_users_drawn_in_secret_are_honest_even_among_dummies():
    # If the other three say whether they were drawn, a quarter of (D1') is left at every epsilon.
    how = {"epsilon0": 1.0, "num_users": 1, "dummies": DummyLaw.from_text("laplace:0.7:2")}
    drawn, alone = ShuffledRelease(sampled_from=4, **how), ShuffledRelease(**how)
    assert drawn.delta(0.4).upper < 0.25 * alone.delta(0.4).upper
    assert drawn.curve(0.01).forward(0.2).upper == pytest.approx(drawn.delta(0.2).upper, rel=1e-9)
    for bound in (drawn.epsilon(0.01), drawn.delta(0.1)):
        assert any("counted users are honest" in each for each in bound.assumptions)
        assert not any("may do what they like" in each for each in bound.assumptions)


def test_dummies_beside_local_noise_and_a_crowd():
    noisy = profiles.k_rr(2.0, 4)
    law = DummyLaw.from_text("laplace:4.0:50")
    alone = ShuffledRelease(profile=noisy, num_users=1, dummies=law)
    many = ShuffledRelease(profile=noisy, num_users=10_000, dummies=law)
    plain = ShuffledRelease(profile=noisy, num_users=10_000)
    for times in (1, 4):
        least = min((alone * times).epsilon(1e-6).upper, (plain * times).epsilon(1e-6).upper)
        assert (many * times).epsilon(1e-6).upper <= least * (1.0 + 1e-3)
    assert many.epsilon(1e-6).upper < (many * 2).epsilon(1e-6).upper
    curves = [each.curve(1e-6).forward for each in (many, alone, plain)]
    for epsilon in (0.01, 1.9):  # the smaller one
        both, *each = [curve(epsilon).upper for curve in curves]
        assert both == min(each) > 0.0


def test_composed_bare_values_have_no_epsilon_without_dummies():
    release = ShuffledRelease(profile=BARE, num_users=100)
    with pytest.raises(OutOfRegimeError, match="dummies"):
        (release * 2).epsilon(1e-6)
    with pytest.raises(OutOfRegimeError, match="dummies hide nothing"):
        (bare("laplace:2.0:5") * 2).epsilon(1e-6)


def convolved(law, times):
    """The loss of a Gaussian table, its lattice of 1/s^2, and their sum by direct convolution."""
    table = np.array([each / 2**64 for each in law.table])
    step, half = 1.0 / law.scale**2, law.half_width
    # ln z(a-1)/z(a) is (a - t - 1/2)/s^2 at every a where neither is 0, up to roundings
    index = np.arange(1, 2 * half + 1) - half
    one = np.convolve(table[:-1], table[1:][::-1])  # of ln r(Z_1 + 1) and of -ln r(Z_2)
    first = int(index[0]) - int(index[-1])
    total, infinite = np.ones(1), 1.0
    for _ in range(times):
        total, infinite = np.convolve(total, one), infinite * one.sum()
    losses = (np.arange(total.size) + times * first) * step
    return total, losses, 1.0 - infinite


@pytest.mark.parametrize(
    ("pairs", "variance"), [(1, 35.8), (2, 71.5), (4, 143.0), (8, 286.0), (16, 573.0)]
)
def test_pairs_of_bins_against_direct_convolution(pairs, variance):
    """The variances of a discrete Gaussian law that L pairs need at epsilon = 1, delta = 1e-6."""
    scale = math.sqrt(variance)
    release = bare(f"gaussian:{scale!r}:{math.ceil(7.0 * scale)}")
    masses, losses, infinite = convolved(release.dummies, pairs)
    above = losses > 1.0
    direct = infinite + (masses[above] * -np.expm1(1.0 - losses[above])).sum()
    found = (release * pairs).delta(1.0)
    assert direct == pytest.approx(1e-6, rel=0.05)
    assert found.lower <= direct * (1.0 + 1e-9)
    assert direct * (1.0 - 1e-9) <= found.upper <= 1.02 * direct
    assert (release * pairs).epsilon(1e-6).upper == pytest.approx(1.0, rel=3e-3)


@pytest.mark.parametrize(("pairs", "scale"), [(2, 4.0), (4, 8.0)])
def test_laplace_pairs_add_up(pairs, scale):
    """Theory has 31.8 and 127.8 for the variance of two and four pairs."""
    share = 1e-6 / pairs / 1.2
    width = math.ceil(scale * math.log(math.tanh(0.5 / scale) / (share / 2.0)))
    release = bare(f"laplace:{scale}:{width}")
    found = (release * pairs).epsilon(1e-6)
    assert found.lower == pytest.approx(found.upper, rel=3e-3)
    assert found.upper == pytest.approx(1.0, rel=1e-4)
    assert release.dummies.variance == pytest.approx(2.0 * scale**2, rel=0.01)


def test_different_pairs_compose_as_they_are():
    levels = bare("gaussian:20.0:140") + bare("gaussian:40.0:280") + bare("laplace:30.0:500")
    found = levels.epsilon(1e-6)
    single = [part.epsilon(1e-6).upper for part, _ in levels.parts]
    assert max(single) < found.upper < sum(single)
    assert found.lower == pytest.approx(found.upper, rel=2e-3)


def drawn_among_liars(values, *, num_users, drawn, share):
    """Law of the honest reports' ones, and of how many are honest, if a few of all are drawn."""
    law = Counter()
    for chosen in itertools.combinations(range(num_users), drawn):
        honest = [values[user] for user in chosen if user < len(values)]
        for reports in itertools.product((0, 1), repeat=len(honest)):
            pairs = zip(honest, reports, strict=True)
            mass = math.prod(share if value == report else 1 - share for value, report in pairs)
            law[len(honest), sum(reports)] += mass / math.comb(num_users, drawn)
    return law


@pytest.mark.parametrize(("num_users", "honest", "drawn"), [(6, 5, 2), (6, 4, 3), (5, 4, 3)])
def test_honest_users_drawn_among_others_are_fewer_of_fewer(num_users, honest, drawn):
    profile = profiles.k_rr(math.log(3.0), 2)
    fewest = drawn - (num_users - honest)
    how = {"num_users": num_users, "drawn": drawn, "share": 0.75}
    truth = max(
        sum(max(law[each] - other[each], 0.0) for each in law)
        for rest in itertools.combinations_with_replacement((0, 1), honest - 1)
        for law, other in [[drawn_among_liars((value, *rest), **how) for value in (0, 1)]]
    )
    bounds = [
        ShuffledRelease(profile=profile, num_users=fewest, sampled_from=population).delta(0.0).upper
        for population in (fewest * honest // drawn, honest, num_users)
    ]
    assert bounds[2] < bounds[1] < truth <= bounds[0]
