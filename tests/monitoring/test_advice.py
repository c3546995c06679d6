"""What is advised follows from the numbers, and says them."""

import json
import math
from dataclasses import replace

import pytest

from shuffledp.core.bound import Bound
from shuffledp.monitoring.comparison import (
    MonitorComparison,
    RepeatedCollection,
    Verdict,
    advice,
)


def collection(error, *, least=None, local=1.0, central=0.1, answers=10):
    return RepeatedCollection(
        name="made up",
        randomizer="k-rr",
        answers_per_user=answers,
        epsilon0_per_answer=local / answers,
        local_epsilon=local,
        central=Bound(lower=None, upper=central, method="", source="", assumptions=()),
        standard_error=error,
        least_standard_error=least,
    )


COMPARED = MonitorComparison(
    periods=10,
    standard_error=100.0,
    smoothed_standard_error=70.0,
    local_epsilon=1.0,
    central_epsilon=0.1,
    everybody_local=collection(500.0, least=500.0, central=0.01),
    everybody_central=collection(300.0, least=297.0, local=9.0),
    few_answers=collection(250.0, least=240.0, answers=1),
)


def test_factors():
    assert COMPARED.best_at_both is COMPARED.few_answers
    assert COMPARED.factor_at_both == 2.5
    assert COMPARED.least_factor_at_both == 2.4
    assert COMPARED.factor_at_local == 5.0
    assert COMPARED.factor_at_central == 3.0
    assert COMPARED.least_factor_at_central == 2.97
    unknown = replace(COMPARED, everybody_central=collection(300.0), few_answers=collection(250.0))
    assert unknown.least_factor_at_central == 3.0
    assert unknown.least_factor_at_both == 2.5


def test_only_what_gives_both_guarantees_is_best_at_both():
    open_local = replace(COMPARED, few_answers=collection(10.0, local=1.1))
    assert open_local.best_at_both is COMPARED.everybody_local
    open_central = replace(COMPARED, few_answers=collection(10.0, central=0.11))
    assert open_central.best_at_both is COMPARED.everybody_local
    # a repeated collection may give both without having been made for it
    good = replace(COMPARED, everybody_central=collection(200.0))
    assert good.best_at_both is good.everybody_central


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, Verdict.MONITOR, "Monitor: no repeated collection"),
        ({"periods": 1}, Verdict.ONE_SHOT, "use `shuffledp run`"),
        ({"few_answers": collection(99.0, least=90.0)}, Verdict.REPEAT, "Repeat a one-shot"),
        ({"everybody_local": collection(99.0, least=99.0)}, Verdict.REPEAT, "Repeat"),
        (
            {"few_answers": collection(120.0, least=95.0)},
            Verdict.ABOUT_EVEN,
            "About even: take what is easier",
        ),
        (
            {"everybody_central": collection(101.0, least=99.5, local=9.0)},
            Verdict.TRUST_DECIDES,
            "if the shuffler is trusted",
        ),
    ],
)
def test_verdicts(changes, verdict, words):
    compared = replace(COMPARED, **changes)
    assert compared.verdict is verdict
    said = advice(compared)
    assert words in said[0]
    assert len(said) == (1 if verdict is Verdict.ONE_SHOT else 5)
    for sentence in said:
        assert sentence.endswith(".")
        assert "nan" not in sentence


def test_the_numbers_are_said():
    own, both, local, central = advice(COMPARED)[1:]
    assert "100 users on average over the periods, and of 70 users once all" in own
    assert "each user answering in 1 of 10 periods (epsilon0 = 1 each time) it is 250 users" in both
    assert "250 users, 2.5 times that. A better analysis might" in both
    assert both.endswith("allow less noise, but not below 240 users.")
    assert "everybody answering in every period (epsilon0 = 0.1 each time) it is 500 users" in local
    assert local.endswith("500 users, 5 times that.")
    assert "it is 300 users, 3 times that. But whoever sees" in central
    assert "may then learn epsilon = 9 about each user instead of 1." in central


def test_losses_are_not_rounded_down():
    much = replace(COMPARED, everybody_central=collection(300.0, local=1238.1))
    assert "epsilon = 1239 about each user instead of 1." in advice(much)[4]


def test_what_is_not_known_is_said():
    compared = replace(
        COMPARED,
        everybody_central=collection(300.0),
        few_answers=collection(250.0, answers=2),
    )
    _, both, _, central = advice(compared)[1:]
    assert "in 2 of 10 periods (" in both
    assert both.endswith("250 users, 2.5 times that. A better analysis might allow less noise.")
    assert central.endswith("300 users, 3 times that. A better analysis might allow less noise.")
    assert "whoever sees" not in central  # no more than monitoring reveals


def test_noise_without_end():
    endless = collection(math.inf, least=math.inf)
    compared = replace(COMPARED, everybody_local=endless, few_answers=endless)
    assert advice(compared)[3].endswith("it is infinite.")
    record = compared.to_dict()
    assert record["factor_at_local"] is None
    json.dumps(record, allow_nan=False)


def test_what_programs_read():
    record = COMPARED.to_dict()
    assert record["verdict"] == "monitor"
    assert record["advice"] == list(advice(COMPARED))
    assert record["few_answers"] == COMPARED.few_answers.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
