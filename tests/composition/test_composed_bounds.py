import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import special

import shuffledp as sdp
from oracles import enumeration, profiles
from shuffledp.accounting.ledger import Ledger
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.composition import compose_losses as composition
from shuffledp.composition import composition as composed
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.errors import (
    LowerEndWarning,
    OutOfRegimeError,
    ParameterError,
    PrecisionError,
)
from shuffledp.core.profile import LocalProfile

LARGE = ShuffledRelease(epsilon0=1.0, num_users=100_000)


def shuffled_pairs(channel, num_users):
    return [(p, q) for p, q, _, _ in enumeration.neighbouring_laws(channel, num_users)]


def stated_pairs(epsilon, delta):
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    p = np.array([delta, (1 - delta) * keep, (1 - delta) * (1 - keep), 0.0])
    return [(p, p[::-1])]


def composed_delta(rounds, epsilon):
    """Largest exact divergence over all choices of a pair in each round, by enumeration."""
    factor, worst = math.exp(epsilon), 0.0
    for chosen in itertools.product(*rounds):
        p = q = np.array([1.0])
        for one, other in chosen:
            p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
        worst = max(worst, float(np.maximum(p - factor * q, 0.0).sum()))
    return worst


def two(epsilon0, num_users):
    channel = enumeration.randomized_response(2, math.exp(epsilon0))
    release = ShuffledRelease(profile=profiles.k_rr(epsilon0, 2), num_users=num_users)
    return release, shuffled_pairs(channel, num_users)


def three(epsilon0, num_users):
    channel = enumeration.randomized_response(3, math.exp(epsilon0))
    release = ShuffledRelease(profile=profiles.k_rr(epsilon0, 3), num_users=num_users)
    return release, shuffled_pairs(channel, num_users)


def stated(epsilon, delta):
    return StatedRelease(epsilon=epsilon, delta=delta), stated_pairs(epsilon, delta)


SMALL = {
    "two alike": [two(1.0, 2)] * 2,
    "three alike": [two(0.5, 2)] * 3,
    "a mix": [two(1.0, 3), two(2.0, 2)],
    "ternary": [three(1.5, 2), two(0.7, 2)],
    "stated": [stated(0.7, 0.01), two(1.0, 3)],
    "two stated": [stated(0.7, 0.01), stated(0.7, 0.0), stated(0.7, 0.01)],
    "stated unlike": [stated(0.7, 0.01), stated(0.3, 0.02)],
}


@pytest.mark.parametrize("name", SMALL)
def test_sandwich_by_enumeration(name):
    year = sum(release for release, _ in SMALL[name])
    rounds = [pairs for _, pairs in SMALL[name]]
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
        exact = composed_delta(rounds, epsilon)
        found = year.delta(epsilon)
        assert found.lower <= exact + 1e-15
        assert exact <= found.upper + 1e-15
        # The bound allows data that change from epsilon to epsilon, which costs some per cent.
        assert found.upper == pytest.approx(exact, rel=0.2, abs=1e-3)
        if exact > 0.03:  # the other way round
            bound = year.epsilon(exact)
            assert bound.lower <= epsilon + 1e-9
            assert epsilon <= bound.upper + 1e-9


def test_any_randomizer_dominates_its_members():
    for maker, size in ((two, 2), (three, 2)):
        _, pairs = maker(1.0, size)
        year = ShuffledRelease(epsilon0=1.0, num_users=size) * 2
        for epsilon in (0.0, 0.4, 1.2):
            assert composed_delta([pairs, pairs], epsilon) <= year.delta(epsilon).upper


def stated_epsilon(times, epsilon, failure, delta):
    """Epsilon of the optimal composition of stated guarantees, with forty digits."""
    with mp.workdps(40):
        keep = mp.exp(mpf(epsilon)) / (1 + mp.exp(mpf(epsilon)))

        def delta_at(total):
            rest = mp.fsum(
                mp.binomial(times, k)
                * max(
                    keep**k * (1 - keep) ** (times - k)
                    - mp.exp(total) * keep ** (times - k) * (1 - keep) ** k,
                    0,
                )
                for k in range(times + 1)
            )
            return 1 - (1 - mpf(failure)) ** times * (1 - rest)

        low, high = mpf(0), mpf(times * epsilon)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
        return float(high)


