"""Dummies alone: (D1) against its references, and what local noise makes of it."""

import math
from dataclasses import replace
from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import stats

from oracles import profiles
from shuffledp.amplification.dummies import (
    PairOfBins,
    curve_epsilon,
    dummy_curve,
    hidden_epsilon,
    hidden_share,
    pair_of_bins,
    poisson_table,
)
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile, RandomizerFamily

BARE = LocalProfile(epsilon0=math.inf, family="k-rr", domain_size=16)
LAW = DummyLaw.from_text("laplace:2.025:27")


@pytest.mark.parametrize(
    ("text", "epsilon", "delta"),
    [
        ("laplace:20.25:219", 0.1, 9.9238624547e-7),
        ("laplace:4.05:51", 0.5, 8.345532896e-7),
        ("laplace:2.025:27", 1.0, 7.839348804e-7),
        ("poisson:43", 1.0, 9.19752737002e-7),
        ("poisson:137", 0.5, 9.38952336142e-7),
        ("poisson:20", 1.0, 3.19986799872e-4),
    ],
)
def test_references(text, epsilon, delta):
    found = account_delta(BARE, num_users=1, epsilon=epsilon, dummies=DummyLaw.from_text(text))
    assert found.lower <= found.upper <= found.lower * (1.0 + 1e-10)
    assert found.upper == pytest.approx(delta, rel=3e-10)


def test_the_mean_of_all_users_keeps_its_digits_in_any_decimal_context():
    with localcontext(prec=2, rounding=ROUND_UP):
        assert poisson_table(0.04312345, 1000) == poisson_table(43.12345, 1)


@pytest.mark.parametrize("mean", [0.01, 1.0, 43.0, 5_000.0])
def test_a_poisson_table_leaves_out_no_more_than_is_charged(mean):
    table = poisson_table(mean, 1)
    start = next(i for i, each in enumerate(table) if each)
    with mp.workdps(60):
        above = mp.gammainc(len(table), 0, mean, regularized=True)
        below = mp.gammainc(start, mean, regularized=True) if start else mpf(0)
        # Numerators over 2^128 are rounded down, the rarest of them to 0.
        assert above + below <= mpf(1e-38) + mpf(len(table)) / 2**128


def test_epsilon_inverts_delta():
    delta = account_delta(BARE, num_users=7, epsilon=0.9, dummies=LAW).upper
    found = account_epsilon(BARE, num_users=7, delta=delta, dummies=LAW)
    assert found.lower == pytest.approx(0.9, rel=1e-6)
    assert found.upper == pytest.approx(0.9, rel=1e-6)
    at = [
        account_delta(BARE, num_users=7, epsilon=each, dummies=LAW)
        for each in (found.lower, found.upper)
    ]
    assert at[0].lower > delta >= at[1].upper


def test_bare_values_have_no_epsilon_without_dummies():
    with pytest.raises(OutOfRegimeError, match="dummies"):
        account_epsilon(BARE, num_users=10**6, delta=1e-6)
    assert account_delta(BARE, num_users=10**6, epsilon=3.0).upper == 1.0
    with pytest.raises(OutOfRegimeError, match="larger delta"):
        account_epsilon(BARE, num_users=1, delta=0.0, dummies=LAW)


@pytest.mark.parametrize("family", [RandomizerFamily.ANY, RandomizerFamily.K_RANDOMIZED_RESPONSE])
def test_local_noise_comes_on_top_and_dummies_never_make_it_worse(family):
    profile = LocalProfile(epsilon0=2.0, family=family, domain_size=16)
    bare = account_delta(BARE, num_users=1, epsilon=0.5, dummies=LAW).upper
    found = account_delta(profile, num_users=1, epsilon=0.5, dummies=LAW)
    assert found.upper < bare
    assert account_delta(profile, num_users=1, epsilon=2.0, dummies=LAW).upper == 0.0
    crowd = account_epsilon(profile, num_users=10**6, delta=1e-8)
    least = account_epsilon(profile, num_users=10**6, delta=1e-8, dummies=LAW)
    assert least.upper <= crowd.upper


