"""How far dishonest users can move an estimate: by enumeration of reports, and by the attack."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import shuffledp as sdp
from collection import kinds
from collection.dummy_plans import bits_plan, plan_with
from laws_of_numbers import coarse
from shuffledp.collection.liars import DishonestUsers
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Counts, Reports
from shuffledp.network.run import NetworkShuffling
from shuffledp.randomizers import RANDOMIZERS
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.bit_sums import BitSums
from shuffledp.randomizers.number_randomizer import Duchi
from shuffledp.randomizers.parts import AllParts, SampledParts
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.report.wording import dishonest_facts

HONEST = sdp.Entropy.from_seed(5)


def values_of(estimates):
    columns = estimates.columns()
    return columns["frequency" if "frequency" in columns else "mean"]


def shifts(randomizer, reports, others, **asked):
    """Return the largest change of each estimate over pairs of one user's reports, as rows."""
    found = []
    for report in reports:
        data = np.concatenate([others, report])
        made = Reports(data=data, fingerprint=randomizer.fingerprint)
        found.append(values_of(randomizer.estimate(made, **asked)))
    return np.max(found, axis=0) - np.min(found, axis=0), np.array(found)


CATEGORIES = [
    *(make(domain_size=3, epsilon0=1.5) for make in RANDOMIZERS.values()),
]


def reports_of(randomizer):
    """Return all reports where they can be listed, else many of each category."""
    try:
        data = randomizer.report_columns().data
    except ParameterError:
        data = randomizer.randomize(np.repeat(np.arange(3), 400), HONEST).data
    return data[:, None]


@pytest.mark.parametrize("randomizer", CATEGORIES, ids=lambda each: each.name)
def test_a_report_moves_a_share_by_no_more_and_by_as_much(randomizer):
    others = randomizer.randomize(np.array([0, 1]), HONEST).data
    largest, found = shifts(randomizer, reports_of(randomizer), others)
    assert largest == pytest.approx(np.full(3, randomizer.influence / 3), rel=1e-9)
    for category in range(3):
        _, worst = shifts(randomizer, [randomizer.report_for(category)], others)
        assert worst[0, category] == pytest.approx(found[:, category].max(), rel=1e-9)


@pytest.mark.parametrize("name", ANSWER_SET_RANDOMIZERS)
def test_and_the_share_of_an_answer_of_sets(name):
    randomizer = ANSWER_SET_RANDOMIZERS[name](domain_size=3, max_answers=2, epsilon0=2.0)
    others = randomizer.randomize(np.array([[0, 1], [2, -1]]), HONEST).data
    own = np.repeat([[0, 1], [1, 2], [2, 0], [0, -1]], 200, axis=0)
    drawn = randomizer.randomize(own, HONEST).data
    worst = [randomizer.report_for(category) for category in range(3)]
    largest, found = shifts(randomizer, [*drawn[:, None], *worst], others)
    assert largest == pytest.approx(np.full(3, randomizer.influence / 3), rel=1e-9)
    assert np.diag(found[-3:]) == pytest.approx(found.max(axis=0), rel=1e-9)


@pytest.mark.parametrize(
    "randomizer",
    [
        Duchi(low=0, high=10, epsilon0=1.0),
        coarse(4)(low=-5, high=5, epsilon0=2.0),
    ],
    ids=lambda each: each.name,
)
def test_and_a_mean(randomizer):
    others = randomizer.randomize(np.array([0.0, 1.0, 2.0]), HONEST).data
    every = np.arange(randomizer.law.num_outputs, dtype=others.dtype)[:, None]
    largest, found = shifts(randomizer, every, others)
    assert largest == pytest.approx([randomizer.influence / 4], rel=1e-9)
    _, worst = shifts(randomizer, [randomizer.report_for(0)], others)
    assert worst[0, 0] == found.max()