@pytest.mark.parametrize(
    ("times", "epsilon", "failure", "delta"),
    [(2, 1.0, 0.0, 1e-2), (30, 0.1, 1e-9, 1e-6), (100, 0.1, 0.0, 1e-12), (7, 2.0, 1e-4, 1e-3)],
)
def test_stated_guarantees_compose_optimally(times, epsilon, failure, delta):
    exact = stated_epsilon(times, epsilon, failure, delta)
    found = (StatedRelease(epsilon=epsilon, delta=failure) * times).epsilon(delta)
    assert found.lower <= exact * (1 + 1e-12)
    assert exact <= found.upper * (1 + 1e-12)
    assert found.upper == pytest.approx(exact, rel=1e-4)
    assert found.lower == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("rounds", [100, 10_000])
def test_many_rounds_are_nearly_gaussian(rounds):
    # The clone law has variance 2 (p - 1)^2 / (p + 1) / n. Independent of all that is tested.
    ratio = math.e
    mu = math.sqrt(rounds * 2.0 * (ratio - 1.0) ** 2 / (ratio + 1.0) / 100_000)

    def delta_at(epsilon):
        return special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(
            -mu / 2 - epsilon / mu
        )

    found = (LARGE * rounds).epsilon(1e-6).upper
    assert delta_at(found) == pytest.approx(1e-6, rel=0.05)


@pytest.mark.parametrize(
    "release",
    [
        LARGE,
        ShuffledRelease(profile=profiles.k_rr(2.0, 16), num_users=1000),
        ShuffledRelease(profile=profiles.k_rr(1.0, 2), num_users=10),
        ShuffledRelease(epsilon0=0.0, num_users=10),
        ShuffledRelease(epsilon0=50.0, num_users=1),
        ShuffledRelease(epsilon0=1e4, num_users=10**15),
    ],
)
def test_one_release_is_what_the_accountant_says(release):
    arguments = {"num_users": release.num_users}
    for delta in (0.0, 1e-300, 1e-6, 0.5):
        assert release.epsilon(delta) == account_epsilon(release.profile, delta=delta, **arguments)
        once = release * 1
        assert once.epsilon(delta) == release.epsilon(delta)
    for epsilon in (0.0, 0.01, 2.0):
        bound = account_delta(release.profile, epsilon=epsilon, **arguments)
        assert release.delta(epsilon) == bound
        assert (release * 1).delta(epsilon, with_lower=False).upper == bound.upper


def test_delta_zero_adds_up_local_losses():
    year = LARGE * 3 + ShuffledRelease(profile=profiles.k_rr(0.5, 4), num_users=10)
    found = year.epsilon(0.0)
    assert found.upper == pytest.approx(3.5, rel=1e-14)
    assert found.upper >= 3.5
    assert found.lower == pytest.approx(3.5, rel=1e-12)
    assert found.method == "pure composition"
    assert year.epsilon(0.0, with_lower=False).lower is None
    for times in range(2, 50):
        found = (StatedRelease(epsilon=0.1) * times).epsilon(0.0)
        assert Fraction(found.lower) <= times * Fraction(0.1) <= Fraction(found.upper)


def test_delta_is_zero_from_the_sum_of_local_losses_on_only():
    year = ShuffledRelease(epsilon0=1.0, num_users=300) * 3
    assert year.delta(3.0 * (1 + 1e-12)).upper == 0.0
    assert 0.0 < year.delta(2.9, with_lower=False).upper < 1e-30
    failing = year + StatedRelease(epsilon=0.5, delta=1e-9)
    found = failing.delta(100.0)
    assert found.upper == pytest.approx(1e-9, rel=1e-12)
    assert found.lower == pytest.approx(1e-9, rel=1e-12)


def test_failures_need_delta():
    year = StatedRelease(epsilon=0.1, delta=1e-8) * 100
    for delta in (0.0, 1e-9, 0.99e-6):
        with pytest.raises(OutOfRegimeError, match="the chance that a stated guarantee fails"):
            year.epsilon(delta)
    assert year.epsilon(1.0001e-6).upper <= 10.0 * (1 + 1e-12)
    with pytest.raises(OutOfRegimeError, match="below the stated delta"):
        StatedRelease(epsilon=0.1, delta=1e-8).epsilon(0.99e-8)


