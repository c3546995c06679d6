"""Plans for several rounds: all of them together meet the target, and one run says so."""

import pytest

from shuffledp import accounting
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.questions import Categories, Mean
from shuffledp.collection.run import run as run_plan
from shuffledp.core.errors import InfeasibleTargetError, ParameterError

YES_OR_NO = ["yes", "no"]


@pytest.fixture(scope="module")
def plan():
    return make_plan(
        Categories(YES_OR_NO), num_users=2000, epsilon=1.0, delta=1e-6, randomizer="k-rr", rounds=12
    )


def test_all_rounds_together_meet_the_target(plan):
    release = accounting.ShuffledRelease(profile=plan.randomizer.profile, num_users=2000)
    assert plan.guarantee.bound == (release * 12).epsilon(1e-6)
    assert 0.98 < plan.guarantee.epsilon_upper <= 1.0
    assert plan.guarantee.rounds == plan.rounds == 12
    assert plan.to_json_dict()["rounds"] == 12


def test_more_rounds_need_more_noise(plan):
    once = make_plan(
        Categories(YES_OR_NO), num_users=2000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )
    assert once.rounds == 1
    assert plan.randomizer.epsilon0 < once.randomizer.epsilon0
    assert plan.expected_standard_error > once.expected_standard_error


def test_the_other_models_share_epsilon_among_rounds(plan):
    assert plan.local_model.epsilon_for_same_error == pytest.approx(12 * plan.randomizer.epsilon0)
    once = make_plan(
        Categories(YES_OR_NO), num_users=2000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )
    assert plan.central_model.standard_error_at_same_epsilon == pytest.approx(
        12 * once.central_model.standard_error_at_same_epsilon
    )


def test_one_run_has_its_own_guarantee_and_names_that_of_all(plan):
    result = run_plan(plan, ["yes"] * 500 + ["no"] * 1500, seed=5)
    assert result.guarantee.rounds == 1
    assert result.guarantee.epsilon_upper < plan.guarantee.epsilon_upper / 2.0
    (sentence,) = [text for text in result.warnings if "12 planned rounds" in text]
    assert "above" not in sentence


def test_fewer_users_than_planned_are_told(plan):
    result = run_plan(plan, ["yes"] * 250 + ["no"] * 750, seed=5)
    (sentence,) = [text for text in result.warnings if "12 planned rounds" in text]
    assert "above the 1 planned, since 2,000 users were planned and 1,000 answered" in sentence


def test_means_are_repeated_too():
    plan = make_plan(
        Mean(0.0, 120.0), num_users=5000, epsilon=1.0, delta=1e-6, randomizer="duchi", rounds=3
    )
    assert plan.rounds == 3
    assert plan.guarantee.epsilon_upper <= 1.0


def test_too_many_rounds_for_so_few_users():
    with pytest.raises(InfeasibleTargetError, match="in 400 rounds: the noise"):
        make_plan(
            Categories(YES_OR_NO),
            num_users=20,
            epsilon=0.1,
            delta=1e-6,
            randomizer="k-rr",
            rounds=400,
        )


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "3"])
def test_rounds_are_a_count(rounds):
    with pytest.raises(ParameterError, match="rounds"):
        make_plan(Categories(YES_OR_NO), num_users=20, epsilon=1.0, delta=1e-6, rounds=rounds)
