"""Means bit by bit under a shuffler's dummies: planned, saved, run and estimated."""

import math

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collection.report_files import reports_writer
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import InfeasibleTargetError, ParameterError

# One test of a mean within seven standard errors, and one of the order of messages.
FALSE_POSITIVE_RATE = 1e-10

ASKED = {"num_users": 30_000, "epsilon": 1.0, "delta": 1e-6}
QUESTION = sdp.Mean(-5.0, 15.0, name="age")


@pytest.fixture(scope="module")
def planned():
    return sdp.plan(QUESTION, **ASKED, dummies="best", no_local_noise=True)


def test_the_best_plan_of_a_mean_is_a_curators(planned):
    assert planned.randomizer.name == "bit-sums-7"
    assert math.isinf(planned.randomizer.epsilon0)
    assert len(planned.dummies) == 7
    assert planned.guarantee.epsilon_upper <= 1.0
    assert planned.guarantee.num_users == 1  # whoever else lies
    assert math.isinf(planned.without_dummies.epsilon_upper)
    # 1 / mu^2 = 17.848 of a normal law at this target, and little rounding, in ranges.
    error = planned.expected_standard_error * 30_000 / 20.0
    assert math.sqrt(17.848) < error < 1.02 * math.sqrt(17.848)
    rest = {each.randomizer.name: each.expected_standard_error for each in planned.alternatives}
    assert set(rest) == {"duchi", "piecewise"}
    assert min(rest.values()) > 3 * planned.expected_standard_error
    assert planned.expected_dummies == sum(2 * law.half_width for law in planned.dummies)


def test_a_saved_plan_is_the_same(planned, tmp_path):
    again = sdp.Plan.load(planned.save(tmp_path / "plan.json"))
    assert again.randomizer == planned.randomizer
    assert again.dummies == planned.dummies
    assert again.guarantee == planned.guarantee


def test_a_cap_on_the_local_loss_is_a_floor_for_the_error():
    asked = {**ASKED, "dummies": "shuffler", "randomizer": "bit-sums-2"}
    found = sdp.plan(QUESTION, **asked, max_epsilon0=6.0)
    law = found.randomizer
    assert law.epsilon0 == 6.0
    assert found.expected_standard_error > 20.0 * math.sqrt(law.local_variance / 30_000)
    assert found.without_shuffler.epsilon0 == 6.0
    assert 0.0 < found.without_dummies.epsilon_upper < 6.0
    # The crowd alone has less error there, so that "best" takes no dummies.
    best = sdp.plan(QUESTION, **ASKED, dummies="best", max_epsilon0=6.0)
    assert best.dummies == ()
    assert best.randomizer.name in {"duchi", "piecewise"}


def test_what_is_released_are_messages_in_uniform_order(planned, tmp_path):
    values = -5.0 + 20.0 * Entropy.from_seed(4).generator().random(2_000)
    seen = []

    def sink(stream):
        seen.extend(reports.data.copy() for reports in stream)

    result = sdp.run(planned, values, seed=6, sink=sink)
    messages, levels = np.concatenate(seen), np.concatenate(seen) // 2
    assert messages.size == 7 * 2_000 + result.num_dummies
    ends = [4 * law.half_width for law in planned.dummies]
    added = np.bincount(levels) - 2_000
    assert ((added >= 0) & (added <= ends)).all()
    # Rows that stay together go up a level six times in seven: chances of one in seven do not.
    ups = np.count_nonzero(levels[1:] == levels[:-1] + 1) / (levels.size - 1)
    share = added.sum() / levels.size
    assert ups < 1 / 7 + share + 0.03
    error = float(result.estimates.standard_error[0])
    assert abs(float(result.estimates.mean[0]) - values.mean()) < 7.0 * error
    assert result.guarantee.epsilon_upper <= 1.0
    assert len(result.estimates.mean) == 1

    path = tmp_path / "reports.parquet"
    sdp.run(planned, values, seed=6, sink=reports_writer(path, planned, num_users=2_000))
    again = sdp.estimate(path, planned)
    assert float(again.estimates.mean[0]) == float(result.estimates.mean[0])
    assert again.num_users == 2_000
    assert result.report(tmp_path / "report.html").exists()


def test_users_cannot_add_dummies_to_bits():
    with pytest.raises(InfeasibleTargetError, match="let the shuffler add them"):
        sdp.plan(QUESTION, **ASKED, dummies="users", no_local_noise=True)


def test_limits_and_names_are_told():
    asked = {**ASKED, "dummies": "shuffler", "no_local_noise": True}
    with pytest.raises(InfeasibleTargetError, match="allow more than 20 with most_dummies"):
        sdp.plan(QUESTION, **asked, most_dummies=20, randomizer="bit-sums-1")
    with pytest.raises(ParameterError, match="mean with dummies"):
        sdp.plan(QUESTION, **asked, randomizer="duchi")


def test_errors_to_expect_know_the_dummies():
    law = QUESTION.dummy_candidates()["bit-sums-2"](math.inf)
    assert law.name == "bit-sums-2"
    dummies = tuple(map(DummyLaw.from_text, ("gaussian:2:9", "gaussian:3:15")))
    variance = 4 / 9 * dummies[0].variance / 2 + 1 / 9 * dummies[1].variance / 2
    rounding = 50 / (6 * 9)
    found = QUESTION.expected_error(law, 50, dummies)
    assert found == pytest.approx(20.0 * math.sqrt(variance + rounding) / 50)
    assert QUESTION.expected_error(law, 50) == pytest.approx(20.0 * math.sqrt(rounding) / 50)
