import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.histories.history_scenarios import NEVER, SCENARIOS, scenario_of

# Shares of 40,000 users are compared with wide margins: one is off by 0.02 with probability below
# 2 exp(-2 * 40000 * 0.02^2) = 3e-14 (Hoeffding); there are about a dozen.
FALSE_POSITIVE_RATE = 1e-9

_NUM_USERS = 40_000


def drawn(name: str, periods: int, num_users: int = _NUM_USERS, seed: int = 1):
    return scenario_of(name).draw(Entropy.from_seed(seed).generator(), num_users, periods)


def states(times: np.ndarray, periods: int) -> np.ndarray:
    """Whether each user is on, in each period: changes so far, modulo 2."""
    return np.array([(times <= t).sum(axis=1) % 2 for t in range(1, periods + 1)])


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("periods", [1, 2, 3, 7, 365])
def test_changes_rise_and_stay_within_the_periods(name, periods):
    times = drawn(name, periods, num_users=500)
    assert times.shape == (500, SCENARIOS[name].max_changes)
    for row in times:
        real = row[row != NEVER]
        assert (np.diff(real) > 0).all()
        assert real.size == 0 or (real[0] >= 1 and real[-1] <= periods)


def test_an_outage_switches_off_a_third_of_those_who_are_there_within_two_periods():
    on = states(drawn("outage", 100), 100)
    before, during, after = on[49], on[50], on[51]
    stayed = before.sum()
    left = ((before == 1) & ((during == 0) | (after == 0))).sum()
    assert abs(left / stayed - 1 / 3) < 0.03  # those who would have left anyway are among them
    usual = ((on[40] == 1) & (on[42] == 0)).sum() / on[40].sum()
    assert usual < 0.05


def test_many_come_back_after_an_outage():
    times = drawn("outage", 100)
    is_hit = (times[:, 1] >= 51) & (times[:, 1] <= 52) & (times[:, 2] != NEVER)
    assert is_hit.mean() > 0.1
    assert np.median(times[is_hit, 2] - times[is_hit, 1]) < 10


def test_adoption_is_an_s_curve_with_churn():
    on = states(drawn("adoption", 100), 100)
    share = on.mean(axis=1)
    assert share[9] < 0.05
    assert 0.3 < share[59] < 0.6
    assert (np.diff(share[60:]) < 0).any()


def test_travel_has_a_high_season_and_short_trips():
    on = states(drawn("travel", 365), 365)
    share = on.mean(axis=1)
    assert share[205:215].mean() > 2 * share[60:120].mean()


def test_versions_are_released_one_after_the_other():
    times = drawn("versions", 100)
    assert (times[:, 0] == 1).all()
    for version in range(1, 5):
        installed = times[:, version]
        assert installed.min() >= 1 + 20 * version
    assert (times[:, 1:4] == NEVER).any()  # some are skipped


def test_draws_depend_on_the_generator_only():
    assert (drawn("travel", 50, seed=3) == drawn("travel", 50, seed=3)).all()
    assert (drawn("travel", 50, seed=3) != drawn("travel", 50, seed=4)).any()


def test_an_unknown_scenario_is_named_with_all_there_are():
    with pytest.raises(ParameterError, match="'war' is not one of adoption, travel, outage"):
        scenario_of("war")
