"""The fullest bin: exact, enclosed in two ways, summed over loads, and for many balls."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import erfc

from oracles.fullest_bin import (
    by_convolution,
    by_listing,
    exact_maximum_load,
    maximum_load,
    num_ways,
)
from oracles.partitions import (
    maximum_load_by_partitions,
    num_partitions,
)
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.counts.count_kernels import confined, overflow_weight, poisson_masses
from shuffledp.leakage.counts.fullest_bin import (
    Bins,
    Window,
    alike_bins,
    by_contour,
    by_recurrence,
    contour_angles,
    contour_period,
    excess_over,
    largest_mass,
    lattice_rule,
    log_sum_mass,
    maximum_load_excess,
    stride_rule,
    uneven_maximum,
)

BOTH = (by_recurrence, by_contour)


def even(balls, bins):
    return alike_bins(balls, bins, Fraction(1, bins))


def excess_by(tails, balls, bins):
    return excess_over(Fraction(balls, bins), even(balls, bins), tails)


exactly = functools.cache(exact_maximum_load)


def contains(enclosure, exact, roundings=0):
    """Whether a fraction is enclosed, if need be up to some roundings of the ends."""
    slack = Fraction(roundings * 2**-53) * abs(exact)
    return Fraction(enclosure.lower) - slack <= exact <= Fraction(enclosure.upper) + slack


def middle(enclosure):
    return (Fraction(enclosure.lower) + Fraction(enclosure.upper)) / 2


def width(enclosure):
    return (enclosure.upper - enclosure.lower) / enclosure.upper


def overlap(one, other):
    return one.lower <= other.upper and other.lower <= one.upper


SMALL = [(balls, bins) for balls in (1, 2, 3, 8, 21, 133, 500) for bins in (2, 3, 5, 13, 40, 501)]


@pytest.mark.parametrize(("balls", "bins"), SMALL)
def test_against_fractions(balls, bins):
    exact = exactly(balls, bins)
    excess = exact - Fraction(balls, bins)
    enclosures = [maximum_load_excess(balls, bins)]
    if balls > 1:  # two bins by the characteristic function too
        enclosures.append(excess_by(by_contour, balls, bins))
    for found in enclosures:
        assert contains(found, excess)
        assert abs(middle(found) - excess) <= Fraction(1e-12) * excess
        assert width(found) <= 1e-10
    load = maximum_load(balls, bins)
    assert contains(load, exact)
    assert abs(middle(load) - exact) <= Fraction(1e-12) * exact


@pytest.mark.parametrize("bins", [10_000, 10**9])
def test_few_balls_in_many_bins(bins):
    # Birthdays: 1 + Pr[two share] + Pr[three share] + ...
    exact = exact_maximum_load(5, bins)
    assert contains(maximum_load(5, bins), exact)
    assert width(maximum_load(5, bins)) <= 1e-12


@pytest.mark.parametrize(
    ("balls", "bins"),
    [(30_000, 3), (40_000, 4), (10**6, 5), (30_000, 6), (40_000, 8), (10**6, 16), (60_000, 12)],
)
def test_methods_agree(balls, bins):
    one, other = (excess_by(tails, balls, bins) for tails in BOTH)
    assert overlap(one, other)
    assert abs(middle(one) - middle(other)) <= Fraction(2e-12) * middle(one)
    assert max(width(one), width(other)) <= 1e-9


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 5), (10**6, 16), (60_000, 12)])
@pytest.mark.parametrize(("one", "other"), [BOTH, BOTH[::-1]])
def test_one_ball_more_is_told_apart(balls, bins, one, other):
    # A negative control of the comparisons above: enclosures this narrow do see an error.
    assert not overlap(excess_by(one, balls, bins), excess_by(other, balls + 1, bins))


@pytest.mark.parametrize("balls", [1, 2, 3, 10**3, 10**5 + 1, 10**9 - 1, 10**9])
def test_two_bins(balls):
    with mpmath.workdps(40):
        log_choose = (
            mpmath.loggamma(balls)
            - mpmath.loggamma((balls - 1) // 2 + 1)
            - mpmath.loggamma(balls - (balls - 1) // 2)
        )
        exact = balls * mpmath.exp(log_choose - balls * mpmath.log(2))
    enclosures = [maximum_load_excess(balls, 2)]
    if balls > 10**4:
        enclosures.append(excess_by(by_recurrence, balls, 2))
    for found in enclosures:
        assert found.lower <= exact <= found.upper
        assert width(found) <= 1e-11


@pytest.mark.parametrize(
    ("balls", "bins", "digits"), [(100, 3, 0.3826), (1000, 3, 0.3488), (200, 2, 0.5282)]
)
def test_published_values(balls, bins, digits):
    assert round(maximum_load(balls, bins).upper / balls, 4) == digits


@pytest.mark.parametrize(
    ("balls", "bins"), [(1000, 5), (10**6, 5), (10**9, 5), (10**5, 1000), (10**9, 10**4)]
)
def test_precision(balls, bins):
    assert width(maximum_load(balls, bins)) <= 3e-12
    assert width(maximum_load_excess(balls, bins)) <= 1e-10


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 30), (10**9, 10**4), (3 * 10**4, 4)])
def test_few_loads_stand_for_all(balls, bins):
    # The truncation of the sum over loads is an estimate: here all loads are added up.
    window = even(balls, bins).window()
    loads = np.arange(window.first, window.last + 1)
    assert len(loads) > 700
    tails, errors = by_contour(even(balls, bins), loads)
    total = (window.first * bins - balls) / bins + math.fsum(tails)
    found = maximum_load_excess(balls, bins)
    assert found.lower - errors.sum() <= total <= found.upper + errors.sum()
    assert width(found) <= 1e-10


@given(st.integers(1, 10**9), st.integers(2, 10**4))
def test_between_what_is_sure(balls, bins):
    found = maximum_load(balls, bins)
    assert max(balls / bins, 1.0) * (1.0 - 1e-14) <= found.lower
    assert found.upper <= balls
    assert width(found) <= 1e-10


@given(st.integers(1, 10**6), st.integers(2, 300))
def test_monotone(balls, bins):
    # One ball more raises the excess and lowers the share; one bin more lowers the load.
    here, more = maximum_load_excess(balls, bins), maximum_load_excess(balls + 1, bins)
    assert here.lower <= more.upper
    load = maximum_load(balls, bins)
    share, next_share = load.upper / balls, maximum_load(balls + 1, bins).lower / (balls + 1)
    assert next_share <= share * (1.0 + 1e-15)
    assert maximum_load(balls, bins + 1).lower <= load.upper


@pytest.mark.parametrize(("balls", "bins"), [(7, 3), (60, 4), (12, 30)])
def test_tails_add_up(balls, bins):
    least = -(-balls // bins)
    tails, errors = by_contour(even(balls, bins), np.arange(least, balls))
    exact = exact_maximum_load(balls, bins) - least
    total = sum(map(Fraction, tails.tolist()), Fraction(0))
    slack = sum(map(Fraction, errors.tolist()), Fraction(0))
    assert total - slack <= exact <= total + slack
    assert slack <= 1e-11


@pytest.mark.parametrize("bad", [0, -3, 2.0, math.nan, math.inf, "7", None, 10**15 + 1])
def test_bad_sizes(bad):
    for call in (maximum_load, maximum_load_excess):
        with pytest.raises(ParameterError, match="num_balls"):
            call(bad, 3)
        with pytest.raises(ParameterError, match="num_bins"):
            call(3, bad)


def test_one_bin_is_refused():
    with pytest.raises(ParameterError, match="num_bins = 1 is below 2"):
        maximum_load(5, 1)


@pytest.mark.parametrize(
    ("balls", "bins"), [(1, 1), (4, 1), (1, 5), (3, 2), (7, 2), (5, 3), (6, 4), (3, 9), (4, 7)]
)
def test_against_all_throws(balls, bins):
    throws = itertools.product(range(bins), repeat=balls)
    total = sum(max(throw.count(b) for b in range(bins)) for throw in throws)
    exact = Fraction(total, bins**balls)
    assert exact_maximum_load(balls, bins) == exact
    assert maximum_load_by_partitions(balls, bins) == exact


@pytest.mark.parametrize(("balls", "bins"), [(20, 4), (30, 3), (25, 25), (12, 1000), (60, 2)])
def test_against_partitions(balls, bins):
    assert exact_maximum_load(balls, bins) == maximum_load_by_partitions(balls, bins)


@pytest.mark.parametrize("balls", [1, 2, 77, 500, 1000])
def test_two_bins_of_exact(balls):
    middle = math.comb(balls - 1, (balls - 1) // 2)
    exact = balls * (Fraction(1, 2) + Fraction(middle, 2**balls))
    assert exact_maximum_load(balls, 2) == exact


def test_birthdays():
    distinct = Fraction(math.perm(365, 3), 365**3)
    together = Fraction(1, 365**2)
    assert exact_maximum_load(3, 365) == distinct + 2 * (1 - distinct - together) + 3 * together


@pytest.mark.parametrize(
    ("balls", "parts", "number"), [(6, 3, 7), (4, 4, 5), (5, 1, 1), (100, 100, 10**7), (7, 9, 15)]
)
def test_number_of_partitions(balls, parts, number):
    found = num_partitions(balls, parts)
    assert found > number if number == 10**7 else found == number


@pytest.mark.parametrize("parts", [2, 3])
def test_refuses_what_is_too_many(parts):
    with pytest.raises(OutOfRegimeError, match=r"num_balls = \d+ has at least \d{8}"):
        maximum_load_by_partitions(10**8, parts)
    with pytest.raises(OutOfRegimeError, match="partitions into num_bins = 80 parts"):
        maximum_load_by_partitions(120, 80)


@given(st.integers(1, 10**9), st.integers(2, 10**4))
def test_window(balls, bins):
    least, first, last = even(balls, bins).window()
    assert least == even(balls, bins).least == -(-balls // bins) <= first <= last <= balls


@pytest.mark.parametrize(("balls", "bins"), [(5, 3), (40, 2), (1000, 10), (1000, 900), (10**5, 7)])
def test_few_loads_are_beyond_the_window(balls, bins):
    last = even(balls, bins).window().last
    rest = range(last + 1, min(balls, last + 200))
    union = bins * math.fsum(stats.binom.sf(load, balls, 1.0 / bins) for load in rest)
    assert union <= balls * math.exp(-48.0)


@pytest.mark.parametrize(("balls", "bins"), [(10**5, 1000), (10**6, 10**4), (10**4, 300)])
def test_below_is_negligible(balls, bins):
    window = even(balls, bins).window()
    assert window.first > window.least
    one = stats.binom.logcdf(window.first - 1, balls, 1.0 / bins)
    assert bins * one <= math.log(1e-18)


@pytest.mark.parametrize(
    ("means", "counts", "rest"),
    [([300.0, 1700.0], [1, 1], 0.0), ([90.0, 100.0], [5, 3], 1250.0), ([10.0], [40], 1600.0)],
)
def test_the_maximum_is_hardly_below_the_least_load(means, counts, rest):
    bins = Bins(2000, np.array(means), np.array(counts), rest)
    least = bins.window().least
    chances = stats.binom.logcdf(least - 1, 2000, np.array(means) / 2000)
    assert bins.least < least < means[-1]
    assert bins.counts @ chances <= -80.0
    # A negative control: at larger loads it is not.
    chances = stats.binom.logcdf(least + means[-1] // 20 + 3, 2000, np.array(means) / 2000)
    assert bins.counts @ chances > -80.0


def test_all_balls_may_meet():
    assert even(1, 5).window() == (1, 1, 1)
    assert even(2, 5).window() == (1, 1, 2)


@pytest.mark.parametrize("size", [1, 2, 100, 256, 257, 600, 1000, 2303, 2304, 5000, 10**5])
@pytest.mark.parametrize("panels", [1, 2, 5])
def test_polynomials_are_summed_exactly(size, panels):
    rule = lattice_rule(size, panels)
    assert rule.nodes[0] >= 0
    assert rule.nodes[-1] < size
    assert np.all(np.diff(rule.nodes) > 0)
    for degree in (0, 1, 2, 7):
        exact = math.fsum((np.arange(size) / size) ** degree)
        total, truncation = rule.total((rule.nodes / size) ** degree)
        assert abs(total - exact) <= truncation + 1e-11 * exact
        assert truncation <= 1e-9 * size
    assert 0.99 * size <= float(np.abs(rule.weights).sum()) <= 2.0 * size


@pytest.mark.parametrize("size", [400, 1500, 40_000, 300_000])
def test_smooth_steps(size):
    rule = lattice_rule(size, 5)

    def fall(at):
        return 0.5 * erfc((at / size - 0.4) * 8.0)

    total, truncation = rule.total(fall(rule.nodes))
    assert abs(total - math.fsum(fall(np.arange(size)))) <= truncation + 1e-13 * size
    assert truncation <= 1e-9 * size


def test_truncation_is_noticed():
    # A step much sharper than the nodes are close is summed wrongly, and said to be.
    rule = lattice_rule(300_000, 1)

    def fall(at):
        return 0.5 * erfc((at / 300_000 - 0.4) * 400.0)

    total, truncation = rule.total(fall(rule.nodes))
    error = abs(total - math.fsum(fall(np.arange(300_000))))
    assert 1.0 < error <= truncation


@pytest.mark.parametrize(("bins", "panels"), [(2, 2), (3, 2), (4, 3), (6, 3), (7, 5)])
def test_more_bins_have_more_panels(bins, panels):
    alike = Bins(10**5, np.array([10_000.0]), np.array([bins]))
    few, many = (Window(0, 0, last).rule(alike) for last in (900, 1300))
    assert few.nodes.size == lattice_rule(900, panels).nodes.size
    # So have more loads.
    assert many.nodes.size == lattice_rule(1300, 5).nodes.size


@pytest.mark.parametrize("bins", [2, 3, 8, 60, 10_000])
@pytest.mark.parametrize("balls", [2, 5, 33, 200])
def test_against_whole_numbers(balls, bins):
    loads = np.arange(-(-balls // bins), balls)
    tails, errors = by_contour(even(balls, bins), loads)
    for load, tail, error in zip(loads.tolist(), tails, errors, strict=True):
        exact = 1 - Fraction(num_ways(balls, bins, load), bins**balls)
        assert abs(Fraction(float(tail)) - exact) <= Fraction(float(error))
    assert errors.max() <= 1e-10


@pytest.mark.parametrize("mean", [0.01, 0.9, 17.3, 1234.5, 1e8 + 1 / 3])
def test_masses(mean):
    spread = math.sqrt(mean)
    first = max(int(mean - 8.0 * spread), 0)
    masses = poisson_masses(mean, first, 9)
    with mpmath.workdps(40):
        for at, mass in enumerate(masses, start=first):
            exact = mpmath.exp(at * mpmath.log(mean) - mean - mpmath.loggamma(at + 1))
            # Further out the exponent is large, but the mass below 1e-11.
            assert abs(float(mass) - exact) <= 1e-14 * exact + 1e-24


@pytest.mark.parametrize("balls", [1, 2, 19, 20, 21, 22, 1000, 10**6, 10**12])
def test_chance_of_the_sum(balls):
    with mpmath.workdps(50):
        exact = balls * mpmath.log(balls) - balls - mpmath.loggamma(balls + 1)
    assert abs(log_sum_mass(balls) - float(exact)) <= 2e-14 * max(1.0, abs(float(exact)))


@pytest.mark.parametrize("balls", [1, 3, 50, 10**4, 10**7])
def test_aliases_are_negligible(balls):
    period = contour_period(balls)
    assert period % 2 == 1
    aliases = stats.poisson.sf(balls + period - 1, balls) + stats.poisson.cdf(balls - period, balls)
    assert aliases <= 1e-19 * math.exp(log_sum_mass(balls)) * (1.0 + 1e-6)


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 16), (10**6, 1000), (10**4, 5)])
def test_nodes_left_out_are_negligible(balls, bins):
    angles, period = contour_angles(even(balls, bins), balls // bins), contour_period(balls)
    mean = balls / bins
    loads = np.arange(0, int(mean + 15 * math.sqrt(mean) + 60))
    masses = stats.poisson.pmf(loads, mean)
    limit = 2e-19 * math.exp(log_sum_mass(balls))
    for node in range(angles.size, (period + 1) // 2, 97):
        parts = np.abs(np.cumsum(masses * np.exp(2j * math.pi / period * node * loads)))
        assert parts.max() ** bins <= limit


def test_few_nodes_for_many_bins():
    assert contour_angles(even(10**9, 10**4), 0).size < 400
    assert contour_angles(even(10**9, 16), 0).size < 400
    assert contour_angles(even(100, 2), 0).size == (contour_period(100) + 1) // 2


@pytest.mark.parametrize("mean", [0.1, 1.0, 2.5, 30.0, 1e6 + 0.5])
def test_largest_mass(mean):
    assert stats.poisson.pmf(math.floor(mean), mean) <= largest_mass(mean) <= 1.0


def by_steps(load, bins, deficit):
    """Sum equation (1) of the module term by term."""
    level = np.ones(deficit + 1)
    for j in range(2, bins + 1):
        weights = [overflow_weight(float(load), float(j), float(t)) for t in range(deficit + 1)]
        level = np.cumsum(level * weights)
    return level[-1]


@pytest.mark.parametrize("bins", [2, 3, 6, 20])
@pytest.mark.parametrize("balls", [1, 4, 37, 200])
def test_relative_accuracy_against_whole_numbers(balls, bins):
    """The identity, and the weights: the sum by strides stands on them."""
    for load in range(-(-balls // bins), balls, max(balls // 4, 1)):
        exact = Fraction(num_ways(balls, bins, load), bins**balls)
        found = by_steps(load, bins, bins * load - balls)
        assert abs(Fraction(found) - exact) <= Fraction(4e-15 * bins) * exact


@pytest.mark.parametrize("deficit", [0, 1, 5, 900, 4000])
def test_weights_are_binomial(deficit):
    load, bins = 5000, 4
    balls = bins * load - deficit
    with mpmath.workdps(40):
        exact = (
            mpmath.binomial(balls, load)
            * mpmath.mpf(1)
            / bins**load
            * (1 - mpmath.mpf(1) / bins) ** (balls - load)
        )
        found = overflow_weight(load, bins, deficit)
        assert abs(found / exact - 1) <= 1e-14 * max(1.0, -math.log(found) / 40.0)


def test_weights_at_the_edges():
    assert overflow_weight(3.0, 2.0, 3.0) == pytest.approx(1 / 8, rel=1e-15)
    assert overflow_weight(3.0, 2.0, 4.0) == 0.0


@pytest.mark.parametrize("stride", [1.0, 2.0, 7.0, 40.0])
def test_rule_is_exact_for_polynomials(stride):
    rule = stride_rule(stride)
    for degree in range(13):
        grid = (np.arange(-6, 8) / 7.0) ** degree
        exact = sum((r / stride / 7.0) ** degree for r in range(1, int(stride) + 1))
        assert rule @ grid == pytest.approx(exact, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("load", "bins"), [(5200, 3), (5300, 5), (10_300, 2), (5500, 9)])
def test_strides_agree_with_steps(load, bins):
    mean = 5000 if load < 10_000 else 10_000
    for deficit in (bins * (load - mean) - 1, bins * (load - mean) // 3):
        strides = int(deficit // 4) + 1
        by_strides = confined(load, bins, deficit, strides, stride_rule(deficit / strides))
        exact = by_steps(load, bins, deficit)
        assert by_strides == pytest.approx(exact, rel=1e-13 * bins, abs=0.0)


def test_coarse_strides_are_seen():
    # A negative control: strides of a whole standard deviation are not enough.
    by_strides = confined(5300, 5, 1500, 15, stride_rule(100.0))
    assert by_strides != pytest.approx(by_steps(5300, 5, 1500), rel=1e-12)


def test_large_numbers_against_multiprecision():
    balls, load = 10**5, 50_250  # sigma is 223
    with mpmath.workdps(40):
        mass = mpmath.binomial(balls, load) / mpmath.mpf(2) ** balls
        inside = mpmath.mpf(0)
        for at in range(load, balls - load - 1, -1):
            inside += mass
            mass *= mpmath.mpf(at) / (balls - at + 1)
        tails, errors = by_recurrence(even(balls, 2), np.array([load]))
        assert abs(float(tails[0]) - (1 - inside)) <= errors[0]
    assert errors[0] <= 1e-13


def test_a_full_house():
    # n = k m: the multinomial probability that all loads are equal.
    tails, errors = by_recurrence(even(20_000, 2), np.array([10_000]))
    with mpmath.workdps(30):
        exact = mpmath.binomial(20_000, 10_000) / mpmath.mpf(2) ** 20_000
    assert abs(1.0 - float(tails[0]) - exact) <= errors[0] + 1e-16


LAWS = [
    (1, [0.2, 0.3, 0.5]),
    (5, [0.2, 0.3, 0.5]),
    (12, [0.1, 0.2, 0.3, 0.4]),
    (12, [0.25] * 4),
    (9, [0.3, 0.3, 0.4]),
    (20, [0.5, 0.5]),
    (10, [0.999, 0.001]),
    (3, [1e-150, 1.0]),
]


@pytest.mark.parametrize(("balls", "law"), LAWS)
def test_uneven_bins_against_all_histograms(balls, law):
    found, exact = uneven_maximum(balls, np.array(law)), by_listing(balls, law)
    assert found.lower <= exact * (1.0 + 1e-14)
    assert exact * (1.0 - 1e-14) <= found.upper
    assert found.upper - found.lower <= 1e-10 * found.upper


@given(st.integers(1, 9), st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=4))
def test_any_law(balls, masses):
    law = np.array(masses) / math.fsum(masses)
    found, exact = uneven_maximum(balls, law), by_listing(balls, law)
    assert found.lower <= exact * (1.0 + 1e-14)
    assert exact * (1.0 - 1e-14) <= found.upper
    assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize(
    ("balls", "law"),
    [
        (400, [0.1, 0.2, 0.3, 0.4]),
        (400, [0.27, 0.25, 0.25, 0.23]),
        (1000, [0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.1]),
        pytest.param(1500, [*([0.02] * 40), *([0.01] * 20)], marks=pytest.mark.slow),
    ],
)
def test_uneven_bins_by_convolution(balls, law):
    found, other = uneven_maximum(balls, np.array(law)), by_convolution(balls, law)
    assert found.lower - 1e-9 <= other <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-8 * found.upper


@pytest.mark.parametrize(("balls", "bins"), [(300, 3), (2000, 50), (10**5, 5), (10**5, 50)])
def test_almost_uniform(balls, bins):
    # No bin is exactly like another, so the general method runs; the answer hardly moves.
    law = (1.0 + 1e-14 * np.arange(bins)) / bins
    found, uniform = uneven_maximum(balls, law), maximum_load(balls, bins)
    assert found.lower <= uniform.upper * (1.0 + 1e-12)
    assert uniform.lower <= found.upper * (1.0 + 1e-12)
    assert found.upper - found.lower <= 1e-9 * found.upper
    # A negative control: one ball in ten thousand more is told apart.
    more = uneven_maximum(balls + -(-balls // 10_000), law)
    assert more.lower > found.upper


def test_uneven_nodes_left_out_are_negligible():
    bins = Bins(10**5, 1e5 * np.array([0.3, 0.29, 0.0041]), np.array([1, 1, 100]))
    angles, period = contour_angles(bins, 29_000), contour_period(10**5)
    assert angles.size < 500
    limit = 2e-19 * math.exp(log_sum_mass(10**5))
    for load in (29_000, 29_800, 30_200):
        masses = [stats.poisson.pmf(np.arange(load + 1), mean) for mean in bins.means]
        for node in range(angles.size, (period + 1) // 2, 53):
            turns = np.exp(2j * math.pi / period * node * np.arange(load + 1))
            parts = np.abs([(each * turns).sum() for each in masses])
            assert np.prod(parts**bins.counts) <= limit


def test_uneven_bins_that_take_too_long():
    assert uneven_maximum(10**9, np.array([0.2 + 1e-9, 0.2 - 1e-9, 0.2, 0.2, 0.2])) is None
    same = uneven_maximum(10**9, np.full(5, 0.2))
    assert same.upper == pytest.approx(maximum_load(10**9, 5).upper, rel=1e-14)


FALSE_POSITIVE_RATE = 1e-9


def test_uneven_bins_against_simulation():
    law, balls, rounds = np.array([0.22, 0.24, 0.26, 0.28]), 400, 20_000
    loads = Entropy.from_seed(7).generator().multinomial(balls, law, size=rounds)
    mean = float(loads.max(axis=1).mean())
    # Hoeffding, one ball at a time: moving a ball changes the mean by at most 1 / rounds.
    radius = math.sqrt(0.5 * balls / rounds * math.log(2.0 / FALSE_POSITIVE_RATE))
    assert abs(mean - uneven_maximum(balls, law).lower) <= radius
    assert abs(mean - uneven_maximum(balls, np.array([0.25] * 4)).lower) > radius
