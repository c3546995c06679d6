"""Brackets of k-RR over the grid, against the accountant and independent theory."""

import json
from itertools import pairwise

import pytest

from oracles import profiles
from shuffledp.accounting.amplification.registry import account_epsilon
from shuffledp.accounting.brackets import GRID_EPSILON0, GRID_K, GRID_NUM_USERS, bracket_grid
from shuffledp.core.errors import ParameterError


@pytest.fixture(scope="module")
def grid():
    return bracket_grid(1e-6, ks=(2, 16))


def test_the_grid_is_complete_and_in_order(grid):
    assert [(each.domain_size, each.epsilon0, each.num_users) for each in grid] == [
        (k, epsilon0, num_users)
        for k in (2, 16)
        for epsilon0 in GRID_EPSILON0
        for num_users in GRID_NUM_USERS
    ]
    assert GRID_NUM_USERS[0] == 10**3
    assert GRID_NUM_USERS[-1] == 10**9
    assert GRID_K == (2, 4, 16, 128)


def test_a_bracket_is_what_the_accountant_says(grid):
    for each in grid[:: len(grid) // 7]:
        profile = profiles.k_rr(each.epsilon0, each.domain_size)
        assert each.bound == account_epsilon(profile, num_users=each.num_users, delta=1e-6)


def test_brackets_are_narrow_and_fall_with_users(grid):
    for each in grid:
        assert 0.0 < each.bound.lower <= each.bound.upper
        assert each.bound.gap < (1e-3 if each.epsilon0 < 6.0 else 0.005)
        if each.num_users >= 10**4:  # as docs/explanation/brackets.md says
            assert each.bound.gap < 1e-4
    for first, second in pairwise(grid):
        if second.num_users > first.num_users:
            assert second.bound.upper < first.bound.lower


def test_more_answers_hide_better(grid):
    half = len(grid) // 2
    for two, sixteen in zip(grid[:half], grid[half:], strict=True):
        if two.epsilon0 < 4.0:  # beyond, sixteen answers hide less than the noise of two
            assert sixteen.bound.upper < two.bound.lower


def test_json(grid):
    record = json.loads(json.dumps(grid[0].to_json_dict(), allow_nan=False))
    assert record == {
        "k": 2,
        "epsilon0": 0.5,
        "num_users": 1000,
        "lower": grid[0].bound.lower,
        "upper": grid[0].bound.upper,
        "gap": grid[0].bound.gap,
        "method": "binary-exact",
    }


def test_progress_ends_at_the_total():
    seen = []
    bracket_grid(0.5, ks=[3], progress=lambda *step: seen.append(step))
    assert seen == [("bracketing", done, 35) for done in range(36)]


@pytest.mark.parametrize(
    ("delta", "ks", "match"),
    [(0.0, (2,), "delta"), (1.0, (2,), "delta"), (1e-6, (1,), "domain_size"), (1e-6, (2.5,), "do")],
)
def test_arguments_out_of_range(delta, ks, match):
    with pytest.raises(ParameterError, match=match):
        bracket_grid(delta, ks=ks)
