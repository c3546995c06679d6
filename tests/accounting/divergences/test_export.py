import sys
from fractions import Fraction

import pytest

from oracles import discrete_pairs
from shuffledp.accounting.composition import compose_curves
from shuffledp.accounting.divergences.discretization import dominated_loss, dominating_loss
from shuffledp.accounting.divergences.export import to_dp_accounting
from shuffledp.core.errors import ParameterError

PAIR = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(1, 4), Fraction(3, 8)),
    (Fraction(1, 4), Fraction(3, 8)),
]
CURVE = discrete_pairs.curve_of(PAIR)
FORWARD = dominating_loss(CURVE, 0.015625, 1e-12)
BACKWARD = dominating_loss(CURVE.reversed, 0.015625, 1e-12)


def test_deltas_agree():
    exported = to_dp_accounting(FORWARD, BACKWARD)
    for epsilon in (0.0, 0.1, 0.5):
        larger = max(FORWARD.delta(epsilon), BACKWARD.delta(epsilon))
        assert exported.get_delta_for_epsilon(epsilon) == pytest.approx(larger, rel=1e-9)
    alone = to_dp_accounting(BACKWARD)
    assert alone.get_delta_for_epsilon(0.1) == pytest.approx(BACKWARD.delta(0.1), rel=1e-9)


def test_it_composes_there_as_here():
    theirs = to_dp_accounting(FORWARD, BACKWARD).self_compose(10)
    ours = [
        compose_curves([(curve, 10)], smallest_delta=1e-6, upper=True, accuracy=1e-3)
        for curve in (CURVE, CURVE.reversed)
    ]
    for epsilon in (0.5, 1.5):
        larger = max(loss.delta(epsilon) for loss in ours)
        assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(larger, rel=5e-3)


def test_only_upper_laws_of_one_lattice():
    with pytest.raises(ParameterError, match="lower law"):
        to_dp_accounting(dominated_loss(CURVE, 0.015625, 1e-12))
    with pytest.raises(ParameterError, match="intervals"):
        to_dp_accounting(FORWARD, dominating_loss(CURVE, 0.03125, 1e-12))


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.pld_pmf", None)
    with pytest.raises(ModuleNotFoundError, match="pip install dp-accounting"):
        to_dp_accounting(FORWARD)
