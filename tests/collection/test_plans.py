"""Plans at many settings: the same as one at a time, as a table."""

import math

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.core.errors import InfeasibleTargetError, ParameterError

QUESTION = sdp.Categories(["yes", "no", "refused"])
TARGET = {"num_users": 1000, "epsilon": 1.0, "delta": 1e-6, "randomizer": "k-rr"}


def test_arrays_give_a_table_with_the_plan_of_each_element():
    users = [1e3, 5e3]  # as np.logspace returns them
    arrays = {"num_users": users, "epsilon": np.array([[0.5], [1.0]])}
    table = sdp.plan(QUESTION, **TARGET | arrays)
    pairs = [(1000, 0.5), (5000, 0.5), (1000, 1.0), (5000, 1.0)]
    alone = [sdp.plan(QUESTION, **TARGET | {"num_users": n, "epsilon": each}) for n, each in pairs]
    assert len(table) == 4
    assert [each.to_json_dict() for each in table.rows] == [each.to_json_dict() for each in alone]
    columns = table.to_dict()
    assert [*zip(columns["num_users"], columns["epsilon"], strict=True)] == pairs
    assert columns["randomizer"] == [each.randomizer.name for each in alone]
    assert columns["epsilon0"] == [each.randomizer.epsilon0 for each in alone]
    assert columns["epsilon_upper"] == [each.guarantee.epsilon_upper for each in alone]
    assert columns["expected_standard_error"] == [each.expected_standard_error for each in alone]
    assert table.to_pandas().to_dict("list") == columns


@pytest.mark.parametrize(
    "arrays",
    [
        {"delta": [1e-6, 1e-8]},
        {"max_epsilon0": (1.0, 2.0)},
        {"epsilon0": [1.0, 2.0], "epsilon": None},
        {"rounds": range(1, 3)},
        {"most_dummies": [10**6, 10**7], "max_epsilon0": 4.0, "dummies": "shuffler"},
        {"frequency": [0.1, 0.5]},
        {"dishonest": [1, 10]},
    ],
)
def test_every_number_may_be_an_array(arrays):
    name = next(iter(arrays))
    rows = sdp.plan(QUESTION, **TARGET | arrays).rows
    alone = [sdp.plan(QUESTION, **TARGET | arrays | {name: each}) for each in arrays[name]]
    assert [each.to_json_dict() for each in rows] == [each.to_json_dict() for each in alone]


def test_numbers_alone_give_a_plan():
    for number in (np.int64(1000), np.array(1000), 1000):
        assert isinstance(sdp.plan(QUESTION, **TARGET | {"num_users": number}), sdp.Plan)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"num_users": []}, "num_users: arrays that hold nothing"),
        ({"num_users": [1000, math.nan]}, "num_users = nan is not a whole number"),
        ({"num_users": [1000, 0]}, "num_users = 0 is below 1"),
        ({"num_users": [1000.5]}, "num_users = 1000.5 is not a whole number"),
        ({"num_users": "1000"}, "num_users = '1000' is not a whole number"),
        ({"num_users": ["1000", "many"]}, "num_users = '1000' is not a whole number"),
        ({"num_users": [1000, None]}, "num_users = None is not a whole number"),
        ({"epsilon": [1.0, math.nan]}, "epsilon = nan is not in"),
        ({"delta": ["tiny"]}, "delta = 'tiny' is not a number"),
        ({"num_users": [1, 2], "epsilon": [1, 2, 3]}, "arrays that do not go together"),
    ],
)
def test_arrays_that_do_not_do_are_named(arrays, message):
    with pytest.raises(ParameterError, match=message):
        sdp.plan(QUESTION, **TARGET | arrays)


def test_too_few_users_are_named():
    with pytest.raises(InfeasibleTargetError, match="num_users = 2 "):
        sdp.plan(QUESTION, num_users=[1000, 2], epsilon=0.5, delta=1e-9)


def test_what_plan_does_not_take_is_named():
    with pytest.raises(TypeError, match=r"plan\(\) got an unexpected keyword argument 'users'"):
        sdp.plan(QUESTION, users=[1000], **TARGET)
    with pytest.raises(TypeError, match=r"plan\(\) missing .* 'delta'"):
        sdp.plan(QUESTION, num_users=[1000], epsilon=1.0)
