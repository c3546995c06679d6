import math

import numpy as np
import pytest

from oracles import enumeration, profiles
from shuffledp.accounting import composed_curves
from shuffledp.accounting.amplification.renyi_closed_forms import blanket_renyi_upper
from shuffledp.accounting.composed_curves import renyi_above, renyi_without_failure
from shuffledp.accounting.release import ShuffledRelease, StatedRelease
from shuffledp.core.errors import ParameterError, PrecisionError

LARGE = ShuffledRelease(epsilon0=1.0, num_users=100_000)


def binary_renyi(epsilon, order):
    """Renyi divergence of randomized response, in closed form."""
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    terms = keep**order * (1 - keep) ** (1 - order) + (1 - keep) ** order * keep ** (1 - order)
    return math.log(terms) / (order - 1.0)


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 64.0])
def test_stated_guarantees_have_the_closed_form(order):
    year = StatedRelease(epsilon=0.5) * 10 + StatedRelease(epsilon=1.0)
    exact = 10 * binary_renyi(0.5, order) + binary_renyi(1.0, order)
    found = year.renyi([order])
    assert found.orders == (order,)
    assert found.lower[0] <= exact <= found.upper[0]
    assert found.upper[0] == pytest.approx(exact, rel=5e-3)
    assert found.lower[0] == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("order", [2.0, 5.0])
def test_sandwich_by_enumeration(order):
    channel = enumeration.randomized_response(2, math.e)
    pairs = [(p, q) for p, q, _, _ in enumeration.neighbouring_laws(channel, 3)]
    exact = max(math.log(float(np.sum(p**order * q ** (1 - order)))) for p, q in pairs)
    release = ShuffledRelease(profile=profiles.k_rr(1.0, 2), num_users=3)
    found = (release * 7).renyi([order])
    assert found.lower[0] <= 7 * exact / (order - 1.0) <= found.upper[0]
    assert found.lower[0] > 0.0


@pytest.mark.parametrize("order", [2.0, 16.0, 24.0, 64.0])
def test_large_crowds_are_nearly_gaussian(order):
    variance = 2.0 * (math.e - 1.0) ** 2 / (math.e + 1.0) / 100_000
    found = (LARGE * 365).renyi([order], with_lower=False)
    assert found.upper[0] == pytest.approx(365 * 0.5 * order * variance, rel=0.01)
    assert found.lower == (0.0,)


def test_renyi_implies_an_epsilon_a_little_above():
    year = LARGE * 365
    orders = [2.0**step for step in range(1, 8)]
    composed = year.epsilon(1e-6, with_lower=False).upper
    assert composed < year.renyi(orders, with_lower=False).epsilon(1e-6) < 1.2 * composed


def test_what_may_reveal_all_has_no_renyi_divergence():
    failing = StatedRelease(epsilon=0.5, delta=1e-9)
    assert (failing * 2 + LARGE).renyi([2.0]).upper == (math.inf,)
    assert renyi_above(failing, 2.0) == math.inf
    assert renyi_without_failure(failing, 2.0) == pytest.approx(binary_renyi(0.5, 2.0), rel=5e-3)
    assert StatedRelease(epsilon=0.0).renyi([2.0]).upper == (0.0,)


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, math.inf, math.nan])
def test_impossible_orders_are_refused(order):
    with pytest.raises(ParameterError, match="order"):
        LARGE.renyi([2.0, order])


def test_where_round_off_dominates_a_closed_form_is_left(monkeypatch):
    def lost(*_arguments, **_options):
        raise PrecisionError("planted")

    monkeypatch.setattr("shuffledp.accounting.renyi.renyi_divergence", lost)
    composed_curves._divergence.cache_clear()
    found = (LARGE * 2).renyi([3.0])
    composed_curves._divergence.cache_clear()
    assert found.upper == (pytest.approx(2.0 * blanket_renyi_upper(3.0, 1.0, 100_000)),)
    assert found.lower == (0.0,)


def test_no_attack_no_lower_end():
    unary = ShuffledRelease(profile=profiles.symmetric_unary(1.0), num_users=1000)
    assert unary.renyi([2.0]).lower == (0.0,)


def test_the_trade_off_is_below_the_gaussian_one():
    from scipy import special

    year = LARGE * 365
    curve = year.trade_off([0.001, 0.01, 0.1, 0.5, 0.9])
    mu = math.sqrt(365 * 2.0 * (math.e - 1.0) ** 2 / (math.e + 1.0) / 100_000)
    gaussian = special.ndtr(special.ndtri(1.0 - curve.type_one_errors) - mu)
    assert np.all(curve.type_two_errors <= gaussian + 1e-4)
    assert curve.type_two_errors == pytest.approx(gaussian, abs=2e-3)
    assert not curve.type_two_errors.flags.writeable


def test_the_trade_off_bounds_every_test_of_small_data():
    channel = enumeration.randomized_response(2, math.e)
    release = ShuffledRelease(profile=profiles.k_rr(1.0, 2), num_users=2)
    year = release * 2
    assert year.trade_off().type_one_errors.size == 101
    pairs = [(p, q) for p, q, _, _ in enumeration.neighbouring_laws(channel, 2)]
    for first in pairs:
        for second in pairs:
            p, q = (np.outer(first[i], second[i]).ravel() for i in (0, 1))
            order = np.argsort(-q / p)
            alarms = np.cumsum(p[order])  # of the best tests of p against q
            misses = 1.0 - np.cumsum(q[order])
            curve = year.trade_off(np.clip(alarms, 0.0, 1.0))
            assert np.all(curve.type_two_errors <= misses + 1e-12)


def test_dp_accounting_reads_the_loss():
    pytest.importorskip("dp_accounting")
    year = LARGE * 365 + StatedRelease(epsilon=0.01, delta=1e-8)
    distribution = year.to_dp_accounting(smallest_delta=1e-9)
    found = distribution.get_epsilon_for_delta(1e-6)
    assert found == pytest.approx(year.epsilon(1e-6, with_lower=False).upper, rel=1e-3)
