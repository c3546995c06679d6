"""Both ends of epsilon for k-RR over a grid are near each other, as the documentation says."""

from itertools import pairwise

import pytest

from oracles import profiles
from shuffledp.accounting.amplification.registry import account_epsilon

USERS = tuple(10**decade for decade in range(3, 10))


def brackets(epsilon0, domain_size):
    profile = profiles.k_rr(epsilon0, domain_size)
    return [account_epsilon(profile, num_users=users, delta=1e-6) for users in USERS]


@pytest.mark.parametrize("domain_size", [2, 16])
@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_brackets_are_narrow_and_fall_with_users(epsilon0, domain_size):
    found = brackets(epsilon0, domain_size)
    for users, bound in zip(USERS, found, strict=True):
        assert 0.0 < bound.lower <= bound.upper
        assert bound.gap < (1e-3 if epsilon0 < 6.0 else 0.005)
        if users >= 10**4:  # as docs/explanation/brackets.md says
            assert bound.gap < 1e-4
    for first, second in pairwise(found):
        assert second.upper < first.lower


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0])
def test_more_answers_hide_better(epsilon0):
    for two, sixteen in zip(brackets(epsilon0, 2), brackets(epsilon0, 16), strict=True):
        assert sixteen.upper < two.lower
