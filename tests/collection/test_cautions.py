"""A delta that permits publishing somebody's answer is warned about, and no other."""

import pytest

from shuffledp.collection.results import delta_cautions


@pytest.mark.parametrize(("delta", "warns"), [(1e-3, True), (2e-3, True), (9.99e-4, False)])
def test_the_threshold_is_one_in_the_number_of_users(delta, warns):
    assert bool(delta_cautions(delta, 1000)) is warns


def test_the_warning_names_both_numbers_and_a_way_out():
    (caution,) = delta_cautions(0.01, 1000)
    assert "delta = 0.01" in caution
    assert "1/num_users = 0.001" in caution
    assert "1e-06" in caution
