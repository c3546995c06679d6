"""Pairs that cannot be rounded outwards; those that can are tested with what uses them."""

from fractions import Fraction

from shuffledp.core.profile import mirrored, outward_pairs

PAIR = mirrored(Fraction(1, 3), Fraction(4, 3), Fraction(2, 3))


def test_without_a_neutral_atom_no_heavier_nothing_is_returned():
    assert outward_pairs(PAIR) == ()
    assert outward_pairs([*PAIR, (Fraction(1, 3), 2, 2)]) == ()


def test_a_neutral_atom_that_has_too_little_lends_nothing():
    assert outward_pairs([*PAIR, (Fraction(1, 10**40), 1, 1)]) == ()


def test_a_neutral_atom_lends_what_the_pair_gains():
    found = outward_pairs([*PAIR, (Fraction(1, 3), 1, 1)])
    total = sum(Fraction(atom.mass) * Fraction(atom.ratio0) for atom in found)
    assert len(found) == 3
    assert 1 - Fraction(1, 2**50) <= total <= 1
    assert found[0].ratio0 >= Fraction(4, 3)
    assert found[0].ratio1 <= Fraction(2, 3)
