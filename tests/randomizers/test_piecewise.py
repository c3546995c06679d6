import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from laws_of_numbers import channel_of, coarse, report_variance
from oracles.convex_order import to_14_digits
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import Piecewise, number_randomizer
from shuffledp.randomizers.number_randomizer import GridLaw
from shuffledp.randomizers.thresholds import log_ratio_upper

TINY = list(itertools.product((1, 2, 4), (0.0, 1e-9, 0.1, 1.0, math.log(3), 2.0, 4.0)))
EPSILON0 = (0.0, 1e-9, 0.01, 1.0, 4.0, 9.7, 15.0, 20.0, 30.0, 60.0, 1e300)


def tiny(resolution, epsilon0):
    return coarse(resolution)(low=0, high=1, epsilon0=epsilon0)


def oracle(law, point, word):
    """The law in plain integers: sort outputs outside the window first, then those inside."""
    if word < law.num_steps * law.threshold:
        number = word // law.threshold
        return number if number < point else number + law.window
    return point + (word - law.num_steps * law.threshold) // law.high_threshold


def edge_words(law):
    """Words at and next to the places where the output changes (some hundreds of them)."""
    border = law.num_steps * law.threshold
    outside = {*range(min(law.num_steps, 100)), law.num_steps - 1}
    edges = [number * law.threshold for number in outside]
    edges += [border + number * law.high_threshold for number in range(law.window)]
    near = {edge + step for edge in edges for step in (-1, 0, 1)} | {0, 2**64 - 1, 2**53 + 1}
    return sorted(word for word in near if 0 <= word < 2**64)


@pytest.mark.parametrize("epsilon0", EPSILON0)
def test_whole_numbers_add_up(epsilon0):
    law = Piecewise(low=0, high=1, epsilon0=epsilon0).law
    assert law.num_steps * law.threshold + law.window * law.high_threshold == 2**64
    assert 1 <= law.threshold <= law.high_threshold
    assert law.window <= law.num_steps <= 2**15
    assert law.num_outputs + 2 <= 2**16
    if epsilon0 <= 1e-20:
        assert law == (256, 256, 2**55)
        assert law.high_threshold == law.threshold


@pytest.mark.parametrize("epsilon0", EPSILON0)
def test_reports_are_those_of_plain_integers(epsilon0, monkeypatch):
    randomizer = Piecewise(low=0, high=1, epsilon0=epsilon0)
    law = randomizer.law
    words = edge_words(law) + Entropy.from_seed(1).words(1000).tolist()
    points = [(i * 7919) % (law.num_steps + 1) for i in range(len(words))]
    rounded = np.array(points, dtype=np.int32)
    monkeypatch.setattr(number_randomizer, "round_to_grid", lambda *_, **__: rounded)
    script = SimpleNamespace(words=lambda _: np.array(words, dtype=np.uint64))
    found = randomizer.randomize(np.zeros(len(words)), script).data
    assert found.tolist() == [oracle(law, *pair) for pair in zip(points, words, strict=True)]


def test_rounding_comes_first_and_each_value_takes_two_words():
    randomizer = Piecewise(low=0, high=1, epsilon0=1.0)
    num_users = 1000
    values = np.arange(num_users) / num_users
    found = randomizer.randomize(values, Entropy.from_seed(2)).data.tolist()
    words = Entropy.from_seed(2).words(2 * num_users).tolist()
    for i, value in enumerate(values.tolist()):
        position = value * randomizer.law.num_steps
        point = math.floor(position)
        point += words[i] < Fraction(position - point) * 2**64
        assert found[i] == oracle(randomizer.law, point, words[num_users + i])


