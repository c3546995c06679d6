"""Upper ends asked for alone are those of the enclosures, and wide ones are still upper ends."""

import math

import pytest

from oracles import profiles
from oracles.family_laws import both_ends
from oracles.stated_blankets import atoms_of, linear_hashing, stated, subset_selection
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core.errors import ParameterError

# The two orders of its pair differ.
LOPSIDED = ((0.5, 0.3, 0.2), (0.2, 0.35, 0.45), (0.25, 0.5, 0.25))

LAWS = {
    "any": lambda: profiles.any_randomizer(2.0),
    "8-rr": lambda: profiles.k_rr(2.0, 8),
    "symmetric": lambda: profiles.symmetric_unary(2.0, 8),
    "optimized": lambda: profiles.optimized_unary(2.0, 8),
    "hashing": lambda: stated(2.0, atoms_of(linear_hashing(2, 4, math.exp(2.0)))),
    "subsets": lambda: stated(2.0, atoms_of(subset_selection(4, 2, math.exp(2.0)))),
    "lopsided": lambda: stated(math.log(2.5), atoms_of(LOPSIDED)),
}
OWN = {
    "any": "clones",
    "8-rr": "k-rr-blanket",
    "symmetric": "unary-blanket",
    "optimized": "unary-blanket",
    "hashing": "stated-blanket",
    "subsets": "stated-blanket",
    "lopsided": "stated-blanket",
}
EACH = pytest.mark.parametrize("law", LAWS)
USERS = pytest.mark.parametrize("num_users", [1, 30, 10_000])


@EACH
@USERS
def test_epsilon_is_the_same_without_its_lower_end(law, num_users):
    profile, given = LAWS[law](), {"num_users": num_users, "method": OWN[law]}
    for delta in (1e-8, 0.01):
        both = account_epsilon(profile, delta=delta, **given)
        alone = account_epsilon(profile, delta=delta, with_lower=False, **given)
        assert alone.lower is None
        assert alone.upper == both.upper
        assert both_ends(profile, num_users, alone.upper).lower <= delta


@EACH
@USERS
def test_delta_is_the_same_without_its_lower_end(law, num_users):
    profile, method = LAWS[law](), METHODS[OWN[law]]
    for epsilon in (0.0, 0.1, 0.9, 1.9):
        alone = method.delta(profile, num_users, epsilon)
        assert alone.upper == both_ends(profile, num_users, epsilon).upper
        assert alone.lower == 0.0


@EACH
@USERS
def test_wide_upper_ends_are_above_narrow_ones_and_not_far(law, num_users):
    profile = LAWS[law]()
    for epsilon in (0.0, 0.003, 0.1, 0.9):
        narrow, middle, wide = (
            account_delta(
                profile, num_users=num_users, epsilon=epsilon, with_lower=False, width=width
            ).upper
            for width in (0.0, 1e-6, 1e-4)
        )
        exact = both_ends(profile, num_users, epsilon).lower
        for found in (narrow, middle, wide):
            assert found >= exact
        # delta moves by the square of a standardised epsilon times the width.
        exponent = 1.0 - math.log(narrow)
        assert middle <= narrow * (1.0 + 1e-5 * exponent)
        assert wide <= narrow * (1.0 + 1e-3 * exponent)


def test_any_width_is_an_upper_end_or_refused():
    profile = LAWS["hashing"]()
    narrow = account_delta(profile, num_users=1000, epsilon=0.1, with_lower=False).upper
    for width in (1e-300, 0.1, 1e9, 1e300):
        found = account_delta(profile, num_users=1000, epsilon=0.1, with_lower=False, width=width)
        assert narrow <= found.upper <= 1.1 * narrow
    for width in (math.nan, math.inf, -1e-9):
        with pytest.raises(ParameterError, match="width"):
            account_delta(profile, num_users=1000, epsilon=0.1, width=width)
