"""Rounds of a search as tasks: what leads from one to the next, and what a device keeps."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import shuffledp as sdp
from deploy.make_vectors import ANALYZER_KEY, make_task
from deploy.roles import SHUFFLER_KEY, at
from shuffledp.collection.questions.rounds import Search
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.analyzer import Opened, batch_facts, result_of
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.client import Client, Limits, default_store, fleet_turns
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import ProtocolError

NUM_USERS = 3_000
ASKED = sdp.HeavyHitters(max_bytes=3, most=12, bits=8, search=Search("0" * 32))
COUNTS = ("released", "held", "repeated", "unopened", "invalid", "kept", "earlier")


def task_of(asked=ASKED, **changes):
    """Return a task of a search's round."""
    terms = AskedTerms.of(asked, "k-rr", 7.0)
    fields = {"num_epochs": 1, "min_batch": NUM_USERS, "honest_ppm": 1_000_000}
    return make_task(**fields | {"asked": terms, "epsilon": "2", "delta": "1e-6"} | changes)


FIRST = task_of()


def result_in(task, texts, turns, entropy, *, num_liars=0):
    """Return the result of a round that all these devices send in, as JSON.

    The first of them are liars, who take part in every round, for the text "!".
    """
    question = task.asked.question
    drawn = task.asked.randomizer.randomize(question.round_codes(texts, turns), entropy)
    data = drawn.data.copy()
    data[:num_liars] = 1, question.round_codes(np.array([b"!"], dtype="S3"))[0]
    sent = task.asked.codec.encode(replace(drawn, data=data))
    opened = Opened(
        number=1,
        root=bytes(32),
        reports=task.asked.codec.decode_valid(sent)[0],
        guarantee=task.guarantee(),
        counts={f"num_{name}": 0 for name in COUNTS},
        num_honest=task.num_honest,
    )
    found = result_of(task, opened)
    facts = {"parameters": batch_facts(task, opened)}
    return found, json.loads(json.dumps(found.to_json_dict() | facts))


