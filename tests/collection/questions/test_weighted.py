"""Public weights: estimates of the users' weight, their errors, tables, and what is refused."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.collection import open_column
from shuffledp.collection.questions.weighted import WeightedMean, WeightedShares, weights_of
from shuffledp.core.errors import DataError, DomainError, ParameterError

ADULT = Path(__file__).parents[4] / "shared" / "data" / "adult.data"

FALSE_POSITIVE_RATE = 1e-9
RUNS, NUM_USERS, DELTA = 300, 600, 1e-6
EACH = FALSE_POSITIVE_RATE / 16

DRAWN = sdp.Entropy.from_seed(9).generator()
HAS = DRAWN.random(NUM_USERS) < 0.4
WEIGHTS = DRAWN.uniform(0.5, 1.0, NUM_USERS) * np.where(HAS, 3.0, 1.0)
ANSWERS = np.where(HAS, "yes", "no").tolist()
NUMBERS = np.where(HAS, DRAWN.uniform(5, 10, NUM_USERS), DRAWN.uniform(0, 4, NUM_USERS))
TRUTH = {
    "shares": float(WEIGHTS[HAS].sum() / WEIGHTS.sum()),
    "mean": float(NUMBERS @ WEIGHTS / WEIGHTS.sum()),
}
QUESTIONS = {"shares": sdp.Categories(["yes", "no"]), "mean": sdp.Mean(0, 10)}
VALUES = {"shares": ANSWERS, "mean": NUMBERS}


def plan_of(kind, weights=WEIGHTS, **how):
    question = sdp.weighted(QUESTIONS[kind], weights)
    how = {"epsilon0": 3.0, "delta": DELTA} | how
    return sdp.plan(question, num_users=len(weights), **how)


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUESTIONS)
def test_estimates_are_unbiased_and_intervals_cover(kind):
    plan = plan_of(kind)
    low, high = 0, 0
    off = []
    for seed in range(RUNS):
        found = sdp.run(plan, VALUES[kind], weights=WEIGHTS, seed=seed).estimates
        value = (found.frequency if kind == "shares" else found.mean)[0]
        off.append((value - TRUTH[kind]) / found.standard_error[0])
        low += found.lower[0] > TRUTH[kind]
        high += found.upper[0] < TRUTH[kind]
    # Errors are at most as stated, and normal: the mean of so many is within 6.8 of its own.
    assert abs(np.mean(off)) < 6.8 / math.sqrt(RUNS)
    assert low + high <= binom.isf(EACH, RUNS, 0.06)
    assert np.std(off) > 0.5  # and not far too wide


def test_a_wrong_weight_shows():
    # The negative control: users counted alike are off by far more than the error.
    plan = plan_of("shares", np.ones(NUM_USERS))
    found = sdp.run(plan, ANSWERS, weights=np.ones(NUM_USERS), seed=1).estimates
    assert abs(found.frequency[0] - TRUTH["shares"]) > 6 * found.standard_error[0]


def test_equal_weights_are_an_unweighted_question_with_one_more_answer():
    plan = plan_of("shares", np.full(NUM_USERS, 7.0))
    assert (plan.question.scale, plan.question.design_effect) == (1.0, 1.0)
    found = sdp.run(plan, ANSWERS, weights=np.full(NUM_USERS, 7.0), seed=1).estimates
    assert abs(found.frequency[0] - HAS.mean()) < 6 * found.standard_error[0]
    assert found.frequency.sum() == pytest.approx(1.0, abs=0.3)


def test_the_price_is_the_largest_over_the_mean_weight():
    weights = np.array([1.0, 1.0, 1.0, 5.0] * 50)
    asked = sdp.weighted(sdp.Mean(0, 10), weights)
    assert (asked.scale, asked.mean_weight) == (2.5, 2.0)
    assert asked.design_effect == pytest.approx(28 / 4 / 4)
    trimmed = sdp.weighted(sdp.Mean(0, 10), weights, most_weight=2.0)
    assert (trimmed.mean_weight, trimmed.scale) == (1.25, 1.6)
    how = {"num_users": 200, "epsilon0": 2.0, "delta": DELTA}
    errors = [sdp.plan(each, **how).expected_standard_error for each in (asked, trimmed)]
    plain = sdp.plan(sdp.Mean(0, 10), **how)
    assert errors[0] == pytest.approx(2.5 * plain.expected_standard_error, rel=0.01)
    assert errors[1] == pytest.approx(1.6 * plain.expected_standard_error, rel=0.01)
    assert sdp.plan(asked, **how).largest_shift(10) == pytest.approx(2.5 * plain.largest_shift(10))
    assert "public weights up to 2.5 times their mean, design effect 1.75" in str(
        sdp.plan(asked, **how)
    )


def test_no_report_moves_a_weighted_share_further():
    plan = plan_of("shares", np.array([1.0, 2.0, 3.0]))
    law = plan.randomizer
    found = []
    for report in range(3):
        data = np.array([0, 1, report], np.uint8)
        reports = sdp.randomizers.Reports(data=data, fingerprint=law.fingerprint)
        found.append(sdp.estimate(reports, plan).estimates.frequency)
    spread = np.ptp(found, axis=0)
    assert spread == pytest.approx(plan.largest_shift(1), rel=1e-9)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_liars_are_simulated_and_bounded(kind):
    result = sdp.run(plan_of(kind), VALUES[kind], weights=WEIGHTS, seed=2, dishonest=60)
    assert 0.2 * result.most_shifted < result.attack.shift <= result.most_shifted


def test_the_mean_weight_is_of_those_who_answer():
    # As many as planned, with other weights: the estimate is of their weight.
    some = NUMBERS > 2
    plan = plan_of("mean", np.linspace(1.0, 3.0, some.sum()), epsilon0=12.0)
    result = sdp.run(plan, NUMBERS[some], weights=WEIGHTS[some], seed=1)
    own = WEIGHTS[some]
    assert result.question.mean_weight == pytest.approx(own.mean())
    truth = NUMBERS[some] @ own / own.sum()
    assert abs(result.estimates.mean[0] - truth) < 6 * result.estimates.standard_error[0]


def test_a_mean_with_dummies_is_weighted_too():
    how = {"epsilon0": None, "epsilon": 1.0, "dummies": "shuffler", "max_epsilon0": 8.0}
    plan = plan_of("mean", **how)
    assert plan.randomizer.name.startswith("weighted:bit-sums-")
    result = sdp.run(plan, NUMBERS, weights=WEIGHTS, seed=1)
    error = result.estimates.standard_error[0]
    assert abs(result.estimates.mean[0] - TRUTH["mean"]) < 6 * error


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_plan_is_saved_and_loaded(kind, tmp_path):
    plan = plan_of(kind)
    loaded = sdp.Plan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.question == plan.question
    assert loaded.randomizer == plan.randomizer
    assert isinstance(loaded.question, WeightedMean if kind == "mean" else WeightedShares)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_device_knows_its_weight(kind):
    question = sdp.weighted(QUESTIONS[kind], WEIGHTS)
    answer = ["yes", "2.0"] if kind == "shares" else ["5.5", 2]
    expected = [[0.0, 2.0]] if kind == "shares" else [[5.5, 2.0]]
    assert question.value_of_one(answer).tolist() == expected
    name = next(iter(question.candidates()))
    asked = sdp.deploy.AskedTerms.of(question, name, 2.0, "How?")
    assert sdp.deploy.AskedTerms.from_json_dict(json.loads(asked.to_json())) == asked
    with pytest.raises(DomainError, match="positive"):
        question.value_of_one([answer[0], 0])
    for wrong in ("yes", [1], 7):
        with pytest.raises(DataError, match="value and a weight"):
            question.value_of_one(wrong)


# --------------------------------------------------------------------- tables
@pytest.fixture
def table(tmp_path):
    path = tmp_path / "survey.csv"
    rows = zip(ANSWERS, NUMBERS, WEIGHTS, strict=True)
    lines = [f"{answer},{number},{weight}" for answer, number, weight in rows]
    path.write_text("answer,hours,weight\n" + "\n".join([*lines, ",3,9.5"]) + "\n")
    return path


def run(*words):
    return CliRunner().invoke(cli, ["run", *map(str, words)])


def test_the_command_line_weighs_by_a_column(table, tmp_path):
    words = ["--column", "answer", "--domain", "yes,no", "--weight", "weight", "--epsilon0", 3]
    words += ["--delta", DELTA, "--missing", "drop", "--seed", 1, "--out", tmp_path / "out"]
    outcome = run(table, *words)
    assert outcome.exit_code == 0, outcome.output
    assert "public weights up to" in outcome.output
    assert "The weights are public" in outcome.output
    record = json.loads((tmp_path / "out" / "privacy.json").read_text())
    question = record["question"]
    assert question["most_weight"] == pytest.approx(WEIGHTS.max())  # not 9.5, without an answer
    assert question["mean_weight"] == pytest.approx(WEIGHTS.mean())
    found = record["estimates"][0]
    assert abs(found["frequency"] - TRUTH["shares"]) < 6 * found["standard_error"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "design effect" in page


def test_a_mean_is_weighted_and_trimmed(table, tmp_path):
    words = ["--column", "hours", "--mean", "--range", "0,10", "--weight", "weight"]
    words += ["--most-weight", 2, "--epsilon0", 5, "--delta", DELTA, "--seed", 1]
    outcome = run(table, *words, "--out", tmp_path / "out")
    assert outcome.exit_code == 0, outcome.output
    record = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert record["question"]["most_weight"] == 2.0


@pytest.mark.parametrize("bad", ["", "0", "-1", "nan", "inf"])
def test_a_row_without_a_weight_is_refused(bad, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text(f"answer,weight\nyes,1\nno,{bad}\nno,2\n")
    asked = sdp.weighted(QUESTIONS["shares"], [1.0], columns=("answer", "weight"))
    with pytest.raises(
        DomainError, match=r"row 2 .* weight is missing, zero, negative or infinite"
    ):
        open_column(path, None, asked)


def test_answers_that_are_missing_or_others_are_answers_too(table):
    asked = sdp.weighted(sdp.Categories(["yes", "maybe"]), [1.0], columns=("answer", "weight"))
    column = open_column(table, None, asked, missing="category", other=True)
    fitted = asked.fitted(column)
    assert fitted.labels == ("yes", "maybe", "other", "missing")
    assert weights_of(column).size == NUM_USERS + 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--weight", "weight", "--column", "answer"], "--weight goes with"),
        (["--most-weight", "2", "--column", "answer", "--domain", "yes,no"], "--weight goes with"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, said, table, tmp_path):
    outcome = run(table, *words, "--epsilon0", 3, "--delta", DELTA, "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert said in outcome.output


@pytest.mark.parametrize("bad", [0.0, -2.0, math.nan, math.inf])
def test_bad_weights_are_named(bad):
    with pytest.raises(DomainError, match=r"weights\[1\] = .* is not positive and finite"):
        sdp.weighted(QUESTIONS["mean"], [1.0, bad])
    with pytest.raises(ParameterError, match="most_weight"):
        sdp.weighted(QUESTIONS["mean"], [1.0], most_weight=bad)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="weights are for Categories and Mean"):
        sdp.weighted(sdp.VectorMean(["x", "y"]), [1.0])
    for wrong in ([], [[1.0]], "abc"):
        with pytest.raises(DataError, match="weights"):
            sdp.weighted(QUESTIONS["mean"], wrong)
    plan = plan_of("mean")
    with pytest.raises(ParameterError, match="weights is missing"):
        sdp.run(plan, NUMBERS, seed=1)
    with pytest.raises(DataError, match="2 weights for 600 values"):
        sdp.run(plan, NUMBERS, weights=[1.0, 2.0], seed=1)
    plain = sdp.plan(QUESTIONS["mean"], num_users=NUM_USERS, epsilon0=2.0, delta=DELTA)
    with pytest.raises(ParameterError, match=r"shuffledp\.weighted"):
        sdp.run(plain, NUMBERS, weights=WEIGHTS, seed=1)


@pytest.mark.skipif(not ADULT.exists(), reason="the shared data sets are not here")
def test_adults_final_weights():
    with ADULT.open(encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) > 12]
    weights, hours = np.array([[float(row[2]), float(row[12])] for row in rows]).T
    asked = sdp.weighted(sdp.Mean(0, 99), weights, most_weight=5e5)
    assert asked.scale < 3
    plan = sdp.plan(asked, num_users=len(weights), epsilon=1.0, delta=1e-7)
    result = sdp.run(plan, hours, weights=weights, seed=1)
    own = np.minimum(weights, 5e5)
    truth = own @ hours / own.sum()
    assert abs(result.estimates.mean[0] - truth) < 6 * result.estimates.standard_error[0]
    assert result.estimates.standard_error[0] < 0.4
