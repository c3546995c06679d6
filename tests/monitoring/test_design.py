"""What clients and server agree on, and how they notice that they do not."""

import math

import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import MonitorDesign, encoding_for
from shuffledp.monitoring.signs import SIGN_LAWS


def design(**changes):
    return MonitorDesign(**({"periods": 8, "max_changes": 3, "epsilon0": 1.0} | changes))


@pytest.mark.parametrize("protocol", SIGN_LAWS)
def test_the_parts_fit_together(protocol):
    made = design(protocol=protocol)
    assert made.num_levels == made.tree.num_levels == 4
    assert made.scale == 4 / made.law.gap
    assert made.epsilon0 == made.law.epsilon0 <= 1.0
    profile = made.profile
    assert (profile.protocol, profile.epsilon0, profile.max_changes) == (protocol, made.epsilon0, 3)
    assert (profile.num_levels, profile.gap, profile.alternating) == (4, made.law.gap, True)


def test_booleans_are_the_default():
    assert design().encoding == design(encoding=None).encoding == encoding_for(None)
    assert design().encoding.num_columns == 1


def test_only_booleans_are_known_to_alternate():
    assert not design(encoding=encoding_for(["a", "b", "c", "d", "e"])).profile.alternating


@pytest.mark.parametrize("protocol", SIGN_LAWS)
@pytest.mark.parametrize("epsilon0", [1e-9, 0.1, 1.0, 3.7, 60.0, 1e308])
def test_a_design_rebuilt_from_what_it_printed_is_the_same(protocol, epsilon0):
    made = design(protocol=protocol, epsilon0=epsilon0)
    again = design(protocol=protocol, epsilon0=made.epsilon0)
    assert again == made
    assert again.fingerprint() == made.fingerprint()


def test_whatever_differs_shows_in_the_fingerprint():
    designs = [
        design(),
        design(periods=9),
        design(max_changes=2),
        design(epsilon0=1.5),
        design(protocol="sampled-change"),
        design(encoding=encoding_for(["a", "b", "c"])),
        design(encoding=encoding_for(["a", "b", "c", "d", "e"])),
        design(encoding=encoding_for(["b", "a", "c", "d", "e"])),
    ]
    fingerprints = {each.fingerprint() for each in designs}
    assert len(fingerprints) == len(designs)
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in fingerprints)


def test_fingerprints_stay_the_same_from_version_to_version():
    # A client that is not updated must be understood by a server that is.
    assert design().fingerprint() == "ceeabaeb07c87271"


def test_one_period_and_many():
    assert design(periods=1, max_changes=1).num_levels == 1
    assert design(periods=2**20, max_changes=62).num_levels == 21


@pytest.mark.parametrize("max_changes", [9, 2**20])
def test_no_more_changes_than_periods(max_changes):
    with pytest.raises(ParameterError, match="give max_changes = 8 or less"):
        design(max_changes=max_changes, protocol="sampled-change")


def test_more_changes_than_periods_and_than_signs():
    with pytest.raises(ParameterError, match="sampled-change"):
        design(periods=100, max_changes=63)
    assert design(periods=100, max_changes=63, protocol="sampled-change").law.gap > 0


@pytest.mark.parametrize("epsilon0", [0.0, 1e-30])
@pytest.mark.parametrize("protocol", SIGN_LAWS)
def test_reports_must_say_something(epsilon0, protocol):
    with pytest.raises(ParameterError, match=r"^epsilon0 = .* say nothing"):
        design(epsilon0=epsilon0, protocol=protocol)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"periods": 0}, "periods"),
        ({"periods": 1.5}, "periods"),
        ({"max_changes": 0}, "max_changes"),
        ({"max_changes": -1}, "max_changes"),
        ({"max_changes": 2.0}, "max_changes"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"epsilon0": math.inf}, "epsilon0"),
        ({"epsilon0": -1.0}, "epsilon0"),
        ({"epsilon0": "1"}, "epsilon0"),
        ({"protocol": "randomised response"}, "protocol"),
        ({"protocol": None}, "protocol"),
    ],
)
def test_arguments_out_of_range(changes, name):
    with pytest.raises(ParameterError, match=f"^{name} = "):
        design(**changes)
