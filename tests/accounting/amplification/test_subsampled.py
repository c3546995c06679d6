import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import enumeration, profiles
from shuffledp.accounting.amplification.subsampled import (
    amplified_epsilon,
    inner_epsilon,
    sampling_fraction,
    subsampled_curve,
)
from shuffledp.accounting.divergences.hockey_stick_curve import HockeyStickCurve
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure

CHANNELS = {
    "2-rr": (lambda p: enumeration.randomized_response(2, p), lambda e: profiles.k_rr(e, 2)),
    "3-rr": (lambda p: enumeration.randomized_response(3, p), lambda e: profiles.k_rr(e, 3)),
    "any": (
        lambda p: enumeration.randomized_response(2 if p <= 2.0 else 3, p),
        profiles.any_randomizer,
    ),
    "unary": (
        lambda p: enumeration.symmetric_unary(3, math.sqrt(p)),
        lambda e: profiles.symmetric_unary(e, 3),
    ),
}


def sampled_laws(channel, drawn, population):
    """Yield the exact laws of the histogram for every pair of neighbours."""
    values = range(len(channel))

    def law(dataset):
        total = 0.0
        for chosen in itertools.combinations(range(population), drawn):
            one = np.array([1.0])
            for count, user in enumerate(chosen):
                one = enumeration._add_report(one, channel[dataset[user]], count)
            total = total + one
        return total / math.comb(population, drawn)

    for others in itertools.combinations_with_replacement(values, population - 1):
        laws = [law((x, *others)) for x in values]
        yield from itertools.permutations(laws, 2)


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize(("drawn", "population"), [(1, 3), (2, 3), (2, 4), (3, 4)])
@pytest.mark.parametrize("epsilon0", [0.3, 1.5])
def test_between_explicit_data_and_the_bound_for_all_data(name, drawn, population, epsilon0):
    make_channel, make_profile = CHANNELS[name]
    pairs = list(sampled_laws(make_channel(math.exp(epsilon0)), drawn, population))
    release = ShuffledRelease(
        profile=make_profile(epsilon0), num_users=drawn, sampled_from=population
    )
    curve = release.curve(1e-3).curve
    for epsilon in (0.0, 0.01, 0.1, 0.3, 0.6, 1.0):
        exact = max(enumeration.hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs)
        assert exact <= curve.forward(epsilon).upper + 1e-15
        assert curve.backward(epsilon).upper == curve.forward(epsilon).upper
        for attack in release.attacks():
            assert attack.forward(epsilon).lower <= exact + 1e-15
            assert attack.backward(epsilon).lower <= exact + 1e-15
        bound = release.delta(epsilon)
        assert bound.lower - 1e-15 <= exact <= bound.upper + 1e-15


def test_explicit_data_have_exactly_the_divergence_that_is_claimed():
    channel = enumeration.randomized_response(3, 4.0)
    release = ShuffledRelease(profile=profiles.k_rr(math.log(4.0), 3), num_users=2, sampled_from=4)
    (attack,) = release.attacks()

    def law(victim):
        total = 0.0
        for chosen in itertools.combinations((victim, 2, 2, 2), 2):
            one = np.array([1.0])
            for count, value in enumerate(chosen):
                one = enumeration._add_report(one, channel[value], count)
            total = total + one
        return total / 6.0

    for epsilon in (0.0, 0.1, 0.2, 0.4):
        exact = enumeration.hockey_stick(law(0), law(1), math.exp(epsilon))
        assert attack.forward(epsilon).lower == pytest.approx(exact, rel=1e-4, abs=1e-12)


@given(epsilon=st.floats(1e-12, 3000.0), fraction=st.floats(1e-15, 1.0))
def test_both_maps_err_on_the_safe_side_by_little(epsilon, fraction):
    with mp.workdps(1500):
        exact = mp.log(1 + mpf(fraction) * mp.expm1(mpf(epsilon)))
        found = amplified_epsilon(epsilon, fraction)
        assert exact <= found <= exact * (1 + mpf(1e-13)) or found == epsilon
        exact = mp.log(1 + mp.expm1(mpf(epsilon)) / mpf(fraction))
        found = inner_epsilon(epsilon, fraction)
        assert exact * (1 - mpf(1e-13)) <= found <= exact or found == epsilon


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_the_ends_stay(epsilon):
    assert amplified_epsilon(epsilon, 0.3) == epsilon
    assert amplified_epsilon(1.25, 1.0) == inner_epsilon(1.25, 1.0) == 1.25
    assert inner_epsilon(0.0, 0.3) == 0.0


def test_a_tiny_fraction_does_not_overflow():
    assert inner_epsilon(500.0, 1e-200) == pytest.approx(500.0 + 200.0 * math.log(10.0))
    assert amplified_epsilon(1000.0, 1e-15) == pytest.approx(1000.0 - 15.0 * math.log(10.0))


@given(drawn=st.integers(1, 10**15), more=st.integers(0, 10**15), further=st.integers(1, 10**12))
def test_fractions_are_rounded_up_and_fall_with_the_population(drawn, more, further):
    fraction = sampling_fraction(drawn, drawn + more)
    assert fraction >= drawn / (drawn + more)
    assert (fraction == 1.0) or more > 0
    assert sampling_fraction(drawn, drawn + more + further) <= fraction


@pytest.mark.parametrize(("drawn", "population"), [(5, 4), (0, 4), (1, 0), (2.5, 4), (2, math.nan)])
def test_impossible_draws_are_refused(drawn, population):
    with pytest.raises(ParameterError):
        sampling_fraction(drawn, population)


def test_everybody_drawn_is_the_same_curve():
    curve = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 0.1), backward=lambda _: Enclosure(0.0, 0.2), highest=1.0
    )
    assert subsampled_curve(curve, 1.0) is curve
    half = subsampled_curve(curve, 0.5)
    assert half.forward(0.1).upper == pytest.approx(0.05)
    assert half.backward(0.1).upper == pytest.approx(0.1)
    assert half.highest == amplified_epsilon(1.0, 0.5)


@pytest.mark.parametrize("inner", [0.0, 1e-300, 5e-324])
def test_only_nothing_stays_nothing(inner):
    curve = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, inner),
        backward=lambda _: Enclosure(0.0, inner),
        highest=math.inf,
    )
    outer = subsampled_curve(curve, 1e-9).forward(0.1)
    assert outer.lower == 0.0
    assert outer.upper == (1e-300 if inner else 0.0)
