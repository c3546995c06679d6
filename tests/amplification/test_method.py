import pytest

from oracles.profiles import any_randomizer, k_rr
from shuffledp.amplification.clones_and_families import FELDMAN_2021_NUMERICAL
from shuffledp.amplification.closed_forms import (
    BLANKET_BENNETT,
    BLANKET_HOEFFDING,
    FELDMAN_2021_CLOSED,
    FELDMAN_2023_CLOSED,
)
from shuffledp.amplification.method import pure_violation
from shuffledp.core.profile import LocalProfile

PURE_METHODS = (
    BLANKET_BENNETT,
    BLANKET_HOEFFDING,
    FELDMAN_2021_CLOSED,
    FELDMAN_2021_NUMERICAL,
    FELDMAN_2023_CLOSED,
)


def test_pure_profiles_pass():
    assert pure_violation(any_randomizer(1.0)) is None
    assert pure_violation(k_rr(0.0, 4)) is None


@pytest.mark.parametrize("delta0", [5e-324, 1e-12, 0.5])
def test_any_delta0_is_refused_and_the_method_that_applies_is_named(delta0):
    assert "approximate-local" in pure_violation(LocalProfile(epsilon0=1.0, delta0=delta0))


@pytest.mark.parametrize("method", PURE_METHODS, ids=lambda method: method.name)
def test_pure_methods_refuse_impure_profiles_and_are_never_tried_by_themselves(method):
    assert method.violated_hypothesis(any_randomizer(1.0), 10_000, 1e-6) is None
    assert method.violated_hypothesis(any_randomizer(1.0), 10_000, None) is None
    impure = LocalProfile(epsilon0=1.0, delta0=1e-12)
    assert "delta0 = 0" in method.violated_hypothesis(impure, 10_000, 1e-6)
    assert not method.automatic