def test_a_stated_release_alone():
    alone = StatedRelease(epsilon=1.0, delta=1e-6)
    assert alone.epsilon(1e-6).upper == 1.0
    assert alone.epsilon(1e-6).lower == pytest.approx(1.0)
    assert alone.epsilon(0.3).upper < 0.5
    assert alone.delta(1.0).upper == 1e-6
    assert alone.delta(2.0, with_lower=False).lower is None
    assert alone.delta(0.0).upper == pytest.approx(1e-6 + (1 - 1e-6) * math.tanh(0.5), rel=1e-12)


def stated_delta(release, epsilon):
    """Delta of a stated guarantee at another epsilon, in the precision of mpmath."""
    top, failure = mp.exp(mpf(release.stated_epsilon)), mpf(release.stated_delta)
    return failure + (1 - failure) * max(top - mp.exp(mpf(epsilon)), 0) / (1 + top)


def test_both_ends_of_a_stated_release_err_outwards():
    points = sdp.Entropy.from_seed(8).generator().random((1000, 2))
    with mp.workdps(40):
        for part, share in points.tolist():
            stated, failure = 10.0 ** (4.0 * part - 3.0), 10.0 ** (-12.0 * share - 0.3)
            release = StatedRelease(epsilon=stated, delta=failure)
            delta = failure + (1.0 - failure) * part * math.tanh(stated / 2)
            found = release.epsilon(delta)
            assert stated_delta(release, found.upper) <= delta <= stated_delta(release, found.lower)
            found = release.delta(share * stated)
            assert found.lower <= stated_delta(release, share * stated) <= found.upper
            for upper in (True, False):
                loss = release.exact_loss(upper=upper)
                growth = mp.exp(mpf(loss.interval))
                exact = (1 / (1 + growth), growth / (1 + growth))
                masses = loss.masses[[0, 2]].tolist()
                outwards = [
                    (each > mass) == upper for each, mass in zip(masses, exact, strict=True)
                ]
                assert (loss.interval > stated) == upper
                assert all(outwards)


@pytest.mark.parametrize("epsilon0", [201.0, 5000.0])
def test_reports_that_hide_nothing_are_added(epsilon0):
    loud = ShuffledRelease(epsilon0=epsilon0, num_users=10)
    assert (loud * 2).epsilon(1e-6).upper == pytest.approx(2 * epsilon0, rel=1e-8)
    mixed = LARGE * 10 + loud
    quiet = (LARGE * 10).epsilon(1e-6, with_lower=False).upper
    assert mixed.epsilon(1e-6, with_lower=False).upper == pytest.approx(quiet + epsilon0)
    assert mixed.epsilon(1e-6).lower >= 0.0
    assert mixed.delta(1.0).upper == pytest.approx(1.0)
    assert mixed.delta(epsilon0 + quiet).upper == pytest.approx(1e-6, rel=1e-3)


def test_releases_that_ignore_the_data_are_free():
    silent = ShuffledRelease(epsilon0=0.0, num_users=10)
    assert (silent * 1000).epsilon(1e-6).upper == 0.0
    assert (silent * 1000).delta(0.0).upper == 0.0
    alone = LARGE * 2
    assert (silent + alone).epsilon(1e-6).upper == pytest.approx(alone.epsilon(1e-6).upper)


@pytest.mark.parametrize("num_users", [1, 2, 10**15])
@pytest.mark.parametrize(
    ("epsilon0", "delta"),
    [(1e-6, 1e-300), (1e-6, 0.9), (1.0, 1e-100), (1.0, 1e-12), (50.0, 1e-300), (50.0, 0.9)],
)
def test_extremes_have_an_answer(num_users, epsilon0, delta):
    found = (ShuffledRelease(epsilon0=epsilon0, num_users=num_users) * 3).epsilon(delta)
    assert 0.0 <= found.upper <= 3.0 * epsilon0 * (1 + 1e-12)
    assert found.lower is None or found.lower <= found.upper


@pytest.mark.parametrize("epsilon", [math.nan, -1.0, math.inf])
def test_impossible_questions_are_refused(epsilon):
    with pytest.raises(ParameterError):
        (LARGE * 2).delta(epsilon)
    with pytest.raises(ParameterError):
        (LARGE * 2).epsilon(epsilon)


