import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import profiles
from shuffledp.composition.composition import Composable, Composition
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

A = ShuffledRelease(epsilon0=1.0, num_users=1000)
B = ShuffledRelease(profile=profiles.k_rr(2.0, 4), num_users=500)
C = StatedRelease(epsilon=0.1, delta=1e-9)

COUNTS = st.integers(0, 5)


@given(first=st.tuples(COUNTS, COUNTS, COUNTS), second=st.tuples(COUNTS, COUNTS, COUNTS))
def test_addition_of_counts(first, second):
    def composed(counts, order=(0, 1, 2)):
        return sum((counts[i] * (A, B, C)[i] for i in order), Composition())

    both = composed([i + j for i, j in zip(first, second, strict=True)])
    assert composed(first) + composed(second) == both
    assert composed(second) + composed(first) == both
    assert composed(second, (2, 0, 1)) == composed(second)
    assert hash(composed(second, (2, 0, 1))) == hash(composed(second))
    assert both.rounds == sum(first) + sum(second)
    assert composed(first) * 3 == composed([3 * i for i in first])


def test_copies_merge():
    assert A * 3 + A == A * 4 == 4 * A == sum([A, A, A, A])
    assert A * 3 != A * 4
    assert A * 1 != A  # a composition of one release is no release
    assert (A + A).parts == ((A, 2),)
    assert Composition() == A * 0
    assert ShuffledRelease(profile=LocalProfile(epsilon0=1.0), num_users=1000) == A
    assert A.parts == ((A, 1),)


def test_nothing_costs_nothing():
    for nothing in (A * 0, Composition(), sum([], Composition())):
        assert nothing.epsilon(delta=0.0).upper == nothing.epsilon(delta=1e-6).lower == 0.0
        assert nothing.delta(epsilon=0.0).upper == 0.0


def test_representations_are_short():
    assert repr(A * 365) == "Composition(365 x ShuffledRelease(epsilon0=1, num_users=1000))"
    many = sum(StatedRelease(epsilon=0.1 * i) for i in range(1, 9))
    assert repr(many).endswith(" + 5 more)")
    assert repr(B) == "ShuffledRelease(epsilon0=2, family='k-rr', num_users=500)"
    drawn = ShuffledRelease(epsilon0=1.0, num_users=10, sampled_from=100)
    assert repr(drawn) == "ShuffledRelease(epsilon0=1, num_users=10, sampled_from=100)"
    coins = ShuffledRelease(epsilon0=1.0, num_users=10, participation=0.25)
    assert repr(coins) == "ShuffledRelease(epsilon0=1, num_users=10, participation=0.25)"


def test_different_channels_are_different_releases():
    def with_channel(ratio):
        rows = [[ratio / (1 + ratio), 1 / (1 + ratio)], [1 / (1 + ratio), ratio / (1 + ratio)]]
        return ShuffledRelease(
            profile=LocalProfile(epsilon0=2.0, family=RandomizerFamily.OTHER, channel=lambda: rows),
            num_users=10,
        )

    weak, strong = with_channel(Fraction(2)), with_channel(Fraction(7))
    assert weak.profile == strong.profile  # profiles do not compare channels
    assert weak != strong
    assert len((weak + strong).parts) == 2


@pytest.mark.parametrize("count", [-1, 1.5, math.nan, "3", None, A])
def test_impossible_counts_are_refused(count):
    with pytest.raises((ParameterError, TypeError)):
        A * count


@pytest.mark.parametrize("other", [1, 0.5, "a", None, [A]])
def test_only_releases_can_be_added(other):
    for release in (A, A + B):
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            release + other
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            other + release


def test_only_releases_have_parts():
    with pytest.raises(ParameterError, match="is no release"):
        Composition([(A * 2, 1)])
    with pytest.raises(TypeError, match="is no release"):
        Composable().parts  # noqa: B018


def test_too_many_rounds_are_refused():
    assert (C * 2**20).rounds == 2**20
    with pytest.raises(ParameterError, match="1,048,577 rounds are above 1,048,576"):
        C * 2**20 + C


def test_dp_accounting_reads_the_loss():
    pytest.importorskip("dp_accounting")
    year = ShuffledRelease(epsilon0=1.0, num_users=100_000) * 365
    year = year + StatedRelease(epsilon=0.01, delta=1e-8)
    found = year.to_dp_accounting(smallest_delta=1e-9).get_epsilon_for_delta(1e-6)
    assert found == pytest.approx(year.epsilon(1e-6, with_lower=False).upper, rel=1e-3)


def test_the_loss_of_nothing_and_of_nothing_but_failures():
    assert Composition().privacy_loss().delta(0.0) == 0.0
    failing = StatedRelease(epsilon=0.0, delta=1e-3) * 2
    exact = 2e-3 - 1e-6
    assert exact <= failing.privacy_loss().delta(0.0) <= exact * (1 + 1e-12)
    assert str(failing.epsilon(0.1).upper) == "0.0"
    hazy = ShuffledRelease(profile=LocalProfile(epsilon0=1.0, delta0=1e-4), num_users=10)
    alone = (hazy * 2).privacy_loss().infinite_mass
    assert alone > 1e-4
    both = (hazy * 2 + failing).privacy_loss().infinite_mass
    assert both == pytest.approx(exact + (1.0 - exact) * alone, rel=1e-9)


def test_the_loss_of_releases_that_do_not_fail():
    loss = (StatedRelease(epsilon=0.5) * 2).privacy_loss()
    exact = math.tanh(0.25)  # p^2 - q^2, both losses 0.5 or both -0.5
    assert exact <= loss.delta(0.0) <= exact * (1 + 1e-6)


def test_reports_that_hide_nothing_are_added_up():
    bound = (StatedRelease(epsilon=250.0) * 2).epsilon(0.9)
    assert bound.lower <= 500.0 + math.log(0.1) <= bound.upper <= 500.0


def test_dummies_of_one_number_hide_nothing():
    alone = DummyLaw(shape="laplace", scale=0.001, half_width=1)
    bare = ShuffledRelease(profile=LocalProfile(epsilon0=math.inf), num_users=1, dummies=alone)
    assert (bare * 2).delta(1.0).upper == 1.0
    assert (bare + StatedRelease(epsilon=1.0)).privacy_loss().infinite_mass == 1.0
    with pytest.raises(OutOfRegimeError, match="delta"):
        (bare * 2).epsilon(0.5)
