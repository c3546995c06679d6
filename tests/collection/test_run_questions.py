"""Every kind of question, from a file to estimates near the truth."""

import numpy as np
import pytest

import shuffledp as sdp
from collection.kinds import CHOICES, KINDS, NUM_USERS, opened
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.run import run as run_plan
from shuffledp.core.errors import DomainError, ParameterError, PlanWarning
from shuffledp.estimation.post_processing import POST_PROCESSING

# Some ninety estimates, each within ten standard errors: 1e-21 by a normal law. Reports are
# bounded, or have exponential tails; by Bernstein's inequality sums of 1200 stay below this.
FALSE_POSITIVE_RATE = 1e-9
STANDARD_ERRORS = 10.0

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def main_column(estimates):
    columns = estimates.columns()
    return columns["mean"] if "mean" in columns else columns["frequency"]


def plan_of(kind, **options):
    return sdp.plan(kind.question, num_users=NUM_USERS, epsilon=1.0, delta=1e-6, **options)


@pytest.fixture(scope="module")
def plans():
    return {name: plan_of(kind) for name, kind in KINDS.items()}


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_estimates_are_near_the_truth(tmp_path, name, choice):
    kind = KINDS[name]
    kind.table.write_parquet(tmp_path / "a.parquet")
    setting = make_plan(
        kind.question, num_users=NUM_USERS, randomizer=choice, epsilon0=4.0, delta=1e-6
    )
    result = run_plan(setting, opened(kind, tmp_path / "a.parquet"), seed=1)
    expected = kind.question.expected_error(setting.randomizer, NUM_USERS)
    error = np.abs(main_column(result.estimates) - kind.truth)
    # Not only the error that is stated, which is itself an estimate: small where counts are low.
    margin = np.maximum(result.estimates.standard_error, expected)
    assert (error <= STANDARD_ERRORS * margin).all()
    assert (result.estimates.standard_error < 3.0 * expected).all()
    assert (result.estimates.standard_error > 0.05 * expected).all()
    assert (result.num_users, result.question) == (NUM_USERS, kind.question)
    assert result.domain == kind.question.labels
    assert result.guarantee.delta_upper == 1e-6
    assert result.target_epsilon == result.guarantee.epsilon_upper > 0.0


@EACH
def test_memory_and_files_give_the_same_estimates(tmp_path, plans, kind):
    plan = plans[kind.question.kind]
    kind.table.write_csv(tmp_path / "a.csv")
    kind.table.write_csv(tmp_path / "a.tsv", separator="\t")
    first, *others = (
        sdp.run(plan, values, seed=5).to_json_dict()
        for values in (
            kind.values,
            opened(kind, tmp_path / "a.csv"),
            opened(kind, tmp_path / "a.tsv"),
            kind.question.column(kind.values),
        )
    )
    assert all(other == first for other in others)
    assert sdp.run(plan, kind.values, seed=6).to_json_dict() != first


@EACH
def test_only_a_seed_makes_a_simulation(plans, kind):
    plan = plans[kind.question.kind]
    result = sdp.run(plan, kind.values)
    assert not result.is_simulation
    simulated = sdp.run(plan, kind.values, seed=0)
    assert simulated.is_simulation
    assert simulated.guarantee == plan.guarantee
    assert result.guarantee.epsilon_upper <= 1.0


@EACH
def test_intervals_that_hold_at_once_are_wider(plans, kind):
    plan = plans[kind.question.kind]
    each = sdp.run(plan, kind.values, seed=2).estimates
    all_at_once = sdp.run(plan, kind.values, seed=2, simultaneous=True).estimates
    assert (each.is_simultaneous, all_at_once.is_simultaneous) == (False, True)
    wider = (all_at_once.upper - all_at_once.lower) / (each.upper - each.lower)
    if each.standard_error.size == 1:
        assert wider[0] == pytest.approx(1.0)
    else:
        assert (wider > 1.1).all()
        assert (wider < 2.0).all()
    np.testing.assert_array_equal(each.standard_error, all_at_once.standard_error)
    wide = sdp.run(plan, kind.values, seed=2, confidence=0.999).estimates
    assert (wide.upper - wide.lower > each.upper - each.lower).all()


@EACH
def test_fewer_users_than_planned_are_accounted_and_warned_about(plans, kind):
    plan = plans[kind.question.kind]
    with pytest.warns(PlanWarning, match="1,200 users were planned and 240 answered"):
        result = sdp.run(plan, kind.values[:240], seed=1)
    assert result.num_users == result.guarantee.num_users == 240
    assert result.guarantee.epsilon_upper > 1.0
    assert result.warnings[0].startswith("1,200 users were planned and 240 answered")


@EACH
def test_values_of_another_question_are_refused(plans, kind):
    other = next(each for each in KINDS.values() if each is not kind)
    with pytest.raises(DomainError):
        sdp.run(plans[kind.question.kind], other.question.column(other.values))


@EACH
def test_nothing_is_estimated_from_reports_that_say_nothing(kind):
    name = next(iter(kind.question.candidates()))
    setting = make_plan(
        kind.question, num_users=NUM_USERS, randomizer=name, epsilon0=0.0, delta=1e-6
    )
    with pytest.raises(ParameterError):
        run_plan(setting, kind.values)


# ------------------------------------------------------------------ post-processing


@pytest.mark.parametrize("name", ["frequencies"])
@pytest.mark.parametrize("step", POST_PROCESSING)
def test_steps_are_applied_in_order_and_named(plans, name, step):
    plan = plans[name]
    result = sdp.run(plan, KINDS[name].values, seed=3, post_processing=["clip", step])
    assert result.estimates.post_processing == ("clip", step)
    assert (result.estimates.frequency >= 0.0).all()
    plain = sdp.run(plan, KINDS[name].values, seed=3).estimates
    np.testing.assert_array_equal(result.estimates.standard_error, plain.standard_error)
    np.testing.assert_array_equal(result.estimates.lower, plain.lower)


def test_shares_of_sets_may_be_clipped(plans):
    kind = KINDS["answer-sets"]
    with pytest.warns(PlanWarning):
        small = sdp.run(plans["answer-sets"], kind.values[:100], seed=3, post_processing=("clip",))
    assert small.estimates.post_processing == ("clip",)
    assert (small.estimates.frequency >= 0.0).all()


# ------------------------------------------------------------------ data


def test_clipping_and_dropping_reach_the_estimates(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "1000\n" * 500 + "\n" * 100 + "-5\n" * 500)
    plan = sdp.plan(sdp.Mean(0, 10), num_users=1000, epsilon=1.0, delta=1e-6)
    column = sdp.collection.open_column(path, "x", plan.question, clip=True, missing="drop")
    result = sdp.run(plan, column, seed=1)
    estimates = result.estimates
    assert abs(estimates.mean[0] - 5.0) < STANDARD_ERRORS * estimates.standard_error[0]
    assert result.num_users == 1000
    assert "Dropped: 100 rows" in result.warnings[0]
    assert result.warnings[0] in result.guarantee.bound.assumptions


def test_vectors_of_any_length_can_be_run_when_clipped(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1e200,0\n0,inf\n0,0\n1e-300,0\n" * 250)
    plan = sdp.plan(
        sdp.VectorMean(["a", "b"], norm_bound=2.0), num_users=1000, epsilon=1.0, delta=1e-6
    )
    column = sdp.collection.open_column(path, None, plan.question, clip=True)
    estimates = sdp.run(plan, column, seed=1).estimates
    assert (np.abs(estimates.mean - 0.5) < STANDARD_ERRORS * estimates.standard_error).all()