def searched(*, num_liars=0):
    """Return the tasks of a search, and the result of each, as an object and in JSON."""
    texts = np.array(["one", "日", "xy"] * (NUM_USERS // 3))
    texts = np.array([each.encode() for each in texts], dtype="S3")
    entropy = Entropy.from_seed(3)
    turns = draw_below(entropy.spawn(), NUM_USERS, ASKED.num_rounds)
    tasks, results = [FIRST], []
    while True:
        how = {"num_liars": num_liars}
        results.append(result_in(tasks[-1], texts, turns, entropy.spawn(), **how))
        if not results[-1][1]["discovery"].get("left"):
            return tasks, results
        tasks.append(tasks[-1].after(results[-1][1], start=tasks[-1].start + 1))


@pytest.fixture(scope="module")
def search():
    """A search among honest devices."""
    return searched()


def test_noise_alone_rarely_reaches_the_least_count_of_the_last_round(search):
    _, result = search[1][-1]
    last = result["discovery"]["rounds"][-1]
    _, q = FIRST.asked.randomizer.base.support_probabilities
    assert binom.sf(last["least_count"] - 1, last["num_users"], q) * last["num_bins"] <= 0.05


def test_liars_who_take_part_in_every_round_force_a_text_with_few(search):
    enough = search[1][-1][0].dishonest_prospects["forced_by"]
    law = FIRST.asked.randomizer
    assert enough <= max(ASKED.forcing(law, NUM_USERS, ())) < enough + 3
    found, _ = searched(num_liars=enough)[1][-1]
    assert "!" in found.domain
    few, _ = searched(num_liars=enough // 3)[1][-1]  # the negative control
    assert "!" not in few.domain


def test_the_last_result_has_the_texts_and_all_rounds(search):
    tasks, results = search
    assert [each.round for each in tasks] == [1, 2, 3]
    found, record = results[-1]
    assert set(found.domain) == {"one", "日", "xy"}
    assert np.all(np.abs(found.estimates.frequency - 1 / 3) < 7 * found.estimates.standard_error)
    assert sum(each["num_users"] for each in record["discovery"]["rounds"]) == NUM_USERS
    assert record["num_users"] == NUM_USERS
    assert found.estimates.discovery.found_share < 0.05
    assert any("sends in every round" in each for each in found.guarantee.bound.assumptions)
    assert "not yet texts" in str(results[0][0])
    # What may crowd a text out in rounds to come is unknown.
    first, last = (" ".join(str(each[0]).split()) for each in (results[0], results[-1]))
    assert "0.95 at least, unless too many prefixes have more" in first
    assert "unless too many" not in last


def test_each_round_states_the_guarantee_of_the_whole_search(search):
    whole = sdp.HeavyHitters(max_bytes=3, most=12, bits=8)
    plan = sdp.plan(whole, num_users=NUM_USERS, epsilon0=7.0, delta=1e-6, randomizer="k-rr")
    for task, (found, _) in zip(*search, strict=True):
        task.check()
        assert Task.decode(task.encode()) == task
        assert task.guarantee().epsilon_upper == pytest.approx(plan.guarantee.epsilon_upper)
        assert found.guarantee.epsilon_upper == pytest.approx(plan.guarantee.epsilon_upper)
    one_round = FIRST.asked.randomizer.profile
    # A third of the devices, of which it were known that they answer this round, hide less.
    known = sdp.account(one_round, num_users=NUM_USERS // 3, delta=1e-6)
    assert known.epsilon_upper > 1.2 * plan.guarantee.epsilon_upper


def test_a_larger_batch_of_one_round_proves_no_more_of_all_rounds():
    """Only devices that send in every round count, and another round may be the smallest batch."""
    least = FIRST.guarantee()
    assert FIRST.guarantee(2 * NUM_USERS) == least
    assert FIRST.guarantee(NUM_USERS // 2).epsilon_upper > least.epsilon_upper


def test_a_device_cannot_be_told_by_the_size_of_its_reports():
    codec, law = FIRST.asked.codec, FIRST.asked.randomizer
    both = law.randomize(np.array([0, law.domain_size]), Entropy.from_seed(1))
    assert [len(each) for each in codec.encode(both)] == [codec.num_report_bytes] * 2
    assert both.data[0, 0] == 1
    assert both.data[1].tolist() == [0, 0]


def test_every_other_spelling_of_a_report_is_invalid():
    codec = FIRST.asked.codec
    wrong = [b"\2\0\0\0", b"\0\0\1\0", b"\1\0\xff\xff"]  # what part, and of which bin
    assert codec.decode_valid([b"\0\0\0\0", b"\1\0\1\0", *wrong])[1] == 3


def test_wrong_order(search):
    tasks, results = search
    with pytest.raises(DataError, match=r"is of task .*round 2: give the folder"):
        tasks[1].after(results[0][1])
    with pytest.raises(DataError, match="over after round 3 of 3"):
        tasks[2].after(results[2][1])
    with pytest.raises(DataError, match="is no round of a search"):
        make_task().after(results[0][1])
    for record in ({}, [], {"parameters": {"task_id": "a"}, "discovery": {}}):
        with pytest.raises(DataError, match="no result of a search's round"):
            FIRST.after(record)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"left": 5}, "no result of a search's round"),
        ({"left": ["6f60", None]}, "no result of a search's round"),
        ({"left": ["6f6x"]}, "no result of a search's round"),
        ({"left": ["6f60"]}, "result was changed"),
        ({"rounds": []}, "result was changed"),
        ({"rounds": 2}, "result was changed"),
    ],
)
def test_a_result_that_was_changed_is_refused(search, changed, message):
    tasks, results = search
    record = json.loads(json.dumps(results[1][1]))
    if changed.get("rounds"):
        record["discovery"]["rounds"][0]["num_users"] += 1
    else:
        record["discovery"] |= changed
    with pytest.raises(DataError, match=message):
        tasks[1].after(record)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ((), "left has 0 prefixes"),
        (("6f6", "6f70"), "bytes|decode"),
        (("6f7161",), "1 prefixes, not 1 to most = 12 of 2 bytes"),
        (("ff70",), "decode"),
        (("6fe6", "6ff0"), "no beginning of a text of up to max_bytes = 3"),
        (("6f70", "6f70"), "twice"),
    ],
)
def test_prefixes_with_which_no_text_begins(search, left, words):
    done = search[0][1].asked.search.done
    with pytest.raises((ParameterError, ValueError), match=f"{words}|hexadecimal"):
        replace(ASKED, search=Search("0" * 32, left=left, done=done))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_epochs": 2}, "num_epochs = 2 parts the devices"),
        ({"min_batch": 299}, "too small for 3 rounds of 100"),
        ({"honest_ppm": 7_000}, "give min_batch = 42,858"),  # 300 / 0.007 = 42,857.1
    ],
)
def test_tasks_whose_devices_would_not_hide_each_other(changes, words):
    with pytest.raises(ParameterError, match=words):
        task_of(**changes)


