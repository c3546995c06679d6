"""What runs say about guesses: for every randomizer, shuffler and kind of question."""

import json

import numpy as np
import pytest

import shuffledp as sdp
from graph_families import random_regular_graph
from shuffledp import Categories
from shuffledp.collection.leakage import _Release, json_of_run, leakage_of
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.run import run as run_plan
from shuffledp.core.entropy import Entropy
from shuffledp.leakage.account import account_leakage
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.run import NetworkShuffling
from shuffledp.randomizers.registry import RANDOMIZERS

ANSWERS = ["a"] * 150 + ["b"] * 100 + ["c"] * 50
DOMAIN = ("a", "b", "c")


def collected(randomizer="k-rr", *, epsilon0=1.5, answers=ANSWERS, domain=DOMAIN, **options):
    setting = make_plan(
        Categories(domain=domain),
        num_users=len(answers),
        randomizer=randomizer,
        epsilon0=epsilon0,
        delta=1e-6,
        **{"shuffling": options["shuffling"]} if "shuffling" in options else {},
    )
    return run_plan(setting, answers, seed=1, **options)


def accounts(result):
    return {account.adversary: account for account in leakage_of(result).accounts}


def test_randomized_response_is_exact():
    result = collected()
    found = accounts(result)
    truth = result.randomizer.support_probabilities[0]
    exact = account_leakage(num_users=300, domain_size=3, truth=truth)
    for name in ("randomizer", "shuffler", "both"):
        assert found["uninformed"].bound(name).upper == pytest.approx(exact.bound(name).upper)
        assert found["uninformed"].bound(name).upper >= exact.bound(name).lower
    worst = account_leakage(num_users=300, domain_size=3, truth=truth, adversary="strong")
    assert found["strong"].both.upper >= worst.both.lower
    assert found["strong"].both.lower <= worst.both.upper
    assert leakage_of(result).notes == ()


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_every_randomizer_has_an_answer(randomizer):
    found = accounts(collected(randomizer))
    for account in found.values():
        assert account.prior <= account.both.lower <= account.both.upper
        assert account.both.upper <= account.randomizer.upper < 1.0
    assert found["uninformed"].both.upper <= found["strong"].both.upper + 1e-12


@pytest.mark.parametrize("randomizer", ["symmetric-unary", "optimized-local-hashing"])
def test_many_answers_go_by_the_guarantee(randomizer):
    domain = tuple(map(str, range(30)))
    answers = [domain[place % 30] for place in range(3_000)]
    found = accounts(collected(randomizer, answers=answers, domain=domain))
    for account in found.values():
        assert account.randomizer.method == "local guarantee"
        assert account.both.method == "guarantee"
        assert account.both.upper < account.randomizer.upper
        assert account.truth is None
    assert found["uninformed"].shuffler.upper < 0.05
    assert found["strong"].shuffler.upper == 1.0


def test_a_guarantee_is_never_below_what_is_exact():
    """The general bounds hold for k-RR too, where the exact chances are known."""
    result = collected()
    upper = _Release(result).by_guarantee(np.full(3, 1 / 3))
    assert accounts(result)["strong"].both.lower <= upper < 1.0


@pytest.mark.slow
def test_a_network_hides_nearly_as_well_as_a_shuffler():
    graph = random_regular_graph(300, 8, Entropy.from_seed(2))
    arrangement = NetworkShuffling(mixing=NetworkMixing(graph), rounds=25)
    uniform = accounts(collected())
    found = accounts(collected(shuffling=arrangement))
    for adversary in ("uninformed", "strong"):
        account = found[adversary]
        # Who sees it can shuffle it: at least the chance that a uniform shuffle leaves.
        assert account.both.lower == uniform[adversary].both.lower
        assert account.both.lower <= account.both.upper < account.randomizer.upper
    assert found["uninformed"].both.method == "crowd"
    assert found["uninformed"].both.upper < 0.37
    # Answers that travel without noise are hidden by the same crowd.
    shuffled = uniform["uninformed"].shuffler
    assert shuffled.lower == found["uninformed"].shuffler.lower
    assert shuffled.lower <= found["uninformed"].shuffler.upper < 1.001 * shuffled.upper
    assert found["strong"].shuffler.upper == 1.0
    # It is no histogram alone that is released.
    assert not any("histogram" in text for text in found["uninformed"].both.assumptions)


def test_no_rounds_hide_nothing():
    graph = random_regular_graph(300, 8, Entropy.from_seed(2))
    for protocol in ("all", "single"):
        arrangement = NetworkShuffling(mixing=NetworkMixing(graph), rounds=0, protocol=protocol)
        found = accounts(collected(shuffling=arrangement))["uninformed"]
        assert found.both.upper == pytest.approx(found.randomizer.upper, rel=1e-6)
        if protocol == "single":
            assert found.both.lower == found.prior


def test_what_cannot_be_computed_is_said(monkeypatch):
    monkeypatch.setattr("shuffledp.leakage.account.MOST_USERS", 10)
    found = leakage_of(collected())
    assert found.accounts == ()
    assert len(found.notes) == 2
    assert (
        "who knows nobody's answer could not be computed: number of users = 300 is above 10"
        in found.notes[0]
    )


def test_questions_without_a_list_of_values_have_none():
    result = sdp.run(
        sdp.plan(sdp.Mean(0, 10), num_users=200, epsilon=1.0, delta=1e-6), [5.0] * 200, seed=1
    )
    assert leakage_of(result) is None
    assert json_of_run(result) == {}


def test_json_is_plain():
    record = leakage_of(collected()).to_json_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert [each["adversary"] for each in record["accounts"]] == ["uninformed", "strong"]
    assert record["notes"] == []