def test_and_each_coordinate_of_a_vector():
    randomizer = PrivUnit(dimension=3, epsilon0=3.0, norm_bound=2.0)
    others = randomizer.randomize(np.zeros((4, 3)), HONEST).data
    drawn = randomizer.randomize(np.zeros((500, 3)), HONEST).data * np.float32(1.0009)
    ends = [sign * randomizer.report_for(each) for each in range(3) for sign in (1, -1)]
    largest, found = shifts(randomizer, [*drawn[:, None], *ends], others)
    assert largest == pytest.approx(np.full(3, randomizer.influence / 5), rel=1e-6)
    assert (largest <= randomizer.influence / 5 * (1 + 1e-12)).all()
    assert found[500::2].diagonal() == pytest.approx(found.max(axis=0), rel=1e-9)


@pytest.mark.parametrize("epsilon0", [2.0, math.inf])
def test_and_a_sum_of_bits_by_one_message_at_each_level(epsilon0):
    randomizer = BitSums(low=0, high=7, epsilon0=epsilon0, num_bits=3)
    others = randomizer.randomize(np.array([1.0, 5.0]), HONEST).data
    every = [
        np.array([2 * b + bit for b, bit in enumerate(bits)], dtype=np.uint8)
        for bits in itertools.product([0, 1], repeat=3)
    ]
    largest, found = shifts(randomizer, every, others)
    assert largest == pytest.approx([randomizer.influence / 3], rel=1e-9)
    if math.isinf(epsilon0):
        assert randomizer.influence == pytest.approx(7.0)  # the range
    _, worst = shifts(randomizer, [randomizer.report_for(0)], others)
    assert worst[0, 0] == found.max()


def test_and_a_bin_of_all_parts():
    randomizer = AllParts(sizes=(2, 3), epsilon0=3.0)
    others = randomizer.randomize(np.array([[0, 1], [1, 2]]), HONEST).data
    every = [np.array(pair, others.dtype) for pair in itertools.product([0, 1], [2, 3, 4])]
    largest, found = shifts(randomizer, every, others)
    assert largest == pytest.approx(randomizer.shift_by_one(3), rel=1e-9)
    worst = [randomizer.report_for(place) for place in range(5)]
    _, moved = shifts(randomizer, worst, others)
    assert moved.diagonal() == pytest.approx(found.max(axis=0), rel=1e-9)


@pytest.mark.parametrize("num_dishonest", [1, 2])
def test_and_a_bin_of_a_part_that_users_draw(num_dishonest):
    # All tables of six reports, and all that may have been had the liars been honest.
    randomizer = SampledParts(sizes=(2, 3), epsilon0=1.0)
    tables = [t for t in itertools.product(range(7), repeat=5) if sum(t) == 6]
    tables = [t for t in tables if sum(t[:2]) and sum(t[2:])]
    counts = [
        Counts(support=np.array(t), num_reports=6, fingerprint=randomizer.fingerprint)
        for t in tables
    ]
    shares = np.array([randomizer.estimate(each).frequency for each in counts])
    tables = np.array(tables)
    for table, share, made in zip(tables[::7], shares[::7], counts[::7], strict=True):
        is_near = np.abs(tables - table).sum(axis=1) <= 2 * num_dishonest
        largest = np.abs(shares[is_near] - share).max(axis=0)
        bound = num_dishonest * randomizer.shift_by_one(6, made)
        assert (largest <= bound * (1 + 1e-9)).all()
        of_part = np.repeat([table[:2].sum(), table[2:].sum()], [2, 3])
        is_reached = np.maximum(table, of_part - table) >= num_dishonest
        assert largest[is_reached] == pytest.approx(bound[is_reached], rel=1e-9)


