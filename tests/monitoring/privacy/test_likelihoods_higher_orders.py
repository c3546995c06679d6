"""Products of signs in small crowds, listed; and the whole guarantee against exact releases."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from oracles import monitored_release as oracle
from shuffledp.amplification.local import single_report_delta
from shuffledp.core.profile import MonitoringProfile
from shuffledp.monitoring.privacy.central import central_delta_upper
from shuffledp.monitoring.privacy.likelihoods import (
    Crowd,
    has_higher_orders,
    higher_order_shift,
    unavoidable_delta,
)


def profile_of(*correlations, changes, levels=1):
    return MonitoringProfile(
        protocol="stated",
        epsilon0=1.0,
        max_changes=changes,
        num_levels=levels,
        sign_correlations=tuple(Fraction(each) for each in correlations),
        uniform_share=Fraction(1, 2),
        alternating=True,
    )


def products(num_users, changes, order):
    """Values and chances of the elementary symmetric polynomial of means of fair signs."""
    means = [2 * heads / num_users - 1 for heads in range(num_users + 1)]
    chances = [math.comb(num_users, heads) / 2**num_users for heads in range(num_users + 1)]
    law = {}
    for picks in itertools.product(range(num_users + 1), repeat=changes):
        value = sum(
            math.prod(means[i] for i in some) for some in itertools.combinations(picks, order)
        )
        value = round(value, 12)
        law[value] = law.get(value, 0.0) + math.prod(chances[i] for i in picks)
    return np.array(list(law)), np.array(list(law.values()))


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("correlation", ["1/8", "-1/3"])
@pytest.mark.parametrize("tail", [1e-2, 1e-5])
@pytest.mark.parametrize("from_above", [True, False])
def test_what_is_missed_beyond_the_shift(order, correlation, tail, from_above):
    num_users, epsilon = 10, 0.4
    value = float(Fraction(correlation))
    correlations = ["1", "1/4", *["0"] * (order - 2), correlation]
    profile = profile_of(*correlations, changes=3)
    crowd = Crowd(num_users=num_users, share=1.0, num_levels=1)
    shift, rare = higher_order_shift(
        profile, crowd, epsilon=epsilon, tail=tail, from_above=from_above
    )
    values, chances = products(num_users, 3, order)
    growth = math.exp(epsilon)
    sign = 1.0 if from_above else -1.0
    differences = sign * value * np.subtract.outer(values, growth * values)

    def missed(at):
        return float(chances @ np.maximum(differences - at, 0.0) @ chances)

    assert missed(shift) <= tail
    assert rare == tail
    # Both histories together, opposite signs where both change.
    together = sign * value * (1 - growth if order == 2 else 1 + growth) * values
    assert float(chances @ np.maximum(together - shift, 0.0)) <= tail
    # Not for nothing: a fiftieth of the shift would not do.
    assert missed(0.02 * shift) > tail or tail == 1e-2


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("value", [0.125, -0.375])
@pytest.mark.parametrize("levels", [1, 9])
@pytest.mark.parametrize("from_above", [True, False])
def test_shifts_are_what_the_formulas_prove(order, value, levels, from_above):
    growth, tail = 2.0, 1e-4
    correlations = ["1", "1/4", *["0"] * (order - 2), value]
    crowd = Crowd(num_users=90 * levels, share=1.0, num_levels=levels)
    shift, _ = higher_order_shift(
        profile_of(*correlations, changes=3, levels=levels),
        crowd,
        epsilon=math.log(growth),
        tail=tail,
        from_above=from_above,
    )
    in_all, at_level = crowd.quantiles(tail)
    if order == 2:
        tilt = np.linspace(0.005, 0.495, 99) * (1.0 if (value > 0.0) == from_above else -1.0)
        psi = [-0.5 * np.log1p(-2.0 * each) - np.log1p(each) for each in (tilt, -tilt)]
        slope = np.abs(tilt / value) * in_all / (1.0 + growth)
        exponent = levels * (psi[0] + growth * psi[1]) / (1.0 + growth)
        proved = np.exp(exponent - slope * shift - 1.0) / slope
    else:
        power = np.linspace(2.0, 60.0, 1000)
        norm = (1.0 + growth) / in_all * abs(value)
        norm = norm * np.sqrt((power - 1.0) ** 3 * levels / at_level)
        proved = norm / power * (norm / shift * (1.0 - 1.0 / power)) ** (power - 1.0)
    assert np.min(proved) <= tail * 1.001


def test_the_crowd_is_rarely_smaller():
    crowd = Crowd(num_users=4_000, share=0.375, num_levels=20)
    for failure in (1e-2, 1e-3, 1e-9):
        in_all, at_level = crowd.quantiles(failure)
        miss = stats.binom.cdf(in_all - 2, 3_999, 0.375)
        miss += 20 * stats.binom.cdf(at_level - 1, 3_999, 0.375 / 20)
        assert miss <= failure
        assert in_all > 1_200
        assert at_level > 20
    assert Crowd(num_users=1, share=0.5, num_levels=2).quantiles(1e-6) == (1, 0)


def test_signs_without_means_of_products_need_no_shift():
    assert not has_higher_orders(profile_of("1", "1/4", changes=4))
    assert not has_higher_orders(profile_of("1", "1/4", "0", changes=4))
    assert has_higher_orders(profile_of("1", "1/4", "0", "1/9", changes=4))
    crowd = Crowd(num_users=100, share=0.5, num_levels=2)
    plain = profile_of("1", "1/4", changes=4)
    shift, _ = higher_order_shift(plain, crowd, epsilon=0.1, tail=1e-9, from_above=True)
    assert shift == 0.0
    gaps = profile_of("1", "1/4", "0", "0", "1/9", changes=4)
    shift, _ = higher_order_shift(gaps, crowd, epsilon=0.1, tail=1e-9, from_above=True)
    assert 0.0 < shift < math.inf


def test_a_crowd_too_small_for_any_shift():
    profile = profile_of("1", *["1"] * 3_000, changes=3_000)
    crowd = Crowd(num_users=2, share=0.5, num_levels=2)
    shift, _ = higher_order_shift(profile, crowd, epsilon=0.1, tail=1e-9, from_above=True)
    assert math.isinf(shift)


def released_by_idle_users(profile, num_users, epsilon):
    """The largest delta of two periods among idle users, exactly, over all pairs of histories."""
    gap, second = float(profile.correlation(1)), float(profile.correlation(2))
    growth = math.exp(epsilon)
    histories = [(0, 0), (1, 0), (0, 1), (1, -1)]
    worst = dict.fromkeys(itertools.permutations(histories, 2), 0.0)
    for leaves in range(num_users + 1):
        means = [np.zeros(1)] * 2 + [np.zeros(1)]
        chances = [np.ones(1)] * 3
        for place, count in enumerate((leaves, leaves, num_users - leaves)):
            if count:
                heads = np.arange(count + 1)
                means[place] = 2.0 * heads / count - 1.0
                chances[place] = np.array([math.comb(count, i) / 2.0**count for i in heads])
        first, other, root = np.meshgrid(*means, indexing="ij")
        weight = np.einsum("i,j,k->ijk", *chances) * math.comb(num_users, leaves) / 2.0**num_users

        ratios = {}
        for x in histories:
            at_leaves = 1 + gap * (x[0] * first + x[1] * other)
            at_leaves = at_leaves + second * x[0] * x[1] * first * other
            at_root = 1 + gap * (x[0] + x[1]) * root
            ratios[x] = (leaves * at_leaves + (num_users - leaves) * at_root) / num_users
        for x, y in worst:
            worst[x, y] += float(np.sum(weight * np.maximum(ratios[x] - growth * ratios[y], 0.0)))
    return worst


@pytest.mark.parametrize("threshold", [0, 1])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(11, 10)])
def test_pre_drawn_signs_in_a_crowd(threshold, ratio):
    num_users = 64
    density = oracle.threshold_density(2, threshold, ratio)
    profile = oracle.predrawn_profile(density, num_levels=2)
    for part in (0.1, 0.2, 0.4):
        epsilon = part * profile.epsilon0
        exact = released_by_idle_users(profile, num_users, epsilon)
        upper = central_delta_upper(profile, num_users=num_users, epsilon=epsilon)
        lower = unavoidable_delta(profile, num_users=num_users, epsilon=epsilon, level_hidden=True)
        pair = exact[(1, 0), (0, 1)]
        assert 0.99 * pair <= lower <= pair
        assert max(exact.values()) <= upper < 0.5 * single_report_delta(profile.epsilon0, epsilon)


def test_four_periods_of_pre_drawn_signs_among_idle_users():
    """Two changes at leaves of their own: the pair's exact delta, higher order included."""
    density = oracle.threshold_density(2, 0, 3)
    profile = oracle.predrawn_profile(density, num_levels=3)
    for num_users, part in ((10**4, 0.01), (10**6, 0.002)):
        epsilon = part * profile.epsilon0
        arguments = {"num_users": num_users, "epsilon": epsilon}
        lower = unavoidable_delta(profile, **arguments, level_hidden=True)
        without = replace(profile, sign_correlations=profile.sign_correlations[:2])
        linear = unavoidable_delta(without, **arguments, level_hidden=True)
        assert 0.2 * linear < lower < linear
        assert lower < central_delta_upper(profile, **arguments)


def test_below_where_products_matter_nothing_is_claimed_unavoidable():
    density = oracle.threshold_density(4, 1, 3)
    profile = oracle.predrawn_profile(density, num_levels=5)
    assert unavoidable_delta(profile, num_users=8, epsilon=0.5, level_hidden=True) == 0.0
    assert unavoidable_delta(profile, num_users=10**6, epsilon=0.5, level_hidden=True) == 0.0
    assert unavoidable_delta(profile, num_users=10**6, epsilon=0.0, level_hidden=True) > 0.0