# ---------------------------------------------------------------- devices
def answered(client, text, seed):
    """Return whether a device takes part in a round."""
    kept = client.report(text, at(0), entropy=Entropy.from_seed(seed))
    assert len(kept.report) == client.task.asked.codec.num_report_bytes
    client.done(Answer.ACCEPTED)
    return kept.report[0] == 1


def test_a_device_takes_part_in_one_round_that_it_drew_before(search, tmp_path):
    drawn = []
    for seed in range(15):
        store = tmp_path / f"{seed}.db"
        parts = []
        for task in search[0]:
            with Client(replace(task, start=FIRST.start), store) as client:
                assert client.num_missed == 0
                parts.append(answered(client, "one", seed))
            with Client(replace(task, start=FIRST.start), store) as client:  # the same one again
                assert client.is_done
                assert client.report("xy", at(0)) == client.kept()
        assert sum(parts) == 1
        drawn.append(parts.index(True))
    assert set(drawn) == {0, 1, 2}  # of 15; seeds are fixed


def test_a_device_without_its_store_or_at_another_promise_does_not_join(search, tmp_path):
    second = search[0][1]
    with pytest.raises(DataError, match="did not answer round 1, or lost its store"):
        Client(second, tmp_path / "new.db")
    with Client(FIRST, tmp_path / "a.db") as client:
        answered(client, "one", 1)
    for changes in ({"epsilon": "2.1"}, {"min_batch": NUM_USERS + 1}, {"delta": "2e-6"}):
        with pytest.raises(DataError, match="other terms"):
            Client(replace(second, **changes), tmp_path / "a.db")
    assert default_store(second) == default_store(FIRST)
    assert default_store(replace(second, epsilon="2.1")) != default_store(FIRST)


def test_a_round_that_is_missed_is_said_and_one_in_two_tasks_refused(search, tmp_path):
    _, second, third = (replace(each, start=FIRST.start) for each in search[0])
    with Client(FIRST, tmp_path / "a.db") as client:
        answered(client, "one", 1)
    with Client(third, tmp_path / "a.db") as client:
        assert client.num_missed == 1
        answered(client, "one", 1)
    with Client(third, tmp_path / "a.db") as client:
        keys = {"shuffler": SHUFFLER_KEY, "analyzer": ANALYZER_KEY}
        assert client.sealed(**keys)[:16] == client.kept().report_id
    with pytest.raises(DataError, match="was answered here in another task"):
        Client(replace(third, info="once more"), tmp_path / "a.db")
    with Client(second, tmp_path / "a.db") as client:
        assert client.num_missed == 0


def test_a_late_report_is_in_no_round(search, tmp_path):
    second = replace(search[0][1], start=FIRST.start)
    with Client(FIRST, tmp_path / "a.db") as client:
        client.report("one", at(0))
        client.done(Answer.LATE)
    with Client(second, tmp_path / "a.db") as client:
        assert client.num_missed == 1


def test_a_long_text_is_another(search, tmp_path):
    with Client(FIRST, tmp_path / "a.db") as client:
        answered(client, "far too long", 2)  # and the device sends as everybody


