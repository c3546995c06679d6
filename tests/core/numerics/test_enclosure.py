import math

import pytest

from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure


def test_ends_in_order():
    assert Enclosure(0.25, 0.5) == Enclosure(0.25, 0.5)
    assert Enclosure(0.25, 0.25).upper == 0.25


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.5), (math.nan, 1.0), (0.0, math.nan)])
def test_an_empty_enclosure_is_round_off(lower, upper):
    with pytest.raises(PrecisionError, match="round-off"):
        Enclosure(lower, upper)
