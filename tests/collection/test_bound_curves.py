import json

import pytest

from shuffledp.accounting.amplification.registry import METHODS
from shuffledp.collection.bounds import Over, Scenario, bound_curves, compare_scenario
from shuffledp.core.errors import ParameterError

ASKED = Scenario(epsilon0=1.0, num_users=1234, delta=1e-6)


@pytest.fixture(scope="module", params=list(Over))
def curves(request):
    return bound_curves(ASKED, request.param)


def test_the_scenario_is_one_of_the_points(curves):
    index = curves.positions.index(getattr(ASKED, curves.over.field))
    assert curves.points[index] == compare_scenario(ASKED, with_renyi=False)
    assert curves.here == compare_scenario(ASKED)


def test_positions_are_round_and_rise(curves):
    assert list(curves.positions) == sorted(set(curves.positions))
    ends = {Over.NUM_USERS: (1e2, 1e9), Over.EPSILON0: (0.1, 10.0)}[curves.over]
    assert (curves.positions[0], curves.positions[-1]) == ends
    assert {1e3, 2e3, 5e3} <= set(curves.positions) or {0.5, 1.0, 1.5} <= set(curves.positions)


def test_curves_are_the_useful_bounds_and_gaps_elsewhere(curves):
    for name in METHODS:
        for value, point in zip(curves.curve(name), curves.points, strict=True):
            useful = {each.method.name: each.value for each in point.useful}
            assert value == useful.get(name)
    assert None in curves.curve("erlingsson")
    assert None not in curves.curve("clones")


def test_the_lower_end_stays_below_all_curves(curves):
    for index, lower in enumerate(curves.lower_curve):
        values = [curves.curve(name)[index] for name in METHODS]
        assert lower <= min(value for value in values if value is not None)


def test_more_users_or_a_smaller_epsilon0_lower_the_curves(curves):
    clones = curves.curve("clones")
    assert list(clones) == sorted(clones, reverse=curves.over is Over.NUM_USERS)


def test_json(curves):
    record = json.loads(json.dumps(curves.to_json_dict(), allow_nan=False))
    assert record["curves"]["over"] == curves.over.field
    assert record["curves"]["positions"] == list(curves.positions)
    assert record["curves"]["bounds"]["clones"] == list(curves.curve("clones"))
    assert record["curves"]["lower"] == list(curves.lower_curve)
    assert record["bounds"] == json.loads(json.dumps(curves.here.to_json_dict()))["bounds"]


@pytest.mark.parametrize(
    ("num_users", "ends"), [(3, (1.0, 1e7)), (10**9 + 1, (1e3, 1e10)), (10**15, (1e8, 1e15))]
)
def test_decades_move_with_the_users(num_users, ends):
    asked = Scenario(epsilon0=1.0, num_users=num_users, delta=1e-6)
    positions = bound_curves(asked, Over.NUM_USERS).positions
    assert (positions[0], positions[-1]) == ends
    assert num_users in positions


def test_decades_move_with_epsilon0():
    asked = Scenario(epsilon0=0.02, num_users=100, delta=1e-6)
    positions = bound_curves(asked, Over.EPSILON0).positions
    assert (positions[0], positions[-1]) == (0.01, 1.0)
    assert 0.02 in positions


def test_deltas_of_zero_leave_gaps():
    asked = Scenario(epsilon0=1.0, num_users=100, epsilon=0.5)
    curves = bound_curves(asked, Over.EPSILON0)
    below = [position <= 0.5 for position in curves.positions]
    assert [value is None for value in curves.curve("local")] == below
    assert [value is None for value in curves.lower_curve][: sum(below)] == [True] * sum(below)


def test_an_epsilon0_of_zero_has_no_place_on_the_axis():
    asked = Scenario(epsilon0=0.0, num_users=100, delta=1e-6)
    with pytest.raises(ParameterError, match="epsilon0 = 0"):
        bound_curves(asked, Over.EPSILON0)
    assert bound_curves(asked, Over.NUM_USERS).curve("local") == (None,) * 22


def test_progress_ends_at_the_total():
    seen = []
    curves = bound_curves(ASKED, Over.EPSILON0, progress=lambda *step: seen.append(step))
    total = len(curves.points)
    assert seen == [("comparing", done, total) for done in range(total + 1)]
