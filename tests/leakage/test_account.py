"""Accounts of leakage in words and numbers, and curves of them."""

import json
import math
from decimal import localcontext

import pytest

from shuffledp.core.bound import Bound
from shuffledp.leakage.account import (
    LeakageAccount,
    comparison,
    describe_counts,
    percentages,
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
    with localcontext(prec=3):  # of the program, which makes no difference
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
    assert (record["method"], record["source"]) == ("m", "s")
    assert record["p"] == 0.9
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_json_of_what_is_not_known():
    found = account(epsilon0=math.inf, truth=1.0, knowledge=(100, 99))
    record = found.to_json_dict()
    assert record["epsilon0"] is None
    assert record["knowledge"] == [100, 99]


def test_counts_in_words():
    assert describe_counts((0, 1_000)) == "0, 1,000"
    assert describe_counts([5] * 10) == "5 with each of 10"
    many = describe_counts([9, 8, 7, 6, 5, 4, 3, 2, 1])
    assert many == "9 with one value, 8 with one value, 7 with one value, and more"
