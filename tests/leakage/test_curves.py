"""Curves of one collection: which points, which values, what is refused."""

import json
import math
from fractions import Fraction

import pytest

from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.account import (
    MOST_USERS,
    knowledge_counts,
    leakage_curve,
    spread_sizes,
)


def test_uninformed():
    curve = leakage_curve(2, 0.9, 200)
    assert (curve.x[0], curve.x[-1], curve.prior, curve.randomizer) == (1.0, 2000.0, 0.5, 0.9)
    assert list(curve.x) == sorted(set(curve.x))
    at_200 = curve.x.index(200.0)
    assert f"{curve.both[at_200].upper:.4f}" == "0.5225"
    assert f"{curve.shuffler[at_200].upper:.4f}" == "0.5282"
    for x, each in zip(curve.x, curve.both, strict=True):
        n = int(x)
        exact = 0.5 + 0.8 * float(Fraction(math.comb(n - 1, (n - 1) // 2), 2**n))
        assert each.lower <= exact * (1 + 1e-12)
        assert each.upper >= exact * (1 - 1e-12)


@pytest.mark.parametrize("num_users", [1, 10**9])
def test_sizes_at_the_ends(num_users):
    curve = leakage_curve(2, 0.75, num_users)
    assert (curve.x[0], curve.x[-1]) == (1.0, float(min(10 * num_users, MOST_USERS)))
    assert float(num_users) in curve.x
    assert all(each.lower >= 0.5 for each in curve.both)


def test_strong():
    curve = leakage_curve(2, 0.8, 201, "strong")
    assert (curve.x[0], curve.x[-1], len(curve.x)) == (0.0, 1.0, 101)
    both = dict(zip(curve.x, curve.both, strict=True))
    assert f"{both[0.0].upper:.5f}" == "0.52111"
    assert f"{both[0.5].upper:.5f}" == "0.52116"
    assert {each.upper for each in curve.shuffler} == {1.0}


def test_strong_of_three_values():
    curve = leakage_curve(3, 0.6, 11, "strong")
    assert curve.x == tuple(share / 10 for share in range(11))
    assert all(1 / 3 < each.lower <= each.upper < 0.6 for each in curve.both)


@pytest.mark.parametrize(
    ("num_others", "num_values"), [(1, 2), (5, 2), (500, 2), (7, 4), (10_000, 5), (3, 9)]
)
def test_knowledge(num_others, num_values):
    known = list(knowledge_counts(num_others, num_values))
    firsts = [counts[0] for counts in known]
    assert firsts == sorted(set(firsts))
    assert (firsts[0], firsts[-1]) == (0, num_others)
    for counts in known:
        assert len(counts) == num_values
        assert sum(counts) == num_others
        assert max(counts[1:]) - min(counts[1:]) <= 1


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 7), (10, 1000), (3, 10**9)])
def test_spread_sizes(first, last):
    sizes = spread_sizes(first, last, 12, also=last)
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (first, last)
    assert len(sizes) <= 13


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((2, 0.9, 0), ParameterError, "num_users = 0"),
        ((2, 0.9, MOST_USERS + 1), ParameterError, "num_users = 1000000001 is above"),
        ((2, 0.9, 1, "strong"), ParameterError, "num_users = 1 leaves nobody"),
        ((1, 0.9, 10), ParameterError, "num_values = 1"),
        ((1, 0.9, 10, "strong"), ParameterError, "num_values = 1"),
        ((2, 0.4, 10), OutOfRegimeError, "truth = 0.4"),
        ((2, 0.4, 10, "strong"), OutOfRegimeError, "truth = 0.4"),
        ((2, float("nan"), 10), ParameterError, "truth = nan"),
        ((2, 0.9, 10, "weak"), ParameterError, "adversary = 'weak' is not one of uninformed, s"),
    ],
)
def test_refusals(arguments, kind, message):
    with pytest.raises(kind, match=message):
        leakage_curve(*arguments)


def test_json():
    curve = leakage_curve(2, 0.9, 3)
    facts = json.loads(json.dumps(curve.to_json_dict()))
    assert (facts["k"], facts["p"], facts["num_users"]) == (2, 0.9, 3)
    assert facts["both"][1] == pytest.approx(0.7)
    assert len(facts["x"]) == len(facts["shuffler"]) == len(facts["both_lower"])
