"""The hybrid mechanism; blanket and attack of it and the piecewise one against exact channels."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from oracles.convex_order import as_tuples, largest_excess, to_14_digits
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers import Duchi, Hybrid, Piecewise
from shuffledp.randomizers.duchi import bit_attack
from shuffledp.randomizers.hybrid import DUCHI_ALONE, separation
from shuffledp.randomizers.thresholds import log_ratio_upper

TINY = list(itertools.product((1, 2), (0.3, 0.62, 1.0, 2.0, 3.0)))


def tiny(resolution, epsilon0):
    return Hybrid(low=0, high=1, epsilon0=epsilon0, resolution=resolution)


def test_the_limit_is_the_published_one():
    def cube_root(number):
        return math.copysign(abs(number) ** (1 / 3), number)

    low, high = (cube_root(6353 + sign * 405 * math.sqrt(241)) for sign in (-1, 1))
    assert pytest.approx(math.log((-5 + 2 * low + 2 * high) / 27)) == DUCHI_ALONE


def test_the_limit_is_where_the_worst_cases_cross():
    def worst(epsilon0):
        return Hybrid(low=-1, high=1, epsilon0=epsilon0).worst_report_variance()

    assert worst(DUCHI_ALONE * 1.0001) == pytest.approx(worst(DUCHI_ALONE), rel=1e-3)


@pytest.mark.parametrize(("resolution", "epsilon0"), TINY)
class TestExactLaw:
    def test_rows_sum_to_one(self, resolution, epsilon0):
        assert all(sum(row) == 1 for row in tiny(resolution, epsilon0).channel())

    def test_local_loss_is_epsilon0_exactly_rounded_up(self, resolution, epsilon0):
        randomizer = tiny(resolution, epsilon0)
        columns = [column for column in zip(*randomizer.channel(), strict=True) if max(column) > 0]
        assert len(columns) == (2 if epsilon0 < DUCHI_ALONE else len(randomizer.channel()[0]))
        loss = max(max(column) / min(column) for column in columns)
        assert randomizer.epsilon0 == log_ratio_upper(loss)

    def test_scores_are_unbiased_and_have_the_stated_variance(self, resolution, epsilon0):
        randomizer = tiny(resolution, epsilon0)
        duchi, piecewise, coin = randomizer.law
        num_steps, num_outputs = piecewise.law.num_steps, piecewise.law.num_outputs
        bit = 1 / (1 - Fraction(2 * duchi.threshold, 2**64))
        slope = piecewise.law.gain * num_steps
        scores = [-bit, bit, *((2 * y - num_outputs + 1) / slope for y in range(num_outputs))]
        assert randomizer.score_scale == (0.5, 0.5)
        for point, row in enumerate(randomizer.channel()):
            mean, square = (
                sum(p * score**power for p, score in zip(row, scores, strict=True))
                for power in (1, 2)
            )
            value = Fraction(point, num_steps)
            assert (1 + mean) / 2 == value
            assert randomizer.report_variance(float(value)) == pytest.approx(
                float((square - mean**2) / 4), rel=1e-9
            )
        codes = np.arange(2 + num_outputs if coin else 2, dtype=np.uint16)
        found = randomizer.scores(Reports(data=codes, fingerprint=randomizer.fingerprint))
        assert found[:, 0].tolist() == pytest.approx([float(s) for s in scores[: codes.size]])


def test_a_large_channel_is_refused():
    with pytest.raises(ParameterError, match="small domains"):
        Hybrid(low=0, high=1, epsilon0=1.0).channel()


@pytest.mark.parametrize("epsilon0", [1e-9, 0.3, 0.6])
def test_below_the_limit_it_is_duchi_alone(epsilon0):
    randomizer = Hybrid(low=-2, high=2, epsilon0=epsilon0)
    duchi = Duchi(low=-2, high=2, epsilon0=epsilon0)
    assert randomizer.epsilon0 == duchi.epsilon0
    assert randomizer.profile == duchi.profile
    assert randomizer.profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE
    for value in (-2.0, 0.1, 2.0):
        assert randomizer.report_variance(value) == duchi.report_variance(value)
    assert randomizer.worst_report_variance() == duchi.worst_report_variance()
    assert randomizer.mean_report_variance() == duchi.mean_report_variance()
    reports = randomizer.randomize(np.linspace(-2, 2, 1000), Entropy.from_seed(1))
    assert set(reports.data.tolist()) == {0, 1}
    with pytest.raises(DomainError, match=r"report 0 is 2, not in \[0, 1\]"):
        randomizer.scores(
            Reports(data=np.array([2], dtype=np.uint16), fingerprint=randomizer.fingerprint)
        )


@pytest.mark.parametrize("epsilon0", [0.62, 1.0, 2.0, 5.0])
def test_the_variance_is_the_same_everywhere_and_below_both(epsilon0):
    randomizer = Hybrid(low=-1, high=1, epsilon0=epsilon0)
    # What rounding adds differs from value to value.
    variances = [randomizer.report_variance(x) for x in np.linspace(-1, 1, 41)]
    assert max(variances) == pytest.approx(min(variances), rel=2e-3)
    others = [kind(low=-1, high=1, epsilon0=epsilon0) for kind in (Duchi, Piecewise)]
    worst = randomizer.worst_report_variance()
    assert worst < min(other.worst_report_variance() for other in others)
    assert max(variances) <= worst < 1.002 * max(variances)
    share = math.exp(-epsilon0 / 2)
    mixed = share * others[0].report_variance(0) + (1 - share) * others[1].report_variance(0)
    assert randomizer.report_variance(0) == pytest.approx(mixed)


def test_each_report_is_one_of_its_mechanism():
    randomizer = Hybrid(low=0, high=1, epsilon0=2.0)
    num_users = 1000
    values = np.arange(num_users) / num_users
    codes = randomizer.randomize(values, Entropy.from_seed(3)).data
    entropy = Entropy.from_seed(3)
    coins = entropy.words(num_users)
    is_piecewise = np.array([word < randomizer.law.coin for word in coins.tolist()])
    bits = randomizer.law.duchi.randomize(values[~is_piecewise], entropy).data
    outputs = randomizer.law.piecewise.randomize(values[is_piecewise], entropy).data
    assert codes[~is_piecewise].tolist() == bits.tolist()
    assert codes[is_piecewise].tolist() == (outputs + np.uint16(2)).tolist()


def test_the_coin_is_as_published():
    for epsilon0 in (0.7, 1.0, 4.0, 44.0):
        share = Hybrid(low=0, high=1, epsilon0=epsilon0).law.coin / 2**64
        assert share == pytest.approx(1 - math.exp(-epsilon0 / 2), rel=1e-9)


def test_profile_above_the_limit():
    profile = Hybrid(low=0, high=1, epsilon0=1.0).profile
    assert profile.family is RandomizerFamily.OTHER
    assert profile.domain_size is None
    assert profile.channel is None


EPSILON0S = (0.0, 1e-9, 0.3, 0.7, 1.0, 2.0, 4.0, 60.0)


def affordable(make):
    """Randomizers of small grids."""
    for epsilon0, resolution in itertools.product(EPSILON0S, (1, 2, 4)):
        randomizer = make(low=0, high=1, epsilon0=epsilon0, resolution=resolution)
        law = randomizer.law if make is Piecewise else randomizer.law.piecewise.law
        if law.num_steps < 64:
            yield randomizer


def collected(atoms):
    masses = defaultdict(float)
    for mass, r0, r1 in atoms:
        if mass > 0:
            masses[to_14_digits(r0), to_14_digits(r1)] += float(mass)
    return masses


def exact_atoms(channel, law):
    """Atoms for the ends of the range, relative to ``law``."""
    columns = zip(law, channel[0], channel[-1], strict=True)
    return [(mass, r0 / mass, r1 / mass) for mass, r0, r1 in columns]


def test_the_piecewise_attack_is_that_of_a_point_of_the_grid():
    tried = 0
    for randomizer in affordable(Piecewise):
        channel, law = randomizer.channel(), randomizer.law
        point = law.best_point
        found = collected(as_tuples(randomizer.profile.attack))
        assert found == pytest.approx(collected(exact_atoms(channel, channel[point])), rel=1e-14)
        found = collected(law.attack(0))
        assert found == pytest.approx(collected(exact_atoms(channel, channel[0])), rel=1e-14)
        separations = [
            float(sum(mass * (r0 - r1) ** 2 for mass, r0, r1 in exact_atoms(channel, row)))
            for row in channel
        ]
        assert separations[point] == max(separations)
        assert separation(randomizer.profile.attack) == pytest.approx(max(separations), rel=1e-12)
        tried += 1
    assert tried >= 12


def test_the_hybrid_blanket_is_the_infimum_and_the_ends_are_worst():
    tried = 0
    for randomizer in affordable(Hybrid):
        channel = randomizer.channel()
        if randomizer.law.coin == 0 or len(channel) > 8:
            continue
        infimum = [min(column) for column in zip(*channel, strict=True)]
        worst = exact_atoms(channel, infimum)
        found = collected(as_tuples(randomizer.profile.blanket))
        assert found == pytest.approx(collected(worst), rel=1e-14)
        for first, second in itertools.permutations(range(len(channel)), 2):
            columns = zip(infimum, channel[first], channel[second], strict=True)
            pair = [(mass, r0 / mass, r1 / mass) for mass, r0, r1 in columns]
            for e in (Fraction(1), Fraction(3, 2)):
                assert largest_excess(pair, worst, e) == 0
        tried += 1
    assert tried >= 3


def test_the_hybrid_attack_is_that_of_a_point_of_the_grid():
    points = set()
    for randomizer in affordable(Hybrid):
        if randomizer.law.coin == 0:
            assert randomizer.profile.attack == ()
            continue
        channel, law = randomizer.channel(), randomizer.law.piecewise.law
        found = collected(as_tuples(randomizer.profile.attack))
        options = {0, law.best_point}
        expected = {point: collected(exact_atoms(channel, channel[point])) for point in options}
        chosen = max(
            options,
            key=lambda i: sum(m * (r0 - r1) ** 2 for (r0, r1), m in expected[i].items()),
        )
        assert found == pytest.approx(expected[chosen], rel=1e-13)
        points.add(min(chosen, 1))
    assert points == {0, 1}  # both do occur


@pytest.mark.parametrize("threshold", [1, 2**60, 2**63])
@pytest.mark.parametrize("position", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_bits_have_means_of_one(threshold, position):
    atoms = bit_attack(threshold, position)
    for means in zip(*[(mass, mass * r0, mass * r1) for mass, r0, r1 in atoms], strict=True):
        assert sum(means) == 1