def test_the_pair_is_the_same_in_both_orders_of_bins():
    found = pair_of_bins(DummyLaw.from_text("gaussian:3.0:17"), 1).enclose(0.0)
    assert 0.0 < found.lower <= found.upper < 1.0


def exact(table, epsilon):
    """D in fractions, by all pairs of outcomes, up to e to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        e = Fraction(Decimal(epsilon).exp())
    own = [Fraction(0), *map(Fraction, table), Fraction(0)]
    before, after = own[:-1], own[1:]  # z(a - 1), z(a)
    gains = (
        before[a] * after[b] - e * after[a] * before[b]
        for a in range(len(after))
        for b in range(len(after))
    )
    return sum((gain for gain in gains if gain > 0), Fraction(0)) / sum(own) ** 2


@pytest.mark.parametrize(
    "text", ["laplace:2.0:9", "laplace:0.5:20", "gaussian:3.0:12", "gaussian:0.4:9"]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, math.nextafter(1.0, 2.0), 2.0, 4.0, 30.0])
def test_both_ends_against_fractions(text, epsilon):
    """Also where ratios tie: at 2/s, and in rows of a table that are rounded."""
    law = DummyLaw.from_text(text)
    wanted, found = exact(law.table, epsilon), pair_of_bins(law, 1).enclose(epsilon)
    assert Fraction(found.lower) <= wanted <= Fraction(found.upper)
    assert found.upper <= found.lower * (1.0 + 1e-12) + 1e-14 or wanted < 1e-30


def test_a_poisson_law_against_its_series():
    for mean, epsilon in ((0.7, 0.5), (12.0, 1.2)):
        pmf = stats.poisson(mean).pmf
        limit = math.exp(epsilon)
        terms = []
        for b in range(120):
            tail = stats.poisson(mean).sf
            first = math.floor(limit * b) + 1
            terms.append(pmf(b) * (tail(first - 2) - limit * b / mean * tail(first - 1)))
        law = DummyLaw(shape="poisson", scale=mean)
        assert pair_of_bins(law, 1).enclose(epsilon).upper == pytest.approx(sum(terms), rel=1e-9)
        half = DummyLaw(shape="poisson", scale=mean / 2)
        assert pair_of_bins(half, 2).enclose(epsilon) == pair_of_bins(law, 1).enclose(epsilon)
    assert account_delta(BARE, num_users=1, epsilon=600.0, dummies=law).upper < 1e-4


def test_a_table_that_is_cut_errs_by_what_it_lacks():
    whole = poisson_table(5.0, 1)
    cut = [mass if 1 <= i <= 12 else 0 for i, mass in enumerate(whole)]
    missing = 1.0 - sum(cut) / sum(whole)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        found = PairOfBins(cut, missing=missing * (1.0 + 1e-9)).enclose(epsilon)
        assert found.lower <= PairOfBins(whole).enclose(epsilon).lower <= found.upper


def test_far_out_a_poisson_law_proves_no_lower_end():
    pair = pair_of_bins(DummyLaw.from_text("poisson:43"), 1)
    assert 0.0 == pair.enclose(41.0).lower < pair.enclose(41.0).upper == pair.enclose(40.0).upper


def test_a_mirrored_table_has_the_same_divergence():
    table = [3, 1, 7, 20, 4, 9]
    for epsilon in (0.0, 0.4, 2.0):
        one, other = (PairOfBins(each).enclose(epsilon) for each in (table, table[::-1]))
        assert one.upper == pytest.approx(other.upper, rel=1e-12)
        assert PairOfBins([0, *table, 0]).enclose(epsilon) == one


def test_a_table_of_one_number_hides_nothing():
    found = PairOfBins([0, 5, 0]).enclose(0.3)
    assert (found.lower, found.upper) == (pytest.approx(1.0), 1.0)


@given(table=st.lists(st.integers(1, 2**64), min_size=3, max_size=9))
def test_no_finite_loss_is_above_the_highest(table):
    ratios = [Fraction(one, other) for one, other in pairwise(table)]
    with mp.workdps(60):
        spread = max(ratios) / min(ratios)
        exact = mp.log(mpf(spread.numerator) / spread.denominator)
        assert exact <= PairOfBins(table).highest <= exact * (1 + mpf(1e-14)) + mpf(1e-14)


@given(epsilon0=st.floats(1e-3, 200.0), part=st.floats(1e-9, 0.999), size=st.integers(2, 10**6))
def test_what_local_noise_leaves_errs_outward(epsilon0, part, size):
    epsilon = part * epsilon0
    found = hidden_epsilon(epsilon0, epsilon)
    with mp.workdps(120):
        likelihood, e = mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon))
        exact = mp.log((e * likelihood - 1) / (likelihood - e))
        assert exact - mpf(1e-11) <= found <= exact
        for profile, apart in (
            (profiles.any_randomizer(epsilon0), likelihood + 1),
            (profiles.k_rr(epsilon0, size), likelihood + size - 1),
            (replace(profiles.k_rr(epsilon0, size), delta0=1e-9), likelihood + 1),
        ):
            share = (likelihood - e) / apart
            assert share <= hidden_share(profile, epsilon) <= share * (1 + mpf(1e-10))


@pytest.mark.parametrize(
    "wrong", [{"epsilon": math.nan}, {"epsilon": -1.0}, {"epsilon": math.inf}, {"num_users": 0}]
)
def test_arguments_are_checked(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        account_delta(BARE, **({"epsilon": 1.0, "num_users": 1} | wrong), dummies=LAW)
    many = DummyLaw.from_text("poisson:5.0")
    with pytest.raises(ParameterError, match="dummies"):
        account_delta(BARE, epsilon=1.0, num_users=10**7, dummies=many)


def test_what_is_not_known_proves_no_lower_end():
    # Reports of some other randomizer may agree; and beyond 40 only D(40) is known.
    other = LocalProfile(epsilon0=math.inf, family="other")
    assert account_delta(other, num_users=1, epsilon=0.5, dummies=LAW).lower is None
    assert account_delta(BARE, num_users=1, epsilon=0.5, dummies=LAW).lower > 0.0
    rare = dummy_curve(DummyLaw.from_text("poisson:5.0"), BARE, 1)
    assert curve_epsilon(rare, 1e-30) == Enclosure(0.0, math.inf)


def test_a_named_method_is_one_without_dummies():
    profile = LocalProfile(epsilon0=2.0)
    named = account_delta(profile, num_users=5, epsilon=1.0, method="local", dummies=LAW)
    plain = account_delta(profile, num_users=5, epsilon=1.0, method="local", with_lower=False)
    assert named == plain


def test_reports_that_may_reveal_all_are_left_to_the_dummies():
    law, chance = DummyLaw.from_text("laplace:2.0:27"), 1e-3
    pure, hazy = (LocalProfile(epsilon0=1.0, delta0=each) for each in (0.0, chance))
    for epsilon in (0.0, 0.5, 1.5):
        kept = (1.0 - chance) * dummy_curve(law, pure, 1).forward(epsilon).upper
        revealed = chance * pair_of_bins(law, 1).enclose(epsilon).upper
        found = dummy_curve(law, hazy, 1).forward(epsilon).upper
        assert found / (kept + revealed) == pytest.approx(1.0, rel=1e-9)
    # Beyond epsilon0, too, where only those reports are left.
    asked = {"num_users": 1, "dummies": DummyLaw.from_text("laplace:1.0:14")}
    delta = account_delta(hazy, epsilon=1.5, **asked).upper
    assert account_epsilon(hazy, delta=delta, **asked).upper == pytest.approx(1.5, rel=1e-6)
