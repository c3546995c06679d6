"""Blanket and attack of the piecewise and the hybrid mechanism, against their exact channels."""

import itertools
from collections import defaultdict
from fractions import Fraction

import pytest

from oracles.convex_order import as_tuples, largest_excess, to_14_digits
from shuffledp.randomizers.numbers import Hybrid, Piecewise
from shuffledp.randomizers.numbers.range_atoms import (
    best_point,
    bit_attack,
    separation,
    window_attack,
)

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
        point = best_point(law.num_steps, law.window)
        found = collected(as_tuples(randomizer.profile.attack))
        assert found == pytest.approx(collected(exact_atoms(channel, channel[point])), rel=1e-14)
        found = collected(window_attack(*law, law.ratio, point=0))
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
        options = {0, best_point(law.num_steps, law.window)}
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
