"""The third-bit law is what the exact channel says of users who all hold a third value."""

import pytest

from oracles.family_laws import neutral_atoms, pair_of
from shuffledp.amplification.clones_and_families import third_bit_law
from shuffledp.amplification.registry import account_epsilon
from shuffledp.randomizers.registry import make_randomizer


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("name", ["symmetric-unary", "optimized-unary"])
def test_matches_the_channel(name, epsilon0):
    randomizer = make_randomizer(name, domain_size=3, epsilon0=epsilon0)
    first, second, third = randomizer.channel()
    only_first, only_second = 0b001, 0b010  # bits set; the third bit is not
    law = third_bit_law(randomizer.profile)
    mass, high, low = pair_of(law)
    assert mass == pytest.approx(float(third[only_first] + third[only_second]), rel=1e-12)
    assert low == pytest.approx(float(second[only_first] / third[only_first]), rel=1e-12)
    assert high == pytest.approx(float(first[only_first] / third[only_first]), rel=1e-12)
    rest = [b for b in range(8) if b not in (only_first, only_second)]
    weight = sum(first[b] for b in rest) / sum(third[b] for b in rest)
    assert neutral_atoms(law)[0][1] == pytest.approx(float(weight), rel=1e-12)


@pytest.mark.parametrize(("name", "gap"), [("symmetric-unary", 0.07), ("optimized-unary", 0.02)])
def test_makes_the_gap_small_where_the_crowd_is_large(name, gap):
    profile = make_randomizer(name, domain_size=16, epsilon0=4.0).profile
    bound = account_epsilon(profile, num_users=100_000, delta=1e-6)
    assert 0.0 < bound.gap < gap
