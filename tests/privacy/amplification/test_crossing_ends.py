"""A bound below an attack that is known is refused; ends that meet up to rounding are not."""

import pytest

from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.privacy.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.privacy.amplification.local import LOCAL
from shuffledp.privacy.amplification.registry import _smallest


def test_a_bound_below_an_attack_is_refused():
    with pytest.raises(PrecisionError, match="report this as a bug"):
        _smallest([(LOCAL, Enclosure(0.0, 0.1))], 0.1001, with_lower=True)


def test_ends_that_meet_up_to_rounding_are_one_number():
    bound = _smallest([(LOCAL, Enclosure(0.0, 0.1))], 0.1 * (1.0 + 1e-12), with_lower=True)
    assert bound.lower == bound.upper == 0.1


def test_one_pair_loses_nothing_from_epsilon0_on():
    binary = BinaryRandomizedResponse(1.0, 10)
    assert binary._upper(1.0, 3.0) == 0.0
    assert binary._upper(0.999, 3.0) > 0.0
