import math

import pytest

from shuffledp.core.bound import Bound, Guarantee, reconciled_lower
from shuffledp.core.errors import LowerEndWarning, ParameterError, ShuffledpError


def bound(lower, upper):
    return Bound(lower=lower, upper=upper, method="m", source="s", assumptions=("a",))


@pytest.mark.parametrize("upper", [math.nan, -1e-300, -1.0, -math.inf])
def test_an_upper_end_that_is_no_number_is_refused(upper):
    with pytest.raises(ParameterError, match="upper"):
        bound(None, upper)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(math.nan, 1.0), (-1e-300, 1.0), (1.0 + 2.0**-52, 1.0), (math.inf, 1.0), (1e-300, 0.0)],
)
def test_a_crossing_or_nan_lower_end_is_refused(lower, upper):
    with pytest.raises(ParameterError, match="lower"):
        bound(lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper", "gap"),
    [
        (None, 1.0, None),
        (None, math.inf, None),
        (0.75, 1.0, 0.25),
        (1.0, 1.0, 0.0),
        (0.0, 1.0, 1.0),
        (0.0, 0.0, 0.0),
        (3.0, math.inf, 1.0),
        (math.inf, math.inf, 0.0),
        (0.0, 5e-324, 1.0),
    ],
)
def test_gap_is_relative_to_the_upper_end(lower, upper, gap):
    assert bound(lower, upper).gap == gap


def test_repr_shows_the_upper_end_first_and_no_novel():
    assert repr(bound(None, 0.1)) == "Bound(upper=0.1, lower=None, method='m')"
    assert repr(bound(0.25, math.inf)) == "Bound(upper=inf, lower=0.25, method='m')"


def test_it_is_frozen_and_compares_by_value():
    assert bound(0.0, 1.0) == bound(0.0, 1.0)
    assert hash(bound(0.0, 1.0)) == hash(bound(0.0, 1.0))
    with pytest.raises(AttributeError):
        bound(0.0, 1.0).upper = 2.0


def test_the_error_can_be_caught_as_ours_and_as_a_value_error():
    with pytest.raises(ShuffledpError):
        bound(None, math.nan)
    with pytest.raises(ValueError, match="non-negative"):
        bound(None, math.nan)


def test_a_smaller_upper_end_cuts_the_lower_one():
    wide = bound(0.5, 1.0)
    assert wide.at_most(2.0) is wide.at_most(1.0) is wide
    cut = wide.at_most(0.25, method="better")
    assert (cut.lower, cut.upper, cut.method, cut.source) == (0.25, 0.25, "better", "s")
    assert bound(None, 1.0).at_most(0.75).lower is None
    with pytest.raises(ParameterError, match="upper"):
        wide.at_most(math.nan)


@pytest.mark.parametrize("upper", [0.0, 0.5])
def test_ends_that_cross_by_rounding_meet_and_others_lose_the_lower_one(upper):
    how = {"tolerance": 1e-6, "claim": "it"}
    for lower in (None, 0.9 * upper, upper):
        assert reconciled_lower(lower, upper, **how) == lower
    assert reconciled_lower(upper * (1.0 + 0.9e-6) + 1e-301, upper, **how) == upper
    with pytest.warns(LowerEndWarning, match="it gives at most"):
        assert reconciled_lower(upper * (1.0 + 1.1e-6) + 1e-299, upper, **how) is None


def test_each_assumption_is_stated_once():
    assert bound(None, 1.0).assuming("b", "a", "b").assumptions == ("a", "b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"delta": each}, r"delta = .* is not in \[0, 1\]") for each in (math.nan, -1e-9, 2.0)),
        *(({"epsilon": each, "delta": bound(0.0, 0.5)}, "epsilon") for each in (math.nan, -1.0)),
        ({"delta": bound(0.0, 0.5)}, "exactly one Bound"),
        ({"epsilon": 1.0}, "exactly one Bound"),
        ({"num_users": 0}, "num_users"),
        ({"rounds": 0}, "rounds"),
    ],
)
def test_a_guarantee_that_cannot_be_is_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        Guarantee(**{"epsilon": bound(0.5, 1.0), "delta": 1e-6, "num_users": 10} | change)


def test_rounds_are_told_where_there_are_several():
    for rounds in (1, 2):
        one = Guarantee(epsilon=bound(0.5, 1.0), delta=1e-6, num_users=10, rounds=rounds)
        assert one.to_json_dict().get("rounds", 1) == rounds