def test_consistent_tables_may_move_further_and_pages_say_so():
    domains = {name: ["0", "1"] for name in "abc"}
    asked = sdp.Columns(domains, pairs=[("a", "b"), ("a", "c")])
    law = SampledParts(sizes=asked.sizes, epsilon0=1.0)
    # A user who drew the pair (a, b) and would be alone with a = 1 reports on (a, c) instead.
    found = []
    for support in ([20, 0, 1, 0, 20, 0, 0, 0], [20, 0, 0, 0, 20, 1, 0, 0]):
        made = Counts(support=np.array(support), num_reports=41, fingerprint=law.fingerprint)
        bound = asked.shift_by_one(law, 41, made)[-3]
        ways = (EstimateOptions(post_processing=each) for each in ((), ("consistent",)))
        found.append([asked.estimate(law, made, way).frequency[-3] for way in ways])
    plain, consistent = abs(np.diff(found, axis=0)[0])
    assert plain == pytest.approx(bound)
    assert consistent == pytest.approx(1.25 * bound)
    survey = kinds.KINDS["columns"]
    plan = sdp.plan(survey.question, num_users=kinds.NUM_USERS, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, survey.values, seed=3, post_processing=["consistent"])
    assert "before post-processing" in " ".join(str(result).split())


def test_parts_are_planned_as_if_drawn_alike():
    randomizer = SampledParts(sizes=(2, 2), epsilon0=1.0)
    equal = Counts(
        support=np.array([5, 5, 2, 8]), num_reports=20, fingerprint=randomizer.fingerprint
    )
    assert randomizer.shift_by_one(20).tolist() == randomizer.shift_by_one(20, equal).tolist()


# --------------------------------------------------------------------- plans, results, attacks
# A group's mean shifts the more, the smaller it is: tests/collection/test_mean_by_group.py.
@pytest.mark.parametrize("kind", sorted(kinds.KINDS.keys() - {"mean-by-group"}))
def test_simulated_liars_stay_below_the_bound_and_come_near(kind):
    survey = kinds.KINDS[kind]
    plan = sdp.plan(survey.question, num_users=kinds.NUM_USERS, epsilon=1.0, delta=1e-6)
    result = sdp.run(plan, survey.values, seed=3, dishonest=60)
    bound = result.largest_shift(60)[0]
    assert 0.3 * bound < result.attack.shift <= bound
    assert bound == pytest.approx(plan.largest_shift(60)[0])
    assert result.attack.label == survey.question.labels[0]
    assert result.is_simulation
    shown = result.to_json_dict()["dishonest"]
    assert shown["num_dishonest"] == 60
    assert shown["largest_shift"] == pytest.approx(bound)
    assert shown["attack"] == {"label": result.attack.label, "shift": result.attack.shift}
    assert "60 of 1,200 can move an estimate by up to" in str(result)
    assert "here they moved" in str(result)


@pytest.mark.parametrize("planned", [plan_with, bits_plan])
def test_liars_among_dummies_send_one_report_for_each_level(planned):
    plan = planned()
    values = ["a", "b"] * 500 if planned is plan_with else np.linspace(0, 120, 1000)
    if planned is bits_plan:
        values = np.linspace(plan.question.low, plan.question.high, 1000)
    result = sdp.run(plan, values, seed=1, dishonest=100)
    bound = result.largest_shift(100)[0]
    assert 0.3 * bound < result.attack.shift <= bound * (1 + 1e-9)


def test_an_attack_changes_the_reports_of_as_many_users_and_no_others():
    question = sdp.Categories(["a", "b", "c"])
    law = RANDOMIZERS["optimized-unary"](domain_size=3, epsilon0=1.0)
    codes = np.arange(900) % 3
    honest = law.randomize(codes, sdp.Entropy.from_seed(1)).data
    lying = DishonestUsers(question, law, 40, num_users=900, seed=1)
    entropy = sdp.Entropy.from_seed(1)
    made = np.concatenate([lying.randomize(block, entropy).data for block in (codes,)])
    changed = (made != honest).any(axis=1)
    assert 0 < changed.sum() <= 40
    assert (made[changed] == law.report_for(0)).all()
    blocks = DishonestUsers(question, law, 40, num_users=900, seed=1)
    drawn = [blocks.randomize(each, HONEST).data for each in (codes[:500], codes[500:])]
    is_lie = (np.concatenate(drawn) == law.report_for(0)).all(axis=1)
    assert is_lie[changed].all()


