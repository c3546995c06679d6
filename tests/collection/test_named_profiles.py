"""Profiles by name are those of the randomizers, and nothing that makes no difference is taken."""

import pytest

from shuffledp.cli.options import RANDOMIZER_NAMES
from shuffledp.collection.profiles import ACCOUNTED_RANDOMIZERS, named_profile
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.randomizers.numbers.duchi import Duchi
from shuffledp.randomizers.registry import NUMBER_RANDOMIZERS, RANDOMIZERS
from shuffledp.randomizers.vectors.privunit import PrivUnit


def needed(name):
    if name in RANDOMIZERS:
        return {"k": 5}
    return {} if name in NUMBER_RANDOMIZERS else {"dimension": 8}


@pytest.mark.parametrize("name", ACCOUNTED_RANDOMIZERS)
def test_every_randomizer_has_a_profile(name):
    profile = named_profile(name, epsilon0=1.0, **needed(name))
    assert 0.0 < profile.epsilon0 <= 1.0
    assert profile.family is not RandomizerFamily.ANY


def test_the_command_offers_the_same_names():
    kinds = ("categories", "--mean", "--vector")
    offered = [name for kind in kinds for name in RANDOMIZER_NAMES[kind]]
    assert sorted(offered) == sorted(ACCOUNTED_RANDOMIZERS)


def test_limits_and_norms_make_no_difference():
    wide = Duchi(low=0.0, high=120.0, epsilon0=0.8).profile
    assert named_profile("duchi", epsilon0=0.8).blanket == wide.blanket
    long = PrivUnit(dimension=8, norm_bound=7.0, epsilon0=0.8).profile
    assert named_profile("privunit", epsilon0=0.8, dimension=8).blanket == long.blanket


def test_no_name_is_any_randomizer():
    assert named_profile(None, epsilon0=2.0) == LocalProfile(epsilon0=2.0)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (None, {"k": 3}, "k = 3 makes no difference without a randomizer"),
        (None, {"dimension": 3}, "dimension = 3 makes no difference"),
        ("duchi", {"k": 3}, "k = 3 makes no difference for duchi"),
        ("k-rr", {"k": 3, "dimension": 2}, "dimension = 2 makes no difference for k-rr"),
        ("privunit", {"k": 3, "dimension": 2}, "k = 3 makes no difference for privunit"),
        ("privunit", {}, "dimension is needed for privunit"),
        ("subset-selection", {}, "k is needed for subset-selection"),
        ("k-rr", {}, "k-RR"),
        ("krr", {"k": 3}, "'krr' is not one of k-rr, "),
        ("laplace", {"epsilon0": -1.0}, "epsilon0 = -1"),
    ],
)
def test_what_does_not_fit_is_refused(name, given, message):
    with pytest.raises(ParameterError, match=message):
        named_profile(name, **{"epsilon0": 1.0, **given})
