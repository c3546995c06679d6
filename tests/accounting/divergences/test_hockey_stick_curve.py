import math

import pytest

from shuffledp.accounting.divergences.hockey_stick_curve import HockeyStickCurve
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure


def one(_epsilon):
    return Enclosure(0.1, 0.2)


def other(_epsilon):
    return Enclosure(0.3, 0.4)


def test_the_other_order_of_the_pair():
    curve = HockeyStickCurve(forward=one, backward=other, highest=math.inf).reversed
    assert (curve.forward(0.0), curve.backward(0.0)) == (other(0.0), one(0.0))


@pytest.mark.parametrize("highest", [-1.0, math.nan])
def test_it_ends_somewhere(highest):
    with pytest.raises(ParameterError, match="highest"):
        HockeyStickCurve(forward=one, backward=one, highest=highest)
