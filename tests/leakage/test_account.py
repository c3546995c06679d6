"""Accounts of leakage in words and numbers, and curves of them."""

import json
import math
from fractions import Fraction

import pytest

from shuffledp.core.bound import Bound
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.account import (
    CHANNELS,
    MOST_USERS,
    LeakageAccount,
    comparison,
    describe_counts,
    knowledge_counts,
    leakage_curve,
    percentages,
    spread_sizes,
)


def between(lower, upper):
    return Bound(lower=lower, upper=upper, method="m", source="s", assumptions=("a",))


def exactly(value):
    return between(value, value)


def account(**changes):
    fields = {
        "num_users": 200,
        "domain_size": 2,
        "adversary": "uninformed",
        "prior": 0.5,
        "randomizer": exactly(0.9),
        "shuffler": exactly(0.5281742395),
        "both": exactly(0.5225393916),
        "truth": 0.9,
        "epsilon0": math.log(9.0),
    }
    return LeakageAccount(**{**fields, **changes})


def test_leakage_is_what_the_upper_ends_say():
    found = account(both=between(0.5, 0.75))
    assert found.additive("both") == 0.25
    assert found.multiplicative("both") == 1.5
    assert found.additive("randomizer") == pytest.approx(0.4)
    assert found.multiplicative("shuffler") == pytest.approx(2 * 0.5281742395)


def test_round_off_below_the_prior_is_no_leakage():
    found = account(both=exactly(0.5 - 1e-16))
    assert found.additive("both") == 0.0
    assert found.multiplicative("both") == 1.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "An adversary guesses one person's answer right 52.25 % of the time instead of 50 %.",
        ),
        (
            {"both": between(0.52, 0.5225393916)},
            "An adversary guesses one person's answer right at most 52.26 % of the time instead of "
            "50 %.",
        ),
        (
            {"adversary": "strong", "both": exactly(0.75)},
            "An adversary who knows everybody else's answer guesses one person's answer right 75 % "
            "of the time instead of 50 %.",
        ),
        (
            {"adversary": "partial", "num_users": 2_000, "num_unknown": 900},
            "An adversary who knows the answers of 1,099 of the 1,999 others guesses one person's "
            "answer right 52.25 % of the time instead of 50 %.",
        ),
        (
            {"both": exactly(0.5)},
            "An adversary guesses one person's answer right 50 % of the time, no more often than "
            "without the reports.",
        ),
    ],
)
def test_the_sentence_is_plain(changes, sentence):
    assert account(**changes).sentence == sentence


@pytest.mark.parametrize("leakage", [0.3, 1e-3, 3.3e-5, 7e-8, 2e-11])
@pytest.mark.parametrize("prior", [0.5, 1 / 3, 0.999 - 0.31])
def test_there_are_always_digits_to_tell_the_chances_apart(leakage, prior):
    after, before, _ = percentages(prior, between(prior, prior + leakage))
    assert float(after) > float(before)
    # The upper end is never below the chance, and two digits of the difference are shown.
    assert float(after) / 100 >= prior + leakage - 1e-16
    assert float(after) - float(before) == pytest.approx(100 * leakage, rel=0.11)
    assert "instead of" in comparison(prior, exactly(prior + leakage))


def test_what_was_rounded_off_leaves_its_zeros():
    assert percentages(1 / 3, exactly(0.338976616)) == ("33.90", "33.33", True)
    assert percentages(0.5, exactly(0.6)) == ("60", "50", True)
    assert percentages(0.5, exactly(1.0)) == ("100", "50", True)
    assert percentages(1e-4, exactly(1.01098264e-4)) == ("0.01011", "0.01", True)


def test_known_is_what_both_ends_show():
    assert percentages(0.5, between(0.52251, 0.52254)) == ("52.25", "50", True)
    assert percentages(0.5, between(0.5224, 0.52254)) == ("52.26", "50", False)
    assert percentages(0.5, between(None, 0.52254)) == ("52.26", "50", False)


def test_json_has_the_promised_keys():
    record = account().to_json_dict()
    assert list(record)[:4] == ["prior", "posterior", "additive", "multiplicative"]
    assert record["posterior"] == {
        "randomizer": 0.9, "shuffler": 0.5281742395, "both": 0.5225393916,
    }  # fmt: skip
    assert record["additive"] == 0.5225393916 - 0.5
    assert record["enclosures"]["both"] == [0.5225393916, 0.5225393916]
    assert list(record["leakage"]) == list(CHANNELS)
    assert record["p"] == 0.9
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_json_of_what_is_not_known():
    found = account(epsilon0=math.inf, truth=1.0, knowledge=(100, 99))
    record = found.to_json_dict()
    assert record["epsilon0"] is None
    assert record["knowledge"] == [100, 99]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": 0.0}, "prior = 0.0"),
        ({"prior": math.nan}, "prior = nan"),
        ({"both": between(0.5, 1.1)}, r"both\.upper = 1\.1"),
        ({"num_users": 0}, "num_users = 0"),
        ({"domain_size": 1}, "domain_size = 1"),
    ],
)
def test_what_is_no_account_is_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        account(**changes)


def test_counts_in_words():
    assert describe_counts((0, 1_000)) == "0, 1,000"
    assert describe_counts([5] * 10) == "5 with each of 10"
    many = describe_counts([9, 8, 7, 6, 5, 4, 3, 2, 1])
    assert many == "9 with one value, 8 with one value, 7 with one value, and more"


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
    ("num_others", "domain_size"), [(1, 2), (5, 2), (500, 2), (7, 4), (10_000, 5), (3, 9)]
)
def test_knowledge(num_others, domain_size):
    known = list(knowledge_counts(num_others, domain_size))
    firsts = [counts[0] for counts in known]
    assert firsts == sorted(set(firsts))
    assert (firsts[0], firsts[-1]) == (0, num_others)
    for counts in known:
        assert len(counts) == domain_size
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
        ((1, 0.9, 10), ParameterError, "domain_size = 1"),
        ((1, 0.9, 10, "strong"), ParameterError, "domain_size = 1"),
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
