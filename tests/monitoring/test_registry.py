"""Laws of the signs by name, and what all of them promise."""

import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.signs import SIGN_LAWS, sign_law


@pytest.mark.parametrize("name", SIGN_LAWS)
def test_each_law_keeps_the_contract(name):
    law = sign_law(name, max_changes=3, epsilon0=1.0)
    assert law.name == name
    assert law.kind == ("sampled-change" if name == "sampled-change" else "predrawn")
    assert (law.flip_threshold == 0) == (law.kind == "predrawn")
    assert law.max_changes == 3
    assert 0.99 < law.epsilon0 <= 1.0
    assert 0.0 < law.gap < 1.0
    profile = law.profile(num_levels=5, alternating=True)
    assert profile.gap == law.gap
    assert float(profile.correlation(2)) == law.pair_correlation


def test_laws_have_different_identities():
    laws = [
        sign_law(name, max_changes=k, epsilon0=epsilon0)
        for name in SIGN_LAWS
        for k in (2, 3)
        for epsilon0 in (0.5, 1.0)
    ]
    assert len({law.identity for law in laws}) == len(laws)


def test_the_default_comes_first():
    assert next(iter(SIGN_LAWS)) == "predrawn-signs"


@pytest.mark.parametrize("name", ["predrawn", "Predrawn-Signs", "", None])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(ParameterError, match=r"did you mean '(predrawn-signs|sampled-change)'"):
        sign_law(name, max_changes=1, epsilon0=1.0)


@pytest.mark.parametrize("k", [0, 2.5, "2", None])
def test_changes_are_counted(k):
    with pytest.raises(ParameterError, match="max_changes"):
        sign_law("predrawn-signs", max_changes=k, epsilon0=1.0)