def test_without_liars_nothing_changes():
    plan = sdp.plan(sdp.Categories(["a", "b"]), num_users=200, epsilon=1.0, delta=1e-6)
    values = ["a", "b"] * 100
    plain, none = sdp.run(plan, values, seed=1), sdp.run(plan, values, seed=1, dishonest=0)
    assert plain.to_json_dict() == none.to_json_dict()
    assert plain.attack is None
    assert plain.num_dishonest == 2  # one of 100
    assert plan.largest_shift(0).tolist() == [0.0, 0.0]


def test_of_users_dummies_all_that_a_device_may_send_count():
    # All of n devices' S records for one answer, or none of theirs: T_j - M / k moves by S.
    plan = plan_with("poisson:0.05")
    records = plan.dummies[0].rare_number(3)
    assert plan.largest_shift(2).tolist() == pytest.approx([2 * records / 1000] * 3)
    law = plan.randomizer
    own = np.array([300, 300, 400 - 1])
    found = []
    for more in ([records, 0, 0], [0, records, 0], [0, 0, records], [1, 0, 0]):
        counts = Counts(
            support=own + more, num_reports=999 + sum(more), fingerprint=law.fingerprint
        )
        told = counts.less_dummies(plan.dummies[0], num_users=1000)
        found.append(law.estimate(told).frequency[0])
    assert max(found) - min(found) == pytest.approx(plan.largest_shift(1)[0])


def test_of_peers_in_a_simulation_no_limit_is_known():
    shuffling = SimpleNamespace(most_records=NetworkShuffling.most_records)
    plan = dataclasses.replace(plan_with("poisson:0.05"), shuffling=shuffling, _proved=())
    assert math.isinf(plan.most_shifted)
    assert plan.largest_shift(0).tolist() == [0.0] * 3
    assert "no limit is known" in str(dict(dishonest_facts(plan)))


def test_a_randomizer_that_does_not_say_has_no_limit():
    class Own:
        pass

    assert math.isinf(sdp.Categories(["a", "b"]).shift_by_one(Own(), 10))


def test_reports_that_say_nothing_have_no_limit():
    law = RANDOMIZERS["k-rr"](domain_size=2, epsilon0=0.0)
    assert math.isinf(law.influence)
    assert math.isinf(Duchi(low=0, high=1, epsilon0=0.0).influence)


def test_bad_numbers_name_what_to_do():
    question = sdp.Categories(["a", "b"])
    how = {"num_users": 100, "epsilon": 1.0, "delta": 1e-6}
    for wrong in (-1, 101, 2.5, True):
        with pytest.raises(ParameterError, match="dishonest = "):
            sdp.plan(question, dishonest=wrong, **how)
    plan = sdp.plan(question, dishonest=7, **how)
    assert plan.num_dishonest == 7
    with pytest.raises(ParameterError, match=r"seed=\.\.\..*largest_shift\(7\)"):
        sdp.run(plan, ["a", "b"] * 50, dishonest=7)
    with pytest.raises(ParameterError, match="dishonest = 101 is above 100"):
        sdp.run(plan, ["a", "b"] * 50, dishonest=101, seed=1)


def test_an_estimate_states_it_for_as_many():
    plan = sdp.plan(sdp.Categories(["a", "b"]), num_users=100, epsilon=1.0, delta=1e-6)
    reports = plan.randomizer.randomize(np.arange(100) % 2, HONEST)
    found = sdp.estimate(reports, plan, dishonest=5)
    assert found.attack is None
    assert found.most_shifted == pytest.approx(5 / 100 * plan.randomizer.influence)
    assert "5 of 100 can move" in str(found)
