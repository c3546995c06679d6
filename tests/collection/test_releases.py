"""Plans and results compose, as what they release."""

import pandas as pd
import pytest

import shuffledp as sdp
from shuffledp import groups
from shuffledp.core.errors import PlanWarning

ANSWERS = ["yes", "no"]
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def planned(**how):
    return sdp.plan(sdp.Categories(ANSWERS), num_users=1_000, **{**TARGET, **how})


def test_a_uniform_shuffle_keeps_its_law():
    plan = planned()
    law = sdp.ShuffledRelease(profile=plan.randomizer.profile, num_users=1_000)
    assert plan.release() == law
    twice = (plan.release() * 2).epsilon(delta=1e-6).upper
    stated = sdp.StatedRelease(**TARGET) * 2
    assert 1.0 < twice < stated.epsilon(delta=2e-6).upper


def test_a_result_is_released_for_the_users_that_there_were():
    with pytest.warns(PlanWarning):
        result = sdp.run(planned(), ANSWERS * 50, seed=1)
    assert result.release().num_users == 100


def test_dummies_of_a_shuffler_need_one_user():
    plan = planned(dummies="shuffler", max_epsilon0=2.0)
    assert (plan.release().num_users, plan.release().dummies) == (1, plan.dummies[0])


def test_rounds_and_other_shuffles_are_what_they_state():
    houses = [user // 4 for user in range(100)]
    near = groups.Groups.from_distance(houses, radius=1, metric="absolute")
    shuffler = groups.MallowsShuffler.for_groups(near, alpha=4, distance="hamming")
    within = groups.GroupShuffling(shuffler=shuffler)
    for plan in (
        planned(rounds=3),
        sdp.plan(
            sdp.Categories(ANSWERS), num_users=100, epsilon0=1.0, delta=1e-3, shuffling=within
        ),
    ):
        made = plan.release()
        assert made == sdp.StatedRelease(
            epsilon=plan.guarantee.epsilon_upper, delta=plan.guarantee.delta_upper
        )


def test_an_error_names_the_series():
    answers = pd.Series(["yes", "maybe"], name="smokes")
    with pytest.raises(sdp.ShuffledpError, match="column 'smokes' of values"):
        sdp.run(planned(), answers, seed=1)