@pytest.mark.parametrize(("resolution", "epsilon0"), TINY)
class TestExactLaw:
    def test_rows_sum_to_one(self, resolution, epsilon0):
        randomizer = tiny(resolution, epsilon0)
        channel = channel_of(randomizer)
        assert len(channel) == randomizer.law.num_steps + 1
        assert all(len(row) == randomizer.law.num_outputs for row in channel)
        assert all(sum(row) == 1 and min(row) > 0 for row in channel)

    def test_the_rows_are_what_is_drawn(self, resolution, epsilon0):
        # Each output's share of the words, from the places where the output changes.
        law = tiny(resolution, epsilon0).law
        border = law.num_steps * law.threshold
        starts = [number * law.threshold for number in range(law.num_steps)]
        starts += [border + number * law.high_threshold for number in range(law.window)]
        shares = np.diff([*starts, 2**64])
        for point, row in enumerate(channel_of(tiny(resolution, epsilon0))):
            found = [0] * law.num_outputs
            for start, share in zip(starts, shares.tolist(), strict=True):
                found[oracle(law, point, start)] += Fraction(share, 2**64)
            assert found == list(row)

    def test_local_loss_is_epsilon0_exactly_rounded_up(self, resolution, epsilon0):
        randomizer = tiny(resolution, epsilon0)
        columns = zip(*channel_of(randomizer), strict=True)
        loss = max(max(column) / min(column) for column in columns)
        assert loss == randomizer.law.ratio
        assert randomizer.epsilon0 == log_ratio_upper(loss)

    def test_scores_are_unbiased_and_have_the_stated_variance(self, resolution, epsilon0):
        randomizer = tiny(resolution, epsilon0)
        law = randomizer.law
        if law.gain == 0:
            return  # nothing can be estimated, and estimators refuse
        scores = [2 * y - (law.num_outputs - 1) for y in range(law.num_outputs)]
        slope = law.gain * law.num_steps
        offset, factor = randomizer.score_scale
        assert offset == 0.5
        assert factor == pytest.approx(float(1 / (2 * slope)), rel=1e-15)
        channel = channel_of(randomizer)
        # Values on grid points, and at some places between: mixtures of two rows.
        for point, share in itertools.product(
            range(law.num_steps), (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1))
        ):
            row = [
                (1 - share) * a + share * b
                for a, b in zip(channel[point], channel[point + 1], strict=True)
            ]
            mean, square = (
                sum(p * score**power for p, score in zip(row, scores, strict=True))
                for power in (1, 2)
            )
            value = (point + share) / law.num_steps
            assert Fraction(1, 2) + mean / (2 * slope) == value
            variance = (square - mean**2) / (2 * slope) ** 2
            assert report_variance(randomizer, float(value)) == pytest.approx(
                float(variance), rel=1e-9
            )

    def test_blanket_is_the_infimum_of_the_channel(self, resolution, epsilon0):
        randomizer = tiny(resolution, epsilon0)
        channel = channel_of(randomizer)
        expected = {}
        for column in zip(*channel, strict=True):
            omega = min(column)
            ratios = (to_14_digits(column[0] / omega), to_14_digits(column[-1] / omega))
            expected[ratios] = expected.get(ratios, 0) + float(omega)
        found = {}
        for atom in randomizer.profile.blanket:
            ratios = (to_14_digits(atom.ratio0), to_14_digits(atom.ratio1))
            found[ratios] = found.get(ratios, 0) + atom.mass
        assert set(found) == set(expected)
        for ratios, mass in found.items():
            assert mass == pytest.approx(expected[ratios], rel=1e-12)


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
def test_the_ends_are_the_worst_pair_of_the_blanket(epsilon0):
    # The bound is an expectation of a convex function of r0 - e r1 under the blanket: it is enough
    # to compare E (r0 - e r1 - t)_+ for all t, here at every place where it has a kink.
    channel = channel_of(tiny(2, epsilon0))
    omega = [min(column) for column in zip(*channel, strict=True)]

    def terms(first, second, e):
        rows = zip(channel[first], channel[second], omega, strict=True)
        return [(mass, a / mass - e * b / mass) for a, b, mass in rows]

    for e in (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5)):
        worst = terms(0, len(channel) - 1, e)
        for first, second in itertools.permutations(range(len(channel)), 2):
            pair = terms(first, second, e)
            for t in {term for _, term in worst + pair}:
                at_most = sum(mass * max(term - t, 0) for mass, term in worst)
                assert sum(mass * max(term - t, 0) for mass, term in pair) <= at_most


@pytest.mark.parametrize("epsilon0", [0.1, 0.61, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("x", [0.0, 0.5, 1.0])
def test_variance_is_close_to_the_continuous_one(epsilon0, x):
    # Wang et al., Lemma 1.
    root = math.exp(epsilon0 / 2)
    continuous = x**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    found = report_variance(Piecewise(low=-1, high=1, epsilon0=epsilon0), x)
    assert found == pytest.approx(continuous, rel=3e-3)


def test_coarser_windows_do_not_spoil_large_epsilon0():
    for epsilon0 in (10.0, 12.0, 16.0, 20.0):
        root = math.exp(epsilon0 / 2)
        continuous = 1 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        randomizer = Piecewise(low=-1, high=1, epsilon0=epsilon0)
        worst = max(report_variance(randomizer, value) for value in (0.0, 1.0))
        assert worst < 1.05 * continuous


def test_saturation():
    randomizer = Piecewise(low=0, high=1, epsilon0=60.0)
    assert randomizer.law == GridLaw(2**15, 1, 1)
    assert randomizer.epsilon0 == pytest.approx(64 * math.log(2))


def test_grids_next_to_a_change_of_steps_settle():
    # m changes where 256 e^(epsilon0 / 2) is half a whole number; look on both sides of some.
    for half in (300.5, 421.5, 1000.5, 9999.5):
        edge = 2 * math.log(half / 256)
        for step in range(-3, 4):
            asked = edge + step * 1e-13
            randomizer = Piecewise(low=0, high=1, epsilon0=asked)
            again = Piecewise(low=0, high=1, epsilon0=randomizer.epsilon0)
            assert again == randomizer
            assert asked - 1e-9 < randomizer.epsilon0 <= asked