@settings(max_examples=15)
@given(rounds=st.integers(1, 2000), log_delta=st.floats(-30.0, -2.0))
def test_more_rounds_cost_more_and_never_more_than_separately(rounds, log_delta):
    delta = math.exp(log_delta)
    fewer = (LARGE * rounds).epsilon(delta, with_lower=False).upper
    more = (LARGE * (rounds + rounds // 3 + 1)).epsilon(delta, with_lower=False).upper
    assert fewer <= more * (1 + 1e-4)
    larger = (LARGE * rounds).epsilon(min(2 * delta, 0.9), with_lower=False).upper
    assert larger <= fewer * (1 + 1e-4)
    apart = rounds * LARGE.epsilon(delta / rounds, with_lower=False).upper
    assert fewer <= apart * (1 + 1e-9)


def test_epsilon_and_delta_agree():
    year = LARGE * 100 + ShuffledRelease(profile=profiles.k_rr(2.0, 4), num_users=50_000)
    for delta in (1e-3, 1e-8):
        epsilon = year.epsilon(delta)
        assert year.delta(epsilon.upper).upper == pytest.approx(delta, rel=0.02)
        assert year.delta(epsilon.lower).lower == pytest.approx(delta, rel=0.1)


def test_far_tails_are_resolved():
    found = (LARGE * 365).delta(2.0)
    assert 1e-200 < found.lower < found.upper < 1e-130


def test_where_round_off_dominates_simpler_bounds_remain(monkeypatch):
    def lost(*_arguments, **_options):
        raise PrecisionError("planted")

    year = LARGE * 10 + ShuffledRelease(profile=profiles.k_rr(2.0, 4), num_users=1000) * 2
    composed = year.epsilon(1e-6)
    monkeypatch.setattr(composition, "compose_curves", lost)
    fallen_back = year.epsilon(1e-6)
    assert fallen_back.method == "basic composition"
    assert fallen_back.upper > composed.upper
    assert fallen_back.lower < composed.lower  # what one release proves
    found = year.delta(1.0)
    assert found.method == "basic composition"
    assert 0.0 < found.lower <= found.upper < 1.0
    epsilon = year.epsilon(1e-300)
    assert epsilon.upper <= 14.0 * (1 + 1e-12)


def test_curves_lost_in_round_off_are_the_local_ones(monkeypatch):
    release = ShuffledRelease(epsilon0=1.0, num_users=77)
    named = release.curve(1e-6)
    assert named.forward(0.5).upper < 0.01

    def lost(*_arguments, **_options):
        raise PrecisionError("planted")

    lost_method = type("Lost", (), {"delta": staticmethod(lost), "is_exact": False})
    monkeypatch.setattr(
        "shuffledp.composition.release.METHODS",
        dict.fromkeys(named.method.split(", "), lost_method),
    )
    value = named.forward(0.5).upper
    assert value == pytest.approx((math.e - math.exp(0.5)) / (math.e + 1.0))


def test_two_methods_are_better_than_either():
    # At delta = 1e-12 nothing beats epsilon0 itself in so small a crowd.
    release = ShuffledRelease(epsilon0=1.0, num_users=10)
    assert release.epsilon(1e-12).method == "local"
    year = release * 1000
    found = year.epsilon(1e-9, with_lower=False)
    assert found.method == "composed local, clones"
    local = (StatedRelease(epsilon=1.0) * 1000).epsilon(1e-9, with_lower=False)
    assert found.upper < 0.5 * local.upper


def test_data_above_the_bound_are_reported_as_a_bug(monkeypatch):
    monkeypatch.setattr(composed, "_lower_epsilon", lambda *_: 1.0)
    with pytest.warns(LowerEndWarning, match="please report"):
        assert (LARGE * 2).epsilon(1e-6).lower is None
    monkeypatch.setattr(
        composed, "_lower_epsilon", lambda _parts, _delta, upper: upper * (1 + 1e-9)
    )
    found = (LARGE * 2).epsilon(1e-6)
    assert found.lower == found.upper


def test_assumptions_are_said_once():
    drawn = ShuffledRelease(epsilon0=1.0, num_users=10, sampled_from=100)
    coins = ShuffledRelease(epsilon0=1.0, num_users=10, participation=0.5)
    year = drawn * 2 + coins + StatedRelease(epsilon=0.1)
    sentences = year.epsilon(1e-3, with_lower=False).assumptions
    assert len(sentences) == len(set(sentences))
    for words in ("same user", "drawn uniformly from 100", "probability 0.5", "Stated"):
        assert sum(words in sentence for sentence in sentences) == 1


def test_reports_that_may_reveal_all_compose_from_some_delta_on():
    hazy = ShuffledRelease(profile=LocalProfile(epsilon0=1.0, delta0=1e-9), num_users=200)
    clear = LARGE * 2
    found = (hazy * 2).epsilon(1e-4)
    assert found.method == "composed approximate-local"
    assert hazy.epsilon(1e-4).upper < found.upper < 2.0 * hazy.epsilon(5e-5).upper
    assert 0.0 < found.lower < found.upper
    assert (hazy * 2).delta(found.upper).upper == pytest.approx(1e-4, rel=0.05)
    with pytest.raises(OutOfRegimeError, match="no finite epsilon"):
        (hazy * 2).epsilon(1e-9)
    assert (hazy + clear).epsilon(1e-4, with_lower=False).upper > found.upper / 2.0
    # No Renyi divergence is finite, so the ledger adds epsilons and deltas.
    assert found.upper / 2.0 < Ledger(epsilon=1.0, delta=1e-4).cost(hazy).upper < found.upper
    planned = Ledger(epsilon=1.0, delta=1e-4, adaptive=False)
    assert planned.cost(hazy * 2).upper == found.upper
    with pytest.raises(OutOfRegimeError):
        ShuffledRelease(profile=LocalProfile(epsilon0=1.0, delta0=0.9), num_users=10).curve(0.1)
    assert repr(hazy) == "ShuffledRelease(epsilon0=1, delta0=1e-09, num_users=200)"


def test_an_unknown_attack_leaves_a_release_out():
    unary = ShuffledRelease(profile=profiles.symmetric_unary(1.0), num_users=1000)
    assert unary.attacks() == ()
    known = LARGE * 5
    assert (known + unary).epsilon(1e-6).lower == pytest.approx(known.epsilon(1e-6).lower, rel=1e-3)
    assert (unary * 2).epsilon(1e-6).lower is None


def test_a_delta_below_all_that_is_resolved_composes_nothing(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a lattice was made")

    monkeypatch.setattr(composition, "compose_curves", refused)
    release = ShuffledRelease(profile=profiles.k_rr(0.001, 2), num_users=389_197_756)
    bound = (release * 2).delta(1e-5)
    assert (bound.lower, bound.upper) == (0.0, pytest.approx(2e-300))


@pytest.mark.parametrize("profile", [profiles.k_rr(12.0, 16), LocalProfile(epsilon0=8.0)])
def test_a_delta_next_to_one(profile):
    bound = (ShuffledRelease(profile=profile, num_users=1000) * 1000).delta(20.0)
    assert (bound.lower, bound.upper) == (pytest.approx(1.0, abs=1e-4), 1.0)
    assert bound.lower < 1.0


@pytest.mark.parametrize(
    "release", [StatedRelease(epsilon=50.0), ShuffledRelease(epsilon0=60.0, num_users=2)]
)
@pytest.mark.parametrize("delta", [math.nextafter(1.0, 0.0), 1.0 - 2.0**-50])
def test_epsilon_at_a_delta_that_rounds_to_one(release, delta):
    bound = (release * 2).epsilon(delta)
    assert bound.lower == 0.0 < bound.upper


@pytest.mark.parametrize("epsilon0", [1e-300, 1e-200, 1000.0])
def test_losses_whose_squares_or_exponentials_are_no_doubles(epsilon0):
    stated, shuffled = (
        StatedRelease(epsilon=epsilon0),
        ShuffledRelease(epsilon0=epsilon0, num_users=9),
    )
    for release in (stated, shuffled):
        upper = (release * 3).epsilon(1e-6).upper
        assert upper <= 3 * epsilon0
        assert Ledger(epsilon=2e3, delta=1e-6).spend(release).spent.upper <= epsilon0