def test_a_simulated_fleet_draws_once(search, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(DataError, match="no secret of a fleet"):
        fleet_turns(search[0][1], 50)
    turns = fleet_turns(FIRST, 50)
    assert np.array_equal(turns, fleet_turns(search[0][2], 50))
    assert set(turns.tolist()) == {0, 1, 2}  # but once in 10^8 runs


# ---------------------------------------------------------------- among a shuffler's dummies
@pytest.fixture(scope="module")
def among_dummies():
    """A plan among dummies, and the task of its first round."""
    how = {"epsilon": 4.0, "delta": 1e-6, "dummies": "shuffler", "max_epsilon0": 8.0}
    whole = sdp.HeavyHitters(max_bytes=2, most=2, bits=8)
    plan = sdp.plan(whole, num_users=NUM_USERS, **how)
    asked = replace(plan.question, search=Search("1" * 32, is_for_all=True))
    terms = AskedTerms.of(asked, "k-rr", plan.asked_epsilon0)
    fields = {"min_batch": 1, "num_epochs": 1, "epsilon": "4", "delta": "1e-6"}
    return plan, make_task(asked=terms, dummies=plan.dummies[0], **fields)


def test_every_round_states_all_rounds_among_dummies(among_dummies, tmp_path):
    plan, task = among_dummies
    task.check()
    assert Task.decode(task.encode()) == task
    found, rounds = task.guarantee(), task.asked.rounds
    assert found.rounds == rounds == plan.question.num_rounds > 1
    assert found.epsilon_upper == pytest.approx(plan.guarantee.epsilon_upper, rel=1e-6)
    one = task.release(1)
    assert (one * rounds).delta(4.0).upper <= 1e-6 < (one * (2 * rounds)).delta(4.0).upper
    alone = task.without_dummies(NUM_USERS)
    assert alone.epsilon_upper == pytest.approx(plan.without_dummies.epsilon_upper, rel=1e-6)
    assert found.lower is alone.lower is None  # later rounds may not tell two texts apart
    loss = rounds * task.asked.randomizer.epsilon0
    assert "in each of" in dict(task.asked.facts())["your report"]
    with pytest.raises(ProtocolError, match="the limits are"):
        Client(task, tmp_path / "a.db", limits=Limits(max_epsilon0=0.99 * loss))
    Client(task, tmp_path / "a.db", limits=Limits(max_epsilon0=1.01 * loss)).close()
    assert task.collection_id == task.task_id


def test_a_lower_promise_than_that_of_all_rounds_is_refused(among_dummies):
    _, task = among_dummies
    with pytest.raises(ProtocolError, match="what is proved is"):
        replace(task, epsilon="3.5").check()


def test_a_device_answers_every_round_among_dummies(among_dummies, tmp_path):
    _, task = among_dummies
    with Client(task, tmp_path / "a.db") as client:
        kept = client.report("ab", at(0), entropy=Entropy.from_seed(1))
        assert len(kept.report) == task.asked.codec.num_report_bytes < 4
        assert client.num_missed == 0
    texts = np.array([b"ab"] * NUM_USERS, dtype="S2")
    found = task
    while True:
        asked, entropy = found.asked, Entropy.from_seed(found.round)
        sent = asked.codec.encode(
            asked.randomizer.randomize(asked.question.round_codes(texts), entropy)
        )
        made = asked.dummies(found.dummies, entropy)
        opened = Opened(
            number=1,
            root=bytes(32),
            reports=asked.codec.decode_valid([*sent, *made])[0],
            guarantee=found.guarantee(),
            counts={f"num_{name}": 0 for name in COUNTS},
            num_honest=1,
            num_dummies=len(made),
            num_draws=1,
        )
        result = result_of(found, opened)
        record = result.to_json_dict() | {"parameters": batch_facts(found, opened)}
        record = json.loads(json.dumps(record))
        if not record["discovery"].get("left"):
            break
        found = found.after(record)
        Client(found, tmp_path / f"{found.round}.db").close()  # each a task of its own
    assert result.domain == ("ab",)
    assert [each["num_users"] for each in record["discovery"]["rounds"]] == [
        NUM_USERS
    ] * found.round
    assert result.without_shuffler.epsilon0 == pytest.approx(
        task.asked.rounds * task.asked.randomizer.epsilon0
    )


@pytest.mark.parametrize("law", [None, "poisson:0.001"])
def test_who_answers_which_rounds_follows_from_the_dummies(among_dummies, law):
    _, task = among_dummies
    other = None if law is None else DummyLaw.from_text(law)
    with pytest.raises(ParameterError, match="do not go with this search"):
        replace(task, dummies=other)
    with pytest.raises(ParameterError, match="do not go with this search"):
        replace(FIRST, dummies=task.dummies)
